"""New samples with times to an event: calibration against other packages, risk groups, and their coverage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from zeronorm.evaluation._new_samples import Predicted
from zeronorm.evaluation._new_times import calibration_of_times, risk_groups_of
from zeronorm.resampling.survival._calibration import log_ratio_of_events, slope_and_error
from zeronorm.resampling.survival._curves import kaplan_meier_at
from zeronorm.result._models import SurvivalModel
from zeronorm.selection.target import TimeToEvent

MODEL = SurvivalModel(
    task="survival", target="t to e", features=["x"], mean=[0.0], scale=[1.0], weights=[[1.0]], intercepts=[0.0],
    scheme="single", classes=[], times=np.linspace(0.01, 20.0, 2000).tolist(),
    hazard=np.linspace(0.01, 20.0, 2000).tolist(),
)  # fmt: skip


def drawn(n, seed, weight=1.0, frequency=1.0):
    """Samples whose hazard is e^x (as the model says), or has another weight and frequency; a third is censored."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    time, end = rng.exponential(np.exp(-weight * x) / frequency), rng.exponential(2.0, size=n)
    y = TimeToEvent.of({"event": time <= end, "time": np.minimum(time, end)}).values
    return Predicted(y, x, model=MODEL, X=x[:, None])


def test_slope_and_its_errors_are_those_of_cox_models():
    lifelines = pytest.importorskip("lifelines")
    found = drawn(80, 0, weight=0.7)
    groups = np.repeat(np.arange(20), 4)
    table = pd.DataFrame(
        {"x": found.predictions, "t": found.truth["time"], "e": found.truth["event"], "g": groups}
    )
    fitted = lifelines.CoxPHFitter().fit(table.drop(columns="g"), "t", "e")
    slope, error = slope_and_error(found.truth, found.predictions)
    assert slope == pytest.approx(fitted.params_["x"], rel=1e-5)
    assert error == pytest.approx(fitted.standard_errors_["x"], rel=1e-4)
    clustered = lifelines.CoxPHFitter().fit(table, "t", "e", cluster_col="g", robust=True)
    _, of_groups = slope_and_error(found.truth, found.predictions, groups)
    assert of_groups == pytest.approx(clustered.standard_errors_["x"] * np.sqrt(20 / 19), rel=1e-3)


def test_ratio_of_events_is_a_poisson_regression_with_an_offset():
    statsmodels = pytest.importorskip("statsmodels.api")
    families = statsmodels.families
    for weight in (1.0, 0.2):
        found = drawn(60, 1, weight=weight, frequency=1.5)
        expected = np.maximum(MODEL.expected_events(found.X, found.truth["time"]), 1e-12)
        model = statsmodels.GLM(
            found.truth["event"].astype(float), np.ones(60), families.Poisson(), offset=np.log(expected)
        )
        value, error = log_ratio_of_events(found.truth, expected)
        usual, robust = model.fit(tol=1e-14), model.fit(tol=1e-14, cov_type="HC0")
        assert value == pytest.approx(usual.params[0], rel=1e-8)
        errors = usual.bse[0], robust.bse[0] * np.sqrt(60 / 59)
        assert error == pytest.approx(max(errors), rel=1e-6)
    assert errors[1] > 1.2 * errors[0]  # risks that differ too much make the expected events vary


def test_limits_of_a_kaplan_meier_share():
    lifelines = pytest.importorskip("lifelines")
    y = drawn(50, 2).truth
    curve = lifelines.KaplanMeierFitter().fit(y["time"], y["event"])
    share, low, high = kaplan_meier_at(y["event"], y["time"], 0.5, 1.959963984540054)
    assert share == pytest.approx(float(curve.predict(0.5)))
    limits = curve.confidence_interval_
    at = limits[limits.index <= 0.5].iloc[-1].to_numpy()
    np.testing.assert_allclose([low, high], at, rtol=1e-6)
    assert kaplan_meier_at([0, 0, 1], [1.0, 2.0, 3.0], 2.5, 1.96) == (1.0, None, None)


def test_calibration_finds_too_extreme_risks_and_rare_events():
    found = calibration_of_times(drawn(1500, 3, weight=0.6, frequency=0.5))
    assert found["slope"]["high"] < 0.8
    assert found["intercept"]["high"] < -0.2
    assert found["observed"] < found["expected"]
    assert all(row["n"] >= 100 for row in found["bins"])


def test_intervals_of_a_right_model_cover():
    """100 cohorts of 60 samples; a coverage of 0.95 has a standard error of 0.02."""
    slopes, ratios = [], []
    for seed in range(100):
        found = calibration_of_times(drawn(60, 100 + seed))
        slopes.append(found["slope"]["low"] <= 1.0 <= found["slope"]["high"])
        ratios.append(found["intercept"]["low"] <= 0.0 <= found["intercept"]["high"])
    assert 0.88 <= np.mean(slopes) <= 1.0
    assert 0.88 <= np.mean(ratios) <= 1.0


def test_risk_groups_have_observed_and_predicted_curves():
    predicted = drawn(400, 4)
    found = risk_groups_of(predicted)
    assert [group["name"] for group in found["groups"]] == ["low risk", "medium risk", "high risk"]
    assert found["p_value"] < 1e-6
    for group in found["groups"]:
        at_one = [share for time, share in group["steps"] if time <= 1.0][-1]
        of_model = min(group["predicted"], key=lambda point: abs(point[0] - 1.0))[1]
        assert abs(at_one - of_model) < 0.15
    assert sum(group["events"] for group in found["groups"]) == predicted.truth["event"].sum()
    grouped = Predicted(
        predicted.truth, predicted.predictions, groups=np.arange(400) // 2, model=MODEL, X=predicted.X
    )
    assert risk_groups_of(grouped)["p_value"] is None


def test_without_events_or_with_equal_risks_nothing_is_said():
    x = np.zeros(12)
    y = TimeToEvent.of({"event": np.arange(12) % 2, "time": np.arange(1.0, 13.0)}).values
    found = calibration_of_times(Predicted(y, x, model=MODEL, X=x[:, None]))
    assert found["slope"] is None
    assert found["intercept"] is not None
    assert risk_groups_of(Predicted(y, x, model=MODEL, X=x[:, None])) == {}
    none = TimeToEvent.of({"event": np.zeros(12), "time": np.arange(1.0, 13.0)}).values
    found = calibration_of_times(Predicted(none, np.arange(12.0), model=MODEL, X=np.arange(12.0)[:, None]))
    assert found["slope"] is None
    assert found["intercept"] is None
    assert "bins" not in found
