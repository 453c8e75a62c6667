"""Linear models of an elimination: SVMs for many samples, SVMs on a Gram matrix, and logistic regression.

Classification (one model per class against the rest or per pair of classes, one for two classes) and regression
share one dual; see ``zeronorm.solvers.svm._box_dual``.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design, contiguous
from zeronorm.engines.elimination._loop import (
    Downdating,
    Elimination,
    FollowingCost,
    finite_gram,
    those_kept,
)
from zeronorm.engines.elimination._scan import eliminate_in_block, train_models
from zeronorm.selection._path import TIE_TOLERANCE
from zeronorm.selection._problem import Problem
from zeronorm.solvers._logistic import LogisticDual, solve_logistic_dual
from zeronorm.solvers._status import Status
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._free_set import pivot_free_set
from zeronorm.solvers.svm._linear import LinearSvm, prefers_gram, solve_linear_svm, solve_linear_svr
from zeronorm.solvers.svm._smo import refresh
from zeronorm.solvers.svm._tracked_set import TrackedSets

# Features per sample from which products with sparse data are cheaper than a factorisation of the Gram matrix.
MANY_SAMPLES, WIDE = 2000, 2
SMALL_BLOCK = 512  # features that are always loaded as one block ...
SMALL_BYTES = 2**22  # ... and so are those that fit in this many bytes
# A block holds one in this many of the features: at most that share of the memory of the data.
BLOCK_SHARE = 4
# -- Importance of features and groups for linear models --


class LinearValue(ABC):
    """Importance of features for models with one weight per feature."""

    @abstractmethod
    def weights(self) -> FloatArray:
        """One row per remaining feature, one column per model."""

    def importance(self) -> FloatArray:
        r"""Squared weights summed over models, :math:`\sum_c w_{ck}^2`."""
        return np.asarray((self.weights() ** 2).sum(axis=1))

    def group_importance(self, unit: IntArray) -> FloatArray:
        r"""Absolute weights summed over models and over the group, :math:`\sum_{k \in g} \sum_c |w_{ck}|`."""
        return np.bincount(unit, weights=np.abs(self.weights()).sum(axis=1)).astype(np.float64)


LOSS_NAMES = {
    ("hinge", False): "hinge",
    ("squared", False): "squared_hinge",
    ("hinge", True): "epsilon_insensitive",
    ("squared", True): "squared_epsilon_insensitive",
}


class TallModels(LinearValue):
    """``Models`` of the elimination loop for many samples, trained in the weights from the last solution."""

    def __init__(
        self,
        problem: Problem,
        active: IntArray,
        *,
        C: float,
        loss: str,
        epsilon: float | None,
        tol: float,
        max_iter: int | None = None,
        cost_follows: bool = False,
        multi_class: str = "one_vs_rest",
    ) -> None:
        self.design = problem.design
        self.targets, involved = problem.target.around_zero().model_columns(multi_class)
        cost = np.broadcast_to(problem.sample_costs(C), problem.n_samples)
        self.costs: list[FloatArray] = [np.where(inside, cost, 0.0) for inside in involved.T]
        self.solve: Any = solve_linear_svm if epsilon is None else solve_linear_svr
        self.settings: dict[str, Any] = {
            "loss": LOSS_NAMES[loss, epsilon is not None],
            "tol": tol,
            "max_iter": max_iter,
        }
        if epsilon is not None:
            self.settings["epsilon"] = epsilon
        self.active = active
        self.cost = FollowingCost.of(problem, active) if cost_follows else None
        self.solutions: list[LinearSvm | None] = [None] * self.targets.shape[1]
        self.status, self.n_iter = Status.CONVERGED, 0

    def train(self) -> None:
        design = contiguous(self.design.take(self.active))
        for c, start in enumerate(self.solutions):
            solution = self.solve(
                design, self.targets[:, c], C=self.costs[c], warm_start=start, **self.settings
            )
            self.status = max(self.status, solution.status)
            self.n_iter += solution.n_iter
            self.solutions[c] = solution

    def weights(self) -> FloatArray:
        """One row per remaining feature, one column per model."""
        return np.column_stack([s.weights for s in self.solutions if s is not None])

    def remove(self, features: IntArray) -> None:
        self.active = those_kept(self.active, features)
        if self.cost is not None:
            factor = self.cost.growth(self.active)
            self.costs = [factor * cost for cost in self.costs]


# -- SVMs on a Gram matrix from which features are removed --


class GramModels(LinearValue):
    """One or more SVMs in the dual; ``Models`` of the elimination loop."""

    def __init__(
        self,
        problem: Problem,
        *,
        C: float,
        loss: str,
        epsilon: float | None,
        tol: float,
        max_iter: int,
        tie_share: float = TIE_TOLERANCE,
        cost_follows: bool = False,
        multi_class: str = "one_vs_rest",
    ) -> None:
        self.design = problem.design
        self.active: IntArray = np.arange(problem.n_features)
        self._left: tuple[IntArray, Design] | None = None
        self.tol, self.max_iter, self.tie_share = tol, max_iter, tie_share
        self.status, self.n_iter = Status.CONVERGED, 0
        cost = np.broadcast_to(problem.sample_costs(C), problem.n_samples).astype(np.float64)
        self._set_variables(problem, cost, loss, epsilon, multi_class)
        self.K = finite_gram(self.design)
        self.downdating = Downdating(self.design)
        self.cost = FollowingCost.of(problem) if cost_follows else None
        self.inaccurate = False
        self.small_block = max(SMALL_BLOCK, SMALL_BYTES // (8 * problem.n_samples))

    def _set_variables(
        self, problem: Problem, cost: FloatArray, loss: str, epsilon: float | None, multi_class: str
    ) -> None:
        squared = loss == "squared"
        targets, involved = problem.target.around_zero().model_columns(multi_class)
        duals = [BoxDual.of(y, cost, epsilon, squared) for y in targets.T]
        self.sample, self.ridge = duals[0].sample, duals[0].ridge
        self.sign = np.stack([d.sign for d in duals])
        self.linear = np.stack([d.linear for d in duals])
        self.upper = np.stack([d.upper for d in duals])
        if not involved.all():  # samples of other classes are held at zero; all models share the ridge
            self.upper[~involved.T] = 0.0
        self.alpha = np.zeros(self.sign.shape)
        self.f = np.zeros((len(duals), problem.n_samples))
        self.v = np.zeros_like(self.f)
        self.sets = TrackedSets.room_for(len(duals), 0)  # not tracked: they change too much in a whole round

    def _variables(self) -> tuple[Any, ...]:
        return (
            self.K, self.ridge, self.sample, self.sign, self.linear, self.upper,
            self.alpha, self.f, self.v, self.sets, self.tol, self.max_iter,
        )  # fmt: skip

    def train(self) -> None:
        for c in range(len(self.sign)):
            if self.sets.size[c] <= 0:
                self._pivot(c)
        status, n_iter = train_models(*self._variables())  # type: ignore[arg-type]
        self._note(status, n_iter)

    def _pivot(self, c: int) -> None:
        """Start a model from its optimum where a few factorisations find it; in wide data all variables are free."""
        dual = BoxDual(self.sample, self.sign[c], self.linear[c], self.upper[c], self.ridge)
        is_first = not self.alpha[c].any()
        if is_first and self.active.size < self.sign.shape[1]:
            return
        found = pivot_free_set(self.K, dual, self.alpha[c], all_free=is_first, product=self._cheap_product())
        if found is not None:
            self.alpha[c] = found
            refresh(self.K, self.ridge, self.sample, self.sign[c], self.alpha[c], self.f[c])

    def _cheap_product(self) -> Callable[[FloatArray], FloatArray] | None:
        """The product with K from sparse data, of which a few dozen solve a wide system; None for other data."""
        n = self.design.n_samples
        if not self.design.is_sparse or n < MANY_SAMPLES or self.active.size < WIDE * n:
            return None
        part = self.left
        return lambda v: part.dot(part.transpose_dot(v))

    def _note(self, status: int, n_iter: int) -> None:
        self.status = max(self.status, Status(status))
        self.n_iter += n_iter

    @property
    def left(self) -> Design:
        """The design of the remaining features, cached: for wide data the selection takes as long as a product."""
        if self._left is None or self._left[0] is not self.active:
            self._left = self.active, self.design.take(self.active)
        return self._left[1]

    def weights(self) -> FloatArray:
        """One row per remaining feature, one column per model."""
        return self.left.transpose_dot(self.v.T)

    def remove(self, features: IntArray) -> None:
        self.active, self._left = those_kept(self.active, features), None
        self.inaccurate = self.downdating.is_due(features, self.active)
        if not self.inaccurate:
            self.K -= self.design.take(np.sort(features)).gram()
        self._renew()

    def _follow_cost(self) -> None:
        """Increase C when it is due, and the dual variables with it, so that they stay near the solution."""
        factor = 1.0 if self.cost is None else self.cost.growth(self.active)
        if factor > 1.0:
            for grows in (self.upper, self.alpha, self.v):
                grows *= factor
            self.ridge = self.ridge / factor
            self.sets.size[self.sets.size > 0] = 0

    def refresh_gram(self) -> None:
        """Recompute the Gram matrix of the remaining features from the data."""
        self.K = np.ascontiguousarray(self.left.gram())
        self.downdating.start(self.active)
        self._refresh_f()

    def _refresh_f(self) -> None:
        for c in range(len(self.sign)):
            refresh(self.K, self.ridge, self.sample, self.sign[c], self.alpha[c], self.f[c])

    # -- exact elimination one at a time --------------------------------------------------------

    def eliminate_one_by_one(self, record: Elimination, stop_at: int = 1) -> None:
        """Same result as ``eliminate`` in steps of one feature, with exact shortcuts."""
        problem = record.problem
        self.sets = TrackedSets.room_for(*self.f.shape)
        removable = np.ones(problem.n_features, dtype=bool)
        removable[problem.always_keep] = False
        norm = np.sqrt(self.downdating.norm_sq)
        must_stay = max(stop_at - 1, 1 if removable.all() else 0)
        with problem.progress.task("Eliminating features", problem.n_features) as advance:
            while True:
                self.train()
                value = self.importance()
                record.scores[self.active] = value
                may_leave = removable[self.active]
                n_out = min(int(np.count_nonzero(may_leave)), self.active.size - must_stay)
                if n_out <= 0 or self.status is Status.UNBOUNDED:
                    break
                leaving = self._leave_from_block(
                    self.active[may_leave], value[may_leave], norm, n_out, record.scores
                )
                record.remove(leaving)
                advance(leaving.size)
                self.active = self.active[~np.isin(self.active, leaving, assume_unique=True)]
                self.inaccurate = self.downdating.is_due(leaving, self.active)
                self._renew()
        if not record.n_eliminated:
            self.status.check("Elimination with a hard margin (C=inf)")
        record.sizes.extend(range(problem.n_features - record.n_eliminated, problem.n_features + 1))
        record.note(self)

    def _renew(self) -> None:
        """Recompute updated quantities from the data: f = Kv always, the Gram matrix when it is due."""
        self._follow_cost()
        if self.inaccurate:
            self.refresh_gram()
        else:
            self._refresh_f()

    def _leave_from_block(
        self, candidates: IntArray, value: FloatArray, norm: FloatArray, n_out: int, last_value: FloatArray
    ) -> IntArray:
        """Remove features one by one from the block of the worst candidates as long as that is exact."""
        tie = self.tie_share * float(value.max())
        ascending = np.argsort(value, kind="stable")
        size = self._block_size(value[ascending], tie)
        block = candidates[ascending[:size]]
        outside = float(np.sqrt(value[ascending[size]])) if size < candidates.size else np.inf
        # At most half at once: the Gram matrix is then recomputed, see `Downdating`, and so may be C.
        half = max(self.small_block, self.active.size // 2)
        if self.cost is not None:
            half = min(half, self.cost.room(self.active.size))
        removed = np.empty(min(size, n_out, half), dtype=np.intp)
        left_value = np.empty(removed.size)
        n_removed, status, n_iter = eliminate_in_block(
            *self._variables(),  # type: ignore[call-arg]
            np.ascontiguousarray(self.design.block(block).T),
            block,
            outside,
            float(norm[self.active].max()),
            norm[block] ** 2,
            self.downdating.gone,
            float((norm[self.active] ** 2).sum()),
            tie,
            removed,
            left_value,
        )
        self._note(status, n_iter)
        leaving = block[removed[:n_removed]]
        last_value[leaving] = left_value[:n_removed]
        return leaving

    def _block_size(self, ascending: FloatArray, tie: float) -> int:
        """Number of candidates in the block: all when they fit, else a part that does not separate tied values."""
        n_all = ascending.size
        # The block is dense: for sparse data it takes no more memory than the share of the Gram matrix.
        most = self.design.n_samples if self.design.is_sparse else self.design.n_features
        if n_all <= max(self.small_block, most // BLOCK_SHARE):
            return n_all
        size = max(self.small_block, min(n_all, most) // BLOCK_SHARE)
        while size < n_all and ascending[size] <= ascending[size - 1] + 2.0 * tie:
            size += 1
        return size


# -- Penalised logistic regression as the model of an elimination (Zhu and Hastie 2003) --


class LogisticModels(LinearValue):
    """One regression per class or pair of classes; on the Gram matrix for few samples, else by scikit-learn."""

    def __init__(
        self,
        problem: Problem,
        *,
        C: float,
        tol: float,
        max_iter: int,
        cost_follows: bool = False,
        multi_class: str = "one_vs_rest",
    ) -> None:
        self.problem, self.C, self.tol, self.max_iter = problem, C, tol, max_iter
        self.design = problem.design
        self.cost = FollowingCost.of(problem) if cost_follows else None
        self.targets, involved = problem.target.model_columns(multi_class)
        self.rows: list[IntArray] = [np.flatnonzero(inside) for inside in involved.T]
        self.active: IntArray = np.arange(problem.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.duals: list[LogisticDual | None] = [None] * self.targets.shape[1]
        self.primal = np.empty((0, 0))
        self.bias = np.zeros(self.targets.shape[1])
        self.K: FloatArray | None = None
        self.downdating: Downdating | None = None

    def train(self) -> None:
        if not prefers_gram((self.problem.n_samples, self.active.size)):
            self._train_tall()
            return
        if self.K is None:
            self.K = finite_gram(self.design.take(self.active))
            self.downdating = self.downdating or Downdating(self.design)
            self.downdating.start(self.active)
        cost = np.broadcast_to(self.problem.sample_costs(self.C), self.problem.n_samples)
        coefficients = np.zeros(self.targets.shape)
        for c, (rows, start) in enumerate(zip(self.rows, self.duals, strict=True)):
            dual = solve_logistic_dual(
                self.K if rows.size == len(self.K) else self.K[np.ix_(rows, rows)],
                self.targets[rows, c],
                C=cost[rows],
                warm_start=start,
                tol=self.tol,
                max_iter=self.max_iter,
            )
            self.status = max(self.status, dual.status)
            self.n_iter += dual.n_iter
            self.duals[c], self.bias[c] = dual, dual.bias
            coefficients[rows, c] = dual.dual_coef
        self.primal = self.design.take(self.active).transpose_dot(coefficients)

    def _train_tall(self) -> None:
        columns = np.ascontiguousarray(self.design.block(self.active))
        weights, sample_weight = [], self.problem.sample_weight
        for c, rows in enumerate(self.rows):
            model = LogisticRegression(
                C=self.C, solver="newton-cholesky", tol=self.tol, max_iter=self.max_iter
            )
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                model.fit(
                    columns if rows.size == len(columns) else columns[rows],
                    self.targets[rows, c],
                    sample_weight=None if sample_weight is None else sample_weight[rows],
                )
            if any(issubclass(w.category, ConvergenceWarning) for w in caught):
                self.status = max(self.status, Status.ITERATION_LIMIT)
            self.n_iter += int(model.n_iter_[0])
            weights.append(model.coef_[0])
            self.bias[c] = model.intercept_[0]
        self.primal = np.column_stack(weights)

    def weights(self) -> FloatArray:
        return self.primal

    def remove(self, features: IntArray) -> None:
        self.active = those_kept(self.active, features)
        if self.cost is not None:
            self.C *= self.cost.growth(self.active)
        if self.downdating is None or self.K is None or self.downdating.is_due(features, self.active):
            self.K = None
        else:
            self.K = self.K - self.design.take(np.sort(features)).gram()
