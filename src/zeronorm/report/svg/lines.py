"""Line charts with intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from markupsafe import Markup

from zeronorm.report.svg.markup import chart, element, visible
from zeronorm.report.svg.scales import Scale, padded

WIDTH = 520
HEIGHT = 300
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 14, 46
N_COLOURS = 8
LINE_OF_LEGEND = 18
WIDEST_SHIFT = 14.0
MOST_WITH_INTERVALS = 6


@dataclass(frozen=True)
class Point:
    """One point with its interval and the text that is shown for it."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    tip: str = ""
    is_chosen: bool = False


@dataclass(frozen=True)
class Series:
    """One line."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Axes:
    """Labels and number formats."""

    x_label: str
    y_label: str
    y_format: Callable[[float], str]
    x_log: bool = True
    from_zero: bool = True
    y_highest: float | None = None


def line_chart(identifier: str, title: str, series: list[Series], axes: Axes) -> Markup:
    """Lines with 95 % intervals (not for more than six lines); chosen points are ringed."""
    shown = series if len(series) <= MOST_WITH_INTERVALS else [_without_intervals(line) for line in series]
    points = [point for line in shown for point in line.points]
    if not points:
        return Markup("")
    x = _x_scale(points, axes)
    y = _y_scale(points, axes)
    legend = _legend(series) if len(series) > 1 else []
    height = HEIGHT + LINE_OF_LEGEND * ((len(legend) + 1) // 2)
    lines = [_line(i, line, _moved(x, i, len(series)), y) for i, line in enumerate(shown)]
    parts = [_frame(x, y, axes), *lines, *legend]
    return chart(identifier, title, height, *parts, width=WIDTH)


def _without_intervals(line: Series) -> Series:
    return replace(line, points=tuple(replace(point, low=None, high=None) for point in line.points))


def _x_scale(points: list[Point], axes: Axes) -> Scale:
    low, high = min(p.x for p in points), max(p.x for p in points)
    if axes.x_log:
        low, high = low / 1.12, high * 1.12
    else:
        low, high = padded(low, high)
    return Scale(low, high, LEFT, WIDTH - RIGHT, is_log=axes.x_log)


def _y_scale(points: list[Point], axes: Axes) -> Scale:
    lows = [p.y if p.low is None else p.low for p in points]
    highs = [p.y if p.high is None else p.high for p in points]
    low, high = padded(min(lows), max(highs))
    if axes.from_zero and min(lows) >= 0.0:
        low = 0.0
    if axes.y_highest is not None:
        high = min(high, axes.y_highest)
    if high <= low:
        high = low + 1.0
    return Scale(low, high, HEIGHT - BOTTOM, TOP)


def _moved(x: Scale, index: int, n_series: int) -> Scale:
    """Lines stand a little beside each other, so that their intervals do not cover one another."""
    step = min(4.0, WIDEST_SHIFT / n_series)
    shift = step * (index - (n_series - 1) / 2)
    return replace(x, start=x.start + shift, end=x.end + shift)


def _frame(x: Scale, y: Scale, axes: Axes) -> Markup:
    parts = []
    for tick in y.ticks():
        place = y(tick)
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=place, y2=place, class_="grid"))
        parts.append(element("text", axes.y_format(tick), x=LEFT - 8, y=place + 4, class_="tick end"))
    for tick in x.ticks():
        place = x(tick)
        bottom = HEIGHT - BOTTOM
        parts.append(element("line", x1=place, x2=place, y1=bottom, y2=bottom + 5, class_="axis"))
        parts.append(element("text", f"{tick:g}", x=place, y=bottom + 18, class_="tick middle"))
    bottom = HEIGHT - BOTTOM
    parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=bottom, y2=bottom, class_="axis"))
    parts.append(
        element("text", axes.x_label, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 8, class_="label middle")
    )
    middle = (TOP + bottom) / 2
    parts.append(
        element(
            "text",
            axes.y_label,
            x=14,
            y=middle,
            class_="label middle",
            transform=f"rotate(-90 14 {middle:g})",
        )
    )
    return element("g", *parts)


def _line(index: int, line: Series, x: Scale, y: Scale) -> Markup:
    parts = []
    joined = [point for point in line.points if not point.is_chosen]
    if len(joined) > 1:
        places = " ".join(f"{x(p.x):.1f},{y(p.y):.1f}" for p in joined)
        parts.append(element("polyline", points=places, class_="line"))
    for point in line.points:
        parts += _marks(index, point, x, y)
    return element("g", *parts, class_=f"series s{index % N_COLOURS}")


def _marks(index: int, point: Point, x: Scale, y: Scale) -> list[Markup]:
    place, height = x(point.x), y(point.y)
    parts = []
    if point.low is not None and point.high is not None:
        low, high = y(max(point.low, y.low)), y(min(point.high, y.high))
        parts.append(element("line", x1=place, x2=place, y1=low, y2=high, class_="interval"))
    if point.is_chosen:
        parts.append(element("circle", cx=place, cy=height, r=8, class_="ring"))
    parts.append(element("path", d=_shape(index, place, height), class_="mark", data_tip=point.tip))
    return parts


def _shape(index: int, x: float, y: float) -> str:
    """Circle, square, triangle or diamond, so that lines differ without colour."""
    r = 4.0
    shapes = (
        f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z",
        f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z",
        f"M{x:.1f} {y - r - 1:.1f}l{r + 1} {2 * r + 1}h{-2 * r - 2}z",
        f"M{x:.1f} {y - r - 1:.1f}l{r + 1} {r + 1}l{-r - 1} {r + 1}l{-r - 1} {-r - 1}z",
    )
    return shapes[index % len(shapes)]


def _legend(series: list[Series]) -> list[Markup]:
    parts = []
    for i, line in enumerate(series):
        left = LEFT + (i % 2) * 225
        top = HEIGHT + 6 + LINE_OF_LEGEND * (i // 2)
        parts.append(
            element(
                "g",
                element("path", d=_shape(i, left, top), class_="mark"),
                element("text", visible(line.name, 30), x=left + 12, y=top + 4, class_="legend name"),
                class_=f"series s{i % N_COLOURS}",
            )
        )
    return parts
