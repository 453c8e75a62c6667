"""Inline SVG: escaped elements, scales with round ticks, and the frame of a chart.

Charts can be printed, need no library and take their colours from the page. Each is drawn at two widths, one of them
for phones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

WIDE, HALF, NARROW = 760, 520, 340
N_COLOURS = 8
N_SHAPES = 4
MOST_WITH_INTERVALS = 6  # lines
ZERO_ON_LOG = 0.5  # the position of a count of 0 on a logarithmic axis
COLUMN_INCHES = 3.5  # of a journal
TEXT_WIDTH = 6.6  # width of an average character at the size of the labels
WIDE_TEXT = 7.6  # width of a wide character, for the number of characters that fit in any case


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """An SVG or HTML element; plain strings among children and attribute values are escaped.

    Underscores in attribute names become hyphens; a trailing one, as in ``class_``, is removed.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_short(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = Markup("").join(children)
    return Markup(f"<{tag}{written}>{inner}</{tag}>")


def _short(value: Any) -> Any:
    """A coordinate with at most two decimals, to keep the file small."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def visible(text: str, limit: int = 120) -> str:
    """Text for a label: control characters made visible, long text cut."""
    shown = "".join(c if c.isprintable() else "␤" if c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def svg_chart(
    identifier: str, title: str, size: tuple[float, float], *parts: Markup, **attributes: Any
) -> Markup:
    """A chart of ``size`` (width, height) that can be reached by keyboard and has a title for screen readers."""
    return element(
        "svg",
        *parts,
        id=identifier,
        class_="chart",
        viewBox=f"0 0 {size[0]:g} {size[1]:g}",
        role="img",
        tabindex=0,
        aria_label=title,
        **attributes,
    )


def label_room(
    names: list[str], width: int, share: float = 0.3, letter: float = TEXT_WIDTH
) -> tuple[int, int]:
    """Width of the names at the side of a chart, and the number of characters that fit."""
    shown = [visible(name) for name in names]
    longest = max(map(len, shown), default=0)
    needed = max((max(len(name) * letter, text_width(name)) for name in shown), default=0.0) + 10
    room = min(needed, share * width)
    fitting = longest if needed <= room else int((room - 8) / WIDE_TEXT)
    return round(room), max(4, fitting)


NARROW_LETTERS, WIDE_LETTERS = set("fijlrtI.,:;!|'()[] "), set("mwMW@%")


def text_width(text: str, size: float = 12.0) -> float:
    """Width of a text in pixels, in one of the wider fonts."""
    ems = (
        0.4
        if letter in NARROW_LETTERS
        else 0.98
        if letter in WIDE_LETTERS
        else 0.71
        if letter.isupper()
        else 0.62
        for letter in text
    )
    return size * sum(ems)


def fitted(text: str, room: float, size: float = 12.0) -> str:
    """The text, or as much of its start as fits."""
    letters = len(visible(text))
    while letters > 1 and text_width(visible(text, letters), size) > room:
        letters -= 1
    return visible(text, letters)


# -- Scales --


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic map from [low, high] to [start, end]."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        low, high, v = (math.log(x) if self.is_log else x for x in (self.low, self.high, inside))
        share = 0.5 if high == low else (v - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """Round values within the range."""
        if self.is_log:
            return log_ticks(self.low, self.high, wanted + 3)
        return linear_ticks(self.low, self.high, wanted)


def linear_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten within the range."""
    if high <= low:
        return [low]
    raw = (high - low) / wanted
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """1, 2, 5, 10, … within the range of a count; only powers of ten where these are more than ``most``."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**p for p in powers for m in (1, 2, 5)]
    inside = [t for t in ticks if low * 0.999 <= t <= high * 1.001 and (t >= 1.0 or t == ZERO_ON_LOG)]
    if len(inside) > most:
        inside = [t for t in inside if math.isclose(t, 10.0 ** round(math.log10(t)))]
    return inside or [low, high]


def value_range(
    values: list[float], bounds: tuple[float | None, float | None] = (None, None), room: float = 0.06
) -> tuple[float, float]:
    """The range of an axis: the values with a margin, within the bounds, starting at 0 where 0 is a bound."""
    low, high = min(values), max(values)
    space = (high - low) * room or abs(high) * room or 1.0
    lowest, highest = bounds
    bottom = low - space if lowest is None else (0.0 if lowest == 0.0 else max(lowest, low - space))
    top = high + space if highest is None else min(highest, high + space)
    return (bottom, top) if top > bottom else (bottom, bottom + 1.0)


# -- The frame of a chart --


@dataclass(frozen=True)
class Axes:
    """Labels of the axes, the possible values, and whether x is logarithmic."""

    x_label: str
    y_label: str
    y_format: Callable[[float], str] = "{:g}".format
    x_log: bool = True
    y_bounds: tuple[float | None, float | None] = (None, None)
    x_bounds: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class Box:
    """The part of the chart inside the axes, in pixels."""

    left: float
    top: float
    right: float
    bottom: float


def frame(box: Box, x: Scale, y: Scale, axes: Axes) -> Markup:
    """Grid lines, ticks and labels around a box."""
    parts = []
    for tick in y.ticks():
        position = y(tick)
        parts.append(element("line", x1=box.left, x2=box.right, y1=position, y2=position, class_="grid"))
        parts.append(
            element("text", axes.y_format(tick), x=box.left - 6, y=position + 4, class_="tick end y-tick")
        )
    for tick in x.ticks(4 if box.right - box.left < 320 else 5):
        position = x(tick)
        parts.append(
            element("line", x1=position, x2=position, y1=box.bottom, y2=box.bottom + 5, class_="axis")
        )
        text = "0" if tick == ZERO_ON_LOG and x.is_log else f"{tick:g}"
        parts.append(element("text", text, x=position, y=box.bottom + 18, class_="tick middle x-tick"))
    parts.append(element("line", x1=box.left, x2=box.right, y1=box.bottom, y2=box.bottom, class_="axis"))
    across, center = (box.left + box.right) / 2, (box.top + box.bottom) / 2
    parts.append(element("text", axes.x_label, x=across, y=box.bottom + 37, class_="label middle"))
    turned = f"rotate(-90 13 {center:g})"
    parts.append(element("text", axes.y_label, x=13, y=center, class_="label middle", transform=turned))
    return element("g", *parts)


def shape(index: int, x: float, y: float, r: float = 4.0) -> str:
    """Path of a circle, square, triangle or diamond, by which lines can be told apart without colour."""
    shapes = (
        f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z",
        f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z",
        f"M{x:.1f} {y - r - 1:.1f}l{r + 1} {2 * r + 1}h{-2 * r - 2}z",
        f"M{x:.1f} {y - r - 1:.1f}l{r + 1} {r + 1}l{-r - 1} {r + 1}l{-r - 1} {-r - 1}z",
    )
    return shapes[shape_number(index)]


def shape_number(index: int) -> int:
    """Index of the shape of a line: lines of the same colour have different shapes and dashes."""
    return (index + index // N_COLOURS) % N_SHAPES


def series_class(index: int) -> str:
    """The style classes of a line: its colour and dash."""
    return f"series s{index % N_COLOURS} dash{index // N_COLOURS % 3}"
