"""The critical-difference diagram of a table of mean ranks, drawn from the numbers that the page prints."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from zeronorm.evaluation.significance._ranks import runs_within
from zeronorm.report._svg import element, svg_chart

HEADER = ("method", "mean rank")
WIDTH, MARGIN, LINE = 720, 40, 16


def note_on_difference(difference: float) -> str:
    """The sentence above the table that carries the critical difference."""
    return (
        f"Methods whose mean ranks differ by less than {difference:.2f} (Nemenyi, 5 %) cannot be told apart."
    )


def printed_difference(text: str) -> float:
    """The critical difference in a text that contains the sentence."""
    pattern = re.escape(note_on_difference(0.0)).replace(re.escape("0.00"), r"([\d.]+)")
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(
            f"A table with the columns {HEADER} must follow the sentence {note_on_difference(0.0)!r} with its "
            f"number. Got the text {text!r}."
        )
    return float(found[1])


def diagram(rows: Sequence[tuple[str, ...]], difference: float) -> str:
    """Methods on a scale of mean ranks, best first; bars join those that cannot be told apart."""
    names, ranks = [row[0] for row in rows], np.array([float(row[1]) for row in rows])
    low, high = float(ranks[0]), max(float(ranks[-1]), float(ranks[0]) + 1e-9)

    def x(rank: float) -> float:
        return MARGIN + (WIDTH - 2 * MARGIN) * (rank - low) / (high - low)

    parts = []
    for i, (name, rank) in enumerate(zip(names, ranks.tolist(), strict=True)):
        y = 30.0 + LINE * i
        parts.append(element("circle", cx=x(rank), cy=y, r=4, fill="var(--s0)"))
        side, shift = ("start", 8) if rank < (low + high) / 2 else ("end", -8)
        parts.append(
            element(
                "text",
                f"{name} {rank:.2f}",
                x=x(rank) + shift,
                y=y + 4,
                text_anchor=side,
                font_size=12,
                fill="var(--ink)",
            )
        )
    bottom, groups = 30.0 + LINE * len(ranks), runs_within(ranks, difference)
    for i, (start, end) in enumerate(groups):
        y, ends = bottom + 8.0 * i, (x(ranks[start]), x(ranks[end - 1]))
        parts.append(element("line", x1=ends[0], x2=ends[1], y1=y, y2=y, stroke="var(--s1)", stroke_width=4))
    height = bottom + 8.0 * len(groups) + 12
    return str(svg_chart("critical-difference", "Critical-difference diagram", (WIDTH, height), *parts))
