"""Plots for Python users draw the numbers of the report."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from report.made_records import made_records  # noqa: E402
from zeronorm import FisherScore, SelectorCV  # noqa: E402
from zeronorm.evaluation._summary import error_curves, stabilities  # noqa: E402
from zeronorm.report import ReportData, chart_classes, figure  # noqa: E402
from zeronorm.report._chart import charts_of  # noqa: E402
from zeronorm.report.charts._error import ErrorChart  # noqa: E402
from zeronorm.report.charts._path import PathChart  # noqa: E402
from zeronorm.report.charts._selections import StabilityChart  # noqa: E402
from zeronorm.selection._path import SelectionPath  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def line_of(ax, label):
    index = ax.get_legend_handles_labels()[1].index(label)
    return ax.get_legend_handles_labels()[0][index].lines[0]


def test_error_chart_draws_the_curves(comparison):
    _, records = comparison
    ax = ErrorChart.from_records(records).plot().axes[0]
    curves = error_curves(records, "balanced_error_rate")
    assert [curve.method for curve in curves] == ["fisher", "random", "lasso"]
    for curve in curves:
        line = line_of(ax, curve.method)
        np.testing.assert_allclose(line.get_xdata(orig=False), [p.size for p in curve.points])
        np.testing.assert_allclose(line.get_ydata(orig=False), [p.mean for p in curve.points])
    assert ax.get_ylim()[0] == 0.0


def test_ticks_of_a_logarithmic_axis_are_plain_numbers(comparison):
    ax = figure("error", comparison[1]).axes[0]
    ax.figure.draw_without_rendering()
    shown = [t.get_text() for t in ax.get_xticklabels()]
    assert "1" in shown
    assert all(float(text) == int(text) for text in shown)


def test_stability_chart_draws_on_given_axes(comparison):
    _, records = comparison
    ax = plt.subplots()[1]
    assert StabilityChart.from_records(records, 25).plot(ax) is ax.figure
    points = [p for p in stabilities(records, 25) if p.method == "fisher" and p.size is not None]
    expected = [p.nogueira for p in sorted(points, key=lambda p: p.mean_size) if p.nogueira is not None]
    np.testing.assert_allclose(line_of(ax, "fisher").get_ydata(orig=False), expected)


def test_path_chart():
    path = SelectionPath.from_scores([3.0, 1.0, 2.0])
    ax = PathChart.from_path(path, names=["a", "b", "c"]).plot().axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "c", "b"]
    np.testing.assert_array_equal(ax.images[0].get_array(), [[1, 1, 1], [0, 1, 1], [0, 0, 1]])
    with pytest.raises(ValueError, match="fewer than two sizes"):
        PathChart.from_path(path, largest=1)


@pytest.mark.parametrize("name", ["strange_selection", "regression_selection", "comparison"])
def test_every_chart_draws_with_small_type(request, name):
    charts = charts_of(ReportData(*request.getfixturevalue(name)))
    assert len(charts) >= 3
    for chart in charts:
        drawn = chart.plot()
        drawn.draw_without_rendering()
        assert drawn.get_size_inches()[0] <= 7.2
        assert max(t.get_size() for ax in drawn.axes for t in ax.get_yticklabels()) <= 8


def test_a_chart_is_asked_for_by_name(comparison):
    names = [cls.name for cls in chart_classes()]
    assert len(names) == len(set(names))
    with pytest.raises(ValueError, match=r"no chart named 'pie'.*'error'"):
        figure("pie", comparison[1])
    with pytest.raises(ValueError, match="nothing to show"):
        figure("path", comparison[1])
    without_decisions = made_records("error_rate", {"m": (0.1, 0.2)})
    with pytest.raises(ValueError, match=r"nothing to show.*decision values"):
        figure("roc", without_decisions)


def test_a_fitted_selector_has_figures_of_its_own():
    y = np.arange(30) % 2
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 4)), columns=list("abcd"))
    X["c"] += 2.0 * y
    chosen = SelectorCV(FisherScore(), cv=2, random_state=0).fit(X, y)
    assert figure("sizes", chosen).axes[0].get_xlabel() == "number of features"
    names = [label.get_text() for label in figure("importance", chosen).axes[0].get_yticklabels()]
    assert "c" in names
    with pytest.raises(ValueError, match="needs records of evaluate, not a fitted SelectorCV"):
        figure("error", chosen)
