"""The error of everything that reads a user's data."""

from __future__ import annotations


class DataError(ValueError):
    """A file or table that cannot be used, in one line that says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def shown(name: str, limit: int = 60) -> str:
    """A name for one line of text: quoted, without line breaks, cut when long."""
    if not name.strip():
        return f"{name!r} (no name)"
    text = repr(name)
    return text if len(text) <= limit else f"{text[:limit]}…' ({len(name)} characters)"


def shown_list(names: list[str], limit: int = 5) -> str:
    """The first names of a list, for one line of text."""
    listed = ", ".join(shown(name) for name in names[:limit])
    return listed + (f" and {len(names) - limit} more" if len(names) > limit else "")
