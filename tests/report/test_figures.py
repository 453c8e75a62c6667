"""The numbers in the figures, against independent computations."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.cluster.hierarchy import fcluster, linkage
from statsmodels.stats.multitest import multipletests

from report.made_records import made_records
from zeronorm.evaluation import METRICS
from zeronorm.evaluation._summary import (
    choose_method,
    compare,
    error_curves,
    format_metric,
    primary_metric,
    selection_frequencies,
    stabilities,
)
from zeronorm.evaluation.significance import corrected_resampled_t, metric_interval
from zeronorm.report.charts._importance import weights_over_time
from zeronorm.report.charts._path import path_figure
from zeronorm.report.charts._redundancy import redundancy_map
from zeronorm.report.charts._values import N_LEVELS, value_map
from zeronorm.selection._path import SelectionPath


@pytest.fixture
def records():
    """Two methods, two splits, sizes 1, 2 and the methods' own."""
    rows = []
    errors = {("a", 1): (0.5, 0.3), ("a", 2): (0.2, 0.4), ("a", None): (0.1, 0.3)}
    errors |= {("b", 1): (0.5, 0.5), ("b", 2): (0.4, 0.4), ("b", None): (0.4, 0.5)}
    chosen = {1: ([0], [3]), 2: ([0, 1], [0, 3]), None: ([0, 1], [0, 2])}
    for (method, size), values in errors.items():
        for split, value in enumerate(values):
            rows.append(
                {
                    "split": split,
                    "method": method,
                    "size": size,
                    "n_selected": len(chosen[size][split]),
                    "balanced_error_rate": value,
                    "selected": chosen[size][split],
                    "predictions": [1, 1, 0] if method == "a" else [0, 1, 1],
                    "truth": [1, 1, 0],
                    "test_rows": [0, 1, 2],
                    "n_train": 6,
                    "n_test": 3,
                    "fit_seconds": 0.5,
                    "converged": True,
                    "error": None,
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def test_curves_have_the_interval_of_the_metric(records):
    curve = next(c for c in error_curves(records, "balanced_error_rate") if c.method == "a")
    assert [p.size for p in curve.points] == [1, 2]
    point = curve.points[1]
    rows = records.filter((pl.col("method") == "a") & (pl.col("size") == 2)).to_dicts()
    assert point.mean == pytest.approx(0.3)
    assert (point.low, point.high) == metric_interval(METRICS["balanced_error_rate"], rows)
    assert curve.own.mean == pytest.approx(0.2)


def test_curves_without_predictions_have_the_corrected_interval_of_the_folds(records):
    """Not the plain standard error: training samples overlap, and three folds repeated twice count as three folds."""
    found = pl.concat([records, records.with_columns(split=pl.col("split") + 2)]).drop("predictions")
    point = next(c for c in error_curves(found, "balanced_error_rate") if c.method == "a").points[1]
    values = np.asarray([0.2, 0.4, 0.2, 0.4])
    half = stats.t.ppf(0.975, 2) * np.sqrt((1 / 3 + 3 / 6 + 0.35) * values.var(ddof=1))
    assert point.low == pytest.approx(max(0.0, 0.3 - half))
    assert point.high == pytest.approx(min(1.0, 0.3 + half))


def test_a_failed_fold_is_left_out_of_the_mean(records):
    failed = records.with_columns(
        pl.when((pl.col("split") == 0) & (pl.col("size") == 1))
        .then(None)
        .otherwise(pl.col("balanced_error_rate"))
        .alias("balanced_error_rate")
    )
    curve = next(c for c in error_curves(failed, "balanced_error_rate") if c.method == "a")
    assert (curve.points[0].mean, curve.points[0].n_splits) == (0.3, 1)


def test_frequencies_and_chance(records):
    found = selection_frequencies(records, "a", n_features=10)
    assert found.shares == ((0, 1.0), (1, 0.5), (2, 0.5))
    assert found.expected == pytest.approx(0.2)
    assert selection_frequencies(records, "a", 10, size=1).shares == ((0, 0.5), (3, 0.5))


def test_stabilities_are_those_of_the_evaluation_package(records):
    points = {(p.method, p.size): p for p in stabilities(records, 10)}
    assert points["a", 2].jaccard == pytest.approx(1 / 3)
    assert points["a", 1].jaccard == 0.0


def test_single_splits_have_no_stability(records):
    assert stabilities(records.filter(pl.col("split") == 0), 10) == ()


def test_comparison_orders_by_error_and_has_the_score_matrix(records):
    found = compare(records, "balanced_error_rate")
    assert [row.method for row in found.rows] == ["a", "b"]
    assert found.scores.error_rates == pytest.approx((0.0, 2 / 3))
    assert found.differences[0].difference == pytest.approx(-0.25)


def test_the_test_of_a_comparison_is_named(records):
    """The paired test of single samples; for R² the test of the folds, where they are large enough."""
    assert "the paired test of single samples" in compare(records, "balanced_error_rate").tested_by
    values = {"a": [0.1, 0.3, 0.2, 0.1], "b": [0.3, 0.4, 0.2, 0.2]}
    large, small = (made_records("r2", values, n_test=n).drop("test_rows") for n in (10, 2))
    assert "the corrected resampled t-test" in compare(large, "r2").tested_by
    assert "no p-values" in compare(small, "r2").tested_by


def test_of_equal_means_the_smaller_set_comes_first_as_in_the_verdict():
    equal = made_records("balanced_error_rate", {"many": [0.1, 0.3], "few": [0.3, 0.1], "bad": [0.5, 0.4]})
    size = pl.when(pl.col("method") == "many").then(9).otherwise(pl.col("n_selected"))
    found = compare(equal.with_columns(n_selected=size), "balanced_error_rate")
    assert [row.method for row in found.rows] == ["few", "many", "bad"]
    assert found.choice.best == "few"


def test_methods_that_failed_somewhere_are_named_and_left_out(records):
    broken = records.with_columns(
        pl.when((pl.col("method") == "b") & (pl.col("split") == 0))
        .then(None)
        .otherwise(pl.col("balanced_error_rate"))
        .alias("balanced_error_rate")
    )
    assert compare(broken, "balanced_error_rate") is None
    third = records.filter(pl.col("method") == "a").with_columns(method=pl.lit("c"))
    found = compare(pl.concat([broken, third]), "balanced_error_rate")
    assert found.failed == ("b",)
    assert {row.method for row in found.rows} == {"a", "c"}


def test_records_without_a_known_metric(records):
    with pytest.raises(ValueError, match="no metric that is known by name"):
        primary_metric(records.drop("balanced_error_rate"))


def test_choice_prefers_few_features_among_equals_only():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.01, size=10)
    scores = {"many": 0.9 + noise, "few": 0.899 + noise[::-1], "bad": 0.5 + np.roll(noise, 3)}
    choice = choose_method(scores, {"many": 50, "few": 5, "bad": 1}, n_train=90, n_test=10)
    assert choice.best == "many"
    assert set(choice.equals) == {"many", "few"}
    assert choice.preferred == "few"


def test_choice_says_plainly_when_nothing_differs():
    scores = {"a": [0.8, 0.6, 0.7], "b": [0.6, 0.8, 0.7]}
    choice = choose_method(scores, {"a": 3, "b": 2}, n_train=20, n_test=10)
    assert choice.sentence.startswith("All methods have the same mean.")
    assert choice.preferred == "b"


def test_methods_with_the_same_best_mean_are_named_together():
    scores = {"a": [0.8, 0.6, 0.7], "b": [0.6, 0.8, 0.7], "c": [0.6, 0.6, 0.7]}
    choice = choose_method(scores, dict.fromkeys("abc", 2), n_train=20, n_test=10)
    assert choice.sentence.startswith(
        "a and b have the best mean, but are not significantly better than any other"
    )
    assert choice.sentence.endswith("All methods use the same number of features (2).")
    few_folds = choose_method(
        {name: values[:2] for name, values in scores.items()} | {"c": [0.1, 0.1]},
        dict.fromkeys("abc", 2), n_train=20, n_test=10, p_values={},
    )  # fmt: skip
    assert few_folds.sentence.startswith("a and b have the best mean; there are too few test folds")


@pytest.mark.parametrize(
    ("sizes", "preferred", "reason"),
    [
        ({"a": 3, "b": 3}, "a", "best mean; all methods within one standard error of it use the same number"),
        ({"a": 3, "b": 2}, "b", "fewest features within one standard error of the best"),
        (
            {"a": 3, "b": 2, "d": 2},
            "b",
            "fewest features within one standard error of the best, as many as d",
        ),
        ({"a": 3}, "a", "the only method within one standard error of the best"),
    ],
)
def test_the_reason_for_the_preferred_method_names_ties(sizes, preferred, reason):
    """Of methods that all use the same number of features, none is said to use the fewest."""
    known = {"a": [0.9, 0.7, 0.8], "b": [0.85, 0.7, 0.8], "d": [0.8, 0.75, 0.75]}
    scores = {name: known[name] for name in sizes} | {"bad": [0.1, 0.2, 0.1]}
    choice = choose_method(scores, sizes | {"bad": 1}, n_train=20, n_test=10)
    assert choice.preferred == preferred
    assert choice.preferred_because.startswith(reason)
    assert ("fewest" in choice.preferred_because) == (len(set(sizes.values())) > 1)


def test_the_sentence_claims_no_more_than_the_tests():
    """The sentence claims nothing about methods that were compared with the best only, and nothing without a test."""
    p_values = {frozenset(pair): p for pair, p in ((("a", "b"), 0.3), (("a", "c"), 0.01), (("b", "c"), 0.2))}
    scores = {"a": [0.9, 0.8, 0.9], "b": [0.8, 0.8, 0.9], "c": [0.5, 0.4, 0.5]}
    choice = choose_method(scores, {"a": 3, "b": 3, "c": 1}, n_train=20, n_test=10, p_values=p_values)
    assert choice.sentence.startswith(
        "a is significantly better than c; between it and b no significant difference was found."
    )
    only = choose_method({"a": [0.9, 0.8], "b": [0.1, 0.2]}, {"a": 3, "b": 2}, n_train=20, n_test=10)
    assert "too few test folds to test the differences" in only.sentence
    assert only.worse == ()


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        (
            {"a": 3, "b": 3, "c": 1},
            "All methods that are not significantly worse use the same number of features (3).",
        ),
        (
            {"a": 3, "b": 2.5, "c": 1},
            "Of the methods that are not significantly worse, b uses the fewest features (2.5).",
        ),
    ],
)
def test_the_sentence_on_sizes_names_ties_and_no_method_that_is_worse(sizes, sentence):
    p_values = {frozenset(pair): p for pair, p in ((("a", "b"), 0.3), (("a", "c"), 0.01), (("b", "c"), 0.2))}
    scores = {"a": [0.9, 0.8, 0.9], "b": [0.8, 0.8, 0.9], "c": [0.5, 0.4, 0.5]}
    choice = choose_method(scores, sizes, n_train=20, n_test=10, p_values=p_values)
    assert choice.sentence.endswith(sentence)
    without = choose_method(
        scores, {"a": 5, "b": 2, "c": 2}, n_train=20, n_test=10, p_values=dict.fromkeys(p_values, 1.0)
    )
    assert without.sentence.endswith("Of the methods, b and c use the fewest features (2).")


def test_the_choice_corrects_for_all_pairs_by_holm():
    """Six pairs of four methods: an uncorrected test of the best against one other would claim more."""
    rng = np.random.default_rng(3)
    scores = {name: 0.8 + rng.normal(0, 0.05, size=10) for name in "abcd"}
    scores["d"] -= 0.2
    raw = {
        frozenset(pair): corrected_resampled_t(
            scores[pair[0]], scores[pair[1]], n_train=90, n_test=10
        ).p_value
        for pair in combinations("abcd", 2)
    }
    adjusted = dict(zip(raw, multipletests(list(raw.values()), method="holm")[1], strict=True))
    choice = choose_method(scores, dict.fromkeys("abcd", 1), n_train=90, n_test=10)
    assert set(choice.worse) == {
        n for n in "abcd" if n != choice.best and adjusted[frozenset((n, choice.best))] < 0.05
    }
    assert set(choice.worse) == {"d"}


def test_methods_that_always_differ_by_the_same_amount_are_not_tested():
    scores = {"a": np.asarray([0.9, 0.7, 0.8]), "b": np.asarray([0.8, 0.6, 0.7])}
    choice = choose_method(scores, {"a": 3, "b": 2}, n_train=20, n_test=10)
    assert choice.worse == ()
    assert not choice.is_tested


def test_choice_does_not_take_a_clearly_worse_method_because_folds_are_few():
    scores = {"good": [0.95, 1.0, 0.9], "tiny": [0.5, 0.99, 0.6]}
    choice = choose_method(scores, {"good": 5, "tiny": 1}, n_train=20, n_test=10)
    assert set(choice.equals) == {"good", "tiny"}
    assert choice.preferred == "good"


def test_value_map_levels_are_standardised_values():
    rng = np.random.default_rng(1)
    X = rng.normal(5.0, 3.0, size=(40, 6))
    y = np.repeat(["a", "b"], 20)
    columns = np.asarray([4, 0, 2])
    found = value_map(X, y, columns)
    assert sorted(found["features"]) == [0, 2, 4]
    assert sorted(found["samples"]) == list(range(40))
    assert found["classes"] == ["a"] * 20 + ["b"] * 20
    z = stats.zscore(X, axis=0)
    for row, feature in zip(found["levels"], found["features"], strict=True):
        expected = np.clip(np.floor((z[found["samples"], feature] + 2.25) * 2), 0, N_LEVELS - 1)
        np.testing.assert_array_equal(row, expected)


def test_large_maps_are_thinned_evenly_over_the_classes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 70))
    found = value_map(X, np.repeat([0, 1], 1500), np.arange(70))
    assert len(found["samples"]) == 300
    assert len(found["features"]) == 60
    assert found["classes"].count("0") == 150


def test_redundant_features_stand_together():
    rng = np.random.default_rng(2)
    base = rng.normal(size=(200, 2))
    X = np.column_stack(
        [base[:, 0], base[:, 1], -base[:, 0] + 0.1 * rng.normal(size=200), rng.normal(size=200)]
    )
    found = redundancy_map(X, np.arange(4))
    order = found["features"]
    assert abs(order.index(0) - order.index(2)) == 1
    expected = np.corrcoef(X.T)[np.ix_(order, order)]
    np.testing.assert_allclose(found["correlation"], expected, atol=6e-4)
    clusters = fcluster(
        linkage(1 - np.abs(np.corrcoef(X.T))[np.triu_indices(4, 1)], "average"), 0.5, "distance"
    )
    assert clusters[0] == clusters[2]


def test_constant_columns_do_not_break_the_maps():
    X = np.column_stack([np.ones(10), np.arange(10.0), np.zeros(10)])
    assert np.all(np.isfinite(redundancy_map(X, np.arange(3))["correlation"]))
    assert value_map(X, np.arange(10) % 2, np.arange(3)) is not None
    assert redundancy_map(X, np.asarray([1])) is None
    assert value_map(X, np.arange(10) % 2, np.asarray([], dtype=int)) is None


def test_path_figure_of_a_path_that_drops_features():
    path = SelectionPath.from_subsets([[3], [1, 2], [1, 2, 3]], n_features=5)
    found = path_figure(path, 3)
    members = dict(zip(found["features"], found["members"], strict=True))
    assert found["sizes"] == [1, 2, 3]
    assert members[3] == [1, 0, 1]
    assert members[1] == [0, 1, 1]
    assert not found["is_nested"]


def test_path_figure_respects_groups_and_many_sizes():
    groups = np.repeat(np.arange(50), 4)
    path = SelectionPath.from_scores(np.arange(200.0)).constrained(groups, np.asarray([7]))
    found = path_figure(path, 200)
    assert found["sizes"][0] == 4
    assert len(found["sizes"]) <= 40
    assert all(row[-1] == 1 for row in found["members"])


def test_weights_over_time_come_from_the_history():
    class History:
        steps = np.asarray([1, 10])
        weights = np.asarray([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])

    class Selector:
        history_ = History()

    found = weights_over_time(Selector(), [1, 0])
    assert found == {"steps": [1, 10], "features": [1, 0], "values": [[0.3, 0.8], [0.5, 0.1]]}
    assert weights_over_time(object(), [1]) is None


def test_rates_are_shown_in_per_cent():
    assert format_metric(0.1234, "error_rate") == "12.3 %"
    assert format_metric(12.345, "mse") == "12.3"
    assert format_metric(3131.4, "mse") == "3131"
    assert format_metric(None, "mse") == "–"
