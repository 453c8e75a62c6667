"""Accumulating matrix products that keep no second n×n matrix."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dgemm, dsyrk

from zeronorm._types import FloatArray


def symmetric_accumulator(n: int) -> FloatArray:
    """Return the Fortran-ordered zero matrix whose lower triangle `add_outer_square` fills."""
    return np.zeros((n, n), order="F")


def add_outer_square(accumulator: FloatArray, block: FloatArray) -> None:
    """Add ``block @ block.T`` to the lower triangle; ``block`` is C- or Fortran-contiguous."""
    if block.size == 0:
        return
    if block.flags.f_contiguous:
        dsyrk(1.0, block, beta=1.0, c=accumulator, overwrite_c=1, lower=1)
    else:
        dsyrk(1.0, block.T, beta=1.0, c=accumulator, overwrite_c=1, lower=1, trans=1)


def add_product(accumulator: FloatArray, left: FloatArray, right: FloatArray) -> None:
    """Add ``left @ right.T`` to a Fortran-ordered accumulator; the factors are contiguous."""
    if left.size == 0 or right.size == 0:
        return
    a, trans_a = (left, 0) if left.flags.f_contiguous else (left.T, 1)
    b, trans_b = (right, 1) if right.flags.f_contiguous else (right.T, 0)
    dgemm(1.0, a, b, beta=1.0, c=accumulator, overwrite_c=1, trans_a=trans_a, trans_b=trans_b)


def symmetric_result(accumulator: FloatArray, tile: int = 256) -> FloatArray:
    """Copy the lower triangle to the upper one, tile by tile, and return a C-ordered matrix."""
    n = accumulator.shape[0]
    for start in range(0, n, tile):
        stop = min(start + tile, n)
        diagonal = accumulator[start:stop, start:stop]
        diagonal[...] = np.tril(diagonal) + np.tril(diagonal, -1).T
        accumulator[start:stop, stop:] = accumulator[stop:, start:stop].T
    return accumulator.T


def column_products(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the inner product of each column of ``left`` with the same column of ``right``."""
    products: FloatArray = np.einsum("ij,ij->j", left, right)
    return products
