"""Elimination of one feature at a time from linear models with a box-constrained dual, with exact shortcuts."""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines.elimination._linear import LinearValue
from zeronorm.engines.elimination._loop import Downdating, Elimination, FollowingCost, finite_gram
from zeronorm.engines.elimination._scan import eliminate_in_block, train_models
from zeronorm.selection._path import TIE_TOLERANCE
from zeronorm.selection._problem import Problem
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import LinearProblem, prefers_products
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._free_set import pivot_free_set
from zeronorm.solvers.svm._smo import refresh
from zeronorm.solvers.svm._tracked_set import TrackedSets

SMALL_BLOCK = 512  # features that are always loaded as one block ...
SMALL_BYTES = 2**22  # ... and so are those that fit in this many bytes
# A block holds one in this many of the features: at most that share of the memory of the data.
BLOCK_SHARE = 4


class OneByOne(LinearValue):
    """Elimination of one feature at a time, in the dual variables of all models on one Gram matrix.

    The result is that of ``eliminate`` in steps of one feature; the loop of training and removal is compiled.
    """

    def __init__(
        self,
        problem: Problem,
        linear: LinearProblem,
        *,
        tol: float,
        max_iter: int,
        tie_share: float = TIE_TOLERANCE,
        cost_follows: bool = False,
    ) -> None:
        self.design = problem.design
        self.active: IntArray = np.arange(problem.n_features)
        self._left: tuple[IntArray, Design] | None = None
        self.tol, self.max_iter, self.tie_share = tol, max_iter, tie_share
        self.status, self.n_iter = Status.CONVERGED, 0
        self._set_variables(linear)
        K = finite_gram(self.design)
        self.free = linear.covariate_columns(float(np.diagonal(K).mean()))
        self.K = self._with_covariates(K)
        self.downdating = Downdating(self.design)
        self.cost = FollowingCost.of(problem) if cost_follows else None
        self.inaccurate = False
        self.small_block = max(SMALL_BLOCK, SMALL_BYTES // (8 * problem.n_samples))

    def _with_covariates(self, K: FloatArray) -> FloatArray:
        """The Gram matrix with the columns of the covariates, which are never removed."""
        return K + self.free @ self.free.T if self.free.size else K

    def _set_variables(self, linear: LinearProblem) -> None:
        duals = [
            linear.loss.box_dual(y, np.ascontiguousarray(cost))
            for y, cost in zip(linear.targets.T, linear.costs.T, strict=True)
        ]
        # All models share the ridge; samples of other classes, which cost nothing, are held at zero by their bounds.
        self.sample, self.ridge = duals[0].sample, np.max([d.ridge for d in duals], axis=0)
        self.sign = np.stack([d.sign for d in duals])
        self.linear = np.stack([d.linear for d in duals])
        self.upper = np.stack([d.upper for d in duals])
        self.alpha = np.zeros(self.sign.shape)
        self.f = np.zeros((len(duals), len(linear.targets)))
        self.v = np.zeros_like(self.f)
        self.sets = TrackedSets.room_for(*self.f.shape)

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
        product = self._product if prefers_products(self.left) else None
        found = pivot_free_set(self.K, dual, self.alpha[c], all_free=is_first, product=product)
        if found is not None:
            self.alpha[c] = found
            refresh(self.K, self.ridge, self.sample, self.sign[c], self.alpha[c], self.f[c])

    def _product(self, v: FloatArray) -> FloatArray:
        """The Gram matrix times ``v``, by products with the data."""
        return self.left.dot(self.left.transpose_dot(v)) + self.free @ (self.free.T @ v)

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

    def _follow_cost(self) -> None:
        """Increase C when it is due, and the dual variables with it, so that they stay near the solution."""
        factor = 1.0 if self.cost is None else self.cost.growth(self.active)
        if factor > 1.0:
            for grows in (self.upper, self.alpha, self.v):
                grows *= factor
            self.ridge = self.ridge / factor
            self.sets.size[self.sets.size > 0] = 0

    def _refresh_gram(self) -> None:
        """Recompute the Gram matrix of the remaining features from the data."""
        self.K = self._with_covariates(np.ascontiguousarray(self.left.gram()))
        self.downdating.start(self.active)
        self._refresh_f()

    def _refresh_f(self) -> None:
        for c in range(len(self.sign)):
            refresh(self.K, self.ridge, self.sample, self.sign[c], self.alpha[c], self.f[c])

    def eliminate(self, record: Elimination, stop_at: int = 1) -> None:
        """Remove features until one, or fewer than ``stop_at``, are left."""
        problem = record.problem
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
            self._refresh_gram()
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
