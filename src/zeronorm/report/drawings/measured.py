"""Drawings of what was measured on the outer folds."""

from __future__ import annotations

from typing import Any

from zeronorm.evaluation.summary import (
    Curve,
    error_curves,
    format_metric,
    metric_label,
    selection_frequencies,
    stabilities,
)
from zeronorm.report.drawings.drawing import Drawing
from zeronorm.report.svg.bars import Bar, bar_chart
from zeronorm.report.svg.grids import Grid, grid_chart, grid_data
from zeronorm.report.svg.lines import Axes, Point, Series, line_chart
from zeronorm.report.svg.markup import visible
from zeronorm.workflow.result import RunResult

MOST_BARS = 30
MOST_COMPARED = 30


def error_drawing(result: RunResult, records: Any, metric: str) -> Drawing:
    """Error against the number of features, with the chosen point."""
    curves = error_curves(records, metric)
    series = [_series(curve, metric) for curve in curves]
    axes = Axes(
        "number of features", metric_label(metric), lambda v: format_metric(v, metric).replace(".0 ", " ")
    )
    title = f"{metric_label(metric).capitalize()} against the number of features"
    rows = [
        [curve.method, f"{p.size:g}", *(format_metric(v, metric) for v in (p.mean, p.low, p.high))]
        for curve in curves
        for p in (*curve.points, *([curve.own] if curve.own else []))
    ]
    chosen = " The ringed point is the procedure as a whole, with its own number of features." if rows else ""
    caption = (
        "Mean over the outer test parts, with 95 % intervals corrected for overlapping training parts. Selection was "
        f"repeated in every training part.{chosen}"
    )
    drawn = line_chart("figure-error", title, series, axes)
    return Drawing(
        "figure-error",
        title,
        caption,
        drawn,
        headers=("method", "features", "mean", "low", "high"),
        rows=rows,
    )


def _series(curve: Curve, metric: str) -> Series:
    points = [
        Point(p.size, p.mean, p.low, p.high, _tip(curve.method, p.size, p.mean, p.low, p.high, metric))
        for p in curve.points
    ]
    if curve.own is not None:
        own = curve.own
        tip = "as chosen: " + _tip(curve.method, own.size, own.mean, own.low, own.high, metric)
        points.append(Point(own.size, own.mean, own.low, own.high, tip, is_chosen=True))
    return Series(curve.method, tuple(points))


def _tip(method: str, size: float, mean: float, low: float | None, high: float | None, metric: str) -> str:
    interval = "" if low is None else f" ({format_metric(low, metric)} to {format_metric(high, metric)})"
    return f"{method}, {size:g} features: {format_metric(mean, metric)}{interval}"


def frequency_drawing(result: RunResult, records: Any) -> Drawing | None:
    """How often each feature was selected over the outer training parts."""
    label = result.chosen_method
    if label is None:
        return None
    frequencies = selection_frequencies(records, label, result.data["n_features"])
    chosen = {feature.index for feature in result.selected}
    bars = [Bar(result.name_of(i), share, i in chosen) for i, share in frequencies.shares[:MOST_BARS]]
    if not bars:
        return None
    left = len(frequencies.shares) - len(bars)
    more = f" {left} more features were selected less often." if left > 0 else ""
    caption = (
        f"Share of the {frequencies.n_splits} outer training parts in which a feature was selected; filled bars are in "
        f"the final selection.{more}"
    )
    title = "Selection frequency"
    drawn = bar_chart("figure-frequency", title, bars, frequencies.expected)
    rows = [[bar.name, f"{100 * bar.share:.0f} %", "yes" if bar.is_selected else "no"] for bar in bars]
    return Drawing(
        "figure-frequency",
        title,
        caption,
        drawn,
        headers=("feature", "frequency", "in the selection"),
        rows=rows,
    )


def stability_drawing(result: RunResult, records: Any) -> Drawing | None:
    """Stability of the selected set against its size."""
    points = [p for p in stabilities(records, result.data["n_features"]) if p.nogueira is not None]
    methods = list(dict.fromkeys(point.method for point in points))
    series, rows = [], []
    for method in methods:
        own = [point for point in points if point.method == method]
        line = []
        for p in sorted(own, key=lambda point: (point.size is None, point.mean_size)):
            tip = f"{method}, {p.mean_size:g} features: stability {p.nogueira:.2f}"
            line.append(Point(p.mean_size, p.nogueira or 0.0, p.low, p.high, tip, is_chosen=p.size is None))
            rows.append([method, f"{p.mean_size:g}", f"{p.nogueira:.3f}", f"{p.jaccard:.3f}"])
        series.append(Series(method, tuple(line)))
    if not rows:
        return None
    title = "Stability of the selected set"
    caption = (
        "Agreement of the sets selected in different training parts (Nogueira et al. 2018): 1 means always the same "
        "features, 0 means no more than chance. Bars are 95 % intervals."
    )
    axes = Axes("number of features", "stability", lambda v: f"{v:g}", y_highest=1.05)
    drawn = line_chart("figure-stability", title, series, axes)
    headers = ("method", "features", "stability", "Jaccard index")
    return Drawing("figure-stability", title, caption, drawn, headers=headers, rows=rows)


def shared_features_drawing(result: RunResult, records: Any) -> Drawing | None:
    """Which features each of several methods selects, and how often."""
    labels = [method["label"] for method in result.methods]
    found = {
        label: dict(selection_frequencies(records, label, result.data["n_features"]).shares)
        for label in labels
    }
    totals: dict[int, float] = {}
    for by_feature in found.values():
        for index, share in by_feature.items():
            totals[index] = totals.get(index, 0.0) + share
    leading = sorted(totals, key=lambda index: (-totals[index], index))[:MOST_COMPARED]
    if not leading or len(labels) < 2:
        return None
    shares = [[found[label].get(index, 0.0) for label in labels] for index in leading]
    grid = Grid(
        rows=[result.name_of(index) for index in leading],
        columns=labels,
        levels=[[round(4 * share) for share in row] for row in shares],
        palette="f",
        cells=[[f"selected in {100 * share:.0f} % of the training parts" for share in row] for row in shares],
        column_ticks=[(i, visible(label, 20)) for i, label in enumerate(labels)],
    )
    title = "Features that the methods agree on"
    caption = "How often each method selected the features that are selected most often overall."
    rows = [
        [result.name_of(index), *(f"{100 * s:.0f} %" for s in row)]
        for index, row in zip(leading, shares, strict=True)
    ]
    legend = [("f0", "never"), ("f2", "half of the training parts"), ("f4", "always")]
    return Drawing(
        "figure-shared",
        title,
        caption,
        grid_chart("figure-shared", title, grid),
        grid_data("figure-shared", grid),
        headers=("feature", *labels),
        rows=rows,
        legend=legend,
    )
