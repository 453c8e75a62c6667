"""Arrays and sources of columns for the tests of designs."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def data(shape=(12, 9), seed=0):
    return np.random.default_rng(seed).normal(size=shape) * 2.0 + 1.0


class Columns:
    """Sparse columns in memory that pretend to be on disk."""

    def __init__(self, X):
        self.matrix = sparse.csc_array(X)
        self.shape, self.dtype, self.read = X.shape, self.matrix.dtype, []

    @property
    def stored_per_column(self):
        return np.diff(self.matrix.indptr).astype(np.int64)

    def stored(self, columns):
        self.read.append((columns.start, columns.stop))
        return self.matrix[:, columns.start : columns.stop]


def numbers(shape=(13, 29), dtype=np.float64, order="C", seed=0):
    X = np.random.default_rng(seed).standard_normal(shape) * 3.0 + 1.0
    return np.array(X, dtype=dtype, order=order)
