"""The path of the final fit: which features are in the subset of each size, and the objective."""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm.selection.path import SelectionPath

MOST_FEATURES = 40
MOST_SIZES = 40
MOST_RANKED = 200
MOST_LINES = 10


def path_figure(path: SelectionPath, largest: int) -> dict[str, Any] | None:
    """Membership of the leading features over the sizes up to ``largest``, and the objective where known."""
    sizes = _sizes(path, largest)
    if len(sizes) < 2:
        return None
    subsets = {size: set(path.support(size).tolist()) for size in sizes}
    ever = set().union(*subsets.values())
    features = [int(index) for index in path.order if index in ever][:MOST_FEATURES]
    return {
        "sizes": sizes,
        "features": features,
        "members": [[int(index in subsets[size]) for size in sizes] for index in features],
        "is_nested": path.is_nested,
        "objective": _objective(path),
    }


def leading_features(path: SelectionPath, n_selected: int) -> list[int]:
    """The features at the head of the order: those selected and as many again, at most 200."""
    return [int(index) for index in path.order[: min(path.n_features, MOST_RANKED, max(40, 2 * n_selected))]]


def weights_over_time(selector: Any, features: list[int]) -> dict[str, Any] | None:
    """Feature weights at the snapshots of a method that learns them step by step.

    A method offers them as ``history_`` with ``steps`` and ``weights`` (snapshots by features).
    """
    history: Any = getattr(selector, "history_", None)
    weights = getattr(history, "weights", None)
    if weights is None or len(weights) < 2 or not features:
        return None
    shown = features[:MOST_LINES]
    values = np.asarray(weights, dtype=np.float64)[:, shown].T
    return {"steps": [int(step) for step in history.steps], "features": shown, "values": values.tolist()}


def _sizes(path: SelectionPath, largest: int) -> list[int]:
    """Up to 40 sizes the path can give, spread evenly on a logarithmic scale."""
    smallest = int(path.sizes[0]) if path.sizes.size and path.groups is not None else 1
    smallest = max(smallest, int(path.always_keep.size), 1)
    largest = min(max(largest, smallest), path.n_features)
    if largest - smallest < MOST_SIZES:
        return list(range(smallest, largest + 1))
    grid = np.unique(np.geomspace(smallest, largest, MOST_SIZES).round().astype(int))
    return [int(size) for size in grid]


def _objective(path: SelectionPath) -> list[tuple[int, float]] | None:
    if path.objective is None:
        return None
    sizes = [len(s) for s in path.subsets] if path.subsets is not None else path.visited_sizes
    if sizes is None or len(sizes) != len(path.objective):
        return None
    pairs = [(int(s), float(v)) for s, v in zip(sizes, path.objective, strict=True) if np.isfinite(v)]
    return pairs[:MOST_RANKED] or None
