"""Blocks of columns or rows in double precision: how they are filled, shifted and scaled, and how wide they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from zeronorm._types import FloatArray
from zeronorm.design._affine import Affine, slices
from zeronorm.design._column_kernels import centre_and_scale_columns, centre_columns, centre_rows
from zeronorm.design._index import Index
from zeronorm.design._stats import read_only
from zeronorm.execution import Part

if TYPE_CHECKING:
    from zeronorm.design._base import Design
    from zeronorm.design._dense import DenseDesign

PREFERRED_BLOCK_BYTES = 4 << 20
LARGEST_BLOCK_BYTES = 32 << 20
SMALLEST_BLOCK_BYTES = 1 << 18
_FEWEST_COLUMNS = 512  # with fewer, the threads of a product wait for each other
_DATA_FRACTION = 1 / 16  # of the data, for one block: a few blocks then take less than 0.3 of the data
_NUMBERS_WORTH_A_KERNEL = (
    1 << 15
)  # with fewer, a call of a compiled loop takes longer than three passes of NumPy


def fill(design: Design, columns: Index, out: FloatArray, scale: FloatArray | None = None) -> None:
    """Write columns, shifted and scaled, into ``out``; ``scale`` is one more factor for each, in the type of ``out``.

    This is the one place where blocks are shifted and scaled.
    """
    if design.affine is None:
        design._fill(columns, out)
    else:
        stored = design._stored or design
        whole = len(columns) == design.n_features and isinstance(columns, range)
        here = design.affine if whole else design.affine.take(columns)
        view = cast("DenseDesign", stored)._view(columns) if design.backend.in_one_array else None
        is_small = out.size < _NUMBERS_WORTH_A_KERNEL
        is_scaled = None if view is None or is_small else _fill_in_one_pass(view, here, out, scale)
        if is_scaled is None:
            if view is not None and is_small:
                np.subtract(view, here.mean, out=out)
            else:
                stored._fill(columns, out)
                out -= here.mean
            out *= here.factor
        elif is_scaled:
            return
    if scale is not None:
        out *= scale


def _fill_in_one_pass(
    view: NDArray[Any], here: Affine, out: FloatArray, scale: FloatArray | None
) -> bool | None:
    """Read, shift and scale columns in one pass, if their memory order is that of ``out``.

    Returns whether they were multiplied by ``scale`` too; None if nothing was done.
    """
    if view.dtype.kind != "f":
        return None
    if view.flags.f_contiguous and out.flags.f_contiguous:
        if scale is not None:
            centre_and_scale_columns(read_only(view.T), here.mean, here.factor, read_only(scale), out.T)
        else:
            centre_columns(read_only(view.T), here.mean, here.factor, out.T)
        return True
    if view.flags.c_contiguous and out.flags.c_contiguous:
        centre_rows(read_only(view), here.mean, here.factor, out)
        return False
    return None


def width_of(n_samples: int, n_features: int, itemsize: int) -> int:
    """Number of columns of a block of data in memory."""
    limit = min(
        LARGEST_BLOCK_BYTES,
        max(SMALLEST_BLOCK_BYTES, int(n_samples * n_features * itemsize * _DATA_FRACTION)),
    )
    column_bytes = 8 * max(1, n_samples)
    wanted = max(PREFERRED_BLOCK_BYTES, _FEWEST_COLUMNS * column_bytes)
    return max(1, min(wanted, limit) // column_bytes)


def column_slices(design: Design, width: int | None = None) -> Iterator[slice]:
    """Yield all columns as consecutive slices."""
    return slices(design.n_features, design._block_width() if width is None else width)


def from_parts(design: Design, work: Callable[[slice, Design], Part], *, in_threads: bool) -> Iterator[Part]:
    """Yield ``work(columns, part)``, in order, for designs in memory that together hold all columns.

    A design in memory is its only part. Those in files are read part by part; ``in_threads``: several threads work on
    parts at the same time.
    """
    affine = design.affine
    if affine is None:
        return design._from_parts(work, in_threads=in_threads)

    def work_on(columns: slice, part: Design) -> Part:
        if part is not design:
            part = part._with(affine.take(range(columns.start, columns.stop)))
        return work(columns, part)

    return design._from_parts(work_on, in_threads=in_threads)


def scratch_blocks(
    design: Design, dtype: DTypeLike = np.float64, scale: FloatArray | None = None
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield contiguous blocks that share the same memory: each is valid, and may be changed, until the next.

    ``scale`` holds one factor for each column, in the type of the blocks.
    """
    n, memory = design.n_samples, np.empty(0, dtype=dtype)
    for outer, part in from_parts(design, lambda columns, part: (columns, part), in_threads=False):
        width = min(part._block_width(), max(1, part.n_features))
        if memory.size < n * width:
            memory = np.empty(n * width, dtype=dtype)
        for columns in column_slices(part, width):
            m = columns.stop - columns.start
            block = memory[: n * m].reshape((n, m), order=design.backend.order)
            position = slice(outer.start + columns.start, outer.start + columns.stop)
            factor = None if scale is None else scale[position]
            fill(part, range(columns.start, columns.stop), block, factor)
            yield position, block


def blocks(design: Design) -> Iterator[tuple[slice, FloatArray]]:
    """Yield blocks that must not be changed: views of the data if these can be used directly."""
    memory = _memory_of(design)
    if memory is None:
        yield from scratch_blocks(design)
    else:
        for columns in column_slices(design):
            yield columns, memory[:, columns]


def _memory_of(design: Design) -> FloatArray | None:
    """All values as a view that BLAS can read without a copy, or None."""
    is_usable = design.affine is None and design.backend.in_one_array
    return cast("DenseDesign", design)._memory if is_usable else None


def is_tall(design: Design) -> bool:
    """Whether products with vectors are faster with blocks of rows than with blocks of columns."""
    return design.n_samples > 4 * design.n_features


def row_blocks(design: Design, factors: FloatArray | None = None) -> Iterator[tuple[slice, FloatArray]]:
    """Yield C-ordered blocks of rows with all columns, each row times its factor; they share the same memory."""
    memory = None if factors is None else _memory_of(design)
    if memory is not None and memory.strides[1] != memory.itemsize:
        memory = None
    columns = range(design.n_features)
    for rows, block in _scratch_rows(design):
        if memory is not None and factors is not None:  # read, multiplied and written in one pass
            np.multiply(memory[rows], factors[rows, None], out=block)
        else:
            fill(design.take_rows(rows), columns, block)
            if factors is not None:
                block *= factors[rows, None]
        yield rows, block


def _scratch_rows(design: Design) -> Iterator[tuple[slice, FloatArray]]:
    """Yield slices of rows, each with C-ordered memory for its block; all blocks share the same memory."""
    n, p = design.shape
    height = max(1, design._block_width() * n // max(1, p))
    memory = np.empty((min(height, n), p))
    for rows in slices(n, height):
        yield rows, memory[: rows.stop - rows.start]
