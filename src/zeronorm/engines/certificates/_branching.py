"""Best-first branch and bound over subsets, with bounds from the relaxation."""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterable

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.certificates._bounds import CompetingUnits, DualBound, Objective, Units
from zeronorm.engines.certificates._proof import (
    ROUNDING_GAP,
    Limits,
    Node,
    Proof,
    ProofStatus,
    SearchState,
    relative_gap,
)
from zeronorm.engines.certificates._refit import Refit, trained
from zeronorm.engines.certificates._relaxation import Relaxation, Relaxed, Start

NODE_PRECISION = 1e-4  # relative, of the relaxation in a node
SAME_BOUND = 1e-9  # relative difference of a bound that is computed twice
NODES_BETWEEN_COPIES = 50  # of the columns that are still considered
EXCHANGED = 12  # features outside a subset that are tried in exchange, the most promising first


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
        self._queue: list[tuple[float, int, Node]] = []
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
        while improved and self.best is not None and not self._must_end:
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
                    if self.units.sizes[u] == self.units.sizes[v] and not self._must_end:
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

    @property
    def _must_end(self) -> bool:
        return self.limits.is_over() or self.relaxation.must_end

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
        state: SearchState | None = None,
    ) -> Proof:
        """Search until the gap is closed or a limit is reached; Ctrl-C keeps what was found, once there is a bound.

        ``seeds`` are subsets to begin with. ``report`` is called with the bound and the objective before each node.
        With the ``state`` of an earlier search of the same problem it continues there.
        """
        self.try_units(np.flatnonzero(self.candidates.inside))
        if state is not None:
            self.try_units(np.unique(self.units.code[state.best]))
            if not state.queue and state.closed < self.cutoff:
                state = None  # complete within a larger tolerance
        if state is not None:
            root = self._continued(state)
        else:
            root = self.relaxation.solve(self.candidates, start, tol=NODE_PRECISION)
        preference = self._preference(root)
        status = ProofStatus.LIMIT
        try:
            self.try_units(self.rounded(self.candidates, preference))
            self.try_units(self.rounded(self.candidates, root.dual.q))
            for units in seeds:
                self.try_units(units)
            self.improve(preference)
            if state is None:
                self._push(self.candidates, root)
            else:
                self._forget()
            status = self._branch(report)
        except KeyboardInterrupt:
            self.relaxation.was_interrupted = True
            if not self._queue and state is None:
                self._push(self.candidates, root)
        assert self.best is not None
        if relative_gap(self.best.objective, self.bound) <= ROUNDING_GAP:
            status = ProofStatus.OPTIMAL
        return Proof(
            self.best,
            self.bound,
            root,
            self.candidates,
            status,
            self.n_nodes,
            len(self._queue),
            time.monotonic() - self._begun,
            self.history,
            self._state(root),
            self.relaxation.was_interrupted,
        )

    def _state(self, root: Relaxed) -> SearchState:
        assert self.best is not None
        return SearchState(
            self._queue,
            self.closed,
            self.best.columns,
            self.n_nodes,
            root.dual.alpha,
            root.bound,
            self.history,
        )

    def _continued(self, state: SearchState) -> Relaxed:
        """Take up an earlier search, after a check that its dual point proves the same bound on these data."""
        dual = self.relaxation.bound_at(state.alpha)
        bound = dual.over(self.candidates)
        if not math.isclose(bound, state.root_bound, rel_tol=SAME_BOUND, abs_tol=SAME_BOUND):
            raise ValueError(
                f"The earlier search cannot continue: its bound is {state.root_bound:.6g}, and that of its dual point "
                f"on these data {bound:.6g}. Start a new search for other data, targets, weights, groups or kept "
                "features."
            )
        self._queue, self.closed, self.n_nodes = list(state.queue), state.closed, state.n_nodes
        self._numbers = itertools.count(1 + max((number for _, number, _ in state.queue), default=0))
        self.history = list(state.history)
        self._begun -= self.history[-1][0] if self.history else 0.0
        none, n_models = np.empty(0, dtype=np.intp), state.alpha.shape[1]
        return Relaxed(
            bound, dual, none, np.empty(0), none, np.empty((0, n_models)), np.zeros(n_models), 1.0, 0
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
            if self.n_nodes >= self.limits.nodes or self._must_end:
                return ProofStatus.LIMIT
            bound, _, node = self._queue[0]
            children = self._children(node)  # an interruption leaves the node in the queue
            heapq.heappop(self._queue)
            for candidates, solution in children:
                self._push(candidates, solution, bound)
            if self.n_nodes == 1 or self.n_nodes % NODES_BETWEEN_COPIES == 0:
                self._forget()
        return ProofStatus.GAP

    def _forget(self) -> None:
        """Leave out the columns of units that no waiting node considers."""
        used = self.candidates.inside.copy()
        for _, _, node in self._queue:
            candidates = node.candidates(self.candidates)
            used |= candidates.inside | candidates.free
        self.relaxation.restrict(np.flatnonzero(used))

    def _children(self, node: Node) -> list[tuple[CompetingUnits, Relaxed]]:
        """Both halves of the subsets of a node, with or without one unit, and their relaxations."""
        self.n_nodes += 1
        whole = node.candidates(self.candidates)
        children = []
        for candidates in (whole.including(node.unit), whole.excluding(node.unit)):
            found = self.relaxation.solve(candidates, node.start, cutoff=self.cutoff, tol=NODE_PRECISION)
            self.try_units(self.rounded(candidates, self._preference(found)))
            children.append((candidates, found))
        return children

    def _branching_unit(self, candidates: CompetingUnits, solution: Relaxed) -> int:
        """The free unit with the indicator that is nearest to one half."""
        z = np.where(candidates.free[solution.units], solution.z, -1.0)
        best = int(np.argmin(np.abs(z - 0.5))) if z.size else 0
        if z.size and z[best] >= 0.0:
            return int(solution.units[best])
        return int(np.flatnonzero(candidates.free)[np.argmax(solution.dual.q[candidates.free])])

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
            node = Node.of(candidates, self._branching_unit(candidates, solution), Start.at(solution))
            heapq.heappush(self._queue, (bound, next(self._numbers), node))
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
