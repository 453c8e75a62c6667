"""Figure data to drawings: each returns a figure with its table for those who do not see it, or None."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from zeronorm.report.figures.curves import Curve, error_curves, format_metric, metric_label
from zeronorm.report.figures.profile import N_LEVELS, WIDEST_DEVIATION
from zeronorm.report.figures.selections import selection_frequencies, stabilities
from zeronorm.report.result import RunResult
from zeronorm.report.svg.bars import Bar, bar_chart
from zeronorm.report.svg.grids import Grid, grid_chart, grid_data
from zeronorm.report.svg.lines import Axes, Point, Series, line_chart
from zeronorm.report.svg.markup import visible

MOST_BARS = 30
MOST_COMPARED = 30
CORRELATION_LEVELS = 9
NO_DATA = Markup("")


@dataclass(frozen=True)
class Drawing:
    """A chart, what it shows in words, and its numbers as a table."""

    identifier: str
    title: str
    caption: str
    chart: Markup
    data: Markup = NO_DATA
    headers: tuple[str, ...] = ()
    rows: list[list[str]] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)


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


def value_drawing(result: RunResult) -> Drawing | None:
    """The selected features across samples, clustered."""
    values = result.figures.get("values")
    if not values:
        return None
    classes = values["classes"]
    labels = list(dict.fromkeys(classes))
    is_regression = result.data["task"] == "regression"
    kind = "target" if is_regression else "class"
    grid = Grid(
        rows=[result.name_of(i) for i in values["features"]],
        columns=[
            f"sample {s + 1} ({kind} {visible(c, 40)})"
            for s, c in zip(values["samples"], classes, strict=True)
        ],
        levels=values["levels"],
        palette="d",
        words=level_words(),
        strip=None if is_regression else [labels.index(c) for c in classes],
        x_label="samples" + (", by rising target" if is_regression else ", by class"),
    )
    title = "Selected features across samples"
    shown = (
        f"{len(values['features'])} of {values['n_features']} features"
        if values["n_features"] > 60
        else "Features"
    )
    part = (
        f" {len(values['samples'])} of {values['n_samples']} samples are shown."
        if len(values["samples"]) < values["n_samples"]
        else ""
    )
    caption = (
        f"{shown} in rows, samples in columns, both clustered; colours are deviations from the mean in standard "
        f"deviations.{part}"
    )
    legend = [(f"d{level}", word) for level, word in enumerate(level_words()) if level in (0, 4, 8)]
    if not is_regression:
        legend += [(f"c{i % 8}", visible(label, 40)) for i, label in enumerate(labels[:8])]
    drawn = grid_chart("figure-values", title, grid)
    return Drawing("figure-values", title, caption, drawn, grid_data("figure-values", grid), legend=legend)


def level_words() -> list[str]:
    """Colours of the value map in words."""
    step = 2.0 * WIDEST_DEVIATION / N_LEVELS
    middles = [-WIDEST_DEVIATION + (level + 0.5) * step for level in range(N_LEVELS)]
    words = [f"{middle:+.1f} SD" if abs(middle) > 0.01 else "near the mean" for middle in middles]
    return [f"{words[0]} or less", *words[1:-1], f"{words[-1]} or more"]


def redundancy_drawing(result: RunResult) -> Drawing | None:
    """Correlations between the selected features."""
    redundancy = result.figures.get("redundancy")
    if not redundancy:
        return None
    names = [result.name_of(i) for i in redundancy["features"]]
    matrix = redundancy["correlation"]
    grid = Grid(
        rows=names,
        columns=[visible(name, 60) for name in names],
        levels=[[_correlation_level(r) for r in row] for row in matrix],
        palette="d",
        cells=[[f"r = {r:.2f}" for r in row] for row in matrix],
    )
    pairs = [
        (abs(matrix[i][j]), names[i], names[j], matrix[i][j]) for i in range(len(names)) for j in range(i)
    ]
    pairs.sort(key=lambda pair: -pair[0])
    strong = [pair for pair in pairs if pair[0] >= 0.9]
    summary = f"{len(strong)} pairs have |r| of at least 0.9." if strong else "No pair reaches |r| = 0.9."
    title = "Redundancy between the selected features"
    caption = f"Correlations, in clustered order: features in one block carry similar information. {summary}"
    rows = [[a, b, f"{r:.2f}"] for _, a, b, r in pairs[:20]]
    legend = [("d0", "r = −1"), ("d4", "r = 0"), ("d8", "r = 1")]
    return Drawing(
        "figure-redundancy",
        title,
        caption,
        grid_chart("figure-redundancy", title, grid),
        grid_data("figure-redundancy", grid),
        headers=("feature", "feature", "correlation"),
        rows=rows,
        legend=legend,
    )


def _correlation_level(r: float) -> int:
    return min(CORRELATION_LEVELS - 1, int((r + 1.0) / 2.0 * CORRELATION_LEVELS))


def path_drawing(result: RunResult) -> Drawing | None:
    """Which features are in the subset of each size."""
    path = result.figures.get("path")
    if not path:
        return None
    sizes, names = path["sizes"], [result.name_of(i) for i in path["features"]]
    step = max(1, len(sizes) // 10)
    chosen = result.size.get("chosen")
    grid = Grid(
        rows=names,
        columns=[f"{size} features" for size in sizes],
        levels=[
            [2 * m if size == chosen else m for m, size in zip(row, sizes, strict=True)]
            for row in path["members"]
        ],
        palette="m",
        words=["not in the subset", "in the subset", "in the final selection"],
        column_ticks=[(i, str(sizes[i])) for i in range(0, len(sizes), step)],
        x_label="number of features",
    )
    title = "Path of the selection"
    nested = (
        "Every subset contains the smaller ones."
        if path["is_nested"]
        else "The path is not nested: features may leave again."
    )
    caption = (
        f"Features that lead the order of the method, and the sizes at which they are in the subset. {nested}"
    )
    legend = [("m1", "in the subset"), ("m2", "at the chosen size")]
    rows = [[name, str(_first_size(row, sizes))] for name, row in zip(names, path["members"], strict=True)]
    return Drawing(
        "figure-path",
        title,
        caption,
        grid_chart("figure-path", title, grid),
        grid_data("figure-path", grid),
        headers=("feature", "smallest size that holds it"),
        rows=rows,
        legend=legend,
    )


def _first_size(members: list[int], sizes: list[int]) -> int | str:
    return next((size for member, size in zip(members, sizes, strict=True) if member), "–")


def history_drawing(result: RunResult) -> Drawing | None:
    """Probabilities of features while a stochastic method learns them."""
    history = result.figures.get("history")
    if not history:
        return None
    series = [
        Series(
            result.name_of(index),
            tuple(
                Point(
                    max(1, step), value, tip=f"{visible(result.name_of(index), 60)}, step {step}: {value:.3g}"
                )
                for step, value in zip(history["steps"], values, strict=True)
            ),
        )
        for index, values in zip(history["features"], history["values"], strict=True)
    ]
    title = "Probability of features while learning"
    axes = Axes("step", "probability", lambda v: f"{v:.2g}")
    caption = "The probability with which the method draws each of the leading features, over its steps."
    drawn = line_chart("figure-history", title, series, axes)
    rows = [[line.name, f"{line.points[-1].y:.3g}"] for line in series]
    return Drawing(
        "figure-history", title, caption, drawn, headers=("feature", "final probability"), rows=rows
    )


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
