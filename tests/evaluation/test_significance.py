"""Tests of significance against published values, scipy and statsmodels."""

from __future__ import annotations

import inspect
from itertools import product
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests

from zeronorm import FisherScore, evaluate
from zeronorm.evaluation import significance, stability
from zeronorm.evaluation.significance import (
    adjust_p_values,
    compare_methods,
    corrected_resampled_t,
    critical_difference,
    error_difference,
    friedman,
    hodges_lehmann,
    mcnemar,
    mean_difference,
    score_matrix,
    score_matrix_of_records,
    signed_rank,
    standardized_difference,
)

# Demšar (2006), Table 6: AUC of C4.5 and three variants on 14 data sets.
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.97501, 0.975],  # printed as equal but ranked 2 and 3
        [0.957, 0.978, 0.946, 0.970],
    ]
)
VARIANTS = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")


def test_friedman_of_demsar():
    test = friedman(AUC, greater_is_better=True)
    np.testing.assert_allclose(test.mean_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert test.statistic == pytest.approx(9.28, abs=5e-3)
    assert test.f_statistic == pytest.approx(3.69, abs=5e-3)
    assert test.f_p_value < 0.05


def test_friedman_matches_scipy_without_ties():
    table = np.random.default_rng(0).random((9, 5))
    test = friedman(table, greater_is_better=False)
    expected = stats.friedmanchisquare(*table.T)
    assert test.statistic == pytest.approx(expected.statistic)
    assert test.p_value == pytest.approx(expected.pvalue)
    assert test.concordance == pytest.approx(expected.statistic / (9 * 4))
    turned = friedman(-table, greater_is_better=True)
    np.testing.assert_array_equal(turned.mean_ranks, test.mean_ranks)


def test_friedman_at_full_agreement_is_finite_or_infinite_but_never_nan():
    test = friedman(np.tile([1.0, 2.0, 3.0], (4, 1)), greater_is_better=False)
    assert test.mean_ranks.tolist() == [1, 2, 3]
    assert test.f_p_value == 0.0
    assert test.concordance == pytest.approx(1.0)
    level = friedman(np.ones((4, 3)), greater_is_better=False)
    assert (level.statistic, level.p_value) == (0.0, 1.0)


def test_nemenyi_of_demsar():
    """Critical values 2.569 and 2.291 for four classifiers; differences 1.25 and 1.12 at N = 14."""
    at_5 = critical_difference(AUC, VARIANTS, greater_is_better=True)
    at_10 = critical_difference(AUC, VARIANTS, greater_is_better=True, level=0.10)
    unit = np.sqrt(4 * 5 / (6 * 14))
    assert at_5.difference / unit == pytest.approx(2.569, abs=5e-4)
    assert at_10.difference / unit == pytest.approx(2.291, abs=5e-4)
    assert at_5.difference == pytest.approx(1.25, abs=5e-3)
    assert at_5.methods == ("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5")
    # No two differ by 1.25; at 10 % C4.5 differs by more than 1.12 from the two variants with +m.
    assert at_5.groups == (at_5.methods,)
    assert at_10.groups == (at_5.methods[:3], at_5.methods[2:])
    gaps = np.abs(at_10.mean_ranks[:, None] - at_10.mean_ranks)
    np.testing.assert_array_equal(at_10.p_values < 0.10, gaps > at_10.difference)


def test_critical_difference_groups_by_hand():
    rng = np.random.default_rng(0)
    base = np.array([0.0, 0.1, 5.0, 5.1, 10.0])
    table = base + 0.5 * rng.normal(size=(30, 5))
    result = critical_difference(table, list("abcde"), greater_is_better=False)
    assert [set(group) for group in result.groups] == [{"a", "b"}, {"c", "d"}]


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


def test_all_tests_have_one_level_and_all_intervals_one_confidence():
    defaults = {
        (function, parameter.name): parameter.default
        for module in (significance, stability)
        for function, found in vars(module).items()
        if inspect.isfunction(found)
        for parameter in inspect.signature(found).parameters.values()
        if parameter.name in ("level", "confidence") and parameter.default is not parameter.empty
    }
    assert len(defaults) >= 10
    for (function, name), default in defaults.items():
        assert default == {"level": 0.05, "confidence": 0.95}[name], function


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


@pytest.mark.parametrize("effect", EFFECTS.values(), ids=EFFECTS)
def test_less_confidence_gives_a_narrower_interval(effect):
    a, b = np.random.default_rng(1).normal(size=(2, 20))
    narrow, wide = effect(a, b, 0.7), effect(a, b, 0.95)
    assert wide.low < narrow.low < narrow.estimate < narrow.high < wide.high
    assert narrow.estimate == wide.estimate
    assert (narrow.confidence, wide.confidence) == pytest.approx((0.7, 0.95), abs=0.02)


def test_corrected_t_by_hand():
    """Differences 1, 2, 3, 4: mean 2.5, variance 5/3; with n_test / n_train = 1/4 the factor is 1/2, and c more."""
    for options, factor in (({"common": 0.0}, 0.5), ({}, 0.85), ({"common": 1.5}, 2.0)):
        test = corrected_resampled_t([2, 4, 6, 8], [1, 2, 3, 4], n_train=80, n_test=20, **options)
        error = np.sqrt(factor * 5 / 3)
        assert test.df == 3
        assert test.statistic == pytest.approx(2.5 / error)
        assert test.p_value == pytest.approx(2 * stats.t.sf(2.5 / error, 3))
        half = stats.t.ppf(0.975, 3) * error
        assert (test.difference.low, test.difference.high) == pytest.approx((2.5 - half, 2.5 + half))


@pytest.mark.parametrize("common", [-0.1, np.inf, np.nan])
def test_the_common_variance_is_a_number_of_at_least_0(common):
    with pytest.raises(ValueError, match="'common' must be a number of at least 0"):
        corrected_resampled_t([2, 4, 6, 8], [1, 2, 3, 4], n_train=80, n_test=20, common=common)


def test_repeats_add_no_samples_to_the_corrected_t():
    """The same five parts, twice: the same test as once."""
    a, b = np.random.default_rng(0).normal(size=(2, 5))
    once = corrected_resampled_t(a, b, n_train=80, n_test=20)
    twice = corrected_resampled_t(np.tile(a, 2), np.tile(b, 2), n_train=80, n_test=20, n_repeats=2)
    assert twice.df == once.df == 4
    ratio = np.var(np.tile(a - b, 2), ddof=1) / np.var(a - b, ddof=1)
    assert twice.statistic == pytest.approx(once.statistic / np.sqrt(ratio))


def test_corrected_t_without_spread():
    """Equal methods do not differ; the same difference in all parts has no spread to be judged by."""
    equal = corrected_resampled_t([1, 1, 1, 1], [1, 1, 1, 1], n_train=8, n_test=4)
    assert (equal.statistic, equal.df, equal.p_value) == (0.0, 3, 1.0)
    assert (equal.difference.estimate, equal.difference.low, equal.difference.high) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"needs differences that vary. Got 0.1 on all 3 test parts"):
        corrected_resampled_t([0.3, 0.3, 0.3], [0.2, 0.2, 0.2], n_train=8, n_test=4)


@pytest.mark.parametrize(("n_parts", "n_test"), [(2, 20), (10, 2)])
def test_corrected_t_is_refused_where_it_rejects_too_often(n_parts, n_test):
    values = np.random.default_rng(0).normal(size=(2, n_parts))
    with pytest.raises(ValueError, match=f"at least 3 test parts.*Got {n_parts} parts of {n_test} samples"):
        corrected_resampled_t(*values, n_train=40, n_test=n_test)


def test_differences_that_balance_have_a_p_value_of_one():
    for a in ([1.0, -1.0], [1.0, -2.0, 3.0, -2.0]):
        assert signed_rank(a, np.zeros(len(a))).p_value == 1.0


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


def test_corrected_t_holds_its_level_where_the_plain_test_does_not():
    """Ten resplits of pure noise; nearest neighbour on one feature or the other."""
    rng = np.random.default_rng(4)
    corrected, plain = [], []
    for _ in range(200):
        n = 60
        label, feature = rng.integers(0, 2, n), rng.normal(size=(n, 2))
        scores = np.empty((10, 2))
        for j in range(10):
            rows = rng.permutation(n)
            train, test = rows[:40], rows[40:]
            for column, x in enumerate(feature.T):
                nearest = np.abs(x[test][:, None] - x[train]).argmin(axis=1)
                scores[j, column] = np.mean(label[train][nearest] == label[test])
        corrected.append(corrected_resampled_t(*scores.T, n_train=40, n_test=20).p_value)
        plain.append(stats.ttest_rel(*scores.T).pvalue)
    rejected, plainly = np.mean(np.asarray(corrected) < 0.05), np.mean(np.asarray(plain) < 0.05)
    assert rejected <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert plainly > rejected


def test_standardized_difference_interval_covers():
    d = np.random.default_rng(5).normal(0.8, 1.0, size=15)
    effect = standardized_difference(d)
    assert effect.estimate == pytest.approx(d.mean() / d.std(ddof=1))
    t = effect.estimate * np.sqrt(15)
    assert stats.nct.cdf(t, 14, effect.low * np.sqrt(15)) == pytest.approx(0.975)
    assert stats.nct.cdf(t, 14, effect.high * np.sqrt(15)) == pytest.approx(0.025)
    with pytest.raises(ValueError, match="differences that vary"):
        standardized_difference([1.0, 1.0])


def _predictions(only_a, only_b, both, neither):
    truth = np.zeros(only_a + only_b + both + neither, dtype=int)
    a, b = truth.copy(), truth.copy()
    a[:only_a] = 1
    b[only_a : only_a + only_b] = 1
    a[only_a + only_b : only_a + only_b + both] = 1
    b[only_a + only_b : only_a + only_b + both] = 1
    return truth, a, b


def test_mcnemar_matches_statsmodels():
    truth, a, b = _predictions(only_a=4, only_b=13, both=6, neither=40)
    test = mcnemar(truth, a, b)
    reference = statsmodels_mcnemar([[40, 13], [4, 6]], exact=False, correction=False)
    assert test.z**2 == pytest.approx(reference.statistic)
    assert 2 * test.p_value == pytest.approx(reference.pvalue)  # one side against two
    assert test.decision() == 1
    assert mcnemar(truth, b, a).decision() == -1
    assert mcnemar(truth, b, a).p_value == pytest.approx(1 - test.p_value)
    assert test.difference.estimate == pytest.approx((10 - 19) / 63)
    assert test.difference.low < test.difference.estimate < test.difference.high < 0


def test_mcnemar_without_differences():
    test = mcnemar([0, 1, 1], [0, 0, 1], [0, 0, 1])
    assert (test.z, test.p_value, test.decision()) == (0.0, 0.5, 0)


def test_score_matrix_of_paper_004():
    """Three folds: better on two, indistinguishable on one."""
    folds = [_predictions(1, 12, 3, 92), _predictions(2, 14, 3, 89), _predictions(5, 6, 3, 94)]
    truth = [fold[0] for fold in folds]
    matrix = score_matrix(truth, {"a": [f[1] for f in folds], "b": [f[2] for f in folds]})
    assert matrix.scores.tolist() == [[0, 2], [-2, 0]]
    assert matrix.error_rates == pytest.approx([17 / 324, 41 / 324])
    assert np.diag(matrix.with_errors()) == pytest.approx(matrix.error_rates)
    assert matrix.n_folds == 3


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_values_match_statsmodels(p_values):
    for ours, theirs in (("holm", "holm"), ("benjamini-hochberg", "fdr_bh"), ("bonferroni", "bonferroni")):
        with patch("gc.collect"):  # statsmodels clears up in each call, which takes long among many modules
            expected = multipletests(p_values, method=theirs)[1]
        np.testing.assert_allclose(adjust_p_values(p_values, ours), expected, atol=1e-12)


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


def _records():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 8))
    X[:, 7] += 1.5 * y
    selectors = {"fisher": FisherScore(), "reversed": _Reversed(), "again": FisherScore()}
    return evaluate(selectors, X, y, cv=5, sizes=[1, 2])


def _paired_p_value(records, a, b):
    """By hand: one difference of the errors per sample, one of either sign added, the variance 1 + 9p(1 - p) times."""
    differences, errors = np.zeros(60), 0
    for row in records.filter(records["size"] == 1).iter_rows(named=True):
        wrong = np.asarray(row["truth"]) != np.asarray(row["predictions"])
        sign = {a: 1, b: -1}.get(row["method"], 0)
        differences[row["test_rows"]] += sign * wrong
        errors += abs(sign) * wrong.sum()
    p = errors / 120
    d = np.concatenate([differences, [1.0, -1.0]])
    return 2 * stats.norm.sf(abs(d.mean()) / np.sqrt((1 + 9 * p * (1 - p)) * d.var() / d.size))


class _Reversed(FisherScore):
    """The worst features first."""

    def _select(self, problem):
        from zeronorm import SelectionPath

        return SelectionPath(order=super()._select(problem).order[::-1].copy())


def test_comparison_of_records():
    records = _records()
    table = compare_methods(records, "error_rate", size=1)
    assert table["method"].to_list() == ["fisher", "fisher", "reversed"]
    assert table["reference"].to_list() == ["reversed", "again", "again"]
    errors = {name: part["error_rate"].to_numpy() for (name,), part in
              records.filter(records["size"] == 1).group_by("method")}  # fmt: skip
    expected = corrected_resampled_t(errors["fisher"], errors["reversed"], n_train=48, n_test=12)
    by_parts = compare_methods(records, "error_rate", size=1, reference="reversed", test="corrected_t")
    assert by_parts["method"].to_list() == ["fisher", "again"]
    assert by_parts["difference"][0] == pytest.approx(expected.difference.estimate)
    assert by_parts["p_value"][0] == pytest.approx(expected.p_value)
    assert table["p_value"][0] == pytest.approx(_paired_p_value(records, "fisher", "reversed"))
    assert table["low"][0] < table["difference"][0] == by_parts["difference"][0] < table["high"][0]
    assert table["p_value"][1] == 1.0
    np.testing.assert_allclose(table["adjusted_p_value"], multipletests(table["p_value"], method="holm")[1])
    pandas_table = compare_methods(records.to_pandas(), "error_rate", size=1)
    assert pandas_table["p_value"].to_list() == table["p_value"].to_list()
    matrix = score_matrix_of_records(records, size=1)
    assert matrix.scores[0, 1] == -matrix.scores[1, 0] >= 1
    assert matrix.scores[0, 2] == 0


def _records_with_errors(*counts):
    """One test part of 60 samples, and a method for each number of errors."""
    return pl.DataFrame(
        [
            {
                "split": 0, "method": str(n_wrong), "size": None, "truth": [0] * 60, "error_rate": n_wrong / 60,
                "predictions": [1] * n_wrong + [0] * (60 - n_wrong), "test_rows": list(range(60)),
                "n_train": 60, "n_test": 60,
            }
            for n_wrong in counts
        ]
    )  # fmt: skip


def test_a_score_needs_a_difference_at_the_level():
    """Two errors against none, one-sided: p = 0.079."""
    records = _records_with_errors(0, 2)
    assert score_matrix_of_records(records).scores.tolist() == [[0, 0], [0, 0]]
    assert score_matrix_of_records(records, level=0.1).scores.tolist() == [[0, 1], [-1, 0]]
    test = mcnemar(*_predictions(only_a=0, only_b=2, both=0, neither=8))
    assert (test.decision(), test.decision(0.05), test.decision(0.1)) == (0, 0, 1)


def test_comparisons_are_corrected_by_holm_and_not_more():
    """Methods with 0, 4 and 14 errors of 60: three different p-values."""
    table = compare_methods(_records_with_errors(0, 4, 14), "error_rate")
    holm, bonferroni = (multipletests(table["p_value"], method=m)[1] for m in ("holm", "bonferroni"))
    np.testing.assert_allclose(table["adjusted_p_value"], holm)
    assert np.max(np.abs(holm - bonferroni)) > 0.01


BAD_CALLS = {
    "size": (lambda r: compare_methods(r, "error_rate", size=5), "no size 5"),
    "metric": (lambda r: compare_methods(r, "auc", size=1), "no column .'auc'."),
    "test": (lambda r: compare_methods(r, "error_rate", size=1, test="t"), "'test' parameter"),
    "resplits": (lambda r: compare_methods(r, "error_rate", size=1, test="wilcoxon"), "not independent"),
    "no samples": (
        lambda r: compare_methods(r.drop("predictions"), "error_rate", size=1, test="paired"), "single samples",
    ),
    "reference": (lambda r: compare_methods(r, "error_rate", size=1, reference="x"), "'reference'"),
    "one method": (
        lambda r: compare_methods(r.filter(r["method"] == "fisher"), "error_rate", size=1),
        "at least two methods",
    ),
    "other splits": (
        lambda r: compare_methods(r.filter((r["method"] != "fisher") | (r["split"] > 0)), "error_rate", size=1),
        "on other splits",
    ),
    "p-values": (lambda r: adjust_p_values([0.5, 1.2]), "between 0 and 1"),
    "method": (lambda r: adjust_p_values([0.5], "sidak"), "'method' parameter"),
    "lengths": (lambda r: signed_rank([1, 2], [1]), "same number"),
    "nan": (lambda r: mean_difference([1.0, np.nan]), "1 not finite"),
    "one value": (lambda r: hodges_lehmann([1.0]), "at least two"),
    "counts": (lambda r: error_difference(3, 4, 5), "Got 3 and 4"),
    "table": (lambda r: friedman([[1.0, 2.0]], greater_is_better=True), "at least two data sets"),
    "nan table": (lambda r: friedman([[1, 2], [np.nan, 1]], greater_is_better=True), "data set 1, method 0"),
    "names": (lambda r: critical_difference(AUC, ["a"], greater_is_better=True), "4 different names"),
    "ratio": (lambda r: corrected_resampled_t([1, 2], [1, 3], n_train=0, n_test=1), "at least 1"),
    "shapes": (lambda r: mcnemar([1, 2], [1], [1, 2]), "same length"),
}  # fmt: skip


@pytest.fixture(scope="module")
def records():
    return _records()


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_input(case, records):
    call, message = BAD_CALLS[case]
    with pytest.raises(ValueError, match=message):
        call(records)


def test_failed_cells_are_named(records):
    broken = records.with_columns(error_rate=records["error_rate"].set(records["split"] == 2, None))
    with pytest.raises(ValueError, match=r"'fisher' has no error_rate on split 2 with size 1"):
        compare_methods(broken, "error_rate", size=1)
