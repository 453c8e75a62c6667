"""Events and times from what users have: structured arrays, tables with two columns, 0 and 1, or words."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import BoolArray, FloatArray, written

EVENT_AND_TIME = np.dtype([("event", np.bool_), ("time", np.float64)])
IN_STRATA = np.dtype([*EVENT_AND_TIME.descr, ("stratum", np.int64)])
NAMES_OF_STRATA = ("stratum", "strata")
ACCEPTED = (
    "Give scikit-survival's structured array, a table with two columns, a time and an event (1 or True if it happened, "
    "0 or False if the sample was censored), or times alone if every sample had the event"
)
EVENT_TEXTS = re.compile(
    "1|true|yes|y|event|dead|died|death|deceased|failed|failure|relapsed?|recurrence|recurred|recurred/progressed"
    "|progression|progressed|uncensored|observed"
)
CENSORED_TEXTS = re.compile(
    "0|false|no|n|(no|without)[ _]event|censored|alive|living|survived|lost|disease[ -]?free"
)
NAMES_OF_EVENTS = re.compile(
    r"event|status|died|dead|death|deceased|relapse|recur|progress|fail|observed|delta"
)
NAMES_OF_TIMES = re.compile(r"time|duration|month|day|week|year|follow|survival|age")
NAMES_OF_NO_EVENT = re.compile(r"(?<!un)censor|alive|surviv(ed|or)|event.?free|disease.?free")


def structured(y: Any) -> NDArray[Any]:
    """Events and times as one structured array; an error that names what is missing, negative or ambiguous.

    A third field or column named "stratum" or "strata" becomes codes of strata.
    """
    if isinstance(y, np.ndarray) and y.dtype in (EVENT_AND_TIME, IN_STRATA) and _is_valid(y["time"]):
        return y
    names = getattr(getattr(y, "dtype", None), "names", None)
    columns = {name: np.asarray(y[name]) for name in names} if names else _columns_of(y)
    stratum = next((name for name in columns if str(name).lower() in NAMES_OF_STRATA), None)
    if stratum is not None:
        strata = columns.pop(stratum)
        return with_strata(structured(columns), strata, str(stratum))
    if names:
        return _from_fields(np.asarray(y))
    if len(columns) == 1:
        return _times_alone(next(iter(columns.values())))
    if len(columns) != 2:
        raise ValueError(f"A time-to-event target y has two columns. Got {len(columns)} instead. {ACCEPTED}.")
    event = _event_column(columns)
    (time,) = (name for name in columns if name != event)
    return event_and_time(columns[event], columns[time], str(event), str(time))


def event_and_time(event: Any, time: Any, event_name: str, time_name: str) -> NDArray[Any]:
    """The structured array of two columns; the names are those of the columns, for errors."""
    times = times_of(time, time_name)
    values = np.empty(len(times), dtype=EVENT_AND_TIME)
    values["event"], values["time"] = events_of(event, event_name), times
    return values


def with_strata(y: NDArray[Any], strata: NDArray[Any], name: str) -> NDArray[Any]:
    """Events and times with the codes of strata: equal values, such as hospitals, are one stratum."""
    missing = [_is_missing(cell) for cell in strata.tolist()]
    if any(missing):
        raise ValueError(
            f"Input y contains a missing value among the strata {name!r}: first found in row {missing.index(True)}; "
            "give these samples a stratum of their own, or drop them."
        )
    values = np.empty(len(y), dtype=IN_STRATA)
    values["event"], values["time"] = y["event"], y["time"]
    values["stratum"] = np.unique(strata.astype(str), return_inverse=True)[1]
    return values


def strata_of(y: Any) -> NDArray[np.int64] | None:
    """The codes of the strata of a structured target; None if it has none."""
    return (
        np.asarray(y["stratum"]) if "stratum" in (getattr(y, "dtype", np.dtype(float)).names or ()) else None
    )


def times_of(column: Any, name: str) -> FloatArray:
    """Times as numbers of at least zero."""
    cells = np.asarray(column)
    if cells.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: the times {name!r} of y must be real numbers.")
    try:
        times = np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError):
        row = next(row for row, cell in enumerate(cells) if not _is_number(cell))
        raise ValueError(
            f"The times {name!r} of y must be numbers. Got {written(cells[row]):.60} in row {row}."
        ) from None
    if not _is_valid(times):
        row = int(np.flatnonzero(~(times >= 0.0) | np.isinf(times))[0])
        found = "NaN" if np.isnan(times[row]) else f"{times[row]:g}"
        raise ValueError(
            f"Input y contains {found} among the times {name!r}: first found in row {row}. Times must be finite and at "
            "least 0; drop or correct such samples."
        )
    return times


def events_of(column: Any, name: str) -> BoolArray:
    """Whether the event happened, from 0 and 1, False and True, or words such as "alive" and "dead"."""
    cells = np.asarray(column)
    if cells.dtype == np.bool_:
        return cells
    codes = [_event_code(cell) for cell in cells.tolist()]
    if None in codes:
        row = codes.index(None)
        cell = cells[row]
        if _is_missing(cell):
            raise ValueError(
                f"Input y contains {'None' if cell is None else 'NaN'} among the events {name!r}: first found in row "
                f"{row}; drop samples without a known outcome."
            )
        raise ValueError(
            f"The events {name!r} of y must be 1 or True (it happened) and 0 or False (censored), or words such as "
            f"'dead' and 'alive'. Got {written(cell):.60} in row {row}; recode the column."
        )
    return np.asarray(codes, dtype=np.bool_)


def _is_valid(times: FloatArray) -> bool:
    return bool(np.all((times >= 0.0) & (times < np.inf)))


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _event_code(cell: Any) -> bool | None:
    """Whether a cell means that the event happened; None if it is not clear. "1:DECEASED" is a code with its text."""
    if isinstance(cell, (bool, int, float)):
        return bool(cell) if cell in (0, 1) else None
    parts = [part.strip() for part in str(cell).lower().split(":")]
    for pattern, happened in ((EVENT_TEXTS, True), (CENSORED_TEXTS, False)):
        if all(pattern.fullmatch(part) for part in parts):
            return happened
    return None


def _columns_of(y: Any) -> dict[Any, NDArray[Any]]:
    """The columns of a table by name, or of an array by position."""
    if isinstance(y, Mapping):
        return {name: np.asarray(column) for name, column in y.items()}
    if hasattr(y, "columns") and hasattr(y, "__getitem__"):
        return {name: np.asarray(y[name]) for name in y.columns}
    array = np.asarray(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    if array.ndim not in (1, 2):
        raise ValueError(f"A time-to-event target y must have at most two dimensions. Got {array.ndim}.")
    return {f"column {i}": column for i, column in enumerate(array.reshape(len(array), -1).T)}


def _from_fields(y: NDArray[Any]) -> NDArray[Any]:
    names = y.dtype.names or ()
    events = [name for name in names if y.dtype[name].kind == "b"]
    if len(names) != 2 or len(events) != 1:
        raise ValueError(
            f"A structured target y must have one field of type bool, the event, and one with numbers, the time. Got "
            f"{y.dtype} instead."
        )
    (time,) = (name for name in names if name != events[0])
    return event_and_time(y[events[0]], y[time], events[0], time)


class EventsAloneWarning(UserWarning):
    """The target holds only 0 and 1, which are rather events without their times than times."""


def _times_alone(column: NDArray[Any]) -> NDArray[Any]:
    """All samples had the event, as is usual where nothing is censored."""
    if column.dtype.kind == "b":
        raise ValueError(f"The target y holds events, but no times. {ACCEPTED}.")
    times = times_of(column, "y")
    if np.all((times == 0.0) | (times == 1.0)):
        warnings.warn(
            f"The target y holds only 0 and 1, which are taken as times. If they are events, their times are missing. "
            f"{ACCEPTED}.",
            EventsAloneWarning,
            stacklevel=2,
        )
    return event_and_time(np.ones(len(times), dtype=bool), times, "y", "y")


def _event_column(columns: Mapping[Any, NDArray[Any]]) -> Any:
    """The name of the column that holds the events: the only one that can, else the one whose name says so."""
    possible = [name for name, column in columns.items() if _may_be_events(column)]
    if not possible:
        found = {str(name): np.unique(column.astype(str))[:4].tolist() for name, column in columns.items()}
        raise ValueError(
            f"No column of y holds events: the values begin {found}. Code the event as 1 or True (it happened) and 0 "
            "or False (censored); the words 'dead' and 'alive' are understood too."
        )
    if len(possible) > 1:
        named = [name for name in possible if NAMES_OF_EVENTS.search(str(name).lower())]
        others = [name for name in possible if NAMES_OF_TIMES.search(str(name).lower())]
        possible = named if len(named) == 1 else [name for name in possible if name not in others]
    if len(possible) != 1:
        raise ValueError(
            f"Both columns of y, {list(columns)}, may hold the event. Name them 'event' and 'time', or give "
            "scikit-survival's structured array."
        )
    name = possible[0]
    is_text = columns[name].dtype.kind in "OUS" and any(
        isinstance(cell, str) for cell in columns[name].tolist()
    )
    if not is_text and NAMES_OF_NO_EVENT.search(str(name).lower()):
        raise ValueError(
            f"The column {name!r} of y seems to say that no event happened, while 1 must mean that it did. Recode it, "
            "or rename it to 'event'."
        )
    return name


def _may_be_events(column: NDArray[Any]) -> bool:
    if column.dtype.kind == "b":
        return True
    return len(column) > 0 and all(
        _is_missing(cell) or _event_code(cell) is not None for cell in set(column.tolist())
    )


def _is_missing(cell: Any) -> bool:
    return cell is None or str(cell) in ("nan", "<NA>", "NaT", "")
