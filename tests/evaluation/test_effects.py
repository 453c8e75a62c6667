"""Sizes of effects and their intervals, and the signed-rank test they invert."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from evaluation.published import AUC
from zeronorm.evaluation.significance import (
    corrected_resampled_t,
    error_difference,
    hodges_lehmann,
    mcnemar,
    mean_difference,
    signed_rank,
    standardized_difference,
)

EFFECTS = {
    "mean": lambda a, b, level: mean_difference(a - b, test_train_ratio=0.1, confidence=level),
    "standardised": lambda a, b, level: standardized_difference(a - b, confidence=level),
    "pairs": lambda a, b, level: hodges_lehmann(a - b, confidence=level),
    "errors": lambda a, b, level: error_difference(12, 5, 60, confidence=level),
    "corrected": lambda a, b, level: (
        corrected_resampled_t(a, b, n_train=80, n_test=20, n_repeats=2, confidence=level).difference
    ),
    "ranks": lambda a, b, level: signed_rank(a, b, confidence=level).difference,
    "mcnemar": lambda a, b, level: mcnemar(np.ones(20), a > 0, b > 0, confidence=level).difference,
}


def test_wilcoxon_of_demsar():
    """C4.5 against C4.5+m: R+ = 93, R- = 12."""
    test = signed_rank(AUC[:, 1], AUC[:, 0])
    assert (test.rank_sum_positive, test.rank_sum_negative) == (93.0, 12.0)
    assert test.p_value < 0.05
    assert test.rank_biserial == pytest.approx((93 - 12) / 105)


def test_signed_rank_matches_scipy_and_handles_equality():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=20), rng.normal(size=20)
    test = signed_rank(a, b)
    assert test.p_value == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue)
    assert min(test.rank_sum_positive, test.rank_sum_negative) == stats.wilcoxon(a, b).statistic
    equal = signed_rank(a, a)
    assert (equal.p_value, equal.rank_biserial, equal.difference.estimate) == (1.0, 0.0, 0.0)


def test_hodges_lehmann_interval_is_the_inverted_test():
    d = np.random.default_rng(2).normal(0.4, 1.0, size=11)
    effect = hodges_lehmann(d)
    pairs = [(d[i] + d[j]) / 2 for i in range(11) for j in range(i, 11)]
    assert effect.estimate == pytest.approx(np.median(pairs))
    for bound, inside in ((effect.low, 1e-9), (effect.high, -1e-9)):
        assert stats.wilcoxon(d - (bound + inside), method="exact").pvalue > 0.05
        assert stats.wilcoxon(d - (bound - inside), method="exact").pvalue <= 0.05


def test_hodges_lehmann_with_very_few_or_many_values():
    few = hodges_lehmann([1.0, 2.0, 4.0])
    assert (few.low, few.high, few.confidence) == (1.0, 4.0, 0.75)
    many = hodges_lehmann(np.random.default_rng(0).normal(size=51))
    fewer = hodges_lehmann(np.random.default_rng(0).normal(size=50))
    assert many.high - many.low == pytest.approx(fewer.high - fewer.low, rel=0.1)


@pytest.mark.parametrize("effect", EFFECTS.values(), ids=EFFECTS)
def test_less_confidence_gives_a_narrower_interval(effect):
    a, b = np.random.default_rng(1).normal(size=(2, 20))
    narrow, wide = effect(a, b, 0.7), effect(a, b, 0.95)
    assert wide.low < narrow.low < narrow.estimate < narrow.high < wide.high
    assert narrow.estimate == wide.estimate
    assert (narrow.confidence, wide.confidence) == pytest.approx((0.7, 0.95), abs=0.02)


def test_signed_rank_with_ties_and_zeros_is_exact():
    """Five equal differences: all of one sign have the probability 2 / 32; otherwise against all signs."""
    assert signed_rank(np.ones(5), np.zeros(5)).p_value == pytest.approx(2 / 32)
    rng = np.random.default_rng(0)
    for _ in range(10):
        d = rng.integers(-3, 6, size=8).astype(float)
        if not np.any(d):
            continue
        ranks = stats.rankdata(np.abs(d))
        signs = np.array(list(product((0, 1), repeat=int(np.sum(d != 0)))))
        sums = signs @ ranks[d != 0]
        observed = ranks[d > 0].sum()
        expected = min(1.0, 2 * min(np.mean(sums <= observed + 1e-9), np.mean(sums >= observed - 1e-9)))
        assert signed_rank(d, np.zeros(8)).p_value == pytest.approx(expected)


def test_standardized_difference_is_always_found():
    """Also far from zero, where the distribution function of scipy gives NaN."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        d = rng.normal(rng.uniform(-30, 30), rng.uniform(0.05, 1.0), size=rng.integers(3, 12))
        effect = standardized_difference(d)
        assert effect.low < effect.estimate < effect.high


def test_uncorrected_mean_difference_is_the_t_interval():
    d = np.random.default_rng(3).normal(size=12)
    expected = stats.ttest_1samp(d, 0.0).confidence_interval(0.9)
    effect = mean_difference(d, confidence=0.9)
    assert (effect.low, effect.high) == pytest.approx((expected.low, expected.high))


def test_standardized_difference_interval_covers():
    d = np.random.default_rng(5).normal(0.8, 1.0, size=15)
    effect = standardized_difference(d)
    assert effect.estimate == pytest.approx(d.mean() / d.std(ddof=1))
    t = effect.estimate * np.sqrt(15)
    assert stats.nct.cdf(t, 14, effect.low * np.sqrt(15)) == pytest.approx(0.975)
    assert stats.nct.cdf(t, 14, effect.high * np.sqrt(15)) == pytest.approx(0.025)
    with pytest.raises(ValueError, match="differences that vary"):
        standardized_difference([1.0, 1.0])


def test_error_difference_interval_covers():
    rng = np.random.default_rng(6)
    n, share_a, share_b = 40, 0.15, 0.05
    covered = 0
    for _ in range(1000):
        only_a, only_b, _ = rng.multinomial(n, [share_a, share_b, 1 - share_a - share_b])
        effect = error_difference(int(only_a), int(only_b), n)
        covered += effect.low <= share_a - share_b <= effect.high
    assert covered / 1000 >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_error_difference_is_that_of_means_with_one_more_error_of_each_kind():
    """Bonett & Price (2012): the usual interval of a mean after two samples are added, one against each method."""
    signs = np.repeat([1.0, -1.0, 0.0], [3 + 1, 10 + 1, 87])
    half = stats.norm.ppf(0.975) * signs.std() / np.sqrt(102)
    effect = error_difference(3, 10, 100)
    assert (effect.low, effect.high) == pytest.approx((signs.mean() - half, signs.mean() + half))
    assert effect.estimate == pytest.approx(-0.07)
