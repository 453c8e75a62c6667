"""Horizontal bars."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from zeronorm.report.svg.markup import chart, element, visible

WIDTH = 520
LABELS = 170
VALUES = 48
ROW = 20
BAR = 13


@dataclass(frozen=True)
class Bar:
    """One bar: its share of the whole width, and whether it belongs to the result."""

    name: str
    share: float
    is_selected: bool


def bar_chart(identifier: str, title: str, bars: list[Bar], expected: float) -> Markup:
    """Shares between 0 and 1; a line marks the share expected by chance."""
    if not bars:
        return Markup("")
    scale = WIDTH - LABELS - VALUES
    parts = []
    for row, bar in enumerate(bars):
        top = row * ROW + 4
        tip = f"{visible(bar.name)}: selected in {100 * bar.share:.0f} % of the training parts"
        kind = "bar chosen" if bar.is_selected else "bar"
        name = visible(bar.name, 26)
        parts.append(element("text", name, x=LABELS - 8, y=top + BAR - 2, class_="tick end name"))
        parts.append(
            element(
                "rect",
                x=LABELS,
                y=top,
                width=max(1.0, bar.share * scale),
                height=BAR,
                class_=f"mark {kind}",
                data_tip=tip,
            )
        )
        value = f"{100 * bar.share:.0f} %"
        parts.append(element("text", value, x=LABELS + bar.share * scale + 6, y=top + BAR - 2, class_="tick"))
    height = len(bars) * ROW + 30
    chance = LABELS + expected * scale
    parts.append(element("line", x1=chance, x2=chance, y1=0, y2=height - 24, class_="chance"))
    parts.append(
        element(
            "text",
            f"by chance: {100 * expected:.2g} %",
            x=max(chance, LABELS + 4),
            y=height - 8,
            class_="tick",
        )
    )
    return chart(identifier, title, height, *parts, width=WIDTH)
