"""Two designs side by side."""

from __future__ import annotations

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.design._base import Design
from zeronorm.design._index import Index, compose


class JoinedDesign(Design):
    """The columns of ``left`` followed by those of ``right``, without a copy; columns have no names."""

    def __init__(self, left: Design, right: Design, columns: Index | None = None) -> None:
        if left.n_samples != right.n_samples:
            raise ValueError(
                "Two designs can only be joined if they have the same samples. Got "
                f"{left.n_samples} and {right.n_samples} samples."
            )
        self.left, self.right = left, right
        self._columns: Index = range(left.n_features + right.n_features) if columns is None else columns
        super().__init__((left.n_samples, len(self._columns)), np.dtype(np.float64))

    def _take(self, columns: Index) -> JoinedDesign:
        return JoinedDesign(self.left, self.right, compose(self._columns, columns))

    def _take_rows(self, rows: Index) -> JoinedDesign:
        return JoinedDesign(self.left.take_rows(rows), self.right.take_rows(rows), self._columns)

    def _fill(self, columns: Index, out: FloatArray) -> None:
        chosen = np.asarray(compose(self._columns, columns), dtype=np.intp)
        p = self.left.n_features
        for design, where in ((self.left, chosen < p), (self.right, chosen >= p)):
            positions = np.flatnonzero(where)
            if positions.size:
                out[:, positions] = design.block(chosen[positions] - (0 if design is self.left else p))
