"""Mutual information between each feature and the target."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy.special import psi

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines._column_information import (
    StoredBlock,
    has_stored_columns,
    parse_discrete_features,
    stored_blocks,
)
from zeronorm.engines.information._classes import neighbour_information, table_information
from zeronorm.engines.information._on_device import neighbour_information_on_device
from zeronorm.engines.information._real_target import OrderedTarget, kraskov_information
from zeronorm.execution import run_in_threads, useful_threads
from zeronorm.registry import register
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector

# It depends only on the number of samples, so that the noise that breaks ties is the same on every backend.
MOST_COLUMNS, FEWEST_COLUMNS, NUMBERS_AT_A_TIME = 256, 4, 1 << 20
# Approximate time per number, and the time from which a warning is issued.
SECONDS_OF_CLASSES, SECONDS_OF_REAL_TARGET = (2e-7, 4e-8), (2e-6, 6e-6)  # continuous, discrete
LONG_S = 300.0
# Cost of sorting a value and finding its neighbours, 0.2 µs, in subtractions of 0.05 ns (see `useful_threads`).
OPERATIONS_PER_VALUE = 4000


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
    features rank last. Of data on a GPU, columns without equal distances are estimated there if the target has classes.

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
            for columns, block in self._blocks(problem.design):
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

    def _blocks(self, design: Design) -> Iterator[tuple[slice, StoredBlock]]:
        return stored_blocks(
            design,
            most_columns=MOST_COLUMNS,
            fewest_columns=FEWEST_COLUMNS,
            values_at_a_time=NUMBERS_AT_A_TIME,
        )

    def _classification(self, problem: Problem, discrete: BoolArray) -> FloatArray:
        has_hits = np.bincount(problem.y)[problem.y] > 1
        of_pairs = np.full(problem.n_samples, -1)  # the only sample of a class has no neighbour
        of_pairs[has_hits] = np.unique(problem.y[has_hits], return_inverse=True)[1]
        digamma = psi(np.arange(int(has_hits.sum()) + 2.0))
        score = np.full(problem.n_features, np.nan)
        if not discrete.any():
            score = neighbour_information_on_device(problem.design, of_pairs, int(self.n_neighbors), digamma)
        left = np.flatnonzero(np.isnan(score))  # all columns in memory, and those on a device that have ties
        design, discrete = (problem.design, discrete) if left.size == score.size else (
            problem.design.take(left), discrete[left],
        )  # fmt: skip
        found = np.empty(left.size)
        with problem.progress.task("Mutual information", left.size) as advance:
            for columns, block in self._blocks(design):
                by_counts, part = discrete[columns], found[columns]
                if not by_counts.all():
                    near = (of_pairs, ~by_counts, int(self.n_neighbors), digamma, part)
                    self._share(partial(neighbour_information, *block, *near), block)
                if by_counts.any():
                    self._share(partial(table_information, *block, problem.y, by_counts, part), block)
                advance(block.n_columns)
        score[left] = found
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
