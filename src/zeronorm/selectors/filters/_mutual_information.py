"""Mutual information between each feature and the target."""

# mypy: allow-untyped-defs

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi

from zeronorm._jit import kernel
from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.engines._column_information import (
    StoredBlock,
    has_stored_columns,
    parse_discrete_features,
    sorted_entries,
    stored_blocks,
    total_bits,
)
from zeronorm.execution import run_in_threads, useful_threads
from zeronorm.registry import register
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector

# It depends only on the number of samples, so that the noise that breaks ties is the same on every backend.
MOST_COLUMNS, FEWEST_COLUMNS, NUMBERS_AT_A_TIME = 256, 4, 1 << 20
NOISE = 1e-10  # relative to the size of a column: distances that differ by less are equal
APART = 4096  # equal targets are separated by up to this multiple of the rounding error
NEGLIGIBLE = 1e-12  # probability of the orders that are left out of a mean
# Approximate time per number, and the time from which a warning is issued.
SECONDS_OF_CLASSES, SECONDS_OF_REAL_TARGET = (2e-7, 4e-8), (2e-6, 6e-6)  # continuous, discrete
LONG_S = 300.0
OPERATIONS_PER_VALUE = 100  # approximate cost of sorting a value and finding its neighbours


@register(
    "mutual-information",
    family="filters",
    tasks=("binary", "multiclass", "regression"),
    reference="Kraskov et al. 2004; Ross 2014",
    cost="n log n p; of sparse data only the stored values",
    oracle="scikit-learn's mutual_info_classif and mutual_info_regression",
    avoid="few samples: the order is less certain than that of the Fisher score; features that act only together",
    test_params=({"random_state": 0}, {"random_state": 0, "task": "regression"}),
)
class MutualInformation(BaseSelector):
    r"""Rank features by their mutual information with the target, estimated from nearest neighbours.

    .. math:: I(x_k; y) = \iint p(x_k, y) \log \frac{p(x_k, y)}{p(x_k)\,p(y)}

    With classes the estimate of Ross is computed from sorted columns: with :math:`m_i` the number of samples
    that are nearer to sample i than the k-th nearest of its own class, which has :math:`n_i` samples,

    .. math:: \hat I = \psi(n) + \psi(k) - \frac1n \sum_i \bigl(\psi(n_i) + \psi(m_i)\bigr).

    Where samples are at the same distance, :math:`m_i` would depend on their order: the mean of :math:`\psi(m_i)` over
    all their orders is taken. Of sparse columns only the stored values are visited.

    With a real target it is the estimate of Kraskov et al.: with :math:`a_i` and :math:`b_i` the numbers of samples
    whose value, or whose target, is nearer to that of sample i than the larger of both distances to its k-th neighbour,

    .. math:: \hat I = \psi(n) + \psi(k) - \frac1n \sum_i \bigl(\psi(a_i) + \psi(b_i)\bigr),

    the sample itself included. For discrete features with a real target scikit-learn computes the estimate. Both
    estimates find any dependence of the target on one feature, not only a difference of means, but no feature that
    matters only together with others. They need more samples than the Fisher score for a reliable order. Constant
    features rank last.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.
    n_neighbors
        More neighbours give less variance and more bias.
        Few neighbours, as in scikit-learn's default, see small effects badly: of three features shifted by half a
        standard deviation (100 samples, 20 features, 12 draws) the first three hold 1.0 on average with 3 neighbours,
        1.7 with 10 (FisherScore: 2.3).
    discrete_features
        "all": all columns. None: no column.
    n_jobs
        Threads; for discrete features with a real target, workers of scikit-learn.
    random_state
        With a real target it determines the order of equal targets.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import MutualInformation
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = MutualInformation(2, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        n_neighbors: int = 3,
        discrete_features: Literal["all"] | Any = None,
        task: Literal["classification", "regression"] = "classification",
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_neighbors = n_neighbors
        self.discrete_features = discrete_features
        self.task = task
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _select(self, problem: Problem) -> SelectionPath:
        self._check_neighbors(problem)
        discrete = parse_discrete_features(self.discrete_features, problem)
        self._warn_if_long(problem, discrete)
        estimate = self._classification if problem.target.has_classes else self._regression
        score = estimate(problem, discrete)
        constant = problem.design.column_stats().is_constant(problem.design.dtype)
        score[constant] = 0.0
        return SelectionPath.from_scores(score, last=constant)

    def _warn_if_long(self, problem: Problem, discrete: BoolArray) -> None:
        """Warn before a computation of many minutes; with classes, zeros that are not stored cost nothing."""
        is_real, n_discrete = not problem.target.has_classes, int(discrete.sum())
        n_near = discrete.size - n_discrete
        if has_stored_columns(problem.design):
            n_near, n_discrete = 0, n_discrete if is_real else 0
        near, counts = SECONDS_OF_REAL_TARGET if is_real else SECONDS_OF_CLASSES
        seconds = problem.n_samples * (counts * n_discrete + near * n_near)
        if seconds > LONG_S:
            quicker = is_real or n_discrete
            remedy = "" if quicker else ", or discrete_features='all' if the values are counts or categories"
            warnings.warn(
                f"MutualInformation looks at each of {problem.n_samples} × {problem.n_features} numbers, zeros "
                f"included: about {seconds / 60:.0f} minutes on one core. For less, take a part of the samples, the "
                f"best columns of FisherScore{remedy}.",
                UserWarning,
                stacklevel=5,
            )

    def _regression(self, problem: Problem, discrete: BoolArray) -> FloatArray:
        digamma = psi(np.arange(problem.n_samples + 2.0))
        k = int(self.n_neighbors)
        target = OrderedTarget.of(problem.target.around_zero().values, k, digamma, problem.rng)
        score = np.empty(problem.n_features)
        with problem.progress.task("Mutual information", problem.n_features) as advance:
            for columns, block in self._blocks(problem):
                if not discrete[columns].all():
                    near = (*target, ~discrete[columns], k, digamma, score[columns])
                    self._share(partial(kraskov_information, *block, *near), block)
                advance(block.n_columns)
        if discrete.any():
            score[discrete] = self._discrete_regression(problem, np.flatnonzero(discrete))
        return score

    def _discrete_regression(self, problem: Problem, columns: IntArray) -> FloatArray:
        from sklearn.feature_selection import mutual_info_regression

        y = problem.target.around_zero().values  # the noise that breaks ties is proportional to the mean
        design, score = problem.design.take(columns), np.empty(columns.size)
        width = min(MOST_COLUMNS, max(FEWEST_COLUMNS, NUMBERS_AT_A_TIME // problem.n_samples))
        for part, block in design.iter_blocks(width):
            score[part] = mutual_info_regression(
                block,
                y,
                discrete_features=True,
                n_neighbors=self.n_neighbors,
                n_jobs=self.n_jobs,
                random_state=int(problem.rng.integers(2**31 - 1)),
            )
        return score

    def _blocks(self, problem: Problem) -> Iterator[tuple[slice, StoredBlock]]:
        return stored_blocks(
            problem.design,
            most_columns=MOST_COLUMNS,
            fewest_columns=FEWEST_COLUMNS,
            values_at_a_time=NUMBERS_AT_A_TIME,
        )

    def _classification(self, problem: Problem, discrete: BoolArray) -> FloatArray:
        has_hits = np.bincount(problem.y)[problem.y] > 1
        of_pairs = np.full(problem.n_samples, -1)  # the only sample of a class has no neighbour
        of_pairs[has_hits] = np.unique(problem.y[has_hits], return_inverse=True)[1]
        digamma = psi(np.arange(int(has_hits.sum()) + 2.0))
        score = np.empty(problem.n_features)
        with problem.progress.task("Mutual information", problem.n_features) as advance:
            for columns, block in self._blocks(problem):
                by_counts, found = discrete[columns], score[columns]
                if not by_counts.all():
                    near = (of_pairs, ~by_counts, int(self.n_neighbors), digamma, found)
                    self._share(partial(neighbour_information, *block, *near), block)
                if by_counts.any():
                    self._share(partial(table_information, *block, problem.y, by_counts, found), block)
                advance(block.n_columns)
        return score

    def _share(self, estimate: partial[None], block: StoredBlock) -> None:
        """Divide the columns among threads."""
        n_threads = useful_threads(self.n_jobs, block.data.size * OPERATIONS_PER_VALUE)
        bounds = np.linspace(0, block.n_columns, 4 * n_threads + 1 if n_threads > 1 else 2).astype(int)
        run_in_threads(estimate, list(pairwise(bounds.tolist())), n_threads)

    def _check_neighbors(self, problem: Problem) -> None:
        if self.n_neighbors >= problem.n_samples:
            raise parameter_error(
                self, "n_neighbors", f"less than the number of samples, {problem.n_samples}"
            )
        if problem.target.strata_sizes().max() < 2:
            raise ValueError(
                "MutualInformation needs at least one class with two samples or more. Got only classes of one "
                "sample; use task='regression' if y is a quantity."
            )


# -- Compiled estimates of the mutual information between columns and classes --


@kernel
def neighbour_information(data, rows, starts, elsewhere, codes, chosen, k, digamma, result, first, last):
    """Ross's estimate for the ``chosen`` columns among ``first`` to ``last``, which hold continuous features.

    ``codes`` are those of classes with two samples or more; samples with negative codes are ignored. ``digamma[m]`` is
    ψ(m).
    """
    counts = np.bincount(codes[codes >= 0])
    n = counts.sum()
    for f in range(first, last):
        if not chosen[f]:
            continue
        x, classes, numbers = sorted_entries(data, rows, starts, elsewhere, f, codes, counts)
        near = NOISE * _size(x, numbers)
        below = _sums_before(numbers)
        total = 0.0
        for c in range(counts.shape[0]):
            own = np.flatnonzero(classes == c)
            own_x, own_below = x[own], _sums_before(numbers[own])
            wanted = min(k, counts[c] - 1)
            for position in range(own.shape[0]):
                expected = _expected_digamma(x, below, own, own_x, own_below, position, wanted, near, digamma)
                total += numbers[own[position]] * (digamma[wanted] - digamma[counts[c]] - expected)
        result[f] = max(0.0, digamma[n] + total / n)


@kernel
def _size(x, numbers):
    """The larger of standard deviation and mean absolute value."""
    n, mean, absolute, square = numbers.sum(), 0.0, 0.0, 0.0
    for i in range(x.shape[0]):
        mean += numbers[i] * x[i] / n
        absolute += numbers[i] * abs(x[i]) / n
    for i in range(x.shape[0]):
        square += numbers[i] * (x[i] - mean) ** 2 / n
    return max(np.sqrt(square), absolute)


@kernel
def _sums_before(numbers):
    """Sums of the entries before each entry, and of all entries."""
    sums = np.zeros(numbers.shape[0] + 1, dtype=np.int64)
    for i in range(numbers.shape[0]):
        sums[i + 1] = sums[i] + numbers[i]
    return sums


@kernel
def _expected_digamma(x, below, own, own_x, own_below, position, k, near, digamma):
    """Expected ψ of the number of samples up to the k-th nearest of the class, the sample itself included.

    Distances that differ by less than ``near`` are tied; the result is the mean over all orders of the ties. ``own``
    holds the entries of the class, and ``position`` that of the sample among them.
    """
    i, value = own[position], own_x[position]
    low, high = _reach(own_x, position, position, value, near, True)
    own_equal = own_below[high + 1] - own_below[low] - 1
    if own_equal >= k:
        # The k-th of them has the position J, and the mean of ψ(J) is ψ(all) + ψ(k) - ψ(own).
        low, high = _reach(x, i, i, value, near, True)
        return digamma[below[high + 1] - below[low]] + digamma[k] - digamma[own_equal + 1]
    radius = _distance_to_neighbour(own_x, own_below, position, k)
    low, high = _reach(x, i, i, value, radius - near, False)
    inside = below[high + 1] - below[low]
    low, high = _reach(x, low, high, value, radius + near, True)
    on_edge = below[high + 1] - below[low] - inside
    if on_edge == 1:  # no ties
        return digamma[inside]
    low, high = _reach(own_x, position, position, value, radius - near, False)
    own_inside = own_below[high + 1] - own_below[low]
    low, high = _reach(own_x, low, high, value, radius + near, True)
    own_on_edge = own_below[high + 1] - own_below[low] - own_inside
    return _mean_on_edge(inside, on_edge, own_on_edge, k - own_inside + 1, digamma)


@kernel
def _mean_on_edge(inside, size, own, wanted, digamma):
    """Mean of ψ(inside + J - 1), J the position of the ``wanted``-th of ``own`` among ``size`` in random order."""
    if own == size:
        return digamma[inside + wanted - 1]
    log_chance = 0.0
    for j in range(wanted):
        log_chance += np.log((own - j) / (size - j))
    total, covered = 0.0, 0.0
    for j in range(wanted, size - own + wanted + 1):
        chance = np.exp(log_chance)
        total += chance * digamma[inside + j - 1]
        covered += chance
        if 1.0 - covered < NEGLIGIBLE or j == size - own + wanted:
            break
        log_chance += np.log(j / (j - wanted + 1.0)) + np.log((size - j - own + wanted) / (size - j))
    return total / covered


@kernel
def _distance_to_neighbour(own_x, own_below, position, k):
    """Distance of a sample to the k-th nearest of its class."""
    low, high = position - 1, position + 1
    found, distance = own_below[position + 1] - own_below[position] - 1, 0.0
    while found < k:
        left = own_x[position] - own_x[low] if low >= 0 else np.inf
        right = own_x[high] - own_x[position] if high < own_x.shape[0] else np.inf
        if left <= right:
            found += own_below[low + 1] - own_below[low]
            distance = left
            low -= 1
        else:
            found += own_below[high + 1] - own_below[high]
            distance = right
            high += 1
    return distance


@kernel
def _reach(x, low, high, value, radius, closed):
    """First and last of the ascending x within ``radius`` of ``value``, the boundary included if ``closed``.

    Those from ``low`` to ``high`` are known to be. The step is doubled, then halved, since most neighbours are close.
    """
    step = 1
    while step > 0:
        ahead = low - step
        inside = ahead >= 0
        if inside:
            distance = value - x[ahead]
            inside = distance < radius or (closed and distance == radius)
        if inside:
            low = ahead
            step *= 2
        else:
            step //= 2
    step = 1
    while step > 0:
        ahead = high + step
        inside = ahead < x.shape[0]
        if inside:
            distance = x[ahead] - value
            inside = distance < radius or (closed and distance == radius)
        if inside:
            high = ahead
            step *= 2
        else:
            step //= 2
    return low, high


@kernel
def table_information(data, rows, starts, elsewhere, codes, chosen, result, first, last):
    """Mutual information, in nats, of the ``chosen`` discrete columns with the classes."""
    counts = np.bincount(codes)
    class_bits = total_bits(counts.astype(np.float64))
    for f in range(first, last):
        if not chosen[f]:
            continue
        x, _, numbers = sorted_entries(data, rows, starts, elsewhere, f, codes, counts)
        margin = np.zeros(x.shape[0])
        value = 0
        for i in range(x.shape[0]):
            value += i > 0 and x[i] != x[i - 1]
            margin[value] += numbers[i]
        shared = class_bits + total_bits(margin) - total_bits(numbers.astype(np.float64))
        result[f] = max(0.0, shared * np.log(2.0) / codes.shape[0])


# -- Compiled estimates of the mutual information between columns and a real target --


class OrderedTarget(NamedTuple):
    """A real target of variance one in ascending order, with equal values separated, and its own neighbourhoods.

    ``rank`` is the position of each sample, ``radius`` the distance to the k-th nearest target, ``psi`` the ψ of the
    number of nearer targets, and ``widest`` holds the positions in descending order of the radius.
    """

    rank: NDArray[np.intp]
    y: FloatArray
    radius: FloatArray
    psi: FloatArray
    widest: NDArray[np.intp]

    @classmethod
    def of(cls, y: FloatArray, k: int, digamma: FloatArray, rng: np.random.Generator) -> OrderedTarget:
        """The target from y; equal values are put in random order and separated by more than the rounding error."""
        order = rng.permutation(y.size)
        order = order[np.argsort(y[order], kind="stable")]
        scale = float(y.std())
        ordered = np.ascontiguousarray(y[order] / (scale if scale > 0.0 else 1.0))
        apart = APART * np.finfo(float).eps * max(1.0, float(np.abs(ordered).max()))
        ordered += np.cumsum(rng.uniform(0.0, apart, y.size))  # equal steps would make distances equal again
        rank = np.empty(y.size, dtype=np.intp)
        rank[order] = np.arange(y.size)
        radius, psi_nearer = np.empty((2, y.size))
        target_alone(ordered, k, digamma, radius, psi_nearer)
        return cls(rank, ordered, radius, psi_nearer, np.argsort(-radius, kind="stable"))


@kernel
def target_alone(y, k, digamma, radius, psi_nearer):
    nearest = np.empty(k)
    nobody = np.full(y.shape[0], -1, dtype=np.int32)
    for i in range(y.shape[0]):
        nearest[:] = np.inf
        _walk_ranks(y, nobody, i, 0.0, nearest)
        radius[i] = nearest[k - 1]
        low, high = _reach(y, i, i, y[i], radius[i], False)
        psi_nearer[i] = digamma[high - low + 1]


@kernel
def kraskov_information(
    data,
    rows,
    starts,
    elsewhere,
    rank,
    y,
    radius,
    psi_nearer,
    widest,
    chosen,
    k,
    digamma,
    result,
    first,
    last,
):
    """The estimate of Kraskov et al. for the ``chosen`` columns among ``first`` to ``last``.

    A sample whose value is not stored has the radius of a constant column, unless a stored value is near.
    """
    n, all_psi = y.shape[0], psi_nearer.sum()
    group_of = np.full(n, -1, dtype=np.int32)  # group of each rank; -1 for values that are not stored
    best, nearest = np.empty(k), np.empty(k)
    for f in range(first, last):
        if not chosen[f]:
            continue
        x, ranks, own = _stored_values(data, rows, starts, elsewhere, f, rank, group_of)
        if x.shape[0] == 0:
            result[f] = 0.0
            continue
        values, ends, usual = _groups(x, ranks, own, n)
        below, n_usual, total, base = _sums_before(_group_sizes(ends, usual, n)), n - x.shape[0], 0.0, all_psi
        for g in range(values.shape[0]):
            for e in range(ends[g], ends[g + 1]):
                group_of[ranks[e]] = g
        strip_of, firsts = _strips(ends, usual, np.sqrt(k * x.shape[0]))
        column = (values, ends, ranks, np.sort(ranks), below, usual, y, group_of)
        strips = (strip_of, firsts, _sorted_between(ranks, ends[firsts]))
        for e in range(x.shape[0]):
            base -= psi_nearer[ranks[e]]
            total += _sample_psi(column, strips, ranks[e], k, digamma, best, nearest)
        seen = _near_stored(column, radius, widest, k) if n_usual > 0 else ranks[:0]
        for i in seen:
            base -= psi_nearer[i]
            total += _sample_psi(column, strips, i, k, digamma, best, nearest)
        if n_usual > 0:
            total += base + (n_usual - seen.shape[0]) * digamma[n_usual]
        for e in range(x.shape[0]):
            group_of[ranks[e]] = -1
        result[f] = max(0.0, digamma[n] + digamma[k] - total / n)


@kernel
def _stored_values(data, rows, starts, elsewhere, f, rank, group_of):
    """Ascending stored values of column f in units of its standard deviation, their ranks, and the value of all others.

    Where most values are stored, all are returned. A constant column has none.
    """
    n, usual = rank.shape[0], elsewhere[f]
    x, ranks, size = np.empty(n), np.empty(n, dtype=np.intp), 0
    for position in range(starts[f], starts[f + 1]):
        if data[position] != usual:
            x[size], ranks[size] = data[position], rank[rows[position]]
            size += 1
    mean = usual + (x[:size] - usual).sum() / n
    square = ((x[:size] - mean) ** 2).sum() + (n - size) * (usual - mean) ** 2
    scale = np.sqrt(square / n)
    if not scale > 0.0:
        return x[:0], ranks[:0], usual
    if 2 * size >= n and size < n:
        for stored in ranks[:size]:
            group_of[stored] = 0
        for i in range(n):
            if group_of[i] < 0:
                x[size], ranks[size] = usual, i
                size += 1
        group_of[:] = -1
    x, ranks = x[:size] / scale, ranks[:size]
    order = np.argsort(x)
    return x[order], ranks[order], usual / scale


@kernel
def _groups(x, ranks, usual, n):
    """Groups of equal values: value of each group, bounds of its sorted ranks, and the group of values not stored."""
    size, n_stored, position = 0, x.shape[0], -1
    values, ends = np.empty(n_stored + 1), np.zeros(n_stored + 2, dtype=np.int64)
    e = 0
    while e < n_stored or (position < 0 and n_stored < n):
        if position < 0 and n_stored < n and (e == n_stored or usual < x[e]):
            position, values[size] = size, usual
        else:
            values[size] = x[e]
            begin = e
            while e < n_stored and x[e] - x[begin] <= NOISE and not (x[begin] < usual <= x[e]):
                e += 1
            ranks[begin:e].sort()
        size += 1
        ends[size] = e
    return values[:size], ends[: size + 1], position


@kernel
def _group_sizes(ends, usual, n):
    sizes = ends[1:] - ends[:-1]
    if usual >= 0:
        sizes[usual] = n - ends[-1]
    return sizes


@kernel
def _strips(ends, usual, size):
    """Strips of neighbouring groups with up to ``size`` stored values: strip of each group, first group of each strip.

    The group of values that are not stored is a strip of its own.
    """
    n_groups, n_strips = ends.shape[0] - 1, 0
    strip_of, firsts = np.empty(n_groups, dtype=np.int64), np.empty(n_groups + 1, dtype=np.int64)
    for g in range(n_groups):
        begins = g == 0 or g == usual or g - 1 == usual
        if begins or ends[g + 1] - ends[firsts[n_strips - 1]] > size:
            firsts[n_strips] = g
            n_strips += 1
        strip_of[g] = n_strips - 1
    firsts[n_strips] = n_groups
    return strip_of, firsts[: n_strips + 1]


@kernel
def _sorted_between(ranks, bounds):
    """A copy of ``ranks`` that is sorted between each two ``bounds``."""
    parts = ranks.copy()
    for s in range(bounds.shape[0] - 1):
        parts[bounds[s] : bounds[s + 1]].sort()
    return parts


@kernel
def _near_stored(column, radius, widest, k):
    """Ranks that are not stored but have a stored one among their nearest targets, or near the value of the others."""
    values, _, _, by_rank, _, usual, _, group_of = column
    n, size = group_of.shape[0], 0
    found = np.empty(min(n, 2 * k * by_rank.shape[0] + n), dtype=np.intp)
    behind = 0
    for stored in by_rank:
        for i in range(max(stored - k, behind), min(stored + k + 1, n)):
            if group_of[i] < 0:
                found[size] = i
                size += 1
        behind = max(behind, min(stored + k + 1, n))
    least = np.inf
    if usual > 0:
        least = values[usual] - values[usual - 1]
    if usual + 1 < values.shape[0]:
        least = min(least, values[usual + 1] - values[usual])
    for i in widest:
        if radius[i] < least - NOISE:
            break
        position = np.searchsorted(by_rank, i)
        before = position > 0 and i - by_rank[position - 1] <= k
        after = position < by_rank.shape[0] and by_rank[position] - i <= k
        if not (before or after):
            found[size] = i
            size += 1
    return found[:size]


@kernel
def _sample_psi(column, strips, i, k, digamma, best, nearest):
    """Sum of ψ of the numbers of samples nearer than the k-th neighbour in the column and in the target.

    Neighbours are searched by value and by target in turn, until one of the two searches has passed all candidates.
    """
    values, ends, _, _, _, usual, y, group_of = column
    strip_of, firsts, by_strip = strips
    own = usual if group_of[i] < 0 else group_of[i]
    value, left = values[own], strip_of[own]
    right, low, high = left + 1, i - 1, i + 1
    best[:], nearest[:] = np.inf, np.inf
    while True:
        limit = min(best[k - 1], nearest[k - 1])
        to_left = max(0.0, value - values[firsts[left + 1] - 1]) if left >= 0 else np.inf
        to_right = values[firsts[right]] - value if right + 1 < firsts.shape[0] else np.inf
        if min(to_left, to_right) >= limit:
            inside = _number_below(best, limit - NOISE)
            break
        s, distance = (left, to_left) if to_left <= to_right else (right, to_right)
        left, right = (left - 1, right) if to_left <= to_right else (left, right + 1)
        if firsts[s] == usual:
            _walk_ranks(y, group_of, i, distance, best)
        else:
            members = by_strip[ends[firsts[s]] : ends[firsts[s + 1]]]
            _walk_strip(y, members, values, group_of, i, value, distance, best)
        limit = min(best[k - 1], nearest[k - 1])
        below_y = y[i] - y[low] if low >= 0 else np.inf
        above_y = y[high] - y[i] if high < y.shape[0] else np.inf
        if min(below_y, above_y) >= limit:
            inside = _number_below(nearest, limit - NOISE)
            break
        j, distance = (low, below_y) if below_y <= above_y else (high, above_y)
        low, high = (low - 1, high) if below_y <= above_y else (low, high + 1)
        g = usual if group_of[j] < 0 else group_of[j]
        _insert(nearest, max(distance, abs(values[g] - value)))
    low, high = _reach(y, i, i, y[i], limit, False)
    return digamma[high - low + 1] + _psi_of_values(column, own, low, high, limit, k - inside, digamma)


@kernel
def _psi_of_values(column, own, low, high, radius, wanted, digamma):
    """Expected ψ of the number of values nearer than the radius.

    Values exactly at this distance are tied, and the result is the mean over their orders. The radius belongs to the
    ``wanted``-th of those among them whose targets, with ranks ``low`` to ``high``, are nearer.
    """
    values, ends, ranks, by_rank, below, usual, _, _ = column
    value = values[own]
    left, right = _reach(values, own, own, value, radius - NOISE, False)
    inside = below[right + 1] - below[left]
    far_left, far_right = _reach(values, left, right, value, radius + NOISE, True)
    on_edge = below[far_right + 1] - below[far_left] - inside
    if on_edge <= 1:
        return digamma[inside]
    near = 0
    for g in range(far_left, far_right + 1):
        if left <= g <= right:
            continue
        members = by_rank if g == usual else ranks[ends[g] : ends[g + 1]]
        count = np.searchsorted(members, high + 1) - np.searchsorted(members, low)
        near += high - low + 1 - count if g == usual else count
    if near == 0:
        return digamma[inside]
    return _mean_on_edge(inside, on_edge, near, min(wanted, near), digamma)


@kernel
def _number_below(ascending, bound):
    count = 0
    while count < ascending.shape[0] and ascending[count] < bound:
        count += 1
    return count


@kernel
def _insert(ascending, distance):
    """Insert a distance into the ascending list of the smallest."""
    position = ascending.shape[0] - 1
    if distance >= ascending[position]:
        return
    while position > 0 and ascending[position - 1] > distance:
        ascending[position] = ascending[position - 1]
        position -= 1
    ascending[position] = distance


@kernel
def _walk_ranks(y, group_of, i, least, best):
    """Collect distances, at least ``least``, to the samples with the nearest targets that belong to no group."""
    n, last = y.shape[0], best.shape[0] - 1
    low, high = i - 1, i + 1
    while True:
        while low >= 0 and group_of[low] >= 0:
            low -= 1
        while high < n and group_of[high] >= 0:
            high += 1
        below, above = y[i] - y[low] if low >= 0 else np.inf, y[high] - y[i] if high < n else np.inf
        distance = max(least, min(below, above))
        if distance >= best[last]:
            break
        _insert(best, distance)
        low, high = (low - 1, high) if below <= above else (low, high + 1)


@kernel
def _walk_strip(y, members, values, group_of, i, value, least, best):
    """Collect distances to the samples of a strip, given by their sorted ranks; none of them is below ``least``."""
    last = best.shape[0] - 1
    high = np.searchsorted(members, i)
    low = high - 1
    if high < members.shape[0] and members[high] == i:
        high += 1
    while True:
        below = y[i] - y[members[low]] if low >= 0 else np.inf
        above = y[members[high]] - y[i] if high < members.shape[0] else np.inf
        distance = max(least, min(below, above))
        if distance >= best[last]:
            break
        j = members[low] if below <= above else members[high]
        _insert(best, max(distance, abs(values[group_of[j]] - value)))
        low, high = (low - 1, high) if below <= above else (low, high + 1)
