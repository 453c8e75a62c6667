"""Comparisons of methods: the corrected t test, corrections for many, and bad input."""

from __future__ import annotations

import inspect
from itertools import permutations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evaluation.made_rows import records_of_three, records_with_errors
from evaluation.published import AUC
from zeronorm.evaluation import _stability as stability
from zeronorm.evaluation import significance
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
    score_matrix_of_records,
    signed_rank,
)


@pytest.fixture(scope="module")
def records():
    return records_of_three()


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
    """The same five folds twice give the same test as once."""
    a, b = np.random.default_rng(0).normal(size=(2, 5))
    once = corrected_resampled_t(a, b, n_train=80, n_test=20)
    twice = corrected_resampled_t(np.tile(a, 2), np.tile(b, 2), n_train=80, n_test=20, n_repeats=2)
    assert twice.df == once.df == 4
    ratio = np.var(np.tile(a - b, 2), ddof=1) / np.var(a - b, ddof=1)
    assert twice.statistic == pytest.approx(once.statistic / np.sqrt(ratio))


def test_corrected_t_without_scale():
    """Equal methods do not differ; the same difference in all folds has no variance to test it with."""
    equal = corrected_resampled_t([1, 1, 1, 1], [1, 1, 1, 1], n_train=8, n_test=4)
    assert (equal.statistic, equal.df, equal.p_value) == (0.0, 3, 1.0)
    assert (equal.difference.estimate, equal.difference.low, equal.difference.high) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"needs differences that vary. Got 0.1 on all 3 test folds"):
        corrected_resampled_t([0.3, 0.3, 0.3], [0.2, 0.2, 0.2], n_train=8, n_test=4)


@pytest.mark.parametrize(("n_folds", "n_test"), [(2, 20), (10, 2)])
def test_corrected_t_is_refused_where_it_rejects_too_often(n_folds, n_test):
    values = np.random.default_rng(0).normal(size=(2, n_folds))
    with pytest.raises(ValueError, match=f"at least 3 test folds.*Got {n_folds} folds of {n_test} samples"):
        corrected_resampled_t(*values, n_train=40, n_test=n_test)


def test_differences_that_balance_have_a_p_value_of_one():
    for a in ([1.0, -1.0], [1.0, -2.0, 3.0, -2.0]):
        assert signed_rank(a, np.zeros(len(a))).p_value == 1.0


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


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_values_match_statsmodels(p_values):
    for ours, theirs in (("holm", "holm"), ("benjamini-hochberg", "fdr_bh"), ("bonferroni", "bonferroni")):
        with patch("gc.collect"):  # statsmodels clears up in each call, which takes long among many modules
            expected = multipletests(p_values, method=theirs)[1]
        np.testing.assert_allclose(adjust_p_values(p_values, ours), expected, atol=1e-12)


def _paired_p_value(records, a, b):
    """By hand: one difference of the errors per sample, the variance of flipped signs times 1 + 1.85 u 4p(1 - p)."""
    differences, errors, selected = np.zeros(60), 0, {a: [], b: []}
    for row in records.filter(records["size"] == 1).iter_rows(named=True):
        wrong = np.asarray(row["truth"]) != np.asarray(row["predictions"])
        sign = {a: 1, b: -1}.get(row["method"], 0)
        differences[row["test_rows"]] += sign * wrong
        errors += abs(sign) * wrong.sum()
        selected.get(row["method"], []).append(set(row["selected"]))
    p = errors / 120
    unlike = np.mean([len(x - y) / len(x) for sets in selected.values() for x, y in permutations(sets, 2)])
    variance = (1 + 1.85 * unlike * 4 * p * (1 - p)) * (np.sum(differences**2) + 0.5) / 60**2
    return 2 * stats.norm.sf(abs(differences.mean()) / np.sqrt(variance))


def test_comparison_of_records():
    records = records_of_three()
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


def test_comparisons_are_corrected_by_holm_and_not_more():
    """Methods with 0, 4 and 14 errors of 60: three different p-values."""
    table = compare_methods(records_with_errors(0, 4, 14), "error_rate")
    holm, bonferroni = (multipletests(table["p_value"], method=m)[1] for m in ("holm", "bonferroni"))
    np.testing.assert_allclose(table["adjusted_p_value"], holm)
    assert np.max(np.abs(holm - bonferroni)) > 0.01


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_input(case, records):
    call, message = BAD_CALLS[case]
    with pytest.raises(ValueError, match=message):
        call(records)


def test_failed_cells_are_named(records):
    broken = records.with_columns(error_rate=records["error_rate"].set(records["split"] == 2, None))
    with pytest.raises(ValueError, match=r"'fisher' has no error_rate on split 2 with size 1"):
        compare_methods(broken, "error_rate", size=1)
