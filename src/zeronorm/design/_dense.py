"""A design held in one NumPy array, in either memory order."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.design._backend import Backend
from zeronorm.design._base import SMALL_COPY_BYTES, Design
from zeronorm.design._blocks import scratch_blocks
from zeronorm.design._column_kernels import (
    columns_range,
    columns_transpose_dot,
    float_bits,
    from_keys,
    rows_dot,
    rows_transpose_dot,
    transpose_columns,
)
from zeronorm.design._finite import is_surely_finite
from zeronorm.design._gram import gram_of_blocks
from zeronorm.design._index import Index, as_selector, compose
from zeronorm.design._stats import StatsAccumulator, read_only
from zeronorm.execution import available_threads, run_in_threads

BYTES_PER_THREAD = 32 << 20
# More parts than threads: a thread on a busy core then takes fewer of them.
PARTS_PER_THREAD = 8
MOST_COMPILED_VECTORS = 8
CACHE_BYTES, NARROWEST = 1 << 20, 1024
# Gathering rows costs three passes over them (read, write, read again); using all rows with a mask costs one.
SHARE_WORTH_A_MASK = 0.3

_BY_ROW = Backend(in_one_array=True, order="C")
_BY_COLUMN = Backend(in_one_array=True, order="F")


class DenseDesign(Design):
    """Selected rows and columns of a float32 or float64 array, which is never copied as a whole.

    Selections are kept as indices into the original array; the selected entries are copied block by block.
    """

    def __init__(
        self,
        array: NDArray[Any],
        feature_names: NDArray[Any] | None = None,
        *,
        rows: Index | None = None,
        columns: Index | None = None,
    ) -> None:
        self._array = array
        self._rows: Index = range(array.shape[0]) if rows is None else rows
        self._columns: Index = range(array.shape[1]) if columns is None else columns
        row_stride, column_stride = array.strides
        self.backend = _BY_ROW if abs(column_stride) < abs(row_stride) else _BY_COLUMN
        super().__init__((len(self._rows), len(self._columns)), array.dtype, feature_names)

    @classmethod
    def of_part(cls, array: NDArray[Any], feature_names: NDArray[Any] | None = None) -> DenseDesign:
        """Return the design of an array; for a view of consecutive columns it refers to the larger array."""
        whole = array.base
        if (
            not isinstance(whole, np.ndarray)
            or whole.ndim != 2
            or whole.dtype != array.dtype
            or not whole.flags.c_contiguous
            or array.strides != whole.strides
            or not array.size
        ):
            return cls(array, feature_names)
        distance = (array.ctypes.data - whole.ctypes.data) // array.itemsize
        row, column = divmod(distance, whole.shape[1])
        rows, columns = range(row, row + array.shape[0]), range(column, column + array.shape[1])
        return cls(whole, feature_names, rows=rows, columns=columns)

    def _take(self, columns: Index) -> DenseDesign:
        return type(self)(self._array, rows=self._rows, columns=compose(self._columns, columns))

    def _take_rows(self, rows: Index) -> DenseDesign:
        return type(self)(self._array, rows=compose(self._rows, rows), columns=self._columns)

    def _view(self, columns: Index) -> NDArray[Any]:
        """Return the selected columns: a view if the selection consists of ranges, otherwise a copy."""
        are_all = isinstance(columns, range) and len(columns) == self.n_features
        chosen, rows = self._columns if are_all else compose(self._columns, columns), self._rows
        if isinstance(rows, range):
            part = self._array[rows.start : rows.stop : rows.step]
            if isinstance(chosen, range):
                return part[:, chosen.start : chosen.stop : chosen.step]
            return part[:, chosen]
        if isinstance(chosen, range):  # the columns first: only selected entries are then copied
            return self._array[:, as_selector(chosen)][rows]
        selected: NDArray[Any] = self._array[np.ix_(rows, chosen)]
        return selected

    def _fill(self, columns: Index, out: FloatArray) -> None:
        view = self._view(columns)
        if view.flags.f_contiguous and out.strides[1] == out.itemsize < out.strides[0]:
            transpose_columns(read_only(view.T), out)
        else:
            np.copyto(out, view)

    def _surely_finite(self) -> bool:
        if not (isinstance(self._rows, range) and isinstance(self._columns, range)):
            return super()._surely_finite()
        view = self._view(range(self.n_features))
        if view.dtype != np.float32:  # one BLAS product, which uses threads itself
            return is_surely_finite(view)
        lines = view if self.backend.order == "C" else view.T
        found: list[bool] = []
        self._in_parts(
            lambda part: found.append(is_surely_finite(lines[part.start : part.stop])), lines.shape[0]
        )
        return all(found)

    def __getstate__(self) -> dict[str, Any]:  # a view would be pickled as a second copy
        return {name: value for name, value in super().__getstate__().items() if name != "_memory"}

    @functools.cached_property
    def _memory(self) -> FloatArray | None:
        """The whole design as a view that BLAS can read without a copy, or None."""
        if self.dtype != np.float64:
            return None
        if not (isinstance(self._rows, range) and isinstance(self._columns, range)):
            return None
        view = self._view(range(self.n_features))
        return view if view.itemsize in view.strides else None

    def _gram(self, scale_sq: FloatArray | None) -> FloatArray:
        memory = self._memory
        if scale_sq is None and memory is not None:
            return memory @ memory.T
        return gram_of_blocks(self, scale_sq)

    def _all_samples(self) -> DenseDesign | None:
        """Return the design of all samples if products with it and a mask are faster than copying rows; else None."""
        if isinstance(self._rows, range) or len(self._rows) < SHARE_WORTH_A_MASK * self._array.shape[0]:
            return None
        whole = DenseDesign(
            self._array, self.feature_names, rows=range(self._array.shape[0]), columns=self._columns
        )
        return whole if whole._memory is not None else None

    def _dot(self, w: FloatArray) -> FloatArray:
        memory = self._memory
        if memory is not None:
            return memory @ w
        whole = self._all_samples()
        if whole is not None:
            with np.errstate(all="ignore"):  # overflow in samples that are not selected
                return whole._dot(w)[self._rows]
        if w.ndim == 1 and self._uses_compiled_products(w) and self._array.flags.c_contiguous:
            return self._compiled_dot(w)
        return super()._dot(w)

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        memory = self._memory
        if memory is not None:
            return memory.T @ V
        whole = self._all_samples()
        if whole is not None:
            padded = np.zeros((whole.n_samples, *V.shape[1:]))
            np.add.at(padded, self._rows, V)
            with np.errstate(all="ignore"):
                result = whole._transpose_dot(padded)
            # Infinity or NaN in a sample that is not selected makes sums NaN, although its factor is zero.
            if np.isfinite(result).all():
                return result
        if self._uses_compiled_products(V):
            return self._compiled_transpose_dot(V)
        return super()._transpose_dot(V)

    def _uses_compiled_products(self, vectors: FloatArray) -> bool:
        """Whether compiled loops multiply float32 without a copy; with many vectors, BLAS on float64 is faster."""
        few = vectors.ndim == 1 or vectors.shape[1] <= MOST_COMPILED_VECTORS
        columns = self._columns
        consecutive = isinstance(columns, range) and columns.step == 1
        in_place = consecutive and len(columns) > 0 and self._array.flags.forc
        return few and in_place and self.dtype == np.float32

    def _compiled_transpose_dot(self, V: FloatArray) -> FloatArray:
        vectors = read_only(np.ascontiguousarray(np.atleast_2d(V.T)))
        result = np.empty((len(vectors), self.n_features))
        rows, start = np.asarray(self._rows, dtype=np.intp), int(self._columns[0])
        by_row = self._array.flags.c_contiguous
        array = read_only(self._array if by_row else self._array.T)
        product = rows_transpose_dot if by_row else columns_transpose_dot

        def read(part: range) -> None:
            product(array, rows, vectors, start + part.start, len(part), result[:, part.start : part.stop])

        self._in_parts(read, self.n_features)
        return result.T if V.ndim == 2 else result[0]

    def _compiled_dot(self, w: FloatArray) -> FloatArray:
        result = np.empty(self.n_samples)
        rows, start = np.asarray(self._rows, dtype=np.intp), int(self._columns[0])
        array, w = read_only(self._array), read_only(np.ascontiguousarray(w))

        def read(part: range) -> None:
            rows_dot(array, rows, w, start, part.start, result[part.start : part.stop])

        self._in_parts(read, self.n_samples)
        return result

    def _in_parts(self, read: Callable[[range], None], size: int) -> None:
        """Call ``read`` for all parts, in several threads if the data are large."""
        n_threads = _n_read_threads(self.n_features * self.n_samples * self.dtype.itemsize)
        if n_threads == 1:
            if size:
                read(range(size))
            return
        bounds = np.linspace(0, size, PARTS_PER_THREAD * n_threads + 1).astype(int).tolist()
        parts = [(range(start, stop),) for start, stop in itertools.pairwise(bounds) if stop > start]
        run_in_threads(read, parts, n_threads)

    def _column_range(self) -> tuple[FloatArray, FloatArray]:
        if not (isinstance(self._rows, range) and isinstance(self._columns, range)) or not self.n_samples:
            return super()._column_range()
        view = self._view(range(self.n_features))
        low, high = np.empty(self.n_features), np.empty(self.n_features)
        read = _range_of_columns if view.flags.f_contiguous else _range_of_rows
        self._in_parts(lambda part: read(view, part, low, high), self.n_features)
        return low, high

    def _accumulate_stats(self, accumulator: StatsAccumulator, target: int = 0) -> None:
        """Add the statistics of all columns; those of the first are written at index ``target``."""
        columns = self._columns
        if self._array.flags.forc and isinstance(columns, range) and columns.step == 1:
            first = columns.start

            def read(part: range) -> None:
                here = range(first + part.start, first + part.stop)
                accumulator.add_dense(self._array, here, target + part.start, rows=self._rows)

            self._in_parts(read, self.n_features)
        else:
            for block_columns, block in scratch_blocks(self):
                accumulator.add_dense(block, range(block.shape[1]), target + block_columns.start)


def _range_of_columns(view: NDArray[Any], part: range, low: FloatArray, high: FloatArray) -> None:
    """Minimum and maximum of some columns of a Fortran-ordered array."""
    columns = slice(part.start, part.stop)
    keys = np.empty((2, len(part)), dtype=np.int64)
    columns_range(float_bits(read_only(view[:, columns].T)), *keys)
    low[columns], high[columns] = from_keys(keys, view.dtype)
    missing = np.isnan(low[columns]) | np.isnan(high[columns])  # NaN comes before or after all numbers
    low[columns][missing], high[columns][missing] = np.nan, np.nan


def _range_of_rows(view: NDArray[Any], part: range, low: FloatArray, high: FloatArray) -> None:
    """The same for other arrays, with so few columns at a time that they stay in the cache for the maximum."""
    width = max(NARROWEST, CACHE_BYTES // (view.shape[0] * view.itemsize))
    for start in range(part.start, part.stop, width):
        columns = slice(start, min(start + width, part.stop))
        low[columns] = view[:, columns].min(axis=0)
        high[columns] = view[:, columns].max(axis=0)


def _n_read_threads(n_bytes: int) -> int:
    """Number of threads that read the data: one for small data, all that are available for large data."""
    wanted = 1 + n_bytes // BYTES_PER_THREAD
    return 1 if wanted == 1 else min(available_threads(), wanted)


def in_one_piece(design: Design) -> Design:
    """Return the same data, copied if they are a small scattered part of a larger array; otherwise unchanged."""
    if not isinstance(design, DenseDesign) or isinstance(design._rows, range):
        return design
    if design.dtype.itemsize * design.n_samples * design.n_features > SMALL_COPY_BYTES:
        return design
    copied = DenseDesign(
        np.array(design._view(range(design.n_features)), order=design.backend.order), design.feature_names
    )
    copied._known_finite = design._known_finite
    return copied if design.affine is None else copied._with(design.affine)
