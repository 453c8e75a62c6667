"""Random halves of the samples, and what selection on them bounds.

Serves StabilitySelection and Consensus.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import IntArray


def false_selection_bound(
    size: int, n_features: int, threshold: float, *, n_pairs: int | None = None
) -> float:
    """Bound on the expected number of false selections; ``n_pairs`` gives the one for unimodal frequencies."""
    theta = size / n_features
    worst_case = theta * size / (2 * threshold - 1)
    if n_pairs is None:
        return worst_case
    step = 1 / (2 * n_pairs)
    if threshold <= min(0.5 + theta**2, 0.5 + step + 0.75 * theta**2):
        return worst_case
    if threshold <= 0.75:
        gap = 2 * threshold - 1 - step
        factor = 1 / (2 * gap) if gap > 0 else np.inf
    else:
        factor = 4 * (1 - threshold + step) / (1 + 2 * step)
    return float(min(worst_case, factor * theta * size))


def draw_halves(
    n_samples: int, strata: NDArray[Any] | None, count: int, in_pairs: bool, rng: np.random.Generator
) -> list[IntArray]:
    """Random halves of the rows; the classes keep their shares, so that every half can be learned from."""
    halves: list[IntArray] = []
    while len(halves) < count:
        left, right = _split_in_two(n_samples, strata, rng)
        halves += [left, right] if in_pairs else [left]
    return halves[:count]


def _split_in_two(
    n_samples: int, strata: NDArray[Any] | None, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Two disjoint halves of equal size; with an odd number of rows one is left out."""
    order = rng.permutation(n_samples)
    if strata is not None:
        # Alternating through rows sorted by class gives each half every other member of each class.
        order = order[np.argsort(strata[order], kind="stable")]
    half = n_samples // 2
    return np.sort(order[: 2 * half : 2]), np.sort(order[1 : 2 * half : 2])
