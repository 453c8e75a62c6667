"""How far classes stand apart in one column, from its statistics.

Serves FisherScore, FCBF and the preselection of OptimalFeatureWeighting; the finite ratio also serves
GolubScore, WelchScore, Relief and GramSchmidtRelief.
"""

from __future__ import annotations

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.design import ColumnStats


def safe_ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """0/0 is 0; a positive number over 0 is the largest finite ratio, doubled."""
    ratio = np.zeros_like(numerator)
    proper = denominator > 0
    with np.errstate(over="ignore"):  # a denominator next to zero counts as zero
        np.divide(numerator, denominator, out=ratio, where=proper)
    perfect = (~proper | np.isinf(ratio)) & (numerator > 0)
    if np.any(perfect):
        ratio[perfect] = 2.0 * max(1.0, float(ratio[~perfect].max(initial=0.0)))
    return ratio


def two_class_score(stats: ColumnStats) -> FloatArray:
    """Squared distance of the two class means over the sum of the class variances."""
    mean, variance = stats.class_mean, stats.class_variance
    return safe_ratio((mean[1] - mean[0]) ** 2, variance[1] + variance[0])


def between_over_within(stats: ColumnStats) -> FloatArray:
    """Variance between the class means over the variance within the classes."""
    share = (stats.weight / stats.weight.sum())[:, None]
    between = (share * (stats.class_mean - stats.mean) ** 2).sum(axis=0)
    within = (share * stats.class_variance).sum(axis=0)
    return safe_ratio(between, within)


def overall_score(stats: ColumnStats) -> FloatArray:
    """Distances of the class means from the overall mean over the sum of the unbiased class variances."""
    weight = stats.weight[:, None]
    unbiased = stats.class_variance * weight / np.maximum(weight - 1.0, 1.0)
    between = ((stats.class_mean - stats.mean) ** 2).sum(axis=0)
    return safe_ratio(between, unbiased.sum(axis=0))
