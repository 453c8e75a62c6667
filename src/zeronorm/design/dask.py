"""A design held in a Dask array: products run where the chunks are, only results come back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.design.base import Design
from zeronorm.design.index import Index, as_selector


class DaskDesign(Design):
    """A two-dimensional ``dask.array`` of real numbers, in memory, in files or on a cluster.

    Products are Dask computations over the chunks; blocks are computed when they are asked for. Chunks
    that hold all samples of some features, ``x.rechunk((-1, "auto"))``, suit wide data best.
    """

    def __init__(self, array: Any, feature_names: NDArray[Any] | None = None) -> None:
        self._array = array
        super().__init__((int(array.shape[0]), int(array.shape[1])), array.dtype, feature_names)

    def _take(self, columns: Index) -> DaskDesign:
        return DaskDesign(self._array[:, as_selector(columns)], self._names_of(columns))

    def _take_rows(self, rows: Index) -> DaskDesign:
        return DaskDesign(self._array[as_selector(rows)], self.feature_names)

    def _fill(self, columns: Index, out: FloatArray) -> None:
        if out.size:
            np.copyto(out, _computed(self._array[:, as_selector(columns)]))

    def _block_width(self) -> int:
        """Whole chunks, because part of a chunk costs as much to compute."""
        chunk = max(1, *(int(width) for width in self._array.chunks[1]))
        return chunk * max(1, super()._block_width() // chunk)

    @property
    def _double(self) -> Any:
        return self._array.astype(np.float64)

    @property
    def _is_empty(self) -> bool:
        """Dask has no products of arrays without elements; the blockwise defaults do."""
        return 0 in self.shape

    def _gram(self, scale_sq: FloatArray | None) -> FloatArray:
        if self._is_empty:
            return super()._gram(scale_sq)
        left = self._double if scale_sq is None else self._double * scale_sq
        return _computed(left @ self._double.T)

    def _gram_adjoint(self, M: FloatArray) -> FloatArray:
        if self._is_empty:
            return super()._gram_adjoint(M)
        return _computed((self._double * (M @ self._double)).sum(axis=0))

    def _dot(self, w: FloatArray) -> FloatArray:
        return super()._dot(w) if self._is_empty else _computed(self._double @ w)

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        return super()._transpose_dot(V) if self._is_empty else _computed(self._double.T @ V)

    def squared_norms(self) -> FloatArray:
        return super().squared_norms() if self._is_empty else _computed((self._double**2).sum(axis=0))


def is_dask_array(X: Any) -> bool:
    """Tell whether X is a Dask array, without importing Dask."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "chunks")


def from_dask(X: Any, feature_names: NDArray[Any] | None = None) -> DaskDesign:
    """Return the design of a Dask array."""
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(
            "A Dask array must be two-dimensional, samples by features, and real. "
            f"Got {X.ndim} dimension(s) of type {X.dtype} instead."
        )
    if any(np.isnan(size) for size in X.shape):
        raise ValueError(
            f"The shape of a Dask array must be known. Got {X.shape} instead; call X.compute_chunk_sizes() first."
        )
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float32 if X.dtype == np.float16 else np.float64)
    return DaskDesign(X, feature_names)


def _computed(result: Any) -> FloatArray:
    try:
        return np.asarray(result.compute(), dtype=np.float64)
    except Exception as error:
        raise RuntimeError(
            f"Dask could not compute a chunk of X: {type(error).__name__}: {error}; look at the first lines of "
            "the error above for the task that failed."
        ) from error
