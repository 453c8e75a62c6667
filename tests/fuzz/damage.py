"""Damage of JSON files, driven by what they hold: each field is removed, emptied or replaced by another kind.

``damages`` yields each damaged content once; the fields of lists of many equal things (rows, numbers) are tried in the
first, a middle and the last of them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

KEEP_OUT = ("format", "format_version")  # a file without them is not ours, which is another test
REPLACEMENTS: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "minus one": -1,
    "a fraction": 0.5,
    "1e400": 10**400,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "text": "wide",
    "empty text": "",
    "markup": "<b>\x00\x1b[31m",
    "empty list": [],
    "empty group": {},
    "nested list": [[[[1.0]]]],
    "list of text": ["a", "b", "c"],
    "group in a list": [{"a": 1}],
}


def paths(content: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every field, and of three items of every list."""
    if isinstance(content, dict):
        keys: list[Any] = [key for key in content if at or key not in KEEP_OUT]
    elif isinstance(content, list):
        keys = sorted({0, len(content) // 2, len(content) - 1}) if content else []
    else:
        return
    for key in keys:
        yield (*at, key)
        yield from paths(content[key], (*at, key))


def damages(content: Any) -> Iterator[tuple[str, Any]]:
    """Each damaged content with the name of its damage."""
    for path in paths(content):
        name = ".".join(map(str, path))
        old = _inside(content, path)
        yield f"{name} removed", _changed(content, path, lambda parent, key: parent.pop(key))
        for kind, value in REPLACEMENTS.items():
            if not (type(value) is type(old) and value == old):
                yield f"{name} becomes {kind}", _replaced(content, path, value)
        if isinstance(old, list) and old:
            yield f"{name} one shorter", _replaced(content, path, old[:-1])
            yield f"{name} one longer", _replaced(content, path, [*old, old[-1]])
        if isinstance(old, dict):
            yield f"{name} with an unknown field", _replaced(content, path, {**old, "more": 1})
    yield "unknown field", {**content, "more": 1}


def _inside(content: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        content = content[key]
    return content


def _changed(content: Any, path: tuple[Any, ...], change: Any) -> Any:
    content = copy.deepcopy(content)
    change(_inside(content, path[:-1]), path[-1])
    return content


def _replaced(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    return _changed(content, path, lambda parent, key: parent.__setitem__(key, value))
