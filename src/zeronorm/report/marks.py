"""Lines with intervals, bars and maps of cells: what they hold, and how they look as SVG.

Each has ``svg``, ``data`` (what the page's script needs) and ``draw`` (the same on matplotlib axes).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from zeronorm.report.svg import (
    HALF,
    MOST_WITH_INTERVALS,
    NARROW,
    ZERO_ON_LOG,
    Axes,
    Box,
    Scale,
    element,
    frame,
    label_room,
    series_class,
    shape,
    svg_chart,
    value_range,
    visible,
)
from zeronorm.workflow.result import finite

WIDEST_SHIFT = 14.0
LINE_OF_LABELS = 14.0
CONTINUOUS = ("r", "p")
COLUMN_INCHES, PAGE_INCHES, LINE_INCHES = 3.5, 7.0, 0.14  # of a journal: column, page, a line of small type

# -- Lines --


@dataclass(frozen=True)
class Point:
    """One point with its interval and the text that is shown for it."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    tip: str = ""
    is_chosen: bool = False

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.x) and math.isfinite(self.y)


@dataclass(frozen=True)
class Series:
    """One line."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Guides:
    """Lines across a chart: levels of y and places on x with their words, ticks for single values of x, x = y."""

    levels: tuple[tuple[float, str], ...] = ()
    places: tuple[tuple[float, str], ...] = ()
    rug: tuple[tuple[float, str], ...] = ()
    diagonal: bool = False


@dataclass(frozen=True)
class Lines:
    """Lines with names at their ends; chosen points are ringed.

    Intervals of more than six lines are shown for the line under the pointer only. Points that are not finite
    are left out.
    """

    series: list[Series]
    axes: Axes
    guides: Guides = field(default_factory=Guides)

    @property
    def finite(self) -> list[Series]:
        return [Series(s.name, tuple(p for p in s.points if p.is_finite)) for s in self.series]

    def svg(self, identifier: str, title: str, width: int = HALF) -> Markup:
        lines = self.finite
        if not any(line.points for line in lines):
            return Markup("")
        return _line_chart(identifier, title, lines, self.axes, width, self.guides)

    def data(self, identifier: str) -> Markup:
        return Markup("")

    @property
    def inches(self) -> tuple[float, float]:
        return (5.5 if len(self.series) > 3 else COLUMN_INCHES), 2.6

    def draw(self, ax: Any) -> None:
        from zeronorm.report.plots import draw_lines

        draw_lines(ax, self)


def _line_chart(
    identifier: str, title: str, lines: list[Series], axes: Axes, width: int, guides: Guides
) -> Markup:
    points = [point for line in lines for point in line.points]
    has_names = len(lines) > 1 and width > NARROW
    room, letters = label_room([line.name for line in lines], width) if has_names else (14, 0)
    height = 380 if len(lines) > MOST_WITH_INTERVALS else 330 if width > NARROW else 280
    box = Box(58 if width > NARROW else 50, 14, width - room - (12 if has_names else 0), height - 44)
    is_crowded = len(lines) > MOST_WITH_INTERVALS
    x = _x_scale(points, axes, box, guides)
    y = _y_scale(points, axes, box, guides, with_intervals=not is_crowded)
    parts = [frame(box, x, y, axes), _guide_lines(box, x, y, guides)]
    parts += [_line(i, line, _beside(x, i, len(lines)), y) for i, line in enumerate(lines)]
    parts.append(_rug(box, x, guides.rug))
    if has_names:
        parts.append(_names_at_ends(lines, x, y, box, letters))
    kind = "many" if is_crowded else "few"
    return svg_chart(identifier, title, (width, height), *parts, data_lines=kind)


def _x_scale(points: list[Point], axes: Axes, box: Box, guides: Guides) -> Scale:
    values = [p.x for p in points] + [place for place, _ in (*guides.places, *guides.rug)]
    if axes.x_log:
        positive = [max(value, ZERO_ON_LOG) for value in values]
        low, high = min(positive) / 1.12, max(positive) * 1.12
    else:
        low, high = value_range(values, axes.x_bounds)
    return Scale(low, high, box.left, box.right, is_log=axes.x_log)


def _y_scale(points: list[Point], axes: Axes, box: Box, guides: Guides, *, with_intervals: bool) -> Scale:
    ends = [p.y for p in points]
    if with_intervals:
        ends += [end for p in points for end in (p.low, p.high) if end is not None]
    values = [v for v in (*ends, *(level for level, _ in guides.levels)) if math.isfinite(v)]
    low, high = value_range(values, axes.y_bounds)
    return Scale(low, high, box.bottom, box.top)


def _at(x: Scale, value: float) -> float:
    """The place of a value; an empty selection has one on a logarithmic scale too."""
    return x(max(value, ZERO_ON_LOG) if x.is_log else value)


def _beside(x: Scale, index: int, n_series: int) -> Scale:
    """Lines stand a little beside each other, so that their intervals do not cover one another."""
    shift = min(4.0, WIDEST_SHIFT / n_series) * (index - (n_series - 1) / 2)
    return Scale(x.low, x.high, x.start + shift, x.end + shift, x.is_log)


def _line(index: int, line: Series, x: Scale, y: Scale) -> Markup:
    parts = []
    joined = [point for point in line.points if not point.is_chosen]
    if len(joined) > 1:
        places = " ".join(f"{_at(x, p.x):.1f},{y(p.y):.1f}" for p in joined)
        parts.append(element("polyline", points=places, class_="line"))
    for point in line.points:
        parts += _marks(index, point, x, y)
    return element("g", *parts, class_=series_class(index), data_series=index)


def _marks(index: int, point: Point, x: Scale, y: Scale) -> list[Markup]:
    place, height = _at(x, point.x), y(point.y)
    parts = []
    if point.low is not None and point.high is not None:
        ends = {"y1": y(point.low), "y2": y(point.high)}
        parts.append(element("line", x1=place, x2=place, **ends, class_="interval"))
    if point.is_chosen:
        parts.append(element("circle", cx=place, cy=height, r=8, class_="ring"))
    parts.append(element("path", d=shape(index, place, height), class_="mark", data_tip=point.tip))
    return parts


def _names_at_ends(lines: list[Series], x: Scale, y: Scale, box: Box, letters: int) -> Markup:
    """The name of every line beside its last point, moved apart where names would cover one another."""
    ends = []
    for index, line in enumerate(lines):
        joined = [p for p in line.points if not p.is_chosen] or list(line.points)
        if joined:
            last = max(joined, key=lambda p: p.x)
            ends.append((y(last.y), _at(x, last.x), index, line.name))
    ends.sort()
    heights = spread([end[0] for end in ends], LINE_OF_LABELS, box.top, box.bottom)
    parts = []
    for (height, place, index, name), moved in zip(ends, heights, strict=True):
        leader = f"M{place + 6:.1f} {height:.1f}L{box.right + 6:.1f} {moved:.1f}"
        parts.append(
            element(
                "g",
                element("path", d=leader, class_="leader"),
                element("text", visible(name, letters), x=box.right + 9, y=moved + 4, class_="end-name name"),
                class_=series_class(index),
                data_series=index,
            )
        )
    return element("g", *parts)


def spread(places: list[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending places moved as little as need be, so that neighbours are ``gap`` apart within [low, high]."""
    gap = min(gap, (high - low) / max(1, len(places) - 1)) if len(places) > 1 else gap
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + gap) if moved else max(place, low))
    for i in range(len(moved) - 1, -1, -1):
        ceiling = high if i == len(moved) - 1 else moved[i + 1] - gap
        moved[i] = min(moved[i], ceiling)
    return moved


def _guide_lines(box: Box, x: Scale, y: Scale, guides: Guides) -> Markup:
    parts = []
    for level, words in guides.levels:
        place = y(level)
        parts.append(element("line", x1=box.left, x2=box.right, y1=place, y2=place, class_="chance"))
        parts.append(element("text", words, x=box.right - 2, y=place - 4, class_="tick end guide"))
    if guides.diagonal:
        ends = {"x1": x(x.low), "y1": y(x.low), "x2": x(x.high), "y2": y(x.high)}
        parts.append(element("line", **ends, class_="chance"))
    for value, words in guides.places:
        place = x(value)
        is_left = place > (box.left + box.right) / 2
        parts.append(element("line", x1=place, x2=place, y1=box.top, y2=box.bottom, class_="place"))
        side = "tick end guide" if is_left else "tick guide"
        parts.append(element("text", words, x=place + (-5 if is_left else 5), y=box.top + 8, class_=side))
    return element("g", *parts)


def _rug(box: Box, x: Scale, values: tuple[tuple[float, str], ...]) -> Markup:
    parts = []
    for value, tip in values:
        place = _at(x, value)
        tick = f"M{place - 1.2:.1f} {box.bottom - 11:.1f}h2.4v11h-2.4z"
        parts.append(element("path", d=tick, class_="mark rug", data_tip=tip))
    return element("g", *parts)


# -- Bars --


@dataclass(frozen=True)
class Bar:
    """One bar: its length as a share of the longest possible, its value in words, and whether it is in the result."""

    name: str
    share: float
    words: str
    tip: str
    is_selected: bool


@dataclass(frozen=True)
class Bars:
    """Horizontal bars; a line marks the share expected by chance."""

    bars: list[Bar]
    x_label: str
    chance: tuple[float, str] | None = None

    def svg(self, identifier: str, title: str, width: int = HALF) -> Markup:
        return _bar_chart(identifier, title, self.bars, width, self.chance) if self.bars else Markup("")

    def data(self, identifier: str) -> Markup:
        return Markup("")

    @property
    def inches(self) -> tuple[float, float]:
        return COLUMN_INCHES, 0.6 + LINE_INCHES * len(self.bars)

    def draw(self, ax: Any) -> None:
        from zeronorm.report.plots import draw_bars

        draw_bars(ax, self)


def _bar_chart(
    identifier: str, title: str, bars: list[Bar], width: int, chance: tuple[float, str] | None
) -> Markup:
    row, thickness, values = 20, 13, 58
    labels, letters = label_room([bar.name for bar in bars], width, share=0.36)
    length = width - labels - values
    parts = []
    for i, bar in enumerate(bars):
        top = i * row + 4
        end = labels + bar.share * length
        kind = "mark bar chosen" if bar.is_selected else "mark bar"
        size = {"width": max(1.0, bar.share * length), "height": thickness}
        name = visible(bar.name, letters)
        parts.append(element("text", name, x=labels - 6, y=top + thickness - 2, class_="tick end name"))
        parts.append(element("rect", x=labels, y=top, **size, class_=kind, data_tip=bar.tip))
        parts.append(element("text", bar.words, x=end + 6, y=top + thickness - 2, class_="tick"))
    height = len(bars) * row + (30 if chance else 8)
    if chance is not None:
        place = labels + chance[0] * length
        parts.append(element("line", x1=place, x2=place, y1=0, y2=height - 24, class_="chance"))
        parts.append(element("text", chance[1], x=place, y=height - 8, class_="tick"))
    return svg_chart(identifier, title, (width, height), *parts)


# -- Maps of cells --


@dataclass(frozen=True)
class Grid:
    """Cells, row by row, with names for rows and columns and words for every cell.

    ``levels`` are numbers of colours of the ``palette``; with the palettes "r" (correlations) and "p" (shares)
    they are values from -1 or 0 to 1 on a continuous scale. ``strip`` gives a class number per column, drawn above
    the cells; ``marked`` is a column with a border around it; ``shown`` are words that stand in the cells.
    """

    rows: list[str]
    columns: list[str]
    levels: list[list[float]]
    palette: str
    words: list[str] = field(default_factory=list)
    cells: list[list[str]] | None = None
    strip: list[int] | None = None
    column_ticks: list[tuple[int, str]] = field(default_factory=list)
    x_label: str = ""
    marked: int | None = None
    shown: list[list[str]] | None = None

    def svg(self, identifier: str, title: str, width: int = HALF) -> Markup:
        return _grid_chart(identifier, title, self, width)

    def data(self, identifier: str) -> Markup:
        return _grid_data(f"{identifier}-data", self)

    @property
    def inches(self) -> tuple[float, float]:
        row = 0.4 if self.shown is not None else LINE_INCHES
        width = max(COLUMN_INCHES, 2.0 + LINE_INCHES * len(self.column_ticks))
        return min(width, PAGE_INCHES), 1.3 + row * len(self.rows)

    def draw(self, ax: Any) -> None:
        from zeronorm.report.plots import draw_grid

        draw_grid(ax, self)


def _grid_chart(identifier: str, title: str, grid: Grid, width: int) -> Markup:
    """The map; the page's script reads the names of the cells from the data of the figure."""
    n_rows = len(grid.rows)
    labels, letters = label_room(grid.rows, width, share=0.32)
    top = 16 if grid.strip is not None else 4
    row_height = 30 if grid.shown is not None else 14 if n_rows > 8 else 22
    cell = (width - labels - 4) / len(grid.columns)
    parts = [
        element("path", d=path, **_fill(grid.palette, level))
        for level, path in _level_paths(grid.levels, labels, cell, row_height, top)
    ]
    if grid.strip is not None:
        parts += _strip(grid.strip, labels, cell)
    for row, name in enumerate(grid.rows):
        place = top + (row + 0.75) * row_height
        parts.append(
            element("text", visible(name, letters), x=labels - 6, y=place, class_="cell-label end name")
        )
    bottom = top + n_rows * row_height
    names, room = _column_names(grid, labels, cell, bottom)
    height = bottom + room + (16 if grid.x_label else 4)
    if grid.x_label:
        middle = labels + (width - labels) / 2
        names.append(element("text", grid.x_label, x=middle, y=height - 4, class_="label middle"))
    if grid.marked is not None:
        place = labels + grid.marked * cell
        size = {"width": max(cell, 2.0), "height": bottom - top}
        names.append(element("rect", x=place, y=top, **size, class_="marked"))
    if grid.shown is not None:
        names += [
            element(
                "text",
                words,
                x=labels + (j + 0.5) * cell,
                y=top + (i + 0.64) * row_height,
                class_="cell-words middle",
            )
            for i, row_words in enumerate(grid.shown)
            for j, words in enumerate(row_words)
        ]
    cursor = element("rect", width=cell, height=row_height, class_="cursor", x=-99, y=-99)
    place_of_cells = f"{labels} {top} {cell:.4f} {row_height}"
    return svg_chart(identifier, title, (width, height), *parts, *names, cursor, data_grid=place_of_cells)


def _fill(palette: str, level: float) -> dict[str, Any]:
    """A colour of the palette; on a continuous scale, the strength of one of its colours."""
    if palette not in CONTINUOUS:
        return {"class_": f"{palette}{level:g}"}
    return {"class_": f"{palette}-{'below' if level < 0 else 'above'}", "fill_opacity": abs(level)}


def _column_names(grid: Grid, labels: float, cell: float, bottom: float) -> tuple[list[Markup], float]:
    """Names under the columns, upright where they fit and turned where they do not; and their height."""
    if not grid.column_ticks:
        return [], 0.0
    ticks = [(i, visible(text, 18)) for i, text in grid.column_ticks]
    longest = max(len(text) for _, text in ticks)
    gap = min((b - a for (a, _), (b, _) in pairwise(ticks)), default=len(grid.columns)) * cell
    if longest * 7 < gap:
        return [
            element("text", text, x=labels + (i + 0.5) * cell, y=bottom + 14, class_="tick middle")
            for i, text in ticks
        ], 20.0
    # Turned names need the height of a line each: where columns are narrower, only some are named.
    names = []
    for i, text in ticks[:: max(1, math.ceil(9.0 / gap))]:
        x, y = labels + (i + 0.5) * cell + 3, bottom + 6
        turned = f"rotate(-90 {x:.1f} {y:g})"
        names.append(element("text", text, x=x, y=y, class_="cell-label end name", transform=turned))
    return names, 12.0 + 6.2 * longest


def _grid_data(identifier: str, grid: Grid) -> Markup:
    """Names and words for the cells, as JSON that cannot end its script element."""
    content: dict[str, Any] = {
        "rows": [visible(name) for name in grid.rows],
        "columns": grid.columns,
        "levels": grid.levels if grid.cells is None else None,
        "words": grid.words,
        "cells": grid.cells,
    }
    text = json.dumps(finite(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return element("script", Markup(safe), type="application/json", id=identifier)


def _level_paths(
    levels: list[list[float]], left: float, width: float, row_height: float, top: float
) -> list[tuple[float, str]]:
    """Runs of equal cells as rectangles, one path per colour, so that large maps stay small files."""
    paths: dict[float, list[str]] = {}
    for row, cells in enumerate(levels):
        for start, end in _runs(cells):
            x, run = left + start * width, (end - start) * width
            y = top + row * row_height
            paths.setdefault(cells[start], []).append(f"M{x:.1f} {y:g}h{run:.2f}v{row_height:g}h{-run:.2f}z")
    return [(level, "".join(parts)) for level, parts in sorted(paths.items())]


def _runs(cells: list[Any]) -> list[tuple[int, int]]:
    """Start and end of every run of equal cells."""
    cuts = [i for i in range(1, len(cells)) if cells[i] != cells[i - 1]]
    return list(zip([0, *cuts], [*cuts, len(cells)], strict=True))


def _strip(classes: list[int], left: float, width: float) -> list[Markup]:
    return [
        element(
            "rect",
            x=left + start * width,
            y=2,
            width=(end - start) * width,
            height=10,
            class_=f"class-strip c{classes[start] % 8}",
        )
        for start, end in _runs(classes)
    ]
