"""The effect of each feature alone, and the calibration of held-out predictions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import zeronorm
from zeronorm.report import ReportData
from zeronorm.report._chart import Run
from zeronorm.report.charts._calibration import HeldOutCalibrationChart
from zeronorm.report.charts._predictions import ConfusionChart, decided_folds
from zeronorm.report.charts._volcano import VolcanoChart
from zeronorm.workflow._features import Effects


@pytest.fixture(scope="module")
def report_data():
    result = zeronorm.select("t-cells", method="fisher", features=4, permutations=0)
    return ReportData(result, result.records)


def run_with(effects, columns):
    return Run(None, None, "classification", None, None, None, np.asarray(columns), [], effects=effects)


def test_the_smallest_p_values_and_the_selected_features_are_kept():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=5000)
    d = rng.normal(size=5000)
    fold = np.full(5000, np.nan)
    kept = VolcanoChart.collect(run_with(Effects(None, d, "cohens_d", fold, p, p), [int(np.argmax(p))]))
    shown = set(kept["features"])
    assert set(np.argsort(p)[:500]) <= shown
    assert int(np.argmax(p)) in shown
    assert len(shown) <= 1001
    np.testing.assert_allclose(kept["effect"], d[kept["features"]], atol=1e-6)
    assert kept["n_discoveries"] == np.count_nonzero(p <= 0.05)


def test_effects_are_logarithms_of_ratios_where_all_features_have_one():
    ones = np.ones(3)
    effects = Effects(None, ones, "cohens_d", np.array([2.0, 0.5, 1.0]), ones, ones)
    kept = VolcanoChart.collect(run_with(effects, [0]))
    assert (kept["kind"], kept["effect"]) == ("log2_fold_change", [1.0, -1.0, 0.0])
    effects = Effects(None, ones, "hazard_ratio", ones * np.nan, ones, ones)
    assert VolcanoChart.collect(run_with(effects, [0])) is None


def test_the_selected_features_are_marked(report_data):
    chart = VolcanoChart.from_data(report_data)
    marked = {dot.tip.split(":")[0] for dot in chart.picture().dots if dot.is_marked}
    assert marked == {feature.name for feature in report_data.result.selected}
    assert len(chart.table()[1]) == len(chart.features) == 765


def test_calibration_counts_every_held_out_sample_once(report_data):
    chart = HeldOutCalibrationChart.from_data(report_data)
    assert sum(row["n"] for row in chart.bins) == 122
    assert {name for name, value in chart.coefficients if value} == {"slope", "intercept"}


def test_shuffled_decisions_are_not_calibrated_by_their_own_fold(monkeypatch):
    """Decision values that say nothing give probabilities near the share of the class."""
    rng = np.random.default_rng(1)
    parts = [(rng.random(60) < 0.3, rng.normal(size=60).tolist()) for _ in range(5)]
    monkeypatch.setattr("zeronorm.report.charts._calibration.decided_folds", lambda *_: ("ill", parts))
    result = SimpleNamespace(chosen_method="m", data={"task": "classification", "target": "t"})
    chart = HeldOutCalibrationChart.from_data(SimpleNamespace(result=result))
    assert all(abs(row["predicted"] - 0.3) < 0.12 for row in chart.bins)


def test_sensitivity_and_specificity_are_shares_of_the_classes(report_data):
    chart = ConfusionChart.from_data(report_data)
    (a, b), (c, d) = chart.counts
    (headers, rows) = chart.table()
    assert headers[-2:] == ("sensitivity", "specificity")
    assert float(rows[1][-2]) == pytest.approx(d / (c + d), abs=1e-3)
    assert float(rows[1][-1]) == pytest.approx(a / (a + b), abs=1e-3)
    assert "sensitivity" in chart.caption
    assert decided_folds(report_data, "fisher")[0] == chart.classes[1]
