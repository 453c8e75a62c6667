"""Held-out predictions by sample: the table, the map, precision and recall, predicted against observed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.decomposition import PCA
from sklearn.metrics import precision_score

import zeronorm
from report.made_records import made_records
from zeronorm import FisherScore, evaluate
from zeronorm.report import ReportData
from zeronorm.report._html import render_report, report_data_of
from zeronorm.report._samples import sample_predictions, sample_table
from zeronorm.report.charts._observed import ObservedChart
from zeronorm.report.charts._precision import PrecisionChart, _precision_at
from zeronorm.report.charts._predictions import RocChart, fold_range
from zeronorm.report.charts._samples import SamplesChart


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=60) > 0, "yes", "no")
    return zeronorm.select(X, y, method="fisher", features=3, cv=3, repeats=2, permutations=0), X, y


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6))
    y = X[:, 0] + 0.3 * rng.normal(size=40)
    return zeronorm.select(X, y, task="regression", method="fisher", features=2, cv=4, permutations=0), y


def own_rows(result):
    return result.records.filter(pl.col("size").is_null())


def test_every_sample_stands_once_with_all_its_predictions(classes):
    result, _, y = classes
    samples = sample_predictions(ReportData(result, result.records))
    assert [sample.row for sample in samples] == list(range(60))
    assert [sample.truth for sample in samples] == y.tolist()
    assert {sample.n_predictions for sample in samples} == {2}
    wrong = np.zeros(60)
    for row in own_rows(result).iter_rows(named=True):
        wrong[row["test_rows"]] += np.array(row["predictions"]) != np.array(row["truth"])
    assert [sample.n_wrong for sample in samples] == wrong.tolist()


def test_wrong_samples_come_first_in_the_table(classes):
    result, _, _ = classes
    table = sample_table(ReportData(result, result.records))
    flags = [row.is_wrong for row in table.rows]
    assert flags == sorted(flags, reverse=True)
    assert f"{sum(flags)} of 60 are wrong" in table.text
    assert table.headings == ("sample", "truth", "prediction", "wrong", "decision value", "predictions")


def test_the_largest_errors_of_a_real_target_come_first(numbers):
    result, y = numbers
    table = sample_table(ReportData(result, result.records))
    errors = [abs(float(row.cells[2])) for row in table.rows]
    assert errors == sorted(errors, reverse=True)
    by_row = {int(row.name) - 1: float(row.cells[0]) for row in table.rows}
    np.testing.assert_allclose([by_row[i] for i in range(40)], y, rtol=1e-5)


def test_names_of_samples_reach_the_table_and_are_escaped():
    rng = np.random.default_rng(2)
    pd = pytest.importorskip("pandas")
    y = np.repeat(["a", "b"], 15)
    names = [f"<b>{i}" for i in range(30)]
    X = pd.DataFrame(rng.normal(size=(30, 4)) + 2.0 * (y == "b")[:, None], index=names)
    result = zeronorm.select(X, y, method="fisher", features=2, cv=3, permutations=0)
    assert {s.name for s in sample_predictions(ReportData(result, result.records))} == set(names)
    page = render_report(result, result.records)
    assert "&lt;b&gt;7" in page
    assert "<b>7" not in page


def test_a_comparison_has_no_table_of_samples():
    records = made_records("error_rate", {"one": (0.1, 0.2), "other": (0.2, 0.3)})
    assert sample_table(report_data_of(records, n_features=40)) is None


def test_the_map_shows_the_principal_components_of_the_selected_features(classes):
    result, X, y = classes
    chart = SamplesChart.from_data(ReportData(result, result.records))
    chosen = X[:, [feature.index for feature in result.selected]]
    pca = PCA(2).fit((chosen - chosen.mean(axis=0)) / chosen.std(axis=0))
    expected = pca.transform((chosen - chosen.mean(axis=0)) / chosen.std(axis=0))
    np.testing.assert_allclose(np.abs(chart.positions), np.abs(expected), atol=1e-9)
    np.testing.assert_allclose(chart.shares, pca.explained_variance_ratio_[:2])
    assert [chart.classes[group] for group in chart.groups] == y.tolist()
    wrong = {s.row for s in sample_predictions(ReportData(result, result.records)) if s.is_wrong}
    assert set(np.flatnonzero(chart.wrong)) == wrong


def test_decision_values_of_the_procedure_are_kept_and_give_the_curves(classes):
    result, _, _ = classes
    assert all(value is not None for value in own_rows(result)["decision"])
    report_data = ReportData(result, result.records)
    assert RocChart.from_data(report_data) is not None
    chart = PrecisionChart.from_data(report_data)
    assert chart.positive == "yes"
    ((_, curve, area),) = chart.curves
    assert 0.5 < area <= 1.0
    assert all(low <= mean <= high for mean, low, high in curve)


def test_decision_values_change_no_prediction():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(50, 5)), np.arange(50) % 2
    usual = evaluate({"f": FisherScore(2)}, X, y, cv=3, sizes=[None, 2], metrics=("error_rate",))
    own, fixed = (usual.filter(pl.col("size").is_null() == flag)["predictions"] for flag in (True, False))
    assert own.to_list() == fixed.to_list()  # the second are computed without decision values


def test_precision_at_a_recall_is_the_best_of_all_thresholds_that_reach_it():
    rng = np.random.default_rng(4)
    truth = rng.random(40) < 0.4
    decision = truth + rng.normal(size=40)
    found = _precision_at(truth, decision)
    for wanted, value in zip(np.linspace(0, 1, len(found)), found, strict=True):
        reached = [
            precision_score(truth, decision >= threshold)
            for threshold in decision
            if np.mean(decision[truth] >= threshold) >= wanted - 1e-12
        ]
        assert value == pytest.approx(max(reached) if wanted > 0 else 1.0)


def test_the_range_over_folds_is_from_the_smallest_to_the_largest():
    assert fold_range(np.array([[0.0, 1.0], [0.5, 0.5]])) == ((0.25, 0.0, 0.5), (0.75, 0.5, 1.0))


def test_predicted_and_observed_values_are_those_of_the_records(numbers):
    result, y = numbers
    chart = ObservedChart.from_data(ReportData(result, result.records))
    np.testing.assert_allclose(chart.observed, y)
    predicted = np.zeros(40)
    for row in own_rows(result).iter_rows(named=True):
        predicted[row["test_rows"]] = row["predictions"]
    np.testing.assert_allclose(chart.predicted, predicted)
    assert chart.picture().svg("x", "title").count('class="mark"') == 40
    assert (
        ObservedChart.from_data(report_data_of(made_records("error_rate", {"m": (0.1, 0.2)}), n_features=40))
        is None
    )
