"""Effect sizes with confidence intervals, and the Wilcoxon signed rank test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

LARGEST_EXACT = 50  # differences in the exact signed rank test


@dataclass(frozen=True)
class EffectSize:
    """An estimate with its confidence interval.

    Parameters
    ----------
    estimate : float
        The estimate.
    low : float
        Lower limit of the interval.
    high : float
        Upper limit of the interval.
    confidence : float
        Confidence level that the interval has.
    """

    estimate: float
    low: float
    high: float
    confidence: float


def mean_difference(
    differences: ArrayLike, *, test_train_ratio: float = 0.0, confidence: float = 0.95
) -> EffectSize:
    r"""Mean of paired differences with a t interval.

    .. math:: \bar d \pm t_{J-1} \sqrt{(1/J + n_{test}/n_{train})\, \hat\sigma^2}

    ``test_train_ratio`` is :math:`n_{test}/n_{train}` for resplits of one data set, whose differences
    are not independent (Nadeau & Bengio 2003), and 0 for independent draws.

    Parameters
    ----------
    differences : array-like
        Paired differences, such as the errors of a minus the errors of b.
    test_train_ratio : float, default=0.0
        Number of test samples divided by number of training samples for resplits of one data set; 0 for
        independent draws.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    EffectSize
        The mean with its interval.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import mean_difference
    >>> round(mean_difference([-0.05, -0.05, 0.02, -0.08, -0.05]).estimate, 3)
    -0.042
    """
    d = check_differences(differences)
    center = float(d.mean())
    half = float(stats.t.ppf((1 + confidence) / 2, d.size - 1)) * standard_error(d, test_train_ratio)
    return EffectSize(center, center - half, center + half, confidence)


def standard_error(d: NDArray[np.float64], test_train_ratio: float) -> float:
    """Standard error of the mean of differences from overlapping training sets."""
    return float(np.sqrt((1 / d.size + test_train_ratio) * d.var(ddof=1)))


def standardized_difference(differences: ArrayLike, *, confidence: float = 0.95) -> EffectSize:
    r"""Mean of independent paired differences in units of their standard deviation.

    :math:`\bar d / \hat\sigma`, with the exact interval: the noncentrality parameters at which the
    observed t is the upper and the lower quantile, divided by :math:`\sqrt J`.

    Parameters
    ----------
    differences : array-like
        Paired differences, such as the errors of a minus the errors of b.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    EffectSize
        The standardised mean with its interval.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import standardized_difference
    >>> round(standardized_difference([-0.05, -0.05, 0.02, -0.08, -0.05]).estimate, 2)
    -1.13
    """
    d = check_differences(differences)
    scale = float(d.std(ddof=1))
    if scale == 0.0:
        raise ValueError(
            "A standardised difference needs differences that vary. Got the same value "
            f"{float(d[0])} {d.size} times; report mean_difference instead."
        )
    t, root = float(d.mean() / scale * np.sqrt(d.size)), float(np.sqrt(d.size))
    tail = (1 - confidence) / 2
    low = _noncentrality(t, d.size - 1, 1 - tail) / root
    high = _noncentrality(t, d.size - 1, tail) / root
    return EffectSize(t / root, low, high, confidence)


def _noncentrality(t: float, df: int, probability: float) -> float:
    """The noncentrality parameter under which P(T <= t) is the given probability."""
    reach = 10.0 + 2.0 * abs(t)

    def excess(noncentrality: float) -> float:
        below = float(stats.nct.cdf(t, df, noncentrality))
        if np.isnan(below):  # far in a tail, where the series of the distribution breaks down
            below = 0.0 if noncentrality > t else 1.0
        return below - probability

    return float(optimize.brentq(excess, t - reach, t + reach))


def hodges_lehmann(differences: ArrayLike, *, confidence: float = 0.95) -> EffectSize:
    """Median of the pairwise means of the differences, with the interval of the signed rank test.

    The interval is the set of shifts the test does not reject, by its exact distribution up to 50
    differences and by the normal approximation beyond. Very few differences allow no interval of
    the wanted confidence; then the widest one is returned, with the confidence that it has.

    Parameters
    ----------
    differences : array-like
        Paired differences, such as the errors of a minus the errors of b.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    EffectSize
        The median of the pairwise means, with its interval.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import hodges_lehmann
    >>> round(hodges_lehmann([-0.05, -0.05, 0.02, -0.08, -0.05]).estimate, 3)
    -0.05
    """
    d = check_differences(differences)
    n = d.size
    rows, columns = np.triu_indices(n)
    means = np.sort((d[rows] + d[columns]) / 2)
    count = _signed_rank_count(n, (1 - confidence) / 2)
    if count == 0:
        count, confidence = 1, 1 - 2.0 ** (1 - n)
    return EffectSize(float(np.median(means)), float(means[count - 1]), float(means[-count]), confidence)


def _signed_rank_count(n: int, tail: float) -> int:
    """How many values c = 0, 1, … have P(T <= c) at most ``tail``."""
    if n > LARGEST_EXACT:
        center, scale = n * (n + 1) / 4, np.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return int(np.floor(center + stats.norm.ppf(tail) * scale))
    below = np.cumsum(_rank_sum_distribution(np.arange(1, n + 1)))
    return int(np.searchsorted(below, tail, side="right"))


def _rank_sum_distribution(ranks: NDArray[np.intp]) -> NDArray[np.float64]:
    """The probability of each sum of the ranks with a positive sign, all signs being equally likely."""
    probability = np.ones(1)
    for rank in ranks:
        longer = np.zeros(probability.size + rank)
        longer[: probability.size] += probability
        longer[rank:] += probability
        probability = longer / 2
    return probability


@dataclass(frozen=True)
class SignedRank:
    """Result of the Wilcoxon signed rank test; ``rank_biserial`` is in [-1, 1].

    Parameters
    ----------
    rank_sum_positive : float
        Sum of the ranks of the positive differences.
    rank_sum_negative : float
        Sum of the ranks of the negative differences.
    p_value : float
        The p-value.
    rank_biserial : float
        Rank-biserial correlation, between -1 and 1.
    difference : EffectSize
        Difference a minus b, with its interval.
    """

    rank_sum_positive: float
    rank_sum_negative: float
    p_value: float
    rank_biserial: float
    difference: EffectSize


def signed_rank(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95) -> SignedRank:
    """Wilcoxon signed rank test for independent data sets or draws, two-sided.

    Differences of zero share their ranks between both signs, as in Demšar (2006). Not for resplits
    of one data set, whose differences are dependent: see ``corrected_resampled_t``.

    Parameters
    ----------
    a : array-like
        The metric of method a on each data set.
    b : array-like
        The metric of method b on the same data sets.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    SignedRank
        Rank sums, p-value and difference.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import signed_rank
    >>> a, b = [0.20, 0.25, 0.30, 0.22, 0.28], [0.25, 0.30, 0.28, 0.30, 0.33]
    >>> signed_rank(a, b).p_value
    0.125
    """
    d = paired_differences(a, b)
    ranks = stats.rankdata(np.abs(d))
    positive = float(ranks[d > 0].sum() + ranks[d == 0].sum() / 2)
    negative = float(ranks.sum() - positive)
    if np.all(d == 0):
        p_value = 1.0
    elif d.size <= LARGEST_EXACT:
        p_value = _exact_p_value(ranks, d)
    else:
        p_value = float(stats.wilcoxon(d, zero_method="zsplit", method="approx").pvalue)
    biserial = (positive - negative) / (positive + negative)
    return SignedRank(positive, negative, p_value, biserial, hodges_lehmann(d, confidence=confidence))


def _exact_p_value(ranks: NDArray[np.float64], d: NDArray[np.float64]) -> float:
    """Exact two-sided p-value over all signs of the differences that are not zero; ranks may be tied."""
    doubled = np.round(2 * ranks[d != 0]).astype(np.intp)  # tied ranks are multiples of one half
    probability = _rank_sum_distribution(doubled)
    observed = int(np.round(2 * ranks[d > 0].sum()))
    return float(min(1.0, 2 * min(probability[: observed + 1].sum(), probability[observed:].sum())))


def error_difference(only_a: int, only_b: int, n: int, *, confidence: float = 0.95) -> EffectSize:
    r"""Difference of two error rates on the same n samples (a minus b).

    From the numbers of samples only a or only b gets wrong; the interval adds one sample to each
    and two to n (Bonett & Price 2012), which keeps its coverage on small test folds.

    Parameters
    ----------
    only_a : int
        Number of samples that only a gets wrong.
    only_b : int
        Number of samples that only b gets wrong.
    n : int
        Number of samples.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    EffectSize
        The difference with its interval.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import error_difference
    >>> error_difference(3, 10, 100).estimate
    -0.07
    """
    if min(only_a, only_b) < 0 or only_a + only_b > n or n < 1:
        raise ValueError(
            "The counts of one-sided errors must not be negative, and their sum must not exceed the number of "
            f"samples, n={n}. Got {only_a} and {only_b}."
        )
    share_a, share_b = (only_a + 1) / (n + 2), (only_b + 1) / (n + 2)
    center = share_a - share_b
    scale = np.sqrt((share_a + share_b - center**2) / (n + 2))
    half = float(stats.norm.ppf((1 + confidence) / 2) * scale)
    return EffectSize((only_a - only_b) / n, max(-1.0, center - half), min(1.0, center + half), confidence)


def check_differences(values: ArrayLike) -> NDArray[np.float64]:
    """Paired differences as a vector, or an error."""
    d = np.asarray(values, dtype=np.float64)
    if d.ndim != 1 or d.size < 2 or not np.all(np.isfinite(d)):
        raise ValueError(
            f"'differences' must be a list of at least two finite numbers. Got {d.size} with "
            f"{int(np.sum(~np.isfinite(d)))} not finite."
        )
    return d


def paired_differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """The values of a minus those of b, or an error."""
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.shape != right.shape:
        raise ValueError(
            f"The two methods must have the same number of values. Got {left.shape} and {right.shape}."
        )
    return check_differences(left - right)
