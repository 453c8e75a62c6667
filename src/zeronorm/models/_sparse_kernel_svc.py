"""A kernel classifier with as few support vectors as possible."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from zeronorm._types import BoolArray, FloatArray, IntArray, written
from zeronorm.design import Design, in_memory
from zeronorm.design._dense import DenseDesign
from zeronorm.engines.rescaling._between import ProbitStep
from zeronorm.engines.rescaling._iteration import SHRUNK, Rescaling, power_rule, rescale_until_sparse
from zeronorm.engines.rescaling._models import RescaledModels
from zeronorm.execution import require_memory
from zeronorm.registry import register
from zeronorm.selection._checked import CheckedParameters
from zeronorm.selection._kinds import exceptions, number
from zeronorm.selection._problem import warn_of_long_fit
from zeronorm.solvers.linear import SQUARED_ERROR, HingeLoss, LinearProblem, Solution

# Measured with 500 (1.5 s) and 1000 samples (28 s) of two classes.
SECONDS_PER_FOURTH_POWER = 2.5e-11

KERNELS = ("rbf", "poly", "linear", "sigmoid")


@register(
    "sparse-kernel-svc",
    kind="model",
    family="sparsity",
    tasks=("binary", "multiclass"),
    reference="Huang, King & Lyu 2008, section 2.5",
    cost="n × m in memory for m candidates; n² m for each of the first iterations",
    oracle="ZeroNormSVM on the columns of the kernel matrix, a QP solver, a general minimiser for the probit loss",
    avoid="selecting input features: it selects samples; many rows without n_candidates",
    misprints="The paper prints the labels inside the matrix of the two-norm; with signed coefficients they cancel.",
    test_params=({}, {"two_norm": 0.1}, {"loss": "probit"}, {"multi_class": "one_vs_one"}),
)
class SparseKernelSVC(CheckedParameters, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Kernel classifier with the zero-norm of its coefficients: few support vectors, fast predictions.

    The decision function :math:`f(x) = \sum_j \beta_j k(x_j, x) + b` is trained by

    .. math:: \min_{\beta, b}\ C\sum_i \xi_i + \beta^\top \Lambda \beta + \tau\,\beta^\top K \beta,
        \qquad y_i f(x_i) \ge 1 - \xi_i,\ \xi_i \ge 0, \qquad \Lambda = \mathrm{diag}(|\beta_j|^{-(2-q)})

    repeatedly, with :math:`\Lambda` from the last coefficients (:math:`\Lambda = I` at first). It is
    ``ZeroNormSVM`` with the columns of the kernel matrix as features. The term with :math:`\tau` (``two_norm``)
    adds the norm of the ordinary SVM; the coefficients are signed, so it is :math:`\beta^\top K\beta` and not
    :math:`\beta^\top H\beta` with the labels in H, as printed in the paper.

    With ``loss="probit"`` labels are signs of :math:`f(x)` with normal noise of variance 1 (section 2.2 of the paper,
    eqs. 3 to 6): every step takes the expected noisy scores :math:`\bar t` and minimises :math:`\|K\beta + b - \bar
    t\|^2 + \beta^\top (\Lambda + \tau K) \beta`. Where it converges, with :math:`\Lambda` held fixed,

    .. math:: -\sum_i \log \Phi\bigl(y_i f(x_i)\bigr) + \tfrac12 \beta^\top (\Lambda + \tau K)\beta

    is smallest. There is no C with this loss.

    With more than two classes the classifiers share their vectors, :math:`|\beta_j| = \sum_c |\beta_{cj}|`. Classifiers
    of pairs of classes vote; ties are decided by the sum of their decision values.

    Identical rows are merged: they are one support vector, and count in the loss as often as they occur.

    The kernel matrix of samples by candidates is held in memory; for more than a few thousand rows limit
    the candidates by ``n_candidates``.

    Parameters
    ----------
    C
        Factor of the hinge loss. Not used with ``loss="probit"``.
    loss
        "probit" is the model from which the paper derives the method.
    multi_class
        One classifier for each class against the rest, or one for each pair of classes.
    q
        Here: of the norm of the coefficients. 0 gives the fewest support vectors.
    n_candidates
        None: all distinct rows.
    zero_tol
        Such support vectors are removed for good.
    tol
        The iteration ends when no scaling factor changes by more than this, relative to the largest.
    max_iter
        One iteration trains one model.
    random_state
        Used with ``n_candidates``.

    Attributes
    ----------
    support_vectors_ : ndarray of shape (n_vectors, n_features_in_)
        The support vectors.
    support_ : ndarray of int
        Index of the first row of X that equals each support vector.
    dual_coef_ : ndarray of shape (n_classifiers, n_vectors)
        Coefficients: one row for two classes, otherwise one row for each class against the rest, or for each pair of
        classes, in the order (0, 1), (0, 2), …, (1, 2), …, positive for the second.
    intercept_ : ndarray of shape (n_classifiers,)
        Bias of each classifier.
    n_iter_ : int
        Number of models that were trained.
    converged_ : bool
        Whether the iteration reached ``tol``.
    gamma_ : float
        Width of the kernel that was used.
    classes_ : ndarray
        The classes.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.models import SparseKernelSVC
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> model = SparseKernelSVC(gamma=0.1).fit(X, y)
    >>> len(model.support_), round(model.score(X, y), 2)
    (5, 1.0)
    """

    _parameter_exceptions = exceptions(coef0=(number(), "the sigmoid kernel may have a negative constant"))

    def __init__(
        self,
        *,
        C: float = 10.0,
        kernel: Literal["rbf", "poly", "linear", "sigmoid"] = "rbf",
        gamma: float | Literal["scale", "auto"] = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        q: float = 0.0,
        two_norm: float = 0.0,
        loss: Literal["hinge", "probit"] = "hinge",
        multi_class: Literal["one_vs_rest", "one_vs_one"] = "one_vs_rest",
        n_candidates: int | None = None,
        zero_tol: float = 1e-3,
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.q = q
        self.two_norm = two_norm
        self.loss = loss
        self.multi_class = multi_class
        self.n_candidates = n_candidates
        self.zero_tol = zero_tol
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the support vectors and their coefficients; a sample with weight two counts as two samples."""
        self._validate_params()
        X, y = validate_data(self, in_memory(X, self), y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        present = np.flatnonzero(weight > 0.0)
        X, y, weight = X[present], y[present], weight[present]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"SparseKernelSVC needs samples of at least two classes. Got one class only: "
                f"{written(self.classes_[0])}."
            )
        self.gamma_ = self._gamma(X, weight)
        vectors, rows, codes, weight = _merge(X, codes, weight)
        candidates = self._candidates(vectors.size)
        require_memory(
            8 * rows.size * candidates.size,
            f"SparseKernelSVC holds the kernel of {rows.size} samples and {candidates.size} candidates, which",
            "set n_candidates, or use a random subset of the samples.",
        )
        warn_of_long_fit(
            "SparseKernelSVC",
            SECONDS_PER_FOURTH_POWER
            * float(vectors.size) ** 4
            * (1 if self.classes_.size == 2 else self.classes_.size),
            f"{vectors.size} distinct samples",
            "fit a subsample, or use a support vector machine",
        )
        result, model = self._train(X, rows, vectors[candidates], codes, weight)
        self._store(X, present, vectors[candidates], result, model)
        return self

    def _train(
        self, X: FloatArray, rows: IntArray, vectors: IntArray, codes: IntArray, weight: FloatArray
    ) -> tuple[Rescaling, RescaledModels]:
        columns = self._kernel(X[rows], X[vectors])
        model = self._model(codes, weight)
        if self.two_norm > 0.0:
            model.coordinates = TwoNorm(self._kernel(X[vectors], X[vectors]), self.two_norm)
        result = rescale_until_sparse(
            model,
            DenseDesign(columns),
            np.arange(vectors.size),
            power_rule(self.q),
            zero_tol=self.zero_tol,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        if not result.iterates:
            result.status.check("SparseKernelSVC with a hard margin (C=inf)")
        if self.loss == "probit" and result.remedy == SHRUNK:
            result.remedy = "all coefficients shrank to zero; use loss='hinge' with a larger C."
        return result, model

    def _model(self, codes: IntArray, weight: FloatArray) -> RescaledModels:
        """One model for two classes, else one for each class or pair; a pair uses only the samples of its classes."""
        cost = weight if self.loss == "probit" else 0.5 * self.C * weight
        n_classes = self.classes_.size
        if n_classes == 2 or self.multi_class == "one_vs_rest":
            positive = [1] if n_classes == 2 else range(n_classes)
            models = [(codes == c, cost) for c in positive]
        else:
            models = [
                (codes == b, np.where((codes == a) | (codes == b), cost, 0.0))
                for a, b in combinations(range(n_classes), 2)
            ]
        targets = np.column_stack([np.where(is_second, 1.0, -1.0) for is_second, _ in models])
        costs = np.column_stack([cost for _, cost in models])
        if self.loss == "probit":
            return RescaledModels(LinearProblem(SQUARED_ERROR, targets, costs), ProbitStep(targets, self.tol))
        return RescaledModels(LinearProblem(HingeLoss(), targets, costs))

    def _store(
        self, X: FloatArray, present: IntArray, vectors: IntArray, result: Rescaling, model: Any
    ) -> None:
        kept = np.isin(result.trained, result.active)
        support = vectors[result.trained[kept]]
        self.support_ = present[support]
        self.support_vectors_ = X[support]
        self.dual_coef_ = model.weights[kept].T if support.size else np.zeros((model.bias.size, 0))
        self.intercept_ = model.bias
        self.n_iter_ = max(1, result.n_iter)
        self.converged_ = result.converged
        if not result.converged:
            warnings.warn(
                f"SparseKernelSVC did not converge: {result.remedy}", ConvergenceWarning, stacklevel=3
            )

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values: one column per class, or one number per sample for two classes.

        With ``multi_class="one_vs_one"`` they are the votes for each class plus the sum of its decision values, scaled
        to the range from -1/3 to 1/3.
        """
        check_is_fitted(self)
        X = validate_data(self, in_memory(X, self), dtype=np.float64, reset=False)
        values = np.tile(self.intercept_, (len(X), 1))
        if self.support_.size:
            values = values + self._kernel(X, self.support_vectors_) @ self.dual_coef_.T
        if self.classes_.size == 2:
            return values[:, 0]
        return values if self.multi_class == "one_vs_rest" else _votes(values, self.classes_.size)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each sample."""
        values = self.decision_function(X)
        chosen = (values > 0.0).astype(np.intp) if values.ndim == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[chosen])

    # -- kernels and candidates -----------------------------------------------------------------

    def _kernel(self, left: FloatArray, right: FloatArray) -> FloatArray:
        settings = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        return np.asarray(pairwise_kernels(left, right, metric=self.kernel, filter_params=True, **settings))

    def _gamma(self, X: FloatArray, weight: FloatArray) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "auto":
            return float(1.0 / X.shape[1])
        mean = np.average(X, weights=np.broadcast_to(weight[:, None], X.shape))
        variance = float(np.average((X - mean) ** 2, weights=np.broadcast_to(weight[:, None], X.shape)))
        return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0

    def _candidates(self, n_vectors: int) -> IntArray:
        if self.n_candidates is None or self.n_candidates >= n_vectors:
            return np.arange(n_vectors)
        random = check_random_state(self.random_state)
        return np.sort(random.choice(n_vectors, size=self.n_candidates, replace=False))


def _merge(
    X: FloatArray, codes: IntArray, weight: FloatArray
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """First rows of the distinct vectors, and distinct samples with their classes and total weights."""
    _, vectors = np.unique(X, axis=0, return_index=True)
    labelled = np.column_stack([X, codes])
    _, rows, inverse = np.unique(labelled, axis=0, return_index=True, return_inverse=True)
    total = np.zeros(rows.size)
    np.add.at(total, inverse.ravel(), weight)
    in_order = np.argsort(rows)
    rows = rows[in_order]
    return np.sort(vectors), rows, codes[rows], total[in_order]


def _votes(values: FloatArray, n_classes: int) -> FloatArray:
    """Votes of the classifiers of all pairs; ties are decided by the sums of decision values."""
    votes, sure = np.zeros((len(values), n_classes)), np.zeros((len(values), n_classes))
    for value, (a, b) in zip(values.T, combinations(range(n_classes), 2), strict=True):
        votes[:, a] += value <= 0.0
        votes[:, b] += value > 0.0
        sure[:, a] -= value
        sure[:, b] += value
    return np.asarray(votes + sure / (3.0 * (np.abs(sure) + 1.0)))


# -- A model on rescaled kernel columns with the norm of the ordinary support vector machine added --


class TwoNorm:
    r"""Coordinates in which :math:`\tfrac12 u^\top (I + \tau Z K Z) u` is the norm of an ordinary SVM.

    With the factor :math:`I + \tau ZKZ = LL^\top` they are :math:`L^\top u`, on the features :math:`x\,Z L^{-\top}`.
    They need a dense copy of the columns.
    """

    def __init__(self, kernel: FloatArray, weight: float) -> None:
        self.kernel, self.weight = kernel, weight
        self.factor: FloatArray = np.empty((0, 0))

    def into(self, design: Design, scale: FloatArray) -> tuple[Design, FloatArray]:
        inner = self.weight * scale[:, None] * self.kernel * scale
        inner[np.diag_indices_from(inner)] += 1.0
        self.factor = cholesky(inner, lower=True, overwrite_a=True)
        columns = design.block(np.arange(scale.size)) * scale
        return DenseDesign(solve_triangular(self.factor, columns.T, lower=True).T), np.ones(scale.size)

    def back(self, found: Solution, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        rescaled = solve_triangular(self.factor, found.weights, lower=True, trans="T")
        return scale[:, None] * rescaled, np.asarray(np.abs(rescaled).sum(axis=1))

    def keep(self, kept: BoolArray) -> None:
        self.kernel = self.kernel[np.ix_(kept, kept)]
