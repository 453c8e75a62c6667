"""Nearest shrunken centroids with the whole path of thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from zeronorm._types import FloatArray
from zeronorm.design import ColumnStats
from zeronorm.engines._column_information import safe_ratio
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector


@register(
    "shrunken-centroids",
    family="filters",
    tasks=("binary", "multiclass"),
    reference="Tibshirani et al. 2002",
    cost="n p; one pass over the data",
    oracle="scikit-learn's NearestCentroid, one threshold at a time",
    avoid="features that act only together; redundant features that should be removed",
    misprints="The paper prints √(1/n_c + 1/n) for m_c; the standard error has a minus sign.",
    test_params=({}, {"threshold": 1.0}),
)
class ShrunkenCentroids(WeightedSelector):
    r"""Rank features by the threshold at which their class centroids shrink onto the overall centroid.

    The distance of the centroid of class c from the overall centroid, in units of its standard error,

    .. math:: d_{ck} = \frac{\bar x_{ck} - \bar x_k}{m_c (s_k + s_0)}, \qquad m_c = \sqrt{1/n_c - 1/n},

    is shrunk by soft thresholding, :math:`d'_{ck} = \operatorname{sign}(d_{ck}) (|d_{ck}| - \Delta)_+`, where
    :math:`s_k` is the pooled standard deviation within the classes (n minus the number of classes degrees of freedom)
    and :math:`s_0` the median of all :math:`s_k`. A feature remains while some class has :math:`d'_{ck} \ne 0`, so the
    score :math:`\max_c |d_{ck}|` is the threshold at which it leaves, and one fit gives the subsets of all thresholds.
    The paper prints :math:`\sqrt{1/n_c + 1/n}` for :math:`m_c`; the minus sign is the standard error of the difference,
    because the overall mean contains the class.

    A univariate method: fast and unlikely to overfit, but it misses features that matter only together. Classes of one
    sample are allowed as long as some class has more.

    Parameters
    ----------
    n_features_to_select
        None: the features that are left at ``threshold``, or half of the features when there is no threshold.
    threshold
        Here: the amount Δ by which the centroids are shrunk. None: no threshold.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_features_in_,)
        For each number of features k = 1, …, p (entry k−1) the smallest threshold at which no more than k features
        are active, before groups and forced features.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import ShrunkenCentroids
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = ShrunkenCentroids(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        threshold: float | None = None,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _select(self, problem: Problem) -> SelectionPath:
        stats = problem.column_stats()
        self._overall = stats.mean
        self._unit = _standard_errors(stats)
        self._deviation = stats.class_mean - stats.mean
        constant = stats.is_constant(problem.design.dtype)
        distance = safe_ratio(np.abs(self._deviation).ravel(), self._unit.ravel()).reshape(self._unit.shape)
        score = distance.max(axis=0)
        score[constant] = 0.0
        descending = np.sort(score)[::-1]
        self.thresholds_ = np.append(descending[1:], 0.0)
        active = None if self.threshold is None else int(np.count_nonzero(score > self.threshold))
        return SelectionPath.from_scores(score, last=constant, selected_size=active)

    def centroids_at(self, threshold: float) -> FloatArray:
        """The shrunken centroids, one row per class, for any threshold."""
        check_is_fitted(self)
        shrunk = np.maximum(np.abs(self._deviation) - threshold * self._unit, 0.0)
        centroids: FloatArray = self._overall + np.sign(self._deviation) * shrunk
        return centroids


def _standard_errors(stats: ColumnStats) -> FloatArray:
    """m_c (s_k + s_0), one row per class."""
    total = float(stats.weight.sum())
    freedom = total - stats.n_classes
    if freedom <= 0:
        raise ValueError(
            "ShrunkenCentroids needs more samples than classes, to estimate the variance within the classes. Got "
            f"{total:g} samples (or total weight) in {stats.n_classes} classes."
        )
    pooled = np.sqrt((stats.weight[:, None] * stats.class_variance).sum(axis=0) / freedom)
    class_factor = np.sqrt(1.0 / stats.weight - 1.0 / total)
    errors: FloatArray = class_factor[:, None] * (pooled + np.median(pooled))
    return errors
