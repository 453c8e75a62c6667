"""Paths along which features enter, leave and come back: the order of their first entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm.selectors.path import SelectionPath

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def entry_scores(supports: Sequence[IntArray], levels: ArrayLike, never: FloatArray) -> FloatArray:
    """The highest level at which each feature is in a support.

    ``levels`` belong to the supports. Features that never enter follow below all that do, in the order of ``never``,
    which is not negative.
    """
    entered = np.zeros(never.size)
    for support, level in zip(supports, np.asarray(levels, dtype=np.float64), strict=True):
        entered[support] = np.maximum(entered[support], level)
    lowest = float(entered[entered > 0].min(initial=1.0 if not entered.any() else np.inf))
    highest = max(float(never.max(initial=0.0)), np.finfo(float).tiny)
    return np.where(entered > 0, entered, 0.5 * lowest * never / highest)


def path_of_entries(
    supports: Sequence[IntArray], levels: ArrayLike, never: FloatArray, **fields: Any
) -> SelectionPath:
    """The path of these supports; features are ordered by their first entry."""
    scores = entry_scores(supports, levels, never)
    visited = [i for i, support in enumerate(supports) if support.size]
    if fields.get("objective") is not None:
        fields["objective"] = np.asarray(fields["objective"])[visited]
    return SelectionPath.from_subsets(
        [supports[i] for i in visited], n_features=never.size, tie_break=scores, scores=scores, **fields
    )
