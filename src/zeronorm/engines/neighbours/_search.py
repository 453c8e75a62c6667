"""The nearest samples of each class, and the mean differences of single features between them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray, written
from zeronorm.engines.neighbours._kernels import (
    COLUMNS_PER_SUM,
    MISMATCH,
    SQUARED,
    BlockMemory,
    ScaledColumns,
    add_differences,
    add_distances,
    fill_class_pairs,
    merge_mutual,
    offer_neighbours,
)
from zeronorm.execution import read_in_turn, run_in_threads, useful_threads
from zeronorm.selection._problem import Problem

_TILE_ENTRIES = 1 << 22
_SHARES_PER_THREAD = 4
# Differences per thread between two synchronisations, about 20 ms of work; also the most entries of a block.
_DIFFERENCES_PER_THREAD = 1 << 28
_MERGED_BYTES = 1 << 26
FEWEST_SUMS = 16  # partial sums over blocks of columns, for samples so few that many sums take little memory


@dataclass(frozen=True)
class ColumnPart:
    """Columns of one kind, whose contributions to a distance are the same function."""

    index: IntArray
    columns: ScaledColumns
    kind: int


@dataclass(frozen=True)
class NearestLists:
    """The nearest samples for each class and sample, nearest first; -1 where there are no more."""

    codes: IntArray
    distance: FloatArray  # (classes, n, k)
    members: IntArray  # (classes, n, k)

    @classmethod
    def empty(cls, codes: NDArray[Any], k: int) -> NearestLists:
        shape = (int(codes.max()) + 1, codes.size, k)
        return cls(codes.astype(np.intp), np.full(shape, np.inf), np.full(shape, -1, dtype=np.intp))

    def offer(self, distance: FloatArray, left: slice, right: slice) -> None:
        """Insert the distances between two tiles of samples; tiles must come in ascending order."""
        sizes = (left.stop - left.start, right.stop - right.start)
        worst = np.ascontiguousarray(self.distance[:, :, -1])
        offer_neighbours(
            distance, left.start, right.start, *sizes, self.codes, worst, self.distance, self.members
        )


def nearest_by_columns(
    parts: list[ColumnPart], codes: NDArray[Any], k: int, has_missing: bool, n_jobs: int | None = None
) -> NearestLists:
    """Find the k nearest samples of each class; the distance is summed over all parts.

    With missing values the distance is the mean over the columns that both samples have. The number of threads
    does not change the result.
    """
    lists = NearestLists.empty(codes, k)
    n_features = sum(part.index.size for part in parts)
    n_threads = useful_threads(n_jobs, codes.size**2 * n_features // 2)
    for left, right in _tile_pairs(codes.size, n_features):
        lists.offer(_tile_distances(parts, left, right, has_missing, n_threads), left, right)
    return lists


def _tile_pairs(n: int, p: int) -> Iterator[tuple[slice, slice]]:
    """Pairs of row tiles in ascending order; one tile when n × n is not much more than the data."""
    entries = max(n * p, _TILE_ENTRIES)
    height = n if n * n <= entries else math.isqrt(entries)
    tiles = [slice(start, min(start + height, n)) for start in range(0, n, height)]
    for i, left in enumerate(tiles):
        for right in tiles[i:]:
            yield left, right


def _tile_distances(
    parts: list[ColumnPart], left: slice, right: slice, has_missing: bool, n_threads: int
) -> FloatArray:
    first, last = left.stop - left.start, right.stop - right.start
    distance = np.zeros((first + first % 2, last + last % 2))  # the loops process two rows at a time
    if left == right and not has_missing and _add_where_data_live(parts, left, distance):
        return distance
    shared = np.zeros_like(distance) if has_missing else None
    for part in parts:
        tiles = _Tiles(part, left, right, has_missing)
        if distance.size * FEWEST_SUMS <= _TILE_ENTRIES:
            tiles.add_by_columns(distance, shared, n_threads)
        else:
            tiles.add_by_rows(distance, shared, n_threads)
    if shared is not None:
        comparable = shared > 0
        np.divide(distance, shared, out=distance, where=comparable)
        distance[~comparable] = np.inf
    return distance


class _Tiles:
    """Two tiles of samples, in blocks of the columns of one kind."""

    def __init__(self, part: ColumnPart, left: slice, right: slice, has_missing: bool) -> None:
        self.first, self.second = part.columns.take_rows(left), part.columns.take_rows(right)
        self.same, self.kind, self.has_missing = left == right, part.kind, has_missing
        n_samples = max(self.first.design.n_samples, self.second.design.n_samples)
        self.blocks = list(part.columns.slices(n_samples, narrowest=COLUMNS_PER_SUM))

    def add_by_columns(self, distance: FloatArray, shared: FloatArray | None, n_threads: int) -> None:
        """Distances for few samples: ranges of blocks have separate sums, so that threads share nothing.

        The number of sums depends on the data alone.
        """
        n_sums = min(_TILE_ENTRIES // distance.size, len(self.blocks))
        bounds = np.linspace(0, len(self.blocks), n_sums + 1).astype(int).tolist()
        sums = np.zeros((n_sums, *distance.shape))
        counts = None if shared is None else np.zeros_like(sums)
        left, right = BlockMemory(), BlockMemory()

        def add(index: int, start: int, stop: int) -> None:
            for block in self.blocks[start:stop]:
                x, z = self._rows(block, left, right)
                self._add(x, z, block, sums[index], 0, len(distance))
                if counts is not None:
                    counts[index] += _both_present(x, z, block)

        run_in_threads(add, [(index, *pair) for index, pair in enumerate(pairwise(bounds))], n_threads)
        for index in range(n_sums):
            distance += sums[index]
            if shared is not None and counts is not None:
                shared += counts[index]

    def add_by_rows(self, distance: FloatArray, shared: FloatArray | None, n_threads: int) -> None:
        """Distances for many samples: threads share the rows of one block, while the next is prepared."""
        shares = _row_shares(
            len(distance), self.same, 1 if n_threads == 1 else _SHARES_PER_THREAD * n_threads
        )
        blocks = self._merged(distance.size, n_threads)
        made = read_in_turn(self._rows, blocks, ahead=n_threads > 1)
        for block, (x, z) in zip(blocks, made, strict=True):
            run_in_threads(partial(self._add, x, z, block, distance), shares, n_threads)
            if shared is not None:
                shared += _both_present(x, z, block)

    def _merged(self, n_pairs: int, n_threads: int) -> list[slice]:
        """Merge consecutive blocks, so that many threads synchronise less often.

        The result does not change: with many samples a block has as many columns as one sum.
        """
        width = self.blocks[0].stop
        rows = self.first.design.n_samples + (0 if self.same else self.second.design.n_samples)
        wanted = n_threads * _DIFFERENCES_PER_THREAD // (width * n_pairs) if n_threads > 1 else 1
        at_once = max(1, min(wanted, _MERGED_BYTES // (8 * width * rows)))
        firsts, lasts = self.blocks[::at_once], self.blocks[at_once - 1 :: at_once]
        lasts = lasts if len(lasts) == len(firsts) else [*lasts, self.blocks[-1]]
        return [slice(first.start, last.stop) for first, last in zip(firsts, lasts, strict=True)]

    def _rows(
        self, block: slice, left: BlockMemory | None = None, right: BlockMemory | None = None
    ) -> tuple[FloatArray, FloatArray]:
        x = self.first.rows(block, left)
        return x, x if self.same else self.second.rows(block, right)

    def _add(
        self, x: FloatArray, z: FloatArray, block: slice, total: FloatArray, first: int, last: int
    ) -> None:
        n_columns = block.stop - block.start
        add_distances(x, z, n_columns, total, self.same, self.kind, self.has_missing, first, last)


def _add_where_data_live(parts: list[ColumnPart], tile: slice, distance: FloatArray) -> bool:
    """Compute the distances between all samples on the device that holds the data; False if there is none."""
    if any(part.kind == MISMATCH or part.columns.design.n_samples != tile.stop for part in parts):
        return False
    for part in parts:
        found = part.columns.design.distances(np.abs(part.columns.factor), squared=part.kind == SQUARED)
        if found is None:
            distance[:] = 0.0
            return False
        distance[: tile.stop, : tile.stop] += found
    return True


def _row_shares(n_rows: int, triangle: bool, n_shares: int) -> list[tuple[int, int]]:
    """Consecutive even ranges of rows with about the same number of entries to compute."""
    if n_shares == 1:
        return [(0, n_rows)]
    parts = [share / n_shares for share in range(n_shares + 1)]
    bounds = [n_rows * (1.0 - math.sqrt(1.0 - part)) if triangle else n_rows * part for part in parts]
    return [(a, b) for a, b in pairwise(2 * round(bound / 2) for bound in bounds) if b > a]


def _both_present(x: FloatArray, z: FloatArray, block: slice) -> FloatArray:
    """The number of columns that both samples have, for each pair."""
    n_columns = block.stop - block.start
    left, right = (~np.isnan(rows[:, :n_columns]) for rows in (x, z))
    return np.asarray(left.astype(np.float64) @ right.T.astype(np.float64))


def neighbour_classes(problem: Problem) -> NDArray[Any]:
    """Class codes for the search of neighbours; one class for regression."""
    strata = problem.target.strata()
    if strata is not None:
        return strata
    if np.ptp(problem.y) == 0.0:
        raise ValueError(
            "Relief needs a target that varies, but all values of y are the same. Got "
            f"{problem.n_samples} times the value {problem.y[0]:g}; check y."
        )
    return np.zeros(problem.n_samples, dtype=np.intp)


def usable_neighbours(selector: Any, problem: Problem, codes: NDArray[Any]) -> int:
    """The number of neighbours, at most what the largest class offers; warns when a class is too small."""
    name, k = type(selector).__name__, int(selector.n_neighbors)
    sizes = np.bincount(codes)
    if sizes.max() < 2:
        raise ValueError(
            f"{name} compares each sample with others of its own class, so at least one class must have two samples "
            f"or more. Got {sizes.size} classes of one sample each; use task='regression' if y is a quantity."
        )
    small = np.flatnonzero(sizes <= k)
    if small.size:
        fewest = int(sizes.argmin())
        labels = "all samples" if problem.classes is None else f"class {written(problem.classes[fewest])}"
        warnings.warn(
            f"{name} found fewer than n_neighbors={k} hits in {labels} ({sizes[fewest]} samples; "
            f"{small.size} such classes), so it used those it found. Lower n_neighbors to treat all classes alike.",
            UserWarning,
            stacklevel=5,
        )
    return min(k, int(sizes.max()))


# -- Weighted pairs of neighbours --


@dataclass(frozen=True)
class WeightedPairs:
    """Neighbours of each sample with weights, padded with weight zero to a multiple of four columns.

    Two samples that are neighbours of each other are one pair, with the sum of both weights.
    """

    neighbours: IntArray  # (n, m)
    weights: FloatArray  # (n, m)
    counts: IntArray  # (n,)

    @classmethod
    def of(cls, members: IntArray, weights: FloatArray) -> WeightedPairs:
        """Build from lists in which -1 means no neighbour."""
        n, m = members.shape
        neighbours, padded = _empty_pairs(n, m)
        neighbours[:, :m] = np.maximum(members, 0)
        padded[:, :m] = np.where(members >= 0, weights, 0.0)
        return cls.merged(neighbours, padded)

    @classmethod
    def merged(cls, neighbours: IntArray, weights: FloatArray) -> WeightedPairs:
        """Build from padded arrays, which are changed in place."""
        return cls(neighbours, weights, merge_mutual(neighbours, weights))

    def add_to(
        self, total: FloatArray, present: FloatArray, rows: FloatArray, *, mismatch: bool, missing: bool
    ) -> None:
        """Add the weighted differences in the columns of ``rows``, a C-ordered block of all samples."""
        add_differences(rows, self.neighbours, self.weights, self.counts, mismatch, missing, total, present)

    def total_weight(self) -> float:
        return float(self.weights.sum())


def class_pairs(lists: NearestLists) -> tuple[WeightedPairs, WeightedPairs]:
    r"""Hits and misses of each sample, weighted so that both sum to one over all samples.

    The misses of class c count in proportion to :math:`P(c) / (1 - P(c_i))`. A sample that is alone in its
    class has no hit: it is never a reference sample, only a miss of others.
    """
    q, n, k = lists.members.shape
    prior = np.bincount(lists.codes, minlength=q) / n
    hits, misses = _empty_pairs(n, k), _empty_pairs(n, (q - 1) * k)
    fill_class_pairs(lists.members, lists.codes, prior, *hits, *misses)
    return WeightedPairs.merged(*hits), WeightedPairs.merged(*misses)


def _empty_pairs(n: int, m: int) -> tuple[IntArray, FloatArray]:
    width = -(-m // 4) * 4
    return np.zeros((n, width), dtype=np.intp), np.zeros((n, width))


def regression_pairs(lists: NearestLists, y: FloatArray) -> tuple[WeightedPairs, WeightedPairs]:
    """Neighbours weighted by how similar, and by how different, their targets are (RReliefF)."""
    members = lists.members[0]
    found = (members >= 0).sum(axis=1)[:, None]
    difference = np.abs(y[:, None] - y[np.maximum(members, 0)]) / np.ptp(y)
    weight = np.where(members >= 0, 1.0, 0.0) / np.maximum(found, 1)
    similar, different = weight * (1.0 - difference), weight * difference
    return (
        WeightedPairs.of(members, similar / max(similar.sum(), np.finfo(float).tiny)),
        WeightedPairs.of(members, different / max(different.sum(), np.finfo(float).tiny)),
    )


def mean_differences(
    parts: list[ColumnPart],
    pairs: tuple[WeightedPairs, ...],
    n_features: int,
    has_missing: bool,
    n_jobs: int | None = None,
) -> tuple[FloatArray, ...]:
    """The weighted mean of |difference| over each set of pairs, for every column.

    Pairs in which a value of the column is missing do not count; without any pair the mean is zero.
    """
    means = tuple(np.zeros(n_features) for _ in pairs)
    work = n_features * sum(int(chosen.counts.sum()) for chosen in pairs)
    n_threads = useful_threads(n_jobs, work)
    for part in parts:
        if not has_missing and _set_where_data_live(part, pairs, means):
            continue
        weights = tuple(chosen.total_weight() for chosen in pairs)
        add = partial(_add_block, part, pairs, weights, means, has_missing, BlockMemory())
        slices = part.columns.slices(part.columns.design.n_samples, n_threads)
        run_in_threads(add, [(columns,) for columns in slices], n_threads)
    return means


def _set_where_data_live(
    part: ColumnPart, pairs: tuple[WeightedPairs, ...], means: tuple[FloatArray, ...]
) -> bool:
    """Compute the mean differences on the device that holds the data; False if there is none."""
    if part.kind == MISMATCH:
        return False
    for mean, chosen in zip(means, pairs, strict=True):
        first, index = np.nonzero(chosen.weights)
        weights, second = chosen.weights[first, index], chosen.neighbours[first, index]
        sums = part.columns.design.difference_sums(first, second, weights)
        if sums is None:
            return False
        total = chosen.total_weight()
        mean[part.index] = sums * np.abs(part.columns.factor) / total if total > 0.0 else 0.0
    return True


def _add_block(
    part: ColumnPart,
    pairs: tuple[WeightedPairs, ...],
    weights: tuple[float, ...],
    means: tuple[FloatArray, ...],
    has_missing: bool,
    scratch: BlockMemory,
    columns: slice,
) -> None:
    n, m = part.columns.design.n_samples, columns.stop - columns.start
    rows = part.columns.rows(columns, scratch)[:n]
    mismatch = part.kind == MISMATCH
    for mean, chosen, weight in zip(means, pairs, weights, strict=True):
        total = np.zeros(m)
        present = np.full(m, 0.0 if has_missing or mismatch else weight)
        chosen.add_to(total, present, rows, mismatch=mismatch, missing=has_missing)
        np.divide(total, present, out=total, where=present > 0)
        mean[part.index[columns]] = total
