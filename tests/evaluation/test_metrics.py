"""Metrics against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.base import ClassifierMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from zeronorm.evaluation import METRICS, area_under_curve, balanced_error_rate, error_rate, probe_fraction
from zeronorm.evaluation.significance import metric_interval
from zeronorm.resampling._metrics import as_metric, explained_variation, scoring_metric

labels = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30)


@settings(max_examples=50, deadline=None)
@given(labels)
def test_error_rates(pairs):
    truth, predicted = np.array(pairs).T
    assert error_rate(truth, predicted) == pytest.approx(1 - sk.accuracy_score(truth, predicted))
    recalls = [np.mean(predicted[truth == c] == c) for c in np.unique(truth)]
    assert balanced_error_rate(truth, predicted) == pytest.approx(1 - np.mean(recalls))


def test_balanced_error_rate_of_unequal_classes():
    truth = np.array([0] * 90 + [1] * 10)
    always_zero = np.zeros(100, dtype=int)
    assert error_rate(truth, always_zero) == pytest.approx(0.1)
    assert balanced_error_rate(truth, always_zero) == pytest.approx(0.5)
    expected = 1 - sk.balanced_accuracy_score(truth, np.roll(truth, 5))
    assert balanced_error_rate(truth, np.roll(truth, 5)) == pytest.approx(expected)


@pytest.mark.parametrize("ties", [False, True])
def test_area_under_curve(ties):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 40)
    values = rng.integers(0, 5, 40) if ties else rng.normal(size=40)
    assert area_under_curve(truth, values) == pytest.approx(sk.roc_auc_score(truth, values))
    assert area_under_curve(truth, -values) == pytest.approx(1 - area_under_curve(truth, values))
    names = np.array(["no", "yes"])[truth]
    assert area_under_curve(names, values, ["no", "yes"]) == pytest.approx(sk.roc_auc_score(truth, values))


def test_area_under_curve_of_more_classes():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 60)
    probability = rng.dirichlet(np.ones(3), 60)
    expected = sk.roc_auc_score(truth, probability, multi_class="ovr", average="macro")
    assert area_under_curve(truth, probability, [0, 1, 2]) == pytest.approx(expected)


def test_area_of_one_class_is_refused():
    with pytest.raises(ValueError, match="one class only"):
        area_under_curve([1, 1], [0.2, 0.3], [0, 1])


def test_regression_metrics():
    rng = np.random.default_rng(2)
    truth, predicted = rng.normal(size=20), rng.normal(size=20)
    residuals = truth - predicted
    assert METRICS["mse"].function(truth, predicted) == pytest.approx(np.mean(residuals**2))
    assert METRICS["mae"].function(truth, predicted) == pytest.approx(np.mean(np.abs(residuals)))
    expected = 1 - np.sum(residuals**2) / np.sum((truth - truth.mean()) ** 2)
    assert explained_variation(truth, predicted) == pytest.approx(expected)
    with pytest.raises(ValueError, match="do not vary"):
        explained_variation([1.0, 1.0], [1.0, 2.0])


def test_directions():
    of_times = {"concordance", "uno_concordance", "calibration_slope"}
    assert {name for name, metric in METRICS.items() if metric.greater_is_better} == {"auc", "r2"} | of_times


def test_probe_fraction():
    metric = probe_fraction([5, 6, 7])
    assert metric.response == "selected"
    assert metric.function([0, 5, 7, 1]) == 0.5
    assert metric.function(np.array([0, 1])) == 0.0


CLASSIFIERS = [
    *("accuracy", "balanced_accuracy", "average_precision", "f1", "f1_macro", "jaccard", "matthews_corrcoef"),
    *("neg_brier_score", "neg_log_loss", "precision", "recall", "roc_auc"),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [*CLASSIFIERS, "explained_variance", "neg_mean_squared_error", "r2"])
def test_values_of_scorers_lie_within_their_bounds(name, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3))
    y = rng.permutation(np.arange(30) % 2) if name in CLASSIFIERS else rng.normal(size=30)
    model = LogisticRegression() if name in CLASSIFIERS else LinearRegression()
    value = sk.get_scorer(name)(model.fit(X[:15], y[:15]), X[15:], y[15:])
    low, high = as_metric(name).bounds
    assert low <= value <= high
    assert high < np.inf


def test_the_interval_of_a_scorer_stays_within_its_bounds():
    rows = [
        {"roc_auc": value, "n_train": 40, "n_test": 10, "split": i} for i, value in enumerate([1.0, 0.9, 1.0])
    ]
    low, high = metric_interval(as_metric("roc_auc"), rows)
    assert 0.0 <= low < 0.97 < high == 1.0


def test_without_scoring_the_score_of_the_estimator_counts():
    class Modest(DummyClassifier):
        def score(self, X, y, sample_weight=None):
            return 0.25

    X, y = np.zeros((4, 1)), np.array(["a", "a", "a", "b"])
    for estimator, expected in ((DummyClassifier(), 0.75), (Modest(), 0.25), (DummyRegressor(), 0.0)):
        target = y if isinstance(estimator, ClassifierMixin) else np.arange(4.0)
        model = estimator.fit(X, target)
        metric = scoring_metric(None, estimator)
        assert metric.score(metric.measure(model, X, target, model.predict(X), None, [0])) == expected
        assert model.score(X, target) == expected
