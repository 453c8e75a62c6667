"""Multiplicative updates of scaling factors with a kernel SVM."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import BoolArray, FloatArray
from zeronorm.criteria import LinearKernel, PolynomialKernel, RBFKernel, ScaledKernel
from zeronorm.design import Design
from zeronorm.engines._cost import C_of, known_cost
from zeronorm.engines.factor_descent._criterion import chosen_kernel, distinct_columns
from zeronorm.engines.rescaling._iteration import (
    Rescaling,
    Rule,
    UnitFactors,
    multiplicative,
    rescale_until_sparse,
)
from zeronorm.engines.rescaling._models import SOLVER_TOL
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSplittingSelector
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import HingeLoss, LinearProblem
from zeronorm.solvers.svm._dual import SvmDual, solve_svm_dual


@register(
    "kernel-multiplicative-update",
    family="scaling",
    tasks=("binary", "multiclass"),
    reference="Guyon et al. 2003, section 2.3.1 (NLMU)",
    cost="n² p for each of the first iterations, then little",
    oracle="ℓ2-AROM, step by step, for the linear kernel",
    avoid="features that matter only together: each is scored alone",
    test_params=({}, {"kernel": "linear"}, {"kernel": "poly", "stop_at": 4}),
)
class KernelMultiplicativeUpdate(WeightedSplittingSelector):
    r"""Train a kernel SVM, multiply every feature by its own contribution, and repeat.

    With :math:`v = \alpha * y` of the SVM on the rescaled features and the kernel of one rescaled feature alone,

    .. math:: s_k = \sqrt{\textstyle\sum_{ij} v_i v_j\, k(z_k x_{ik}, z_k x_{jk})}, \qquad z_k \leftarrow z_k\, s_k .

    For the linear kernel :math:`s_k = |w_k|`, and the iteration is that of :class:`~zeronorm.AROM` with the ℓ2 norm and
    equal first factors, step by step. Other kernels depend on the overall scale of z, which the paper does not specify
    and which would overflow or vanish: z is therefore multiplied by one number in each step so that the sum of its
    squares stays the number of features. More than two classes share z, with :math:`s_k^2 = \sum_c s_{kc}^2` over
    classifiers of one class against the rest, or of all pairs of classes.

    Each feature is scored alone: a feature that matters only together with another, and whose distribution is the same
    in both classes, gets a small score. On the nonlinear toy problem it finds the feature whose distribution differs
    between the classes and misses its partner, which :class:`~zeronorm.RadiusMarginScaling` and :class:`~zeronorm.RFE`
    with an RBF kernel find. In exchange it is fast: for small ``gamma`` the double sum over samples is replaced by a
    short series.

    The subset of each size has the largest weights :math:`z_k s_k` of the last iterate with more features than asked
    for. With ``stop_at=100`` smaller sizes are the top of the last iterate that has at least 100 features ("to 100,
    keep the top 7").

    Columns equal up to sign and shift (up to sign, for "poly") are merged before the start: the weight goes to the
    first, the others rank last.

    Parameters
    ----------
    n_features_to_select
        None: the features at the end of the iteration (or at ``stop_at``).
    C
        "auto" chooses it from the data, by samples left out one at a time on the kernel matrix. The errors ξ cost
        (C/2) Σ ξ². ``numpy.inf`` is the hard margin, which needs classes that can be separated.
    multi_class
        The weights of the classifiers are summed.
    stop_at
        None: all iterates are used.
    zero_tol
        Such features are removed for good.
    tol
        The iteration ends when no scaling factor changes by more than this, relative to the largest.
    max_iter
        One iteration trains one SVM.
    scaling
        For the linear kernel, "unit" or "paper" as in :class:`~zeronorm.AROM`. Other kernels have factors of
        constant size either way.

    Attributes
    ----------
    scale_ : ndarray of shape (n_features_in_,)
        The factors z with which the last SVM was trained.
    C_ : float
        The ``C`` that was used.
    representative_ : ndarray of shape (n_features_in_,), dtype int
        For each feature the first one that it is a copy of, up to sign and shift.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import KernelMultiplicativeUpdate
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = KernelMultiplicativeUpdate(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        kernel: Literal["rbf", "poly", "linear"] = "rbf",
        C: float | Literal["auto"] = "auto",
        multi_class: Literal["one_vs_rest", "one_vs_one"] = "one_vs_rest",
        stop_at: int | None = None,
        gamma: float | Literal["auto", "scale"] = "auto",
        degree: int = 2,
        coef0: float = 1.0,
        standardize: bool = True,
        zero_tol: float = 1e-3,
        tol: float = 1e-3,
        max_iter: int = 1000,
        scaling: Literal["unit", "paper"] = "unit",
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.kernel = kernel
        self.C = C
        self.multi_class = multi_class
        self.stop_at = stop_at
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.standardize = standardize
        self.zero_tol = zero_tol
        self.tol = tol
        self.max_iter = max_iter
        self.scaling = scaling
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _select(self, problem: Problem) -> SelectionPath:
        kernel = chosen_kernel(self, problem.design)
        candidates, self.representative_ = distinct_columns(problem.design, kernel)
        linear = isinstance(kernel, LinearKernel)
        self.C_ = self._cost(problem, kernel)
        rule = multiplicative if linear else constant_sum_rule(candidates.size)
        result = rescale_until_sparse(
            SingleFeatureKernels(
                LinearProblem.of(problem, HingeLoss(squared=True), self.C_, pairing=self.multi_class), kernel
            ),
            problem.design,
            candidates,
            rule,
            zero_tol=self.zero_tol,
            tol=self.tol,
            max_iter=self.max_iter,
            units=UnitFactors.of(problem) if linear and self.scaling == "unit" else None,
        )
        if not result.iterates:
            result.status.check("KernelMultiplicativeUpdate with a hard margin (C=inf)")
        self.scale_ = result.scale
        if self.stop_at is not None:
            _forget_smaller(result, self.stop_at)
        return result.path()

    def _cost(self, problem: Problem, kernel: ScaledKernel) -> float:
        if isinstance(kernel, LinearKernel):
            return C_of(self, problem, "diagonal" if self.scaling == "unit" else "raw")
        K = kernel.matrix(problem.design.gram()) if known_cost(self, problem) is None else None
        return C_of(self, problem, K=K)


def constant_sum_rule(total: float) -> Rule:
    r"""The multiplicative rule, rescaled so that :math:`\sum_k z_k^2` is ``total``."""

    def rule(scale: FloatArray, abs_weight: FloatArray) -> FloatArray:
        product = scale * abs_weight
        norm = float(np.linalg.norm(product))
        return np.asarray(product * (np.sqrt(total) / norm)) if norm > 0.0 else product

    return rule


def _forget_smaller(result: Rescaling, stop_at: int) -> None:
    """Remove the iterates with fewer features than ``stop_at``, except the first iterate."""
    result.iterates = [
        pair for index, pair in enumerate(result.iterates) if index == 0 or pair[0].size >= stop_at
    ]


# -- Quadratic forms of the RBF kernel of one feature alone, for many features --


NEGLIGIBLE = 1e-17  # relative to the sum so far: terms of the series that cannot change it


@kernel
def rbf_forms(columns: FloatArray, width: FloatArray, v: FloatArray) -> FloatArray:
    r"""For each row x of ``columns`` the form :math:`\sum_{ij} v_i v_j e^{-a (x_i - x_j)^2}` with a its ``width``.

    With x centred at its midrange,

    .. math:: e^{-a (x_i - x_j)^2} = e^{-a x_i^2} e^{-a x_j^2} \sum_m \frac{(2a)^m}{m!} x_i^m x_j^m,

    so the form is a sum of squares that needs a few terms when a is small, as it is for all but the last
    features: much cheaper than n² exponentials, and without cancellation. Where the series would need so many
    terms that the direct sum is cheaper, the direct sum is taken.
    """
    n = columns.shape[1]
    forms = np.zeros(columns.shape[0])
    term = np.empty(n)
    for k in range(columns.shape[0]):
        x = columns[k]
        a = width[k]
        midrange = 0.5 * (x.min() + x.max())
        half_range = 0.5 * (x.max() - x.min())
        growth = 2.0 * a * half_range * half_range
        if growth <= 0.125 * n:
            for i in range(n):
                shifted = x[i] - midrange
                term[i] = v[i] * math.exp(-a * shifted * shifted)
            forms[k] = series_form(x, midrange, a, growth, term)
        else:
            forms[k] = direct_form(x, a, v)
    return forms


@kernel
def series_form(x: FloatArray, midrange: float, a: float, growth: float, term: FloatArray) -> float:
    """The form as a sum of squares; ``term`` holds the first factors and is overwritten."""
    total = 0.0
    m = 0
    while True:
        plain = 0.0
        absolute = 0.0
        for i in range(x.shape[0]):
            plain += term[i]
            absolute += abs(term[i])
        total += plain * plain
        # From here on each term is less than half of the one before.
        if m > 2.0 * growth and absolute * absolute <= NEGLIGIBLE * total + 1e-300:
            return total
        m += 1
        step = math.sqrt(2.0 * a / m)
        for i in range(x.shape[0]):
            term[i] *= step * (x[i] - midrange)


@kernel
def direct_form(x: FloatArray, a: float, v: FloatArray) -> float:
    """The form as a double sum over the samples with a nonzero coefficient."""
    total = 0.0
    for i in range(x.shape[0]):
        if v[i] == 0.0:
            continue
        partial = 0.5 * v[i]
        for j in range(i):
            if v[j] != 0.0:
                difference = x[i] - x[j]
                partial += v[j] * math.exp(-a * difference * difference)
        total += 2.0 * v[i] * partial
    return max(total, 0.0)


# -- A kernel SVM on rescaled features, which scores each feature by the kernel of that feature alone --


class SingleFeatureKernels:
    r"""A kernel SVM, as a model of the rescaling engine, that scores each feature by its own kernel.

    The score is :math:`s_k^2 = \sum_c v_c^\top K_k v_c` with :math:`K_k` the kernel of feature k alone. For the linear
    kernel and two classes :math:`s_k = |w_k|`.
    """

    settled = True

    def __init__(self, problem: LinearProblem, kernel: ScaledKernel) -> None:
        self.problem, self.kernel = problem, kernel
        self.models: list[SvmDual | None] = [None] * problem.n_models
        self.status = Status.CONVERGED

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        K = self.kernel.matrix(design.gram(scale**2))
        targets, costs = self.problem.targets.T, self.problem.costs.T
        models = [
            solve_svm_dual(K, y, C=cost, loss="squared_hinge", warm_start=last, tol=SOLVER_TOL)
            for y, cost, last in zip(targets, costs, self.models, strict=True)
        ]
        self.models = [*models]
        self.status = max(model.status for model in models)
        if self.status.is_unsolvable:
            return np.zeros(scale.size)
        V = np.column_stack([model.dual_coef for model in models])
        return np.asarray(np.sqrt(single_feature_forms(design, self.kernel, scale, V).sum(axis=1)))

    def keep(self, kept: BoolArray) -> None:
        """Do nothing: the dual variables belong to samples, not to features."""


def single_feature_forms(
    design: Design, kernel: ScaledKernel, scale: FloatArray, V: FloatArray
) -> FloatArray:
    """v'Kv with the kernel of each rescaled feature alone: one row per feature, one column per column v of V."""
    if isinstance(kernel, LinearKernel):
        return np.asarray((scale[:, None] * design.transpose_dot(V)) ** 2)
    forms = np.empty((design.n_features, V.shape[1]))
    for columns, block in design.iter_blocks():
        if isinstance(kernel, RBFKernel):
            rows, width = np.ascontiguousarray(block.T), kernel.gamma * scale[columns] ** 2
            for c in range(V.shape[1]):
                forms[columns, c] = rbf_forms(rows, width, np.ascontiguousarray(V[:, c]))
        else:
            assert isinstance(kernel, PolynomialKernel)
            forms[columns] = _polynomial_forms(kernel, block * scale[columns], V)
    return forms


def _polynomial_forms(kernel: PolynomialKernel, block: FloatArray, V: FloatArray) -> FloatArray:
    r"""(γ x x' + c)^d multiplied out: a sum of squares of :math:`\sum_i v_i x_i^m`, of which m = 0 vanishes."""
    forms = np.zeros((block.shape[1], V.shape[1]))
    power = np.ones_like(block)
    for m in range(1, kernel.degree + 1):
        power *= block
        weight = math.comb(kernel.degree, m) * kernel.gamma**m * kernel.coef0 ** (kernel.degree - m)
        forms += weight * (power.T @ V) ** 2
    return forms
