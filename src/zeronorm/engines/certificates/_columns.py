"""The few columns that a relaxation uses."""

from __future__ import annotations

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.certificates._bounds import Objective
from zeronorm.engines.certificates._conjugates import SquaredError

STORED_COLUMNS = 4000  # columns in memory; the products of all pairs of them take 128 MB


class ColumnsInUse:
    """Columns in memory, in the order in which they were first used, and their products with each other."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self._index = np.full(objective.design.n_features, -1, dtype=np.intp)
        self._n = 0
        self._columns = np.empty((0, objective.design.n_samples))  # one per row
        self._gram = np.empty((0, 0))
        # With a quadratic loss the Hessian is the same at every point.
        self.keeps_gram = isinstance(objective.loss, SquaredError)

    def _rows(self, columns: IntArray) -> IntArray:
        """Where the columns are stored, after reading those that are missing."""
        missing = columns[self._index[columns] < 0]
        if missing.size:
            if self._n and self._n + missing.size > STORED_COLUMNS:
                self._index[:] = -1
                self._n, missing = 0, columns
            self._reserve(self._n + missing.size)
            self._read(missing)
        return self._index[columns]

    def _reserve(self, count: int) -> None:
        if count <= len(self._columns):
            return
        capacity = max(count, min(2 * len(self._columns), STORED_COLUMNS))
        kept, gram = self._columns[: self._n], self._gram[: self._n, : self._n]
        self._columns = np.empty((capacity, self.objective.design.n_samples))
        self._columns[: self._n] = kept
        if self.keeps_gram:
            self._gram = np.empty((capacity, capacity))
            self._gram[: self._n, : self._n] = gram

    def _read(self, missing: IntArray) -> None:
        cost, first, last = self.objective.cost, self._n, self._n + missing.size
        new = self.objective.design.block(missing).T
        if self.keeps_gram:
            new -= ((new @ cost) / cost.sum())[:, None]  # the best bias follows the weights
        self._columns[first:last] = new
        if self.keeps_gram:
            products = self._columns[:last] @ (new * cost).T
            self._gram[:last, first:last] = products
            self._gram[first:last, :last] = products.T
        self._index[missing] = np.arange(first, last)
        self._n = last

    def block(self, columns: IntArray) -> FloatArray:
        """The columns, centred if their products are kept."""
        rows = self._rows(columns)
        return self._columns[rows].T

    def gram(self, columns: IntArray) -> FloatArray:
        """Their weighted products."""
        rows = self._rows(columns)
        return self._gram[rows[:, None], rows]
