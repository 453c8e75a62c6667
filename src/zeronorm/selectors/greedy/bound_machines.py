"""Leave-one-out bounds of a support vector machine, and what becomes of them when features leave."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm.criteria import Criterion, CriterionValue, LinearKernel, RadiusMargin, ScaledKernel, Span
from zeronorm.criteria.span import bordered_inverse, support_of
from zeronorm.design import Design, as_design
from zeronorm.selectors.greedy.kernel_sources import make_source
from zeronorm.solvers.status import Status, UnsolvableError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

RESIDENT_BYTES = 64 << 20
MOST_DEAD = 0.1  # share of the columns at hand that may have left


class ColumnStore:
    """Columns that are left, gathered anew only now and then: a few too many cost less than copies every round."""

    def __init__(self, design: Design) -> None:
        self.source = self.design = design
        self.held: IntArray = np.arange(design.n_features)

    def of(self, alive: IntArray) -> tuple[Design, IntArray]:
        """A design that holds the columns, and their places in it."""
        if alive.size < (1.0 - MOST_DEAD) * self.held.size:
            self.held = alive
            self.design = self.source.take(alive)
            if 8 * self.design.n_samples * self.design.n_features <= RESIDENT_BYTES:
                self.design = as_design(self.design.block(slice(None)))
        return self.design, np.searchsorted(self.held, alive)


class BoundMachines:
    """``Machines`` of the elimination loop around a bound; the value of a feature depends on the rule."""

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
        if 8 * design.n_samples * design.n_features <= RESIDENT_BYTES:
            self.design = as_design(design.block(slice(None)))
        self.columns = ColumnStore(self.design)
        self.y, self.kernel, self.criterion = y, kernel, criterion
        self.rule, self.absolute = rule, absolute
        self.alive: IntArray = np.arange(design.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.gram = self.design.gram()
        self.n_at_refresh = self.alive.size
        self.K = np.empty((0, 0))
        self.bound: CriterionValue | None = None

    def train(self) -> None:
        self.K = self.kernel.matrix(self.gram)
        warm = None if self.bound is None else self.bound.warm
        self.n_iter += 1
        try:
            self.bound = self.criterion.evaluate(self.K, self.y, warm)
        except UnsolvableError:  # a hard margin, and too few features left to separate the classes
            self.status = Status.UNBOUNDED
            return
        if not self.bound.converged:
            self.status = max(self.status, Status.ITERATION_LIMIT)

    def remove(self, features: IntArray) -> None:
        self.alive = self.alive[~np.isin(self.alive, features)]
        # Down-dating loses digits as the matrix shrinks: start afresh each time half the features have gone.
        if 2 * self.alive.size <= self.n_at_refresh:
            self.gram = self.design.take(self.alive).gram()
            self.n_at_refresh = self.alive.size
        else:
            self.gram = self.gram - self.design.take(np.sort(features)).gram()

    # -- the value of features and groups: bigger is better -------------------------------------

    def importance(self) -> FloatArray:
        if self.rule == "derivative":
            return self._from_derivative(self.derivative())
        return self._without([np.array([i]) for i in range(self.alive.size)])

    def group_importance(self, unit: IntArray) -> FloatArray:
        if self.rule == "derivative":
            return self._from_derivative(np.bincount(unit, weights=self.derivative()).astype(np.float64))
        return self._without([np.flatnonzero(unit == u) for u in range(int(unit.max()) + 1)])

    def _from_derivative(self, slope: FloatArray) -> FloatArray:
        """Taking out a feature changes the bound by minus its slope, to first order."""
        return np.abs(slope) if self.absolute else -slope

    def derivative(self) -> FloatArray:
        """Slope of the bound in each scaling factor at σ = 1."""
        assert self.bound is not None
        design, place = self.columns.of(self.alive)
        if isinstance(self.kernel, LinearKernel) and self.bound.factored is not None:
            return 2.0 * self.bound.factored.forms(design)[place]
        pulled = self.kernel.pullback(self.gram, self.K, self.bound.gradient)
        return 2.0 * design.gram_adjoint(pulled)[place]

    def _without(self, units: list[IntArray]) -> FloatArray:
        if len(units) == 1:
            return np.zeros(1)
        if self.rule == "retrain":
            return np.array([self._retrained(unit) for unit in units])
        if isinstance(self.criterion, RadiusMargin):
            return self._fixed_radius_margin(units)
        return np.array([self._fixed_span(unit) for unit in units])

    def _kernel_without(self, unit: IntArray) -> FloatArray:
        return self.kernel.matrix(self.gram - self.design.take(self.alive[unit]).gram())

    def _retrained(self, unit: IntArray) -> float:
        assert self.bound is not None
        return self.criterion.evaluate(self._kernel_without(unit), self.y, self.bound.warm).value

    def _fixed_radius_margin(self, units: list[IntArray]) -> FloatArray:
        r"""R² W² of the reduced kernel with α and β as they are.

        W² is the dual objective 2Σα - v'Kv, not v'Kv: only the former falls when a useless feature leaves.
        """
        assert self.bound is not None
        sphere, dual = self.bound.warm
        source = make_source(self.design, self.kernel)
        source.matrix(self.alive)
        V = np.column_stack([dual.dual_coef, sphere.beta])
        change = source.removal(self.alive, self.K, V, units)
        margin = 2.0 * dual.objective + change[:, 0]
        radius = sphere.radius_sq - source.diagonal_removal(self.alive, sphere.beta, units) + change[:, 1]
        return np.asarray(np.maximum(radius, 0.0) * np.maximum(margin, 0.0))

    def _fixed_span(self, unit: IntArray) -> float:
        assert self.bound is not None
        assert isinstance(self.criterion, Span)
        dual: Any = self.bound.warm
        support = support_of(dual.alpha)
        K = self._kernel_without(unit)[np.ix_(support, support)]
        K = K + np.eye(support.size) / self.criterion.C
        return float(dual.alpha[support] @ (1.0 / np.diagonal(bordered_inverse(K))[:-1]))
