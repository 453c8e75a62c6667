"""Backward elimination by a bound on the leave-one-out error of a support vector machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.criteria import (
    Criterion,
    CriterionValue,
    LinearKernel,
    RadiusMargin,
    ScaledKernel,
    Span,
    make_kernel,
)
from zeronorm.criteria._span import bordered_inverse, support_of
from zeronorm.design import Design, as_design
from zeronorm.engines.elimination._kernel import RBFSource, make_source, warn_if_diagonal
from zeronorm.engines.elimination._loop import (
    DOWNDATED_ENERGY,
    Downdating,
    Elimination,
    eliminate,
    finite_gram,
)
from zeronorm.engines.factor_descent._criterion import IN_MEMORY_BYTES
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector
from zeronorm.solvers._status import Status, UnsolvableError

NOT_ACCURATE = "increase tol. The bound could not be computed to this tolerance."


@register(
    "bound-elimination",
    family="greedy",
    tasks=("binary",),
    reference="Rakotomamonjy 2003; Lal et al. 2006, section 2.3",
    cost="n² p and n³ for each round, one round for each feature with step=1",
    oracle="finite differences of the bound, and retrained models",
    avoid="more than a few hundred samples with thousands of features; several classes",
    misprints="The literature ranks by the absolute slope, which misses the nonlinear pair; here the sign is used.",
    test_params=(
        {"step": 2},
        {"bound": "span", "kernel": "linear", "step": 3},
        {"rule": "removal", "step": 3},
        {"bound": "variance", "kernel": "linear", "step": 3},
    ),
)
class BoundElimination(BaseSelector):
    r"""Remove the features without which a leave-one-out bound is smallest.

    The bound is that of a support vector machine with squared slacks: radius/margin :math:`R^2 \|w\|^2`, the same with
    the variance of the samples in feature space instead of the radius, or the span estimate :math:`\sum_k \alpha_k
    S_k^2`. One of three rules scores a feature.

    The radius depends on the few outermost samples, and so on irrelevant features with heavy tails: with a linear
    kernel and twelve relevant features it can rank little better than chance (6 of 12 found) where ``bound="variance"``
    finds all of them. Prefer the variance unless the bound itself is wanted.

    ``rule="derivative"`` (default): remove the feature with the largest slope
    :math:`\partial B / \partial \sigma_k`, since to first order
    :math:`B(\sigma_k = 0) = B - \partial B / \partial \sigma_k`. The literature ranks by the absolute slope; that is
    ``sign="absolute"``. It does not distinguish a feature that raises the bound from one that lowers it, and misses
    the relevant pair of features in the nonlinear toy problem.

    ``rule="removal"``: take the feature out of the kernel with :math:`\alpha` and :math:`\beta` fixed and remove
    the one that leaves the smallest bound,

    .. math:: W_{(-k)}^2 = 2\sum_i \alpha_i - v^\top K^{(-k)} v, \qquad
        R_{(-k)}^2 = \sum_i \beta_i K^{(-k)}_{ii} - \beta^\top K^{(-k)} \beta, \qquad v = \alpha \circ y.

    The shorter form :math:`v^\top K^{(-k)} v` for the margin is smallest without the most useful feature, which
    reverses the ranking.

    ``rule="retrain"``: the same with a model that is trained again without each feature: exact, but p times as
    expensive.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.
    bound
        Each of them bounds or estimates the leave-one-out error.
    rule
        How a feature is scored: by the slope of the bound, by removing the feature from the kernel, or by training
        without it.
    sign
        Used with ``rule="derivative"``.
    C
        The errors ξ cost (C/2) Σ ξ². ``numpy.inf`` is the hard margin, which needs classes that can be separated.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import BoundElimination
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = BoundElimination(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        bound: Literal["radius_margin", "variance", "span"] = "radius_margin",
        rule: Literal["derivative", "removal", "retrain"] = "derivative",
        sign: Literal["signed", "absolute"] = "signed",
        kernel: Literal["rbf", "poly", "linear"] = "rbf",
        gamma: float | Literal["auto", "scale"] = "auto",
        degree: int = 2,
        coef0: float = 1.0,
        step: int | float = 1,
        C: float = 1.0,
        standardize: bool = True,
        tol: float = 1e-6,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.bound = bound
        self.rule = rule
        self.sign = sign
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.step = step
        self.C = C
        self.standardize = standardize
        self.tol = tol
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        criterion: Criterion = Span(self.C, self.tol)
        if self.bound != "span":
            scale: Literal["radius", "variance"] = "variance" if self.bound == "variance" else "radius"
            criterion = RadiusMargin(self.C, scale, self.tol)
        kernel = make_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0, design=problem.design
        )
        models = BoundModels(
            problem.design,
            problem.target.columns()[:, 0],
            kernel,
            criterion,
            rule=self.rule,
            absolute=self.sign == "absolute",
        )
        record = Elimination(problem, comparable=False)
        eliminate(models, record, self.step)
        path = record.path()
        return path if path.converged else replace(path, remedy=NOT_ACCURATE)


# -- Leave-one-out bounds of a support vector machine as features are removed --


MOST_REMOVED = 0.1  # share of removed columns in the stored copy from which a new copy is made


class ColumnStore:
    """A copy of the remaining columns, renewed only when a tenth of them has been removed."""

    def __init__(self, design: Design) -> None:
        self.source = self.design = design
        self.held: IntArray = np.arange(design.n_features)

    def of(self, active: IntArray) -> tuple[Design, IntArray]:
        """A design that holds the columns, and their positions in it."""
        if active.size < (1.0 - MOST_REMOVED) * self.held.size:
            self.held = active
            self.design = self.source.take(active)
            if 8 * self.design.n_samples * self.design.n_features <= IN_MEMORY_BYTES:
                self.design = as_design(self.design.block(slice(None)))
        return self.design, np.searchsorted(self.held, active)


class BoundModels:
    """``Models`` of the elimination loop that score features by a bound, as the rule says."""

    def __init__(
        self,
        design: Design,
        y: FloatArray,
        kernel: ScaledKernel,
        criterion: Criterion,
        *,
        rule: str,
        absolute: bool,
    ) -> None:
        self.design = design
        if 8 * design.n_samples * design.n_features <= IN_MEMORY_BYTES:
            self.design = as_design(design.block(slice(None)))
        self.columns = ColumnStore(self.design)
        self.y, self.kernel, self.criterion = y, kernel, criterion
        self.rule, self.absolute = rule, absolute
        self.active: IntArray = np.arange(design.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.gram = finite_gram(self.design)
        self.downdating = Downdating(self.design)
        self.source = make_source(self.design, kernel)
        self.K = np.empty((0, 0))
        self.bound: CriterionValue | None = None

    def train(self) -> None:
        self.K = self._kernel_of(self.active, self.gram)
        if self.n_iter == 0:
            warn_if_diagonal(self.K)
        warm = None if self.bound is None else self.bound.warm
        self.n_iter += 1
        try:
            self.bound = self.criterion.evaluate(self.K, self.y, warm)
        except UnsolvableError:  # hard margin: too few features are left to separate the classes
            self.status = Status.UNBOUNDED
            return
        solutions = self.bound.warm if isinstance(self.bound.warm, tuple) else (self.bound.warm,)
        self.status = max([self.status, *(s.status for s in solutions if s is not None)])

    def remove(self, features: IntArray) -> None:
        self.active = self.active[~np.isin(self.active, features)]
        if self.downdating.is_due(features, self.active):
            self.gram = self.design.take(self.active).gram()
            self.downdating.start(self.active)
        else:
            self.gram = self.gram - self.design.take(np.sort(features)).gram()

    def _kernel_of(self, columns: IntArray, gram: FloatArray) -> FloatArray:
        """The kernel of some columns with the given Gram matrix; computed from the data where the matrix is inexact."""
        if isinstance(self.source, RBFSource) and self.source.is_steep(columns):
            return self.source.matrix(columns)
        return self.kernel.matrix(gram)

    # -- scores of features and groups: larger is better -----------------------------------------

    def importance(self) -> FloatArray:
        if self.rule == "derivative":
            return self._from_derivative(self.derivative())
        return self._without([np.array([i]) for i in range(self.active.size)])

    def group_importance(self, unit: IntArray) -> FloatArray:
        if self.rule == "derivative":
            return self._from_derivative(np.bincount(unit, weights=self.derivative()).astype(np.float64))
        return self._without([np.flatnonzero(unit == u) for u in range(int(unit.max()) + 1)])

    def _from_derivative(self, slope: FloatArray) -> FloatArray:
        """Scores from slopes: removing a feature changes the bound by minus its slope, to first order."""
        return np.abs(slope) if self.absolute else -slope

    def derivative(self) -> FloatArray:
        """Derivative of the bound with respect to each scaling factor at σ = 1."""
        assert self.bound is not None
        design, position = self.columns.of(self.active)
        if isinstance(self.kernel, LinearKernel) and self.bound.factored is not None:
            return 2.0 * self.bound.factored.forms(design)[position]
        gradient = self.kernel.pullback(self.gram, self.K, self.bound.gradient)
        return 2.0 * design.gram_adjoint(gradient)[position]

    def _without(self, units: list[IntArray]) -> FloatArray:
        if len(units) == 1:
            return np.zeros(1)
        if self.rule == "retrain":
            return np.array([self._retrained(unit) for unit in units])
        if isinstance(self.criterion, RadiusMargin):
            return self._fixed_radius_margin(units)
        return np.array([self._fixed_span(unit) for unit in units])

    def _kernel_without(self, unit: IntArray) -> FloatArray:
        gone, rest = self.active[unit], np.delete(self.active, unit)
        norm_sq = self.downdating.norm_sq
        if norm_sq[gone].sum() > DOWNDATED_ENERGY * norm_sq[rest].sum():
            return self._kernel_of(rest, self.design.take(rest).gram())
        return self._kernel_of(rest, self.gram - self.design.take(gone).gram())

    def _retrained(self, unit: IntArray) -> float:
        """The bound without the unit; infinite where the classes cannot be separated without it."""
        assert self.bound is not None
        try:
            return self.criterion.evaluate(self._kernel_without(unit), self.y, self.bound.warm).value
        except UnsolvableError:
            return np.inf

    def _fixed_radius_margin(self, units: list[IntArray]) -> FloatArray:
        r"""R² W² of the reduced kernel with α and β as they are.

        W² is the dual objective 2Σα - v'Kv, not v'Kv: only the former decreases when a useless feature is removed.
        """
        assert self.bound is not None
        sphere, dual = self.bound.warm
        n = self.design.n_samples
        beta = np.full(n, 1.0 / n) if sphere is None else sphere.beta
        self.source.matrix(self.active)
        V = np.column_stack([dual.dual_coef, beta])
        change = self.source.removal(self.active, self.K, V, units)
        margin = 2.0 * dual.objective + change[:, 0]
        scale = self.bound.value / (2.0 * dual.objective)
        radius = scale - self.source.diagonal_removal(self.active, beta, units) + change[:, 1]
        return np.asarray(np.maximum(radius, 0.0) * np.maximum(margin, 0.0))

    def _fixed_span(self, unit: IntArray) -> float:
        assert self.bound is not None
        assert isinstance(self.criterion, Span)
        dual: Any = self.bound.warm
        support = support_of(dual.alpha)
        K = self._kernel_without(unit)[np.ix_(support, support)]
        K = K + np.eye(support.size) / self.criterion.C
        return float(dual.alpha[support] @ (1.0 / np.diagonal(bordered_inverse(K))[:-1]))
