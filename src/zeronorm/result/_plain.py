"""Plain values for JSON, and the values of figures as a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def finite(value: Any) -> Any:
    """The same value with NaN and infinities as None, arrays as lists, numbers as Python numbers."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {_key(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def _key(key: Any) -> str | int:
    return key if isinstance(key, (str, int)) else str(key)


INDICES = ("i", "j", "k")
KINDS = {"bool": bool, "int": int, "float": float, "str": str}


def figure_values(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Columns of a table with one row per value: figure, part, indices within the part, kind, and number or text."""
    cells: dict[str, list[Any]] = {
        name: [] for name in ("figure", "part", *INDICES, "kind", "number", "text")
    }
    for figure, parts in finite(figures).items():
        for part, content in parts.items():
            for indices, value in _leaves(content):
                padded = (*indices, *[None] * (len(INDICES) - len(indices)))
                is_number = isinstance(value, (bool, int, float))
                row = (
                    *(figure, part, *padded, type(value).__name__),
                    float(value) if is_number else None,
                    value if isinstance(value, str) else None,
                )
                for column, cell in zip(cells.values(), row, strict=True):
                    column.append(cell)
    return cells


def _leaves(content: Any, indices: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Every value of nested lists with its indices; an empty list is a value."""
    if not isinstance(content, list) or not content:
        yield indices, content
        return
    for number, item in enumerate(content):
        yield from _leaves(item, (*indices, number))


def figures_from(cells: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The figures, from the rows of the table that ``figure_values`` made."""
    figures: dict[str, dict[str, Any]] = {}
    for row in cells:
        parts = figures.setdefault(row["figure"], {})
        kind = row["kind"]
        value: Any = [] if kind == "list" else None
        if kind in KINDS:
            value = KINDS[kind](row["text"] if kind == "str" else row["number"])
        indices = [row[name] for name in INDICES if row[name] is not None]
        if not indices:
            parts[row["part"]] = value
            continue
        target = parts.setdefault(row["part"], [])
        for number in indices[:-1]:
            if len(target) == number:
                target.append([])
            target = target[number]
        target.append(value)
    return figures
