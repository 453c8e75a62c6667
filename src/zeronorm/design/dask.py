"""A design held in a Dask array: operations run where the chunks are, only results come back."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm._threads import available_bytes
from zeronorm._types import FloatArray
from zeronorm.design.base import Design
from zeronorm.design.dense import DenseDesign
from zeronorm.design.index import Index, as_selector
from zeronorm.design.standardized import StandardizedDesign
from zeronorm.design.stats import ColumnStats, StatsAccumulator

Affine = tuple[FloatArray, FloatArray] | None

# A Dask array is kept in the memory of its workers when it takes no more than this share of what is free here.
_KEPT_SHARE = 1 / 4


class DaskDesign(Design):
    """A two-dimensional ``dask.array`` of real numbers, in memory, in files or on a cluster.

    Each operation is one Dask graph that computes every chunk once and lets the design of that chunk do the
    work. Chunks that hold all samples of some features, ``x.rechunk((-1, "auto"))``, suit wide data best; others
    are joined on the way. Blocks are computed when they are asked for.

    Parameters
    ----------
    array : the data
    affine : shift and factor of each column; the design is then ``(x - shift) * factor``
    """

    def __init__(
        self, array: Any, feature_names: NDArray[Any] | None = None, *, affine: Affine = None
    ) -> None:
        self._array = array
        self._affine_part = affine
        super().__init__((int(array.shape[0]), int(array.shape[1])), array.dtype, feature_names)

    def _take(self, columns: Index) -> DaskDesign:
        chosen = as_selector(columns)
        affine = _part_of(self._affine_part, chosen)
        return DaskDesign(self._array[:, chosen], self._names_of(columns), affine=affine)

    def _take_rows(self, rows: Index) -> DaskDesign:
        return DaskDesign(self._array[as_selector(rows)], self.feature_names, affine=self._affine_part)

    def _affine(self, shift: FloatArray, factor: FloatArray) -> DaskDesign | None:
        return None if self._is_empty else DaskDesign(self._array, affine=(shift, factor))

    def _fill(self, columns: Index, out: FloatArray) -> None:
        if out.size:
            np.copyto(out, _computed([self._array[:, as_selector(columns)]])[0])
            if self._affine_part is not None:
                shift, factor = self._affine_part
                out -= shift[as_selector(columns)]
                out *= factor[as_selector(columns)]

    def _block_width(self) -> int:
        """Whole chunks, because part of a chunk costs as much to compute."""
        chunk = max(1, *(int(width) for width in self._array.chunks[1]))
        return chunk * max(1, super()._block_width() // chunk)

    @property
    def _is_empty(self) -> bool:
        """Dask has no products of arrays without elements; the blockwise defaults do."""
        return 0 in self.shape

    # Graphs

    def _by_columns(self) -> list[tuple[slice, Any]]:
        """Pieces with all samples of some features, as tasks."""
        array = self._array if self._array.numblocks[0] == 1 else self._array.rechunk((-1, "auto"))
        return _pieces(array, axis=1)

    def _by_rows(self) -> list[tuple[slice, Any]]:
        """Pieces with all features of some samples, as tasks."""
        array = self._array if self._array.numblocks[1] == 1 else self._array.rechunk({1: -1})
        return _pieces(array, axis=0)

    @property
    def _prefers_rows(self) -> bool:
        return self._is_tall and self._array.numblocks[0] > 1

    def _each(
        self, operation: str, arguments: Callable[[slice], tuple[Any, ...]] = lambda columns: ()
    ) -> list[Any]:
        """One task for each piece of columns: an operation of its design with arguments for these columns."""
        return [
            _task(_operate, piece, _part_of(self._affine_part, columns), operation, arguments(columns))
            for columns, piece in self._by_columns()
        ]

    def _each_row_piece(self, operation: str, arguments: Callable[[slice], tuple[Any, ...]]) -> list[Any]:
        return [
            _task(_operate, piece, self._affine_part, operation, arguments(rows))
            for rows, piece in self._by_rows()
        ]

    # Products

    def _gram(self, scale_sq: FloatArray | None) -> FloatArray:
        if self._is_empty:
            return super()._gram(scale_sq)
        tasks = self._each("_gram", lambda columns: (None if scale_sq is None else scale_sq[columns],))
        return _sum(tasks)

    def _cross_gram(self, other: Design, scale_sq: FloatArray | None) -> FloatArray:
        if self._is_empty or other.n_samples == 0:
            return super()._cross_gram(other, scale_sq)
        other = other._fused()
        pieces = self._by_columns()
        rights = _matching_pieces(other, [columns for columns, _ in pieces])
        tasks = []
        for (columns, piece), (right, right_affine) in zip(pieces, rights, strict=True):
            scale = None if scale_sq is None else scale_sq[columns]
            tasks.append(
                _task(_cross, piece, _part_of(self._affine_part, columns), right, right_affine, scale)
            )
        return _sum(tasks)

    def _gram_adjoint(self, M: FloatArray) -> FloatArray:
        if self._is_empty:
            return super()._gram_adjoint(M)
        matrix = _shared(M)
        return np.concatenate(_computed(self._each("_gram_adjoint", lambda columns: (matrix,))))

    def _dot(self, w: FloatArray) -> FloatArray:
        if self._is_empty:
            return super()._dot(w)
        if self._prefers_rows:
            return np.concatenate(_computed(self._each_row_piece("_dot", lambda rows: (w,))))
        return _sum(self._each("_dot", lambda columns: (w[columns],)))

    def _transpose_dot(self, V: FloatArray) -> FloatArray:
        if self._is_empty:
            return super()._transpose_dot(V)
        if self._prefers_rows:
            return _sum(self._each_row_piece("_transpose_dot", lambda rows: (V[rows],)))
        vectors = _shared(V)
        return np.concatenate(_computed(self._each("_transpose_dot", lambda columns: (vectors,))))

    def _sandwich(self, d: FloatArray) -> FloatArray:
        if self._is_empty:
            return super()._sandwich(d)
        return _sum(self._each_row_piece("_sandwich", lambda rows: (d[rows],)))

    # Statistics of the columns

    def squared_norms(self) -> FloatArray:
        return (
            super().squared_norms()
            if self._is_empty
            else np.concatenate(_computed(self._each("squared_norms")))
        )

    def column_stats(self, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> ColumnStats:
        if self._is_empty:
            return super().column_stats(y, sample_weight)
        StatsAccumulator((self.n_samples, 0), y, sample_weight)  # refuses wrong arguments here, not in a task
        parts = _computed(self._each("column_stats", lambda columns: (y, sample_weight)))
        joined = ("class_mean", "class_variance", "mean", "variance", "minimum", "maximum")
        fields = {name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in joined}
        return ColumnStats(count=parts[0].count, weight=parts[0].weight, **fields)

    def column_range(self) -> tuple[FloatArray, FloatArray]:
        if self._is_empty:
            return super().column_range()
        low, high = np.concatenate(_computed(self._each("column_range")), axis=1)
        return low, high

    def _surely_finite(self) -> bool:
        return self._is_empty or all(_computed(self._each("_surely_finite")))


def is_dask_array(X: Any) -> bool:
    """Tell whether X is a Dask array, without importing Dask."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "chunks")


def from_dask(X: Any, feature_names: NDArray[Any] | None = None) -> DaskDesign:
    """Return the design of a Dask array; one that fits well into memory is computed once and kept there."""
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
        (place, piece)
        for place, piece in zip(slices, array.to_delayed().ravel(), strict=True)
        if place.stop > place.start
    ]


def _task(function: Callable[..., Any], *arguments: Any) -> Any:
    from dask.delayed import delayed

    return delayed(function, pure=False)(*arguments)


def _shared(values: NDArray[Any]) -> Any:
    """An argument of many tasks that travels once."""
    from dask.delayed import delayed

    return delayed(values, pure=False, traverse=False)


def _operate(chunk: NDArray[Any], affine: Affine, operation: str, arguments: tuple[Any, ...]) -> Any:
    return getattr(_design_of(chunk, affine), operation)(*arguments)


def _cross(
    left: NDArray[Any], left_affine: Affine, right: NDArray[Any], right_affine: Affine, scale_sq: Any
) -> FloatArray:
    return _design_of(left, left_affine)._cross_gram(_design_of(right, right_affine), scale_sq)


def _design_of(chunk: NDArray[Any], affine: Affine) -> Design:
    design = DenseDesign.of_part(np.asarray(chunk))
    if affine is None:
        return design
    shift, factor = affine
    zero = factor == 0.0
    return StandardizedDesign(design, shift, 1.0 / np.where(zero, 1.0, factor), zero_columns=zero)


def _matching_pieces(other: Design, slices: Sequence[slice]) -> list[tuple[Any, Affine]]:
    """Columns of another design in the same pieces, each with its affine part."""
    if not isinstance(other, DaskDesign):
        return [(_shared(other.block(columns)), None) for columns in slices]
    array = other._array.rechunk((-1, tuple(columns.stop - columns.start for columns in slices)))
    return [(piece, _part_of(other._affine_part, columns)) for columns, piece in _pieces(array, axis=1)]


def _part_of(affine: Affine, columns: Any) -> Affine:
    return None if affine is None else (affine[0][columns], affine[1][columns])


def _sum(tasks: list[Any]) -> FloatArray:
    """Add the results pair by pair, where they are, in an order that does not depend on who is ready first."""
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
