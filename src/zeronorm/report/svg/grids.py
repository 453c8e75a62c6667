"""Tables of coloured cells: one path per colour, so that large maps stay small files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from zeronorm.report.svg.markup import chart, element, visible

WIDTH = 520
LABELS = 150
ROW = 14
STRIP = 10
SLANTED = 96


@dataclass(frozen=True)
class Grid:
    """Cells by level (row by row), with names for rows and columns and words for the levels.

    ``strip`` gives a class number per column, drawn above the cells.
    """

    rows: list[str]
    columns: list[str]
    levels: list[list[int]]
    palette: str
    words: list[str] = field(default_factory=list)
    cells: list[list[str]] | None = None
    strip: list[int] | None = None
    column_ticks: list[tuple[int, str]] = field(default_factory=list)
    x_label: str = ""


def grid_chart(identifier: str, title: str, grid: Grid) -> Markup:
    """The map; the page's script reads names of cells from the data that ``grid_data`` writes."""
    n_rows, n_columns = len(grid.rows), len(grid.columns)
    top = STRIP + 6 if grid.strip is not None else 4
    row_height = ROW if n_rows > 8 else 18
    width = (WIDTH - LABELS - 4) / n_columns
    parts = [
        element("path", d=path, class_=f"{grid.palette}{level}")
        for level, path in _level_paths(grid.levels, width, row_height, top)
    ]
    if grid.strip is not None:
        parts += _strip(grid.strip, width)
    for row, name in enumerate(grid.rows):
        height = top + row * row_height + row_height * 0.75
        parts.append(element("text", visible(name, 24), x=LABELS - 6, y=height, class_="cell-label end name"))
    bottom = top + n_rows * row_height
    parts += [
        _column_name(LABELS + (column + 0.5) * width, bottom, text, grid)
        for column, text in grid.column_ticks
    ]
    height = bottom + (SLANTED if _is_slanted(grid) else 20 if grid.column_ticks else 4)
    if grid.x_label:
        height += 16
        middle = LABELS + (WIDTH - LABELS) / 2
        parts.append(element("text", grid.x_label, x=middle, y=height - 4, class_="label middle"))
    place = f"{LABELS} {top} {width:.4f} {row_height}"
    cursor = element("rect", width=width, height=row_height, class_="cursor", x=-99, y=-99)
    return chart(identifier, title, height, *parts, cursor, width=WIDTH, data_grid=place)


def _is_slanted(grid: Grid) -> bool:
    """Long names under narrow columns are written at an angle."""
    widest = max((len(text) for _, text in grid.column_ticks), default=0)
    return widest * 7 * len(grid.column_ticks) > WIDTH - LABELS


def _column_name(x: float, y: float, text: str, grid: Grid) -> Markup:
    if not _is_slanted(grid):
        return element("text", text, x=x, y=y + 14, class_="tick middle")
    return element(
        "text",
        text,
        x=x + 4,
        y=y + 10,
        class_="tick end name",
        transform=f"rotate(-40 {x + 4:.1f} {y + 10:g})",
    )


def grid_data(identifier: str, grid: Grid) -> Markup:
    """Names and words for the cells, as JSON that cannot end its script element."""
    content: dict[str, Any] = {
        "rows": [visible(name) for name in grid.rows],
        "columns": grid.columns,
        "levels": grid.levels,
        "words": grid.words,
        "cells": grid.cells,
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return element("script", Markup(safe), type="application/json", id=f"{identifier}-data")


def _level_paths(
    levels: list[list[int]], width: float, row_height: float, top: float
) -> list[tuple[int, str]]:
    """Runs of equal cells as rectangles, collected by level."""
    paths: dict[int, list[str]] = {}
    for row, cells in enumerate(levels):
        start = 0
        for column in range(1, len(cells) + 1):
            if column == len(cells) or cells[column] != cells[start]:
                x, run = LABELS + start * width, (column - start) * width
                y = top + row * row_height
                paths.setdefault(cells[start], []).append(
                    f"M{x:.1f} {y:g}h{run:.2f}v{row_height:g}h{-run:.2f}z"
                )
                start = column
    return [(level, "".join(parts)) for level, parts in sorted(paths.items())]


def _strip(classes: list[int], width: float) -> list[Markup]:
    parts = []
    start = 0
    for column in range(1, len(classes) + 1):
        if column == len(classes) or classes[column] != classes[start]:
            parts.append(
                element(
                    "rect",
                    x=LABELS + start * width,
                    y=2,
                    width=(column - start) * width,
                    height=STRIP,
                    class_=f"class-strip c{classes[start] % 8}",
                )
            )
            start = column
    return parts
