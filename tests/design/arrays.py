"""Arrays and sources of columns for the tests of designs."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def data(shape=(12, 9), seed=0):
    """Random numbers near one."""
    return np.random.default_rng(seed).normal(size=shape) * 2.0 + 1.0


class Columns:
    """Sparse columns in memory with the interface of a file."""

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
    """Random numbers near one, of any type and memory order."""
    X = np.random.default_rng(seed).standard_normal(shape) * 3.0 + 1.0
    return np.array(X, dtype=dtype, order=order)


def samples(shape=(30, 12), seed=0):
    """Samples of two classes with the same distribution; LABELS are their classes."""
    return np.random.default_rng(seed).standard_normal(shape)


def saved(folder, X, name="x.npy"):
    """The path of a NumPy file that holds X."""
    np.save(folder / name, X)
    return folder / name


LABELS = np.arange(30) % 2
