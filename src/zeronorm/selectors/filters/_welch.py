"""Welch's t statistic, one feature at a time."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from zeronorm._types import FloatArray, written
from zeronorm.design import ColumnStats
from zeronorm.engines._column_information import safe_ratio
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector


@register(
    "welch",
    family="filters",
    tasks=("binary",),
    reference="Welch 1947",
    cost="n p; one pass over the data",
    oracle="scipy's ttest_ind(equal_var=False)",
    avoid="features that act only together, or differ by more than their class means",
)
class WelchScore(WeightedSelector):
    r"""Rank features by Welch's t test, which does not assume equal variances.

    .. math:: t_k = \frac{|\mu_k^+ - \mu_k^-|}{\sqrt{(s_k^+)^2 / n^+ + (s_k^-)^2 / n^-}}

    with unbiased class variances :math:`s^2`. Differs from the Fisher score where the classes have unequal
    sizes. Sample weights count as repetitions, so weights must not be normalised to a sum of one.

    A feature that is constant within each class but differs between the classes gets the largest finite score; constant
    features get 0 and rank last. Every class needs a total weight above one, because the variance of a single sample is
    unknown.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.

    Attributes
    ----------
    pvalues_ : ndarray of shape (n_features_in_,)
        Two-sided p-value of each feature, with Welch–Satterthwaite degrees of freedom. They are not corrected for
        the number of features; 1 for constant features.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import WelchScore
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = WelchScore(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _finite_from_statistics = True

    def _select(self, problem: Problem) -> SelectionPath:
        stats = problem.column_stats()
        _require_variances(stats, problem)
        constant = stats.is_constant(problem.design.dtype)
        # Variance of each class mean: s^2 / n with s^2 = n * variance / (n - 1).
        mean_variance = stats.class_variance / (stats.weight - 1.0)[:, None]
        shift = np.abs(stats.class_mean[1] - stats.class_mean[0])
        score = safe_ratio(shift, np.sqrt(mean_variance.sum(axis=0)))
        score[constant] = 0.0
        self._moments = score, mean_variance, stats.weight, constant
        return SelectionPath.from_scores(score, last=constant, ratios=True)

    @property
    def pvalues_(self) -> FloatArray:
        """The p-values, computed on first use because they take longer than the ranking of a wide table."""
        check_is_fitted(self, "_moments")
        score, mean_variance, weight, constant = self._moments
        return np.where(constant, 1.0, _p_values(score, mean_variance, weight))


def _require_variances(stats: ColumnStats, problem: Problem) -> None:
    small = np.flatnonzero(stats.weight <= 1.0)
    if small.size:
        label = problem.classes[small[0]] if problem.classes is not None else small[0]
        raise ValueError(
            "WelchScore needs at least two samples of each class (total weight above 1), to estimate its variance. "
            f"Got weight {stats.weight[small[0]]:g} for class {written(label)}; add samples or use GolubScore."
        )


def _p_values(t: FloatArray, mean_variance: FloatArray, weight: FloatArray) -> FloatArray:
    from scipy.special import stdtr

    total = mean_variance.sum(axis=0)
    # Fractions of the total variance, because tiny variances would underflow when squared.
    share = mean_variance / np.where(total > 0.0, total, 1.0)
    freedom = 1.0 / np.maximum((share**2 / (weight - 1.0)[:, None]).sum(axis=0), np.finfo(float).tiny)
    p_values: FloatArray = 2.0 * stdtr(freedom, -t)
    p_values[(total <= 0.0) & (t > 0.0)] = 0.0
    return p_values
