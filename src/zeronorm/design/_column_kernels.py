"""Compiled loops over contiguous columns, without a copy of the data.

Minima and maxima are computed on the bits of the numbers as integers, which sort nearly as the floats do: processors
compare several integers at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel, reduction
from zeronorm._types import FloatArray
from zeronorm.design._stats_kernels import CENTER_SAMPLES

Positions = NDArray[np.intp]

LARGEST_KEY = (1 << 63) - 1


def float_bits(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same memory as integers, from which the kernels make keys that sort as the numbers do.

    The bits of positive numbers are such keys; for negative numbers all bits but the sign are inverted. NaN sorts
    before or after all numbers.
    """
    return array.view(np.int64 if array.itemsize == 8 else np.int32)


def from_keys(keys: NDArray[np.int64], dtype: np.dtype[Any]) -> FloatArray:
    """Return the numbers that belong to these keys, see `float_bits`."""
    bits = keys ^ ((keys >> 63) & LARGEST_KEY)
    return bits.astype(np.int64 if dtype.itemsize == 8 else np.int32).view(dtype).astype(np.float64)


@kernel
def columns_stats_in_place(
    columns: NDArray[Any],
    bits: NDArray[Any],
    source: int,
    target: int,
    n_columns: int,
    order: Positions,
    weights: FloatArray,
    bounds: Positions,
    class_weights: FloatArray,
    mean: FloatArray,
    sum_sq: FloatArray,
    low: NDArray[np.int64],
    high: NDArray[np.int64],
) -> None:
    """As `columns_stats`, without transposing: each class uses all values, with weight zero for other classes.

    ``class_weights`` has one row of weights for each class, plus a row of zeros if the number of classes is odd.
    ``low`` and ``high`` are keys, see `float_bits`.
    """
    q, total = mean.shape[0], np.zeros(class_weights.shape[0])
    for c in range(q):  # numba would take two seconds to compile a sum along an axis
        for weight in class_weights[c]:
            total[c] += weight
    center = np.zeros(total.size)
    for j in range(n_columns):
        x, keys, out = columns[source + j], bits[source + j], target + j
        for c in range(q):
            center[c] = _center_of(x, order[bounds[c] : bounds[c + 1]], weights[bounds[c] : bounds[c + 1]])
        for c in range(0, q, 2):
            first_c, second_c, first_d, second_d, low[out], high[out] = _moments(
                x, keys, class_weights[c], class_weights[c + 1], center[c], center[c + 1]
            )
            _write_moment(c, out, center[c], first_c, second_c, total[c], mean, sum_sq)
            if c + 1 < q:
                _write_moment(c + 1, out, center[c + 1], first_d, second_d, total[c + 1], mean, sum_sq)


@kernel
def _write_moment(
    c: int,
    j: int,
    center: float,
    first: float,
    second: float,
    total: float,
    mean: FloatArray,
    sum_sq: FloatArray,
) -> None:
    if total > 0.0:
        mean[c, j] = center + first / total
        sum_sq[c, j] = max(0.0, second - first * first / total)


@kernel
def _center_of(x: NDArray[Any], rows: Positions, w: FloatArray) -> float:
    center, total = 0.0, 0.0
    for i in range(min(CENTER_SAMPLES, rows.shape[0])):
        center += w[i] * x[rows[i]]
        total += w[i]
    return center / total if total > 0.0 else 0.0


@reduction
def _moments(
    x: NDArray[Any], keys: NDArray[Any], w: FloatArray, v: FloatArray, center_w: float, center_v: float
) -> tuple[float, float, float, float, int, int]:
    """Moments of two classes, smallest and largest key, in one loop, so that each value is read once."""
    first_w, second_w, first_v, second_v = 0.0, 0.0, 0.0, 0.0
    smallest, largest = LARGEST_KEY, -LARGEST_KEY - 1
    for i in range(x.shape[0]):
        value = np.float64(x[i])
        deviation_w, deviation_v = value - center_w, value - center_v
        weighted_w, weighted_v = w[i] * deviation_w, v[i] * deviation_v
        first_w += weighted_w
        second_w += weighted_w * deviation_w
        first_v += weighted_v
        second_v += weighted_v * deviation_v
        key = keys[i] ^ ((keys[i] >> 63) & LARGEST_KEY)
        smallest = key if key < smallest else smallest
        largest = key if key > largest else largest
    return first_w, second_w, first_v, second_v, smallest, largest


@kernel
def columns_range(keys: NDArray[Any], low: NDArray[np.int64], high: NDArray[np.int64]) -> None:
    """Smallest and largest key of each row of ``keys``, see `float_bits`."""
    for j in range(keys.shape[0]):
        low[j], high[j] = _range(keys[j])


@kernel
def _range(bits: NDArray[Any]) -> tuple[int, int]:
    """Smallest and largest key; processors compare several integers at a time, unlike floats."""
    smallest, largest = LARGEST_KEY, -LARGEST_KEY - 1
    for i in range(bits.shape[0]):
        key = bits[i] ^ ((bits[i] >> 63) & LARGEST_KEY)
        smallest = key if key < smallest else smallest
        largest = key if key > largest else largest
    return smallest, largest


@kernel
def transpose_columns(columns: NDArray[Any], out: FloatArray) -> None:
    """Copy each row of ``columns`` into a column of ``out``, eight at a time, which fills whole cache lines."""
    p, n = columns.shape
    in_eights = p // 8 * 8
    for start in range(0, in_eights, 8):
        a, b, c, d = columns[start], columns[start + 1], columns[start + 2], columns[start + 3]
        e, f, g, h = columns[start + 4], columns[start + 5], columns[start + 6], columns[start + 7]
        for i in range(n):
            row = out[i, start : start + 8]
            row[0], row[1], row[2], row[3] = a[i], b[i], c[i], d[i]
            row[4], row[5], row[6], row[7] = e[i], f[i], g[i], h[i]
    for j in range(in_eights, p):
        for i in range(n):
            out[i, j] = columns[j, i]


@kernel
def centre_columns(columns: NDArray[Any], mean: FloatArray, factor: FloatArray, out: NDArray[Any]) -> None:
    """Write each row of ``columns``, centred and scaled in double precision, into the same row of ``out``."""
    for j in range(columns.shape[0]):
        line, target = columns[j], out[j]
        for i in range(line.shape[0]):
            target[i] = (line[i] - mean[j]) * factor[j]


@kernel
def centre_and_scale_columns(
    columns: NDArray[Any], mean: FloatArray, factor: FloatArray, scale: NDArray[Any], out: NDArray[Any]
) -> None:
    """As `centre_columns`, then multiply each row by its scale, in the precision of ``out``."""
    for j in range(columns.shape[0]):
        line, target = columns[j], out[j]
        for i in range(line.shape[0]):
            target[i] = (line[i] - mean[j]) * factor[j]
            target[i] = target[i] * scale[j]


@kernel
def centre_rows(columns: NDArray[Any], mean: FloatArray, factor: FloatArray, out: NDArray[Any]) -> None:
    """As `centre_columns`, for data stored by row: each row is a sample."""
    for i in range(columns.shape[0]):
        line, target = columns[i], out[i]
        for j in range(line.shape[0]):
            target[j] = (line[j] - mean[j]) * factor[j]


# -- Products of float32 data with float64 vectors, without a converted copy of the data --

_TILE = 2048  # columns whose sums fit into the processor cache


@kernel
def rows_transpose_dot(
    array: NDArray[Any], rows: Positions, V: FloatArray, source: int, n_columns: int, out: FloatArray
) -> None:
    """Products of some columns of a row-major array with each row of ``V``, into that row of ``out``.

    Each sum runs over the rows in order; eight rows at a time save most accesses to the sums in memory.
    """
    n, in_eights = rows.shape[0], rows.shape[0] // 8 * 8
    for begin in range(0, n_columns, _TILE):
        end = min(begin + _TILE, n_columns)
        a, b = source + begin, source + end
        out[:, begin:end] = 0.0
        for t in range(0, in_eights, 8):
            x0, x1, x2 = array[rows[t], a:b], array[rows[t + 1], a:b], array[rows[t + 2], a:b]
            x3, x4, x5 = array[rows[t + 3], a:b], array[rows[t + 4], a:b], array[rows[t + 5], a:b]
            x6, x7 = array[rows[t + 6], a:b], array[rows[t + 7], a:b]
            for q in range(V.shape[0]):
                v, sums = V[q, t : t + 8], out[q, begin:end]
                c, d, e, f, g, h, k, m = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
                for j in range(end - begin):
                    first = (c * x0[j] + d * x1[j]) + (e * x2[j] + f * x3[j])
                    sums[j] += first + ((g * x4[j] + h * x5[j]) + (k * x6[j] + m * x7[j]))
        for t in range(in_eights, n):
            x = array[rows[t], a:b]
            for q in range(V.shape[0]):
                factor, sums = V[q, t], out[q, begin:end]
                for j in range(end - begin):
                    sums[j] += factor * x[j]


@kernel
def columns_transpose_dot(
    columns: NDArray[Any], rows: Positions, V: FloatArray, source: int, n_columns: int, out: FloatArray
) -> None:
    """Products of some rows of ``columns``, each of which is a feature, with each row of ``V``."""
    everything = rows.shape[0] == columns.shape[1]
    for t in range(rows.shape[0]):
        everything = everything and rows[t] == t
    for j in range(n_columns):
        x = columns[source + j]
        for q in range(V.shape[0]):
            out[q, j] = _inner(x, V[q]) if everything else _inner_at(x, rows, V[q])


@kernel
def rows_dot(
    array: NDArray[Any], rows: Positions, w: FloatArray, source: int, first: int, out: FloatArray
) -> None:
    """Products of some columns of a row-major array with ``w``, for ``out.size`` rows starting at ``first``."""
    out[:] = 0.0
    for begin in range(0, w.shape[0], _TILE):
        end = min(begin + _TILE, w.shape[0])
        part = w[begin:end]
        for t in range(out.shape[0]):
            out[t] += _inner(array[rows[first + t], source + begin : source + end], part)


@reduction
def _inner(x: NDArray[Any], v: FloatArray) -> float:
    total = 0.0
    for i in range(v.shape[0]):
        total += np.float64(x[i]) * v[i]
    return total


@reduction
def _inner_at(x: NDArray[Any], rows: Positions, v: FloatArray) -> float:
    total = 0.0
    for i in range(v.shape[0]):
        total += np.float64(x[rows[i]]) * v[i]
    return total
