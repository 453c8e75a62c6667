"""Generators of the synthetic problems of the papers."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import written

Seed = int | np.random.Generator | None


class SyntheticData(NamedTuple):
    """Samples whose relevant features are known: ``X, y, relevant = make_…()``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The samples.
    y : ndarray of shape (n_samples,)
        The labels.
    relevant : ndarray of int
        Positions of the relevant features.

    Examples
    --------
    >>> from zeronorm.datasets import make_twonorm
    >>> data = make_twonorm(50, random_state=0)
    >>> data.X.shape, data.y.shape
    ((50, 20), (50,))
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    relevant: NDArray[np.intp]


def random_signs(n_samples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Labels -1 and +1 with equal probability."""
    return 2 * rng.integers(0, 2, size=n_samples) - 1


def standardized(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns with mean zero and standard deviation one."""
    deviation = X.std(axis=0)
    return np.asarray((X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0))


# -- Toy problems of Weston, Elisseeff, Schölkopf and Tipping (JMLR 3, 2003) --
#
# The numbers of the linear and the nonlinear problem are those of the problems' first publication
# (Weston et al., NIPS 2000), since the printed numbers of the later paper could not be consulted


NOISE_DEVIATION = 20.0
SPARSE_TARGETS = ("product", "linear")


def make_linear_toy(
    n_samples: int = 30, *, n_features: int = 202, standardize: bool = True, random_state: Seed = None
) -> SyntheticData:
    r"""Six relevant features in two redundant triples; all others are noise.

    With probability 0.7

    .. math:: x_i = y\,N(i, 1),\ i = 1, 2, 3, \qquad x_4, x_5, x_6 \sim N(0, 1),

    otherwise :math:`x_1, x_2, x_3 \sim N(0, 1)` and :math:`x_i = y\,N(i-3, 1)` for :math:`i = 4, 5, 6`.
    The other features are :math:`N(0, 20^2)`. The two best features are one of each triple (x3 and x6,
    Bayes error 1.5 %); two of one triple carry the same information (15 %).

    Parameters
    ----------
    n_samples : int, default=30
        Number of samples.
    n_features : int, default=202
        Number of features.
    standardize : bool, default=True
        Scale every column to mean 0 and variance 1.
    random_state : int, Generator or None, default=None
        Seed. None draws a new one in every call.

    Returns
    -------
    SyntheticData
        The named tuple ``(X, y, relevant)``.

    Examples
    --------
    >>> from zeronorm.datasets import make_linear_toy
    >>> X, y, relevant = make_linear_toy(30, random_state=0)
    >>> X.shape, relevant.tolist()
    ((30, 202), [0, 1, 2, 3, 4, 5])
    """
    rng = np.random.default_rng(random_state)
    y = random_signs(n_samples, rng)
    X = rng.normal(0.0, NOISE_DEVIATION, size=(n_samples, n_features))
    informative = y[:, None] * rng.normal([1.0, 2.0, 3.0], 1.0, size=(n_samples, 3))
    uninformative = rng.normal(size=(n_samples, 3))
    first = rng.random(n_samples)[:, None] < 0.7
    X[:, 0:3] = np.where(first, informative, uninformative)
    X[:, 3:6] = np.where(first, uninformative, informative)
    return SyntheticData(standardized(X) if standardize else X, y, np.arange(6))


def make_nonlinear_toy(
    n_samples: int = 50, *, n_features: int = 52, standardize: bool = True, random_state: Seed = None
) -> SyntheticData:
    r"""Two relevant features that only a nonlinear rule can use.

    Class +1 is an equal mixture of normals around :math:`\pm(3, 3)`, class -1 around
    :math:`\pm(3, -0.75)`, with unit variance (Bayes error 3.1 %). The others are :math:`N(0, 20^2)`.

    Parameters
    ----------
    n_samples : int, default=50
        Number of samples.
    n_features : int, default=52
        Number of features.
    standardize : bool, default=True
        Scale every column to mean 0 and variance 1.
    random_state : int, Generator or None, default=None
        Seed. None draws a new one in every call.

    Returns
    -------
    SyntheticData
        The named tuple ``(X, y, relevant)``.

    Examples
    --------
    >>> from zeronorm.datasets import make_nonlinear_toy
    >>> X, y, relevant = make_nonlinear_toy(50, random_state=0)
    >>> X.shape, relevant.tolist()
    ((50, 52), [0, 1])
    """
    rng = np.random.default_rng(random_state)
    y = random_signs(n_samples, rng)
    X = rng.normal(0.0, NOISE_DEVIATION, size=(n_samples, n_features))
    centre = np.where(y[:, None] == 1, [[3.0, 3.0]], [[3.0, -0.75]]) * random_signs(n_samples, rng)[:, None]
    X[:, :2] = centre + rng.normal(size=(n_samples, 2))
    return SyntheticData(standardized(X) if standardize else X, y, np.arange(2))


def make_polynomial_toy(
    n_samples: int = 100,
    *,
    target: str | float = "product",
    n_features: int = 10,
    random_state: Seed = None,
) -> SyntheticData:
    r"""Labels from the sign of a polynomial of degree two, without noise.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    target : str or float, default='product'
        "product" is :math:`x_1 x_2 + x_3`, "linear" is :math:`x_1`. A number is the fraction of zero
        coefficients (0.95, 0.9, 0.8 or 0) of a polynomial with random normal coefficients.
    n_features : int, default=10
        Number of features.
    random_state : int, Generator or None, default=None
        Seed. None draws a new one in every call.

    Returns
    -------
    SyntheticData
        The named tuple ``(X, y, relevant)``.

    Examples
    --------
    >>> from zeronorm.datasets import make_polynomial_toy
    >>> X, y, relevant = make_polynomial_toy(100, random_state=0)
    >>> X.shape, relevant.tolist()
    ((100, 10), [0, 1, 2])
    """
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n_samples, n_features))
    if isinstance(target, str):
        if target not in SPARSE_TARGETS:
            raise ValueError(
                f"The 'target' parameter must be one of {SPARSE_TARGETS} or a fraction. Got {written(target)} instead."
            )
        values = X[:, 0] * X[:, 1] + X[:, 2] if target == "product" else X[:, 0]
        relevant = np.arange(3 if target == "product" else 1)
    else:
        values, relevant = _random_polynomial(X, target, rng)
    return SyntheticData(X, np.where(values > 0.0, 1, -1), relevant)


def _random_polynomial(
    X: np.ndarray, sparsity: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    if not 0.0 <= sparsity < 1.0:
        raise ValueError(
            f"The 'target' parameter must be a fraction of zero coefficients in [0, 1). Got {written(sparsity)} "
            "instead."
        )
    n_features = X.shape[1]
    first, second = np.triu_indices(n_features)
    monomials = np.column_stack([X, X[:, first] * X[:, second]])
    members = [{i} for i in range(n_features)] + [{i, j} for i, j in zip(first, second, strict=True)]
    n_terms = max(1, round((1.0 - sparsity) * monomials.shape[1]))
    chosen = rng.choice(monomials.shape[1], size=n_terms, replace=False)
    values = monomials[:, chosen] @ rng.normal(size=n_terms)
    return values, np.asarray(sorted(set().union(*(members[i] for i in chosen))), dtype=np.intp)


# -- The synthetic example of Gadat and Younes (JMLR 8, 2007, section 5.1.1) and probe features (Table 4) --


# For each class the three sets of features that are fixed at 1 (counted from one, as in the paper).
FIXED_SETS = (
    ((1, 3, 5, 7), (1, 5), (3, 7)),
    ((2, 4, 6, 8), (2, 4), (6, 8)),
    ((1, 4, 8, 9), (1, 8), (4, 9)),
)


def make_reusable_features(
    n_samples: int = 500, *, n_features: int = 100, signal: float = 0.9, random_state: Seed = None
) -> SyntheticData:
    r"""Three classes of ternary variables, some of which serve several classes.

    A sample of class i is drawn from

    .. math:: \frac{q}{3}\sum_{j=1}^{3} \mu(\mathcal F_i^j) + (1-q)\,\mu(\emptyset),

    where under :math:`\mu(\mathcal G)` the variables in :math:`\mathcal G` are 1 and the others uniform on
    {-1, 0, 1}. The first nine features are relevant; 1, 4 and 8 serve more than one class.

    Parameters
    ----------
    n_samples : int, default=500
        Number of samples.
    n_features : int, default=100
        Number of features.
    signal : float, default=0.9
        Probability q that a sample shows one of the patterns of its class.
    random_state : int, Generator or None, default=None
        Seed. None draws a new one in every call.

    Returns
    -------
    SyntheticData
        The named tuple ``(X, y, relevant)``.

    Examples
    --------
    >>> from zeronorm.datasets import make_reusable_features
    >>> X, y, relevant = make_reusable_features(500, random_state=0)
    >>> X.shape, relevant.size
    ((500, 100), 9)
    """
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, 3, size=n_samples)
    X = rng.integers(-1, 2, size=(n_samples, n_features)).astype(np.float64)
    component = rng.integers(0, 3, size=n_samples)
    is_signal = rng.random(n_samples) < signal
    for row in np.flatnonzero(is_signal):
        fixed = np.asarray(FIXED_SETS[y[row]][component[row]]) - 1
        X[row, fixed] = 1.0
    return SyntheticData(X, y, np.arange(9))


def append_probes(
    X: NDArray[np.float64],
    n_probes: int,
    *,
    kind: Literal["permuted", "gaussian"] = "permuted",
    random_state: Seed = None,
) -> NDArray[np.float64]:
    """``X`` with columns appended that look like its own but say nothing about the target.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data.
    n_probes : int
        Number of columns to append.
    kind : {"permuted", "gaussian"}, default='permuted'
        "permuted" shuffles a randomly drawn column; "gaussian" draws normal values with the mean and the
        standard deviation of a randomly drawn column.
    random_state : int, Generator or None, default=None
        Seed. None draws a new one in every call.

    Returns
    -------
    ndarray of shape (n_samples, n_features + n_probes)
        The data with the probes at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.datasets import append_probes
    >>> append_probes(np.eye(4), 3, random_state=0).shape
    (4, 7)
    """
    rng = np.random.default_rng(random_state)
    drawn = rng.integers(0, X.shape[1], size=n_probes)
    if kind == "permuted":
        probes = rng.permuted(X[:, drawn], axis=0)
    elif kind == "gaussian":
        probes = rng.normal(X.mean(axis=0)[drawn], X.std(axis=0)[drawn], size=(X.shape[0], n_probes))
    else:
        raise ValueError(
            f"The 'kind' parameter must be 'permuted' or 'gaussian'. Got {written(kind)} instead."
        )
    return np.column_stack([X, probes])


# -- The artificial data set of Huang, King and Lyu (ICDM 2008), which is Breiman's twonorm --


def make_twonorm(n_samples: int = 400, *, n_features: int = 20, random_state: Seed = None) -> SyntheticData:
    r"""Two overlapping normal classes; every feature is equally relevant.

    The classes have unit variance around :math:`\pm(a, \dots, a)`, :math:`a = 2/\sqrt{p}`, so that the Bayes
    error is :math:`\Phi(-2) = 2.3\,\%` for every p.

    Parameters
    ----------
    n_samples : int, default=400
        Number of samples.
    n_features : int, default=20
        Number of features.
    random_state : int, Generator or None, default=None
        Seed. None draws a new one in every call.

    Returns
    -------
    SyntheticData
        The named tuple ``(X, y, relevant)``.

    Examples
    --------
    >>> from zeronorm.datasets import make_twonorm
    >>> X, y, relevant = make_twonorm(400, random_state=0)
    >>> X.shape, relevant.size
    ((400, 20), 20)
    """
    rng = np.random.default_rng(random_state)
    y = random_signs(n_samples, rng)
    centre = 2.0 / np.sqrt(n_features)
    X = rng.normal(size=(n_samples, n_features)) + centre * y[:, None]
    return SyntheticData(X, y, np.arange(n_features))


# Names under which the command line offers them.
GENERATORS = {
    "linear-toy": make_linear_toy,
    "nonlinear-toy": make_nonlinear_toy,
    "polynomial-toy": make_polynomial_toy,
    "reusable-features": make_reusable_features,
    "twonorm-made": make_twonorm,
}
