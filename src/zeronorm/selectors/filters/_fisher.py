"""The Fisher score: distance of the class means relative to the variance within the classes, or correlation."""

from __future__ import annotations

from typing import Any, Literal

from zeronorm._types import BoolArray, FloatArray
from zeronorm.design._chunked import ChunkedDesign
from zeronorm.engines._adjusted_scores import adjusted_scores
from zeronorm.engines._column_information import (
    between_over_within,
    overall_score,
    squared_correlation,
    two_class_score,
    two_class_score_by_part,
)
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector


@register(
    "fisher",
    family="filters",
    tasks=("binary", "multiclass", "regression"),
    reference="Weston et al. 2003 (corr); Gadat & Younes 2007, section 5.2.5",
    cost="n p; one pass over the data",
    oracle="the formulas written out, and the order of scikit-learn's f_classif and f_regression",
    avoid="features that act only together, or differ by more than their class means; redundant features",
    test_params=({}, {"variant": "overall"}, {"task": "regression"}),
)
class FisherScore(WeightedSelector):
    r"""Rank features by the Fisher score, one feature at a time.

    Two classes, ``variant="between"``:

    .. math:: F_k = \frac{(\mu_k^+ - \mu_k^-)^2}{(\sigma_k^+)^2 + (\sigma_k^-)^2}

    More classes: variance between the class means over the variance within the classes, each class
    weighted by its size, which orders features as the F test does. ``variant="overall"`` measures each class
    mean against the overall mean and uses unbiased variances:

    .. math:: F_k = \frac{\sum_c (\mu_{ck} - \mu_k)^2}{\sum_c s_{ck}^2}

    A real target (``task="regression"``): the squared correlation of the feature with the target, which orders features
    as the F test does.

    A feature that is constant within each class but differs between the classes gets the largest finite score; constant
    features get 0 and rank last.

    With ``adjust`` features are scored by what they add to the covariates: a real target by the squared partial
    correlation; classes by Rao's score test of a multinomial logistic regression on the covariates, which
    fits no model to a feature. Features that the covariates explain get 0 and rank last.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.
    variant
        "between" compares the class means with each other, weighted by class size; "overall" compares each with the
        overall mean. Not used with a real target or with ``adjust``.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import FisherScore
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = FisherScore(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _finite_from_statistics = True

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        variant: Literal["between", "overall"] = "between",
        task: Literal["classification", "regression"] = "classification",
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.variant = variant
        self.task = task
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust

    def _select(self, problem: Problem) -> SelectionPath:
        score, constant = self._scores(problem)
        return SelectionPath.from_scores(score, last=constant, ratios=True)

    def _scores(self, problem: Problem) -> tuple[FloatArray, BoolArray]:
        """The scores, and which features are constant; a method of its own frees the column statistics on return."""
        if problem.adjust is not None:
            found_given = adjusted_scores(problem)
            return found_given.score, found_given.explained
        if not problem.target.has_classes:
            standardized = problem.shared.standardized(problem.design, problem.sample_weight)
            score = squared_correlation(standardized, problem.y, problem.sample_weight)
            assert standardized.affine is not None
            return score, standardized.affine.zero_columns
        design = problem.design
        is_between = problem.n_classes == 2 and self.variant == "between"
        if is_between and isinstance(design, ChunkedDesign) and design.affine is None:
            found = two_class_score_by_part(design, problem)
            if found is not None:
                return found
        stats = problem.column_stats()
        if self.variant == "overall":
            score = overall_score(stats)
        elif problem.n_classes == 2:
            score = two_class_score(stats)
        else:
            score = between_over_within(stats)
        return score, stats.is_constant(problem.design.dtype)
