"""Times to an event from a table to the result, the saved model and the report."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import zeronorm
from zeronorm.cli._main import run
from zeronorm.evaluation._records import columns_of
from zeronorm.report import ReportData
from zeronorm.report._chart import charts_of
from zeronorm.resampling.predictors._default import default_estimator
from zeronorm.resampling.survival._concordance import concordance
from zeronorm.result._models import LinearModel
from zeronorm.selection.target import TimeToEvent

N, P = 90, 12


def frame_of(effect: float, seed: int = 0) -> pl.DataFrame:
    """A table in which the first two features raise the risk; a third of the samples is censored."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, P))
    time = rng.exponential(10 * np.exp(-effect * (X[:, 0] + X[:, 1])))
    end = rng.exponential(20.0, size=N)
    columns = {f"g{i}": X[:, i] for i in range(P)}
    return pl.DataFrame(
        columns | {"months": np.minimum(time, end), "died": np.where(time <= end, "yes", "no")}
    )


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return frame_of(1.0)


@pytest.fixture(scope="module")
def result(frame):
    return zeronorm.select(
        frame, time="months", event="died", method="cox-score", features=3, permutations=19, max_features=6
    )


def test_the_result_names_the_features_and_how_well_they_predict(result):
    assert {"g0", "g1"} <= set(result.features)
    found = result.procedure
    assert found["metric"] == "concordance"
    assert found["chance"] == 0.5
    assert 0.65 < found["low"] < found["value"] < found["high"] <= 1.0
    assert found["p_value"] == 0.05
    assert "predict months to died" in result.headline
    assert any("The event is 'died' = 'yes'" in note for note in result.notes)
    assert "Cox regression with a ridge penalty" in result.provenance["predictor"]


def test_hazard_ratios_are_those_of_single_features(result, frame):
    lifelines = pytest.importorskip("lifelines")
    first = next(feature for feature in result.selected if feature.name == "g0")
    values = frame["g0"].to_numpy()
    table = {"x": values / values.std(), "time": frame["months"], "event": frame["died"] == "yes"}
    fitted = lifelines.CoxPHFitter().fit(pl.DataFrame(table).to_pandas(), "time", "event")
    assert first.effect == pytest.approx(float(np.exp(fitted.params_["x"])), rel=1e-4)
    assert first.effect_kind == "hazard_ratio"
    assert first.direction == "raises the risk"
    assert first.p_value < 1e-4


def test_records_hold_the_outcomes_and_give_the_concordance_again(result):
    columns = columns_of(result.records)
    rows = zip(columns["truth"], columns["predictions"], columns["concordance"], strict=True)
    assert all(concordance(truth, risk) == pytest.approx(value) for truth, risk, value in rows)


def test_a_saved_model_predicts_as_the_fitted_one(result, frame, tmp_path):
    result.model.save(tmp_path / "model.json")
    loaded = LinearModel.load(tmp_path)
    X = frame.select(loaded.features).to_numpy()
    y = TimeToEvent.prepared(
        {"time": frame["months"].to_numpy(), "event": (frame["died"] == "yes").to_numpy()}
    )
    fitted = default_estimator(TimeToEvent, n_samples=N).fit(X, y)
    assert np.allclose(loaded.predict(X), fitted.predict(X), atol=1e-10)
    times = [1.0, 5.0, 30.0]
    assert np.allclose(loaded.survival(X, times), fitted.predict_survival_function(X, times), atol=1e-10)
    found = zeronorm.apply(loaded, frame).samples
    assert np.allclose(found["prediction"], fitted.predict(X), atol=1e-10)
    median = np.asarray([np.nan if time is None else time for time in found["median_time"]])
    known = np.isfinite(median)
    at_median = np.diag(fitted.predict_survival_function(X[known], median[known]))
    assert np.all(at_median <= 0.5)
    before = np.diag(fitted.predict_survival_function(X[known], median[known] - 1e-9))
    assert np.all(before > 0.5)


def test_a_second_cohort_is_scored_against_what_the_selection_promised(result, tmp_path):
    new = frame_of(1.0, seed=9).with_columns(died=pl.when(pl.int_range(N) == 3).then(None).otherwise("died"))
    cohort = zeronorm.apply(result.model, new, time="months", event="died=yes")
    score = cohort.scores[0]
    risk = np.asarray(cohort.samples["prediction"])
    known = [event is not None for event in cohort.samples["event"]]
    y = [
        (e, t) for e, t in zip(cohort.samples["event"], cohort.samples["time"], strict=True) if e is not None
    ]
    assert score["metric"] == "concordance"
    assert score["value"] == pytest.approx(concordance(y, risk[known]))
    assert score["low"] < score["value"] < score["high"]
    assert score["expected"] == pytest.approx(result.procedure["value"])
    assert score["verdict"] == "compatible"
    assert cohort.data["n_scored"] == N - 1
    assert [row["metric"] for row in cohort.scores] == [
        "concordance",
        "uno_concordance",
        "integrated_brier_score",
    ]
    assert all(row["low"] < row["value"] < row["high"] for row in cohort.scores)
    assert all(row["expected"] is not None for row in cohort.scores)
    assert cohort.calibration["observed"] == sum(event for event, _ in y)
    assert "the ratio is" in cohort.sentences[1]
    page = cohort.report(tmp_path).read_text(encoding="utf-8")
    assert "Survival by predicted risk" in page
    assert "after" in page[page.index("the median time of the events") - 30 :]
    assert "<td><bdi>wrong</bdi></td>" not in page
    short = new.with_columns(
        months=pl.col("months") / 100
    )  # other times than those of the expected Brier score
    row = zeronorm.apply(result.model, short, time="months", event="died=yes").scores[2]
    assert (row["value"] is not None, row["expected"], row["verdict"]) == (True, None, "")
    shuffled = new.with_columns(months=pl.col("months").reverse(), died=pl.col("died").reverse())
    assert (
        zeronorm.apply(result.model, shuffled, time="months", event="died=yes").scores[0]["verdict"]
        == "worse"
    )
    with pytest.raises(ValueError, match="Use the 'time' parameter and the 'event' parameter instead"):
        zeronorm.apply(result.model, new, target="months")


def test_a_damaged_model_is_an_error(result, tmp_path):
    result.model.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    content["hazard"] = content["hazard"][:-1]
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="'hazard'"):
        LinearModel.load(tmp_path)


def test_the_report_shows_curves_of_risk_groups(result, tmp_path):
    charts = {chart.name: chart for chart in charts_of(ReportData(result, result.records))}
    survival = charts["survival"]
    assert survival.names == ("low risk", "high risk")
    assert sum(row[0] for row in survival.at_risk) == N
    assert survival.p_value < 0.01
    heads, rows = survival.table()
    assert len(heads) == 1 + len(survival.times)
    assert [row[0] for row in rows] == list(survival.names)
    assert "features" not in charts
    page = result.report(tmp_path / "page").read_text(encoding="utf-8")
    assert "Survival by predicted risk" in page
    assert "hazard ratio per standard deviation" in page
    assert survival.plot().axes


def test_nothing_is_claimed_where_nothing_predicts():
    claims = []
    for seed in range(4):
        result = zeronorm.select(
            frame_of(0.0, seed), time="months", event="died", method="cox-score", features=2, permutations=0
        )
        claims.append(result.procedure["beats_chance"])
    assert not any(claims)


def test_methods_are_compared(frame):
    result = zeronorm.compare(
        frame, time="months", event="died", methods=["cox-score"], features=2, max_features=3
    )
    values = {row["method"]: row["value"] for row in result.table}
    assert values["cox-score"] > values["random"]
    assert values["baseline"] == 0.5


def test_the_command_selects_and_applies(frame, tmp_path):
    table = tmp_path / "patients.csv"
    frame.write_csv(table)
    out = tmp_path / "out"
    options = ["--time", "months", "--event", "died=yes", "-m", "cox-score", "-k", "2", "--permutations", "0"]
    run(
        [
            "select",
            str(table),
            *options,
            "--save-model",
            "--out",
            str(out),
            "--quiet",
            "--write-table",
            str(tmp_path / "small.csv"),
        ]
    )
    assert json.loads((out / "result.json").read_text())["data"]["task"] == "survival"
    run(["apply", str(out), str(table), "--out", str(tmp_path / "risks.csv")])
    run(
        [
            "apply",
            str(out),
            str(table),
            "--time",
            "months",
            "--event",
            "died",
            "--out",
            str(tmp_path / "scored"),
        ]
    )
    assert (tmp_path / "scored" / "report.html").exists()
    assert pl.read_csv(tmp_path / "risks.csv").columns == ["prediction", "median_time"]
    assert pl.read_csv(tmp_path / "small.csv").columns[:2] == ["event", "time"]


def test_too_few_events_are_errors_and_warnings(frame):
    few = frame.with_columns(died=pl.when(pl.int_range(N) < 3).then(pl.lit("yes")).otherwise(pl.lit("no")))
    with pytest.raises(ValueError, match="3 events among 90 samples are too few for cv=5"):
        zeronorm.select(few, time="months", event="died", method="cox-score", features=2)
    some = frame.with_columns(died=pl.when(pl.int_range(N) < 15).then(pl.lit("yes")).otherwise(pl.lit("no")))
    result = zeronorm.select(
        some, time="months", event="died", method="cox-score", features=2, permutations=0, max_features=2
    )
    assert any("15 events for 5 folds" in warning for warning in result.warnings)
    assert any("few events (15 among 90 samples)" in warning for warning in result.warnings)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"predictor": "gaussian"}, "'gaussian' has no model of survival"),
        ({"metric": "error_rate"}, "does not suit a survival"),
        ({"method": "fisher"}, "the task is survival"),
    ],
)
def test_options_that_do_not_suit_are_errors(frame, options, found):
    given = {"method": "cox-score", "features": 2, **options}
    with pytest.raises(ValueError, match=found):
        zeronorm.select(frame, time="months", event="died", **given)


@pytest.mark.parametrize("control", ["fdr", "fwer", "expected"])
def test_false_features_are_limited_by_probes(frame, control):
    result = zeronorm.select(
        frame, time="months", event="died", control=control, permutations=0, max_features=2
    )
    assert result.chosen_method == "probe-selector"
    assert {"g0", "g1"} <= set(result.features)
    assert len(result.features) <= 4


def test_auto_ranks_and_sizes_by_cox_regression(frame):
    result = zeronorm.select(frame, time="months", event="died", permutations=0, cv=2, max_features=4)
    assert {"g0", "g1"} <= set(result.features)
    assert any("cox-score" in note for note in result.notes)


def test_other_metrics_of_survival(frame):
    y = {"time": frame["months"].to_numpy(), "event": (frame["died"] == "yes").to_numpy()}
    names = ["concordance", "uno_concordance", "integrated_brier_score", "calibration_slope"]
    records = zeronorm.evaluate(
        zeronorm.CoxScore(2),
        frame.select("g0", "g1", "g2").to_numpy(),
        y,
        task="survival",
        metrics=names,
        cv=3,
    )
    assert records["error"].to_list() == [None] * 3
    assert records["integrated_brier_score"].max() < 0.25
    assert 0.3 < records["calibration_slope"].mean() < 3.0


@pytest.mark.skipif(not os.environ.get("ZERONORM_DATA"), reason="ZERONORM_DATA is not set")
def test_real_tumours():
    """Gene expression of ovarian tumours: survival depends on it a little; with permuted times on nothing."""
    held = np.load(Path(os.environ["ZERONORM_DATA"]) / "ovarian_expression.npz", allow_pickle=False)
    X = held["X"].astype(np.float64)  # 1823 values are missing
    given = {"method": "consensus", "features": 10, "max_features": 10, "permutations": 0}
    result = zeronorm.select(X, time=held["time"], event=held["event"], **given)
    assert 0.56 < result.procedure["value"] < 0.72
    assert result.model.fill
    order = np.random.default_rng(0).permutation(len(X))
    permuted = zeronorm.select(X, time=held["time"][order], event=held["event"][order], **given)
    assert not permuted.procedure["beats_chance"]
