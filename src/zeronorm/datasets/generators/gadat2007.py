"""The synthetic example of Gadat and Younes (JMLR 8, 2007, section 5.1.1) and probe features (Table 4)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm.datasets.generators.synthetic import Seed, SyntheticData

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
    signal : q.
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
    kind : "permuted" shuffles a randomly drawn column; "gaussian" draws normal values with the mean and
        standard deviation of a randomly drawn column.
    """
    rng = np.random.default_rng(random_state)
    drawn = rng.integers(0, X.shape[1], size=n_probes)
    if kind == "permuted":
        probes = rng.permuted(X[:, drawn], axis=0)
    elif kind == "gaussian":
        probes = rng.normal(X.mean(axis=0)[drawn], X.std(axis=0)[drawn], size=(X.shape[0], n_probes))
    else:
        raise ValueError(f"The 'kind' parameter must be 'permuted' or 'gaussian'. Got {kind!r} instead.")
    return np.column_stack([X, probes])
