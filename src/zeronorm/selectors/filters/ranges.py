"""Ranges of columns that may hold missing values, and columns scaled by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import ColumnStats, Design

FloatArray = NDArray[np.float64]

_BLOCK_ENTRIES = 1 << 19


def column_ranges(design: Design) -> tuple[ColumnStats, bool]:
    """Statistics whose minimum and maximum ignore missing values, and whether there are any.

    A column without any value has the range from 0 to 0. The other statistics do not ignore missing values.
    """
    stats = design.column_stats()
    if not np.isnan(stats.mean).any():
        return stats, False
    minimum, maximum = np.empty(design.n_features), np.empty(design.n_features)
    for columns, block in design.iter_blocks(block_width(design.n_samples)):
        minimum[columns] = np.fmin.reduce(block, axis=0)
        maximum[columns] = np.fmax.reduce(block, axis=0)
    return replace(stats, minimum=np.nan_to_num(minimum), maximum=np.nan_to_num(maximum)), True


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

    def slices(self, n_samples: int) -> Iterator[slice]:
        """Blocks of columns that suit ``n_samples`` samples."""
        width, p = block_width(n_samples), self.design.n_features
        return (slice(start, min(start + width, p)) for start in range(0, p, width))

    def fill(self, columns: slice, out: FloatArray) -> None:
        """Write the scaled columns into ``out``, of shape (n, columns)."""
        self.design.block(columns, out)
        out -= self.shift[columns]
        out *= self.factor[columns]


def block_width(n_samples: int) -> int:
    """Columns in one block, a multiple of 64: the same for all backends, so that sums round alike."""
    return max(1, min(64, _BLOCK_ENTRIES // max(1, n_samples) // 64)) * 64
