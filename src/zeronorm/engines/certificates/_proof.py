"""What a search of subsets returns: the proof, when it ended, and the state from which it continues."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.certificates._bounds import CompetingUnits
from zeronorm.engines.certificates._refit import Refit
from zeronorm.engines.certificates._relaxation import Relaxed, Start

ROUNDING_GAP = 1e-6  # relative gap up to which a subset is called optimal


class ProofStatus(Enum):
    """How a search ended."""

    OPTIMAL = "optimal"
    GAP = "gap"
    LIMIT = "limit"


@dataclass(frozen=True, eq=False)
class Node:
    """Subsets that wait to be divided by ``unit``: the units inside, the free ones as bits, and where to start."""

    inside: IntArray
    free: np.ndarray[Any, np.dtype[np.uint8]]
    unit: int
    start: Start

    @classmethod
    def of(cls, candidates: CompetingUnits, unit: int, start: Start) -> Node:
        """Keep these subsets in little memory."""
        return cls(np.flatnonzero(candidates.inside), np.packbits(candidates.free), unit, start)

    def candidates(self, all_subsets: CompetingUnits) -> CompetingUnits:
        """The subsets, of those of a search."""
        units = all_subsets.units
        inside = np.zeros(units.sizes.size, dtype=bool)
        inside[self.inside] = True
        free = np.unpackbits(self.free, count=inside.size).astype(bool)
        return CompetingUnits(units, all_subsets.size, inside, free)


@dataclass(frozen=True, eq=False)
class SearchState:
    """What a search needs to continue: the nodes that wait, and what is proved about all other subsets.

    ``best`` are the columns of the best subset; ``alpha`` and ``root_bound`` tell whether the data are the same.
    """

    queue: list[tuple[float, int, Node]]
    closed: float
    best: IntArray
    n_nodes: int
    alpha: FloatArray
    root_bound: float
    history: list[tuple[float, float, float]]


@dataclass(frozen=True, eq=False)
class Proof:
    """The best subset found and the best bound proved for all subsets.

    ``root`` is the relaxation before branching, whose dual point proves its bound; ``history`` holds
    (seconds, bound, objective). With ``state`` a later search continues.
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
    state: SearchState | None = None
    was_interrupted: bool = False

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
