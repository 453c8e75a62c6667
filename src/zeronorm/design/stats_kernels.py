"""Compiled sweeps behind `ColumnStats`: each value is read from memory once.

Means and sums of squared deviations are found in two steps on a tile that stays in the cache, and
tiles are merged by the update of Chan, Golub and LeVeque, so that large means do not cancel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel

Array = NDArray[np.float64]

_TILE_COLUMNS = 256
_TILE_ROWS = 64
_LANES = 8


@kernel
def rows_stats(
    X: NDArray[Any],
    first: int,
    codes: NDArray[np.intp],
    weights: Array,
    mean: Array,
    sum_sq: Array,
    low: Array,
    high: Array,
) -> None:
    """Statistics of ``mean.shape[1]`` columns of a C-ordered ``X``, starting at column ``first``."""
    n = X.shape[0]
    q, p = mean.shape
    tile_rows = max(_TILE_ROWS, 4 * q)
    seen = np.zeros(q)
    tile_weight = np.zeros(q)
    tile_mean = np.zeros((q, _TILE_COLUMNS))
    tile_sq = np.zeros((q, _TILE_COLUMNS))
    for start in range(0, p, _TILE_COLUMNS):
        m = min(_TILE_COLUMNS, p - start)
        seen[:] = 0.0
        for top in range(0, n, tile_rows):
            bottom = min(top + tile_rows, n)
            tile_weight[:] = 0.0
            tile_mean[:] = 0.0
            tile_sq[:] = 0.0
            for i in range(top, bottom):
                if weights[i] > 0.0:
                    tile_weight[codes[i]] += weights[i]
                    x = X[i, first + start : first + start + m]
                    _add_row(x, weights[i], tile_mean[codes[i]], low[start:], high[start:])
            for c in range(q):
                if tile_weight[c] > 0.0:
                    tile_mean[c] /= tile_weight[c]
            for i in range(top, bottom):
                if weights[i] > 0.0:
                    x = X[i, first + start : first + start + m]
                    _add_deviations(x, weights[i], tile_mean[codes[i]], tile_sq[codes[i]])
            for c in range(q):
                if tile_weight[c] > 0.0:
                    _merge(
                        tile_weight[c],
                        tile_mean[c],
                        tile_sq[c],
                        seen[c],
                        mean[c, start : start + m],
                        sum_sq[c, start:],
                    )
                    seen[c] += tile_weight[c]


@kernel
def _add_row(x: NDArray[Any], weight: float, total: Array, low: Array, high: Array) -> None:
    for j in range(x.shape[0]):
        value = np.float64(x[j])
        total[j] += weight * value
        low[j] = value if value < low[j] else low[j]
        high[j] = value if value > high[j] else high[j]


@kernel
def _add_deviations(x: NDArray[Any], weight: float, center: Array, sum_sq: Array) -> None:
    for j in range(x.shape[0]):
        deviation = x[j] - center[j]
        sum_sq[j] += weight * deviation * deviation


@kernel
def _merge(
    new_weight: float, new_mean: Array, new_sq: Array, weight: float, mean: Array, sum_sq: Array
) -> None:
    """Merge the moments of new samples into those of the samples seen so far."""
    share = new_weight / (weight + new_weight)
    for j in range(mean.shape[0]):
        shift = new_mean[j] - mean[j]
        mean[j] += share * shift
        sum_sq[j] += new_sq[j] + share * weight * shift * shift


@kernel
def columns_stats(
    columns: NDArray[Any],
    first: int,
    codes: NDArray[np.intp],
    weights: Array,
    mean: Array,
    sum_sq: Array,
    low: Array,
    high: Array,
) -> None:
    """The same for ``columns``, the C-ordered transpose of X; a few columns go side by side."""
    n = columns.shape[1]
    q, p = mean.shape
    class_weight = np.zeros(q)
    for i in range(n):
        class_weight[codes[i]] += weights[i]
    center = np.zeros((q, _LANES))
    deviation_sq = np.zeros((q, _LANES))
    lowest = np.zeros(_LANES)
    highest = np.zeros(_LANES)
    lane = np.zeros(_LANES, dtype=np.intp)
    for start in range(0, p, _LANES):
        width = min(_LANES, p - start)
        for k in range(_LANES):  # idle lanes repeat the last column
            lane[k] = first + start + min(k, width - 1)
        center[:] = 0.0
        deviation_sq[:] = 0.0
        lowest[:] = np.inf
        highest[:] = -np.inf
        for i in range(n):
            if weights[i] > 0.0:
                total = center[codes[i]]
                for k in range(_LANES):
                    value = np.float64(columns[lane[k], i])
                    total[k] += weights[i] * value
                    lowest[k] = min(lowest[k], value)
                    highest[k] = max(highest[k], value)
        for c in range(q):
            if class_weight[c] > 0.0:
                center[c] /= class_weight[c]
        for i in range(n):
            if weights[i] > 0.0:
                for k in range(_LANES):
                    deviation = columns[lane[k], i] - center[codes[i], k]
                    deviation_sq[codes[i], k] += weights[i] * deviation * deviation
        mean[:, start : start + width] = center[:, :width]
        sum_sq[:, start : start + width] = deviation_sq[:, :width]
        low[start : start + width] = lowest[:width]
        high[start : start + width] = highest[:width]


@kernel
def sparse_stats(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    codes: NDArray[np.intp],
    weights: Array,
    class_weight: Array,
    n_counted: int,
    mean: Array,
    sum_sq: Array,
    low: Array,
    high: Array,
) -> None:
    """Statistics of compressed sparse columns; what is not stored is zero."""
    q, p = mean.shape
    stored_weight = np.zeros(q)
    for j in range(p):
        stored_weight[:] = 0.0
        stored = 0
        for k in range(indptr[j], indptr[j + 1]):
            weight = weights[indices[k]]
            if weight > 0.0:
                value = np.float64(data[k])
                c = codes[indices[k]]
                stored += 1
                stored_weight[c] += weight
                mean[c, j] += weight * value
                low[j] = min(low[j], value)
                high[j] = max(high[j], value)
        if stored < n_counted:
            low[j] = min(low[j], 0.0)
            high[j] = max(high[j], 0.0)
        for c in range(q):
            if class_weight[c] > 0.0:
                mean[c, j] /= class_weight[c]
                sum_sq[c, j] = (class_weight[c] - stored_weight[c]) * mean[c, j] ** 2
        for k in range(indptr[j], indptr[j + 1]):
            c = codes[indices[k]]
            sum_sq[c, j] += weights[indices[k]] * (data[k] - mean[c, j]) ** 2
