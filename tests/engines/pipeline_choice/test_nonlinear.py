"""The search for nonlinear structure, through AutoSelector: found where it is, nothing changed where it is not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from zeronorm import AutoSelector
from zeronorm.datasets import nonlinear_problems
from zeronorm.engines.pipeline_choice import _nonlinear as nonlinear
from zeronorm.engines.pipeline_choice._nonlinear import standard_errors_ahead


def rings(n_samples=150, n_features=12, seed=0):
    """The second class lies around the first one, in two features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    radius = X[:, 3] ** 2 + X[:, 7] ** 2
    return X, (radius > np.median(radius)).astype(int)


def line(classes, n_samples=150, n_features=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    f = X[:, 3] - X[:, 7] + 0.3 * rng.normal(size=n_samples)
    return X, np.searchsorted(np.quantile(f, np.arange(1, classes) / classes), f)


def test_features_that_act_nonlinearly_are_found_with_their_predictor():
    X, y = rings()
    auto = AutoSelector(random_state=0).fit(X, y)
    assert auto.predictor_.kernel == "rbf"
    assert {3, 7} <= set(auto.get_support(indices=True))
    assert auto.n_features_ <= 4
    assert "Gaussian kernel" in auto.verdict()
    assert auto.cv_results_["mean"].max() > 0.9


@pytest.mark.parametrize("classes", [2, 3])
def test_linear_data_stay_as_they_are(classes, monkeypatch):
    X, y = line(classes)
    searched = AutoSelector(random_state=0).fit(X, y)
    monkeypatch.setattr(nonlinear, "FEWEST_SAMPLES", 10**9)
    plain = AutoSelector(random_state=0).fit(X, y)
    assert searched.chosen_ == "consensus"
    assert searched.predictor_.kernel == "linear"
    np.testing.assert_array_equal(searched.path_.order, plain.path_.order)
    assert searched.sizes_ == plain.sizes_


def test_small_classes_and_groups_give_no_warnings_about_neighbours():
    """Relief has as many neighbours as every class has in every fold, and is left out where a class has none."""
    X, y = rings(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rare in (6, 4, 3):
            labels = np.where(np.arange(60) < rare, 2, y)
            AutoSelector(cv=2, sizes=[2, 4], random_state=0).fit(X, labels)


def test_too_many_samples_for_a_kernel_matrix_are_not_searched(monkeypatch):
    X, y = rings()
    monkeypatch.setattr(nonlinear, "MOST_SAMPLES_OF_A_KERNEL", 100)
    assert AutoSelector(random_state=0).fit(X, y).chosen_ == "consensus"
    monkeypatch.setattr(nonlinear, "MOST_SAMPLES_OF_A_KERNEL", 1000)
    monkeypatch.setattr(nonlinear, "MOST_DISTANCES", 1e3)
    assert AutoSelector(random_state=0).fit(X, y).chosen_ == "consensus"


def test_many_weak_features_are_scored_together():
    """Each of 70 features has a slightly larger variance in one class; fewer than 50 of them show little."""
    y = np.arange(100) % 2
    X = np.random.default_rng(0).normal(size=(100, 70)) * np.where(y, 1.15, 1.0)[:, None]
    auto = AutoSelector(cv=3, random_state=0).fit(X, y)
    assert getattr(auto.predictor_, "kernel", None) == "rbf"
    assert auto.sizes_["all"] > 50


def test_true_features_among_more_noise_than_the_shortlist_are_found():
    X, y, relevant = nonlinear_problems()["circle"](0)
    noise = np.random.default_rng(1).normal(size=(y.size, 200))
    auto = AutoSelector(cv=3, random_state=0).fit(np.hstack([X, noise]), y)
    assert set(relevant) <= set(auto.get_support(indices=True))


def test_standard_errors_of_a_difference():
    scores, others = np.array([0.8, 0.9, 0.7]), np.array([0.7, 0.7, 0.7])
    difference = scores - others
    assert standard_errors_ahead(scores, others) == pytest.approx(
        difference.mean() / (difference.std(ddof=1) / np.sqrt(3))
    )
    assert standard_errors_ahead(others, others) == 0.0
    assert (
        standard_errors_ahead(others + 0.1, others) > 1e6
        or standard_errors_ahead(others + 0.1, others) == np.inf
    )
    assert standard_errors_ahead(np.array([0.7]), np.array([0.6])) == np.inf
