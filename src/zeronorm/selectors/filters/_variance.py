"""The variance of each feature: a baseline that does not look at the target."""

from __future__ import annotations

from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector


@register(
    "variance",
    family="filters",
    tasks=("survival",),
    reference="Bommert, Welchowski, Schmid & Rahnenführer 2022",
    papers={
        "Bommert, Welchowski, Schmid & Rahnenführer 2022": (
            "A. Bommert, T. Welchowski, M. Schmid and J. Rahnenführer. Benchmark of filter methods for feature "
            "selection in high-dimensional gene expression survival data. Briefings in Bioinformatics 23, bbab354, "
            "2022.",
            "10.1093/bib/bbab354",
        )
    },
    cost="n p; one pass over the data",
    oracle="numpy.var",
    avoid="features of different units",
    test_params=({},),
)
class VarianceScore(WeightedSelector):
    r"""Rank features by their variance, without regard to the target.

    .. math:: s_k = \tfrac1n \sum_i (x_{ik} - \bar x_k)^2

    For times to an event and features of one unit, such as logarithms of gene expression, it is a strong baseline in
    the literature (Bommert et al. 2022). A method that uses the target should beat it.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import VarianceScore
    >>> X = np.random.default_rng(0).normal(size=(80, 8)) * [3, 3, 1, 1, 1, 1, 1, 1]
    >>> y = {"event": np.arange(80) % 2, "time": np.arange(80)}
    >>> VarianceScore(2).fit(X, y).get_support(indices=True).tolist()
    [0, 1]
    """

    _finite_from_statistics = True

    def _select(self, problem: Problem) -> SelectionPath:
        stats = problem.column_stats()
        return SelectionPath.from_scores(stats.variance, last=stats.is_constant(problem.design.dtype))
