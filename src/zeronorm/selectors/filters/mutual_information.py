"""Mutual information between each feature and the target."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm.selectors.base import BaseSelector
from zeronorm.selectors.filters.discrete import parse_discrete_features
from zeronorm.selectors.path import SelectionPath
from zeronorm.selectors.problem import Problem
from zeronorm.selectors.registry import register

FloatArray = NDArray[np.float64]

# Fixed, so that the tie-breaking noise of scikit-learn's estimator is the same on every backend.
COLUMNS_AT_A_TIME = 256


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

    The estimate is scikit-learn's, computed over blocks of columns. It finds any dependence of the
    target on one feature, not only a difference of means, but no feature that matters only together with
    others. It needs more samples than the Fisher score for a reliable order. Constant features rank last.

    Parameters
    ----------
    n_features_to_select : count, fraction, or None for half of the features.
    n_neighbors : neighbours in the estimate; more give less variance and more bias.
    discrete_features : None, "all", a mask, or a list of columns (positions or names) that hold categories.
    task : "classification" or "regression".
    estimator : fitted on the selected features when given; adds ``predict``.
    feature_groups, always_keep : whole groups and forced features, see the user guide.
    n_jobs : processes or threads of scikit-learn's estimator.
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
        estimate = self._estimate(problem)
        score = np.empty(problem.n_features)
        with problem.progress.task("Mutual information", problem.n_features) as advance:
            for columns, block in problem.design.iter_blocks(COLUMNS_AT_A_TIME):
                seed = int(problem.rng.integers(2**31 - 1))
                score[columns] = estimate(
                    block, problem.y, discrete_features=discrete[columns], random_state=seed
                )
                advance(block.shape[1])
        constant = problem.design.column_stats().is_constant(problem.design.dtype)
        score[constant] = 0.0
        return SelectionPath.from_scores(score, last=constant)

    def _estimate(self, problem: Problem) -> Callable[..., FloatArray]:
        from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

        function = mutual_info_regression if problem.task == "regression" else mutual_info_classif
        return partial(function, n_neighbors=self.n_neighbors, n_jobs=self.n_jobs, copy=True)

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
