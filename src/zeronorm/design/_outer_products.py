"""Sums of outer products with BLAS, without a second n×n matrix: in parts or in tiles, by several threads."""

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

from zeronorm._jit import kernel
from zeronorm._types import FloatArray
from zeronorm.design import _ways as ways
from zeronorm.execution import available_threads, one_thread, run_in_threads


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


def threads_for(side: int, depth: int) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread for small outer products: with sixteen threads they took ten times as long."""
    few = ways.WORTH_A_LIMIT <= side**2 * depth < ways.LITTLE_WORK
    return one_thread() if few else nullcontext()


def suits_tiles(side: int, depth: int) -> bool:
    """Whether threads share tiles of the matrix rather than parts of the sum; this depends on the sizes alone.

    Each part needs its own matrix. Tiles are better where memory allows too few parts to keep all threads busy.
    """
    pairs = side**2 * depth
    if side < 2 * _BAND or pairs < ways.LITTLE_WORK:
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


# Products that are summed in single precision before the sum is added in double precision.
_SINGLE_DEPTH = 512


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


def _mirror_upper_triangle(matrix: FloatArray) -> None:
    for top in range(0, len(matrix), _MIRRORED):
        bottom = top + _MIRRORED
        for left in range(bottom, len(matrix), _MIRRORED):
            columns = slice(left, left + _MIRRORED)
            matrix[columns, top:bottom] = matrix[top:bottom, columns].T
        tile = matrix[top:bottom, top:bottom]
        np.copyto(tile, tile.T, where=np.tri(len(tile), k=-1, dtype=bool))
