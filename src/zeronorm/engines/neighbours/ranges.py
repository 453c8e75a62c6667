"""Ranges of columns that may hold missing values, and columns scaled by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.design import Design, require_finite
from zeronorm.engines.neighbours.kernels import scale_columns

_BLOCK_ENTRIES = 1 << 17  # one megabyte: a block stays in the cache of a core while it is used
_CACHE_LINE_BYTES = 64


@dataclass(frozen=True)
class ColumnRanges:
    """Minimum and maximum of each column, missing values aside; from 0 to 0 without any value."""

    minimum: FloatArray
    maximum: FloatArray
    has_missing: bool


def column_ranges(design: Design) -> ColumnRanges:
    """The ranges of all columns, which must not be infinite; a second reading only where values are missing."""
    minimum, maximum = design.column_range()
    if not (np.all(np.isfinite(minimum)) and np.all(np.isfinite(maximum))):
        require_finite(design, allow_nan=True)
    if not np.isnan(minimum).any():
        return ColumnRanges(minimum, maximum, has_missing=False)
    for columns, block in design.iter_blocks(block_width(design.n_samples)):
        minimum[columns] = np.fmin.reduce(block, axis=0)
        maximum[columns] = np.fmax.reduce(block, axis=0)
    return ColumnRanges(np.nan_to_num(minimum), np.nan_to_num(maximum), has_missing=True)


@dataclass(frozen=True)
class ScaledColumns:
    """The columns (x − shift) · factor of a design, in blocks of limited size."""

    design: Design
    shift: FloatArray
    factor: FloatArray

    def take(self, columns: NDArray[np.intp]) -> ScaledColumns:
        return ScaledColumns(self.design.take(columns), self.shift[columns], self.factor[columns])

    def take_rows(self, rows: slice) -> ScaledColumns:
        if rows == slice(0, self.design.n_samples):
            return self
        return ScaledColumns(self.design.take_rows(rows), self.shift, self.factor)

    def slices(self, n_samples: int, n_threads: int = 1, narrowest: int = 64) -> Iterator[slice]:
        """Blocks of columns that suit ``n_samples`` samples and leave no thread without a block."""
        p = self.design.n_features
        width = min(max(narrowest, block_width(n_samples)), -(-p // (64 * n_threads)) * 64)
        return (slice(start, min(start + width, p)) for start in range(0, p, width))

    def rows(self, columns: slice) -> FloatArray:
        """These columns, one sample per row: the rows start at cache lines, and their number is even.

        Not to be written to. Where one block holds all columns it is kept, as it is asked for twice.
        """
        return self._all_rows if columns == slice(0, self.design.n_features) else self._fill(columns)

    @cached_property
    def _all_rows(self) -> FloatArray:
        return self._fill(slice(0, self.design.n_features))

    def _fill(self, columns: slice) -> FloatArray:
        n, m = self.design.n_samples, columns.stop - columns.start
        rows = aligned_empty(n + n % 2, -(-m // 8) * 8)
        rows[n:] = 0.0
        self.design.block(columns, rows[:n, :m])
        scale_columns(rows[:n], self.shift[columns], self.factor[columns])
        return rows


def aligned_empty(n_rows: int, n_columns: int) -> FloatArray:
    """An array whose rows start at cache lines when ``n_columns`` is a multiple of eight."""
    memory = np.empty(n_rows * n_columns + _CACHE_LINE_BYTES // 8)
    start = -memory.ctypes.data % _CACHE_LINE_BYTES // 8
    return memory[start : start + n_rows * n_columns].reshape(n_rows, n_columns)


def block_width(n_samples: int) -> int:
    """Columns in one block, a multiple of 64: the same for all backends, so that sums round alike."""
    return max(1, min(64, _BLOCK_ENTRIES // max(1, n_samples) // 64)) * 64
