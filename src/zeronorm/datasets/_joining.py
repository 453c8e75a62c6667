"""Joining a table of measurements and a table of samples by the names of the samples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import Message, parameter, setting
from zeronorm.datasets._encoding import is_text_identifier
from zeronorm.datasets._raw import RawTable, no_such_column, side_by_side
from zeronorm.datasets._table import DataError, counted, shown, shown_list


@dataclass(frozen=True)
class Ids:
    """Names of the samples in one table, and the position of their column (None: row names)."""

    cells: list[str]
    position: int | None = None


def join_samples(raw: RawTable, samples: RawTable, id: str | None, with_columns: Sequence[str]) -> RawTable:
    """The measurements of the samples that both tables have, with the columns of ``samples`` as candidate targets.

    Parameters
    ----------
    raw : the measurements.
    samples : one row per sample.
    id : column of the samples' names, in ``samples`` and, if it is there, in ``raw``; None finds the column
        of ``samples`` that has most names of ``raw``.
    with_columns : columns of ``samples`` that become features too.
    """
    listed = _candidates_in_samples(samples, id)
    known = _candidates_in_measurements(raw, id)
    ours, theirs, spelling = _best_pair(known, listed)
    if ours is None or theirs is None:
        raise _nothing_in_common(raw, known, listed)
    row_of = _row_by_name(theirs, spelling, set(map(spelling, ours.cells)))
    rows = [row_of.get(spelling(name), -1) for name in ours.cells]
    keep = np.asarray(rows) >= 0
    order = [row for row in rows if row >= 0]
    joined = raw.without([] if ours.position is None else [ours.position])
    joined = replace(joined, sample_ids=ours.cells).rows(keep)
    columns = {
        samples.names[position]: samples.column(position)[order]
        for position in sorted((*samples.positions.tolist(), *samples.texts))
        if position != theirs.position
    }
    columns |= {name: np.asarray(values)[order] for name, values in samples.targets.items()}
    joined = replace(joined, targets={**joined.targets, **columns}, default_target=None)
    added = [name for name in with_columns if name in columns and name not in raw.names]
    joined = _with_features(joined, {name: columns[name] for name in added})
    unused = len(theirs.cells) - len(set(order))
    notes = _notes(raw.n_samples, keep, ours, unused, spelling)
    return replace(joined, notes=tuple(dict.fromkeys((*samples.notes, *joined.notes, *notes))))


# -- Which columns name the samples -------------------------------------------------------------------


def _exactly(name: str) -> str:
    return name.strip()


def _in_any_case(name: str) -> str:
    return name.strip().casefold()


def _as_r_writes(name: str) -> str:
    """The name as R writes it in a header: "1-a b" becomes "X1.a.b"."""
    text = re.sub(r"[^\w.]", ".", name.strip())
    return (f"X{text}" if re.match(r"[\d_]|\.\d", text) else text).casefold()


SPELLINGS: tuple[Callable[[str], str], ...] = (_exactly, _in_any_case, _as_r_writes)


def texts_of(raw: RawTable, position: int) -> list[str]:
    """The cells of one column as text, with numbers as in the file."""
    return [_text(cell) for cell in raw.column(position)]


def _text(cell: Any) -> str:
    return "" if cell is None else f"{cell:.15g}" if isinstance(cell, float) else str(cell)


def _candidates_in_samples(samples: RawTable, id: str | None) -> list[Ids]:
    if id is None:
        positions = sorted({*samples.positions.tolist(), *samples.texts})
        index = [] if samples.sample_ids is None else [Ids([str(name) for name in samples.sample_ids])]
        return [*index, *(Ids(texts_of(samples, position), position) for position in positions)]
    positions = [position for position, name in enumerate(samples.names) if name == id]
    if not positions:
        raise no_such_column(samples.names, id, "id", "the table of samples")
    return [Ids(texts_of(samples, positions[0]), positions[0])]


def _candidates_in_measurements(raw: RawTable, id: str | None) -> list[Ids]:
    named = [position for position, name in enumerate(raw.names) if name == id]
    if named:
        return [Ids(texts_of(raw, position), position) for position in named]
    found = [] if raw.sample_ids is None else [Ids([str(name) for name in raw.sample_ids])]
    found += [Ids(texts_of(raw, p), p) for p, cells in raw.texts.items() if is_text_identifier(cells)]
    first = raw.positions[:1].tolist()  # row names may be numbers
    if first == [0] and len(set(texts_of(raw, 0))) == raw.n_samples:
        found.append(Ids(texts_of(raw, 0), 0))
    return found


def _best_pair(known: list[Ids], listed: list[Ids]) -> tuple[Ids | None, Ids | None, Callable[[str], str]]:
    """The pair of columns with the most names in common; equal spelling is preferred."""
    best: tuple[int, Ids | None, Ids | None, Callable[[str], str]] = (0, None, None, _exactly)
    for spelling in SPELLINGS:
        names = [({spelling(cell) for cell in ids.cells if cell}, ids) for ids in known]
        for theirs in listed:
            others = {spelling(cell) for cell in theirs.cells if cell}
            for ours, ids in names:
                if len(ours & others) > best[0]:
                    best = len(ours & others), ids, theirs, spelling
    return best[1:]


def _nothing_in_common(raw: RawTable, known: list[Ids], listed: list[Ids]) -> DataError:
    theirs = listed[0].cells if listed else []
    if set(theirs) & set(raw.names):
        return DataError(
            "The columns of the measurements are named like the samples: the samples are in columns. "
            f"{setting('transpose', True, 'Set')}."
        )
    ours = known[0].cells if known else []
    if not ours:
        return DataError(
            "The table of measurements does not name its samples, so the table of samples cannot be joined. Add a "
            f"column with their names, and name it ({parameter('id')})."
        )
    return DataError(
        f"The two tables have no sample in common: the measurements have {shown_list(ours, 3)}, the table of samples "
        f"has {shown_list(theirs, 3)}. Name the column that holds the samples ({parameter('id')})."
    )


def _row_by_name(ids: Ids, spelling: Callable[[str], str], wanted: set[str]) -> dict[str, int]:
    names = [spelling(cell) for cell in ids.cells]
    repeated = [name for name, count in Counter(names).items() if count > 1 and name in wanted]
    if repeated:
        raise DataError(
            f"The table of samples names {counted(len(repeated), 'sample')} more than once, first "
            f"{shown(repeated[0])}. Keep one row per sample."
        )
    return {name: row for row, name in enumerate(names)}


# -- The joined table ---------------------------------------------------------------------------------


def _with_features(raw: RawTable, columns: dict[str, NDArray[Any]]) -> RawTable:
    for name, values in columns.items():
        position = len(raw.names)
        targets = {key: target for key, target in raw.targets.items() if key != name}
        raw = replace(raw, names=[*raw.names, name], targets=targets)
        if values.dtype.kind == "O":
            raw = replace(raw, texts={**raw.texts, position: values.tolist()})
        else:
            beside = side_by_side(raw.values, values[:, None], "Columns of the table of samples")
            raw = replace(raw, values=beside, positions=np.append(raw.positions, np.intp(position)))
    return raw


def _notes(
    n_samples: int, keep: NDArray[np.bool_], ours: Ids, unused: int, spelling: Callable[[str], str]
) -> list[str]:
    found = [f"{int(keep.sum())} samples are in both tables."]
    if not keep.all():
        absent = [name for name, kept in zip(ours.cells, keep, strict=True) if not kept]
        found.append(
            f"Left out: {counted(n_samples - int(keep.sum()), 'measured sample')} without a row in the table of "
            f"samples, {shown_list(absent, 3)}."
        )
    if unused > 0:
        found.append(f"Not used: {counted(unused, 'row')} of the table of samples without measurements.")
    if spelling is not _exactly:
        found.append(
            "The names of the samples are spelt differently in the two tables and were matched all the same."
        )
    repeated = len(ours.cells) - len(set(ours.cells))
    if repeated:
        found.append(
            Message(
                f"{repeated} samples have the name of another one. If they are repeated measurements, keep them "
                f"together ({parameter('sample_groups')})."
            )
        )
    return found
