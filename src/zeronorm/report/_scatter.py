"""Scatter plots: points in groups, one mark each, as SVG and on matplotlib axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from zeronorm.report._svg import (
    COLUMN_INCHES,
    HALF,
    NARROW,
    Axes,
    Box,
    Scale,
    element,
    frame,
    shape,
    svg_chart,
    value_range,
)

MOST_POINTS = 1000  # each of them is an element of the page


@dataclass(frozen=True)
class Dot:
    """One point: its group, whose colour it has, the text shown for it, and whether it is drawn with a ring."""

    x: float
    y: float
    group: int = 0
    tip: str = ""
    is_marked: bool = False


@dataclass(frozen=True)
class Scatter:
    """Points on two linear axes; with ``diagonal`` the line of equal values."""

    dots: tuple[Dot, ...]
    axes: Axes
    diagonal: bool = False

    @property
    def finite(self) -> list[Dot]:
        return [dot for dot in self.dots if math.isfinite(dot.x) and math.isfinite(dot.y)]

    def svg(self, identifier: str, title: str, width: int = HALF) -> Markup:
        dots = self.finite
        if not dots:
            return Markup("")
        height = 330 if width > NARROW else 280
        box = Box(58, 14, width - 14, height - 44)
        x, y = self._scales(dots, box)
        parts = [frame(box, x, y, self.axes)]
        if self.diagonal:
            low, high = max(x.low, y.low), min(x.high, y.high)
            parts.append(element("line", x1=x(low), x2=x(high), y1=y(low), y2=y(high), class_="guide"))
        parts += [
            element(
                "g",
                element("path", d=shape(d.group, x(d.x), y(d.y), _radius(d)), class_="mark", data_tip=d.tip),
                class_=f"series s{d.group % 8}" + (" marked" if d.is_marked else ""),
            )
            for d in dots
        ]
        return svg_chart(identifier, title, (width, height), *parts)

    def _scales(self, dots: list[Dot], box: Box) -> tuple[Scale, Scale]:
        across = value_range([d.x for d in dots], self.axes.x_bounds)
        up = value_range([d.y for d in dots], self.axes.y_bounds)
        return Scale(*across, box.left, box.right), Scale(*up, box.bottom, box.top)

    def data(self, identifier: str) -> Markup:
        return Markup("")

    @property
    def inches(self) -> tuple[float, float]:
        return COLUMN_INCHES, 2.8

    def draw(self, ax: Any) -> None:
        from zeronorm.report._plots import COLOURS

        dots = self.finite
        colours = [COLOURS[d.group % 8] for d in dots]
        edges = ["black" if d.is_marked else "none" for d in dots]
        ax.scatter(
            [d.x for d in dots], [d.y for d in dots], s=12, c=colours, edgecolors=edges, linewidths=0.6
        )
        if self.diagonal:
            ax.axline((0.0, 0.0), slope=1.0, color="grey", linewidth=0.8, linestyle="--", zorder=0)
        ax.set_xlabel(self.axes.x_label)
        ax.set_ylabel(self.axes.y_label)


def _radius(dot: Dot) -> float:
    return 5.0 if dot.is_marked else 3.0
