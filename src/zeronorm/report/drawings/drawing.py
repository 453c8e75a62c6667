"""A figure of the report."""

from __future__ import annotations

from dataclasses import dataclass, field

from markupsafe import Markup

NO_DATA = Markup("")


@dataclass(frozen=True)
class Drawing:
    """A chart, what it shows in words, and its numbers as a table."""

    identifier: str
    title: str
    caption: str
    chart: Markup
    data: Markup = NO_DATA
    headers: tuple[str, ...] = ()
    rows: list[list[str]] = field(default_factory=list)
    legend: list[tuple[str, str]] = field(default_factory=list)
