"""Backward elimination: train, rank the remaining units, remove the worst, repeat.

A unit is one feature, or one group of features. What differs between methods is the model that is trained
and how it values a feature; that is the ``Models`` protocol.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Protocol

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design, require_finite
from zeronorm.execution import one_thread_if_small
from zeronorm.selection._path import SelectionPath, order_by_score
from zeronorm.selection._problem import Problem
from zeronorm.solvers._status import Status

# How many units are removed in one round: a count, a fraction of the remaining ones, or a function of the values of
# the units that may be removed, the least valuable first.
Step = int | float | Callable[[FloatArray], int]


class Trained(Protocol):
    """What was trained, and how it ended."""

    @property
    def status(self) -> Status:
        """The worst status of all trainings so far."""

    @property
    def n_iter(self) -> int:
        """Total number of iterations of all trainings so far."""


class Models(Trained, Protocol):
    """One or more trained models on a shrinking set of features."""

    active: IntArray  # sorted indices of the remaining features

    def train(self) -> None:
        """Fit on the remaining features, starting from the last solution."""

    def importance(self) -> FloatArray:
        """The value of each remaining feature, summed over models; bigger is better."""

    def group_importance(self, unit: IntArray) -> FloatArray:
        """The value of each group; ``unit`` gives the group (0, 1, …) of each remaining feature."""

    def remove(self, features: IntArray) -> None:
        """Remove features."""


class Elimination:
    """Record of an elimination: removed features in order, sizes at which models were trained, and values.

    ``comparable`` states whether values of different rounds are on one scale, as weights are. If not, features
    are scored by the order of removal.
    """

    def __init__(self, problem: Problem, *, comparable: bool = True) -> None:
        self.problem, self.comparable = problem, comparable
        self._eliminated: list[IntArray] = []
        self.sizes: list[int] = []
        self.scores = np.zeros(problem.n_features)
        self.n_iter = 0
        self.status = Status.CONVERGED

    def remove(self, features: IntArray) -> None:
        """Record that these features are removed, in this order."""
        self._eliminated.append(features)

    @property
    def eliminated(self) -> IntArray:
        """Features in the order of removal."""
        return np.concatenate([np.empty(0, dtype=np.intp), *self._eliminated])

    @property
    def n_eliminated(self) -> int:
        return sum(features.size for features in self._eliminated)

    @property
    def active(self) -> IntArray:
        """The remaining features."""
        mask = np.ones(self.problem.n_features, dtype=bool)
        mask[self.eliminated] = False
        return np.flatnonzero(mask)

    def note(self, models: Trained) -> None:
        """Record the status of the trainings; data that are no longer separable end the run and are no failure."""
        self.n_iter += models.n_iter
        self.status = max(self.status, models.status)

    def path(self) -> SelectionPath:
        """The path; the remaining features are ordered by their last value, forced features first."""
        rest = self.active
        survivors = rest[order_by_score(self.scores[rest])][::-1]
        survivors = survivors[np.argsort(np.isin(survivors, self.problem.always_keep), kind="stable")]
        return SelectionPath.from_elimination(
            np.concatenate([*self._eliminated, survivors]),
            sizes=self.sizes,
            scores=self.scores if self.comparable else None,
            n_iter=self.n_iter,
            converged=self.status in (Status.CONVERGED, Status.UNBOUNDED),
            remedy=f"{self.status.remedy}. {self.status.message}." if self.status.remedy else "",
        )


def those_kept(active: IntArray, leaving: IntArray) -> IntArray:
    """The features that are kept, in ascending order."""
    gone = np.zeros(int(active[-1]) + 1 if active.size else 0, dtype=bool)
    gone[leaving] = True
    return np.asarray(active[~gone[active]])


DOWNDATED_ENERGY = 1024.0


class Downdating:
    """Decides when a Gram matrix from which columns were subtracted must be recomputed.

    Subtracting a column leaves a rounding error of its squared norm times the machine precision. That matters
    once the squared norms of the removed columns exceed those of the remaining ones ``DOWNDATED_ENERGY`` times, or, for
    columns of one scale, when half of them are removed.
    """

    def __init__(self, design: Design) -> None:
        self.norm_sq = design.squared_norms()
        self.start(np.arange(design.n_features))

    def start(self, active: IntArray) -> None:
        """Record that the matrix has just been computed from these columns."""
        self.n_at_start, self.gone = active.size, 0.0

    def is_due(self, removed: IntArray, active: IntArray) -> bool:
        """Whether the matrix is too inaccurate after ``removed`` were subtracted and ``active`` remain."""
        if 2 * active.size <= self.n_at_start:
            return True
        self.gone += float(self.norm_sq[removed].sum())
        return self.gone > DOWNDATED_ENERGY * float(self.norm_sq[active].sum())


class FollowingCost:
    """Increases C as features are removed, in proportion to the decrease of the mean diagonal of the kernel.

    With a C that suits a thousand features, errors cost almost nothing when twenty are left, and the ranking becomes
    that of a filter. C is updated each time half of the features are removed, so that trainings in between start near
    their solution.
    """

    def __init__(self, norm_sq: FloatArray, active: IntArray) -> None:
        self.norm_sq = norm_sq
        self._note(active)

    def _note(self, active: IntArray) -> None:
        self.renewed_at, self.energy = active.size, float(self.norm_sq[active].sum())

    @classmethod
    def of(cls, problem: Problem, active: IntArray | None = None) -> FollowingCost:
        """Start with all features or with those given as ``active``."""
        design, weight = problem.design, problem.sample_weight
        if weight is None:
            norm_sq = design.squared_norms()
        else:  # a weight of two equals two samples
            norm_sq = np.concatenate([weight @ block**2 for _, block in design.iter_blocks()])
        return cls(norm_sq, np.arange(design.n_features) if active is None else active)

    def growth(self, active: IntArray, now: bool = False) -> float:
        """The factor by which C grows; 1 between two updates, unless it is due ``now``."""
        if 2 * active.size > self.renewed_at and not now:
            return 1.0
        before = self.energy
        self._note(active)
        return before / self.energy if self.energy > 0.0 else 1.0

    def room(self, n_active: int) -> int:
        """How many features may be removed before C is updated."""
        return n_active - self.renewed_at // 2


def finite_gram(design: Design) -> FloatArray:
    """The Gram matrix; raises an error where squares overflow, since no solver converges with infinite numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        gram = np.ascontiguousarray(design.gram())
    if not np.all(np.isfinite(gram)):
        require_finite(design)
        raise ValueError(
            "The values of X are too large: their squares exceed the largest number that double precision can hold. "
            "Use standardize=True, or express the features in larger units."
        )
    return gram


def count_to_remove(step: int | float, n_left: int) -> int:
    """How many of ``n_left`` are removed in one round: a count, or a fraction of ``n_left``."""
    if isinstance(step, numbers.Integral):
        return min(int(step), n_left)
    return max(1, int(float(step) * n_left))


def eliminate(models: Models, record: Elimination, step: Step, stop_at: int = 1) -> None:
    """Remove the worst units round by round until one unit, or ``stop_at`` features, are left."""
    problem = record.problem
    units = _Units(problem)
    task = problem.progress.task("Eliminating features", problem.n_features)
    with one_thread_if_small(problem.n_samples), task as advance:
        while models.active.size >= stop_at:
            models.train()
            if models.status is Status.UNBOUNDED:
                if not record.n_eliminated:
                    models.status.check("Elimination with a hard margin (C=inf)")
                break
            record.sizes.append(models.active.size)
            value = models.importance()
            record.scores[models.active] = value
            leaving = units.leaving(models, value, step)
            if leaving.size == 0:
                break
            record.remove(leaving)
            models.remove(leaving)
            advance(leaving.size)
    problem.design.release()
    record.note(models)


class _Units:
    """Features or groups that may be removed; forced ones never are."""

    def __init__(self, problem: Problem) -> None:
        self.codes = problem.feature_groups
        self.sort = problem.design.backend.by_descending_value
        n_units = problem.n_features if self.codes is None else int(self.codes.max()) + 1
        self.forced = np.zeros(n_units, dtype=bool)
        kept = problem.always_keep
        self.forced[kept if self.codes is None else self.codes[kept]] = True

    def leaving(self, models: Models, value: FloatArray, step: Step) -> IntArray:
        """Features to remove next, the least valuable first; empty when one unit, or only forced ones, are left.

        On ties the higher index is removed first.
        """
        active = models.active
        present, unit, unit_value = active, active[:0], value
        if self.codes is not None:
            present, unit = np.unique(self.codes[active], return_inverse=True)
            unit_value = models.group_importance(unit)
        ranked = order_by_score(unit_value, sort=self.sort)[::-1]
        ranked = ranked[~self.forced[present[ranked]]]
        must_stay = 0 if self.forced.any() else 1
        wanted = step(unit_value[ranked]) if callable(step) else count_to_remove(step, ranked.size)
        n_out = min(wanted, ranked.size - must_stay)
        if n_out <= 0:
            return np.empty(0, dtype=np.intp)
        if self.codes is None:
            return active[ranked[:n_out]]
        # Within a group the least valuable feature is listed first, so that `order` stays meaningful.
        members = [np.flatnonzero(unit == u) for u in ranked[:n_out]]
        return np.concatenate([active[m[order_by_score(value[m])[::-1]]] for m in members])
