"""Exit codes and the error of a command that was called wrongly."""

from __future__ import annotations

FAILED = 1
INVALID = 2
INTERRUPTED = 130
LONGEST_LINE = 600


class UsageProblem(Exception):
    """Something the user can put right, in one line."""


def one_line(message: str) -> str:
    """Text for one line of a terminal: no line breaks or control characters, cut when very long."""
    text = " ".join(message.split())
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"
