"""The score test of Cox's model, one feature at a time."""

from __future__ import annotations

from typing import Any, Literal

from zeronorm.engines._column_information import safe_ratio
from zeronorm.engines._cox_scores import adjusted_score_tests
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector


@register(
    "cox-score",
    family="filters",
    tasks=("survival",),
    reference="Cox 1972; Efron 1977",
    papers={
        "Cox 1972": (
            "D. R. Cox. Regression models and life-tables. Journal of the Royal Statistical Society B 34, 187–202, "
            "1972.",
            "10.1111/j.2517-6161.1972.tb00899.x",
        ),
        "Efron 1977": (
            "B. Efron. The efficiency of Cox's likelihood function for censored data. Journal of the American "
            "Statistical Association 72, 557–565, 1977.",
            "10.1080/01621459.1977.10480613",
        ),
    },
    cost="n p; one pass over the data",
    oracle="all risk sets one by one, finite differences, and the score test of statsmodels",
    avoid="features that act only together; redundant features",
    test_params=({}, {"ties": "breslow"}),
)
class CoxScore(WeightedSelector):
    r"""Rank features by the score test of Cox's model, one feature at a time.

    .. math:: s_k = \frac{U_k^2}{V_k}, \qquad U_k = \sum_i m_i x_{ik}, \qquad
              V_k = -\frac{\partial^2 \ell}{\partial \beta_k^2}\Big|_{\beta = 0}

    with the partial likelihood :math:`\ell` and the martingale residuals :math:`m_i`: one if sample i had the event,
    minus the number of events that it was expected to have, had no feature any effect. The scores of features without
    effect are distributed as χ² with one degree of freedom. One pass over the data gives what a fit of one Cox
    model for each feature would rank almost equally. It looks at one feature at a time; :doc:`/methods/cox-lasso`
    takes the others into account. With ``adjust`` the test is that of adding the feature to a Cox model of the
    covariates.

    The target is a time and whether the event happened then: scikit-survival's structured array, or a table with two
    columns. Numbers alone are times at which all samples had the event.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import CoxScore
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 8))
    >>> time = rng.exponential(np.exp(-X[:, 0] - X[:, 1]))  # the first two features shorten it
    >>> y = {"event": time < 2.0, "time": np.minimum(time, 2.0)}
    >>> selector = CoxScore(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _finite_from_statistics = True

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        ties: Literal["efron", "breslow"] = "efron",
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.ties = ties
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust

    def _select(self, problem: Problem) -> SelectionPath:
        slope, variance, constant = adjusted_score_tests(problem, self.ties)
        return SelectionPath.from_scores(safe_ratio(slope**2, variance), last=constant, ratios=True)
