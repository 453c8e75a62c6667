"""Times and events of a table: two columns, or two arrays, that together are the target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import setting
from zeronorm.datasets._table import DataError, missing_labels, shown, shown_list
from zeronorm.selection.target._event_columns import EVENT_AND_TIME, NAMES_OF_NO_EVENT, events_of

if TYPE_CHECKING:
    from zeronorm._types import BoolArray, FloatArray

ColumnOf = Callable[[str, str], NDArray[Any]]  # from a name and the option that gives it
MOST_CODES = 10  # distinct values of an event column that a message lists


def times_and_events(
    time: NDArray[Any],
    event: NDArray[Any],
    names: tuple[str, str],
    value: str | None,
    at: Callable[[int], str],
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The structured target of two columns, with a time of NaN where either is missing, and a note.

    ``value`` is the value of the event column that means that the event happened; None finds it. ``at`` describes a
    row.
    """
    absent = missing_labels(time) | missing_labels(event)
    y = np.zeros(len(time), dtype=EVENT_AND_TIME)
    y["time"] = np.nan
    y["time"][~absent] = _numbers(time[~absent], names[0], np.flatnonzero(~absent), at)
    y["event"][~absent], note = _events(event[~absent], names[1], value)
    return y, (note,)


def split_value(event: str, columns: list[str]) -> tuple[str, str | None]:
    """The column and the value of ``--event COLUMN=VALUE``; a column may have an equals sign in its name."""
    name, sign, value = event.rpartition("=")
    return (event, None) if event in columns or not sign else (name, value)


def _numbers(cells: NDArray[Any], name: str, rows: NDArray[np.intp], at: Callable[[int], str]) -> FloatArray:
    try:
        times = cells.astype(np.float64)
    except (TypeError, ValueError):
        cell, row = next((cell, row) for cell, row in zip(cells, rows, strict=True) if not _is_number(cell))
        raise DataError(
            f"names {shown(name)}, which must hold numbers. Got {shown(str(cell))} in {at(int(row))}. Correct the "
            "column, or turn dates into numbers, such as days since the start.",
            "time",
        ) from None
    wrong = np.flatnonzero(~((times >= 0.0) & np.isfinite(times)))
    if wrong.size:
        raise DataError(
            f"names {shown(name)}, whose times must be finite and at least 0. Got {times[wrong[0]]:g} in "
            f"{at(int(rows[wrong[0]]))}{f' and in {wrong.size - 1} more' * (wrong.size > 1)}. Correct or remove these "
            "rows.",
            "time",
        )
    return times


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _events(cells: NDArray[Any], name: str, value: str | None) -> tuple[BoolArray, str]:
    """Whether the event happened, and a sentence that says which value means so."""
    texts = np.asarray([_text_of(cell) for cell in cells], dtype=object)
    found = sorted(set(texts.tolist()))
    if value is not None:
        if value not in found:
            raise DataError(
                f"asks for the value {shown(value)} of {shown(name)}, which does not occur there. The values are "
                f"{shown_list(found, MOST_CODES)}.",
                "event",
            )
        happened = texts == value
    else:
        happened = _recognised(cells, name, found)
    meant = sorted(set(texts[happened].tolist()))
    count = int(happened.sum())
    return np.asarray(happened, dtype=bool), (
        f"The event is {shown(name)} = {', '.join(shown(text) for text in meant) or 'none'}: {count} samples had it, "
        f"{len(cells) - count} were censored before."
    )


def _recognised(cells: NDArray[Any], name: str, found: list[str]) -> BoolArray:
    example = found[-1] if len(found) <= MOST_CODES else "VALUE"
    if NAMES_OF_NO_EVENT.search(name.lower()) and not any(isinstance(cell, str) for cell in cells):
        raise DataError(
            f"names {shown(name)}, which seems to say that no event happened. Say which value means that it did, such "
            f"as {setting('event', f'{name}={found[0]}')}.",
            "event",
        )
    try:
        return events_of(cells, name)
    except ValueError:
        raise DataError(
            f"names {shown(name)}, whose values do not show what means that the event happened: "
            f"{shown_list(found, MOST_CODES)}. Say which one does, such as "
            f"{setting('event', f'{name}={example}')}, or name another column.",
            "event",
        ) from None


def _text_of(cell: Any) -> str:
    """A cell as a user writes it: 1 for the number 1.0."""
    is_whole = isinstance(cell, (float, np.floating)) and float(cell).is_integer()
    return str(int(cell)) if is_whole else str(cell)
