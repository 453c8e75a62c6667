"""The columns of a design in the orthogonal complement of some of them, block by block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import Design
from zeronorm.selectors.filters.ranges import block_width
from zeronorm.selectors.greedy.orthogonal import DEPENDENT

FloatArray = NDArray[np.float64]


class ProjectedColumns:
    r"""The columns :math:`(I - Q Q^\top) x_j`, their Gram matrix and squared norms.

    Projected columns are made from the data whenever they are read; what is kept is :math:`Q^\top X`, one
    number per column and direction.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.gram = design.gram()
        self.full_norm_sq = design.squared_norms()
        self.norm_sq = self.full_norm_sq.copy()
        self.basis = np.empty((design.n_samples, 0))
        self.coefficients = np.empty((0, design.n_features))
        self._full_trace = float(np.trace(self.gram))

    @property
    def has_room(self) -> bool:
        """Whether samples still differ in the complement by more than rounding."""
        return float(np.trace(self.gram)) > DEPENDENT * self._full_trace

    @property
    def dependent(self) -> NDArray[np.bool_]:
        """Columns that are combinations of those projected out, or zero from the start."""
        return np.asarray(self.norm_sq <= DEPENDENT * self.full_norm_sq)

    def squared_distances(self) -> FloatArray:
        """Between all samples, in the projected columns."""
        diagonal = np.diag(self.gram)
        return np.maximum(diagonal[:, None] + diagonal[None, :] - 2.0 * self.gram, 0.0)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Slices of columns with the projected values, C-ordered."""
        n, p = self.design.shape
        width = block_width(n)
        for start in range(0, p, width):
            columns = slice(start, min(start + width, p))
            rows = self.design.block(columns, np.empty((n, columns.stop - start)))
            rows -= self.basis @ self.coefficients[:, columns]
            yield columns, rows

    def project(self, columns: FloatArray) -> FloatArray:
        """Project any columns on the complement."""
        for _ in range(2):  # once more: the first projection leaves a rounding error along the basis
            columns = columns - self.basis @ (self.basis.T @ columns)
        return columns

    def project_out(self, column: int) -> None:
        """Go on in the complement of one more column; nothing changes if it is dependent already."""
        direction = self.project(self.design.block([column])[:, 0])
        length_sq = float(direction @ direction)
        self.norm_sq[column] = 0.0
        if length_sq <= DEPENDENT * self.full_norm_sq[column]:
            return
        q = direction / np.sqrt(length_sq)
        coefficient = self.design.transpose_dot(q)
        self.norm_sq = np.maximum(self.norm_sq - coefficient**2, 0.0)
        self.norm_sq[column] = 0.0
        self.basis = np.column_stack([self.basis, q])
        self.coefficients = np.vstack([self.coefficients, coefficient])
        along = self.gram @ q
        self.gram -= np.outer(q, along) + np.outer(along, q) - (q @ along) * np.outer(q, q)
