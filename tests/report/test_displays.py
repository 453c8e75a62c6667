"""Plots for Python users draw the numbers of the report."""

from __future__ import annotations

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from zeronorm.evaluation.summary import error_curves, stabilities  # noqa: E402
from zeronorm.report import CompareDisplay, PathDisplay, StabilityDisplay  # noqa: E402
from zeronorm.selection.path import SelectionPath  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def line_of(ax, label):
    place = ax.get_legend_handles_labels()[1].index(label)
    return ax.get_legend_handles_labels()[0][place].lines[0]


def test_compare_display(comparison):
    _, records = comparison
    display = CompareDisplay.from_records(records)
    for curve in error_curves(records, "balanced_error_rate"):
        line = line_of(display.ax_, curve.method)
        np.testing.assert_allclose(line.get_xdata(orig=False), [p.size for p in curve.points])
        np.testing.assert_allclose(line.get_ydata(orig=False), [p.mean for p in curve.points])
    assert display.comparison.preferred in {"fisher", "random", "lasso"}


def test_stability_display(comparison):
    _, records = comparison
    ax = plt.subplots()[1]
    display = StabilityDisplay.from_records(records, 25, ax=ax)
    assert display.ax_ is ax
    points = [p for p in stabilities(records, 25) if p.method == "fisher" and p.size is not None]
    expected = [p.nogueira for p in sorted(points, key=lambda p: p.mean_size) if p.nogueira is not None]
    np.testing.assert_allclose(line_of(ax, "fisher").get_ydata(orig=False), expected)


def test_path_display():
    path = SelectionPath.from_scores([3.0, 1.0, 2.0])
    display = PathDisplay.from_path(path, names=["a", "b", "c"])
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["a", "c", "b"]
    np.testing.assert_array_equal(display.ax_.images[0].get_array(), [[1, 1, 1], [0, 1, 1], [0, 0, 1]])
    with pytest.raises(ValueError, match="fewer than two sizes"):
        PathDisplay.from_path(path, largest=1)
