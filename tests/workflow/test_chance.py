"""The level of chance: the baseline, permuted targets, and their number."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import zeronorm
from zeronorm.result._sentences import error_sentence
from zeronorm.workflow import _chance as chance
from zeronorm.workflow import _training as training
from zeronorm.workflow._chance import WithBaseline, permuted_target
from zeronorm.workflow._inputs import DataOptions, load_data
from zeronorm.workflow._procedures import Settings

from .conftest import numbers, simulated, table_of

FIXED = {"method": "fisher", "features": 3, "cv": 3}


# -- The baseline --


def test_chance_is_measured_on_the_same_folds():
    X, y = simulated(0, 2.0)
    y = np.where(np.arange(40) < 30, 0, 1)
    result = zeronorm.select(X, y, **FIXED, metric="error_rate", permutations=0)
    own = result.records.filter(result.records["size"].is_null())
    expected = np.mean([np.mean(np.asarray(truth) != 0) for truth in own["truth"].to_list()])
    assert result.chance == pytest.approx(expected)


def test_the_baseline_of_a_regression_predicts_the_mean_of_the_training_samples():
    X, _ = simulated(0, 0.0)
    y = np.random.default_rng(1).normal(size=40)
    result = zeronorm.select(X, y, method="lasso", features=3, cv=4, permutations=0)
    rows = result.records.filter(result.records["size"].is_null()).iter_rows(named=True)
    expected = [np.mean((y[row["test_rows"]] - np.delete(y, row["test_rows"]).mean()) ** 2) for row in rows]
    assert result.chance == pytest.approx(np.mean(expected))
    assert "R²" in error_sentence(result.procedure)
    assert result.procedure["also"]["r2"] == pytest.approx(1.0 - result.procedure["value"] / y.var(ddof=1))


def test_r2_is_the_share_of_the_error_without_features_also_in_tiny_test_folds():
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


def test_a_predictor_without_features_for_each_task():
    X, y = numbers(9)
    three = np.array(list("abcabcaab"))
    model = WithBaseline(LinearSVC()).fit(X[:, :0], three)
    assert set(model.predict(X[:, :0])) == {"a"}
    assert model.decision_function(X[:, :0]).shape == (9, 3)
    two = WithBaseline(LinearSVC()).fit(X[:, :0], y)
    assert two.decision_function(X[:, :0]).tolist() == [0.0] * 9
    assert two.classes_.tolist() == ["no", "yes"]
    assert not hasattr(two, "predict_proba")
    proba = WithBaseline(LogisticRegression()).fit(X[:, :0], y)
    assert proba.predict_proba(X[:, :0])[0].tolist() == [1.0, 0.0]
    real = WithBaseline(Ridge(), "regression").fit(X[:, :0], X[:, 0])
    np.testing.assert_allclose(real.predict(X[:, :0]), X[:, 0].mean())
    assert not hasattr(real, "classes_")
    assert not hasattr(real, "decision_function")
    one = WithBaseline(LinearSVC()).fit(X[:, :1], y)  # a single feature is a feature
    np.testing.assert_allclose(
        one.decision_function(X[:, :1]), LinearSVC().fit(X[:, :1], y).decision_function(X[:, :1])
    )
    assert (one.__sklearn_tags__().estimator_type, real.__sklearn_tags__().estimator_type) == (
        "classifier",
        "regressor",
    )
    assert WithBaseline.for_table(table_of(X, X[:, 0], task="regression"), Settings()).task == "regression"


def test_the_level_of_chance_is_a_mean_over_the_folds_that_have_a_value():
    assert chance.chance_level({"m": [0.5, None, 0.25]}, "m") == 0.375
    assert chance.chance_level({"m": [None, None]}, "m") is None


def test_the_baseline_copies_no_features(monkeypatch):
    X, y = numbers(24)
    X[0, 0] = np.nan
    seen = []

    def evaluate(built, table, settings, sizes):
        seen.append((list(built), table.X.shape, table.n_missing, settings.verbose, sizes))
        return pl.DataFrame({"balanced_error_rate": [0.5, None], "error_rate": [0.5, 0.5]})

    monkeypatch.setattr(training, "evaluate_procedures", evaluate)
    chance.baseline_records(table_of(X, y), Settings(verbose=True))
    assert seen == [(["baseline"], (24, 1), 0, False, [])]
    nothing = pl.DataFrame({"auc": [None] * 2, "error": [None] * 2})
    monkeypatch.setattr(training, "evaluate_procedures", lambda *_: nothing)
    with pytest.raises(ValueError, match="names 'auc', which cannot be computed here"):
        chance.baseline_records(table_of(X, y), Settings(metric="auc"))


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        ("metric 'auc': ValueError: no scores", ValueError, "names 'auc', which cannot be computed here"),
        ("MemoryError: Unable to allocate 8 GiB", MemoryError, "not enough memory to evaluate even"),
        ("ArrayMemoryError: Unable to allocate", MemoryError, "not enough memory to evaluate even"),
        ("OSError: disk", ValueError, "The baseline, .* could not be evaluated: OSError: disk"),
    ],
)
def test_the_cause_of_a_failed_baseline_is_named(error, kind, message, monkeypatch):
    failed = pl.DataFrame({"auc": [None, None], "error": [None, error]})
    monkeypatch.setattr(training, "evaluate_procedures", lambda *_: failed)
    X, y = numbers(24, 4)[0], np.arange(24) % 2
    with pytest.raises(kind, match=message):
        chance.baseline_records(table_of(X, y), Settings(metric="auc"))


# -- Permutations --


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


@pytest.mark.parametrize(("metric", "p_value"), [("error_rate", 4 / 6), ("auc", 5 / 6)])
def test_permutations_that_are_as_good_count(metric, p_value, monkeypatch):
    """Observed 0.3. At most as large are 0.2, 0.3 and the permutation without a value, which counts as 0.3."""
    values = iter([[0.2], [0.3, None], [0.4], [], [0.5]])
    seen = []

    def evaluate(built, table, settings, sizes, *, journal, bar):
        assert bar is None
        seen.append((list(built), table.y.tolist(), sizes, journal))
        return pl.DataFrame({metric: pl.Series(next(values), dtype=pl.Float64)})

    monkeypatch.setattr(training, "evaluate_procedures", evaluate)
    X, y = numbers(12)
    table = table_of(X, y)
    settings = Settings(metric=metric, random_state=4)
    found = chance.permutation_test("fisher", None, table, settings, 0.3, 5, journal="here")
    assert found.values == (0.2, 0.3, 0.4, 0.3, 0.5)
    assert found.p_value == pytest.approx(p_value)
    assert [entry[1] for entry in seen] == [permuted_target(table, 4, k).tolist() for k in range(5)]
    assert all((names, sizes, journal) == (["fisher"], [], "here") for names, _, sizes, journal in seen)
    assert chance.permutation_test("fisher", None, table, settings, 0.3, 0) is None


def test_each_permutation_is_another_order_of_the_target():
    X, y = numbers(12)
    table = table_of(X, y)
    drawn = [permuted_target(table, seed, k).tolist() for seed in (0, 1) for k in range(3)]
    assert len({tuple(one) for one in drawn}) == 6
    assert all(sorted(one) == sorted(y.tolist()) for one in drawn)
    # Of three patients, one has two diagnoses: samples are permuted within each patient.
    mixed = table_of(X, np.array(list("uvuuvvuuuvvv")), sample_groups=np.repeat([2, 10, 1], 4))
    for k in range(4):
        found = permuted_target(mixed, 0, k)
        for group in (2, 10, 1):
            rows = mixed.sample_groups == group
            assert sorted(found[rows]) == sorted(mixed.y[rows])


def test_warnings_of_meaningless_targets_are_not_heard(monkeypatch):
    def evaluate(*_, **__):
        warnings.warn("nothing converges here", UserWarning, stacklevel=1)
        return pl.DataFrame({"balanced_error_rate": [0.5]})

    monkeypatch.setattr(training, "evaluate_procedures", evaluate)
    found = chance.permutation_test("fisher", None, table_of(*numbers(24)), Settings(), 0.4, 2)
    assert found.values == (0.5, 0.5)
