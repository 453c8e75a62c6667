"""The templates of the pages; everything that they show is escaped."""

from __future__ import annotations

import json
import time
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from zeronorm._messages import rendered
from zeronorm.app._fields import in_labels
from zeronorm.datasets._table import counted

if TYPE_CHECKING:
    import jinja2


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters["day"] = _day
    made.filters["labelled"] = _labelled
    made.filters["pairs"] = _pairs
    made.globals["counted"] = counted
    return made


def page(template: str, **values: Any) -> str:
    """The HTML of a page."""
    return _environment().get_template(template).render(**values)


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _labelled(text: str) -> str:
    """A note with its options as the page calls them."""
    return rendered(text, in_labels)


def _pairs(names: list[str]) -> list[tuple[str, str]]:
    return [(name, name) for name in names]


def event(name: str, value: Any) -> str:
    """A server-sent event that holds a value as JSON."""
    return f"event: {name}\ndata: {json.dumps(value)}\n\n"


@cache
def report_style() -> str:
    """The style of the report, which the pages share."""
    return (resources.files("zeronorm.report") / "templates" / "style.css").read_text(encoding="utf-8")
