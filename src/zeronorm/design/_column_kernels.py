"""Compiled loops over contiguous columns, without a copy of the data, and sums of outer products with BLAS.

Minima and maxima are computed on the bits of the numbers as integers, which sort nearly as the floats do: processors
compare several integers at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas
from scipy.linalg.blas import dgemm

from zeronorm._jit import kernel, reduction
from zeronorm._threads import available_threads, one_thread, run_in_threads
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


# -- Sums of matrix products without a second n×n matrix --


def symmetric_accumulator(n: int) -> FloatArray:
    """Return the Fortran-ordered zero matrix whose lower triangle `add_outer_square` fills."""
    return np.zeros((n, n), order="F")


def add_outer_square(accumulator: FloatArray, block: FloatArray) -> None:
    """Add ``block @ block.T`` to the lower triangle; ``block`` is C- or Fortran-contiguous."""
    if block.size == 0:
        return
    if not block.flags.forc:
        raise ValueError("The block must be C- or Fortran-contiguous.")
    _add_rows_squared(accumulator, block, 0, len(block))


_CHARACTER, _INTEGER = ctypes.c_char_p, ctypes.POINTER(ctypes.c_int)
_MATRIX = ctypes.c_void_p


def _product_of_blas(name: str, *arguments: Any) -> Any:
    """A BLAS function of SciPy that releases the interpreter lock; those of ``scipy.linalg.blas`` hold it."""
    capsule = ctypes.py_object(cython_blas.__pyx_capi__[name])
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    address = python.PyCapsule_GetPointer(capsule, ctypes.c_char_p(python.PyCapsule_GetName(capsule)))
    return ctypes.CFUNCTYPE(None, *arguments)(address)


@cache
def _blas(name: str) -> Any:
    """Return a BLAS function by name.

    Arguments of ``syrk``: triangle, transposed or not, sizes, factor, matrix, factor, result. Arguments of ``gemm``:
    for each matrix transposed or not, sizes, factor, both matrices, factor, result.
    """
    number = ctypes.POINTER(ctypes.c_float if name.startswith("s") else ctypes.c_double)
    if name.endswith("syrk"):
        return _product_of_blas(
            *(name, _CHARACTER, _CHARACTER, _INTEGER, _INTEGER, number),
            *(_MATRIX, _INTEGER, number, _MATRIX, _INTEGER),
        )
    return _product_of_blas(
        *(name, _CHARACTER, _CHARACTER, _INTEGER, _INTEGER, _INTEGER, number),
        *(_MATRIX, _INTEGER, _MATRIX, _INTEGER, number, _MATRIX, _INTEGER),
    )


# Multiplications that take one thread about 10 ms.
_PAIRS_PER_PART = 1 << 28
_MOST_PARTS = 16
_FEWEST_PART_BYTES = 32 << 20


def outer_square_parts(side: int, depth: int) -> list[range]:
    """Split ``depth`` vectors of length ``side`` into parts whose outer products are summed by one thread each.

    The parts, and so the rounding of the sum, depend on the sizes alone. The matrices of all parts take at most a
    quarter of the memory of the vectors; if that allows one part only, the threads of BLAS share the work.
    """
    by_memory = max(_FEWEST_PART_BYTES, side * depth) // max(1, 8 * side**2)
    n_parts = max(1, min(_MOST_PARTS, by_memory, side**2 * depth // _PAIRS_PER_PART))
    cuts = [depth * part // n_parts for part in range(n_parts + 1)]
    return [range(start, stop) for start, stop in pairwise(cuts)]


def add_in_parts(total: FloatArray, add: Callable[[range, FloatArray], None], parts: list[range]) -> None:
    """Sum each part with ``add`` into its own matrix, in threads, and add these matrices to ``total`` in order."""
    if len(parts) == 1:
        add(parts[0], total)
        return
    sums: dict[range, FloatArray] = {}

    def work(part: range) -> None:
        sums[part] = symmetric_accumulator(len(total))
        add(part, sums[part])

    n_threads = min(available_threads(), len(parts))
    with one_thread():
        run_in_threads(work, [(part,) for part in parts], n_threads)
    for part in parts:
        total += sums.pop(part)


# -- The same in tiles: several threads share one matrix, and each adds to different tiles --

_BAND = 256  # rows of a tile: small enough for sixteen threads, large enough for BLAS
_PAIRS_WORTH_TILES = 1 << 26  # multiplications that take one thread about 2 ms
# Fewer multiplications take less time than setting the number of threads of BLAS.
_PAIRS_WORTH_A_LIMIT = 1 << 20


def threads_for_outer_square(side: int, depth: int) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread for small outer products: with sixteen threads they took ten times as long."""
    few = _PAIRS_WORTH_A_LIMIT <= side**2 * depth < _PAIRS_WORTH_TILES
    return one_thread() if few else nullcontext()


def suits_tiles(side: int, depth: int) -> bool:
    """Whether threads share tiles of the matrix rather than parts of the sum; this depends on the sizes alone.

    Each part needs its own matrix. Tiles are better where memory allows too few parts to keep all threads busy.
    """
    pairs = side**2 * depth
    if side < 2 * _BAND or pairs < _PAIRS_WORTH_TILES:
        return False
    return len(outer_square_parts(side, depth)) < min(_MOST_PARTS, max(2, pairs // _PAIRS_PER_PART))


def add_outer_square_in_tiles(accumulator: FloatArray, block: FloatArray, n_threads: int) -> None:
    """As `add_outer_square`, tile by tile in several threads; the caller limits BLAS to one thread."""
    if block.size == 0:
        return
    side = block.shape[0]
    bands = [(start, min(start + _BAND, side)) for start in range(0, side, _BAND)]
    tiles = [(lower, upper) for row, lower in enumerate(bands) for upper in bands[: row + 1]]
    tiles.sort(key=lambda tile: tile[0] == tile[1])  # tiles on the diagonal come last: they are half the work

    def add(lower: tuple[int, int], upper: tuple[int, int]) -> None:
        if lower == upper:
            _add_rows_squared(accumulator, block, *lower)
        else:
            _add_rows_product(accumulator, block, lower, upper)

    run_in_threads(add, tiles, min(n_threads, len(tiles)))


def _add_rows_squared(accumulator: FloatArray, block: FloatArray, first: int, last: int) -> None:
    """Add the products of some rows with themselves to the lower triangle of their tile."""
    if block.dtype == np.float32:
        _add_single_products(accumulator, block, (first, last), (first, last))
        return
    by_column = block.flags.f_contiguous
    side, depth, stored = (ctypes.c_int(size) for size in (last - first, block.shape[1], len(accumulator)))
    one = ctypes.c_double(1.0)
    leading = ctypes.c_int(block.shape[0] if by_column else block.shape[1])
    _blas("dsyrk")(
        *(b"L", b"N" if by_column else b"T", side, depth, one, block[first:].ctypes.data, leading),
        *(one, accumulator[first:, first:].ctypes.data, stored),
    )


def _add_rows_product(
    accumulator: FloatArray, block: FloatArray, lower: tuple[int, int], upper: tuple[int, int]
) -> None:
    """Add the products of some rows with earlier rows to their tile."""
    if block.dtype == np.float32:
        _add_single_products(accumulator, block, lower, upper)
        return
    by_column = block.flags.f_contiguous
    sizes = (lower[1] - lower[0], upper[1] - upper[0], block.shape[1], len(accumulator))
    height, width, depth, stored = (ctypes.c_int(size) for size in sizes)
    one = ctypes.c_double(1.0)
    leading = ctypes.c_int(block.shape[0] if by_column else block.shape[1])
    _blas("dgemm")(
        *(b"N" if by_column else b"T", b"T" if by_column else b"N", height, width, depth, one),
        *(block[lower[0] :].ctypes.data, leading, block[upper[0] :].ctypes.data, leading),
        *(one, accumulator[lower[0] :, upper[0] :].ctypes.data, stored),
    )


_SINGLE_DEPTH = (
    512  # products that are summed in single precision before the sum is added in double precision
)


def _add_single_products(
    accumulator: FloatArray, block: FloatArray, lower: tuple[int, int], upper: tuple[int, int]
) -> None:
    """Add the products of some rows with others, or with themselves; 512 at a time are summed in single precision.

    The rounding error of a sum of 512 products of numbers near one is about 1e-6. The errors of many such sums are
    independent: for a million columns the total error is about 1e-9 of the squared norm of a row.
    """
    by_column = block.flags.f_contiguous
    height, width = lower[1] - lower[0], upper[1] - upper[0]
    part = np.zeros((height, width), dtype=np.float32, order="F")
    leading = ctypes.c_int(block.shape[0] if by_column else block.shape[1])
    stored, one, zero = ctypes.c_int(height), ctypes.c_float(1.0), ctypes.c_float(0.0)
    rows, columns = ctypes.c_int(height), ctypes.c_int(width)
    plain, turned = (b"N", b"T") if by_column else (b"T", b"N")
    total = accumulator[lower[0] : lower[1], upper[0] : upper[1]]
    for start in range(0, block.shape[1], _SINGLE_DEPTH):
        depth = ctypes.c_int(min(_SINGLE_DEPTH, block.shape[1] - start))
        if lower == upper:
            rows_at_once = block[lower[0] : lower[1], start : start + _SINGLE_DEPTH]
            # NumPy's BLAS is newer and faster than SciPy's.
            np.matmul(rows_at_once, rows_at_once.T, out=part)
        else:
            left, right = block[lower[0] :, start:].ctypes.data, block[upper[0] :, start:].ctypes.data
            _blas("sgemm")(
                *(plain, turned, rows, columns, depth, one, left, leading, right, leading),
                *(zero, part.ctypes.data, stored),
            )
        _add_part(total, part, lower == upper)


@kernel
def _add_part(total: FloatArray, part: NDArray[Any], lower_triangle: bool) -> None:
    for j in range(total.shape[1]):
        target, source = total[:, j], part[:, j]
        for i in range(j if lower_triangle else 0, total.shape[0]):
            target[i] += source[i]


def add_product(accumulator: FloatArray, left: FloatArray, right: FloatArray) -> None:
    """Add ``left @ right.T`` to a Fortran-ordered accumulator; both factors must be contiguous."""
    if left.size == 0 or right.size == 0:
        return
    a, trans_a = (left, 0) if left.flags.f_contiguous else (left.T, 1)
    b, trans_b = (right, 1) if right.flags.f_contiguous else (right.T, 0)
    dgemm(1.0, a, b, beta=1.0, c=accumulator, overwrite_c=1, trans_a=trans_a, trans_b=trans_b)


def symmetric_result(accumulator: FloatArray) -> FloatArray:
    """Copy the lower triangle to the upper one and return a C-ordered matrix."""
    result = accumulator.T
    _mirror_upper_triangle(result)
    return result


_MIRRORED = 64  # rows and columns of a tile that fits into the cache while it is transposed


@kernel
def _mirror_upper_triangle(matrix: FloatArray) -> None:
    n = matrix.shape[0]
    for top in range(0, n, _MIRRORED):
        for left in range(top, n, _MIRRORED):
            for i in range(top, min(top + _MIRRORED, n)):
                for j in range(max(left, i + 1), min(left + _MIRRORED, n)):
                    matrix[j, i] = matrix[i, j]


def column_products(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the inner product of each column of ``left`` with the same column of ``right``."""
    products: FloatArray = np.einsum("ij,ij->j", left, right)
    return products
