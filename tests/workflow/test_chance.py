"""What chance gives: the baseline, permuted targets, and a headline that follows from them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import zeronorm
from zeronorm.resampling.metrics import as_metric
from zeronorm.workflow import chance
from zeronorm.workflow.chance import WithBaseline, permuted_target
from zeronorm.workflow.inputs import DataOptions, load_data
from zeronorm.workflow.measured import beats_chance, error_sentence, permutation_sentence
from zeronorm.workflow.procedures import Settings

FIXED = {"method": "fisher", "features": 3, "cv": 3}


def simulated(seed, strength, n_samples=40, n_features=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = rng.permutation(np.arange(n_samples) % 2)
    X[:, :3] += strength * y[:, None]
    return X, y


def claims(result):
    return "No evidence" not in result.headline


# -- The baseline ---------------------------------------------------------------------------------------


def test_chance_is_measured_on_the_same_folds():
    X, y = simulated(0, 2.0)
    y = np.where(np.arange(40) < 30, 0, 1)
    result = zeronorm.select(X, y, **FIXED, metric="error_rate", permutations=0)
    own = result.records.filter(result.records["size"].is_null())
    expected = np.mean([np.mean(np.asarray(truth) != 0) for truth in own["truth"].to_list()])
    assert result.chance == pytest.approx(expected)


def test_the_baseline_of_a_regression_predicts_the_mean_of_the_training_part():
    X, _ = simulated(0, 0.0)
    y = np.random.default_rng(1).normal(size=40)
    result = zeronorm.select(X, y, method="lasso", features=3, cv=4, permutations=0)
    rows = result.records.filter(result.records["size"].is_null()).iter_rows(named=True)
    expected = [np.mean((y[row["test_rows"]] - np.delete(y, row["test_rows"]).mean()) ** 2) for row in rows]
    assert result.chance == pytest.approx(np.mean(expected))
    assert "R²" in error_sentence(result.procedure)
    assert result.procedure["also"]["r2"] == pytest.approx(1.0 - result.procedure["value"] / y.var(ddof=1))


def test_r2_is_the_share_of_the_error_without_features_also_in_tiny_test_parts():
    X = np.random.default_rng(0).normal(size=(21, 5))
    y = 3.0 * X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=21)
    result = zeronorm.select(X, y, method="lasso", features=1, cv=10, permutations=0)
    assert result.procedure["also"]["r2"] > 0.95


def test_a_predictor_without_features_knows_the_training_target_only():
    X, y = simulated(0, 2.0)
    y = np.where(np.arange(40) < 25, "a", "b")
    model = WithBaseline(LogisticRegression()).fit(X[:, :0], y)
    assert set(model.predict(X[:, :0])) == {"a"}
    assert np.ptp(model.decision_function(X[:, :0])) == 0.0
    whole = WithBaseline(LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(whole.predict(X), LogisticRegression().fit(X, y).predict(X))


@pytest.mark.filterwarnings("ignore")
def test_an_empty_selection_is_evaluated_as_the_baseline():
    X, y = simulated(3, 0.0)
    result = zeronorm.select(
        X, y, method="probe-selector", params={"selector": "fisher", "level": 0.02}, cv=3, permutations=0
    )
    empty = result.records.filter(result.records["n_selected"] == 0)
    assert empty.height > 0
    assert empty["balanced_error_rate"].to_list() == pytest.approx([0.5] * empty.height)


# -- Permutations ---------------------------------------------------------------------------------------


def test_the_p_value_counts_permutations_at_least_as_good(monkeypatch):
    X, y = simulated(0, 0.0)
    result = zeronorm.select(X, y, **FIXED, permutations=9)
    found = result.procedure
    as_good = sum(value <= found["value"] + 1e-12 for value in found["permutation_values"])
    assert found["p_value"] == pytest.approx((1 + as_good) / 10)
    assert found["n_permutations"] == 9
    again = zeronorm.select(X, y, **FIXED, permutations=9)
    assert again.procedure["permutation_values"] == found["permutation_values"]


def test_greater_is_better_metrics_count_the_other_way():
    X, y = simulated(1, 3.0)
    result = zeronorm.select(X, y, **FIXED, metric="auc", permutations=19)
    assert result.procedure["value"] > 0.9
    assert result.procedure["p_value"] == pytest.approx(1 / 20)


def test_the_p_value_is_valid_when_there_is_nothing():
    p_values = [
        zeronorm.select(
            *simulated(100 + seed, 0.0, n_samples=24, n_features=8),
            method="golub",
            features=1,
            cv=2,
            permutations=9,
        ).procedure["p_value"]
        for seed in range(15)
    ]
    for level in (0.1, 0.2, 0.5):  # up to four standard errors of a simulation of this length
        share = np.mean(np.asarray(p_values) <= level + 1e-12)
        assert share <= level + 4 * np.sqrt(level * (1 - level) / len(p_values))


def test_one_diagnosis_per_patient_is_permuted_between_patients():
    groups = np.repeat(np.arange(12), 3)
    y = np.repeat(np.arange(12) % 2, 3)
    table = load_data(np.zeros((36, 2)) + np.arange(36)[:, None], DataOptions(target=y, sample_groups=groups))
    permuted = permuted_target(table, 0, 0)
    assert all(len(set(permuted[groups == group])) == 1 for group in range(12))
    assert np.bincount(permuted).tolist() == np.bincount(y).tolist()
    assert not np.array_equal(permuted, y)


def test_a_target_that_varies_within_patients_is_permuted_within_them():
    groups = np.repeat(np.arange(12), 3)
    y = np.tile([0, 1, 1], 12)
    table = load_data(np.zeros((36, 2)) + np.arange(36)[:, None], DataOptions(target=y, sample_groups=groups))
    permuted = permuted_target(table, 0, 0)
    assert all(permuted[groups == group].sum() == 2 for group in range(12))
    assert not np.array_equal(permuted, y)


def test_auto_takes_fewer_permutations_as_the_work_grows():
    small = load_data(*_data(40, 50))
    assert chance.permutation_count(small, Settings(features=3, cv=3), [1, 2], "fisher") == 99
    wide = load_data(*_data(40, 50))
    counts = [
        chance.permutation_count(
            wide, Settings(features=None, cv=cv, repeats=repeats), list(range(12)), "fisher"
        )
        for cv, repeats in ((2, 1), (5, 1), (10, 10))
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 0
    assert chance.permutation_count(wide, Settings(permutations=7, cv=10, repeats=10), [1], "fisher") == 7


def test_auto_knows_that_machines_take_longer_on_many_samples():
    table = load_data(*_data(3000, 40))
    fixed = Settings(features=5, cv=5)
    counts = [chance.permutation_count(table, fixed, [5], name) for name in ("fisher", "rfe", "ofw")]
    assert counts == [39, 0, 0]


def test_auto_knows_that_the_method_auto_takes_longer():
    table = load_data(*_data(40, 22))
    settings = Settings(features=None, cv=5)
    assert chance.permutation_count(table, settings, list(range(12)), "fisher") == 19
    assert chance.permutation_count(table, settings, list(range(12)), "auto") == 0
    assert chance.permutation_count(table, settings, list(range(12)), "auto", is_only_test=True) == 19
    assert chance.permutation_count(table, Settings(features=None, cv=10), list(range(12)), "auto") == 0
    long = Settings(features=None, cv=10, repeats=10)
    assert chance.permutation_count(table, long, list(range(12)), "auto", is_only_test=True) == 0


def test_auto_has_more_patience_where_nothing_else_tests(monkeypatch):
    monkeypatch.setattr(chance, "AFFORDABLE_SECONDS", 0.0)
    result = separated_classes("average_precision", "auto")
    assert (result.procedure["low"], result.procedure["n_permutations"]) == (None, 19)
    assert result.headline == "3 of 10 features predict target"
    assert separated_classes("error_rate", "auto").procedure["n_permutations"] == 0


def _data(n_samples, n_features):
    X, y = simulated(0, 0.0, n_samples, n_features)
    return X, DataOptions(target=y)


# -- The headline ---------------------------------------------------------------------------------------


MEASURED = {
    "value": 0.2,
    "chance": 0.5,
    "low": 0.1,
    "high": 0.3,
    "greater_is_better": False,
    "p_value": None,
    "n_permutations": 0,
}
NO_INTERVAL = {"low": None, "high": None}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"high": 0.55}, False),
        ({"p_value": 0.05, "n_permutations": 19}, True),
        ({"p_value": 0.06, "n_permutations": 99}, False),
        ({"high": 0.55, "p_value": 0.01, "n_permutations": 99}, True),
        ({"value": 0.6, "p_value": 0.01, "n_permutations": 99}, False),
        ({"greater_is_better": True}, False),
        ({"greater_is_better": True, "value": 0.8, "low": 0.7, "high": 0.9}, True),
        # What was not measured or not tested is neither shown nor refuted.
        ({"value": None, **NO_INTERVAL}, None),
        (NO_INTERVAL, None),
        ({"greater_is_better": True, "value": 0.8, **NO_INTERVAL}, None),
        ({"value": 0.5, **NO_INTERVAL}, False),
        ({"value": 0.7, **NO_INTERVAL}, False),
        ({"chance": None}, None),
        ({"chance": None, "p_value": 0.05, "n_permutations": 19}, True),
        ({"chance": None, "p_value": 0.1, "n_permutations": 19}, False),
        # Nine permutations cannot give less than p = 0.1: they can only speak against.
        ({"p_value": 0.1, "n_permutations": 9}, None),
        ({"p_value": 0.1, "n_permutations": 9, **NO_INTERVAL}, None),
        ({"p_value": 0.2, "n_permutations": 9, **NO_INTERVAL}, False),
        ({"p_value": 0.2, "n_permutations": 9}, False),
    ],
)
def test_a_claim_needs_a_small_p_value_or_chance_outside_the_interval(changes, expected):
    assert beats_chance(MEASURED | changes) is expected


@pytest.mark.parametrize("metric", ["mse", "mae", "r2"])
def test_a_regression_with_small_training_parts_is_tested_by_the_interval(metric):
    """24 samples whose target is nearly a feature: the models fitted here err little, whatever others would do."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 10))
    y = 2 * X[:, 0] + 0.05 * rng.normal(size=24)
    options = {"method": "forward-least-squares", "features": 1, "cv": 2, "n_jobs": 1}
    result = zeronorm.select(X, y, **options, metric=metric, permutations=0)
    assert result.procedure["low"] < result.procedure["high"]
    assert result.headline == "1 of 10 features predicts target"


def separated_classes(metric, permutations=0):
    options = {"method": "fisher", "features": 3, "cv": 2, "n_jobs": 1, "metric": metric}
    return zeronorm.select(
        *simulated(2, 3.0, n_samples=24, n_features=10), **options, permutations=permutations
    )


@pytest.mark.parametrize("metric", ["error_rate", "balanced_error_rate", "auc", "f1_macro"])
def test_classes_are_tested_by_the_interval(metric):
    result = separated_classes(metric)
    assert result.procedure["low"] is not None
    assert result.headline == "3 of 10 features predict target"


@pytest.mark.parametrize("metric", ["average_precision"])
def test_without_a_test_the_headline_says_what_was_measured_and_what_to_do(metric):
    result = separated_classes(metric)
    found = result.procedure
    assert (found["low"], found["no_interval"]) == (
        None,
        "no interval: the value is the same in all test parts",
    )
    assert found["no_interval"] in error_sentence(found)
    assert found["beats_chance"] is None
    assert result.headline.startswith("3 of 10 features selected for target: ")
    for value in (found["value"], found["chance"]):
        assert as_metric(metric).format(value) in result.headline
    assert result.headline.endswith("Not tested against chance: that needs at least 19 permutations")
    told = [text for text in result.warnings if "was not tested" in text]
    assert len(told) == 1
    assert "raise the parameter 'permutations' to 19 or more" in told[0]
    assert not any("not shown to be better than chance" in text for text in result.warnings)
    assert result.to_dict()["headline"] == result.headline
    assert result.to_dict()["procedure"]["beats_chance"] is None


def test_permutations_decide_where_there_is_no_interval():
    result = separated_classes("average_precision", 19)
    assert result.procedure["low"] is None
    assert result.headline == "3 of 10 features predict target"
    assert not any("not tested" in text for text in result.warnings)
    few = separated_classes("average_precision", 3)
    assert few.headline.endswith("Not tested against chance: that needs at least 19 permutations")
    assert any("3 permutations cannot give a p-value of 0.05" in text for text in few.warnings)


@pytest.mark.parametrize("metric", ["average_precision"])
def test_a_scorer_with_the_best_value_in_every_part_has_no_interval_and_is_not_denied(metric):
    result = separated_classes(metric)
    assert (result.procedure["value"], result.procedure["low"]) == (1.0, None)
    assert "Not tested against chance" in result.headline
    assert separated_classes(metric, 19).headline == "3 of 10 features predict target"


def test_what_is_worse_than_chance_needs_no_test():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(24, 10)), rng.normal(size=24)
    options = {"method": "forward-least-squares", "features": 3, "cv": 2, "metric": "r2", "n_jobs": 1}
    result = zeronorm.select(X, y, **options, permutations=0)
    assert result.headline == "No evidence that these 3 features predict target"
    assert any("better than chance (the R² is not above that of chance)" in t for t in result.warnings)


def simulate_headlines(strength, n_sets, **options):
    found = []
    for seed in range(n_sets):
        result = zeronorm.select(*simulated(seed, strength), **options)
        found.append((claims(result), result.procedure["p_value"]))
    return found


def test_headlines_on_simulated_data():
    nothing = simulate_headlines(0.0, 5, **FIXED, permutations=19)
    assert not any(claim and p_value > 0.05 for claim, p_value in nothing)
    assert _n_claims(nothing) <= 1
    strong = simulate_headlines(2.0, 2, **FIXED, permutations=19)
    assert _n_claims(strong) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["zeronorm-svm", "rfe", "fisher"])
def test_headlines_on_twenty_data_sets_each(method):
    options = {"method": method, "features": "auto", "max_features": 8, "cv": 3, "permutations": 19}
    nothing = simulate_headlines(0.0, 20, **options)
    strong = simulate_headlines(2.0, 20, **options)
    print(f"{method}: {_n_claims(nothing)} of 20 null sets and {_n_claims(strong)} of 20 strong ones claim")
    assert not any(claim and p_value > 0.05 for claim, p_value in nothing)
    assert _n_claims(nothing) <= 4  # 1 on average; more than 4 in 0.3 % of all simulations
    assert _n_claims(strong) >= 19


def _n_claims(headlines):
    return sum(claim for claim, _ in headlines)


@pytest.mark.parametrize(
    ("p_value", "words"),
    [(0.05, "never did as well"), (0.1, "did as well there once"), (0.5, "did as well there 9 times")],
)
def test_the_p_value_in_words(p_value, words):
    sentence = permutation_sentence(p_value, 19)
    assert words in sentence
    assert f"(p = {p_value:.2g})" in sentence
