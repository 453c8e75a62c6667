"""Scores of new samples: metrics, rates, calibration and the comparison with what was expected."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn import metrics as sk
from statsmodels.stats.proportion import proportion_confint

from zeronorm.evaluation import METRICS
from zeronorm.evaluation import _new_samples as new


@pytest.fixture
def predicted():
    rng = np.random.default_rng(0)
    truth = np.asarray(["ill", "well"])[rng.integers(2, size=120)]
    decision = (truth == "well") + rng.normal(size=120)
    return new.Predicted(truth, np.where(decision > 0.5, "well", "ill"), decision)


def test_metrics_are_those_of_scikit_learn(predicted):
    t, p = predicted.truth, predicted.predictions
    error = new.measured(METRICS["error_rate"], predicted)
    assert error["value"] == pytest.approx(1 - sk.accuracy_score(t, p))
    wilson = proportion_confint(int((t != p).sum()), len(t), method="wilson")
    np.testing.assert_allclose(
        [error["low"], error["high"]], wilson, rtol=1e-6
    )  # no training samples: no widening
    balanced = new.measured(METRICS["balanced_error_rate"], predicted)
    assert balanced["value"] == pytest.approx(1 - sk.balanced_accuracy_score(t, p))
    area = new.measured(METRICS["auc"], predicted)
    assert area["value"] == pytest.approx(sk.roc_auc_score(t, predicted.decision))
    assert area["low"] < area["value"] < area["high"]


def test_sensitivity_and_specificity_have_wilson_intervals(predicted):
    rows = new.class_rates(predicted, ["ill", "well"])
    (tn, fp), (fn, tp) = sk.confusion_matrix(predicted.truth, predicted.predictions)
    assert rows[1]["sensitivity"]["value"] == pytest.approx(tp / (tp + fn))
    assert rows[1]["specificity"]["value"] == pytest.approx(tn / (tn + fp))
    found = rows[1]["sensitivity"]
    wilson = proportion_confint(tp, tp + fn, method="wilson")
    np.testing.assert_allclose([found["low"], found["high"]], wilson, rtol=1e-6)
    assert new.class_rates(predicted, ["ill", "other"])[1]["sensitivity"] is None


def test_samples_of_one_patient_widen_the_intervals(predicted):
    groups = np.repeat(np.arange(30), 4)
    order = np.argsort(predicted.truth != predicted.predictions, kind="stable")
    alike = new.Predicted(
        *(values[order] for values in (predicted.truth, predicted.predictions, predicted.decision))
    )
    grouped = new.Predicted(alike.truth, alike.predictions, alike.decision, groups)
    alone, together = (new.measured(METRICS["error_rate"], each) for each in (alike, grouped))
    assert together["value"] == alone["value"]
    assert together["high"] - together["low"] > 1.5 * (alone["high"] - alone["low"])


def test_calibration_of_two_classes_is_logistic_recalibration():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.05, 0.95, size=300)
    y = (rng.random(300) < p).astype(int)
    found = new.calibration_of_classes(y, np.column_stack([1 - p, p]))
    logit = np.log(p / (1 - p))
    free = sm.Logit(y, sm.add_constant(logit)).fit(disp=0)
    large = sm.GLM(y, np.ones(300), offset=logit, family=sm.families.Binomial()).fit()
    assert found["slope"]["value"] == pytest.approx(free.params[1], rel=1e-6)
    np.testing.assert_allclose([found["slope"]["low"], found["slope"]["high"]], free.conf_int()[1], rtol=1e-5)
    assert found["intercept"]["value"] == pytest.approx(large.params[0], rel=1e-6, abs=1e-8)


def test_calibration_of_numbers_is_a_regression_with_robust_errors():
    rng = np.random.default_rng(2)
    predictions = rng.normal(10, 2, size=80)
    truth = 1 + 0.9 * predictions + rng.normal(size=80) * np.abs(predictions - 10)
    found = new.calibration_of_numbers(truth, predictions)
    reference = sm.OLS(truth, sm.add_constant(predictions)).fit(cov_type="HC3", use_t=True)
    limits = [[found[name]["low"], found[name]["high"]] for name in ("intercept", "slope")]
    np.testing.assert_allclose(limits, reference.conf_int(), rtol=1e-8)
    assert new.calibration_of_numbers(truth, np.full(80, 3.0))["slope"] is None


def test_equal_probabilities_are_in_one_group():
    hit = np.arange(40) < 20
    (row,) = new.calibration_bins(np.full(40, 0.5), hit)
    assert (row["n"], row["value"]) == (40, 0.5)


def limits(value, low, high):
    return {"value": value, "low": low, "high": high}


@pytest.mark.parametrize(
    ("metric", "found", "expected", "verdict"),
    [
        ("error_rate", limits(0.16, 0.1, 0.24), limits(0.12, 0.08, 0.18), "compatible"),
        ("error_rate", limits(0.30, 0.24, 0.37), limits(0.12, 0.08, 0.18), "worse"),
        ("error_rate", limits(0.02, 0.0, 0.04), limits(0.12, 0.08, 0.18), "compatible"),
        ("auc", limits(0.6, 0.5, 0.7), limits(0.9, 0.85, 0.95), "worse"),
        ("mse", limits(4.0, 3.0, 5.5), limits(1.0, 0.8, 1.3), "worse"),
        ("error_rate", limits(0.0, None, None), limits(0.12, 0.08, 0.18), ""),
    ],
)
def test_the_verdict_follows_from_the_interval_of_the_difference(metric, found, expected, verdict):
    compared = new.against_expected(found, expected, METRICS[metric])
    assert compared["verdict"] == verdict
    if verdict == "worse":
        assert compared["difference_low"] * compared["difference_high"] > 0


def test_the_difference_of_normal_means_has_the_usual_interval():
    # with symmetric intervals the square-and-add limits are those of a z interval of the difference
    z = stats.norm.ppf(0.975)
    compared = new.against_expected(
        limits(0.5, 0.5 - z * 0.03, 0.5 + z * 0.03),
        limits(0.4, 0.4 - z * 0.04, 0.4 + z * 0.04),
        METRICS["auc"],
    )
    np.testing.assert_allclose(
        [compared["difference_low"], compared["difference_high"]], [0.1 - z * 0.05, 0.1 + z * 0.05]
    )
