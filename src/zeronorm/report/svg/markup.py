"""SVG elements with everything escaped."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup, escape


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """An element; plain strings among children and attribute values are escaped.

    Underscores in attribute names stand for hyphens, a trailing one avoids Python's keywords.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_short(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = Markup("").join(children)
    return Markup(f"<{tag}{written}>{inner}</{tag}>")


def _short(value: Any) -> Any:
    """Coordinates with at most two decimals keep the file small."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def visible(text: str, limit: int = 120) -> str:
    """Text for a label: control characters made visible, long text cut."""
    shown = "".join(c if c.isprintable() else "␤" if c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def chart(
    identifier: str, title: str, height: float, *parts: Markup, width: int, **attributes: Any
) -> Markup:
    """A whole chart, reachable by keyboard and named for screen readers."""
    return element(
        "svg",
        *parts,
        id=identifier,
        class_="chart",
        viewBox=f"0 0 {width} {height:g}",
        role="img",
        tabindex=0,
        aria_label=title,
        **attributes,
    )
