"""The log-rank test of samples above and below the median, one feature at a time."""

from __future__ import annotations

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.engines._column_information import safe_ratio
from zeronorm.engines._cox_scores import risk_sets_of
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector
from zeronorm.solvers.linear._cox import RiskSets
from zeronorm.solvers.linear._survival import Strata


@register(
    "log-rank",
    family="filters",
    tasks=("survival",),
    reference="Mantel 1966",
    papers={
        "Mantel 1966": (
            "N. Mantel. Evaluation of survival data and two new rank order statistics arising in its consideration. "
            "Cancer Chemotherapy Reports 50, 163–170, 1966.",
            "https://pubmed.ncbi.nlm.nih.gov/5910392/",
        )
    },
    cost="n p log n; one pass over the data",
    oracle="lifelines, and the formula written out",
    avoid="effects of the size of a feature: the cut at the median loses about a third of the information",
)
class LogRankScore(BaseSelector):
    r"""Rank features by the log-rank test between samples above and below the median.

    .. math:: s_k = \frac{\bigl(\sum_t (d_t^+ - d_t n_t^+ / n_t)\bigr)^2}
              {\sum_t d_t \frac{n_t - d_t}{n_t - 1} \frac{n_t^+}{n_t} \bigl(1 - \frac{n_t^+}{n_t}\bigr)}

    with :math:`d_t` events among the :math:`n_t` samples at risk at time t, and a plus for those above the median of
    feature k. A sample at the median counts half above and half below. Medical papers often choose features this way;
    `CoxScore` uses the values themselves and usually finds more.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import LogRankScore
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 8))
    >>> time = rng.exponential(np.exp(-X[:, 0] - X[:, 1]))  # the first two features shorten it
    >>> y = {"event": time < 2.0, "time": np.minimum(time, 2.0)}
    >>> LogRankScore(2).fit(X, y).get_support(indices=True).tolist()
    [0, 1]
    """

    def _select(self, problem: Problem) -> SelectionPath:
        sets = risk_sets_of(problem, "breslow")
        scores = np.concatenate([_log_rank(block, sets) for _, block in problem.design.iter_blocks()])
        constant = problem.design.column_stats().is_constant(problem.design.dtype)
        return SelectionPath.from_scores(np.where(constant, 0.0, scores), last=constant, ratios=True)


def _log_rank(block: FloatArray, strata: Strata[RiskSets]) -> FloatArray:
    """The test statistic of each column divided at its median, from the sums over the strata."""
    above = 0.5 + 0.5 * np.sign(block - np.median(block, axis=0))
    excess, variance = np.sum([_excess(above[rows], sets) for rows, sets in strata.parts], axis=0)
    return safe_ratio(excess**2, variance)


def _excess(above: FloatArray, sets: RiskSets) -> tuple[FloatArray, FloatArray]:
    """Events above the median minus those expected, for each column of shares above it, and the variance."""
    ranked = above[sets.order]
    n_at_risk = (len(ranked) - sets.start)[:, None]
    n_events = sets.n_tied[:, None]
    mean, mean_square = (
        np.cumsum(values[::-1], axis=0)[::-1][sets.start] / n_at_risk for values in (ranked, ranked**2)
    )
    events_above = np.add.reduceat(ranked[sets.deaths], sets.first_of_ties, axis=0)
    factor = n_events * (n_at_risk - n_events) / np.maximum(n_at_risk - 1, 1)
    excess = (events_above - n_events * mean).sum(axis=0)
    return excess, (factor * np.maximum(mean_square - mean**2, 0.0)).sum(axis=0)
