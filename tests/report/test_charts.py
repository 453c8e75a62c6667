"""The numbers in charts: direction, intervals, bounds, values that are not finite; one file per chart."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import confusion_matrix, roc_auc_score

import zeronorm
import zeronorm.report._chart as chart_module
from report.made_records import made_records
from zeronorm import FisherScore, SelectorCV
from zeronorm.evaluation import _summary as summary
from zeronorm.evaluation import evaluate
from zeronorm.report import ReportData, render, render_report
from zeronorm.report._cells import Bar, Bars, Grid
from zeronorm.report._chart import Chart, chart_classes, charts_of, register_chart
from zeronorm.report._html import report_data_of
from zeronorm.report._lines import Lines, Point, Series, scale
from zeronorm.report._svg import Axes, label_room, log_ticks, text_width, value_range
from zeronorm.report._text import is_largest_tried, key_figures, next_steps
from zeronorm.report.charts._error import ErrorChart
from zeronorm.report.charts._features import _class_names, feature_values
from zeronorm.report.charts._importance import ImportanceChart
from zeronorm.report.charts._path import path_figure
from zeronorm.report.charts._predictions import ConfusionChart, RocChart, roc_rates
from zeronorm.report.charts._sizes import SizesChart
from zeronorm.selection._path import SelectionPath

NEAR = {"good": (0.96, 0.97, 0.98, 0.95), "bad": (0.61, 0.66, 0.63, 0.60)}


@pytest.mark.parametrize("metric", ["auc"])
def test_a_score_is_read_the_right_way_round(metric):
    report_data = report_data_of(made_records(metric, NEAR), n_features=40)
    assert report_data.greater_is_better
    tiles = [tile for _, group in key_figures(report_data) for tile in group]
    assert tiles[0].value == "good"
    assert tiles[0].label.startswith("highest ")
    assert "0.965" in tiles[0].label
    assert "error" not in tiles[0].label
    assert ErrorChart.from_data(report_data).caption.startswith("Higher is better")
    text = render(made_records(metric, NEAR), n_features=40)
    assert "lowest" not in text


@pytest.mark.parametrize(("name", "heading"), [("baseline", "chance"), ("random", "random features")])
def test_random_features_are_not_called_chance(name, heading):
    text = render(
        made_records("error_rate", {"good": (0.1, 0.12, 0.11), name: (0.5, 0.52, 0.48)}), n_features=40
    )
    assert f"p against {heading}</th>" in text


def test_an_error_is_read_the_right_way_round():
    report_data = report_data_of(made_records("error_rate", NEAR), n_features=40)
    tiles = [tile for _, group in key_figures(report_data) for tile in group]
    assert (tiles[0].value, tiles[0].label) == ("bad", "lowest error rate: 62.5 %")
    assert ErrorChart.from_data(report_data).caption.startswith("Lower is better")


def test_intervals_in_the_page_are_those_of_the_evaluation_and_wider_than_the_plain_ones():
    values = np.asarray([0.40, 0.42, 0.44, 0.46])
    records = made_records("error_rate", {"m": values})
    own = summary.error_curves(records, "error_rate")[0].own
    plain = values.std(ddof=1) / np.sqrt(4) * 3.182  # t quantile with 3 degrees of freedom
    assert (
        own.high - own.low > 2 * plain * 1.3
    )  # √(1/4 + 10/30) instead of √(1/4) would be 1.53 times as wide
    rows = ErrorChart.from_records(records).table()[1]
    procedure = next(row for row in rows if row[1] == "procedure")
    assert procedure[3:] == ["43.0 %", f"{100 * own.low:.1f} %", f"{100 * own.high:.1f} %"]
    point = ErrorChart.from_records(records).picture().series[0].points[-1]
    assert (point.low, point.high) == (own.low, own.high)


def test_every_number_is_computed_once(comparison, monkeypatch):
    counts = dict.fromkeys(("error_curves", "stabilities"), 0)

    def counted(name):
        original = getattr(summary, name)

        def call(*arguments):
            counts[name] += 1
            return original(*arguments)

        return call

    for name in counts:
        monkeypatch.setattr(summary, name, counted(name))
    render_report(*comparison)
    assert counts == {"error_curves": 1, "stabilities": 1}


def test_a_new_chart_is_one_class(comparison, monkeypatch):
    monkeypatch.setattr(chart_module, "_CHARTS", dict(chart_module._CHARTS))

    @register_chart("toy", order=99)
    @dataclass(frozen=True)
    class ToyChart(Chart):
        n_methods: int
        title = "Toy"
        caption = "A toy."

        @classmethod
        def from_data(cls, report_data):
            return cls(len(report_data.labels))

        def picture(self):
            return Bars([Bar("methods", 1.0, str(self.n_methods), "tip", True)], "count")

    assert [chart.name for chart in chart_classes()][-2:] == ["toy", "history"]  # orders 99 and 100
    assert 'id="figure-toy"' in render_report(*comparison)


# -- values that are not finite, bounds, positions --


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_that_are_not_finite_are_left_out(bad):
    lines = Lines([Series("m", (Point(1, 0.5), Point(2, bad), Point(4, 0.3)))], Axes("x", "y"))
    drawn = lines.svg("id", "title", 520)
    assert drawn.count('class="mark"') == 2
    assert not re.search(r"\b(nan|inf)\b", drawn.lower())
    only_bad = Lines([Series("m", (Point(1, bad),))], Axes("x", "y"))
    assert only_bad.svg("id", "title", 520) == ""


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_never_reach_the_page(bad):
    values = {"good": (0.1, 0.2, 0.3, 0.2), "broken": (0.3, bad, 0.4, 0.3)}
    text = render(made_records("error_rate", values), n_features=40)
    shown = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.S)
    assert not re.search(r"\b(nan|inf)\b", shown.lower())


def test_an_empty_selection_stands_at_zero():
    lines = Lines([Series("m", (Point(0, 0.5), Point(1, 0.4), Point(8, 0.3)))], Axes("n", "y"))
    drawn = lines.svg("id", "title", 520)
    assert re.findall(r'x-tick">([^<]+)', drawn)[:2] == ["0", "1"]


def test_data_for_the_script_is_valid_json_even_with_infinities():
    grid = Grid(rows=["a"], columns=["b", "c"], levels=[[np.nan, np.inf]], palette="d", texts=["w"])
    text = str(grid.data("x"))
    assert json.loads(text[text.index(">") + 1 : text.rindex("<")])["levels"] == [[None, None]]


def test_scores_that_are_not_finite_are_not_drawn(strange_selection):
    figures = {"importance": {"features": [3, 0, 2, 1], "scores": [2.0, float("inf"), None, 1.0]}}
    result = selection_with(strange_selection, figures=figures)
    found = ImportanceChart.from_data(ReportData(result, strange_selection[1]))
    assert found.names == (result.name_of(3), result.name_of(1))
    assert found.scores == (2.0, 1.0)


def test_axes_stay_within_what_is_possible():
    assert value_range([0.01, 0.4], (0.0, 1.0))[0] == 0.0
    assert value_range([0.5, 0.99], (0.0, 1.0))[1] == 1.0
    assert value_range([-0.2, 3.0], (0.0, None))[0] == 0.0
    assert value_range([-0.2, 0.9], (None, 1.0))[0] < -0.2
    low, high = value_range([5.0, 5.0])
    assert low < 5.0 < high


def test_mse_axis_starts_at_zero_although_an_interval_reaches_below(regression_selection):
    report_data = ReportData(*regression_selection)
    drawn = ErrorChart.from_data(report_data).picture().svg("id", "t", 520)
    ticks = [float(t) for t in re.findall(r'y-tick">(-?[\d.]+)', drawn)]
    assert min(ticks) == 0.0


def test_logarithmic_ticks():
    assert log_ticks(1, 100) == [1, 2, 5, 10, 20, 50, 100]
    assert log_ticks(1, 1e6) == [10.0**k for k in range(7)]


def test_names_at_the_ends_do_not_cover_each_other():
    moved = scale([10.0, 11.0, 12.0, 90.0], 14.0, 0.0, 100.0)
    assert np.diff(moved).min() >= 14.0 - 1e-9
    assert moved[-1] <= 100.0
    crowded = scale([50.0] * 30, 14.0, 0.0, 100.0)
    assert crowded == sorted(crowded)
    assert crowded[0] >= -1e-9
    assert crowded[-1] <= 100.0 + 1e-9


def test_twenty_lines_differ_in_colour_shape_or_dash():
    from zeronorm.report._svg import series_class, shape_number

    looks = {(series_class(i), shape_number(i)) for i in range(20)}
    assert len(looks) == 20


# -- sizes: the procedure and the final set --


def test_the_chosen_size_is_on_the_path():
    path = SelectionPath.from_scores(np.arange(2000.0))
    assert 53 not in path_figure(path, 1000)["sizes"]
    assert 53 in path_figure(path, 1000, chosen=53)["sizes"]


def test_the_procedure_and_the_final_set_have_their_own_tiles(regression_selection):
    result, records = regression_selection
    report_data = ReportData(result, records)
    headings = [heading for heading, _ in key_figures(report_data)]
    assert [heading.split(",")[0] for heading in headings] == ["The procedure", "The final set"]
    sizes = report_data.selected_sizes[result.chosen_method]
    counts = [row["n_selected"] for row in records.iter_rows(named=True) if row["size"] is None]
    assert sorted(sizes) == sorted(counts)
    chart = ErrorChart.from_data(report_data)
    assert chart.final_size == len(result.selected)
    assert len(chart.picture().guides.rug) == len(counts)


# -- single charts against independent numbers --


def test_roc_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth = rng.random(200) < 0.4
    decision = truth + rng.normal(size=200)
    (curve,), area = roc_rates([(truth, decision)])
    assert area == pytest.approx(roc_auc_score(truth, decision))
    assert np.trapezoid(curve, np.linspace(0, 1, len(curve))) == pytest.approx(area, abs=0.01)
    assert (curve[0], curve[-1]) == (0.0, 1.0)


@pytest.fixture(scope="module")
def binary_records():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0, "yes", "no")
    return evaluate({"fisher": FisherScore(3)}, X, y, cv=4, sizes=[None, 2], metrics=("error_rate", "auc"))


def test_roc_and_confusion_of_records(binary_records):
    report_data = report_data_of(binary_records, n_features=12)
    roc, confusion = RocChart.from_data(report_data), ConfusionChart.from_data(report_data)
    own = binary_records.filter(pl.col("size").is_null())
    assert roc.curves[0][2] == pytest.approx(own["auc"].mean())
    assert roc.positive == "yes"
    truth = [label for row in own["truth"] for label in row]
    predicted = [label for row in own["predictions"] for label in row]
    np.testing.assert_array_equal(confusion.counts, confusion_matrix(truth, predicted))


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_any_records_make_a_report(binary_records, kind, tmp_path):
    pytest.importorskip("pandas")
    records = binary_records if kind == "polars" else binary_records.to_pandas()
    file = tmp_path / "report.html"
    names = [f"gene {i}" for i in range(12)]
    text = render(records, names=names, path=file)
    assert zeronorm.report(records, names=names) == text
    assert file.read_text(encoding="utf-8") == text
    for identifier in ("error", "frequency", "stability", "roc", "confusion"):
        assert f'id="figure-{identifier}"' in text
    assert "gene 0" in text


def test_sizes_and_importance_of_fitted_selectors():
    X, y = load_iris(return_X_y=True)
    fitted = SelectorCV(FisherScore(), cv=3, rule="fewest", random_state=0).fit(X, y)
    chart = SizesChart.from_selector(fitted)
    assert chart.sizes == tuple(fitted.cv_results_["size"])
    assert chart.chosen == fitted.get_support().sum()
    np.testing.assert_allclose(chart.errors, fitted.cv_results_["standard_error"])
    assert chart.picture().guides.positions[0][0] == chart.chosen
    with pytest.raises(ValueError, match="Give a fitted SelectorCV"):
        SizesChart.from_selector(FisherScore().fit(X, y))
    importance = ImportanceChart.from_selector(FisherScore(2).fit(X, y), names=list("abcd"))
    assert sum(importance.selected) == 2
    assert list(importance.scores) == sorted(importance.scores, reverse=True)


def test_feature_values_are_quantiles_per_class():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 4)), np.repeat(["a", "b", "c"], 100)
    found = feature_values(X, y, np.asarray([2, 0]), is_regression=False)
    assert found["features"] == [2, 0]
    expected = np.quantile(X[100:200, 2], (0.05, 0.25, 0.5, 0.75, 0.95))
    np.testing.assert_allclose(found["boxes"][0][1], expected)
    assert len(found["values"][0]) == 120
    assert [found["target"].count(code) for code in (0.0, 1.0, 2.0)] == [40, 40, 40]
    scatter = feature_values(X, X[:, 0], np.asarray([0]), is_regression=True)
    np.testing.assert_allclose(scatter["values"][0], scatter["target"])


# -- what next --


def selection_with(strange_selection, **changes):
    from dataclasses import replace

    return replace(strange_selection[0], **changes)


def test_a_choice_at_the_largest_size_says_so(strange_selection):
    size = {"chosen": 12, "rule": "was chosen", "tried": [1, 4, 12], "at_largest": True}
    provenance = {"command": "zeronorm select 'my data.csv' -t y", "repeats": 1}
    result = selection_with(strange_selection, size=size, provenance=provenance)
    assert is_largest_tried(result)
    commands = [step.command for step in next_steps(result)]
    assert "zeronorm select 'my data.csv' -t y --max-features 20 --out enlarged" in commands
    assert "zeronorm compare 'my data.csv' --target y --methods all-fast --out compared" in commands
    assert any("--repeats 10" in command for command in commands)
    inside = selection_with(strange_selection, size={**size, "at_largest": False}, provenance=provenance)
    assert not is_largest_tried(inside)
    assert not any("--max-features" in step.command for step in next_steps(inside))


def test_the_next_commands_have_one_output_folder_each(strange_selection):
    command = "zeronorm select d.csv -t y --force --out mine -o=other --features 3"
    result = selection_with(strange_selection, provenance={"command": command, "repeats": 1})
    commands = [line for step in next_steps(result) for line in step.command.splitlines()]
    assert commands[0] == "zeronorm select d.csv -t y --features 3 --repeats 10 --out confirmed"
    assert all(line.count("--out") + line.count("-o=") <= 1 for line in commands)
    assert not any("mine" in line or "--force" in line for line in commands)
    nothing = selection_with(strange_selection, provenance=result.provenance, selected=[])
    assert not any("--save-model" in step.command for step in next_steps(nothing))


def test_names_of_classes_stand_under_the_boxes_only_where_they_can_be_read():
    assert _class_names(["cytotoxic", "regulatory"], 61.0) == ["cytotoxic", "regulatory"]
    cut = _class_names(["adenocarcinoma", "mesothelioma"], 61.0)
    assert all(name.endswith("…") and text_width(name, 11.0) <= 61.0 for name in cut)
    assert _class_names([f"CD{i}+ cells" for i in range(8)], 13.0) == []


def test_there_is_room_for_names_in_capitals():
    room, letters = label_room(["HLA-DPA1", "x"], 520)
    assert letters == 8
    assert room >= text_width("HLA-DPA1") + 6 > 8 * 6.6


def test_the_report_of_a_hundred_thousand_features_is_small(strange_selection):
    from dataclasses import replace

    result, records = strange_selection
    feature = result.selected[-1]
    many = [replace(feature, rank=i + 1, index=i, name=f"gene {i}") for i in range(100_000)]
    data = {**result.data, "n_features": 100_000}
    text = render_report(selection_with(strange_selection, data=data, selected=many), records)
    assert len(text.encode()) < 6e6
    assert "The first 1000 of 100000 selected features" in text
    assert len(charts_of(ReportData(result, records))) >= 8


@pytest.mark.parametrize("name", ["WWWWWWWWWWWWWWWWWWWW", "cwXGsZFXaxRNvzvBlO", "IL6", "i" * 40])
def test_no_name_beside_a_bar_begins_outside_the_picture(name):
    from zeronorm.report._cells import Bar, Bars

    svg = str(Bars([Bar(name, 1.0, "", "tip", is_selected=True)], "x").svg("f", "t", 300))
    (x, shown) = re.search(r'<text x="([\d.]+)"[^>]*class="tick end name"[^>]*>([^<]*)<', svg).groups()
    assert text_width(shown) <= float(x)
    assert shown.rstrip("…") == name[: len(shown.rstrip("…"))]
