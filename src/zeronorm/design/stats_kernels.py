"""Compiled sweeps behind `ColumnStats`: each value is read from memory once.

Means and sums of squared deviations are found in two steps on values that are still in the cache,
and tiles of rows are merged by the update of Chan, Golub and LeVeque: large means do not cancel.

The dense sweeps visit the rows in the given ``order``, class after class: class c owns the entries
``bounds[c]:bounds[c + 1]``. Classes are padded with repeated rows of weight zero so that several rows
can be handled at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel

Array = NDArray[np.float64]
Positions = NDArray[np.intp]

ROWS_AT_A_TIME = 4
LANES = 32
_TILE_ROWS = 64  # a tile of 64 x 512 values stays in the second-level cache
_TILE_COLUMNS = 512


@kernel
def rows_stats(
    X: NDArray[Any],
    source: int,
    target: int,
    n_columns: int,
    order: Positions,
    weights: Array,
    bounds: Positions,
    mean: Array,
    sum_sq: Array,
    low: Array,
    high: Array,
) -> None:
    """Statistics of C-ordered columns ``source``... of X, written to ``target``..."""
    tile_mean = np.zeros(_TILE_COLUMNS)
    tile_sq = np.zeros(_TILE_COLUMNS)
    for start in range(0, n_columns, _TILE_COLUMNS):
        m = min(_TILE_COLUMNS, n_columns - start)
        left, out = source + start, target + start
        for c in range(mean.shape[0]):
            seen = 0.0
            for top in range(bounds[c], bounds[c + 1], _TILE_ROWS):
                rows = order[top : min(top + _TILE_ROWS, bounds[c + 1])]
                w = weights[top : top + rows.shape[0]]
                _tile_sums(X, left, rows, w, tile_mean[:m], low[out : out + m], high[out : out + m])
                tile_mean /= w.sum()
                _tile_deviations(X, left, rows, w, tile_mean[:m], tile_sq[:m])
                _merge(w.sum(), tile_mean, tile_sq, seen, mean[c, out : out + m], sum_sq[c, out : out + m])
                seen += w.sum()


@kernel
def _tile_sums(
    X: NDArray[Any], left: int, rows: Positions, w: Array, total: Array, low: Array, high: Array
) -> None:
    m = total.shape[0]
    total[:] = 0.0
    for i in range(0, rows.shape[0], 4):
        first = X[rows[i], left : left + m]
        second = X[rows[i + 1], left : left + m]
        third = X[rows[i + 2], left : left + m]
        fourth = X[rows[i + 3], left : left + m]
        wa, wb, wc, wd = w[i], w[i + 1], w[i + 2], w[i + 3]
        for j in range(m):
            a, b, c, d = (
                np.float64(first[j]),
                np.float64(second[j]),
                np.float64(third[j]),
                np.float64(fourth[j]),
            )
            total[j] += (wa * a + wb * b) + (wc * c + wd * d)
            ab = a if a < b else b
            cd = c if c < d else d
            smallest = ab if ab < cd else cd
            low[j] = smallest if smallest < low[j] else low[j]
            ab = a if a > b else b
            cd = c if c > d else d
            largest = ab if ab > cd else cd
            high[j] = largest if largest > high[j] else high[j]


@kernel
def _tile_deviations(
    X: NDArray[Any], left: int, rows: Positions, w: Array, center: Array, sum_sq: Array
) -> None:
    m = center.shape[0]
    sum_sq[:] = 0.0
    for i in range(0, rows.shape[0], 4):
        first = X[rows[i], left : left + m]
        second = X[rows[i + 1], left : left + m]
        third = X[rows[i + 2], left : left + m]
        fourth = X[rows[i + 3], left : left + m]
        wa, wb, wc, wd = w[i], w[i + 1], w[i + 2], w[i + 3]
        for j in range(m):
            a, b, c, d = (
                first[j] - center[j],
                second[j] - center[j],
                third[j] - center[j],
                fourth[j] - center[j],
            )
            sum_sq[j] += (wa * a * a + wb * b * b) + (wc * c * c + wd * d * d)


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
    source: int,
    target: int,
    n_columns: int,
    order: Positions,
    weights: Array,
    bounds: Positions,
    mean: Array,
    sum_sq: Array,
    low: Array,
    high: Array,
) -> None:
    """The same for ``columns``, the C-ordered transpose of X."""
    values = np.zeros(order.shape[0])
    class_weight = np.zeros(mean.shape[0])
    for c in range(mean.shape[0]):
        class_weight[c] = weights[bounds[c] : bounds[c + 1]].sum()
    total, lane_low, lane_high = np.zeros(LANES), np.zeros(LANES), np.zeros(LANES)
    for j in range(n_columns):
        column = columns[source + j]
        for i in range(order.shape[0]):
            values[i] = column[order[i]]
        lane_low[:] = np.inf
        lane_high[:] = -np.inf
        for c in range(mean.shape[0]):
            x = values[bounds[c] : bounds[c + 1]]
            if x.shape[0] > 0:
                w = weights[bounds[c] : bounds[c + 1]]
                _lane_sums(x, w, total, lane_low, lane_high)
                center = total.sum() / class_weight[c]
                _lane_deviations(x, w, center, total)
                mean[c, target + j] = center
                sum_sq[c, target + j] = total.sum()
        low[target + j] = lane_low.min()
        high[target + j] = lane_high.max()


@kernel
def _lane_sums(x: Array, w: Array, total: Array, low: Array, high: Array) -> None:
    """Independent sums in each lane, which the processor can add side by side."""
    total[:] = 0.0
    for i in range(0, x.shape[0], total.shape[0]):
        values = x[i : i + total.shape[0]]
        lane_weights = w[i : i + total.shape[0]]
        for k in range(total.shape[0]):
            value = values[k]
            total[k] += lane_weights[k] * value
            low[k] = value if value < low[k] else low[k]
            high[k] = value if value > high[k] else high[k]


@kernel
def _lane_deviations(x: Array, w: Array, center: float, total: Array) -> None:
    total[:] = 0.0
    for i in range(0, x.shape[0], total.shape[0]):
        values = x[i : i + total.shape[0]]
        lane_weights = w[i : i + total.shape[0]]
        for k in range(total.shape[0]):
            deviation = values[k] - center
            total[k] += lane_weights[k] * deviation * deviation


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
