"""Counts, means, variances and ranges of columns, overall and per class, in one pass over the data."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.design._affine import Affine
from zeronorm.design._column_kernels import columns_stats_in_place, float_bits, from_keys
from zeronorm.design._index import Index
from zeronorm.design._stats_kernels import (
    ROWS_AT_A_TIME,
    columns_stats,
    combine_classes,
    extremes_of_columns,
    rows_stats,
    sparse_stats,
)
from zeronorm.execution import in_threads, long_vector

RowOrder = tuple[NDArray[np.intp], FloatArray, NDArray[np.intp]]  # rows by class, their weights, class bounds

FEW_CLASSES = 6  # up to here it is faster to use all values for each class than to sort them by class
_CONSTANT_ULPS = 8.0


def is_constant_range(
    minimum: FloatArray, maximum: FloatArray, dtype: np.dtype[Any] | type = np.float64
) -> NDArray[np.bool_]:
    """Mask of the columns that are constant up to a few rounding errors of the given type."""
    return _constant(minimum, maximum, dtype, _Extremes.of(minimum, minimum, maximum))


def _constant(
    minimum: FloatArray, maximum: FloatArray, dtype: np.dtype[Any] | type, extremes: _Extremes
) -> NDArray[np.bool_]:
    ulps = _CONSTANT_ULPS * float(np.finfo(dtype).eps)
    if extremes.smallest_width > ulps * max(0.0, -extremes.lowest, extremes.highest):
        return np.zeros(minimum.shape, dtype=bool)
    return np.asarray(maximum - minimum <= ulps * np.maximum(np.abs(minimum), np.abs(maximum)))


@dataclass(frozen=True)
class _Extremes:
    """Extremes of the statistics over all columns: they show quickly that no column needs a closer check."""

    all_usual: bool  # all means are finite, and no value is too large to be squared
    smallest_width: float  # the smallest range of a column; NaN if one is NaN
    lowest: float
    highest: float

    @classmethod
    def of(cls, mean: FloatArray, minimum: FloatArray, maximum: FloatArray) -> _Extremes:
        found: list[tuple[bool, float, float, float]] = [(True, np.inf, np.inf, -np.inf)]
        in_threads(lambda a, b: found.append(extremes_of_columns(mean, minimum, maximum, a, b)), mean.size)
        usual, widths, lows, highs = zip(*found, strict=True)
        return cls(all(usual), float(np.min(widths)), min(lows), max(highs))


@dataclass(frozen=True)
class ColumnStats:
    """Statistics of the columns of a design; variances are population variances (ddof=0).

    For a class without samples count, weight, mean and variance are zero. Without a target all samples belong to one
    class.
    """

    count: NDArray[np.intp]  # (q,) samples of positive weight in each class
    weight: FloatArray  # (q,)
    class_mean: FloatArray  # (q, p)
    class_variance: FloatArray  # (q, p)
    mean: FloatArray  # (p,)
    variance: FloatArray  # (p,)
    minimum: FloatArray  # (p,)
    maximum: FloatArray  # (p,)

    @property
    def n_classes(self) -> int:
        return len(self.weight)

    def is_constant(self, dtype: np.dtype[Any] | type = np.float64) -> NDArray[np.bool_]:
        """Mask of the columns that are constant up to a few rounding errors of the given type."""
        return _constant(self.minimum, self.maximum, dtype, self.extremes)

    @functools.cached_property
    def extremes(self) -> _Extremes:
        return _Extremes.of(self.mean, self.minimum, self.maximum)

    def transformed(self, affine: Affine) -> ColumnStats:
        """Return the statistics of the columns after they were shifted and scaled."""
        shift, factor = affine.mean, affine.factor
        return ColumnStats(
            count=self.count,
            weight=self.weight,
            class_mean=np.where(self.weight[:, None] > 0.0, (self.class_mean - shift) * factor, 0.0),
            class_variance=self.class_variance * factor * factor,  # the square alone may overflow
            mean=(self.mean - shift) * factor,
            variance=self.variance * factor * factor,
            minimum=(self.minimum - shift) * factor,
            maximum=(self.maximum - shift) * factor,
        )


class StatsAccumulator:
    """Collects the statistics of all columns from blocks that hold all rows of some columns."""

    def __init__(self, shape: tuple[int, int], y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        n, p = shape
        if n == 0:
            raise ValueError("Statistics of columns need at least one sample. Got 0 rows; select some rows.")
        self.arguments = y, sample_weight
        self.codes = np.zeros(n, dtype=np.intp) if y is None else _class_codes(y, n)
        self.row_weight = np.ones(n) if sample_weight is None else _sample_weights(sample_weight, n)
        q = int(self.codes.max(initial=0)) + 1
        self.weight: FloatArray = np.bincount(self.codes, self.row_weight, q).astype(np.float64)
        self.count = np.bincount(self.codes[self.row_weight > 0.0], minlength=q)
        self._start(q, p)

    def for_columns(self, n_columns: int) -> StatsAccumulator:
        """Return an accumulator for other columns of the same samples; classes and weights are not checked again."""
        part = copy.copy(self)
        part.__dict__["_all_rows"] = self._all_rows
        part._start(self.weight.size, n_columns)
        return part

    def _start(self, q: int, p: int) -> None:
        self.mean: FloatArray = long_vector(q * p).reshape(q, p)
        self.sum_sq: FloatArray = long_vector(q * p).reshape(q, p)  # of deviations from the class mean
        self.minimum, self.maximum = long_vector(p), long_vector(p)
        self._moments = (self.mean, self.sum_sq, self.minimum, self.maximum)
        # With a single class the overall statistics are those of the class and share their memory.
        self.overall_mean: FloatArray = self.mean[0] if q == 1 else long_vector(p)
        self.overall_variance: FloatArray = self.sum_sq[0] if q == 1 else long_vector(p)

    @contextmanager
    def _collecting(self, first: int, last: int) -> Iterator[None]:
        """Reset the results of some columns, and combine the classes afterwards, while the results are in the cache."""
        self.mean[:, first:last], self.sum_sq[:, first:last] = 0.0, 0.0
        self.minimum[first:last], self.maximum[first:last] = np.inf, -np.inf
        yield
        found = (self.weight, self.minimum, self.maximum, self.mean, self.sum_sq)
        combine_classes(*found, self.overall_mean, self.overall_variance, first, last)

    def put(self, columns: slice | IntArray, *found: FloatArray) -> None:
        """Set the statistics of some columns, in the order of the fields of `ColumnStats` after the counts."""
        fields = (
            self.mean,
            self.sum_sq,
            self.overall_mean,
            self.overall_variance,
            self.minimum,
            self.maximum,
        )
        for field, values in zip(fields, found, strict=True):
            field[..., columns] = values

    def add_dense(self, array: NDArray[Any], columns: range, target: int, rows: Index | None = None) -> None:
        """Add consecutive ``columns`` of a contiguous array; the first result is written at index ``target``.

        ``rows`` are the rows of the array that hold the samples, by default all.
        """
        span = (columns.start, target, len(columns))
        are_all = rows is None or (isinstance(rows, range) and rows == range(array.shape[0]))
        order = self._all_rows if are_all else self._row_order(rows)
        with self._collecting(target, target + len(columns)):
            if array.flags.c_contiguous:
                rows_stats(read_only(array), *span, *order, *self._moments)
            elif are_all and self.weight.size <= FEW_CLASSES and bool(np.all(self.row_weight > 0.0)):
                self._add_in_place(read_only(array.T), span, order)
            else:
                columns_stats(read_only(array.T), *span, *order, *self._moments)

    def _add_in_place(self, columns: NDArray[Any], span: tuple[int, int, int], order: RowOrder) -> None:
        classes = np.arange(self.weight.size + self.weight.size % 2)[:, None]
        class_weights = np.where(classes == self.codes, self.row_weight, 0.0)
        # The kernel writes the ranges, as keys, at the same positions as the moments.
        keys = self.minimum.view(np.int64), self.maximum.view(np.int64)
        columns_stats_in_place(
            columns, float_bits(columns), *span, *order, class_weights, self.mean, self.sum_sq, *keys
        )
        out = slice(span[1], span[1] + span[2])
        for found in keys:
            found[out].view(np.float64)[...] = from_keys(found[out], columns.dtype)

    def add_sparse(
        self,
        data: NDArray[Any],
        indices: NDArray[Any],
        indptr: NDArray[Any],
        columns: slice = slice(None),
    ) -> None:
        """Add the columns, by default all, from the arrays of a CSC matrix."""
        arrays = (read_only(data), read_only(indices), read_only(indptr))
        n_counted = int(self.count.sum())
        first, last, _ = columns.indices(self.minimum.size)
        with self._collecting(first, last):
            found = [np.ascontiguousarray(moment[..., columns]) for moment in self._moments]
            sparse_stats(*arrays, self.codes, self.row_weight, self.weight, n_counted, *found)
            for moment, values in zip(self._moments, found, strict=True):
                moment[..., columns] = values

    @functools.cached_property
    def _all_rows(self) -> RowOrder:
        return self._row_order(None)

    def _row_order(self, rows: Index | None) -> RowOrder:
        """Return samples sorted by class, their weights, and class bounds, padded to multiples of `ROWS_AT_A_TIME`."""
        padded = -(-self.count // ROWS_AT_A_TIME) * ROWS_AT_A_TIME
        bounds = np.concatenate([[0], np.cumsum(padded)])
        order = np.zeros(bounds[-1], dtype=np.intp)
        weights = np.zeros(bounds[-1])
        counted = np.flatnonzero(self.row_weight > 0.0)
        # The samples with the largest weights come first in each class: their mean is the preliminary center.
        by_class = counted[np.lexsort((-self.row_weight[counted], self.codes[counted]))]
        for start, stop, members in zip(
            bounds, bounds[1:], np.split(by_class, np.cumsum(self.count)[:-1]), strict=False
        ):
            if members.size:
                order[start:stop] = members[-1]
                order[start : start + members.size] = members
                weights[start : start + members.size] = self.row_weight[members]
        if rows is not None:
            order = rows.start + rows.step * order if isinstance(rows, range) else rows[order]
        return order, weights, bounds

    def result(self) -> ColumnStats:
        return ColumnStats(
            count=self.count,
            weight=self.weight,
            class_mean=self.mean,
            class_variance=self.sum_sq,
            mean=self.overall_mean,
            variance=self.overall_variance,
            minimum=self.minimum,
            maximum=self.maximum,
        )


def _class_codes(y: ArrayLike, n: int) -> NDArray[np.intp]:
    codes = np.asarray(y)
    if codes.shape != (n,) or codes.dtype.kind not in "iub":
        raise ValueError(
            f"'y' must hold {n} integer class codes. Got shape {codes.shape} of type {codes.dtype} instead."
        )
    codes = codes.astype(np.intp)
    if codes.min(initial=0) < 0:
        raise ValueError(f"The class codes in 'y' must not be negative. Got {codes.min()} instead.")
    return codes


def _sample_weights(sample_weight: ArrayLike, n: int) -> FloatArray:
    weights = np.array(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"'sample_weight' must have length {n}. Got shape {weights.shape} instead.")
    if not np.isfinite(weights).all() or weights.min() < 0.0 or weights.sum() <= 0.0:
        raise ValueError(
            "'sample_weight' must be finite and not negative, and not all zero; drop such samples."
        )
    return weights


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: kernels would be compiled separately for writable and read-only arrays."""
    view = array.view()
    view.flags.writeable = False
    return view
