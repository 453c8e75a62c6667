"""Counts, means, variances and ranges of columns, overall and per class, in one reading of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm.design.index import Index
from zeronorm.design.stats_kernels import ROWS_AT_A_TIME, columns_stats, rows_stats, sparse_stats

Array = NDArray[np.float64]
_CONSTANT_ULPS = 8.0


def is_constant_range(
    minimum: Array, maximum: Array, dtype: np.dtype[Any] | type = np.float64
) -> NDArray[np.bool_]:
    """Tell which columns vary by no more than a few roundings of the given type."""
    size = np.maximum(np.abs(minimum), np.abs(maximum))
    limit: Array = _CONSTANT_ULPS * float(np.finfo(dtype).eps) * size
    return np.asarray(maximum - minimum <= limit)


@dataclass(frozen=True)
class ColumnStats:
    """Statistics of the columns of a design; variances are population variances (ddof=0).

    A class without samples has count, weight, mean and variance zero. Without a target there is one
    class that holds all samples.
    """

    count: NDArray[np.intp]  # (q,) samples of positive weight in each class
    weight: Array  # (q,)
    class_mean: Array  # (q, p)
    class_variance: Array  # (q, p)
    mean: Array  # (p,)
    variance: Array  # (p,)
    minimum: Array  # (p,)
    maximum: Array  # (p,)

    @property
    def n_classes(self) -> int:
        return len(self.weight)

    def is_constant(self, dtype: np.dtype[Any] | type = np.float64) -> NDArray[np.bool_]:
        """Tell which columns vary by no more than a few roundings of the given type."""
        return is_constant_range(self.minimum, self.maximum, dtype)

    def affine(self, shift: Array, factor: Array) -> ColumnStats:
        """Return the statistics of ``(x - shift) * factor``; the factors are not negative."""
        return ColumnStats(
            count=self.count,
            weight=self.weight,
            class_mean=np.where(self.weight[:, None] > 0.0, (self.class_mean - shift) * factor, 0.0),
            class_variance=self.class_variance * factor**2,
            mean=(self.mean - shift) * factor,
            variance=self.variance * factor**2,
            minimum=(self.minimum - shift) * factor,
            maximum=(self.maximum - shift) * factor,
        )


class StatsAccumulator:
    """Collects the statistics of all columns from blocks that hold all rows of some columns."""

    def __init__(self, shape: tuple[int, int], y: ArrayLike | None, sample_weight: ArrayLike | None) -> None:
        n, p = shape
        if n == 0:
            raise ValueError("Statistics of columns need at least one sample. Got 0 rows; select some rows.")
        self.codes = _class_codes(y, n)
        self.row_weight = _sample_weights(sample_weight, n)
        q = int(self.codes.max(initial=0)) + 1
        self.weight: Array = np.bincount(self.codes, self.row_weight, q).astype(np.float64)
        self.count = np.bincount(self.codes[self.row_weight > 0.0], minlength=q)
        self.mean = np.zeros((q, p))
        self.sum_sq = np.zeros((q, p))  # of deviations from the class mean
        self.minimum = np.full(p, np.inf)
        self.maximum = np.full(p, -np.inf)

    def add_dense(self, array: NDArray[Any], columns: range, target: int, rows: Index | None = None) -> None:
        """Read consecutive ``columns`` of a contiguous array into the results ``target``...

        ``rows`` are the rows of the array that the samples live in, by default all.
        """
        place = (columns.start, target, len(columns))
        order = self._row_order(ROWS_AT_A_TIME, rows)
        if array.flags.c_contiguous:
            rows_stats(read_only(array), *place, *order, *self._moments)
        else:
            columns_stats(read_only(array.T), *place, *order, *self._moments)

    def add_sparse(self, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any]) -> None:
        """Read all columns from the arrays of a compressed sparse column matrix."""
        arrays = (read_only(data), read_only(indices), read_only(indptr))
        n_counted = int(self.count.sum())
        sparse_stats(*arrays, self.codes, self.row_weight, self.weight, n_counted, *self._moments)

    @property
    def _moments(self) -> tuple[Array, Array, Array, Array]:
        return self.mean, self.sum_sq, self.minimum, self.maximum

    def _row_order(
        self, multiple: int, rows: Index | None
    ) -> tuple[NDArray[np.intp], Array, NDArray[np.intp]]:
        """Return samples sorted by class, their weights, and class bounds, padded to a multiple."""
        padded = -(-self.count // multiple) * multiple
        bounds = np.concatenate([[0], np.cumsum(padded)])
        order = np.zeros(bounds[-1], dtype=np.intp)
        weights = np.zeros(bounds[-1])
        counted = np.flatnonzero(self.row_weight > 0.0)
        # The heaviest samples of a class come first: the kernels center by them.
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
        total = float(self.weight.sum())
        share = self.weight[:, None] / total
        mean = (share * self.mean).sum(axis=0)
        within = self.sum_sq.sum(axis=0) / total
        between = (share * (self.mean - mean) ** 2).sum(axis=0)
        # Minimum and maximum may overlook NaN, the mean does not.
        constant = (self.minimum == self.maximum) & np.isfinite(mean)
        # A mean of equal numbers may be rounded; the number itself is exact and centres to zero.
        np.copyto(mean, self.minimum, where=constant)
        present = self.weight[:, None] > 0.0
        np.copyto(self.mean, self.minimum, where=constant & present)
        class_variance = self.sum_sq / np.where(present, self.weight[:, None], 1.0)
        class_variance[:, constant] = 0.0
        return ColumnStats(
            count=self.count,
            weight=self.weight,
            class_mean=self.mean,
            class_variance=class_variance,
            mean=mean,
            variance=np.where(constant, 0.0, within + between),
            minimum=self.minimum,
            maximum=self.maximum,
        )


def _class_codes(y: ArrayLike | None, n: int) -> NDArray[np.intp]:
    if y is None:
        return np.zeros(n, dtype=np.intp)
    codes = np.asarray(y)
    if codes.shape != (n,) or codes.dtype.kind not in "iub":
        raise ValueError(
            f"'y' must hold {n} integer class codes. Got shape {codes.shape} of type {codes.dtype} instead."
        )
    codes = codes.astype(np.intp)
    if codes.min(initial=0) < 0:
        raise ValueError(f"The class codes in 'y' must not be negative. Got {codes.min()} instead.")
    return codes


def _sample_weights(sample_weight: ArrayLike | None, n: int) -> Array:
    if sample_weight is None:
        return np.ones(n)
    weights = np.array(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"'sample_weight' must have length {n}. Got shape {weights.shape} instead.")
    if not np.isfinite(weights).all() or weights.min() < 0.0 or weights.sum() <= 0.0:
        raise ValueError(
            "'sample_weight' must be finite and not negative, and not all zero; drop such samples."
        )
    return weights


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """One kind of array for the kernels: writable and read-only arrays would be compiled separately."""
    view = array.view()
    view.flags.writeable = False
    return view
