"""Intervals of scorers, by the jackknife and by their own outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression, LogisticRegression

from evaluation.made_rows import fold_rows
from zeronorm import FisherScore, evaluate
from zeronorm.evaluation import METRICS, Metric, register_metric
from zeronorm.evaluation._summary import compare, error_curves, primary_metric
from zeronorm.evaluation.significance import metric_interval
from zeronorm.evaluation.significance._pooled import why_no_interval
from zeronorm.resampling._metrics import as_metric


def scorer_rows(name, y, predictions, n_folds=5):
    metric = as_metric(name)
    return metric, [
        row | {name: metric.function(row["truth"], row["predictions"])}
        for row in fold_rows(y, predictions, n_folds)
    ]


def test_any_scorer_goes_through_the_whole_chain():
    """A scorer of scikit-learn and a metric of a user: curves, intervals, comparison, direction."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 6)) + 1.2 * np.outer(y, np.arange(6) == 5)
    selectors = {"first": FisherScore(1), "all": FisherScore(6)}
    for metric in ("f1", "neg_log_loss", "average_precision"):
        records = evaluate(selectors, X, y, cv=4, metrics=metric, estimator=LogisticRegression())
        assert primary_metric(records) == metric
        curve = error_curves(records, metric)[0]
        assert curve.own.low < curve.own.mean < curve.own.high
        found = compare(records, metric)
        means = [row.mean for row in found.rows]
        assert means == sorted(means, reverse=True)
        assert found.choice.best == found.rows[0].method
    own = register_metric(Metric("misses", lambda t, p: float(np.sum(t > p)), label="missed cases"))
    try:
        records = evaluate(selectors, X, y, cv=4, metrics=own)
        assert primary_metric(records) == "misses"
        means = [row.mean for row in compare(records, "misses").rows]
        assert means == sorted(means)
    finally:
        del METRICS["misses"]


@pytest.mark.parametrize("name", ["f1", "matthews_corrcoef", "precision", "recall", "jaccard", "f1_macro"])
def test_scorers_of_labels_without_errors_are_not_certain(name):
    """A jackknife alone gives a width of 0, or of rounding: Matthews' correlation was covered in 0.48."""
    y = np.arange(40) % 2
    low, high = metric_interval(*scorer_rows(name, y, y))
    assert high == 1.0
    assert 0.5 < low < 0.95


@pytest.mark.parametrize(
    ("name", "same"), [("accuracy", "error_rate"), ("balanced_accuracy", "balanced_error_rate")]
)
def test_accuracies_have_the_interval_of_the_errors(name, same):
    y = np.arange(60) % 2
    wrong = np.where(np.arange(60) % 7 == 0, 1 - y, y)
    metric, rows = scorer_rows(name, y, wrong)
    low, high = metric_interval(metric, rows)
    assert metric_interval(METRICS[same], rows) == pytest.approx((1 - high, 1 - low))


def test_the_jackknife_of_labels_adds_two_samples_to_each_class():
    """By hand, for the recall of 50 samples with 10 misses in 5 folds: one of each kind is added."""
    y = np.arange(100) % 2
    predictions = np.where((np.arange(100) < 20) & (y == 1), 0, y)
    metric, rows = scorer_rows("recall", y, predictions)
    low, high = metric_interval(metric, rows)
    center = 41 / 52
    p = 12 / 104 + np.sqrt(12 / 104 * 92 / 104 / 100)
    factor = 1 + 0.7 * (4 * p * (1 - p)) ** 1.5
    assert (low + high) / 2 == pytest.approx(center)
    # Blocks of two and three samples: the variance of independent ones up to the unevenness of the blocks.
    expected = stats.t.ppf(0.975, 49) * np.sqrt(factor * center * (1 - center) / 52)
    assert (high - low) / 2 == pytest.approx(expected, rel=0.25)


def test_losses_of_models_that_hardly_err_have_no_interval():
    """Most of a mean loss comes from rare samples; four errors do not show them."""
    y = np.arange(100) % 2
    for errors, is_there in ((4, False), (5, True)):
        predictions = np.where(np.arange(100) < errors, 1 - y, y)
        rows = [row | {"neg_log_loss": -0.1 - 0.01 * i} for i, row in enumerate(fold_rows(y, predictions))]
        assert (metric_interval(as_metric("neg_log_loss"), rows) is not None) == is_there
        assert ("5 wrong predictions" in why_no_interval(as_metric("neg_log_loss"), rows)) != is_there


def test_average_precision_needs_samples_of_each_class_in_a_part():
    y = np.arange(100) % 2
    for n_folds, is_there in ((20, False), (10, True)):
        rows = fold_rows(y, np.where(np.arange(100) % 6 == 0, 1 - y, y), n_folds)
        rows = [row | {"average_precision": 0.8 + 0.01 * i} for i, row in enumerate(rows)]
        assert (metric_interval(as_metric("average_precision"), rows) is not None) == is_there
        assert ("samples of each class" in why_no_interval(as_metric("average_precision"), rows)) != is_there


def test_r2_has_an_interval_around_its_value():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + rng.normal(size=80)
    records = evaluate(
        SelectKBest(f_regression, k=3), X, y, cv=5, task="regression", estimator=LinearRegression()
    )
    own = error_curves(records, "r2")[0].own
    assert own.low < 0.5 < own.high < 1.0


def test_intervals_of_other_metrics_count_the_overlap_of_training_parts():
    """By hand: the variance of the mean is s² (1/J + n_test/n_train + 0.35) with the J folds of one repetition."""
    for passes in (1, 3):
        values = np.tile([0.1, 0.2, 0.15, 0.3, 0.25], passes)
        rows = [{"mse": value, "n_test": 20, "n_train": 80} for value in values]
        half = stats.t.ppf(0.975, 4) * values.std(ddof=1) * np.sqrt(1 / 5 + 20 / 80 + 0.35)
        low, high = metric_interval(METRICS["mse"], rows)
        np.testing.assert_allclose([low, high], [values.mean() - half, values.mean() + half])
