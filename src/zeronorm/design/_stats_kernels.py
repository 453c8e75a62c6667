"""Compiled loops that compute `ColumnStats` in one pass over the data.

The loops for dense data visit the rows in the given ``order``, class after class: the rows of class c are the entries
``bounds[c]:bounds[c + 1]``. Classes are padded with repeated rows of weight zero so that several rows
can be handled at a time.

Moments are taken about a preliminary center, the mean of the first k samples of the class. It differs from the mean
of all m samples by at most sqrt(m / k) standard deviations, so cancellation increases rounding errors at most by the
factor 1 + m / k, however large the mean is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel
from zeronorm._types import FloatArray

Positions = NDArray[np.intp]

ROWS_AT_A_TIME = 8
CENTER_SAMPLES = 16
LARGEST_VALUE = 1e150  # squares of larger values, summed over samples, overflow
_TILE_COLUMNS = 8192
_BLOCK_COLUMNS = 64
_BLOCK_ROWS = 512


@kernel
def rows_stats(
    X: NDArray[Any],
    source: int,
    target: int,
    n_columns: int,
    order: Positions,
    weights: FloatArray,
    bounds: Positions,
    mean: FloatArray,
    sum_sq: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> None:
    """Statistics of columns of a C-ordered X from index ``source`` on, written from index ``target`` on."""
    center, first, second = np.zeros(_TILE_COLUMNS), np.zeros(_TILE_COLUMNS), np.zeros(_TILE_COLUMNS)
    for start in range(0, n_columns, _TILE_COLUMNS):
        m = min(_TILE_COLUMNS, n_columns - start)
        left, out = source + start, target + start
        for c in range(mean.shape[0]):
            rows, w = order[bounds[c] : bounds[c + 1]], weights[bounds[c] : bounds[c + 1]]
            if rows.shape[0] > 0:
                total = _zeroed_sum(first, second, w)
                _row_center(X, left, rows[:CENTER_SAMPLES], w, center[:m])
                _add_row_moments(
                    X, left, rows, w, center[:m], first, second, low[out : out + m], high[out : out + m]
                )
                _write_moments(
                    center[:m], first, second, total, mean[c, out : out + m], sum_sq[c, out : out + m]
                )


@kernel
def _zeroed_sum(first: FloatArray, second: FloatArray, weights: FloatArray) -> float:
    """Set both vectors to zero; returns the sum of the weights. NumPy's functions take half a second to compile."""
    total = 0.0
    for j in range(first.shape[0]):
        first[j] = second[j] = 0.0
    for weight in weights:
        total += weight
    return total


@kernel
def _write_moments(
    center: FloatArray,
    first: FloatArray,
    second: FloatArray,
    total: float,
    mean: FloatArray,
    sum_sq: FloatArray,
) -> None:
    for j in range(center.shape[0]):
        mean[j] = center[j] + first[j] / total
        sum_sq[j] = max(0.0, second[j] - first[j] * first[j] / total)


@kernel
def _row_center(X: NDArray[Any], left: int, rows: Positions, w: FloatArray, center: FloatArray) -> None:
    total = 0.0
    for j in range(center.shape[0]):
        center[j] = 0.0
    for i in range(rows.shape[0]):
        total += w[i]
        x = X[rows[i], left : left + center.shape[0]]
        for j in range(center.shape[0]):
            center[j] += w[i] * x[j]
    for j in range(center.shape[0]):
        center[j] /= total


@kernel
def _add_row_moments(
    X: NDArray[Any],
    left: int,
    rows: Positions,
    w: FloatArray,
    center: FloatArray,
    first: FloatArray,
    second: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> None:
    """Add to the first and second moments about ``center``, eight rows at a time, which saves memory accesses."""
    m = center.shape[0]
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
    weights: FloatArray,
    bounds: Positions,
    mean: FloatArray,
    sum_sq: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> None:
    """As `rows_stats`, for ``columns``, the C-ordered transpose of X; blocks of it are transposed first."""
    center, first, second = np.zeros(_BLOCK_COLUMNS), np.zeros(_BLOCK_COLUMNS), np.zeros(_BLOCK_COLUMNS)
    block = np.zeros((_BLOCK_ROWS, _BLOCK_COLUMNS))
    block_rows = np.arange(_BLOCK_ROWS)
    for start in range(0, n_columns, _BLOCK_COLUMNS):
        m = min(_BLOCK_COLUMNS, n_columns - start)
        out = target + start
        chosen = columns[source + start : source + start + m]
        for c in range(mean.shape[0]):
            total = _zeroed_sum(first, second, weights[bounds[c] : bounds[c + 1]])
            for top in range(bounds[c], bounds[c + 1], _BLOCK_ROWS):
                bottom = min(top + _BLOCK_ROWS, bounds[c + 1])
                rows, w = block_rows[: bottom - top], weights[top:bottom]
                _transpose(chosen, order[top:bottom], block)
                if top == bounds[c]:
                    _row_center(block, 0, rows[:CENTER_SAMPLES], w, center[:m])
                _add_row_moments(
                    block, 0, rows, w, center[:m], first, second, low[out : out + m], high[out : out + m]
                )
            if bounds[c + 1] > bounds[c]:
                _write_moments(
                    center[:m], first, second, total, mean[c, out : out + m], sum_sq[c, out : out + m]
                )


@kernel
def _transpose(columns: NDArray[Any], rows: Positions, block: FloatArray) -> None:
    """Write the selected rows of some columns into ``block``, one sample per row."""
    last = columns.shape[0] - 1
    for start in range(0, columns.shape[0], 8):
        a, b, c = columns[start], columns[min(start + 1, last)], columns[min(start + 2, last)]
        d, e, f = columns[min(start + 3, last)], columns[min(start + 4, last)], columns[min(start + 5, last)]
        g, h = columns[min(start + 6, last)], columns[min(start + 7, last)]
        for i in range(rows.shape[0]):
            row, out = rows[i], block[i, start : start + 8]
            out[0], out[1], out[2], out[3] = a[row], b[row], c[row], d[row]
            out[4], out[5], out[6], out[7] = e[row], f[row], g[row], h[row]


@kernel
def combine_classes(
    weight: FloatArray,
    low: FloatArray,
    high: FloatArray,
    class_mean: FloatArray,
    class_variance: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    first: int,
    last: int,
) -> None:
    """Mean and variance of some columns over all classes.

    ``class_variance`` holds sums of squared deviations on entry and variances on return. The computed mean of equal
    numbers may be rounded: the number itself is used instead, so that the column is exactly zero once centred.
    ``low`` and ``high`` may miss NaN, the mean does not.
    """
    total = 0.0
    for value in weight:
        total += value
    for j in range(first, last):
        overall, within, between = 0.0, 0.0, 0.0
        for c in range(weight.shape[0]):
            overall += weight[c] / total * class_mean[c, j]
        constant = low[j] == high[j] and np.isfinite(overall)
        for c in range(weight.shape[0]):
            between += weight[c] / total * (class_mean[c, j] - overall) ** 2
            within += class_variance[c, j]
            if weight[c] > 0.0:
                class_mean[c, j] = low[j] if constant else class_mean[c, j]
                class_variance[c, j] = 0.0 if constant else class_variance[c, j] / weight[c]
        mean[j] = low[j] if constant else overall
        variance[j] = 0.0 if constant else within / total + between


@kernel
def extremes_of_columns(
    mean: FloatArray, low: FloatArray, high: FloatArray, first: int, last: int
) -> tuple[bool, float, float, float]:
    """Whether all values of some columns are usable, the smallest range (NaN if one is), lowest and highest value."""
    usual, known, smallest, lowest, highest = True, True, np.inf, np.inf, -np.inf
    for j in range(first, last):
        usual = usual and np.isfinite(mean[j]) and low[j] >= -LARGEST_VALUE and high[j] <= LARGEST_VALUE
        width = high[j] - low[j]
        known = known and width == width
        smallest = min(smallest, width)
        lowest = min(lowest, low[j])
        highest = max(highest, high[j])
    return usual, smallest if known else np.nan, lowest, highest


@kernel
def sparse_stats(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    codes: NDArray[np.intp],
    weights: FloatArray,
    class_weight: FloatArray,
    n_counted: int,
    mean: FloatArray,
    sum_sq: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> None:
    """Statistics of columns in CSC format; entries that are not stored are zero."""
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
