"""Linear support vector machines on a Gram matrix from which features leave.

Classification (one machine per class against the rest or per pair of classes, one for two classes) and regression
share one dual; see ``zeronorm.solvers.svm.box_dual``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.elimination.linear import LinearValue
from zeronorm.engines.elimination.loop import Downdating, Elimination, FollowingPrice, finite_gram
from zeronorm.engines.elimination.scan import eliminate_in_block, train_machines
from zeronorm.selection.path import TIE_TOLERANCE
from zeronorm.selection.problem import Problem
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.box_dual import BoxDual
from zeronorm.solvers.svm.free_set import pivot_free_set
from zeronorm.solvers.svm.smo import refresh
from zeronorm.solvers.svm.tracked_set import TrackedSets

SMALL_BLOCK = 512  # so many features are always loaded as one block ...
SMALL_BYTES = 2**22  # ... and as many as fit in this
BLOCK_SHARE = (
    4  # a block holds one in so many of the features: extra memory is at most that share of the data
)


class GramMachines(LinearValue):
    """One or more machines in the dual; ``Machines`` of the elimination loop."""

    def __init__(
        self,
        problem: Problem,
        *,
        C: float,
        loss: str,
        epsilon: float,
        tol: float,
        max_iter: int,
        tie_share: float = TIE_TOLERANCE,
        price_follows: bool = False,
        multi_class: str = "one_vs_rest",
    ) -> None:
        self.design = problem.design
        self.alive: IntArray = np.arange(problem.n_features)
        self.tol, self.max_iter, self.tie_share = tol, max_iter, tie_share
        self.status, self.n_iter = Status.CONVERGED, 0
        cost = np.broadcast_to(problem.sample_costs(C), problem.n_samples).astype(np.float64)
        self._set_variables(problem, cost, loss, epsilon, multi_class)
        self.K = finite_gram(self.design)
        self.downdating = Downdating(self.design)
        self.price = FollowingPrice.of(problem) if price_follows else None
        self.inaccurate = False
        self.small_block = max(SMALL_BLOCK, SMALL_BYTES // (8 * problem.n_samples))

    def _set_variables(
        self, problem: Problem, cost: FloatArray, loss: str, epsilon: float, multi_class: str
    ) -> None:
        squared = loss == "squared"
        targets, involved = problem.machine_targets(multi_class)
        if problem.task == "regression":
            duals = [BoxDual.regression(y, cost, epsilon, squared) for y in targets.T]
        else:
            duals = [BoxDual.classification(y, cost, squared) for y in targets.T]
        self.sample, self.ridge = duals[0].sample, duals[0].ridge
        self.sign = np.stack([d.sign for d in duals])
        self.linear = np.stack([d.linear for d in duals])
        self.upper = np.stack([d.upper for d in duals])
        if (
            not involved.all()
        ):  # samples of other classes are held at zero; the ridge is shared by all machines
            self.upper[~involved.T] = 0.0
        self.alpha = np.zeros(self.sign.shape)
        self.f = np.zeros((len(duals), problem.n_samples))
        self.v = np.zeros_like(self.f)
        self.sets = TrackedSets.room_for(len(duals), 0)  # whole rounds change too much to be followed

    def _variables(self) -> tuple[Any, ...]:
        return (
            self.K, self.ridge, self.sample, self.sign, self.linear, self.upper,
            self.alpha, self.f, self.v, self.sets, self.tol, self.max_iter,
        )  # fmt: skip

    def train(self) -> None:
        for c in range(len(self.sign)):
            if self.sets.size[c] <= 0:
                self._pivot(c)
        status, n_iter = train_machines(*self._variables())  # type: ignore[arg-type]
        self._note(status, n_iter)

    def _pivot(self, c: int) -> None:
        """Start a machine from the optimum where few factors find it; in wide data all variables are free."""
        dual = BoxDual(self.sample, self.sign[c], self.linear[c], self.upper[c], self.ridge)
        is_first = not self.alpha[c].any()
        if is_first and self.alive.size < self.sign.shape[1]:
            return
        found = pivot_free_set(self.K, dual, self.alpha[c], all_free=is_first)
        if found is not None:
            self.alpha[c] = found
            refresh(self.K, self.ridge, self.sample, self.sign[c], self.alpha[c], self.f[c])

    def _note(self, status: int, n_iter: int) -> None:
        self.status = max(self.status, Status(status))
        self.n_iter += n_iter

    def weights(self) -> FloatArray:
        """One row per feature that is left, one column per machine."""
        return self.design.take(self.alive).transpose_dot(self.v.T)

    def remove(self, features: IntArray) -> None:
        staying = ~np.isin(self.alive, features)
        self.alive = self.alive[staying]
        self.inaccurate = self.downdating.is_due(features, self.alive)
        if not self.inaccurate:
            self.K -= self.design.take(np.sort(features)).gram()
        self._renew()

    def _follow_price(self) -> None:
        """A larger C where it is due; the dual variables grow with it, so that they stay near the solution."""
        factor = 1.0 if self.price is None else self.price.growth(self.alive)
        if factor > 1.0:
            for grows in (self.upper, self.alpha, self.v):
                grows *= factor
            self.ridge = self.ridge / factor
            self.sets.size[self.sets.size > 0] = 0

    def refresh_gram(self) -> None:
        """The Gram matrix of the features that are left, from the data."""
        self.K = np.ascontiguousarray(self.design.take(self.alive).gram())
        self.downdating.start(self.alive)
        self._refresh_f()

    def _refresh_f(self) -> None:
        for c in range(len(self.sign)):
            refresh(self.K, self.ridge, self.sample, self.sign[c], self.alpha[c], self.f[c])

    # -- exact elimination one at a time --------------------------------------------------------

    def eliminate_one_by_one(self, record: Elimination, stop_at: int = 1) -> None:
        """The same as ``eliminate`` in steps of one feature, with exact shortcuts."""
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
                record.scores[self.alive] = value
                may_leave = removable[self.alive]
                n_out = min(int(np.count_nonzero(may_leave)), self.alive.size - must_stay)
                if n_out <= 0 or self.status is Status.UNBOUNDED:
                    break
                leaving = self._leave_from_block(
                    self.alive[may_leave], value[may_leave], norm, n_out, record.scores
                )
                record.remove(leaving)
                advance(leaving.size)
                self.alive = self.alive[~np.isin(self.alive, leaving, assume_unique=True)]
                self.inaccurate = self.downdating.is_due(leaving, self.alive)
                self._renew()
        if not record.n_eliminated:
            self.status.check("Elimination with a hard margin (C=inf)")
        record.sizes.extend(range(problem.n_features - record.n_eliminated, problem.n_features + 1))
        record.note(self)

    def _renew(self) -> None:
        """Fresh numbers in place of updated ones: the Gram matrix now and then, f = Kv always."""
        self._follow_price()
        if self.inaccurate:
            self.refresh_gram()
        else:
            self._refresh_f()

    def _leave_from_block(
        self, candidates: IntArray, value: FloatArray, norm: FloatArray, n_out: int, last_value: FloatArray
    ) -> IntArray:
        """Remove features one by one inside the block of the worst candidates as long as that is exact."""
        tie = self.tie_share * float(value.max())
        ascending = np.argsort(value, kind="stable")
        size = self._block_size(value[ascending], tie)
        block = candidates[ascending[:size]]
        outside = float(np.sqrt(value[ascending[size]])) if size < candidates.size else np.inf
        # Not more than half in one go: the Gram matrix is then computed afresh, see `Downdating`, and so may be C.
        half = max(self.small_block, self.alive.size // 2)
        if self.price is not None:
            half = min(half, self.price.room(self.alive.size))
        removed = np.empty(min(size, n_out, half), dtype=np.intp)
        left_value = np.empty(removed.size)
        n_removed, status, n_iter = eliminate_in_block(
            *self._variables(),  # type: ignore[call-arg]
            np.ascontiguousarray(self.design.block(block).T),
            block,
            outside,
            float(norm[self.alive].max()),
            norm[block] ** 2,
            self.downdating.gone,
            float((norm[self.alive] ** 2).sum()),
            tie,
            removed,
            left_value,
        )
        self._note(status, n_iter)
        leaving = block[removed[:n_removed]]
        last_value[leaving] = left_value[:n_removed]
        return leaving

    def _block_size(self, ascending: FloatArray, tie: float) -> int:
        """All candidates when they fit, else a part; never a cut through tied values."""
        n_all = ascending.size
        resident = max(self.small_block, self.design.n_features // BLOCK_SHARE)
        if n_all <= resident:
            return n_all
        size = max(self.small_block, n_all // BLOCK_SHARE)
        while size < n_all and ascending[size] <= ascending[size - 1] + 2.0 * tie:
            size += 1
        return size
