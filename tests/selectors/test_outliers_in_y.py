"""Outliers in a real target mislead methods of least squares: they warn once, with a remedy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.linear_model import HuberRegressor, LogisticRegression

import zeronorm
from zeronorm import (
    AutoSelector,
    Consensus,
    FisherScore,
    LassoSelector,
    SelectorCV,
    StabilitySelection,
    as_design,
    evaluate,
)
from zeronorm.models import RelevanceVectorRegressor
from zeronorm.registry import all_methods
from zeronorm.selection._problem import TargetOutlierWarning, target_outliers

OUTLIER = 7


def problem(n_samples=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 8))
    y = 2.0 * X[:, 0] + 1.5 * X[:, 1] + 0.3 * rng.normal(size=n_samples)
    return X, y


def with_outlier(y, size=1e6):
    return np.where(np.arange(y.size) == OUTLIER, size * np.abs(y).max(), y)


def outlier_warnings(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(w.message) for w in caught if w.category is TargetOutlierWarning]


# -- the rule --


@pytest.mark.parametrize("size", [100.0, 1e6, -1e6, 1e100])
@pytest.mark.parametrize("n_samples", [8, 20, 60, 1000])
def test_an_outlier_in_y_is_found(n_samples, size):
    _, y = problem(n_samples)
    y[OUTLIER] = size * 10.0 * np.abs(y).max()
    assert target_outliers(y).tolist() == [OUTLIER]
    assert target_outliers(np.delete(y, OUTLIER)).size == 0
    assert target_outliers(rankdata(y)).size == 0


def test_several_outliers_in_y_are_found_the_farthest_first():
    _, y = problem(200)
    y[[5, 60, 100]] = [1e5, -1e9, 1e5]
    assert target_outliers(y).tolist() == [60, 5, 100]
    y[110] = 1e5
    assert target_outliers(y).tolist() == [60, 5, 100, 110]
    y[:10] = 1e5  # more than a few are not treated as outliers
    assert target_outliers(np.delete(y, 60)).size == 0


def test_a_sample_of_small_weight_is_no_outlier():
    _, y = problem()
    y = with_outlier(y, 1e3)
    weight = np.ones(60)
    assert target_outliers(y, weight).tolist() == [OUTLIER]
    weight[OUTLIER] = 1e-9
    assert target_outliers(y, weight).size == 0


@pytest.mark.parametrize("others", [[], [1.0], [1.0, 2.0, 1.0, 1.0]])
def test_too_few_different_values_cause_no_warning(others):
    """Where more than half of the targets are equal their median distance is zero."""
    y = np.zeros(40)
    y[: len(others)] = others
    y[OUTLIER] = 1e6
    assert target_outliers(y).size == 0


def test_equal_targets_do_not_hide_an_outlier():
    y = np.zeros(100)
    y[:30] = np.random.default_rng(0).poisson(3.0, size=30) + 1.0
    assert target_outliers(y).size == 0
    y[40] = 1e6
    assert target_outliers(y).tolist() == [40]


USUAL = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "t with 3 degrees of freedom": lambda rng, n: rng.standard_t(3.0, size=n),
    "rare counts": lambda rng, n: rng.poisson(0.1, size=n),
    "counts": lambda rng, n: rng.poisson(3.0, size=n),
    "counts with many zeros": lambda rng, n: rng.poisson(5.0, size=n) * (rng.random(n) < 0.1),
    "amounts with many zeros": lambda rng, n: rng.lognormal(size=n) * (rng.random(n) < 0.4),
}


def n_false_warnings(distribution, n_samples, n_draws):
    rng = np.random.default_rng(11)
    return sum(
        target_outliers(USUAL[distribution](rng, n_samples).astype(float)).size > 0 for _ in range(n_draws)
    )


@pytest.mark.parametrize("distribution", USUAL)
def test_usual_targets_cause_no_warning(distribution):
    assert [n_false_warnings(distribution, n_samples, 300) for n_samples in (20, 200)] == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("distribution", USUAL)
@pytest.mark.parametrize(("n_samples", "n_draws"), [(20, 20000), (100, 20000), (1000, 5000), (100000, 100)])
def test_warnings_without_an_outlier_are_rare(distribution, n_samples, n_draws):
    assert n_false_warnings(distribution, n_samples, n_draws) < 0.001 * n_draws + (n_draws < 1000)


# -- the methods --

METHODS = [m for kind in ("selector", "meta") for m in all_methods(kind) if "regression" in m.tasks]
# An absolute loss, or none.
UNMOVED = {"fsv", "l1-svm", "random", "rfe", "rfecv", "sensitivity", "svm-weights"}
WRAPPERS = {"knockoff-selector", "probe-selector", "selector-cv", "stability-selection"}


def of_a_real_target(method):
    selector = method.cls(FisherScore(task="regression")) if method.name in WRAPPERS else method.cls()
    wanted = {"task": "regression", "n_features_to_select": 2, "random_state": 0, "cv": 3, "n_subsamples": 10}
    known = selector.get_params(deep=False)
    if method.name in WRAPPERS | {"consensus"}:
        wanted.pop("n_subsamples")
    return selector.set_params(**{name: value for name, value in wanted.items() if name in known})


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_method_that_is_misled_warns_once(method):
    X, y = problem()
    y_outlier, others = with_outlier(y), np.arange(60) != OUTLIER
    selector = of_a_real_target(method)
    messages = outlier_warnings(lambda: clone(selector).fit(X, y_outlier))
    if method.name in UNMOVED:
        assert messages == []
        if method.name != "random":
            assert clone(selector).fit(X, y_outlier).get_support(indices=True).tolist() == [0, 1]
        return
    assert len(messages) == 1
    assert f"Sample {OUTLIER} (counted from 0) has the target {y_outlier[OUTLIER]:.6g}" in messages[0]
    assert f"which may mislead {type(selector).__name__}. Correct or drop it, use the ranks" in messages[0]
    for X_after, y_after in ((X[others], y_outlier[others]), (X, rankdata(y_outlier))):
        support = (
            clone(selector).fit(X_after, y_after).get_support(indices=True)
        )  # a warning would be an error
        assert support.tolist() == [0, 1]


@pytest.mark.parametrize(
    "selector",
    [
        zeronorm.RFE(task="regression", loss="squared"),
        zeronorm.SensitivityElimination(task="regression", loss="squared"),
        zeronorm.RFECV(task="regression", cv=3),  # it chooses a size by squared errors
    ],
    ids=str,
)
def test_settings_with_squared_errors_are_misled(selector):
    X, y = problem()
    assert len(outlier_warnings(lambda: selector.fit(X, with_outlier(y)))) == 1


@pytest.mark.parametrize(
    ("parameters", "n_warnings"),
    [
        ({}, 1),
        ({"scoring": "neg_mean_squared_error"}, 1),
        ({"scoring": "neg_median_absolute_error"}, 0),
        ({"n_features_to_select": 2}, 0),
    ],
    ids=str,
)
def test_a_number_of_features_chosen_by_squared_errors_is_misled_whatever_the_estimator(
    parameters, n_warnings
):
    X, y = problem()
    selector = zeronorm.RFECV(HuberRegressor(max_iter=1000), cv=3, **parameters)
    messages = outlier_warnings(lambda: selector.fit(X, with_outlier(y, 1e3)))
    assert [message.startswith(f"Sample {OUTLIER} ") for message in messages] == [True] * n_warnings


def test_the_loss_of_an_estimator_of_the_user_is_not_guessed():
    X, y = problem()
    assert (
        outlier_warnings(lambda: zeronorm.RFE(HuberRegressor(max_iter=1000)).fit(X, with_outlier(y, 1e3)))
        == []
    )
    labels = np.where(y > 0, 10**9, 1)
    assert outlier_warnings(lambda: zeronorm.RFECV(LogisticRegression(), cv=3).fit(X, labels)) == []


def test_a_relevance_vector_model_is_misled():
    X, y = problem()
    with pytest.warns(
        TargetOutlierWarning, match=f"Sample {OUTLIER} .*may mislead RelevanceVectorRegressor"
    ) as caught:
        RelevanceVectorRegressor().fit(X, with_outlier(y))
    assert caught[0].filename == __file__
    RelevanceVectorRegressor().fit(X, y)  # a warning would be an error


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.slow), "threading"])
def test_fits_inside_do_not_repeat_it(backend, capfd):
    X, y = problem()
    y = with_outlier(y)
    inner = FisherScore(task="regression")
    meta = [
        Consensus([inner, LassoSelector(task="regression")], task="regression", n_jobs=2),
        AutoSelector([inner, LassoSelector(task="regression")], task="regression", cv=2, n_jobs=2),
        SelectorCV(inner, cv=2, n_jobs=2),
        StabilitySelection(inner, n_jobs=2),
    ]
    with parallel_config(backend=backend):
        for selector in meta:
            assert len(outlier_warnings(lambda selector=selector: selector.fit(X, y))) == 1
    assert "Warning" not in capfd.readouterr().err  # of another process


def test_positions_count_samples_without_a_weight():
    X, y = problem()
    weight = np.ones(60)
    weight[:3] = 0.0
    [message] = outlier_warnings(
        lambda: FisherScore(task="regression").fit(X, with_outlier(y), sample_weight=weight)
    )
    assert f"Sample {OUTLIER} (counted from 0)" in message


def test_a_warning_points_at_the_line_of_the_user():
    X, y = problem()
    with pytest.warns(TargetOutlierWarning) as caught:
        FisherScore(task="regression").fit(as_design(X), with_outlier(y))
    assert caught[0].filename == __file__


def test_an_evaluation_warns_once():
    X, y = problem()
    selectors = [FisherScore(task="regression"), zeronorm.RFE(task="regression")]
    messages = outlier_warnings(
        lambda: evaluate(selectors, X, with_outlier(y), task="regression", sizes=[2], cv=3)
    )
    assert len(messages) == 1
    assert "may mislead the methods and the measured errors" in messages[0]


def test_classes_cause_no_warning_of_outliers():
    X, y = problem()
    assert outlier_warnings(lambda: FisherScore().fit(X, np.where(y > 0, 10**9, 1))) == []
