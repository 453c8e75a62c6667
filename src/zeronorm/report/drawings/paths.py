"""Drawings of how the method came to its selection."""

from __future__ import annotations

from zeronorm.report.drawings.drawing import Drawing
from zeronorm.report.svg.grids import Grid, grid_chart, grid_data
from zeronorm.report.svg.lines import Axes, Point, Series, line_chart
from zeronorm.report.svg.markup import visible
from zeronorm.workflow.result import RunResult


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
