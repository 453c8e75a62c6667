"""Which column of a raw table is what: target, times, sample groups, names of samples, identifiers, features."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import parameter, setting
from zeronorm.datasets import _encoding as encoding
from zeronorm.datasets._draft import Draft
from zeronorm.datasets._numbers import (
    check_not_numbers,
    has_decimal_comma,
    numbers_in,
    with_numbers,
)
from zeronorm.datasets._raw import RawTable, distinct_names, matching, no_such_column
from zeronorm.datasets._table import (
    DATES_AS_NUMBERS,
    DataError,
    are_dates,
    missing_labels,
    shown,
    shown_list,
)
from zeronorm.datasets._table_options import TableOptions
from zeronorm.datasets._times import split_value, times_and_events
from zeronorm.selection.target._labels import MOST_CLASSES


def may_be_numbers(raw: RawTable, options: TableOptions) -> list[int]:
    """Positions of the text columns that the user has not left out or named for another use than as numbers."""
    others = {options.target, options.id, options.sample_groups, options.time, _event_column(raw, options)[0]}
    apart = _named(raw, (*options.ignore, *options.categorical))
    wanted = _named(raw, options.only) if options.only else set(raw.texts)
    return [p for p in raw.texts if p in wanted and p not in apart and raw.names[p] not in others]


def _named(raw: RawTable, patterns: Sequence[str]) -> set[int]:
    """Positions of the columns that the patterns name."""
    found: set[int] = set()
    for pattern in patterns:
        with suppress(DataError):  # a pattern of no column is an error where the option is used
            found.update(matching(raw.names, pattern, "ignore"))
    return found


def with_roles(raw: RawTable, options: TableOptions) -> Draft:
    y, target_name, left_out, notes = (_take_times if options.time else _take_labels)(raw, options)
    groups, group_positions = _sample_groups(raw, options)
    both = set(groups_beside_features(options))
    left_out += [p for p in group_positions if raw.names[p] not in both]
    ignored = set()
    for name in options.ignore:
        positions, samples = _ignored(raw, name)
        left_out += positions
        ignored |= samples
    if options.only:
        wanted = {p for name in options.only for p in matching(raw.names, name, "only")}
        wanted |= {p for name in options.adjust for p in matching(raw.names, name, "adjust")}
        left_out += [
            p for p in range(len(raw.names)) if p not in wanted and not _names_samples(raw, p, options)
        ]
    draft = Draft(raw.without(left_out), y, groups, target_name, (*raw.notes, *notes))
    if ignored:
        draft = draft.rows(np.asarray([position not in ignored for position in range(raw.n_samples)]))
    return draft


def _names_samples(raw: RawTable, position: int, options: TableOptions) -> bool:
    """Whether a text column holds the names of the samples, which are not a feature."""
    if raw.names[position] == options.id:
        return True
    return (
        raw.sample_ids is None and position in raw.texts and encoding.is_text_identifier(raw.texts[position])
    )


def _ignored(raw: RawTable, name: str) -> tuple[list[int], set[int]]:
    """Positions of the columns of this name or, in a transposed table, the samples of this name."""
    try:
        return matching(raw.names, name, "ignore"), set()
    except DataError:
        if raw.sample_ids is None:
            raise
        try:
            return [], set(matching(list(raw.sample_ids), name, "ignore"))
        except DataError:
            pass
        raise


def _take_labels(
    raw: RawTable, options: TableOptions
) -> tuple[NDArray[Any], str, list[int], tuple[str, ...]]:
    """The target of one column: values, name, positions of its column, and notes."""
    y, name, position = _take_target(raw, options)
    y, notes = _read_target(raw, y, name, options)
    return y, name, [] if position is None else [position], notes


def _event_column(raw: RawTable, options: TableOptions) -> tuple[str | None, str | None]:
    """The column of the events, and the value that means that the event happened, if the user named one."""
    return (None, None) if options.event is None else split_value(options.event, [*raw.names, *raw.targets])


def _take_times(raw: RawTable, options: TableOptions) -> tuple[NDArray[Any], str, list[int], tuple[str, ...]]:
    """The target of a time and an event: values, name, positions of both columns, and notes."""
    event, value = _event_column(raw, options)
    taken = [_named_column(raw, str(name), key) for name, key in ((options.time, "time"), (event, "event"))]
    time, notes = _read_target(raw, taken[0][0], str(options.time), options)
    names = (str(options.time), str(event))
    y, said = times_and_events(time, taken[1][0], names, value, raw.at)
    return y, f"{names[0]} to {names[1]}", taken[0][1] + taken[1][1], (*notes, *said)


def _named_column(raw: RawTable, name: str, parameter: str) -> tuple[NDArray[Any], list[int]]:
    """The values of a column, and its position where it is one of the table."""
    if name in raw.targets:
        return np.asarray(raw.targets[name]), []
    position = matching(raw.names, name, parameter)[0]
    return raw.column(position), [position]


def _take_target(raw: RawTable, options: TableOptions) -> tuple[NDArray[Any], str, int | None]:
    """The target, its name, and its position when it is a column."""
    name = options.target or raw.default_target
    if name is None:
        candidates = list(raw.targets) or list(raw.names)
        raise DataError(
            f"Name the column to predict ({parameter('target')}). The columns are {shown_list(candidates)}."
        )
    if name in raw.targets:
        return np.asarray(raw.targets[name]), name, None
    if raw.targets and name not in raw.names:
        raise DataError(
            f"names {shown(name)}, but the columns to predict are "
            f"{shown_list(list(raw.targets))}. Choose one of them.",
            "target",
        )
    positions = [position for position, known in enumerate(raw.names) if known == name]
    if not positions and name in (raw.texts.get(0) or raw.sample_ids or ()):
        raise DataError(
            f"names {shown(name)}, but the table has no such column. A row is called so; if "
            f"samples are in columns, {setting('transpose', True, 'set')}.",
            "target",
        )
    if not positions and raw.sample_ids is not None:
        raise DataError(
            f"{no_such_column(raw.names, name, 'target').message.marked} If the target stands in another file, with a "
            f"row per sample, join it ({parameter('samples')})."
        )
    if not positions:
        raise no_such_column(raw.names, name, "target")
    if len(positions) > 1:
        raise DataError(
            f"names {shown(name)}, the name of {len(positions)} columns. Rename all but one.",
            "target",
        )
    return raw.column(positions[0]), name, positions[0]


def _read_target(
    raw: RawTable, y: NDArray[Any], name: str, options: TableOptions
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """A target of text as numbers, where it holds numbers and not a few labels, and the notes about it."""
    if y.dtype.kind not in "OU" or all(isinstance(label, (bool, np.bool_)) for label in y):
        return y, ()
    absent = missing_labels(y)
    cells = [None if gone else str(label) for label, gone in zip(y, absent, strict=True)]
    found = numbers_in(cells, decimal_comma=raw.decimal_comma or has_decimal_comma([cells]))
    if found is None or (found.example is None and len(set(cells)) <= MOST_CLASSES):
        return y, ()
    if found.odd and not options.drop_unlabelled:
        row, cell = next(iter(found.odd.items()))
        raise DataError(
            f"The target {shown(name)} holds numbers but also text, first {shown(cell)} in {raw.at(row)}. Correct "
            f"these cells, or leave these samples out: {setting('drop_unlabelled', True, 'set')}."
        )
    empty = np.empty((len(y), 0))
    alone = replace(
        raw, names=[name], values=empty, positions=np.empty(0, dtype=np.intp), texts={0: cells}, notes=()
    )
    read = with_numbers(alone, censored=options.censored)
    return read.column(0), read.notes


def _sample_groups(raw: RawTable, options: TableOptions) -> tuple[NDArray[Any] | None, list[int]]:
    """Labels of the groups, and the columns that hold them."""
    name = options.sample_groups
    if name is None:
        return None, []
    if name in raw.targets:
        labels, positions = np.asarray(raw.targets[name]), []
    else:
        positions = matching(raw.names, name, "sample_groups")
        labels = raw.column(positions[0])
    if missing_labels(labels).any():
        raise DataError(
            f"The column {shown(name)} of the sample groups has missing values. Fill them, so that every sample "
            "belongs to a group."
        )
    return labels, positions


def with_ids(draft: Draft, options: TableOptions) -> Draft:
    """The draft with the names of the samples taken from the user's column ``id``."""
    if options.id is None or options.id in draft.raw.targets:
        return draft
    position = matching(draft.raw.names, options.id, "id")[0]
    if position not in draft.raw.texts and position not in draft.raw.positions:
        return draft
    cells = [_as_id(cell) for cell in draft.raw.column(position)]
    return replace(draft, raw=replace(draft.raw.without([position]), sample_ids=cells))


def _as_id(cell: Any) -> str:
    return f"{cell:g}" if isinstance(cell, float) else "" if cell is None else str(cell)


def with_distinct_names(draft: Draft) -> Draft:
    raw = draft.raw
    used = sorted({*raw.positions.tolist(), *raw.texts})
    found, repeated = distinct_names([raw.names[position] for position in used])
    if not repeated:
        return draft
    names = list(raw.names)
    for position, name in zip(used, found, strict=True):
        names[position] = name
    renamed = [name for position, name in zip(used, found, strict=True) if name != raw.names[position]]
    start = (
        "1 column has the name of another one and was"
        if len(renamed) == 1
        else (
            f"{len(renamed)} columns have the name of another one, such as {shown_list(repeated, 3)}, and were"
        )
    )
    return replace(draft, raw=replace(raw, names=names)).noted(f"{start} renamed, like {shown(renamed[0])}.")


def with_categories(raw: RawTable, names: Sequence[str]) -> RawTable:
    for name in names:
        for position in matching(raw.names, name, "categorical"):
            if position in raw.texts or position not in raw.positions:
                continue
            codes = raw.column(position)
            cells = [None if np.isnan(v) else f"{v:g}" for v in codes]
            raw = raw.without([position])
            raw = replace(raw, texts={**raw.texts, position: cells})
    return raw


def without_identifiers(draft: Draft, options: TableOptions) -> tuple[Draft, list[str], list[str]]:
    """The draft without columns that identify samples, patients or batches, and the names of these columns."""
    raw = draft.raw
    wanted = {p for name in options.categorical for p in matching(raw.names, name, "categorical")}
    wanted |= _named(raw, options.adjust)
    index = [p for p in raw.positions.tolist() if encoding.is_row_index(raw.names[p], raw, p)]
    identifiers: list[int] = []
    grouping: list[int] = []
    dates: list[int] = []
    for position, cells in raw.texts.items():
        if position in wanted:
            continue
        check_not_numbers(raw.names[position], cells, raw.at)
        if encoding.is_text_identifier(cells):
            has_dates = are_dates([cell for cell in cells if cell is not None])
            (dates if has_dates else identifiers).append(position)
        elif encoding.is_text_grouping(cells):
            grouping.append(position)
    names = [raw.names[position] for position in identifiers]
    if index:
        draft = draft.noted("The first column only counts the rows and was left out.")
    if names:
        draft = draft.noted(
            f"These text columns look like identifiers and were left out: {shown_list(names)}. Nearly every sample "
            "has its own value there."
        )
    draft = draft.noted(
        *(
            f"The column {shown(raw.names[position])} holds dates and was left out. {DATES_AS_NUMBERS}"
            for position in dates
        )
    )
    draft = draft.noted(*(encoding.grouping_note(raw.names[p], raw.texts[p]) for p in grouping))
    if raw.sample_ids is None and identifiers:
        raw = replace(raw, sample_ids=["" if cell is None else cell for cell in raw.texts[identifiers[0]]])
    grouping_names = [raw.names[position] for position in grouping]
    return (
        replace(draft, raw=raw.without([*index, *identifiers, *dates, *grouping])),
        names,
        grouping_names if draft.groups is None else [],
    )


def groups_beside_features(options: TableOptions) -> tuple[str, ...]:
    """The column of the sample groups, where it is also a covariate: its values are then codes of categories."""
    return tuple(name for name in options.adjust if name == options.sample_groups)
