"""Ratios that stay finite where a feature has no spread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def safe_ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """0/0 is 0; a positive number over 0 is the largest finite ratio, doubled."""
    ratio = np.zeros_like(numerator)
    proper = denominator > 0
    with np.errstate(over="ignore"):  # a denominator next to zero counts as zero
        np.divide(numerator, denominator, out=ratio, where=proper)
    perfect = (~proper | np.isinf(ratio)) & (numerator > 0)
    if np.any(perfect):
        ratio[perfect] = 2.0 * max(1.0, float(ratio[~perfect].max(initial=0.0)))
    return ratio
