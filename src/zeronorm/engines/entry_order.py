"""Paths along which features enter, leave and come back: the order of their first entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray, IntArray
from zeronorm.selection.path import SelectionPath


def relative(values: FloatArray) -> FloatArray:
    """Values divided by the largest, which becomes one unless all are zero."""
    return np.asarray(values / max(float(values.max(initial=0.0)), np.finfo(float).tiny))


def entry_scores(
    supports: Sequence[IntArray],
    levels: ArrayLike,
    never: FloatArray,
    strengths: Sequence[FloatArray] | None = None,
) -> FloatArray:
    """Scores by which a feature that enters at a higher level stands before one that enters at a lower.

    ``levels`` belong to the supports, from high to low. Features that enter together are ordered by their
    ``strengths`` (not negative, one for each feature of each support); those that never enter follow in the
    order of ``never``, which is not negative either.
    """
    level = np.asarray(levels, dtype=np.float64)
    scores = np.zeros(never.size)
    above = np.inf
    for step, support in enumerate(supports):
        new = scores[support] == 0.0
        # Half way to the level above at most, so that strength never outranks an earlier entry.
        room = 0.5 * min(above / level[step] - 1.0, 1.0)
        strength = np.zeros(support.size) if strengths is None else relative(strengths[step])
        scores[support[new]] = level[step] * (1.0 + room * strength[new])
        if new.any():
            above = level[step]
    lowest = float(scores[scores > 0].min(initial=np.inf))
    rest = 0.5 * (lowest if np.isfinite(lowest) else 1.0) * relative(never)
    return np.where(scores > 0.0, scores, rest)


def path_of_entries(
    supports: Sequence[IntArray],
    levels: ArrayLike,
    never: FloatArray,
    strengths: Sequence[FloatArray] | None = None,
    **fields: Any,
) -> SelectionPath:
    """The path of these supports; features are ordered by their first entry."""
    scores = entry_scores(supports, levels, never, strengths)
    return SelectionPath.from_subsets(
        [support for support in supports if support.size],
        n_features=never.size,
        tie_break=scores,
        scores=scores,
        **fields,
    )
