"""Checks the content of a JSON file against the description of its kind of file.

A description is a JSON Schema in a file beside this module. The keywords in ``KEYWORDS`` are checked, with the meaning
of JSON Schema, and every number must be finite as a float. The keyword ``axes`` ties arrays to each other: it names
each axis of an array, and an axis has one length in the whole file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

LONGEST_VALUE = 60  # characters of a wrong value in a message


class Mismatch(ValueError):
    """Content that differs from its description; the text says where and what was found."""


@cache
def described(kind: str) -> dict[str, Any]:
    """The JSON schema of a kind of file, such as "result" or "model"."""
    file = Path(__file__).with_name(f"{kind}.schema.json")
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def parsed(text: str) -> Any:
    """The content of JSON text; Mismatch where it is no JSON, is nested too deeply, or has infinities or NaN."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except Mismatch:
        raise
    except (ValueError, RecursionError) as error:
        raise Mismatch("it is not valid JSON") from error


def _no_constant(name: str) -> None:
    raise Mismatch(f"it holds {name}, which is no finite number")


def check(content: Any, schema: dict[str, Any], root: dict[str, Any] | None = None) -> None:
    """Raise Mismatch unless the content is as the schema describes it; ``root`` holds the definitions."""
    wrong = next(_Check(root or schema).faults(content, schema, ""), None)
    if wrong is not None:
        raise Mismatch(wrong)


def shown(value: Any) -> str:
    """A value as short JSON text, for messages."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _is_whole(value: Any) -> bool:
    return _is_number(value) and float(value).is_integer()


TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "object": ("a group of named values", lambda v: isinstance(v, dict)),
    "array": ("a list", lambda v: isinstance(v, list)),
    "string": ("a text", lambda v: isinstance(v, str)),
    "boolean": ("true or false", lambda v: isinstance(v, bool)),
    "null": ("null", lambda v: v is None),
    "integer": ("a whole number", _is_whole),
    "number": ("a finite number", _is_number),
}
# Limits: the values they hold for, whether a value keeps to it, and the text of the message.
LIMITS: dict[str, tuple[Callable[[Any], bool], Callable[[Any, Any], bool], str]] = {
    "minimum": (_is_number, lambda v, limit: v >= limit, "must be at least {}"),
    "maximum": (_is_number, lambda v, limit: v <= limit, "must be at most {}"),
    "exclusiveMinimum": (_is_number, lambda v, limit: v > limit, "must be greater than {}"),
    "minItems": (TYPES["array"][1], lambda v, limit: len(v) >= limit, "must have at least {} values"),
    "maxItems": (TYPES["array"][1], lambda v, limit: len(v) <= limit, "must have at most {} values"),
    "maxProperties": (TYPES["object"][1], lambda v, limit: len(v) <= limit, "must have at most {} fields"),
    "pattern": (TYPES["string"][1], lambda v, limit: re.search(limit, v) is not None, "must match {}"),
    "uniqueItems": (
        TYPES["array"][1],
        lambda v, limit: len({_whole_text(item) for item in v}) == len(v),
        "must have distinct values",
    ),
}
WITHOUT_EFFECT = {"$schema", "$id", "$defs", "title", "description"}
KEYWORDS = {
    *("type", "const", "enum", "anyOf", "$ref", "required", "properties", "additionalProperties"),
    *("propertyNames", "items", "axes"),
    *LIMITS,
}


def _whole_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


class _Check:
    """One pass over a file, with the lengths of the axes found so far."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.axes: dict[str, tuple[int, str]] = {}

    def faults(self, value: Any, schema: dict[str, Any] | bool, at: str) -> Iterator[str]:
        """What differs from the schema, in the order of the file."""
        if isinstance(schema, bool):
            if not schema:
                yield f"the field {at!r} is unknown"
            return
        if "$ref" in schema:
            yield from self.faults(value, self.root["$defs"][schema["$ref"].rpartition("/")[2]], at)
        if "anyOf" in schema:
            found = [list(self.faults(value, choice, at)) for choice in schema["anyOf"]]
            yield from [] if [] in found else found[0]
        yield from self._of_value(value, schema, at)
        if isinstance(value, dict):
            yield from self._of_fields(value, schema, at)
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.faults(item, schema.get("items", True), f"{at}[{index}]")
            yield from self._of_axes(value, schema.get("axes", ()), at)

    def _of_value(self, value: Any, schema: dict[str, Any], at: str) -> Iterator[str]:
        name = repr(at) if at else "the content"
        kinds = schema.get("type", ())
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        if kinds and not any(TYPES[kind][1](value) for kind in kinds):
            yield f"{name} must be {' or '.join(TYPES[kind][0] for kind in kinds)}, not {shown(value)}"
        allowed = [schema["const"]] if "const" in schema else schema.get("enum")
        if allowed is not None and not any(type(value) is type(one) and value == one for one in allowed):
            yield f"{name} must be {' or '.join(map(shown, allowed))}, not {shown(value)}"
        for keyword, (applies, keeps, text) in LIMITS.items():
            if keyword in schema and applies(value) and not keeps(value, schema[keyword]):
                yield f"{name} {text.format(schema[keyword])}, not {shown(value)}"

    def _of_fields(self, value: dict[str, Any], schema: dict[str, Any], at: str) -> Iterator[str]:
        known = schema.get("properties", {})
        inside = f"{at}." if at else ""
        for name in schema.get("required", ()):
            if name not in value:
                yield f"the field {inside + name!r} is missing"
        for name, item in value.items():
            yield from self.faults(name, schema.get("propertyNames", True), f"{inside}{name}")
            expected = known[name] if name in known else schema.get("additionalProperties", True)
            yield from self.faults(item, expected, f"{inside}{name}")

    def _of_axes(self, value: Any, axes: Any, at: str) -> Iterator[str]:
        """Lists whose axes have another length than elsewhere in the file."""
        if not axes or not isinstance(value, list):
            return
        length, first = self.axes.setdefault(axes[0], (len(value), at))
        if len(value) != length:
            yield f"{at!r} has {len(value)} values, but {first!r} has {length}; their lengths must be equal"
        for index, item in enumerate(value):
            yield from self._of_axes(item, axes[1:], f"{at}[{index}]")
