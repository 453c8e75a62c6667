"""From values to places on the page, and round numbers for the axes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic map from [low, high] to [start, end]."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high, v = (math.log(x) if self.is_log else x for x in (self.low, self.high, value))
        share = 0.5 if high == low else (v - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values within the range."""
        return _log_ticks(self.low, self.high) if self.is_log else _linear_ticks(self.low, self.high)


def _linear_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    if high <= low:
        return [low]
    raw = (high - low) / wanted
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … within the range, thinned to at most eight."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**p for p in powers for m in (1, 2, 5)]
    inside = [t for t in ticks if low * 0.999 <= t <= high * 1.001]
    if len(inside) > 8:
        inside = [t for t in inside if np.isclose(t, 10.0 ** round(math.log10(t)))]
    return inside or [low, high]


def padded(low: float, high: float, share: float = 0.06) -> tuple[float, float]:
    """A range with room around the values."""
    room = (high - low) * share or abs(high) * share or 1.0
    return low - room, high + room
