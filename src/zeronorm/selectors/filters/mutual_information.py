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
from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.engines.column_information import AS_THEY_ARE, code_columns, parse_discrete_features, total_bits
from zeronorm.registry import register
from zeronorm.selection.kinds import parameter_error
from zeronorm.selection.path import SelectionPath
from zeronorm.selection.problem import Problem
from zeronorm.selectors.base import BaseSelector

# By the number of samples alone, so that the noise that breaks ties is the same on every backend.
MOST_COLUMNS, FEWEST_COLUMNS, NUMBERS_AT_A_TIME = 256, 4, 1 << 20
NOISE = 1e-10  # relative
# About as long each number takes, and the time that is announced.
SECONDS_NEIGHBOURS, SECONDS_COUNTS, SECONDS_REGRESSION, LONG_S = 2e-7, 4e-8, 6e-6, 300.0
OPERATIONS_PER_VALUE = 100  # about as many as go into sorting it and finding its neighbours


@register(
    "mutual-information",
    family="filters",
    tasks=("binary", "multiclass", "regression"),
    reference="Kraskov et al. 2004; Ross 2014",
    cost="n log n p",
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

    With a real target the estimate of Kraskov et al. is scikit-learn's. Both find any dependence of the
    target on one feature, not only a difference of means, but no feature that matters only together with
    others. They need more samples than the Fisher score for a reliable order. Constant features rank last.

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
        It decides the tiny noise that separates equal values of continuous features.

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
        score = np.empty(problem.n_features)
        width = min(MOST_COLUMNS, max(FEWEST_COLUMNS, NUMBERS_AT_A_TIME // problem.n_samples))
        with problem.progress.task("Mutual information", problem.n_features) as advance:
            for columns, block in problem.design.iter_blocks(width):
                score[columns] = estimate(block, problem, discrete[columns])
                advance(block.shape[1])
        constant = problem.design.column_stats().is_constant(problem.design.dtype)
        score[constant] = 0.0
        return SelectionPath.from_scores(score, last=constant)

    def _warn_if_long(self, problem: Problem, discrete: BoolArray) -> None:
        """Every number is sorted, the zeros of sparse data too: say so before it takes many minutes."""
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

    def _regression(self, block: FloatArray, problem: Problem, discrete: BoolArray) -> FloatArray:
        from sklearn.feature_selection import mutual_info_regression

        seed = int(problem.rng.integers(2**31 - 1))
        return np.asarray(
            mutual_info_regression(
                block,
                problem.around_zero().y,  # the noise against ties is in proportion to the mean
                discrete_features=discrete,
                n_neighbors=self.n_neighbors,
                n_jobs=self.n_jobs,
                random_state=seed,
            )
        )

    def _classification(self, block: FloatArray, problem: Problem, discrete: BoolArray) -> FloatArray:
        score = np.empty(block.shape[1])
        continuous = _with_noise(block[:, ~discrete], problem.rng)
        score[~discrete] = self._by_neighbours(continuous, problem.y)
        if discrete.any():
            score[discrete] = self._by_counts(block[:, discrete], problem.y)
        return score

    def _by_neighbours(self, block: FloatArray, y: IntArray) -> FloatArray:
        has_hits = np.bincount(y)[y] > 1
        codes = np.unique(y[has_hits], return_inverse=True)[1]
        columns = np.ascontiguousarray(block[has_hits].T)
        score = np.empty(len(columns))
        digamma = psi(np.arange(codes.size + 1.0))
        estimate = partial(
            neighbour_information, columns, codes, np.bincount(codes), int(self.n_neighbors), digamma, score
        )
        self._share(estimate, columns.shape)
        return score

    def _by_counts(self, block: FloatArray, y: IntArray) -> FloatArray:
        columns = np.ascontiguousarray(block.T)
        codes, n_values = np.empty(columns.shape, dtype=np.int32), np.empty(len(columns), dtype=np.intp)
        n_classes = int(y.max()) + 1
        code_columns(columns, y, n_classes, AS_THEY_ARE, codes, n_values)
        score = np.empty(len(columns))
        self._share(partial(table_information, codes, n_values, y, n_classes, score), columns.shape)
        return score

    def _share(self, estimate: partial[None], shape: tuple[int, int]) -> None:
        """Divide the columns among threads."""
        n_threads = useful_threads(self.n_jobs, shape[0] * shape[1] * OPERATIONS_PER_VALUE)
        bounds = np.linspace(0, shape[0], 4 * n_threads + 1 if n_threads > 1 else 2).astype(int)
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


def _with_noise(block: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A copy in which equal values differ, by far less than different ones do."""
    size = np.maximum(block.std(axis=0), np.abs(block).mean(axis=0))
    noise = rng.standard_normal(block.shape)
    noise *= NOISE * size
    noise += block
    return noise


# -- Compiled estimates of the mutual information between columns and classes --


@kernel
def neighbour_information(columns, codes, counts, k, digamma, result, first, last):
    """Ross's estimate for rows ``first`` to ``last`` of ``columns``, each a continuous feature.

    Every class has two samples or more; ``counts`` are their sizes and ``digamma[m]`` is ψ(m).
    """
    n = codes.shape[0]
    members = np.empty((counts.shape[0], counts.max()), dtype=np.intp)
    found = np.empty(counts.shape[0], dtype=np.intp)
    for f in range(first, last):
        order = np.argsort(columns[f])
        x, labels = columns[f][order], codes[order]
        found[:] = 0
        for i in range(n):
            members[labels[i], found[labels[i]]] = i
            found[labels[i]] += 1
        total = 0.0
        for c in range(counts.shape[0]):
            near = min(k, counts[c] - 1)
            own = members[c, : counts[c]]
            for place in range(counts[c]):
                radius = _distance_to_neighbour(x, own, place, near)
                total += digamma[near] - digamma[counts[c]] - digamma[_count_within(x, own[place], radius)]
        result[f] = max(0.0, digamma[n] + total / n)


@kernel
def _distance_to_neighbour(x, own, place, k):
    """Distance of a sample to the k-th nearest of its class, whose members ``own`` are in ascending order."""
    nearest = np.inf
    for start in range(max(0, place - k), min(place, own.shape[0] - 1 - k) + 1):
        below, above = x[own[place]] - x[own[start]], x[own[start + k]] - x[own[place]]
        nearest = min(nearest, max(below, above))
    return nearest


@kernel
def _count_within(x, i, radius):
    """Number of samples nearer than ``radius`` to sample i of the sorted x, itself included."""
    low, high = 0, i  # the first that is near enough lies in between
    while low < high:
        middle = (low + high) // 2
        if x[i] - x[middle] < radius:
            high = middle
        else:
            low = middle + 1
    first, low, high = low, i, x.shape[0] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if x[middle] - x[i] < radius:
            low = middle
        else:
            high = middle - 1
    return low - first + 1


@kernel
def table_information(columns, n_values, codes, n_classes, result, first, last):
    """Mutual information in nats of discrete columns, given as codes, with the classes."""
    n = codes.shape[0]
    class_bits = total_bits(np.bincount(codes, minlength=n_classes).astype(np.float64))
    for f in range(first, last):
        table = np.zeros(n_values[f] * n_classes)
        margin = np.zeros(n_values[f])
        for i in range(n):
            table[columns[f, i] * n_classes + codes[i]] += 1.0
            margin[columns[f, i]] += 1.0
        shared = class_bits + total_bits(margin) - total_bits(table)
        result[f] = max(0.0, shared * np.log(2.0) / n)
