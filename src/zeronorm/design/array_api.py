"""A design held in an array of another library (torch, CuPy, …): products run on its device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.design.base import Design
from zeronorm.design.index import Index, as_slice, compose

# Libraries whose arrays are left where they are; NumPy's own arrays are a DenseDesign.
LIBRARIES = ("torch", "cupy", "array_api_strict")


class ArrayApiDesign(Design):
    """A two-dimensional array that follows the array API standard, on a GPU for instance.

    Products are computed on the device, block by block in double precision; only results, and blocks
    that are asked for, come to the host.
    """

    def __init__(
        self,
        array: Any,
        feature_names: NDArray[Any] | None = None,
        *,
        rows: Index | None = None,
        columns: Index | None = None,
    ) -> None:
        self._array = array
        self._rows: Index = range(array.shape[0]) if rows is None else rows
        self._columns: Index = range(array.shape[1]) if columns is None else columns
        single = array.dtype == _namespace(array).float32
        dtype = np.dtype(np.float32 if single else np.float64)
        super().__init__((len(self._rows), len(self._columns)), dtype, feature_names)

    def _take(self, columns: Index) -> ArrayApiDesign:
        chosen = compose(self._columns, columns)
        return ArrayApiDesign(self._array, self._names_of(columns), rows=self._rows, columns=chosen)

    def _take_rows(self, rows: Index) -> ArrayApiDesign:
        chosen = compose(self._rows, rows)
        return ArrayApiDesign(self._array, self.feature_names, rows=chosen, columns=self._columns)

    def _fill(self, columns: Index, out: FloatArray) -> None:
        if out.size:
            np.copyto(out, _to_host(self._block_on_device(columns)))

    # Products on the device

    def _block_on_device(self, columns: Index) -> Any:
        xp = _namespace(self._array)
        part = _select(xp, self._array, compose(self._columns, columns), axis=1)
        return xp.astype(_select(xp, part, self._rows, axis=0), xp.float64)

    def _to_device(self, values: NDArray[Any]) -> Any:
        xp = _namespace(self._array)
        return xp.asarray(np.ascontiguousarray(values), device=_device(self._array))

    def _by_block(self, shape: tuple[int, ...], product: Callable[[Any, slice], Any]) -> FloatArray:
        """Collect a product that has one row of the result for each column."""
        result = np.zeros(shape)
        for columns in self._column_slices():
            block = self._block_on_device(range(columns.start, columns.stop))
            result[columns] = _to_host(product(block, columns))
        return result

    def _sum_of_blocks(self, shape: tuple[int, ...], product: Callable[[Any, slice], Any]) -> FloatArray:
        """Sum a product over blocks of columns, on the device."""
        total = None
        for columns in self._column_slices():
            part = product(self._block_on_device(range(columns.start, columns.stop)), columns)
            total = part if total is None else total + part
        return np.zeros(shape) if total is None else _to_host(total)

    def _gram(self, scale_sq: FloatArray | None) -> FloatArray:
        shape = (self.n_samples, self.n_samples)
        if scale_sq is None:
            return self._sum_of_blocks(shape, lambda block, _: block @ block.T)
        scale = self._to_device(scale_sq)
        return self._sum_of_blocks(shape, lambda block, columns: (block * scale[columns]) @ block.T)

    def _gram_adjoint(self, M: FloatArray) -> FloatArray:
        xp, on_device = _namespace(self._array), self._to_device(M)
        return self._by_block(
            (self.n_features,), lambda block, _: xp.sum(block * (on_device @ block), axis=0)
        )

    def _dot(self, w: FloatArray) -> FloatArray:
        on_device = self._to_device(w)
        shape = (self.n_samples, *w.shape[1:])
        return self._sum_of_blocks(shape, lambda block, columns: block @ on_device[columns, ...])

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        on_device = self._to_device(V)
        return self._by_block((self.n_features, *V.shape[1:]), lambda block, _: block.T @ on_device)

    def squared_norms(self) -> FloatArray:
        xp = _namespace(self._array)
        return self._by_block((self.n_features,), lambda block, _: xp.sum(block * block, axis=0))


def is_foreign_array(X: Any) -> bool:
    """Tell whether X is an array of a library that keeps its arrays on a device."""
    return type(X).__module__.partition(".")[0] in LIBRARIES and hasattr(X, "dtype")


def from_array_api(X: Any, feature_names: NDArray[Any] | None = None) -> ArrayApiDesign:
    """Return the design of an array that follows the array API standard."""
    xp = _namespace(X)
    if len(X.shape) != 2 or not xp.isdtype(X.dtype, ("bool", "real floating", "integral")):
        raise ValueError(
            "X must be two-dimensional, samples by features, and real. "
            f"Got {len(X.shape)} dimension(s) of type {X.dtype} instead."
        )
    if X.dtype not in (xp.float32, xp.float64):
        X = xp.astype(X, xp.float64)
    return ArrayApiDesign(X, feature_names)


def _namespace(array: Any) -> Any:
    try:
        from array_api_compat import array_namespace
    except ImportError as error:
        raise ImportError(
            f"Arrays of type {type(array)} are used through array-api-compat, which is not installed; "
            "install zeronorm[gpu]."
        ) from error
    return array_namespace(array)


def _device(array: Any) -> Any:
    from array_api_compat import device

    return device(array)


def _to_host(array: Any) -> NDArray[Any]:
    """Copy to NumPy, from whatever device."""
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    if hasattr(array, "cpu"):  # torch
        return np.asarray(array.detach().cpu().numpy())
    return np.from_dlpack(array)


def _select(xp: Any, array: Any, index: Index, axis: int) -> Any:
    if len(index) == array.shape[axis] and isinstance(index, range) and index.step == 1:
        return array
    if isinstance(index, range):
        end = min(as_slice(index).stop, array.shape[axis])  # the standard has no slices beyond the end
        chosen = slice(min(index.start, end), end, index.step)
        return array[chosen, :] if axis == 0 else array[:, chosen]
    positions = xp.asarray(np.ascontiguousarray(index, dtype=np.int64), device=_device(array))
    return xp.take(array, positions, axis=axis)
