"""The features that may enter a subset, as a dense array or as sparse columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design

DENSE_BYTES = 1 << 23  # bytes of sparse candidates that are made dense; larger ones stay sparse


class SubsetColumns(Protocol):
    """Columns of the data, some of them in memory."""

    design: Design

    def rows(self, columns: IntArray) -> FloatArray: ...


class Candidates:
    """Sorted features that may enter, with their values and squared values, one feature per row."""

    def __init__(self, columns: IntArray, values: FloatArray) -> None:
        self.columns, self._values = columns, values

    @cached_property
    def _squares(self) -> FloatArray:
        return np.asarray(self._values * self._values)

    @classmethod
    def of(cls, model: SubsetColumns, columns: IntArray) -> Candidates | SparseCandidates:
        """Read the candidates as a dense array, or as sparse columns where that would be large."""
        large = 8 * model.design.n_samples * columns.size > DENSE_BYTES
        stored = model.design.stored_columns(columns) if large else None
        if stored is not None:
            return SparseCandidates(columns, *stored)
        return cls(columns, model.rows(columns))

    def take(self, kept: IntArray) -> Candidates:
        return Candidates(self.columns[kept], self._values[kept])

    def products(self, vectors: FloatArray) -> FloatArray:
        """Products of each row vector with each feature; stacks of vectors give stacks of products, features first."""
        if vectors.ndim == 2:
            return np.asarray(vectors @ self._values.T)
        return np.asarray(self._values @ vectors.transpose(0, 2, 1))

    def square_products(self, vectors: FloatArray) -> FloatArray:
        """Products with the squared values."""
        return np.asarray(vectors @ self._squares.T)

    def parts(self) -> Iterator[FloatArray]:
        """The values, one feature per row, some features at a time."""
        yield self._values


class SparseCandidates:
    """Products with the sparse columns S minus their shift."""

    def __init__(self, columns: IntArray, stored: Any, shift: FloatArray) -> None:
        self.columns, self._stored, self._shift = columns, stored, shift

    def take(self, kept: IntArray) -> SparseCandidates:
        return SparseCandidates(self.columns[kept], self._stored[:, kept], self._shift[kept])

    def products(self, vectors: FloatArray) -> FloatArray:
        if vectors.ndim == 3:
            return np.stack([self.products(part).T for part in vectors])
        plain = (self._stored.T @ vectors.T).T
        return np.asarray(plain - np.outer(vectors.sum(axis=1), self._shift))

    def square_products(self, vectors: FloatArray) -> FloatArray:
        plain, squares = (self._stored.T @ vectors.T).T, (self._stored.power(2).T @ vectors.T).T
        total = vectors.sum(axis=1)
        return np.asarray(squares - 2.0 * self._shift * plain + np.outer(total, self._shift**2))

    def parts(self) -> Iterator[FloatArray]:
        width = max(1, DENSE_BYTES // (8 * self._stored.shape[0]))
        for first in range(0, self.columns.size, width):
            part = slice(first, first + width)
            yield self._stored[:, part].toarray().T - self._shift[part, None]
