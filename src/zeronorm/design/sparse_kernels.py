"""Compiled products over pairs of stored values in compressed sparse columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel

Array = NDArray[np.float64]


@kernel
def sparse_gram(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], factor: Array, K: Array
) -> None:
    """Add ``sum_j factor_j x_j x_j'`` to K; rows are sorted within a column, so a half is enough."""
    for j in range(indptr.shape[0] - 1):
        if factor[j] != 0.0:
            for a in range(indptr[j], indptr[j + 1]):
                value = factor[j] * data[a]
                row = K[indices[a]]
                for b in range(indptr[j], a + 1):
                    row[indices[b]] += value * data[b]
    for i in range(K.shape[0]):
        for k in range(i):
            K[k, i] = K[i, k]


@kernel
def sparse_gram_adjoint(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], M: Array, result: Array
) -> None:
    """Write ``x_j' M x_j`` for every column."""
    for j in range(indptr.shape[0] - 1):
        total = 0.0
        for a in range(indptr[j], indptr[j + 1]):
            row = M[indices[a]]
            product = 0.0
            for b in range(indptr[j], indptr[j + 1]):
                product += row[indices[b]] * data[b]
            total += data[a] * product
        result[j] = total
