"""Mutual information between each feature and the target."""

from __future__ import annotations

import numbers
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import psi

from zeronorm.selectors.base import BaseSelector
from zeronorm.selectors.filters.discrete import parse_discrete_features
from zeronorm.selectors.filters.discretize_kernels import AS_THEY_ARE, code_columns
from zeronorm.selectors.filters.information_kernels import neighbour_information, table_information
from zeronorm.selectors.filters.threads import run_in_threads, useful_threads
from zeronorm.selectors.path import SelectionPath
from zeronorm.selectors.problem import Problem
from zeronorm.selectors.registry import register

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Mask = NDArray[np.bool_]

# Fixed, so that the noise that breaks ties is the same on every backend.
COLUMNS_AT_A_TIME = 256
NOISE = 1e-10  # relative
OPERATIONS_PER_VALUE = 100  # about as many as go into sorting it and finding its neighbours


@register(
    "mutual-information",
    family="filters",
    tasks=("binary", "multiclass", "regression"),
    reference="Kraskov et al. 2004; Ross 2014",
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
    n_features_to_select : count, fraction, or None for half of the features.
    n_neighbors : neighbours in the estimate; more give less variance and more bias.
    discrete_features : None, "all", a mask, or a list of columns (positions or names) that hold categories.
    task : "classification" or "regression".
    estimator : fitted on the selected features when given; adds ``predict``.
    feature_groups, always_keep : whole groups and forced features, see the user guide.
    n_jobs : threads (with a real target, workers of scikit-learn); None means 1, -1 all cores.
    random_state : seed of the tiny noise that separates equal values of continuous features.
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        n_neighbors: int = 3,
        discrete_features: Any = None,
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
        estimate = self._regression if problem.task == "regression" else self._classification
        score = np.empty(problem.n_features)
        with problem.progress.task("Mutual information", problem.n_features) as advance:
            for columns, block in problem.design.iter_blocks(COLUMNS_AT_A_TIME):
                score[columns] = estimate(block, problem, discrete[columns])
                advance(block.shape[1])
        constant = problem.design.column_stats().is_constant(problem.design.dtype)
        score[constant] = 0.0
        return SelectionPath.from_scores(score, last=constant)

    def _regression(self, block: FloatArray, problem: Problem, discrete: Mask) -> FloatArray:
        from sklearn.feature_selection import mutual_info_regression

        seed = int(problem.rng.integers(2**31 - 1))
        return np.asarray(
            mutual_info_regression(
                block,
                problem.y,
                discrete_features=discrete,
                n_neighbors=self.n_neighbors,
                n_jobs=self.n_jobs,
                random_state=seed,
            )
        )

    def _classification(self, block: FloatArray, problem: Problem, discrete: Mask) -> FloatArray:
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
        k = self.n_neighbors
        if not isinstance(k, numbers.Integral) or isinstance(k, bool) or not 1 <= k < problem.n_samples:
            raise ValueError(
                "The 'n_neighbors' parameter of MutualInformation must be an integer between 1 and the number "
                f"of samples minus one, {problem.n_samples - 1}. Got {k!r} instead."
            )
        if problem.task != "regression" and np.bincount(problem.y).max() < 2:
            raise ValueError(
                "MutualInformation needs at least one class with two samples or more. Got only classes of one "
                "sample; use task='regression' if y is a quantity."
            )


def _with_noise(block: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A copy in which equal values differ, by far less than different ones do."""
    size = np.maximum(block.std(axis=0), np.abs(block).mean(axis=0))
    return np.asarray(block + NOISE * size * rng.standard_normal(block.shape))
