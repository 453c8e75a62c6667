"""Mutual information between each feature and the target."""

# mypy: allow-untyped-defs

from __future__ import annotations

import warnings
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy.special import psi

from zeronorm._jit import kernel
from zeronorm._threads import run_in_threads, useful_threads
from zeronorm._types import BoolArray, FloatArray
from zeronorm.engines.column_information import (
    StoredBlock,
    has_stored_columns,
    parse_discrete_features,
    sorted_entries,
    stored_blocks,
    total_bits,
)
from zeronorm.registry import register
from zeronorm.selection.kinds import parameter_error
from zeronorm.selection.path import SelectionPath
from zeronorm.selection.problem import Problem
from zeronorm.selectors.base import BaseSelector

# By the number of samples alone, so that the noise that breaks ties is the same on every backend.
MOST_COLUMNS, FEWEST_COLUMNS, NUMBERS_AT_A_TIME = 256, 4, 1 << 20
NOISE = 1e-10  # of the size of a column: distances that differ by less are equal
NEGLIGIBLE = 1e-12  # chance of the orders that are left out
# About as long each number takes, and the time that is announced.
SECONDS_NEIGHBOURS, SECONDS_COUNTS, SECONDS_REGRESSION, LONG_S = 2e-7, 4e-8, 6e-6, 300.0
OPERATIONS_PER_VALUE = 100  # about as many as go into sorting it and finding its neighbours


@register(
    "mutual-information",
    family="filters",
    tasks=("binary", "multiclass", "regression"),
    reference="Kraskov et al. 2004; Ross 2014",
    cost="n log n p; of sparse data with classes only the stored values",
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

    Where samples are at the same distance :math:`m_i` would depend on chance: the mean of :math:`\psi(m_i)` over all
    their orders is taken. Of sparse columns only the stored values are visited.

    With a real target the estimate of Kraskov et al. is scikit-learn's, to which zeros are values as all others. Both
    find any dependence of the target on one feature, not only a difference of means, but no feature that matters
    only together with others. They need more samples than the Fisher score for a reliable order. Constant features
    rank last.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.
    n_neighbors
        More neighbours give less variance and more bias.
    discrete_features
        "all": all columns. None: no column.
    n_jobs
        Threads; for a real target, workers of scikit-learn.
    random_state
        With a real target it decides the tiny noise that separates equal values of continuous features.

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
        estimate = self._regression if problem.task == "regression" else self._classification
        score = estimate(problem, discrete)
        constant = problem.design.column_stats().is_constant(problem.design.dtype)
        score[constant] = 0.0
        return SelectionPath.from_scores(score, last=constant)

    def _warn_if_long(self, problem: Problem, discrete: BoolArray) -> None:
        """Say so before it takes many minutes; with classes, zeros that are not stored cost nothing."""
        if problem.task != "regression" and has_stored_columns(problem.design):
            return
        n_discrete = int(discrete.sum())
        each = SECONDS_REGRESSION if problem.task == "regression" else SECONDS_NEIGHBOURS
        seconds = problem.n_samples * (SECONDS_COUNTS * n_discrete + each * (discrete.size - n_discrete))
        if seconds > LONG_S:
            counts = (
                "" if n_discrete else ", or discrete_features='all' if the values are counts or categories"
            )
            warnings.warn(
                f"MutualInformation looks at each of {problem.n_samples} × {problem.n_features} numbers, zeros "
                f"included: about {seconds / 60:.0f} minutes on one core. For less, take a part of the samples, the "
                f"best columns of FisherScore{counts}.",
                UserWarning,
                stacklevel=5,
            )

    def _regression(self, problem: Problem, discrete: BoolArray) -> FloatArray:
        from sklearn.feature_selection import mutual_info_regression

        y = problem.around_zero().y  # the noise against ties is in proportion to the mean
        score = np.empty(problem.n_features)
        width = min(MOST_COLUMNS, max(FEWEST_COLUMNS, NUMBERS_AT_A_TIME // problem.n_samples))
        with problem.progress.task("Mutual information", problem.n_features) as advance:
            for columns, block in problem.design.iter_blocks(width):
                score[columns] = mutual_info_regression(
                    block,
                    y,
                    discrete_features=discrete[columns],
                    n_neighbors=self.n_neighbors,
                    n_jobs=self.n_jobs,
                    random_state=int(problem.rng.integers(2**31 - 1)),
                )
                advance(block.shape[1])
        return score

    def _classification(self, problem: Problem, discrete: BoolArray) -> FloatArray:
        has_hits = np.bincount(problem.y)[problem.y] > 1
        of_pairs = np.full(problem.n_samples, -1)  # samples that are alone in their class have no neighbour
        of_pairs[has_hits] = np.unique(problem.y[has_hits], return_inverse=True)[1]
        digamma = psi(np.arange(int(has_hits.sum()) + 2.0))
        score = np.empty(problem.n_features)
        blocks = stored_blocks(
            problem.design,
            most_columns=MOST_COLUMNS,
            fewest_columns=FEWEST_COLUMNS,
            values_at_a_time=NUMBERS_AT_A_TIME,
        )
        with problem.progress.task("Mutual information", problem.n_features) as advance:
            for columns, block in blocks:
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
        if problem.task != "regression" and np.bincount(problem.y).max() < 2:
            raise ValueError(
                "MutualInformation needs at least one class with two samples or more. Got only classes of one "
                "sample; use task='regression' if y is a quantity."
            )


# -- Compiled estimates of the mutual information between columns and classes --


@kernel
def neighbour_information(data, rows, starts, elsewhere, codes, chosen, k, digamma, result, first, last):
    """Ross's estimate for the ``chosen`` ones of columns ``first`` to ``last``, each a continuous feature.

    Codes of classes with two samples or more; negative ones do not count. ``digamma[m]`` is ψ(m).
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
            for place in range(own.shape[0]):
                expected = _expected_digamma(x, below, own, own_x, own_below, place, wanted, near, digamma)
                total += numbers[own[place]] * (digamma[wanted] - digamma[counts[c]] - expected)
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
    """Sums of the entries before each one, and of all."""
    sums = np.zeros(numbers.shape[0] + 1, dtype=np.int64)
    for i in range(numbers.shape[0]):
        sums[i + 1] = sums[i] + numbers[i]
    return sums


@kernel
def _expected_digamma(x, below, own, own_x, own_below, place, k, near, digamma):
    """ψ of the number of samples that are nearer than the k-th nearest of the class, itself included.

    Distances that differ by less than ``near`` come in random order, as if each value had a tiny error of its own; this
    is the mean over these orders. ``own`` are the entries of the class, of which ``place`` is the one to look at.
    """
    i, value = own[place], own_x[place]
    low, high = _reach(own_x, place, place, value, near, True)
    own_equal = own_below[high + 1] - own_below[low] - 1
    if own_equal >= k:
        # The k-th of them is at place J, and ψ(J) has a mean of ψ(all) + ψ(k) - ψ(own).
        low, high = _reach(x, i, i, value, near, True)
        return digamma[below[high + 1] - below[low]] + digamma[k] - digamma[own_equal + 1]
    radius = _distance_to_neighbour(own_x, own_below, place, k)
    low, high = _reach(x, i, i, value, radius - near, False)
    inside = below[high + 1] - below[low]
    low, high = _reach(x, low, high, value, radius + near, True)
    on_edge = below[high + 1] - below[low] - inside
    if on_edge == 1:  # no ties
        return digamma[inside]
    low, high = _reach(own_x, place, place, value, radius - near, False)
    own_inside = own_below[high + 1] - own_below[low]
    low, high = _reach(own_x, low, high, value, radius + near, True)
    own_on_edge = own_below[high + 1] - own_below[low] - own_inside
    return _mean_on_edge(inside, on_edge, own_on_edge, k - own_inside + 1, digamma)


@kernel
def _mean_on_edge(inside, size, own, wanted, digamma):
    """Mean of ψ(inside + J - 1), with J the place of the ``wanted``-th of ``own`` ones among ``size`` in any order."""
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
def _distance_to_neighbour(own_x, own_below, place, k):
    """Distance of a sample to the k-th nearest of its class."""
    low, high = place - 1, place + 1
    found, distance = own_below[place + 1] - own_below[place] - 1, 0.0
    while found < k:
        left = own_x[place] - own_x[low] if low >= 0 else np.inf
        right = own_x[high] - own_x[place] if high < own_x.shape[0] else np.inf
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
    """First and last of the ascending x nearer to ``value`` than ``radius``, or as near if ``closed``.

    Those from ``low`` to ``high`` are. Steps are doubled and then halved again, since most neighbours are close.
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
    """Mutual information in nats with the classes of the ``chosen`` ones of some columns, which are discrete."""
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
