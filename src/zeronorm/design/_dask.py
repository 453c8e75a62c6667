"""A design held in a Dask array: operations run on the workers that hold the chunks, and only results are returned."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.design._affine import Affine
from zeronorm.design._backend import Backend
from zeronorm.design._base import Design
from zeronorm.design._blocks import is_tall
from zeronorm.design._dense import DenseDesign
from zeronorm.design._index import Index, as_index, as_selector, compose
from zeronorm.design._stats import StatsAccumulator
from zeronorm.execution import available_bytes

# A Dask array is persisted on its workers if it takes at most this fraction of the memory that is free here.
_KEPT_SHARE = 1 / 4


@dataclass(frozen=True)
class _Piece:
    """All samples of the selected features of one chunk, as a task.

    ``position`` holds the column indices of these features in the design, ``columns`` those in the chunk (None: all).
    """

    position: slice | IntArray
    columns: Index | None
    chunk: Any


class DaskDesign(Design):
    """A two-dimensional ``dask.array`` of real numbers, in memory, in files or on a cluster.

    Each operation is one Dask graph that computes every chunk once and applies the operation to a `DenseDesign` of
    that chunk. For wide data, chunks should hold all samples of some features, as ``x.rechunk((-1, "auto"))`` does;
    other chunks are merged when they are used. Selections are kept as indices and applied to each chunk; only chunks
    with a selected feature are computed.

    Parameters
    ----------
    array : the data
    rows, columns : the selected part of an array whose chunks hold all samples, by default all
    """

    backend = Backend(transforms=True)

    def __init__(
        self,
        array: Any,
        feature_names: NDArray[Any] | None = None,
        *,
        rows: Index | None = None,
        columns: Index | None = None,
    ) -> None:
        self._array = array
        self._rows: Index = range(int(array.shape[0])) if rows is None else rows
        self._columns: Index = range(int(array.shape[1])) if columns is None else columns
        super().__init__((len(self._rows), len(self._columns)), array.dtype, feature_names)

    @property
    def _keeps_indices(self) -> bool:
        return bool(self._array.numblocks[0] == 1)

    def _take(self, columns: Index) -> DaskDesign:
        if not self._keeps_indices:
            return DaskDesign(self._array[:, as_selector(columns)])
        return DaskDesign(self._array, rows=self._rows, columns=compose(self._columns, columns))

    def _take_rows(self, rows: Index) -> DaskDesign:
        if not self._keeps_indices:
            return DaskDesign(self._array[as_selector(rows)])
        return DaskDesign(self._array, rows=compose(self._rows, rows), columns=self._columns)

    def _selected(self, columns: Index | None = None) -> Any:
        """Return the selected rows and columns as a Dask array."""
        chosen = self._columns if columns is None else compose(self._columns, columns)
        array = self._array
        if len(chosen) != array.shape[1] or not isinstance(chosen, range):
            array = array[:, as_selector(chosen)]
        if len(self._rows) != array.shape[0] or not isinstance(self._rows, range):
            array = array[as_selector(self._rows)]
        return array

    def _fill(self, columns: Index, out: FloatArray) -> None:
        if out.size:
            np.copyto(out, _computed([self._selected(columns)])[0])

    def _block_width(self) -> int:
        """Columns per block: whole chunks, because part of a chunk takes as long to compute."""
        chunk = max(1, *(int(width) for width in self._array.chunks[1]))
        return chunk * max(1, super()._block_width() // chunk)

    @property
    def _is_empty(self) -> bool:
        """Whether there are no elements: Dask has no products of such arrays, so the blockwise defaults are used."""
        return 0 in self.shape

    # Graphs

    def _by_columns(self) -> list[_Piece]:
        """Pieces with all samples of some features, in the order of the chunks."""
        array = self._array if self._keeps_indices else self._array.rechunk((-1, "auto"))
        pieces = _pieces(array, axis=1)
        chosen = self._columns
        if isinstance(chosen, range) and len(chosen) == array.shape[1]:
            return [_Piece(position, None, chunk) for position, chunk in pieces]
        wanted = np.asarray(chosen, dtype=np.intp)
        piece_of = np.searchsorted([position.stop for position, _ in pieces], wanted, side="right")
        order = np.argsort(piece_of, kind="stable")
        bounds = np.searchsorted(piece_of[order], np.arange(len(pieces) + 1))
        found = []
        for (position, chunk), (begin, end) in zip(pieces, itertools.pairwise(bounds.tolist()), strict=True):
            if end > begin:
                here = order[begin:end]
                local = as_index(wanted[here] - position.start, position.stop - position.start, "column")
                found.append(_Piece(here, local, chunk))
        return found

    def _by_rows(self) -> list[tuple[slice, Any]]:
        """Pieces with all features of some samples, as tasks."""
        array = self._selected()
        return _pieces(array if array.numblocks[1] == 1 else array.rechunk({1: -1}), axis=0)

    @property
    def _prefers_rows(self) -> bool:
        return is_tall(self) and self._array.numblocks[0] > 1

    @functools.cached_property
    def _own_rows(self) -> Index | None:
        """The rows of a chunk that belong to this design; None for all of them."""
        all_rows = range(int(self._array.shape[0]))
        return None if isinstance(self._rows, range) and self._rows == all_rows else self._rows

    def _each(
        self, operation: str, arguments: Callable[[Any], tuple[Any, ...]] = lambda position: ()
    ) -> tuple[list[_Piece], list[Any]]:
        """One task for each piece: an operation of its design, with arguments that depend on the columns."""
        pieces = self._by_columns()
        tasks = [self._task_on(piece, operation, arguments(piece.position)) for piece in pieces]
        return pieces, tasks

    def _task_on(self, piece: _Piece, operation: str, arguments: tuple[Any, ...]) -> Any:
        affine = _part_of(self.affine, piece.position)
        return _task(_operate, piece.chunk, self._own_rows, piece.columns, affine, operation, arguments)

    def _each_row_piece(self, operation: str, arguments: Callable[[slice], tuple[Any, ...]]) -> list[Any]:
        return [
            _task(_operate, piece, None, None, _part_of(self.affine, None), operation, arguments(rows))
            for rows, piece in self._by_rows()
        ]

    def _per_feature(
        self, operation: str, arguments: Callable[[Any], tuple[Any, ...]] = lambda position: ()
    ) -> FloatArray:
        """Compute an operation that has one result, or one row of results, for each feature."""
        pieces, tasks = self._each(operation, arguments)
        return _assembled([piece.position for piece in pieces], _computed(tasks), self.n_features)

    # Products

    def _gram(self, scale_sq: FloatArray | None) -> FloatArray:
        if self._is_empty:
            return super()._gram(scale_sq)
        return _sum(
            self._each("gram", lambda position: (None if scale_sq is None else scale_sq[position],))[1]
        )

    def _cross_gram(self, other: Design, scale_sq: FloatArray | None) -> FloatArray:
        if self._is_empty or other.n_samples == 0:
            return super()._cross_gram(other, scale_sq)
        tasks = []
        for piece in self._by_columns():
            right, right_affine = _columns_of(other, piece.position)
            scale = None if scale_sq is None else scale_sq[piece.position]
            left_affine = _part_of(self.affine, piece.position)
            left = (piece.chunk, self._own_rows, piece.columns, left_affine)
            tasks.append(_task(_cross, *left, right, right_affine, scale))
        return _sum(tasks)

    def _gram_adjoint(self, M: FloatArray) -> FloatArray:
        if self._is_empty:
            return super()._gram_adjoint(M)
        matrix = _shared(M)
        return self._per_feature("gram_adjoint", lambda position: (matrix,))

    def _dot(self, w: FloatArray) -> FloatArray:
        if self._is_empty:
            return super()._dot(w)
        if self._prefers_rows:
            return np.concatenate(_computed(self._each_row_piece("dot", lambda rows: (w,))))
        return _sum(self._each("dot", lambda position: (w[position],))[1])

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        if self._is_empty:
            return super()._transpose_dot(V)
        if self._prefers_rows:
            return _sum(self._each_row_piece("transpose_dot", lambda rows: (V[rows],)))
        vectors = _shared(V)
        return self._per_feature("transpose_dot", lambda position: (vectors,))

    def _sandwich(self, d: FloatArray) -> FloatArray:
        if self._is_empty:
            return super()._sandwich(d)
        return _sum(self._each_row_piece("sandwich", lambda rows: (d[rows],)))

    # Statistics of the columns

    def _squared_norms(self) -> FloatArray:
        return super()._squared_norms() if self._is_empty else self._per_feature("squared_norms")

    def _accumulate_stats(self, accumulator: StatsAccumulator) -> None:
        if self._is_empty:
            super()._accumulate_stats(accumulator)
            return
        pieces, tasks = self._each("column_stats", lambda position: accumulator.arguments)
        for piece, part in zip(pieces, _computed(tasks), strict=True):
            moments = part.class_mean, part.class_variance, part.mean, part.variance
            accumulator.put(piece.position, *moments, part.minimum, part.maximum)

    def _column_range(self) -> tuple[FloatArray, FloatArray]:
        if self._is_empty:
            return super()._column_range()
        pieces, tasks = self._each("_column_range")
        parts = [np.transpose(part) for part in _computed(tasks)]
        low, high = _assembled([piece.position for piece in pieces], parts, self.n_features).T
        return low, high

    def _surely_finite(self) -> bool:
        return self._is_empty or all(_computed(self._each("_surely_finite")[1]))


def is_dask_array(X: Any) -> bool:
    """Whether X is a Dask array; Dask is not imported."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "chunks")


def from_dask(X: Any, feature_names: NDArray[Any] | None = None) -> DaskDesign:
    """Return the design of a Dask array; an array that takes little memory is computed once and persisted."""
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
    if 0 in X.shape:
        return DaskDesign(X, feature_names)
    if X.numblocks[0] > 1 and X.shape[0] <= 4 * X.shape[1]:
        X = X.rechunk((-1, "auto"))
    free = available_bytes()
    if free is not None and X.nbytes <= _KEPT_SHARE * free:
        X = _explained(X.persist)
    return DaskDesign(X, feature_names)


# -- Tasks --


def _pieces(array: Any, axis: int) -> list[tuple[slice, Any]]:
    bounds = np.concatenate([[0], np.cumsum(array.chunks[axis])]).astype(int).tolist()
    slices = [slice(start, stop) for start, stop in itertools.pairwise(bounds)]
    return [
        (position, piece)
        for position, piece in zip(slices, array.to_delayed().ravel(), strict=True)
        if position.stop > position.start
    ]


def _task(function: Callable[..., Any], *arguments: Any) -> Any:
    from dask.delayed import delayed

    return delayed(function, pure=False)(*arguments)


def _shared(values: NDArray[Any]) -> Any:
    """An argument of many tasks that is sent to the workers only once."""
    from dask.delayed import delayed

    return delayed(values, pure=False, traverse=False)


def _operate(
    chunk: NDArray[Any],
    rows: Index | None,
    columns: Index | None,
    affine: Affine | None,
    operation: str,
    arguments: tuple[Any, ...],
) -> Any:
    return getattr(_design_of(chunk, rows, columns, affine), operation)(*arguments)


def _cross(
    left: NDArray[Any],
    rows: Index | None,
    columns: Index | None,
    left_affine: Affine | None,
    right: NDArray[Any],
    right_affine: Affine | None,
    scale_sq: Any,
) -> FloatArray:
    own = _design_of(left, rows, columns, left_affine)
    return own.cross_gram(_design_of(right, None, None, right_affine), scale_sq)


def _design_of(
    chunk: NDArray[Any], rows: Index | None, columns: Index | None, affine: Affine | None
) -> DenseDesign:
    design = DenseDesign.of_part(np.asarray(chunk))
    design = design if rows is None else design._take_rows(rows)
    design = design if columns is None else design._take(columns)
    return design if affine is None else design._with(affine)


def _columns_of(other: Design, position: slice | IntArray) -> tuple[Any, Affine | None]:
    """Return some columns of another design as one task, with their shift and factor."""
    if not isinstance(other, DaskDesign):
        return _shared(other.block(position)), None
    columns = as_index(position, other.n_features, "column")
    chunk = other._selected(columns).rechunk((-1, -1)).to_delayed()[0, 0]
    return chunk, _part_of(other.affine, columns)


def _assembled(positions: list[slice | IntArray], parts: list[FloatArray], size: int) -> FloatArray:
    """Put the results of the pieces together, in the order of the features of the design."""
    result = np.empty((size, *parts[0].shape[1:]))
    for position, part in zip(positions, parts, strict=True):
        result[position] = part
    return result


def _part_of(affine: Affine | None, columns: slice | Index | None) -> Affine | None:
    """Shift and scale of some columns, by default all, for a task that knows nothing about their norms."""
    if affine is None:
        return None
    chosen = range(columns.start, columns.stop) if isinstance(columns, slice) else columns
    return (affine if chosen is None else affine.take(chosen)).for_other_samples()


def _sum(tasks: list[Any]) -> FloatArray:
    """Add the results pair by pair, on the workers, in an order that does not depend on which task ends first."""
    while len(tasks) > 1:
        pairs = [_task(np.add, *tasks[k : k + 2]) for k in range(0, len(tasks) - 1, 2)]
        tasks = pairs + tasks[2 * len(pairs) :]
    return np.asarray(_computed(tasks)[0])


def _computed(tasks: list[Any]) -> list[Any]:
    from dask.base import compute

    return list(_explained(functools.partial(compute, *tasks)))


def _explained(compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except Exception as error:
        raise RuntimeError(
            f"Dask could not compute a chunk of X: {type(error).__name__}: {error}; look at the first lines of "
            "the error above for the task that failed."
        ) from error
