"""Weighted pairs of neighbouring samples, and the mean differences of single features between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from zeronorm._threads import run_in_threads, useful_threads
from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.neighbours.kernels import (
    MISMATCH,
    BlockMemory,
    add_differences,
    fill_class_pairs,
    merge_mutual,
)
from zeronorm.engines.neighbours.search import ColumnPart, NearestLists


@dataclass(frozen=True)
class WeightedPairs:
    """Neighbours of each sample with weights, filled up with weight zero to a multiple of four columns.

    Two samples that are neighbours of each other are one pair, with the sum of both weights.
    """

    neighbours: IntArray  # (n, m)
    weights: FloatArray  # (n, m)
    counts: IntArray  # (n,)

    @classmethod
    def of(cls, members: IntArray, weights: FloatArray) -> WeightedPairs:
        """From lists in which -1 means no neighbour."""
        n, m = members.shape
        neighbours, padded = _empty_pairs(n, m)
        neighbours[:, :m] = np.maximum(members, 0)
        padded[:, :m] = np.where(members >= 0, weights, 0.0)
        return cls.merged(neighbours, padded)

    @classmethod
    def merged(cls, neighbours: IntArray, weights: FloatArray) -> WeightedPairs:
        """From padded arrays, which are changed in place."""
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
    class has no hit: it is nobody's reference, only a miss of others.
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
    """Mean differences from a device that holds the data; False where there is none."""
    if part.kind == MISMATCH:
        return False
    for mean, chosen in zip(means, pairs, strict=True):
        first, place = np.nonzero(chosen.weights)
        weights, second = chosen.weights[first, place], chosen.neighbours[first, place]
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
