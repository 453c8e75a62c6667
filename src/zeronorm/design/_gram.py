"""Gram matrices: of stored values by their backend, of shifted and scaled ones corrected or block by block."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from zeronorm._types import FloatArray
from zeronorm.design import _outer_products as outer_products
from zeronorm.design import _ways as ways
from zeronorm.design._affine import slices
from zeronorm.design._blocks import LARGEST_BLOCK_BYTES, column_slices, fill, from_parts, scratch_blocks
from zeronorm.execution import available_threads, one_thread, one_thread_for_products, run_in_threads

if TYPE_CHECKING:
    from zeronorm.design._base import Design

MOST_KEPT_BYTES = 32 << 20  # of a matrix of samples by samples
_BAND_ENTRIES = 1 << 18
_BYTES_FILLED_BY_A_THREAD = 2 << 20


def equal_value(values: FloatArray) -> float | None:
    """The one value of a vector; None if its values differ, or if there are none."""
    # The last value is compared first: it usually shows at once that the values differ.
    is_one = values.size and values[-1] == values[0] and bool(np.all(values == values[0]))
    return float(values[0]) if is_one else None


def gram_of_view(design: Design, scale_sq: FloatArray | None) -> FloatArray:
    """Gram matrix of data that are shifted and scaled."""
    affine, stored = design.affine, design._stored
    if design.backend.transforms or affine is None or stored is None:
        return design._gram(scale_sq)
    if not (design.backend.is_sparse and ways.corrects(design)):
        return gram_of_blocks(design, scale_sq)
    weight = affine.factor**2 if scale_sq is None else affine.factor**2 * scale_sq
    side = 0.5 * float((weight * affine.mean) @ affine.mean) - stored._dot(weight * affine.mean)
    product = stored._gram(weight)
    for rows in bands(design.n_samples):
        product[rows] += side[rows, None] + side
    return product


def gram_of_blocks(design: Design, scale_sq: FloatArray | None) -> FloatArray:
    """Gram matrix from blocks of columns; any weights."""
    if scale_sq is not None:
        if np.count_nonzero(scale_sq) < design.n_features // 2:
            active = np.flatnonzero(scale_sq)
            return design.take(active).gram(scale_sq[active])
        if scale_sq.min(initial=0.0) < 0.0:
            return design.gram(np.maximum(scale_sq, 0.0)) - design.gram(np.maximum(-scale_sq, 0.0))
    n, p = design.shape
    pairs, is_one_block = n * n * p, 8 * n * p <= ways.ONE_BLOCK_BYTES
    is_little = is_one_block and pairs < min(ways.LITTLE_WORK, ways.PAIRS_WORTH_SINGLE)
    if is_little and design.backend.in_one_array:
        block = np.empty((n, p), order=design.backend.order)
        fill(design, range(p), block, None if scale_sq is None else np.sqrt(scale_sq))
        # With sixteen threads small products took ten times as long; the smallest take less time than the limit.
        with one_thread() if pairs >= ways.WORTH_A_LIMIT else nullcontext():
            return block @ block.T
    return _sum_of_outer_products(design, scale_sq)


def _sum_of_outer_products(design: Design, scale_sq: FloatArray | None) -> FloatArray:
    n, dtype = design.n_samples, ways.product_type(design)
    result = outer_products.symmetric_accumulator(n)
    # Scales are divided by the largest one: otherwise products could leave the range of single precision.
    largest = 1.0 if scale_sq is None else float(scale_sq.max(initial=0.0)) or 1.0
    unit = 1.0 if dtype == np.float64 else largest

    def add(columns: slice, part: Design, total: FloatArray) -> FloatArray:
        scale = None if scale_sq is None else np.sqrt(scale_sq[columns] / unit).astype(dtype, copy=False)
        _add_gram(part, total, scale, dtype)
        return total

    if ways.sums_in_threads(design):
        with one_thread_for_products():
            each = from_parts(
                design,
                lambda columns, part: add(columns, part, outer_products.symmetric_accumulator(n)),
                in_threads=True,
            )
            for total in each:
                result += total
    else:
        for columns, part in from_parts(design, lambda columns, part: (columns, part), in_threads=False):
            add(columns, part, result)
    result *= unit
    return outer_products.symmetric_result(result)


def _add_gram(design: Design, result: FloatArray, scale: FloatArray | None, dtype: DTypeLike) -> None:
    """Add the Gram matrix of data in memory to a symmetric accumulator."""
    if design.backend.in_one_array and outer_products.suits_tiles(*design.shape):
        _add_gram_in_tiles(design, result, scale, dtype)
        return

    def add(part: range, accumulator: FloatArray) -> None:
        here = None if scale is None else scale[part.start : part.stop]
        chosen = design if len(part) == design.n_features else design.take(slice(part.start, part.stop))
        for _, block in scratch_blocks(chosen, dtype, here):
            outer_products.add_outer_square(accumulator, block)

    with outer_products.threads_for(*design.shape):
        outer_products.add_in_parts(result, add, parts_of(design, *design.shape))


def parts_of(design: Design, side: int, depth: int) -> list[range]:
    """Parts of a sum of outer products, one per thread; a single part if threads must not share the data.

    Columns that were just read are not split: either other threads work on other columns, or the threads of BLAS share
    these.
    """
    if not design.backend.in_one_array or design.backend.is_part_of_file:
        return [range(depth)]
    return outer_products.outer_square_parts(side, depth)


def _add_gram_in_tiles(
    design: Design, result: FloatArray, scale: FloatArray | None, dtype: DTypeLike
) -> None:
    """Add the Gram matrix block by block; all threads fill a block of columns, then multiply it in tiles."""
    n, n_threads = design.n_samples, available_threads()
    width = min(design.n_features, max(1, LARGEST_BLOCK_BYTES // (8 * n)))
    memory = np.empty(n * width, dtype=dtype)
    with one_thread():
        for columns in column_slices(design, width):
            n_columns = columns.stop - columns.start
            block = memory[: n * n_columns].reshape((n, n_columns), order=design.backend.order)

            def fill_part(
                first: int, last: int, block: FloatArray = block, start: int = columns.start
            ) -> None:
                factor = None if scale is None else scale[start + first : start + last]
                fill(design, range(start + first, start + last), block[:, first:last], factor)

            n_parts = min(n_threads, 1 + 8 * block.size // _BYTES_FILLED_BY_A_THREAD)
            cuts = [n_columns * part // n_parts for part in range(n_parts + 1)]
            run_in_threads(fill_part, list(pairwise(cuts)), n_parts)
            outer_products.add_outer_square_in_tiles(result, block, n_threads)


def bands(n: int) -> list[slice]:
    """Slices of the rows of a square matrix that are changed at a time, so that no second matrix is needed."""
    return list(slices(n, max(1, _BAND_ENTRIES // max(1, n))))
