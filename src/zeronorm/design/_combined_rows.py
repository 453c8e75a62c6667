"""A design whose rows are linear combinations of the rows of another one, computed as they are used."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.design._base import Design
from zeronorm.design._index import Index, as_selector, compose


class RowCombinations(Protocol):
    """A linear map of the rows, which is not stored as a matrix."""

    @property
    def n_rows(self) -> int:
        """Number of combinations."""

    def dot(self, columns: FloatArray) -> FloatArray:
        """The combinations of each column."""

    def transpose_dot(self, V: FloatArray) -> FloatArray:
        """The transposed map, of each column of V."""


class CombinedRowsDesign(Design):
    """The combinations of the rows of a design, without a copy of the data."""

    def __init__(self, design: Design, combine: RowCombinations, rows: Index | None = None) -> None:
        self.design, self.combine = design, combine
        self._rows: Index = range(combine.n_rows) if rows is None else rows
        super().__init__((len(self._rows), design.n_features), np.dtype(np.float64), design.feature_names)

    def _take(self, columns: Index) -> CombinedRowsDesign:
        return CombinedRowsDesign(self.design.take(np.asarray(columns)), self.combine, self._rows)

    def _take_rows(self, rows: Index) -> CombinedRowsDesign:
        return CombinedRowsDesign(self.design, self.combine, compose(self._rows, rows))

    def _fill(self, columns: Index, out: FloatArray) -> None:
        found = self.combine.dot(self.design.block(np.asarray(columns)))
        out[...] = found[as_selector(self._rows)]

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        placed = np.zeros((self.combine.n_rows, *V.shape[1:]))
        np.add.at(placed, np.asarray(self._rows, dtype=np.intp), V)  # a row may be chosen twice
        return self.design.transpose_dot(self.combine.transpose_dot(placed))
