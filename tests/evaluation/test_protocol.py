"""The nested protocol against a plain loop, and what must not influence its results."""

from __future__ import annotations

import copy
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import make_scorer, zero_one_loss
from sklearn.model_selection import (
    GroupKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from evaluation.made_data import make_data
from zeronorm import FisherScore, SelectionPath, SelectorCV, evaluate
from zeronorm.evaluation import Metric, probe_fraction
from zeronorm.registry import register
from zeronorm.selectors._base import BaseSelector


@register("test-noise", family="filters", tasks=("binary", "multiclass"), reference="")
class NoisyOrder(BaseSelector):
    """A random order of the features."""

    fits = 0

    def __init__(self, n_features_to_select=None, *, random_state=None):
        self.n_features_to_select = n_features_to_select
        self.random_state = random_state

    def _select(self, problem):
        NoisyOrder.fits += 1
        return SelectionPath.from_scores(problem.rng.random(problem.n_features))


SECONDS = ("fit_seconds", "seconds")


def test_matches_a_plain_nested_loop():
    X, y = make_data()
    cv = StratifiedKFold(4, shuffle=True, random_state=1)
    records = evaluate(
        {"fisher": FisherScore()}, X, y, cv=cv, sizes=[1, 3, 12], metrics=["error_rate", "auc"]
    )
    rows = iter(records.iter_rows(named=True))
    for i, (train, test) in enumerate(cv.split(X, y)):
        path = FisherScore().fit(X[train], y[train]).path_
        for size in (1, 3, 12):
            columns = path.support(size)
            model = make_pipeline(StandardScaler(), SVC(kernel="linear", tol=1e-10))
            predictions = model.fit(X[train][:, columns], y[train]).predict(X[test][:, columns])
            row = next(rows)
            assert (row["split"], row["method"], row["size"]) == (i, "fisher", size)
            assert row["selected"] == columns.tolist()
            assert row["predictions"] == predictions.tolist()
            assert row["truth"] == y[test].tolist()
            assert row["test_rows"] == test.tolist()
            assert (row["n_train"], row["n_test"]) == (30, 10)
            assert row["error_rate"] == np.mean(predictions != y[test])
            assert row["converged"] is True
            assert row["error"] is None
            decision = model.decision_function(X[test][:, columns])
            np.testing.assert_allclose(row["decision"], decision, rtol=1e-5, atol=1e-5)
    assert next(rows, None) is None
    unasked = evaluate({"fisher": FisherScore()}, X, y, cv=cv, sizes=[1, 3, 12])
    assert unasked["decision"].null_count() == len(unasked)


def test_one_selector_fit_answers_all_sizes():
    X, y = make_data()
    NoisyOrder.fits = 0
    evaluate(NoisyOrder(), X, y, cv=3, sizes=[1, 2, 3, 4, 5])
    assert NoisyOrder.fits == 3


def same(left, right):
    return left.drop(SECONDS).equals(right.drop(SECONDS))


def test_processes_and_other_methods_do_not_change_results():
    X, y = make_data()
    random_folds = SelectorCV(FisherScore(), cv=StratifiedShuffleSplit(2), sizes=[1, 2, 3, 4, 5])
    both = {"random folds": random_folds, "fisher": FisherScore()}
    one = evaluate(both, X, y, cv=6)
    assert one.filter(pl.col("method") == "random folds")["n_selected"].n_unique() > 1
    assert same(one, evaluate(both, X, y, cv=6, n_jobs=2))
    alone = evaluate({"random folds": random_folds}, X, y, cv=6)
    assert same(alone, one.filter(pl.col("method") == "random folds"))


def test_random_state_is_the_only_source_of_chance():
    X, y = make_data()
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2)
    first = evaluate(NoisyOrder(), X, y, cv=cv, sizes=[2], random_state=5)
    np.random.default_rng()  # nothing global is used
    assert same(first, evaluate(NoisyOrder(), X, y, cv=cv, sizes=[2], random_state=5))
    other = evaluate(NoisyOrder(), X, y, cv=cv, sizes=[2], random_state=6)
    assert not same(first, other)
    assert len({tuple(s) for s in first["selected"].to_list()}) > 1  # splits do not share a seed
    fresh = evaluate(NoisyOrder(), X, y, cv=cv, sizes=[2], random_state=None)
    assert not same(first, fresh)


def test_a_chosen_random_state_is_kept():
    X, y = make_data()
    records = evaluate(NoisyOrder(random_state=3), X, y, cv=3, sizes=[2])
    assert len({tuple(s) for s in records["selected"].to_list()}) == 1


def test_splitter_and_selectors_are_not_mutated():
    X, y = make_data()
    cv = StratifiedShuffleSplit(3, random_state=np.random.RandomState(0))
    unset = StratifiedShuffleSplit(3)
    state = copy.deepcopy(cv.random_state.get_state())
    selector, X_before = NoisyOrder(), X.copy()
    evaluate(selector, X, y, cv=cv, sizes=[2])
    evaluate(selector, X, y, cv=unset, sizes=[2])
    assert np.array_equal(cv.random_state.get_state()[1], state[1])
    assert unset.random_state is None
    assert selector.random_state is None
    assert not hasattr(selector, "path_")
    assert np.array_equal(X, X_before)


def test_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = X[:, 1] * 3 + 0.1 * rng.normal(size=60)
    records = evaluate(
        {"correlation": SelectKBest(lambda X, y: np.abs(X.T @ y), k=2)},
        X,
        y,
        cv=3,
        sizes=[1],
        task="regression",
    )
    assert records["selected"].to_list() == [[1]] * 3
    assert records["r2"].min() > 0.9
    assert records["decision"].null_count() == 3


@pytest.mark.parametrize("settings", [{}, {"task": "regression"}])
def test_r2_counts_the_variation_of_the_whole_target_whoever_knows_the_task(settings):
    """A selector may treat the target as real values while the task is classification."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = np.round(10.0 * X[:, 0] + rng.normal(size=30))
    records = evaluate(
        {"f": FisherScore(task="regression")},
        X,
        y,
        cv=[(np.arange(26), np.arange(26, 30))],
        sizes=[1],
        estimator=LinearRegression(),
        metrics=["r2"],
        random_state=0,
        **settings,
    )
    row = records.row(0, named=True)
    residuals = np.asarray(row["predictions"]) - y[26:]
    assert row["r2"] == pytest.approx(1.0 - np.mean(residuals**2) / np.var(y, ddof=1), rel=1e-12)


@register("test-first", family="filters", tasks=("regression",), reference="")
class FirstFeatures(NoisyOrder):
    """Ranks columns in their order, for a real target."""

    def _select(self, problem):
        return SelectionPath(order=np.arange(problem.n_features))


def test_whole_numbers_as_regression_targets():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 4))
    y = np.round(5 * X[:, 0]).astype(int)
    records = evaluate(FirstFeatures(), X, y, cv=2, sizes=[1], task="regression")
    predictions = np.asarray(records["predictions"].explode())
    assert np.any(predictions != np.round(predictions))
    truth = np.asarray(records["truth"].explode())
    assert records["mse"].mean() == pytest.approx(np.mean((truth - predictions) ** 2))


class Overflowing(DummyRegressor):
    """Predicts infinity."""

    def predict(self, X):
        return np.full(len(X), np.inf)


def test_predictions_that_are_not_finite_are_errors(tmp_path):
    X, y = make_data()
    arguments = {"cv": 2, "sizes": [1], "task": "regression", "estimator": Overflowing()}
    for journal in (None, tmp_path):
        with pytest.warns(FitFailedWarning, match="2 of 2 tasks"):
            records = evaluate(FirstFeatures(), X, y, journal=journal, **arguments)
        assert "predictions that are not finite for 20 of 20" in records["error"][0]
        assert records["predictions"].null_count() == 2


def test_progress_counts_cells(monkeypatch):
    X, y = make_data()
    steps = []

    @contextmanager
    def task(self, description, total=None):
        steps.append((description, total, self.verbose))
        yield lambda *said: steps.append(said)

    monkeypatch.setattr("zeronorm.selection._problem.Progress.task", task)
    evaluate({"a": FisherScore(), "b": NoisyOrder()}, X, y, cv=2, sizes=[1], verbose=True)
    folds = [f"{name}, fold {fold} of 2" for name in "ab" for fold in (1, 2)]
    assert steps == [("Evaluating", 4, True), (0, folds[0]), *((1, text) for text in [*folds[1:], ""])]
    steps.clear()
    evaluate(FisherScore(), X, y, cv=2, sizes=[1])
    assert steps[0] == ("Evaluating", 2, False)  # nothing is shown unless it was asked for


def test_selected_size_of_the_method():
    X, y = make_data()
    records = evaluate(FisherScore(n_features_to_select=5), X, y, cv=3, sizes=[2, None])
    assert records["size"].to_list() == [2, None] * 3
    assert records["n_selected"].to_list() == [2, 5] * 3
    assert evaluate(FisherScore(4), X, y, cv=2)["n_selected"].to_list() == [4, 4]


@register("test-failing", family="filters", tasks=("binary", "multiclass"), reference="")
class FailsOnEvenRows(NoisyOrder):
    """Fails when the first training label is that of row 1."""

    def _select(self, problem):
        if problem.y[0] == 1:
            raise ValueError("cannot work\nwith this")
        return super()._select(problem)


def test_failing_cells_are_recorded_and_the_rest_goes_on():
    X, y = make_data()
    rows = np.arange(40)
    pairs = [(rows[1:], rows[:1]), (rows[:-1], rows[-1:])]  # the first training set starts with class 1
    with pytest.warns(FitFailedWarning, match=r"1 of 4 tasks failed: bad \(1\)"):
        records = evaluate({"bad": FailsOnEvenRows(), "good": FisherScore()}, X, y, cv=pairs, sizes=[1, 2])
    assert records["error"].to_list() == ["ValueError: cannot work with this"] * 2 + [None] * 6
    assert records["error_rate"].null_count() == 2
    assert records["selected"].null_count() == 2


def test_metric_undefined_on_a_fold_is_an_error_of_that_row_only():
    X, y = make_data()
    nan = Metric("nan", lambda truth, predictions: float("nan"))
    rows = np.arange(40)
    pairs = [(rows[1:], rows[:1]), (rows[4:], rows[:4])]
    with pytest.warns(FitFailedWarning):
        records = evaluate(FisherScore(), X, y, cv=pairs, sizes=[2], metrics=["error_rate", "auc", nan])
    assert records["auc"].is_null().to_list() == [True, False]
    assert records["nan"].is_null().all()
    assert records["error_rate"].null_count() == 0
    assert records["predictions"].null_count() == 0
    assert "one class only" in records["error"][0]
    assert "'nan' is nan on this test fold" in records["error"][1]


@register("test-unfinished", family="filters", tasks=("binary", "multiclass"), reference="")
class NeverConverges(NoisyOrder):
    """Always stops early."""

    def _select(self, problem):
        return SelectionPath(order=np.arange(problem.n_features), converged=False)


def test_one_warning_when_fits_do_not_converge():
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match="3 of 3 selector fits") as caught:
        records = evaluate(NeverConverges(), X, y, cv=3, sizes=[2])
    assert len(caught) == 1
    assert records["converged"].to_list() == [False] * 3


def test_scorers_and_probes_as_metrics():
    X, y = make_data()
    metrics = {
        "auc": "roc_auc",
        "loss": make_scorer(zero_one_loss, greater_is_better=False),
        "noise": probe_fraction([0, 1, 2]),
        "wrong": "error_rate",
    }
    records = evaluate(FisherScore(), X, y, cv=3, sizes=[12], metrics=metrics)
    assert records["noise"].to_list() == [0.25] * 3
    np.testing.assert_allclose(records["loss"], -records["wrong"])
    ours = evaluate(FisherScore(), X, y, cv=3, sizes=[12], metrics="auc")
    np.testing.assert_allclose(ours["auc"], records["auc"])


@pytest.mark.parametrize("string_labels", [False, True])
def test_auc_reads_the_probability_of_the_second_class(string_labels):
    """A classifier that has probabilities only; scikit-learn's own scorer is the oracle."""
    X, y = make_data(n=80)
    y = np.array(["sick", "well"])[y] if string_labels else y
    records = evaluate(
        FisherScore(), X, y, cv=3, sizes=[2], estimator=GaussianNB(), metrics=["auc", "roc_auc"]
    )
    np.testing.assert_allclose(records["auc"], records["roc_auc"])
    assert records["auc"].min() > 0.6


def test_groups_stay_together():
    X, y = make_data()
    groups = np.repeat(np.arange(10), 4)
    for cv in (4, GroupKFold(4)):
        records = evaluate(FisherScore(), X, y, cv=cv, sizes=[2], groups=groups)
        for rows in records["test_rows"].to_list():
            assert not set(groups[rows]) & set(np.delete(groups, rows))
    inner = SelectorCV(FisherScore(), cv=GroupKFold(3), sizes=[1, 2])
    assert evaluate(inner, X, y, cv=4, groups=groups)["error"].null_count() == 4
