"""The zero-norm in the feature space of a polynomial kernel."""

from __future__ import annotations

import warnings
from collections import Counter
from math import factorial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import pinvh
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from zeronorm._types import FloatArray, IntArray, written
from zeronorm.design import as_design, in_memory
from zeronorm.engines._monomials import MonomialDesign
from zeronorm.engines.rescaling._iteration import (
    COLLAPSED,
    UNFINISHED,
    UnitFactors,
    multiplicative,
    rescale_until_sparse,
)
from zeronorm.engines.rescaling._models import SOLVER_TOL, EqualCoordinates, RescaledModels
from zeronorm.registry import register
from zeronorm.selection._checked import CheckedParameters
from zeronorm.selection._problem import warn_of_long_fit
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import HingeLoss, LinearProblem, Way
from zeronorm.solvers.svm._dual import SvmDual, solve_svm_dual


@register(
    "kernel-arom",
    kind="model",
    family="sparsity",
    tasks=("binary",),
    reference="Weston, Elisseeff, Schölkopf & Tipping 2003, sections 3.4 and 5",
    cost="explicit: n² times the number of monomials; implicit: kernel matrices between all products of samples",
    oracle="kernels against explicit monomials; AROM for degree one",
    avoid="many inputs: the number of monomials grows fast; selecting input features: only the polynomial is sparse",
    test_params=({}, {"space": "implicit", "max_iter": 2}),
)
class KernelAROM(CheckedParameters, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Classifier with a sparse polynomial, found by AROM in the space of monomials.

    The kernel

    .. math:: k(x, x') = \sum_{r=1}^{d} (x \cdot x')^r = \phi(x) \cdot \phi(x')

    has a feature map :math:`\phi` whose coordinates are all *ordered* monomials of degree 1 to d. This map, unlike the
    usual one with square roots of binomials, is multiplicative, :math:`\phi(x * x') = \phi(x) * \phi(x')`, so that
    AROM's rescaling of :math:`\phi(x)` by :math:`z = \sum_i \gamma_i \phi(x_i)` is again a kernel of the inputs:

    .. math:: k_z(x, x') = \sum_{ij} \gamma_i \gamma_j\, k(x_i * x,\ x_j * x').

    ``space="explicit"`` runs the iteration on the monomials themselves: it is exact, and the polynomial is
    available (``monomials_``, ``coef_``). ``space="implicit"`` uses kernels only. Its first update, with
    :math:`\gamma = \alpha * y`, is exact; later ones project z onto the span of the training vectors,
    :math:`\gamma = K^+ K_t (\alpha_t * y)`, which is exact only if that span is the whole space, that is, if the
    rank of :math:`\phi(X)` is the number of distinct monomials. Otherwise the two differ.

    This is a predictor and not a selector: the polynomial is sparse, not the set of inputs. It is trained on the
    rescaled monomials, since the implicit space has no map back to the original scale.

    Parameters
    ----------
    space
        "explicit" has one column per monomial. "implicit" uses a kernel, takes n⁴ operations for n samples and
        suits a few hundred samples.
    C
        The errors ξ cost (C/2) Σ ξ². ``numpy.inf`` is the hard margin, which needs classes that can be separated.
    zero_tol
        In the explicit space such monomials are removed for good.
    tol
        The iteration ends when no scaling factor (implicit: no entry of the kernel matrix) changes by more than
        this, relative to the largest.
    max_iter
        One iteration trains one SVM.
    scaling
        "unit" rescales the factors before each training, so that the mean diagonal of the centred kernel is one: C then
        means the same for any number of monomials. "paper" leaves them as the formula gives them: C must then grow with
        the number of monomials, or all weights shrink to zero. With a hard margin both are the same.

    Attributes
    ----------
    monomials_ : list of tuples
        Explicit: the monomials of the polynomial, as tuples of input indices.
    coef_ : ndarray
        Explicit: the coefficients of these monomials, for the standardised inputs.
    intercept_ : float or ndarray
        The bias.
    mean_ : ndarray of shape (n_features_in_,)
        Means that were subtracted from the inputs.
    scale_ : ndarray of shape (n_features_in_,)
        Standard deviations by which the inputs were divided.
    classes_ : ndarray of shape (2,)
        The two classes.
    n_iter_ : int
        Number of SVMs that were trained.
    converged_ : bool
        Whether the iteration reached ``tol``.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.models import KernelAROM
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(80, 4))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = KernelAROM(degree=2, C=1.0).fit(X, y)
    >>> model.monomials_  # the sign of the product of the first two inputs decides
    [(0, 1)]
    """

    def __init__(
        self,
        *,
        degree: int = 2,
        space: Literal["explicit", "implicit"] = "explicit",
        C: float = 10.0,
        standardize: bool = True,
        zero_tol: float = 1e-3,
        tol: float = 1e-3,
        max_iter: int = 100,
        scaling: Literal["unit", "paper"] = "unit",
    ) -> None:
        self.degree = degree
        self.space = space
        self.C = C
        self.standardize = standardize
        self.zero_tol = zero_tol
        self.tol = tol
        self.max_iter = max_iter
        self.scaling = scaling

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the polynomial to the samples X with the classes y."""
        self._validate_params()
        X, y = validate_data(self, in_memory(X, self), y, dtype=np.float64, ensure_min_samples=2)
        signs = self._encode(y)
        self.mean_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardize:
            self.mean_, deviation = X.mean(axis=0), X.std(axis=0)
            self.scale_ = np.where(deviation > 1e-12 * np.abs(X).max(axis=0, initial=0.0), deviation, np.inf)
        inputs = self._inputs(X)
        settings: dict[str, Any] = {"C": self.C, "tol": self.tol, "max_iter": self.max_iter}
        settings["in_units"] = self.scaling == "unit"
        model: ExplicitSpace | ImplicitSpace
        if self.space == "explicit":
            model = ExplicitSpace(inputs, signs, self.degree, zero_tol=self.zero_tol, **settings)
            self.monomials_, self.coef_ = model.monomials, model.weights
        else:
            model = ImplicitSpace(inputs, signs, self.degree, **settings)
        self._model = model
        self.intercept_ = model.bias
        self.n_iter_, self.converged_ = model.n_iter, model.converged
        if not model.converged:
            warnings.warn(f"KernelAROM did not converge: {model.remedy}", ConvergenceWarning, stacklevel=2)
        return self

    def _encode(self, y: NDArray[Any]) -> FloatArray:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"KernelAROM needs samples of two classes. Got one class only: {written(self.classes_[0])}."
            )
        if self.classes_.size > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}: "
                f"KernelAROM got {self.classes_.size} classes. Wrap it in OneVsRestClassifier."
            )
        return np.where(codes == 1, 1.0, -1.0)

    def _inputs(self, X: FloatArray) -> FloatArray:
        return np.asarray((X - self.mean_) / self.scale_)

    def decision_function(self, X: Any) -> FloatArray:
        """Value of the polynomial for each sample, positive for the second class."""
        check_is_fitted(self)
        X = validate_data(self, in_memory(X, self), dtype=np.float64, reset=False)
        return self._model.decide(self._inputs(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each sample."""
        values = self.decision_function(X)
        return np.asarray(self.classes_[(values > 0.0).astype(np.intp)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


# -- AROM in the space of ordered monomials, with explicit monomials or with kernels --


# Seconds of all iterations, measured with 20 to 1000 samples and 230 to 2,000,000 monomials.
SECONDS_PER_PRODUCT, SECONDS_PER_FOURTH_POWER = 4e-8, 1.4e-11
BATCH = 1 << 22  # products in memory at a time
RANK_TOL = 1e-10  # eigenvalues of the kernel matrix below this fraction of the largest are rounding
NEEDS_SLACK = "KernelAROM with a hard margin (C=inf)"


def _warn_if_long(n_samples: int, width: int, size: str) -> None:
    """Estimate the time of all iterations; ``width`` is the number of numbers for each pair of samples."""
    seconds = SECONDS_PER_PRODUCT * n_samples**2 * width + SECONDS_PER_FOURTH_POWER * n_samples**4
    remedy = "select inputs first (RFE), or use fewer samples"
    warn_of_long_fit("KernelAROM", seconds, f"{n_samples} samples{size}", remedy)


class ExplicitSpace:
    """AROM with the monomials as columns; each column represents all orderings of its factors."""

    def __init__(
        self,
        X: FloatArray,
        signs: FloatArray,
        degree: int,
        *,
        C: float,
        zero_tol: float,
        tol: float,
        max_iter: int,
        in_units: bool,
    ) -> None:
        design = MonomialDesign.of(as_design(X), degree)
        _warn_if_long(len(X), design.n_features, f" and {design.n_features} monomials")
        problem = LinearProblem(HingeLoss(squared=True), signs[:, None], np.full((signs.size, 1), C))
        coordinates = EqualCoordinates(orderings(design.factors))
        model = RescaledModels(problem, way=Way.GRAM, coordinates=coordinates)
        result = rescale_until_sparse(
            model,
            design,
            np.arange(design.n_features),
            multiplicative,
            zero_tol=zero_tol,
            tol=tol,
            max_iter=max_iter,
            units=UnitFactors(np.sqrt(design.column_stats().variance) * coordinates.root)
            if in_units
            else None,
        )
        if not result.iterates:
            result.status.check(NEEDS_SLACK)
        kept = np.isin(result.trained, result.active)
        self._factors = design.factors[:, result.trained[kept]]
        self.weights: FloatArray = model.weights[kept, 0] if kept.any() else np.zeros(0)
        self.bias = float(model.bias[0])
        self.n_iter, self.converged, self.remedy = max(1, result.n_iter), result.converged, result.remedy
        self.monomials = [tuple(int(i) for i in column if i < X.shape[1]) for column in self._factors.T]

    def decide(self, X: FloatArray) -> FloatArray:
        padded = np.column_stack([X, np.ones(len(X))])
        return MonomialDesign(padded, self._factors).dot(self.weights) + self.bias


def orderings(factors: IntArray) -> FloatArray:
    """Number of orders in which the factors of each monomial can be written; the padding index does not count."""
    padding = int(factors.max())
    counts = np.empty(factors.shape[1])
    for j, column in enumerate(factors.T):
        powers = Counter(int(i) for i in column if i != padding)
        repeats = np.prod([factorial(power) for power in powers.values()])
        counts[j] = factorial(sum(powers.values())) / repeats
    return counts


class ImplicitSpace:
    """AROM with kernels only; the scaling factors are a combination, with coefficients γ, of the training vectors."""

    def __init__(
        self,
        X: FloatArray,
        signs: FloatArray,
        degree: int,
        *,
        C: float,
        tol: float,
        max_iter: int,
        in_units: bool,
    ) -> None:
        _warn_if_long(len(X), len(X) ** 2, "")
        self.X, self.degree, self.in_units = X, degree, in_units
        self.divisor = 1.0  # of the kernel that is not rescaled
        self.n_iter, self.converged, self.remedy = 0, False, UNFINISHED
        self.gamma: FloatArray | None = None  # None: the kernel is not rescaled
        first = self.kernel(None, X, X)
        inverse = pinvh(first, rtol=RANK_TOL)
        kernel, self.divisor = self._in_units(first)
        gamma: FloatArray | None = None
        solution: SvmDual | None = None
        resting = False
        while True:
            found = _solve(kernel, signs, C, solution)
            if found.status is Status.UNBOUNDED and solution is not None:
                resting = True  # the projected kernel no longer separates the classes: keep the last SVM
                break
            found.status.check(NEEDS_SLACK)
            solution, self.gamma = found, gamma
            self.n_iter += 1
            if resting or self.n_iter >= max_iter:
                break
            v = solution.dual_coef
            gamma = v if gamma is None else inverse @ (kernel @ v)
            rescaled, size = self._in_units(self.kernel(gamma, X, X))
            gamma = gamma / np.sqrt(size)
            resting = self._is_at_rest(kernel, rescaled, first, tol)
            kernel = rescaled
        self.dual_coef, self.bias = solution.dual_coef, solution.bias
        self.converged = resting and self.remedy == UNFINISHED

    def _in_units(self, kernel: FloatArray) -> tuple[FloatArray, float]:
        """The kernel over the mean diagonal that it has when centred, and that number; 1 without such units."""
        size = float(np.diagonal(kernel).mean() - kernel.mean()) if self.in_units else 1.0
        return (kernel / size, size) if 0.0 < size < np.inf else (kernel, 1.0)

    def _is_at_rest(self, kernel: FloatArray, rescaled: FloatArray, first: FloatArray, tol: float) -> bool:
        if np.trace(rescaled) <= COLLAPSED**2 * np.trace(first):
            self.remedy = "all weights shrank to zero, because errors cost too little; raise C."
            return True
        return bool(np.abs(rescaled - kernel).max() <= tol * np.abs(kernel).max())

    def kernel(self, gamma: FloatArray | None, left: FloatArray, right: FloatArray) -> FloatArray:
        """The kernel rescaled by z = Σ γ_i φ(x_i)."""
        if gamma is None:
            return polynomial(left @ right.T, self.degree) / self.divisor
        return rescaled_kernel(self.X, gamma, left, right, self.degree)

    def decide(self, X: FloatArray) -> FloatArray:
        used = self.dual_coef != 0.0
        values = self.kernel(self.gamma, X, self.X[used]) @ self.dual_coef[used]
        return np.asarray(values + self.bias)


def _solve(kernel: FloatArray, signs: FloatArray, C: float, start: SvmDual | None) -> SvmDual:
    return solve_svm_dual(kernel, signs, C=C, loss="squared_hinge", warm_start=start, tol=SOLVER_TOL)


def polynomial(product: FloatArray, degree: int) -> FloatArray:
    """t + t² + … + t^degree, elementwise."""
    result = product.copy()
    for _ in range(degree - 1):
        result += 1.0
        result *= product
    return result


def rescaled_kernel(
    X: FloatArray, gamma: FloatArray, left: FloatArray, right: FloatArray, degree: int
) -> FloatArray:
    r""":math:`\sum_{ab} \gamma_a \gamma_b\, k(x_a * x, x_b * x')` for all pairs of rows of left and right.

    The inner products are :math:`\sum_l (x_{al} x_{bl}) (x_l x'_l)`: one matrix product of all pairs of
    training vectors with all pairs of rows.
    """
    used = gamma != 0.0
    X, gamma = X[used], gamma[used]
    first, second = np.triu_indices(len(X))
    pairs = X[first] * X[second]
    weight = gamma[first] * gamma[second] * np.where(first == second, 1.0, 2.0)
    result = np.empty((len(left), len(right)))
    height = max(1, BATCH // max(1, pairs.shape[0] * len(right)))
    for start in range(0, len(left), height):
        rows = left[start : start + height]
        products = (rows[:, None, :] * right[None, :, :]).reshape(-1, X.shape[1])
        values = polynomial(products @ pairs.T, degree) @ weight
        result[start : start + height] = values.reshape(len(rows), len(right))
    return result
