"""Line charts with intervals and guides: their data, and how they are drawn as SVG.

Like every picture, they have ``svg``, ``data`` (what the page's script needs), ``inches`` and ``draw`` (the same on
matplotlib axes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup

from zeronorm.report._svg import (
    COLUMN_INCHES,
    HALF,
    MOST_WITH_INTERVALS,
    NARROW,
    WIDE_TEXT,
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

WIDEST_SHIFT = 14.0
LINE_OF_LABELS = 14.0


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
    """One line through its points, or with corners of its own (``path``) that the points mark.

    ``beside`` is a dotted line of the same colour, such as what was predicted.
    """

    name: str
    points: tuple[Point, ...]
    path: tuple[tuple[float, float], ...] = ()
    beside: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Guides:
    """Lines across a chart: levels of y and positions on x with their labels, ticks for single values of x, x = y."""

    levels: tuple[tuple[float, str], ...] = ()
    positions: tuple[tuple[float, str], ...] = ()
    rug: tuple[tuple[float, str], ...] = ()
    diagonal: bool = False


@dataclass(frozen=True)
class Lines:
    """A line chart with the name of each line at its end and rings around chosen points.

    With more than six lines, the intervals are shown only for the line under the pointer. Points that are not finite
    are left out.
    """

    series: list[Series]
    axes: Axes
    guides: Guides = field(default_factory=Guides)

    @property
    def finite(self) -> list[Series]:
        return [replace(s, points=tuple(p for p in s.points if p.is_finite)) for s in self.series]

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
        from zeronorm.report._plots import draw_lines

        draw_lines(ax, self)


def _line_chart(
    identifier: str, title: str, lines: list[Series], axes: Axes, width: int, guides: Guides
) -> Markup:
    points = [point for line in lines for point in line.points]
    has_names = len(lines) > 1 and width > NARROW
    names = [line.name for line in lines]
    room, letters = (
        label_room(names, width, letter=WIDE_TEXT) if has_names else (14, 0)
    )  # wider, because the letters are bold
    height = 380 if len(lines) > MOST_WITH_INTERVALS else 330 if width > NARROW else 280
    box = Box(58, 14, width - room - (12 if has_names else 0), height - 44)
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
    values = [p.x for p in points] + [position for position, _ in (*guides.positions, *guides.rug)]
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
    """The position of a value on the axis; a size of 0 has one on a logarithmic scale too."""
    return x(max(value, ZERO_ON_LOG) if x.is_log else value)


def _beside(x: Scale, index: int, n_series: int) -> Scale:
    """The x axis of one line, shifted a little so that the intervals of the lines do not cover one another."""
    shift = min(4.0, WIDEST_SHIFT / n_series) * (index - (n_series - 1) / 2)
    return Scale(x.low, x.high, x.start + shift, x.end + shift, x.is_log)


def _line(index: int, line: Series, x: Scale, y: Scale) -> Markup:
    parts = []
    joined = list(line.path) or [(point.x, point.y) for point in line.points if not point.is_chosen]
    if len(joined) > 1:
        positions = " ".join(f"{_at(x, at):.1f},{y(value):.1f}" for at, value in joined)
        parts.append(element("polyline", points=positions, class_="line"))
    if line.beside:
        positions = " ".join(f"{_at(x, at):.1f},{y(value):.1f}" for at, value in line.beside)
        parts.append(element("polyline", points=positions, class_="line beside"))
    for point in line.points:
        parts += _marks(index, point, x, y)
    return element("g", *parts, class_=series_class(index), data_series=index)


def _marks(index: int, point: Point, x: Scale, y: Scale) -> list[Markup]:
    position, height = _at(x, point.x), y(point.y)
    parts = []
    if point.low is not None and point.high is not None:
        ends = {"y1": y(point.low), "y2": y(point.high)}
        parts.append(element("line", x1=position, x2=position, **ends, class_="interval"))
    if point.is_chosen:
        parts.append(element("circle", cx=position, cy=height, r=8, class_="ring"))
    parts.append(element("path", d=shape(index, position, height), class_="mark", data_tip=point.tip))
    return parts


def _names_at_ends(lines: list[Series], x: Scale, y: Scale, box: Box, letters: int) -> Markup:
    """The names of the lines beside their last points, moved apart where they would cover one another."""
    ends = []
    for index, line in enumerate(lines):
        joined = [p for p in line.points if not p.is_chosen] or list(line.points)
        if joined:
            last = max(joined, key=lambda p: p.x)
            end = line.path[-1] if line.path else (last.x, last.y)
            ends.append((y(end[1]), _at(x, end[0]), index, line.name))
    ends.sort()
    heights = scale([end[0] for end in ends], LINE_OF_LABELS, box.top, box.bottom)
    parts = []
    for (height, position, index, name), moved in zip(ends, heights, strict=True):
        leader = f"M{position + 6:.1f} {height:.1f}L{box.right + 6:.1f} {moved:.1f}"
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


def scale(positions: list[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending positions, moved as little as possible so that neighbours are ``gap`` apart within [low, high]."""
    gap = min(gap, (high - low) / max(1, len(positions) - 1)) if len(positions) > 1 else gap
    moved: list[float] = []
    for position in positions:
        moved.append(max(position, moved[-1] + gap) if moved else max(position, low))
    for i in range(len(moved) - 1, -1, -1):
        ceiling = high if i == len(moved) - 1 else moved[i + 1] - gap
        moved[i] = min(moved[i], ceiling)
    return moved


def _guide_lines(box: Box, x: Scale, y: Scale, guides: Guides) -> Markup:
    parts = []
    for level, label in guides.levels:
        position = y(level)
        parts.append(element("line", x1=box.left, x2=box.right, y1=position, y2=position, class_="chance"))
        parts.append(element("text", label, x=box.right - 2, y=position - 4, class_="tick end guide"))
    if guides.diagonal:
        ends = {"x1": x(x.low), "y1": y(x.low), "x2": x(x.high), "y2": y(x.high)}
        parts.append(element("line", **ends, class_="chance"))
    for row, (value, label) in enumerate(guides.positions):
        position = x(value)
        is_left = position > (box.left + box.right) / 2
        parts.append(element("line", x1=position, x2=position, y1=box.top, y2=box.bottom, class_="position"))
        side = "tick end guide" if is_left else "tick guide"
        parts.append(
            element("text", label, x=position + (-5 if is_left else 5), y=box.top + 8 + 14 * row, class_=side)
        )
    return element("g", *parts)


def _rug(box: Box, x: Scale, values: tuple[tuple[float, str], ...]) -> Markup:
    parts = []
    for value, tip in values:
        position = _at(x, value)
        tick = f"M{position - 1.2:.1f} {box.bottom - 11:.1f}h2.4v11h-2.4z"
        parts.append(element("path", d=tick, class_="mark rug", data_tip=tip))
    return element("g", *parts)
