"""Golub's signal-to-noise score."""

from __future__ import annotations

import numpy as np

from zeronorm.engines._column_information import safe_ratio
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector


@register(
    "golub",
    family="filters",
    tasks=("binary",),
    reference="Golub et al. 1999",
    cost="n p; one pass over the data",
    oracle="the formula written out",
    avoid="features that act only together, or differ by more than their class means",
)
class GolubScore(WeightedSelector):
    r"""Rank features by the signal-to-noise ratio of two classes, one feature at a time.

    .. math:: G_k = \frac{|\mu_k^+ - \mu_k^-|}{\sigma_k^+ + \sigma_k^-}

    with the class means :math:`\mu` and the population standard deviations :math:`\sigma` of the classes.
    One pass over the data suffices, so it suits a first look at very wide data. It looks at one feature at a time and
    only at differences of means: use `Relief` when features matter only together.

    A class with one sample has :math:`\sigma = 0`. A feature that is constant within each class
    but differs between the classes gets the largest finite score; constant features get 0 and rank last.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import GolubScore
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = GolubScore(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _finite_from_statistics = True

    def _select(self, problem: Problem) -> SelectionPath:
        stats = problem.column_stats()
        shift = np.abs(stats.class_mean[1] - stats.class_mean[0])
        scale = np.sqrt(stats.class_variance).sum(axis=0)
        score = safe_ratio(shift, scale)
        return SelectionPath.from_scores(score, last=stats.is_constant(problem.design.dtype), ratios=True)
