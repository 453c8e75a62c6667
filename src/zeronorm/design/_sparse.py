"""Designs of sparse data: SciPy matrices or arrays in CSR or CSC format, and CSC columns on disk."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray
from zeronorm.design import _ways as ways
from zeronorm.design._backend import Backend
from zeronorm.design._base import Design
from zeronorm.design._chunked import BYTES_WORTH_A_THREAD
from zeronorm.design._finite import is_surely_finite
from zeronorm.design._index import Index, as_selector, compose
from zeronorm.design._outer_products import symmetric_result
from zeronorm.design._stats import StatsAccumulator, read_only
from zeronorm.execution import available_threads, read_in_turn, run_in_threads

# -- Compiled products over pairs of stored values of each column --


@kernel
def sparse_gram(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], factor: FloatArray, K: FloatArray
) -> None:
    """Add ``sum_j factor_j x_j x_j'`` to K; only the lower triangle is computed, since row indices are sorted."""
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
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], M: FloatArray, result: FloatArray
) -> None:
    """Write ``x_j' M x_j`` for every column to ``result``."""
    for j in range(indptr.shape[0] - 1):
        total = 0.0
        for a in range(indptr[j], indptr[j + 1]):
            row = M[indices[a]]
            product = 0.0
            for b in range(indptr[j], indptr[j + 1]):
                product += row[indices[b]] * data[b]
            total += data[a] * product
        result[j] = total


@kernel
def sparse_sandwich(
    columns: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    rows: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    d: FloatArray,
    result: FloatArray,
    first: int,
    last: int,
) -> None:
    """Write rows ``first`` to ``last`` of ``X' diag(d) X``, each up to the diagonal.

    Each row of the result is completed before the next, which suits the cache; column indices are sorted.
    """
    data, indices, indptr = columns
    row_data, row_indices, row_indptr = rows
    for j in range(first, last):
        out = result[j]
        for a in range(indptr[j], indptr[j + 1]):
            i = indices[a]
            value = d[i] * data[a]
            for b in range(row_indptr[i], row_indptr[i + 1]):
                if row_indices[b] > j:
                    break
                out[row_indices[b]] += value * row_data[b]


# -- Checks of the structure: compiled loops would read outside the arrays --


@kernel
def _first_outside(indices: NDArray[Any], size: int) -> int:
    """Position of the first index that is not in 0..size-1, or -1."""
    for k in range(indices.shape[0]):
        if indices[k] < 0 or indices[k] >= size:
            return k
    return -1


@kernel
def _first_decrease(indptr: NDArray[Any]) -> int:
    """Position of the first bound that is less than the previous one, or -1."""
    for k in range(1, indptr.shape[0]):
        if indptr[k] < indptr[k - 1]:
            return k
    return -1


def check_structure(X: Any) -> None:
    """Raise an error if the indices of a SciPy sparse matrix point outside of it."""
    fault = _fault_of(X)
    if fault is not None:
        raise ValueError(f"The sparse matrix X is damaged: {fault}; build it again from its values.")


def _fault_of(X: Any) -> str | None:
    if X.format == "coo":
        rows_and_columns = ((X.row, X.shape[0], "row"), (X.col, X.shape[1], "column"))
        faults = [_index_fault(index, size, f"'{name}'") for index, size, name in rows_and_columns]
        return next((fault for fault in faults if fault is not None), None)
    if X.format not in ("csr", "csc", "bsr"):
        return None
    block = X.blocksize if X.format == "bsr" else (1, 1)
    rows, columns = X.shape[0] // block[0], X.shape[1] // block[1]
    major, minor = (columns, rows) if X.format == "csc" else (rows, columns)
    return _bounds_fault(X, major) or _index_fault(X.indices[: X.indptr[-1]], minor, "'indices'")


def _bounds_fault(X: Any, major: int) -> str | None:
    indptr, stored = X.indptr, min(len(X.indices), len(X.data))
    if indptr.shape != (major + 1,):
        return f"'indptr' must have {major + 1} entries and has {indptr.size}"
    if indptr[0] != 0:
        return f"'indptr' must begin with 0 and begins with {indptr[0]}"
    if indptr[-1] > stored:
        return f"'indptr' ends with {indptr[-1]}, but {stored} values are stored"
    position = _first_decrease(read_only(indptr))
    return None if position < 0 else f"'indptr' must not decrease, but entry {position} is {indptr[position]}"


def _index_fault(indices: NDArray[Any], size: int, name: str) -> str | None:
    position = _first_outside(read_only(indices), size)
    return (
        None
        if position < 0
        else f"{name} holds {indices[position]} at position {position}, not in 0..{size - 1}"
    )


# A multiplication of two stored values takes about this many times as long as one in a dense product.
_PAIR_COST = 30.0
_MOST_PARTS, _VALUES_PER_PART = 32, 1 << 15  # parts of a product, one per thread
_LARGEST_COLUMN_GAP = 64  # columns; smaller gaps between wanted columns are read, not skipped


class SparseDesign(Design):
    """A matrix in CSR or CSC format, used without a copy; CSR is converted to CSC once, when columns are needed."""

    backend = Backend(is_sparse=True)

    def __init__(self, matrix: Any, feature_names: NDArray[Any] | None = None) -> None:
        self._matrix = _canonical(matrix)
        super().__init__(self._matrix.shape, self._matrix.dtype, feature_names)

    @functools.cached_property
    def _csc(self) -> Any:
        return self._matrix.tocsc()

    @functools.cached_property
    def _csr(self) -> Any:
        rows = self._matrix.tocsr()
        rows.sort_indices()
        return rows

    def _take(self, columns: Index) -> SparseDesign:
        return SparseDesign(_select_major(self._csc, columns))

    def _take_rows(self, rows: Index) -> SparseDesign:
        if self._matrix.format == "csr":
            return SparseDesign(_select_major(self._matrix.T, rows).T)
        return SparseDesign(self._matrix[as_selector(rows)])

    def _fill(self, columns: Index, out: FloatArray) -> None:
        part = _select_major(self._csc, columns)
        column_of = np.repeat(np.arange(len(columns)), np.diff(part.indptr))
        out[...] = 0.0
        out[part.indices, column_of] = part.data

    def stored_columns(self, columns: IntArray) -> tuple[Any, FloatArray] | None:
        if not ways.corrects(self):
            return None
        # A sparse array, not a sparse matrix, for which * is the matrix product.
        matrix = (self._stored if isinstance(self._stored, SparseDesign) else self)._csc
        stored = sparse.csc_array(matrix[:, columns], dtype=np.float64)
        if self.affine is None:
            return stored, np.zeros(columns.size)
        factor = self.affine.factor[columns]
        stored.data *= np.repeat(factor, np.diff(stored.indptr))
        return stored, self.affine.mean[columns] * factor

    def _surely_finite(self) -> bool:
        return is_surely_finite(self._matrix.data)

    def _pairs_are_cheaper(self) -> bool:
        """Whether products of all pairs of stored values of each column take less time than dense products."""
        stored = np.diff(self._csc.indptr).astype(np.float64)
        return float(stored @ stored) * _PAIR_COST < float(self.n_samples) ** 2 * self.n_features

    def _gram(self, scale_sq: FloatArray | None) -> FloatArray:
        if not self._pairs_are_cheaper():
            return super()._gram(scale_sq)
        factor = np.ones(self.n_features) if scale_sq is None else scale_sq
        K = np.zeros((self.n_samples, self.n_samples))
        sparse_gram(*self._column_arrays(), read_only(factor), K)
        return K

    def _gram_adjoint(self, M: FloatArray) -> FloatArray:
        if not self._pairs_are_cheaper():
            return super()._gram_adjoint(M)
        result = np.empty(self.n_features)
        sparse_gram_adjoint(*self._column_arrays(), read_only(np.ascontiguousarray(M)), result)
        return result

    def _column_arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return _arrays_of(self._csc)

    def _cross_gram(self, other: Design, scale_sq: FloatArray | None) -> FloatArray:
        if not isinstance(other, SparseDesign):
            return super()._cross_gram(other, scale_sq)
        scale = np.ones(self.n_features) if scale_sq is None else scale_sq
        return _dense(self._matrix.multiply(scale).tocsr() @ other._matrix.T)

    def _dot(self, w: FloatArray) -> FloatArray:
        return np.asarray(self._matrix @ w)

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        return np.asarray(self._matrix.T @ V)

    def _sandwich(self, d: FloatArray) -> FloatArray:
        result, weight = np.zeros((self.n_features, self.n_features)), read_only(np.ascontiguousarray(d))
        columns, rows = self._column_arrays(), _arrays_of(self._csr)
        tasks = [(columns, rows, weight, result, *bounds) for bounds in _even_parts(columns[2])]
        run_in_threads(sparse_sandwich, tasks, available_threads() if len(tasks) > 1 else 1)
        return symmetric_result(result).T

    def _squared_norms(self) -> FloatArray:
        values = self._csc.data.astype(np.float64)
        column_of = np.repeat(np.arange(self.n_features), np.diff(self._csc.indptr))
        return np.bincount(column_of, values**2, self.n_features).astype(np.float64)

    def _accumulate_stats(self, accumulator: StatsAccumulator) -> None:
        accumulator.add_sparse(*self._column_arrays())


def _arrays_of(compressed: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    return read_only(compressed.data), read_only(compressed.indices), read_only(compressed.indptr)


def _even_parts(indptr: NDArray[Any]) -> list[tuple[int, int]]:
    """Bounds of parts of consecutive columns with about equally many stored values; one part if these are few."""
    n_parts = min(_MOST_PARTS, 1 + int(indptr[-1]) // _VALUES_PER_PART)
    cuts = np.searchsorted(indptr, np.linspace(0, indptr[-1], n_parts + 1)[1:-1]).tolist()
    return [pair for pair in itertools.pairwise([0, *cuts, indptr.size - 1]) if pair[1] > pair[0]]


def _canonical(matrix: Any) -> Any:
    """Return the matrix in CSR or CSC format without duplicate entries; the user's matrix is not changed."""
    compressed = matrix if matrix.format in ("csr", "csc") else matrix.tocsr()
    if compressed.has_canonical_format:
        return compressed
    if compressed is matrix:
        compressed = matrix.copy()
    compressed.sum_duplicates()
    return compressed


def _select_major(csc: Any, columns: Index) -> Any:
    """Select columns of a CSC matrix; consecutive columns share the memory of the original."""
    if not (isinstance(columns, range) and columns.step == 1):
        return csc[:, as_selector(columns)]
    indptr = csc.indptr[columns.start : max(columns.start, columns.stop) + 1]
    stored = slice(int(indptr[0]), int(indptr[-1]))
    arrays = (csc.data[stored], csc.indices[stored], indptr - indptr[0])
    part = type(csc)(arrays, shape=(csc.shape[0], len(columns)), copy=False)
    part.has_canonical_format = True
    return part


def _dense(product: Any) -> FloatArray:
    return np.asarray(product.toarray() if sparse.issparse(product) else product, dtype=np.float64)


# -- Sparse columns that stay on disk --


class SparseColumns(Protocol):
    """A source of columns in CSC format, such as a file."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @property
    def stored_per_column(self) -> NDArray[np.int64]: ...

    def stored(self, columns: range) -> Any:
        """Return consecutive columns in CSC format, without duplicate entries."""


class SparseFileDesign(Design):
    """CSC columns on disk, read in blocks as they are needed; small selections are read into memory.

    Parameters
    ----------
    source : the file with the columns
    memory_budget : bytes that all blocks together may take
    """

    backend = Backend(is_sparse=True)

    def __init__(
        self,
        source: SparseColumns,
        feature_names: NDArray[Any] | None = None,
        *,
        rows: Index | None = None,
        columns: Index | None = None,
        memory_budget: int,
    ) -> None:
        self._source = source
        self._memory_budget = memory_budget
        self._rows: Index = range(source.shape[0]) if rows is None else rows
        self._columns: Index = range(source.shape[1]) if columns is None else columns
        dtype = np.dtype(np.float32 if source.dtype == np.float32 else np.float64)
        super().__init__((len(self._rows), len(self._columns)), dtype, feature_names)

    def _stored_bytes(self, columns: Index) -> NDArray[np.int64]:
        return self._source.stored_per_column[as_selector(columns)] * (self.dtype.itemsize + 4)

    def _take(self, columns: Index) -> Design:
        return self._part(self._rows, compose(self._columns, columns))

    def _take_rows(self, rows: Index) -> Design:
        return self._part(compose(self._rows, rows), self._columns)

    def _part(self, rows: Index, columns: Index) -> Design:
        part = SparseFileDesign(self._source, rows=rows, columns=columns, memory_budget=self._memory_budget)
        share = len(rows) / max(1, self._source.shape[0])
        size = share * float(self._stored_bytes(columns).sum()) + 8 * len(columns)
        return part._read_whole() if 4 * size <= self._memory_budget else part

    def _read_whole(self) -> Design:
        parts = [part._csc for _, part in self._parts()]
        if not parts:
            parts = [sparse.csc_array(self.shape, dtype=self.dtype)]
        return SparseDesign(sparse.hstack(parts, format="csc"), self.feature_names)

    def _cuts(self) -> list[slice]:
        """Slices of consecutive columns whose stored values take an eighth of the budget, or of one larger column."""
        sizes = np.cumsum(self._stored_bytes(self._columns) + 16)
        cuts, most = [0], self._memory_budget // 8
        while cuts[-1] < self.n_features:
            before = sizes[cuts[-1] - 1] if cuts[-1] else 0
            stop = int(np.searchsorted(sizes, before + most, side="right"))
            cuts.append(min(max(stop, cuts[-1] + 1), self.n_features))
        return [slice(*pair) for pair in itertools.pairwise(cuts)]

    def _parts(self) -> Iterator[tuple[slice, SparseDesign]]:
        """Yield all columns in order, in parts; with a large budget the next part is read while one is used."""
        cuts = self._cuts()
        ahead = self._memory_budget >= BYTES_WORTH_A_THREAD
        parts = read_in_turn(self._read, [self._columns[cut] for cut in cuts], ahead=ahead)
        yield from zip(cuts, parts, strict=True)

    def _read(self, columns: Index) -> SparseDesign:
        """Read some columns of the file, with the rows of this design."""
        if isinstance(columns, range) and columns.step == 1:
            found = self._source.stored(columns)
        else:
            wanted, back = np.unique(np.asarray(columns), return_inverse=True)
            pieces = np.split(wanted, np.flatnonzero(np.diff(wanted) > _LARGEST_COLUMN_GAP) + 1)
            runs = [
                (self._source.stored(range(int(p[0]), int(p[-1]) + 1)), p - p[0]) for p in pieces if p.size
            ]
            found = sparse.hstack([run[:, positions] for run, positions in runs], format="csc")[:, back]
        if self._rows != range(self._source.shape[0]) if isinstance(self._rows, range) else True:
            found = found[as_selector(self._rows)]
        return SparseDesign(found)

    def _block_width(self) -> int:
        return max(1, min(super()._block_width(), self._memory_budget // 8 // (8 * max(1, self.n_samples))))

    def _fill(self, columns: Index, out: FloatArray) -> None:
        self._read(compose(self._columns, columns))._fill(range(len(columns)), out)

    def _surely_finite(self) -> bool:
        return all(part._surely_finite() for _, part in self._parts())

    def _gram(self, scale_sq: FloatArray | None) -> FloatArray:
        K = np.zeros((self.n_samples, self.n_samples))
        for columns, part in self._parts():
            K += part._gram(None if scale_sq is None else scale_sq[columns])
        return K

    def _cross_gram(self, other: Design, scale_sq: FloatArray | None) -> FloatArray:
        K = np.zeros((self.n_samples, other.n_samples))
        for columns, part in self._parts():
            chosen = other.take(columns)
            K += part._cross_gram(chosen, None if scale_sq is None else scale_sq[columns])
        return K

    def _gram_adjoint(self, M: FloatArray) -> FloatArray:
        return self._of_parts(lambda part: part._gram_adjoint(M), ())

    def _dot(self, w: FloatArray) -> FloatArray:
        result = np.zeros((self.n_samples, *w.shape[1:]))
        for columns, part in self._parts():
            result += part._dot(w[columns])
        return result

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        return self._of_parts(lambda part: part._transpose_dot(V), V.shape[1:])

    def _squared_norms(self) -> FloatArray:
        return self._of_parts(lambda part: part._squared_norms(), ())

    def _of_parts(
        self, result_of: Callable[[SparseDesign], FloatArray], others: tuple[int, ...]
    ) -> FloatArray:
        result = np.empty((self.n_features, *others))
        for columns, part in self._parts():
            result[columns] = result_of(part)
        return result

    def _sandwich(self, d: FloatArray) -> FloatArray:
        """Sum over bands of rows, each of which is read into memory."""
        n_bands = 1 + int(8 * float(self._stored_bytes(self._columns).sum()) // max(1, self._memory_budget))
        result = np.zeros((self.n_features, self.n_features))
        bounds = np.linspace(0, self.n_samples, n_bands + 1).astype(int).tolist()
        for top, bottom in itertools.pairwise(bounds):
            part = SparseFileDesign(
                self._source,
                rows=compose(self._rows, range(top, bottom)),
                columns=self._columns,
                memory_budget=self._memory_budget,
            )
            result += part._read_whole()._sandwich(d[top:bottom])
        return result

    def _accumulate_stats(self, accumulator: StatsAccumulator) -> None:
        for columns, part in self._parts():
            accumulator.add_sparse(*part._column_arrays(), columns)
