"""Best-first branch and bound over subsets, with bounds from the relaxation."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.certificates._bounds import CompetingUnits, DualBound, Objective, Units
from zeronorm.engines.certificates._refit import Refit, trained
from zeronorm.engines.certificates._relaxation import Relaxation, Relaxed, Start

ROUNDING_GAP = 1e-6  # relative gap up to which a subset is called optimal
NODE_PRECISION = 1e-4  # relative, of the relaxation in a node
EXCHANGED = 12  # features outside a subset that are tried in exchange, the most promising first


class ProofStatus(Enum):
    """How a search ended."""

    OPTIMAL = "optimal"
    GAP = "gap"
    LIMIT = "limit"


@dataclass(frozen=True, eq=False)
class Proof:
    """The best subset found and the best bound proved for all subsets.

    ``root`` is the relaxation before branching, whose dual point proves its bound; ``history`` holds
    (seconds, bound, objective).
    """

    best: Refit
    bound: float
    root: Relaxed
    candidates: CompetingUnits
    status: ProofStatus
    n_nodes: int
    n_left: int
    seconds: float
    history: list[tuple[float, float, float]] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """How much smaller the objective of another subset can be, relative to that of the best found."""
        return relative_gap(self.best.objective, self.bound)


def relative_gap(objective: float, bound: float) -> float:
    """(objective - bound) / objective, rounded up and never negative."""
    if not objective > bound:
        return 0.0
    return math.nextafter((objective - bound) / objective, math.inf)


@dataclass(frozen=True)
class Limits:
    """When a search ends: relative gap, number of nodes, and time of ``time.monotonic()``."""

    gap: float = 0.0
    nodes: int = 1_000_000
    deadline: float = math.inf

    @classmethod
    def within(cls, seconds: float, **limits: Any) -> Limits:
        """Limits with a time from now on."""
        return cls(deadline=time.monotonic() + seconds, **limits)

    def is_over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.deadline


@dataclass(frozen=True, eq=False)
class _Node:
    candidates: CompetingUnits
    solution: Relaxed


class SubsetProof:
    """The search for the best subset of one size.

    Parameters
    ----------
    objective, units : the problem
    candidates : the subsets among which the best is sought
    limits : when to stop
    relaxation : solves relaxations; shared by all sizes, so that columns are read once
    """

    def __init__(
        self,
        objective: Objective,
        units: Units,
        candidates: CompetingUnits,
        limits: Limits,
        relaxation: Relaxation,
    ) -> None:
        self.objective, self.units, self.limits, self.relaxation = objective, units, limits, relaxation
        self.candidates = candidates.fitting()
        self.best: Refit | None = None
        self.closed = math.inf  # the smallest bound of all subsets that need no further search
        self._refits: dict[bytes, Refit] = {}
        self._numbers = itertools.count()
        self._queue: list[tuple[float, int, _Node]] = []
        self.n_nodes = 0
        self._begun = time.monotonic()
        self.history: list[tuple[float, float, float]] = []

    # -- subsets ----------------------------------------------------------------------------------

    def try_units(self, units: IntArray) -> Refit:
        """Train the model on these units and keep it if it is the best so far."""
        columns = self.units.columns(units)
        key = columns.tobytes()
        if key not in self._refits:
            self._refits[key] = trained(self.relaxation, columns)
        found = self._refits[key]
        if self.best is None or found.objective < self.best.objective:
            self.best = found
        return found

    def rounded(self, candidates: CompetingUnits, value: FloatArray) -> IntArray:
        """The units inside, and the free ones of the largest value that fit."""
        chosen = np.flatnonzero(candidates.inside).tolist()
        room = candidates.room
        free = np.flatnonzero(candidates.free)
        for u in free[np.argsort(-value[free], kind="stable")].tolist():
            if self.units.sizes[u] <= room:
                chosen.append(u)
                room -= int(self.units.sizes[u])
            if room <= 0:
                break
        return np.array(sorted(chosen), dtype=np.intp)

    def improve(self, score: FloatArray) -> None:
        """Exchange one unit of the best subset for another of equal size, as long as the objective decreases.

        ``score`` orders the units outside.
        """
        improved = True
        while improved and self.best is not None and not self.limits.is_over():
            improved = False
            before = self.best.objective
            chosen = np.unique(self.units.code[self.best.columns])
            free = self.candidates.free.copy()
            free[chosen] = False
            outside = np.flatnonzero(free)
            count = min(EXCHANGED, outside.size)
            outside = outside[np.argsort(-score[outside], kind="stable")[:count]]
            for u in outside.tolist():
                for v in chosen[~self.candidates.inside[chosen]].tolist():
                    if self.units.sizes[u] == self.units.sizes[v] and not self.limits.is_over():
                        self.try_units(np.sort(np.append(chosen[chosen != v], u)))
            improved = self.best.objective < before * (1.0 - 1e-12)

    # -- bounds -----------------------------------------------------------------------------------

    @property
    def cutoff(self) -> float:
        """Subsets with a bound of at least this need no further search."""
        assert self.best is not None
        return self.best.objective * (1.0 - max(self.limits.gap, 0.5 * ROUNDING_GAP))

    @property
    def bound(self) -> float:
        """The bound for all subsets."""
        waiting = self._queue[0][0] if self._queue else math.inf
        assert self.best is not None
        return min(self.closed, waiting, self.best.objective)

    def _close(self, bound: float) -> None:
        self.closed = min(self.closed, bound)

    def _screened(self, candidates: CompetingUnits, dual: DualBound, bound: float) -> CompetingUnits:
        """Fix the units that every better subset holds, or that none holds (Atamtürk & Gómez 2020)."""
        within, without = dual.with_and_without(candidates)
        within, without = np.maximum(within, bound), np.maximum(without, bound)
        out = candidates.free & (within >= self.cutoff)
        into = candidates.free & (without >= self.cutoff) & ~out
        if out.any():
            self._close(float(within[out].min()))
        if into.any():
            self._close(float(without[into].min()))
        inside, free = candidates.inside | into, candidates.free & ~out & ~into
        return CompetingUnits(candidates.units, candidates.size, inside, free)

    # -- the search -------------------------------------------------------------------------------

    def run(
        self,
        start: Start,
        seeds: Iterable[IntArray] = (),
        report: Callable[[float, float], None] = lambda bound, best: None,
    ) -> Proof:
        """Search until the gap is closed or a limit is reached; an interruption keeps what was found.

        ``seeds`` are subsets to begin with. ``report`` is called with the bound and the objective before each node.
        """
        self.try_units(np.flatnonzero(self.candidates.inside))
        root = self.relaxation.solve(self.candidates, start, tol=NODE_PRECISION)
        preference = self._preference(root)
        status = ProofStatus.LIMIT
        try:
            self.try_units(self.rounded(self.candidates, preference))
            self.try_units(self.rounded(self.candidates, root.dual.q))
            for units in seeds:
                self.try_units(units)
            self.improve(preference)
            self._push(self.candidates, root)
            status = self._branch(report)
        except KeyboardInterrupt:
            if not self._queue:
                self._close(root.bound)
        assert self.best is not None
        bound = self.bound
        if relative_gap(self.best.objective, bound) <= ROUNDING_GAP:
            status = ProofStatus.OPTIMAL
        seconds = time.monotonic() - self._begun
        return Proof(
            self.best,
            bound,
            root,
            self.candidates,
            status,
            self.n_nodes,
            len(self._queue),
            seconds,
            self.history,
        )

    def _preference(self, solution: Relaxed) -> FloatArray:
        """The relaxed indicators; units not in use follow in the order of their values."""
        value = solution.dual.q / self.units.sizes
        value *= 1e-6 / max(float(value.max(initial=0.0)), 1e-300)
        value[solution.units] += solution.z
        return value

    def _branch(self, report: Callable[[float, float], None]) -> ProofStatus:
        while self._queue:
            assert self.best is not None
            self.history.append((time.monotonic() - self._begun, self.bound, self.best.objective))
            report(self.bound, self.best.objective)
            if self._queue[0][0] >= self.cutoff:
                return ProofStatus.GAP
            if self.n_nodes >= self.limits.nodes or self.limits.is_over():
                return ProofStatus.LIMIT
            bound, _, node = self._queue[0]
            children = self._children(node)  # an interruption leaves the node in the queue
            heapq.heappop(self._queue)
            for candidates, solution in children:
                self._push(candidates, solution, bound)
            self._forget()
        return ProofStatus.GAP

    def _forget(self) -> None:
        if self.n_nodes == 1 or self.n_nodes % 50 == 0:
            used = self.candidates.inside | self.candidates.free
            if self._queue and self.n_nodes == 1:
                used = np.logical_or.reduce(
                    [n.candidates.inside | n.candidates.free for _, _, n in self._queue]
                )
            self.relaxation.restrict(np.flatnonzero(used))

    def _children(self, node: _Node) -> list[tuple[CompetingUnits, Relaxed]]:
        """Both halves of the subsets of a node, with or without one unit, and their relaxations."""
        self.n_nodes += 1
        solution = node.solution
        unit = self._branching_unit(node)
        children = []
        for candidates in (node.candidates.including(unit), node.candidates.excluding(unit)):
            found = self.relaxation.solve(
                candidates, Start.at(solution), cutoff=self.cutoff, tol=NODE_PRECISION
            )
            self.try_units(self.rounded(candidates, self._preference(found)))
            children.append((candidates, found))
        return children

    def _branching_unit(self, node: _Node) -> int:
        """The free unit with the indicator that is nearest to one half."""
        solution, free = node.solution, node.candidates.free
        z = np.where(free[solution.units], solution.z, -1.0)
        best = int(np.argmin(np.abs(z - 0.5)))
        if z[best] >= 0.0:
            return int(solution.units[best])
        return int(np.flatnonzero(free)[np.argmax(solution.dual.q[free])])

    def _push(self, candidates: CompetingUnits, solution: Relaxed, least: float = 0.0) -> None:
        """Add a node to the queue, unless its bound or its only subset closes it."""
        bound = max(solution.bound, least)
        if bound < self.cutoff:
            candidates = self._screened(candidates, solution.dual, bound).fitting()
            if candidates.room < 0:
                return  # more units are needed than fit: all other subsets were closed above
            if candidates.is_decided():
                self._close(max(bound, self._exact(candidates)))
                return
            heapq.heappush(self._queue, (bound, next(self._numbers), _Node(candidates, solution)))
        else:
            self._close(bound)

    def _exact(self, candidates: CompetingUnits) -> float:
        """The bound for the one best subset of a family in which all free units fit."""
        found = self.try_units(np.flatnonzero(candidates.inside | candidates.free))
        everything = CompetingUnits(
            candidates.units,
            candidates.size,
            candidates.inside | candidates.free,
            np.zeros_like(candidates.free),
        )
        return self.relaxation.bound_at(found.alpha).over(everything)
