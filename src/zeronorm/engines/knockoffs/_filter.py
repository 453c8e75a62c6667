r"""The knockoff filter: thresholds, e-values, and what n samples and p features can give."""

from __future__ import annotations

import math

import numpy as np

from zeronorm._types import FloatArray


def knockoff_threshold(statistics: FloatArray, level: float, offset: int) -> float:
    """The smallest t at which the estimated share of false discoveries is within the level, else infinity."""
    sizes = np.unique(np.abs(statistics[statistics != 0]))
    ordered = np.sort(statistics)
    above = ordered.size - np.searchsorted(ordered, sizes, side="left")
    below = np.searchsorted(ordered, -sizes, side="right")
    within = np.flatnonzero(offset + below <= level * np.maximum(1, above))
    return float(sizes[within[0]]) if within.size else float("inf")


def knockoff_e_values(statistics: FloatArray, level: float) -> FloatArray:
    """E-values of one draw, filtered at ``level``."""
    threshold = knockoff_threshold(statistics, level, offset=1)
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
