"""Compiled loops behind the nearest-neighbour filters.

The data are in blocks with one sample per row. Distances are summed along the rows, for two by two samples at a
time; differences of single features are computed along the rows without a sum.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel, reduction
from zeronorm._types import FloatArray
from zeronorm.design import Design, column_range, require_finite
from zeronorm.design._stats_kernels import LARGEST_VALUE

# Contribution of one column to the distance of two samples.
ABSOLUTE, SQUARED, MISMATCH = 0, 1, 2

# Rows of one tile that stay in the cache of a core while rows of another are compared with them, and
# columns to sum at once: many, as the final reduction of a sum takes as long as a dozen of its terms.
_TILE_ROWS = 32
COLUMNS_PER_SUM = 512


@kernel
def scale_columns(block, shift, factor):
    """(x - shift) * factor for the first columns, in place."""
    for i in range(block.shape[0]):
        row = block[i]
        for j in range(shift.shape[0]):
            row[j] = (row[j] - shift[j]) * factor[j]


@kernel
def add_distances(left, right, n_columns, distance, same, kind, missing, first, last):
    """Add columns to the distances between rows ``first`` to ``last`` of one tile and all of another.

    The numbers of rows are even. When both are the ``same`` tile only entries right of the diagonal are valid.
    """
    for top in range(0, n_columns, COLUMNS_PER_SUM):
        bottom = min(top + COLUMNS_PER_SUM, n_columns)
        for start in range(0, right.shape[0], _TILE_ROWS):
            stop = min(start + _TILE_ROWS, right.shape[0])
            for a in range(first, min(last, stop) if same else last, 2):
                x0, x1 = left[a, top:bottom], left[a + 1, top:bottom]
                for b in range(max(a, start) if same else start, stop, 2):
                    z0, z1 = right[b, top:bottom], right[b + 1, top:bottom]
                    if missing or kind == MISMATCH:
                        d00, d01 = _general(x0, z0, kind), _general(x0, z1, kind)
                        d10, d11 = _general(x1, z0, kind), _general(x1, z1, kind)
                    elif kind == ABSOLUTE:
                        d00, d01, d10, d11 = _absolute(x0, x1, z0, z1)
                    else:
                        d00, d01, d10, d11 = _squared(x0, x1, z0, z1)
                    distance[a, b] += d00
                    distance[a, b + 1] += d01
                    distance[a + 1, b] += d10
                    distance[a + 1, b + 1] += d11


@reduction
def _absolute(x0, x1, z0, z1):
    """Distances of two samples to two others: each value is read once for two of them."""
    d00, d01, d10, d11 = 0.0, 0.0, 0.0, 0.0
    for f in range(x0.shape[0]):
        d00 += abs(x0[f] - z0[f])
        d01 += abs(x0[f] - z1[f])
        d10 += abs(x1[f] - z0[f])
        d11 += abs(x1[f] - z1[f])
    return d00, d01, d10, d11


@reduction
def _squared(x0, x1, z0, z1):
    d00, d01, d10, d11 = 0.0, 0.0, 0.0, 0.0
    for f in range(x0.shape[0]):
        d00 += (x0[f] - z0[f]) ** 2
        d01 += (x0[f] - z1[f]) ** 2
        d10 += (x1[f] - z0[f]) ** 2
        d11 += (x1[f] - z1[f]) ** 2
    return d00, d01, d10, d11


@reduction
def _general(x, z, kind):
    """Add columns of any kind; pairs with a missing value add nothing."""
    distance = 0.0
    for f in range(x.shape[0]):
        difference = abs(z[f] - x[f])
        if kind == SQUARED:
            difference = difference * difference
        elif kind == MISMATCH and difference > 0.0:
            difference = 1.0
        distance += difference if difference == difference else 0.0
    return distance


@kernel
def offer_neighbours(
    distance, first_left, first_right, n_left, n_right, codes, worst, nearest_distance, nearest
):
    """Enter all pairs of two tiles into the lists of nearest samples, one list per class and sample.

    ``worst`` holds the last distance of each list. Tiles must come in ascending order: then every list is
    offered samples in the order of their index, and of equally distant ones the first are kept.
    """
    same = first_left == first_right
    for a in range(n_left):
        i = first_left + a
        own_worst = worst[codes[i]]
        for b in range(a + 1 if same else 0, n_right):
            j = first_right + b
            d = distance[a, b]
            if d < worst[codes[j], i]:
                worst[codes[j], i] = _enter(nearest_distance, nearest, codes[j], i, d, j)
            if d < own_worst[j]:
                own_worst[j] = _enter(nearest_distance, nearest, codes[i], j, d, i)


@kernel
def _enter(nearest_distance, nearest, c, i, distance, candidate):
    """Insert a candidate into a sorted list; returns the new last distance."""
    distances, members = nearest_distance[c, i], nearest[c, i]
    index = distances.shape[0] - 1
    while index > 0 and distance < distances[index - 1]:
        distances[index] = distances[index - 1]
        members[index] = members[index - 1]
        index -= 1
    distances[index] = distance
    members[index] = candidate
    return distances[-1]


@kernel
def fill_class_pairs(members, codes, prior, hits, hit_weights, misses, miss_weights):
    """Write hits and misses of each sample and their weights; samples without a hit are left out.

    ``members`` has the shape (classes, n, k); its lists end with -1 where there are fewer than k samples.
    """
    n_references = 0
    for i in range(codes.shape[0]):
        n_references += members[codes[i], i, 0] >= 0
    for i in range(codes.shape[0]):
        own, n_misses = codes[i], 0
        if members[own, i, 0] < 0:
            continue
        for c in range(members.shape[0]):
            nearest = members[c, i]
            found = np.sum(nearest >= 0)
            for index in range(found):
                if c == own:
                    hits[i, index] = nearest[index]
                    hit_weights[i, index] = 1.0 / (found * n_references)
                else:
                    misses[i, n_misses] = nearest[index]
                    miss_weights[i, n_misses] = prior[c] / (1.0 - prior[own]) / (found * n_references)
                    n_misses += 1


@kernel
def merge_mutual(neighbours, weights):
    """Merge pairs that are listed from both ends into the row of the lower index, and compact each row.

    Returns the number of pairs left in each row; the entries after them have weight zero.
    """
    n, m = neighbours.shape
    for i in range(n):
        for index in range(m):
            j = neighbours[i, index]
            if weights[i, index] > 0.0 and j > i:
                for back in range(m):
                    if neighbours[j, back] == i:
                        weights[i, index] += weights[j, back]
                        weights[j, back] = 0.0
    counts = np.zeros(n, dtype=np.intp)
    for i in range(n):
        for index in range(m):
            weight = weights[i, index]
            if weight > 0.0:
                weights[i, index] = 0.0
                weights[i, counts[i]] = weight
                neighbours[i, counts[i]] = neighbours[i, index]
                counts[i] += 1
    return counts


@kernel
def add_differences(rows, neighbours, weights, counts, mismatch, missing, total, present):
    """Add weight times |difference| between each sample and its ``counts`` neighbours, for each column.

    ``neighbours`` and ``weights`` have a multiple of four columns, padded with weights of zero. ``present``
    receives the weights of the pairs in which no value is missing.
    """
    for i in range(rows.shape[0]):
        x = rows[i]
        for index in range(0, counts[i], 4):
            w0, w1, w2, w3 = (
                weights[i, index],
                weights[i, index + 1],
                weights[i, index + 2],
                weights[i, index + 3],
            )
            z0 = rows[neighbours[i, index]]
            z1 = rows[neighbours[i, index + 1]]
            z2 = rows[neighbours[i, index + 2]]
            z3 = rows[neighbours[i, index + 3]]
            if missing or mismatch:
                _add_general_difference(x, z0, w0, mismatch, total, present)
                _add_general_difference(x, z1, w1, mismatch, total, present)
                _add_general_difference(x, z2, w2, mismatch, total, present)
                _add_general_difference(x, z3, w3, mismatch, total, present)
            elif counts[i] - index == 1:
                for f in range(total.shape[0]):
                    total[f] += w0 * abs(x[f] - z0[f])
            elif counts[i] - index == 2:
                for f in range(total.shape[0]):
                    total[f] += w0 * abs(x[f] - z0[f]) + w1 * abs(x[f] - z1[f])
            else:
                for f in range(total.shape[0]):
                    total[f] += (w0 * abs(x[f] - z0[f]) + w1 * abs(x[f] - z1[f])) + (
                        w2 * abs(x[f] - z2[f]) + w3 * abs(x[f] - z3[f])
                    )


@kernel
def _add_general_difference(x, z, weight, mismatch, total, present):
    for f in range(total.shape[0]):
        difference = abs(x[f] - z[f])
        if not np.isnan(difference):
            total[f] += weight * (1.0 if mismatch and difference > 0.0 else difference)
            present[f] += weight


# -- Ranges of columns that may hold missing values, and columns scaled by them --


_BLOCK_ENTRIES = 1 << 17  # one megabyte: a block stays in the cache of a core while it is used
_CACHE_LINE_BYTES = 64


@dataclass(frozen=True)
class ColumnRanges:
    """Minimum and maximum of each column, ignoring missing values; both 0 for a column without values."""

    minimum: FloatArray
    maximum: FloatArray
    has_missing: bool


def column_ranges(design: Design) -> ColumnRanges:
    """The finite ranges of all columns; a second pass is made only where values are missing."""
    minimum, maximum = column_range(design)
    if not (np.all(minimum >= -LARGEST_VALUE) and np.all(maximum <= LARGEST_VALUE)):  # also true for NaN
        require_finite(design, allow_nan=True)
    if not np.isnan(minimum).any():
        return ColumnRanges(minimum, maximum, has_missing=False)
    for columns, block in design.iter_blocks(block_width(design.n_samples)):
        minimum[columns] = np.fmin.reduce(block, axis=0)
        maximum[columns] = np.fmax.reduce(block, axis=0)
    if np.isnan(minimum).all():
        raise ValueError("Input X contains NaN only. Give a table with values, or check how it was read.")
    return ColumnRanges(np.nan_to_num(minimum), np.nan_to_num(maximum), has_missing=True)


@dataclass(frozen=True)
class ScaledColumns:
    """The columns (x − shift) · factor of a design, in blocks of limited size."""

    design: Design
    shift: FloatArray
    factor: FloatArray

    def take(self, columns: NDArray[np.intp]) -> ScaledColumns:
        return ScaledColumns(self.design.take(columns), self.shift[columns], self.factor[columns])

    def take_rows(self, rows: slice) -> ScaledColumns:
        if rows == slice(0, self.design.n_samples):
            return self
        return ScaledColumns(self.design.take_rows(rows), self.shift, self.factor)

    def slices(self, n_samples: int, n_threads: int = 1, narrowest: int = 64) -> Iterator[slice]:
        """Split the columns into blocks that suit ``n_samples`` samples, at least one for each thread."""
        p = self.design.n_features
        width = min(max(narrowest, block_width(n_samples)), -(-p // (64 * n_threads)) * 64)
        return (slice(start, min(start + width, p)) for start in range(0, p, width))

    def rows(self, columns: slice, scratch: BlockMemory | None = None) -> FloatArray:
        """These columns, one sample per row; the rows are aligned to cache lines, and their number is even.

        The result is read-only. A block that holds all columns is cached, as it is used twice. With ``scratch`` the
        result is valid until the thread requests the next block: allocating memory for every block would make
        many threads wait for the operating system.
        """
        if columns == slice(0, self.design.n_features):
            return self._all_rows
        return self._fill(columns, BlockMemory() if scratch is None else scratch)

    @cached_property
    def _all_rows(self) -> FloatArray:
        return self._fill(slice(0, self.design.n_features), BlockMemory())

    def _fill(self, columns: slice, scratch: BlockMemory) -> FloatArray:
        n, m = self.design.n_samples, columns.stop - columns.start
        rows = scratch.aligned(n + n % 2, -(-m // 8) * 8)
        rows[n:] = 0.0
        self.design.block(columns, rows[:n, :m])
        scale_columns(rows[:n], self.shift[columns], self.factor[columns])
        return rows


class BlockMemory(threading.local):
    """A buffer for one block in each thread."""

    def __init__(self) -> None:
        self._memory = np.empty(0)

    def aligned(self, n_rows: int, n_columns: int) -> FloatArray:
        """An array whose rows are aligned to cache lines when ``n_columns`` is a multiple of eight."""
        size = n_rows * n_columns + _CACHE_LINE_BYTES // 8
        if self._memory.size < size:
            self._memory = np.empty(size)
        start = -self._memory.ctypes.data % _CACHE_LINE_BYTES // 8
        return self._memory[start : start + n_rows * n_columns].reshape(n_rows, n_columns)


def block_width(n_samples: int) -> int:
    """Columns in one block, a multiple of 64: the same for all backends, so that sums round equally."""
    return max(1, min(64, _BLOCK_ENTRIES // max(1, n_samples) // 64)) * 64
