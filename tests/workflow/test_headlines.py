"""The claim of a headline, tested with whole runs."""

from __future__ import annotations

import numpy as np
import pytest

import zeronorm
from zeronorm.resampling._metrics import as_metric
from zeronorm.result._sentences import error_sentence
from zeronorm.workflow import _chance as chance

from .conftest import simulated


def separated_classes(metric, permutations=0):
    options = {"method": "fisher", "features": 3, "cv": 2, "n_jobs": 1, "metric": metric}
    return zeronorm.select(
        *simulated(2, 3.0, n_samples=24, n_features=10), **options, permutations=permutations
    )


FIXED = {"method": "fisher", "features": 3, "cv": 3}


@pytest.mark.parametrize("metric", ["mse", "mae", "r2"])
def test_a_regression_with_few_training_samples_is_tested_by_the_interval(metric):
    """24 samples whose target is nearly a feature, so that the models fitted here have small errors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 10))
    y = 2 * X[:, 0] + 0.05 * rng.normal(size=24)
    options = {"method": "forward-least-squares", "features": 1, "cv": 2, "n_jobs": 1}
    result = zeronorm.select(X, y, **options, metric=metric, permutations=0)
    assert result.procedure["low"] < result.procedure["high"]
    assert result.headline == "1 of 10 features predicts target"


@pytest.mark.parametrize("metric", ["error_rate", "balanced_error_rate", "auc", "f1_macro"])
def test_classes_are_tested_by_the_interval(metric):
    result = separated_classes(metric)
    assert result.procedure["low"] is not None
    assert result.headline == "3 of 10 features predict target"


def test_auto_has_more_patience_where_nothing_else_tests(monkeypatch):
    monkeypatch.setattr(chance, "AFFORDABLE_SECONDS", 0.0)
    result = separated_classes("average_precision", "auto")
    assert (result.procedure["low"], result.procedure["n_permutations"]) == (None, 19)
    assert result.headline == "3 of 10 features predict target"
    assert separated_classes("error_rate", "auto").procedure["n_permutations"] == 0


@pytest.mark.parametrize("metric", ["average_precision"])
def test_without_a_test_the_headline_says_what_was_measured_and_what_to_do(metric):
    result = separated_classes(metric)
    found = result.procedure
    assert (found["low"], found["no_interval"]) == (
        None,
        "no interval: the value is the same in all test folds",
    )
    assert found["no_interval"] in error_sentence(found)
    assert found["beats_chance"] is None
    assert result.headline.startswith("3 of 10 features selected for target: ")
    for value in (found["value"], found["chance"]):
        assert as_metric(metric).format(value) in result.headline
    assert result.headline.endswith("Not tested against chance: that needs at least 19 permutations")
    reported = [text for text in result.warnings if "was not tested" in text]
    assert len(reported) == 1
    assert "raise the parameter 'permutations' to 19 or more" in reported[0]
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
def test_a_scorer_with_the_best_value_in_every_fold_has_no_interval_and_is_not_denied(metric):
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


def claims(result):
    return "No evidence" not in result.headline


def simulate_headlines(abs_weight, n_sets, **options):
    found = []
    for seed in range(n_sets):
        result = zeronorm.select(*simulated(seed, abs_weight), **options)
        found.append((claims(result), result.procedure["p_value"]))
    return found


def _n_claims(headlines):
    return sum(claim for claim, _ in headlines)


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
