"""Drawings of the selected columns: values across samples, and redundancy."""

from __future__ import annotations

from zeronorm.report.drawings.drawing import Drawing
from zeronorm.report.svg.grids import Grid, grid_chart, grid_data
from zeronorm.report.svg.markup import visible
from zeronorm.workflow.figure_data import N_LEVELS, WIDEST_DEVIATION
from zeronorm.workflow.result import RunResult

CORRELATION_LEVELS = 9


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
