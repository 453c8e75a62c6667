r"""Search for the features with the largest products with a vector, in a copy of the data quantised to bytes.

Let :math:`z_k = \tilde z_k + e_k`, where :math:`\tilde z_k` are the bytes times a step, and let r hold the small
entries of v. Then

.. math:: \bigl| z_k \cdot v - \tilde z_k \cdot (v - r) \bigr| \le \|e_k\|\,\|v\| + \|\tilde z_k\|\,\|r\| .

A fit that separates the classes has large residuals in few samples, so that few rows of the bytes are read. The
features that the bound does not decide are read from the data: the result is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.design._chunked import ChunkedDesign
from zeronorm.design._dense import DenseDesign
from zeronorm.engines.logistic_exchanges._kernels import (
    add_squares,
    coarse_reach,
    exact_squares,
    to_bytes,
)
from zeronorm.engines.logistic_exchanges._subsets import Subsets
from zeronorm.execution import available_bytes, in_threads
from zeronorm.solvers._geometry import MOST_IN_DOUBT

Query = tuple[FloatArray, int]  # vectors, one per row, and how many features are wanted

TOGETHER = 8  # vectors per pass over the data
COARSE_FROM = 1 << 22  # numbers in the data; for fewer a copy is not worthwhile
COARSE_SHARE = 1 / 4  # share of the free memory that the copy may take
BUDGET_SHARE = 1 / 2  # share of the memory budget for data in files
REST = 0.004  # share of the norm of a vector in samples that are not read
BLOCK_NUMBERS = 1 << 17
SAMPLED, OVERSAMPLED = 4096, 4  # sample of many values, used to find the largest

FIRST_SHARE, FIRST_FEATURES = 16, 4096  # features that are examined first

Found = tuple[IntArray, NDArray[np.float32]]

_NO_FACTOR = np.empty(0)
_NO_COLUMNS = np.empty(0, dtype=np.intp)


class StrongestFeatures:
    """Finds the eligible features with the largest sum of squared products over their variance."""

    def __init__(self, model: Subsets, eligible: IntArray, variance: FloatArray) -> None:
        self.model = model
        self.n_eligible = eligible.size
        self._precision = 1.0 / variance
        self._not_eligible = np.setdiff1d(np.arange(variance.size), eligible, assume_unique=True)
        self._values = np.empty(variance.size)
        self._coarse: CoarseCopy | None = None
        self._may_copy = _worth_a_copy(model.design)

    def search(self, queries: list[Query]) -> list[IntArray]:
        """For each query the features with the largest scores, in descending order."""
        if self._may_copy and self._coarse is None:
            factor = np.sqrt(self._precision)
            factor[self._not_eligible] = 0.0
            self._coarse = CoarseCopy(self.model.design, factor)
        wanted = [(vectors, min(count, self.n_eligible)) for vectors, count in queries]
        found: list[IntArray | None] = [None] * len(wanted)
        if self._coarse is not None:
            doubtful = self._coarse.in_doubt(wanted)
            found = [self._screened(*query, doubt) for query, doubt in zip(wanted, doubtful, strict=True)]
        exact = self._by_products(
            [query for query, known in zip(wanted, found, strict=True) if known is None]
        )
        return [next(exact) if known is None else known for known in found]

    def _screened(self, vectors: FloatArray, count: int, doubtful: IntArray) -> IntArray | None:
        doubtful = np.setdiff1d(doubtful, self._not_eligible, assume_unique=True)
        if doubtful.size > max(4 * count, int(MOST_IN_DOUBT * self._values.size)):
            return None
        values = np.empty(doubtful.size)
        exact_squares(self.model.rows(doubtful), vectors, self._precision[doubtful], values)
        return doubtful[np.lexsort((doubtful, -values))[:count]]

    def _by_products(self, queries: list[Query]) -> Iterator[IntArray]:
        products = self._products(np.vstack([vectors for vectors, _ in queries])) if queries else iter(())
        for vectors, count in queries:
            for index in range(len(vectors)):
                factor = self._precision if index == len(vectors) - 1 else _NO_FACTOR
                add = partial(add_squares, next(products), index == 0, factor, self._values)
                in_threads(add, self._values.size)
            self._values[self._not_eligible] = -1.0
            yield largest(self._values, count)

    def _products(self, vectors: FloatArray) -> Iterator[FloatArray]:
        """Products of all features with each of the vectors; several vectors share one pass over the data."""
        for start in range(0, len(vectors), TOGETHER):
            yield from self.model.design.transpose_dot(vectors[start : start + TOGETHER].T).T


def _worth_a_copy(design: Design) -> bool:
    """Whether a copy is worthwhile: large dense data, and a copy that fits in memory or in the budget."""
    n_bytes, free = design.n_samples * design.n_features, available_bytes()
    if n_bytes < COARSE_FROM or n_bytes > COARSE_SHARE * (free or np.inf):
        return False
    if isinstance(design, ChunkedDesign):
        return n_bytes <= BUDGET_SHARE * design.memory_budget
    return isinstance(design, DenseDesign)


class CoarseCopy:
    """The features times their factors, quantised to bytes, with the norm of each rounding error."""

    def __init__(self, design: Design, factor: FloatArray) -> None:
        n, p = design.shape
        self._bytes: NDArray[np.int8] = np.empty((n, p), dtype=np.int8)
        self._step, self._lost, self._length = np.empty((3, p), dtype=np.float32)
        width = max(1, BLOCK_NUMBERS // n)

        def copy(first: int, last: int) -> None:
            for start in range(first, last, width):
                columns = slice(start, min(start + width, last))
                block = design.block(columns, out=np.empty((n, columns.stop - start)))
                to_bytes(block, factor[columns], start, self._bytes, self._step, self._lost, self._length)

        if design.backend.in_one_array:
            in_threads(copy, p)
        else:
            copy(0, p)

    def in_doubt(self, queries: list[Query]) -> list[IntArray]:
        """For each query the features that may have the largest scores, sorted; all queries share the passes.

        The first features give a lower bound that enough features reach, so few of the others have to be kept.
        """
        n_first = min(self._step.size, max(self._step.size // FIRST_SHARE, FIRST_FEATURES))
        asked = _Asked(queries)
        begun = self._reaching(asked, 0, n_first)
        for q, (_, count) in enumerate(queries):
            asked.least[q] = self._least(asked, q, *begun[q], count)
        others = self._reaching(asked, n_first, self._step.size)
        doubtful = []
        for q, (_, count) in enumerate(queries):
            found = np.concatenate([begun[q][0], others[q][0]])
            estimate = np.concatenate([begun[q][1], others[q][1]])
            least = max(asked.least[q], self._least(asked, q, found, estimate, count))
            top = estimate + asked.total[q] * self._lost[found] + asked.rest[q] * self._length[found]
            doubtful.append(found[top >= least])
        return doubtful

    def _reaching(self, asked: _Asked, first: int, last: int) -> list[Found]:
        """For each query the features of a range that may reach its lower bound, with their estimated norms."""
        n_queries, size = asked.least.size, last - first
        found = np.empty((n_queries, last), dtype=np.intp)
        estimate = np.empty((n_queries, last), dtype=np.float32)
        counts: dict[int, IntArray] = {}

        def read(begin: int, end: int) -> None:
            begin, end = first + begin, first + end
            known = self._step, self._lost, self._length
            counts[begin] = coarse_reach(
                self._bytes, *asked.vectors, *known, *asked.bounds, found, estimate, begin, end
            )

        if size:
            in_threads(read, size)
        slices = [
            np.concatenate([_NO_COLUMNS, *(np.arange(c, c + counts[c][q]) for c in sorted(counts))])
            for q in range(n_queries)
        ]
        return [(found[q, index], estimate[q, index]) for q, index in enumerate(slices)]

    def _least(
        self, asked: _Asked, q: int, found: IntArray, estimate: NDArray[np.float32], count: int
    ) -> float:
        """A norm that at least ``count`` features certainly reach."""
        if found.size < count:
            return -np.inf
        first = largest(estimate, count)
        lost = asked.total[q] * self._lost[found[first]] + asked.rest[q] * self._length[found[first]]
        return float((estimate[first] - lost).min())


class _Asked:
    """Queries as concatenated arrays, for compiled loops."""

    def __init__(self, queries: list[Query]) -> None:
        parts, rest = zip(*(_large_rows(vectors) for vectors, _ in queries), strict=True)
        each = [(v[rows], rows, q) for q, rows in enumerate(parts) for v in queries[q][0]]
        shares, samples, query = zip(*each, strict=True)
        ends = np.cumsum([0, *(rows.size for rows in samples)])
        self.vectors = (
            np.concatenate(samples),
            np.concatenate(shares).astype(np.float32),
            ends,
            np.asarray(query),
        )
        total = np.asarray([np.linalg.norm(vectors) for vectors, _ in queries])
        rounding = float(np.finfo(np.float32).eps) * np.asarray([rows.size + 4 for rows in parts]) * total
        self.total = total
        self.rest = np.asarray(rest) + rounding
        self.least = np.full(len(queries), -np.inf)
        self.bounds = self.total, self.rest, self.least


def _large_rows(vectors: FloatArray) -> tuple[IntArray, float]:
    """Samples with nearly all of the norm of a vector, and the norm of the rest; all samples if most are needed."""
    squares = (vectors**2).sum(axis=0)
    order = np.argsort(-squares, kind="stable")
    rest = np.cumsum(squares[order][::-1])[::-1]
    n_large = int(np.count_nonzero(rest > REST**2 * rest[0]))
    if 2 * n_large > order.size:
        return np.arange(order.size), 0.0
    return np.sort(order[:n_large]), float(np.sqrt(rest[n_large]))


def largest(values: FloatArray | NDArray[np.float32], count: int) -> IntArray:
    """Positions of the largest values in descending order; of ties the first.

    A random sample gives a threshold that few, but enough, of many values are expected to reach.
    """
    stride = values.size // SAMPLED
    chosen: IntArray = np.empty(0, dtype=np.intp)
    if stride > 1:
        sample = values[::stride]
        rank = min(sample.size, 1 + OVERSAMPLED * count // stride + OVERSAMPLED)
        chosen = np.flatnonzero(values >= np.partition(sample, sample.size - rank)[sample.size - rank])
    if chosen.size < count:
        chosen = np.arange(values.size)
    found = values[chosen]
    if chosen.size > 4 * count:
        kept = np.flatnonzero(found >= np.partition(found, found.size - count)[found.size - count])
        chosen, found = chosen[kept], found[kept]
    return chosen[np.lexsort((chosen, -found))[:count]]
