"""Compiled sweeps behind `ColumnStats`: each value is read from memory once.

The dense sweeps visit the rows in the given ``order``, class after class: class c owns the entries
``bounds[c]:bounds[c + 1]``. Classes are padded with repeated rows of weight zero so that several rows
can be handled at a time.

Moments are taken about a preliminary center, the mean of the first k samples of the class. It cannot be
further from the mean of all m samples than sqrt(m / k) standard deviations, so at most the factor
1 + m / k is lost by cancellation, however large the mean is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel

Array = NDArray[np.float64]
Positions = NDArray[np.intp]

ROWS_AT_A_TIME = 8
LANES = 32
_CENTER_SAMPLES = 16
_TILE_COLUMNS = 8192


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
    center, first, second = np.zeros(_TILE_COLUMNS), np.zeros(_TILE_COLUMNS), np.zeros(_TILE_COLUMNS)
    for start in range(0, n_columns, _TILE_COLUMNS):
        m = min(_TILE_COLUMNS, n_columns - start)
        left, out = source + start, target + start
        for c in range(mean.shape[0]):
            rows, w = order[bounds[c] : bounds[c + 1]], weights[bounds[c] : bounds[c + 1]]
            if rows.shape[0] > 0:
                _row_center(X, left, rows[:_CENTER_SAMPLES], w, center[:m])
                _row_moments(
                    X, left, rows, w, center[:m], first, second, low[out : out + m], high[out : out + m]
                )
                total = w.sum()
                for j in range(m):
                    mean[c, out + j] = center[j] + first[j] / total
                    sum_sq[c, out + j] = max(0.0, second[j] - first[j] * first[j] / total)


@kernel
def _row_center(X: NDArray[Any], left: int, rows: Positions, w: Array, center: Array) -> None:
    center[:] = 0.0
    total = 0.0
    for i in range(rows.shape[0]):
        total += w[i]
        x = X[rows[i], left : left + center.shape[0]]
        for j in range(center.shape[0]):
            center[j] += w[i] * x[j]
    for j in range(center.shape[0]):
        center[j] /= total


@kernel
def _row_moments(
    X: NDArray[Any],
    left: int,
    rows: Positions,
    w: Array,
    center: Array,
    first: Array,
    second: Array,
    low: Array,
    high: Array,
) -> None:
    """First and second moments about ``center``; eight rows at a time spare the sums in memory."""
    m = center.shape[0]
    first[:] = 0.0
    second[:] = 0.0
    for i in range(0, rows.shape[0], 8):
        row_a, row_b = X[rows[i], left : left + m], X[rows[i + 1], left : left + m]
        row_c, row_d = X[rows[i + 2], left : left + m], X[rows[i + 3], left : left + m]
        row_e, row_f = X[rows[i + 4], left : left + m], X[rows[i + 5], left : left + m]
        row_g, row_h = X[rows[i + 6], left : left + m], X[rows[i + 7], left : left + m]
        wa, wb, wc, wd, we, wf, wg, wh = (
            w[i],
            w[i + 1],
            w[i + 2],
            w[i + 3],
            w[i + 4],
            w[i + 5],
            w[i + 6],
            w[i + 7],
        )
        for j in range(m):
            a, b, c, d = row_a[j], row_b[j], row_c[j], row_d[j]
            e, f, g, h = row_e[j], row_f[j], row_g[j], row_h[j]
            smallest = _smaller(_smallest(a, b, c, d), _smallest(e, f, g, h))
            low[j] = smallest if smallest < low[j] else low[j]
            largest = _larger(_largest(a, b, c, d), _largest(e, f, g, h))
            high[j] = largest if largest > high[j] else high[j]
            a, b, c, d = a - center[j], b - center[j], c - center[j], d - center[j]
            e, f, g, h = e - center[j], f - center[j], g - center[j], h - center[j]
            first[j] += ((wa * a + wb * b) + (wc * c + wd * d)) + ((we * e + wf * f) + (wg * g + wh * h))
            second[j] += ((wa * a * a + wb * b * b) + (wc * c * c + wd * d * d)) + (
                (we * e * e + wf * f * f) + (wg * g * g + wh * h * h)
            )


@kernel
def _smaller(a: float, b: float) -> float:
    return a if a < b else b


@kernel
def _larger(a: float, b: float) -> float:
    return a if a > b else b


@kernel
def _smallest(a: float, b: float, c: float, d: float) -> float:
    return _smaller(_smaller(a, b), _smaller(c, d))


@kernel
def _largest(a: float, b: float, c: float, d: float) -> float:
    return _larger(_larger(a, b), _larger(c, d))


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
    class_weight = np.zeros(mean.shape[0])
    for c in range(mean.shape[0]):
        class_weight[c] = weights[bounds[c] : bounds[c + 1]].sum()
    values = np.zeros((4, order.shape[0]))
    lanes = np.zeros(4 * LANES)
    for j in range(n_columns):
        if j % 4 == 0:
            _gather_four(columns, source + j, source + n_columns - 1, order, values)
        lanes[2 * LANES : 3 * LANES] = np.inf
        lanes[3 * LANES :] = -np.inf
        for c in range(mean.shape[0]):
            x, w = values[j % 4, bounds[c] : bounds[c + 1]], weights[bounds[c] : bounds[c + 1]]
            if x.shape[0] > 0:
                center = _center(x[:_CENTER_SAMPLES], w)
                _lane_moments(x, w, center, lanes)
                _fold_moments(lanes)
                shift = _sum_of_eight(lanes) / class_weight[c]
                mean[c, target + j] = center + shift
                sum_sq[c, target + j] = max(
                    0.0, _sum_of_eight(lanes[LANES:]) - shift * shift * class_weight[c]
                )
        _fold_ranges(lanes)
        low[target + j] = lanes[2 * LANES : 2 * LANES + 8].min()
        high[target + j] = lanes[3 * LANES : 3 * LANES + 8].max()


@kernel
def _gather_four(columns: NDArray[Any], first: int, last: int, order: Positions, values: Array) -> None:
    """Write the rows of four columns, class after class, into ``values``; the last column may repeat."""
    a, b = columns[first], columns[min(first + 1, last)]
    c, d = columns[min(first + 2, last)], columns[min(first + 3, last)]
    out_a, out_b, out_c, out_d = values[0], values[1], values[2], values[3]
    for i in range(order.shape[0]):
        row = order[i]
        out_a[i], out_b[i], out_c[i], out_d[i] = a[row], b[row], c[row], d[row]


@kernel
def _center(x: Array, w: Array) -> float:
    total, weight = 0.0, 0.0
    for i in range(x.shape[0]):
        total += w[i] * x[i]
        weight += w[i]
    return total / weight


@kernel
def _lane_moments(x: Array, w: Array, center: float, lanes: Array) -> None:
    """Set first and second moments, and add to minima and maxima, in each lane.

    Lanes are independent and their four parts are in one array, so that they are handled side by side.
    """
    lanes[: 2 * LANES] = 0.0
    fours = x.shape[0] // (4 * LANES) * (4 * LANES)
    for i in range(0, fours, 4 * LANES):
        _add_four_to_lanes(x[i : i + 4 * LANES], w[i : i + 4 * LANES], center, lanes)
    for i in range(fours, x.shape[0], LANES):
        values = x[i : i + LANES]
        lane_weights = w[i : i + LANES]
        for k in range(LANES):
            value = values[k]
            deviation = value - center
            weighted = lane_weights[k] * deviation
            lanes[k] += weighted
            lanes[LANES + k] += weighted * deviation
            lanes[2 * LANES + k] = _smaller(value, lanes[2 * LANES + k])
            lanes[3 * LANES + k] = _larger(value, lanes[3 * LANES + k])


@kernel
def _add_four_to_lanes(x: Array, w: Array, center: float, lanes: Array) -> None:
    """The same for four values of each lane: they are summed before the lane is touched."""
    for k in range(LANES):
        a, b, c, d = x[k], x[LANES + k], x[2 * LANES + k], x[3 * LANES + k]
        lanes[2 * LANES + k] = _smaller(_smallest(a, b, c, d), lanes[2 * LANES + k])
        lanes[3 * LANES + k] = _larger(_largest(a, b, c, d), lanes[3 * LANES + k])
        a, b, c, d = a - center, b - center, c - center, d - center
        wa, wb = w[k] * a, w[LANES + k] * b
        wc, wd = w[2 * LANES + k] * c, w[3 * LANES + k] * d
        lanes[k] += (wa + wb) + (wc + wd)
        lanes[LANES + k] += (wa * a + wb * b) + (wc * c + wd * d)


@kernel
def _fold_moments(lanes: Array) -> None:
    """Add the moments of all lanes to the first eight."""
    for half in (16, 8):
        for k in range(half):
            lanes[k] += lanes[half + k]
            lanes[LANES + k] += lanes[LANES + half + k]


@kernel
def _fold_ranges(lanes: Array) -> None:
    """Carry the extremes of all lanes to the first eight."""
    for half in (16, 8):
        for k in range(half):
            lanes[2 * LANES + k] = _smaller(lanes[2 * LANES + half + k], lanes[2 * LANES + k])
            lanes[3 * LANES + k] = _larger(lanes[3 * LANES + half + k], lanes[3 * LANES + k])


@kernel
def _sum_of_eight(x: Array) -> float:
    return float(((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])))


@kernel
def columns_range(columns: NDArray[Any], low: Array, high: Array) -> None:
    """Minimum and maximum of each row of ``columns``, the C-ordered transpose of X; NaN if a value is."""
    n = columns.shape[1]
    for j in range(columns.shape[0]):
        x = columns[j]
        low_a, low_b, high_a, high_b = np.inf, np.inf, -np.inf, -np.inf
        total = 0.0
        for i in range(0, n - 1, 2):
            a, b = np.float64(x[i]), np.float64(x[i + 1])
            low_a, low_b = _smaller(a, low_a), _smaller(b, low_b)
            high_a, high_b = _larger(a, high_a), _larger(b, high_b)
            total += a + b
        last = np.float64(x[n - 1])
        missing = np.isnan(total + last)
        low[j] = np.nan if missing else _smaller(last, _smaller(low_a, low_b))
        high[j] = np.nan if missing else _larger(last, _larger(high_a, high_b))


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
