"""Bar charts and heat maps: their data, and how they are drawn as SVG.

Like every picture, they have ``svg``, ``data`` (what the page's script needs), ``inches`` and ``draw`` (the same on
matplotlib axes).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from zeronorm.report._svg import COLUMN_INCHES, HALF, element, fitted, label_room, svg_chart, visible
from zeronorm.result._plain import finite

CONTINUOUS = ("r", "p")
PAGE_INCHES, LINE_INCHES = 7.0, 0.14  # of a journal: the page, and a line of small type

# -- Bars --


@dataclass(frozen=True)
class Bar:
    """One bar: its length as a share of the longest possible, its value as text, and whether it is selected."""

    name: str
    share: float
    text: str
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
        from zeronorm.report._plots import draw_bars

        draw_bars(ax, self)


def _bar_chart(
    identifier: str, title: str, bars: list[Bar], width: int, chance: tuple[float, str] | None
) -> Markup:
    row, thickness, values = 20, 13, 58
    labels, _ = label_room([bar.name for bar in bars], width, share=0.36)
    length = width - labels - values
    parts = []
    for i, bar in enumerate(bars):
        top = i * row + 4
        end = labels + bar.share * length
        kind = "mark bar chosen" if bar.is_selected else "mark bar"
        size = {"width": max(1.0, bar.share * length), "height": thickness}
        name = fitted(bar.name, labels - 8)
        parts.append(element("text", name, x=labels - 6, y=top + thickness - 2, class_="tick end name"))
        parts.append(element("rect", x=labels, y=top, **size, class_=kind, data_tip=bar.tip))
        parts.append(element("text", bar.text, x=end + 6, y=top + thickness - 2, class_="tick"))
    height = len(bars) * row + (30 if chance else 8)
    if chance is not None:
        position = labels + chance[0] * length
        parts.append(element("line", x1=position, x2=position, y1=0, y2=height - 24, class_="chance"))
        parts.append(element("text", chance[1], x=position, y=height - 8, class_="tick"))
    return svg_chart(identifier, title, (width, height), *parts)


# -- Heat maps --


@dataclass(frozen=True)
class Grid:
    """A heat map with names of rows and columns and a text for every cell.

    ``levels`` are indices of colours in the ``palette``; with the palettes "r" (correlations) and "p" (shares)
    they are values from -1 or 0 to 1 on a continuous scale. ``texts`` describe the levels, or ``cells`` every cell.
    ``strip`` gives a class number per column, drawn above the cells; ``marked`` is a column with a border around it;
    ``shown`` are texts that are written into the cells.
    """

    rows: list[str]
    columns: list[str]
    levels: list[list[float]]
    palette: str
    texts: list[str] = field(default_factory=list)
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
        from zeronorm.report._plots import draw_grid

        draw_grid(ax, self)


def _grid_chart(identifier: str, title: str, grid: Grid, width: int) -> Markup:
    """The SVG of a heat map; the script of the page takes the names of the cells from the data of the figure."""
    n_rows = len(grid.rows)
    labels, _ = label_room(grid.rows, width, share=0.32)
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
        position = top + (row + 0.75) * row_height
        parts.append(
            element("text", fitted(name, labels - 8), x=labels - 6, y=position, class_="cell-label end name")
        )
    bottom = top + n_rows * row_height
    names, room = _column_names(grid, labels, cell, bottom)
    height = bottom + room + (16 if grid.x_label else 4)
    if grid.x_label:
        center = labels + (width - labels) / 2
        names.append(element("text", grid.x_label, x=center, y=height - 4, class_="label middle"))
    if grid.marked is not None:
        position = labels + grid.marked * cell
        size = {"width": max(cell, 2.0), "height": bottom - top}
        names.append(element("rect", x=position, y=top, **size, class_="marked"))
    if grid.shown is not None:
        names += [
            element(
                "text",
                text,
                x=labels + (j + 0.5) * cell,
                y=top + (i + 0.64) * row_height,
                class_="cell-text middle",
            )
            for i, row_texts in enumerate(grid.shown)
            for j, text in enumerate(row_texts)
        ]
    cursor = element("rect", width=cell, height=row_height, class_="cursor", x=-99, y=-99)
    position_of_cells = f"{labels} {top} {cell:.4f} {row_height}"
    return svg_chart(identifier, title, (width, height), *parts, *names, cursor, data_grid=position_of_cells)


def _fill(palette: str, level: float) -> dict[str, Any]:
    """Attributes for a colour of the palette; on a continuous scale, the opacity of one of its colours."""
    if palette not in CONTINUOUS:
        return {"class_": f"{palette}{level:g}"}
    return {"class_": f"{palette}-{'below' if level < 0 else 'above'}", "fill_opacity": abs(level)}


def _column_names(grid: Grid, labels: float, cell: float, bottom: float) -> tuple[list[Markup], float]:
    """Names under the columns, horizontal where they fit and vertical elsewhere; and the height they take."""
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
    # A vertical name is as wide as a line is high: where columns are narrower, only some are named.
    names = []
    for i, text in ticks[:: max(1, math.ceil(9.0 / gap))]:
        x, y = labels + (i + 0.5) * cell + 3, bottom + 6
        turned = f"rotate(-90 {x:.1f} {y:g})"
        names.append(element("text", text, x=x, y=y, class_="cell-label end name", transform=turned))
    return names, 12.0 + 6.2 * longest


def _grid_data(identifier: str, grid: Grid) -> Markup:
    """Names and texts of the cells, as JSON that cannot end its script element."""
    content: dict[str, Any] = {
        "rows": [visible(name) for name in grid.rows],
        "columns": grid.columns,
        "levels": grid.levels if grid.cells is None else None,
        "texts": grid.texts,
        "cells": grid.cells,
    }
    text = json.dumps(finite(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return element("script", Markup(safe), type="application/json", id=identifier)


def _level_paths(
    levels: list[list[float]], left: float, width: float, row_height: float, top: float
) -> list[tuple[float, str]]:
    """Runs of equal cells as rectangles, one path per colour, which keeps the files of large maps small."""
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
