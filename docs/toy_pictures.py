"""Pictures of the methods on one toy problem, as inline SVG with the colours of the page."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent / "toy"
# Groups of features of the toy problem: the number of the last feature, as in toy/measure.py, and the CSS class.
PARTS = {
    "strong to weak": (3, "strong"),
    "their near copies": (6, "copies"),
    "act only together": (8, "pair"),
    "noise": (30, "noise"),
}
WIDTH, HEIGHT, LEFT, TOP = 640, 150, 44, 12


@cache
def rows(name: str) -> dict[str, list[str]]:
    """Rows of a committed table by their first cell."""
    with (HERE / name).open(encoding="utf-8") as stream:
        return {row[0]: row[1:] for row in csv.reader(stream)}


def picture(method: str) -> list[str]:
    """Lines of reStructuredText with the picture of a method and its caption."""
    if method in rows("selected.csv"):
        date, *cells = rows("selected.csv")[method]
        return [*_raw(_bars([float(cell) for cell in cells])), *_about_selection(method, cells, date)]
    if method in rows("errors.csv"):
        date, *ours = rows("errors.csv")[method]
        peers = rows("errors.csv")[f"{method} peer"][1:]
        return [
            *_raw(_dots([float(e) for e in ours], [float(e) for e in peers])),
            *_about_errors(method, date),
        ]
    return []


def _raw(svg: list[str]) -> list[str]:
    return [".. raw:: html", "", *(f"   {line}" for line in svg), ""]


def _about_selection(method: str, cells: list[str], date: str) -> list[str]:
    lines = [
        "How often each feature was selected in 20 draws of 100 samples and 30 features, with default settings.",
        "Features 1 to 3 shift the classes, strongly to weakly; 4 to 6 are near copies of them (correlation 0.9);",
        "7 and 8 have an effect only by their product; the rest is noise. Methods that choose the size show the",
        f"features they keep, all others their first five. ``python docs/toy/measure.py``, {date}.",
    ]
    if method == "margin-lp":
        lines.append("With ``C=1``: the hard margin of the default is not possible for these data.")
    if not any(float(cell) for cell in cells):
        lines.append(
            "No feature was kept in any draw: with so few relevant features the level cannot be reached."
        )
    return [*lines, ""]


def _about_errors(method: str, date: str) -> list[str]:
    measure, peer = ("1 − R² on", "SVR") if method.endswith("regressor") else ("Error on", "SVC")
    return [
        f"{measure} 1000 test samples in 20 draws of 100 training samples and 30 features, of which 22 are noise and",
        f"two have an effect only by their product, beside scikit-learn's ``{peer}()``; default settings.",
        f"``python docs/toy/measure.py``, {date}.",
        "",
    ]


def _svg(inner: list[str], height: int, title: str) -> list[str]:
    head = f'<svg class="toy" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">'
    return ['<div class="toy">', head, *inner, "</svg>", "</div>"]


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _bars(shares: list[float]) -> list[str]:
    step = (WIDTH - LEFT - 4) / len(shares)
    bottom = TOP + HEIGHT
    lines = []
    for level in (0, 0.5, 1):
        y = bottom - level * HEIGHT
        lines += [f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y}" y2="{y}"/>']
        lines += [_text(LEFT - 6, y + 4, f"{level:.0%}", "end")]
    start = 0
    for name, (end, colour) in PARTS.items():
        for feature in range(start, end):
            tall = max(shares[feature] * HEIGHT, 1)
            x = LEFT + feature * step + 2
            lines.append(
                f'<rect class="{colour}" x="{x:.1f}" y="{bottom - tall:.1f}" width="{step - 4:.1f}" '
                f'height="{tall:.1f}">'
                f"<title>feature {feature + 1}: {shares[feature]:.0%}</title></rect>"
            )
            lines.append(_text(x + (step - 4) / 2, bottom + 14, str(feature + 1)))
        centre = LEFT + (start + end) / 2 * step
        below = 44 if name == "their near copies" else 30  # or adjacent names would overlap
        lines.append(_text(centre, bottom + below, name))
        start = end
    return _svg(lines, bottom + 50, "Share of draws in which each feature was selected")


def _dots(ours: list[float], peers: list[float]) -> list[str]:
    top = max(*ours, *peers) * 1.05
    left = 110

    def x_of(value: float) -> float:
        return left + value / top * (WIDTH - left - 20)

    lines = []
    for level in range(5):
        value = level / 4 * top
        lines.append(f'<line class="grid" x1="{x_of(value):.1f}" x2="{x_of(value):.1f}" y1="10" y2="90"/>')
        lines.append(_text(x_of(value), 106, f"{value:.2f}"))
    for y, name, values, colour in ((30, "this model", ours, "strong"), (70, "scikit-learn", peers, "noise")):
        lines.append(_text(left - 10, y + 4, name, "end"))
        lines += [f'<circle class="{colour}" cx="{x_of(v):.1f}" cy="{y}" r="5"/>' for v in values]
        mean = sum(values) / len(values)
        lines.append(
            f'<line class="mean" x1="{x_of(mean):.1f}" x2="{x_of(mean):.1f}" y1="{y - 14}" y2="{y + 14}"/>'
        )
    return _svg(lines, 112, "Test errors in 20 draws")
