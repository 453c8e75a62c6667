r"""The knockoff filter: thresholds, e-values, and what n samples and p features can give."""

from __future__ import annotations

import math

import numpy as np

from zeronorm._types import FloatArray

# Level of the filter of one draw, relative to that of the selection from all draws (Ren & Barber 2024). At the full
# level a feature would have to pass in every draw.
LEVEL_OF_A_DRAW = 0.5


def knockoff_threshold(statistics: FloatArray, level: float, offset: int, stricter: float = 1.0) -> float:
    r"""The smallest t at which the estimated share of false discoveries is within the level, else infinity.

    With ``stricter`` below 1 the share must be within that part of the level as long as so many features exceed t that
    this is possible at all. The rule uses only the counts of statistics beyond t and -t, so that t is a stopping time
    of the supermartingale :math:`\#\{\text{null } W_j \ge t\} / (1 + \#\{\text{null } W_j \le -t\})`.
    """
    sizes = np.unique(np.abs(statistics[statistics != 0]))
    ordered = np.sort(statistics)
    above = np.maximum(1, ordered.size - np.searchsorted(ordered, sizes, side="left"))
    below = np.searchsorted(ordered, -sizes, side="right")
    levels = np.where(stricter * level * above >= 1, stricter * level, level)
    within = np.flatnonzero(offset + below <= levels * above)
    return float(sizes[within[0]]) if within.size else float("inf")


def knockoff_e_values(statistics: FloatArray, level: float) -> FloatArray:
    r"""E-values of one draw, :math:`e_j = p\, 1\{W_j \ge T\} / (1 + \#\{W_k \le -T\})`, for a selection at a level."""
    threshold = knockoff_threshold(statistics, level, 1, LEVEL_OF_A_DRAW)
    false = 1 + int(np.sum(statistics <= -threshold))
    return np.where(statistics >= threshold, statistics.size / false, 0.0)


def n_passing_e_values(e_values: FloatArray, level: float) -> int:
    """How many features the e-value version of Benjamini and Hochberg keeps."""
    p = e_values.size
    enough = np.sort(e_values)[::-1] * np.arange(1, p + 1) * level >= p * (1 - 1e-12)
    return int(np.flatnonzero(enough)[-1]) + 1 if enough.any() else 0


def samples_needed(n_features: int, n_relevant: int) -> float:
    r"""Samples below which :math:`k` relevant among p features are not found, :math:`2 k \log(p / k)`.

    The number of samples at which the Lasso finds the support of a linear model (Wainwright 2009), also without noise.
    """
    return 2.0 * n_relevant * math.log(max(n_features / n_relevant, 1.0))
