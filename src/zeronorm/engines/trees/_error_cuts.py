"""Growth of a tree by the number of errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.engines.trees._cuts import between, cuts
from zeronorm.engines.trees._nodes import Nodes

LEAST_GAIN = 1e-12  # smallest decrease of the Gini impurity, in samples, that counts as a split


def grow_by_error(
    data: NDArray[np.float32], y: NDArray[Any], n_classes: int, *, max_depth: int | None, min_leaf: int
) -> Nodes:
    """Split until the nodes are pure, each time with the fewest errors."""
    indicator = np.eye(n_classes)[y]
    rows: list[list[float]] = []
    waiting = [(np.arange(len(y)), 0, -1, 0)]  # samples, depth, parent, and index among its children
    while waiting:
        samples, depth, parent, side = waiting.pop()
        counts = indicator[samples].sum(axis=0)
        if parent >= 0:
            rows[parent][2 + side] = len(rows)
        rows.append([-1, 0.0, -1, -1, (samples.size - counts.max()) / len(y), float(counts.argmax())])
        if (max_depth is not None and depth >= max_depth) or counts.max() == samples.size:
            continue
        split = fewest_errors(data[samples], indicator[samples], min_leaf)
        if split is not None:
            rows[-1][:2] = split
            goes_left = data[samples, split[0]] <= split[1]
            waiting += [
                (samples[~goes_left], depth + 1, len(rows) - 1, 1),
                (samples[goes_left], depth + 1, len(rows) - 1, 0),
            ]
    columns = list(zip(*rows, strict=True))
    feature, left, right = (np.asarray(columns[i], dtype=np.intp) for i in (0, 2, 3))
    threshold, cost, value = (np.asarray(columns[i], dtype=np.float64) for i in (1, 4, 5))
    return Nodes(feature, threshold, left, right, cost, value)


def fewest_errors(
    data: NDArray[np.float32], indicator: FloatArray, min_leaf: int
) -> tuple[int, float] | None:
    """Column and threshold of the split with the fewest errors; ties: the least Gini impurity, the lowest column."""
    n = len(data)
    if n < 2 * min_leaf:
        return None
    total = indicator.sum(axis=0)
    size = np.arange(1, n)[:, None]
    best, found = (np.inf, np.inf), None
    for start, values, inside, outside, allowed in cuts(data, indicator, min_leaf):
        errors = n - inside.max(axis=2) - outside.max(axis=2)
        impurity = n - (inside**2).sum(axis=2) / size - (outside**2).sum(axis=2) / (n - size)
        helps = allowed & (impurity < n - (total**2).sum() / n - LEAST_GAIN * n)
        if not helps.any():
            continue
        errors = np.where(helps, errors, np.inf)
        impurity = np.where(errors == errors.min(), impurity, np.inf)
        column = int(np.argmax((impurity <= impurity.min() + LEAST_GAIN * n).any(axis=0)))
        row = int(np.argmin(impurity[:, column]))
        here = (float(errors[row, column]), float(impurity[row, column]))
        if here[0] < best[0] or (here[0] == best[0] and here[1] < best[1] - LEAST_GAIN * n):
            threshold = between(values[row, column], values[row + 1, column])
            best, found = here, (start + column, threshold)
    return found
