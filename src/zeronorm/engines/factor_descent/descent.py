"""Descent over non-negative scaling factors of bounded size, by spectral projected gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.solvers.geometry import project_on_simplex

Evaluate = Callable[[FloatArray], tuple[float, FloatArray]]

MEMORY = 10  # a step may rise above the last value, not above all of the last ten
SUFFICIENT = 1e-4  # share of the promised decrease that a step must deliver
SHORTEST = 1e-10  # fraction of a step below which a line search gives up
RESTING = 50  # iterations over which the value is watched
REST_SHARE = 1e-3  # of the tolerance: a smaller relative decrease over these iterations is rest
NO_DECREASE = (
    "the line search found no decrease: the criterion has a kink there. Change C or choose another criterion."
)


class Region(ABC):
    """Where the factors may be."""

    @abstractmethod
    def project(self, point: FloatArray) -> FloatArray:
        """The nearest point of the region."""

    @abstractmethod
    def lowest(self, slope: FloatArray) -> float:
        """The smallest inner product of a point of the region with ``slope``."""


@dataclass(frozen=True)
class ConstantSum(Region):
    """Non-negative factors with a fixed sum."""

    total: float

    def project(self, point: FloatArray) -> FloatArray:
        return self.total * project_on_simplex(point / self.total)

    def lowest(self, slope: FloatArray) -> float:
        return self.total * float(slope.min())


@dataclass(frozen=True)
class UnitBox(Region):
    """Each factor between 0 and 1."""

    def project(self, point: FloatArray) -> FloatArray:
        return np.clip(point, 0.0, 1.0)

    def lowest(self, slope: FloatArray) -> float:
        return float(np.minimum(slope, 0.0).sum())


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a descent ended; ``gap`` is the decrease that the slope there still promises, relative to the value."""

    point: FloatArray
    value: float
    slope: FloatArray
    gap: float
    n_iter: int
    converged: bool
    remedy: str


def descend(evaluate: Evaluate, start: FloatArray, region: Region, *, tol: float, max_iter: int) -> Descent:
    r"""Follow the projected gradient with steps of Barzilai and Borwein (Birgin, Martínez & Raydan 2000).

    The descent ends where the slope g promises no more than a fraction ``tol`` of the value,

    .. math:: g^\top x - \min_{s} g^\top s \le \mathrm{tol}\,|f(x)|, \qquad s \text{ in the region},

    which for a convex criterion bounds the distance from the smallest value. It also ends where the value itself
    has come to rest: that is the best one can see where the criterion has kinks.

    Parameters
    ----------
    evaluate : value and slope at a point; a value of infinity is a point to keep away from.
    start : projected on the region first; its value must be finite.
    """
    state = _State(evaluate, region.project(start), region)
    remedy = ""
    while not state.is_stationary(tol) and not state.is_at_rest(tol):
        if state.n_iter >= max_iter:
            remedy = "raise max_iter or loosen tol."
            break
        if not state.step():
            remedy = NO_DECREASE
            break
    return Descent(state.x, state.value, state.slope, state.gap, state.n_iter, remedy == "", remedy)


class _State:
    """The current point and the length of the next step."""

    def __init__(self, evaluate: Evaluate, x: FloatArray, region: Region) -> None:
        self.evaluate, self.region, self.x = evaluate, region, x
        self.value, self.slope = evaluate(x)
        steepest = float(np.abs(self.slope).max(initial=0.0))
        self.unit_length = 1.0 / steepest if steepest > 0.0 else 1.0
        self.length = self.unit_length
        self.recent: deque[float] = deque([self.value], maxlen=MEMORY)
        self.lowest: deque[float] = deque([self.value], maxlen=RESTING + 1)
        self.n_iter = 0

    @property
    def gap(self) -> float:
        promised = float(self.slope @ self.x) - self.region.lowest(self.slope)
        return promised / max(abs(self.value), np.finfo(float).tiny)

    def is_stationary(self, tol: float) -> bool:
        return self.gap <= tol

    def is_at_rest(self, tol: float) -> bool:
        if len(self.lowest) <= RESTING:
            return False
        return self.lowest[0] - self.lowest[-1] <= REST_SHARE * tol * abs(self.lowest[-1])

    def step(self) -> bool:
        """One step down; False when no decrease is found."""
        self.n_iter += 1
        if self._search(self.length):
            return True
        # The curvature seen last may mislead: try once more with the cautious first length.
        return self.length != self.unit_length and self._search(self.unit_length)

    def _search(self, length: float) -> bool:
        direction = self.region.project(self.x - length * self.slope) - self.x
        descent = float(self.slope @ direction)
        if descent >= 0.0:
            return False
        reference, fraction = max(self.recent), 1.0
        while fraction >= SHORTEST:
            x = self.x + fraction * direction
            value, slope = self.evaluate(x)
            if value <= reference + SUFFICIENT * fraction * descent:
                self._move(x, value, slope)
                return True
            excess = value - self.value - fraction * descent
            parabola = -0.5 * fraction**2 * descent / excess if np.isfinite(excess) and excess > 0.0 else 0.0
            fraction = min(max(parabola, 0.1 * fraction), 0.5 * fraction)
        return False

    def _move(self, x: FloatArray, value: float, slope: FloatArray) -> None:
        moved, turned = x - self.x, slope - self.slope
        curvature = float(moved @ turned)
        longest, shortest = 1e10 * self.unit_length, 1e-10 * self.unit_length
        length = float(moved @ moved) / curvature if curvature > 0.0 else 10.0 * self.length
        self.length = min(max(length, shortest), longest)
        self.x, self.value, self.slope = x, value, slope
        self.recent.append(value)
        self.lowest.append(min(value, self.lowest[-1]))
