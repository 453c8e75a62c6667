"""The concordance of each feature with the times to the event."""

from __future__ import annotations

import numpy as np

from zeronorm.registry import register
from zeronorm.resampling.survival._concordance import ComparablePairs
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector


@register(
    "concordance-score",
    family="filters",
    tasks=("survival",),
    reference="Harrell, Califf, Pryor, Lee & Rosati 1982",
    papers={
        "Harrell, Califf, Pryor, Lee & Rosati 1982": (
            "F. E. Harrell, R. M. Califf, D. B. Pryor, K. L. Lee and R. A. Rosati. Evaluating the yield of medical "
            "tests. JAMA 247, 2543–2546, 1982.",
            "10.1001/jama.1982.03320430047030",
        )
    },
    cost="n p log n; one pass over the data",
    oracle="all pairs of samples",
    avoid="features that act only together; redundant features",
)
class ConcordanceScore(BaseSelector):
    r"""Rank features by their concordance with the order of the events, one feature at a time.

    .. math:: s_k = |2 C_k - 1|, \qquad C_k = \text{share of comparable pairs with } x_{ik} > x_{jk}
              \text{ and } t_i < t_j

    (Harrell's concordance: pairs are comparable if the earlier time is that of an event, and ties of the feature count
    one half). It uses ranks only, so that outliers and monotone transformations of a feature change nothing.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import ConcordanceScore
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 8))
    >>> time = rng.exponential(np.exp(-X[:, 0] - X[:, 1]))  # the first two features shorten it
    >>> y = {"event": time < 2.0, "time": np.minimum(time, 2.0)}
    >>> ConcordanceScore(2).fit(X, y).get_support(indices=True).tolist()
    [0, 1]
    """

    def _select(self, problem: Problem) -> SelectionPath:
        constant = problem.design.column_stats().is_constant(problem.design.dtype)
        shares = [
            ComparablePairs.of(problem.y, column).share
            for _, block in problem.design.iter_blocks()
            for column in block.T
        ]
        scores = np.where(constant, 0.0, np.abs(2.0 * np.asarray(shares) - 1.0))
        return SelectionPath.from_scores(scores, last=constant)
