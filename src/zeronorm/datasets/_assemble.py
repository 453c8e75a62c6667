"""A raw table and the user's options turned into a table that a selector can use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import Message, parameter, setting
from zeronorm.datasets import _encoding as encoding
from zeronorm.datasets._draft import Draft, handle_missing, handle_rows, settle_task
from zeronorm.datasets._joining import join_samples
from zeronorm.datasets._numbers import (
    CENSORED_CHOICES,
    CensoredChoice,
    check_not_numbers,
    has_decimal_comma,
    numbers_in,
    with_numbers,
)
from zeronorm.datasets._raw import RawTable, distinct_names, matching, no_such_column, side_by_side
from zeronorm.datasets._table import (
    DATES_AS_NUMBERS,
    DataError,
    Table,
    TaskName,
    are_dates,
    counted,
    missing_labels,
    shown,
    shown_list,
)
from zeronorm.datasets._times import split_value, times_and_events
from zeronorm.datasets.readers import read_raw
from zeronorm.design import Design
from zeronorm.design._base import SMALL_COPY_BYTES
from zeronorm.selection.target._labels import MOST_CLASSES


@dataclass(frozen=True)
class TableOptions:
    """The user's options for reading a table.

    Parameters
    ----------
    target : str or None, default=None
        The column to predict. None: the target of formats that have one.
    task : {"classification", "regression", "survival"} or None, default=None
        None infers it from the target; a note says so.
    time : str or None, default=None
        The column with the times of a target of times to an event.
    event : str or None, default=None
        The column that says whether the event happened at that time, or "column=value" with the value that says so.
    ignore : tuple of str, default=()
        Columns to leave out: names, patterns such as "AFFX*", or regular expressions such as "re:^AFFX".
    only : tuple of str, default=()
        The columns to use as features. Empty: all.
    categorical : tuple of str, default=()
        Columns whose numbers are codes of categories.
    sample_groups : str or None, default=None
        Column that says which samples belong together, such as a patient.
    id : str or None, default=None
        Column with the names of the samples.
    adjust : tuple of str, default=()
        Covariates: columns that are in every model beside the features. They may also be the sample groups.
    missing : {"median", "error", "drop-rows", "drop-columns"}, default='median'
        What to do with missing values. "median" leaves them in the table; ``select`` fills them with
        the medians of the training samples of each fold.
    censored : {"error", "half", "missing"}, default='error'
        What to do with limits of detection among numbers, such as "<0.5": an error, half of the limit, or a
        missing value. "half" takes the limit itself for values above it.
    drop_unlabelled : bool, default=False
        Whether to leave out samples without a value in the target. Otherwise they are an error.
    min_class_size : int, default=0
        Classes with fewer samples are left out.

    Examples
    --------
    >>> from zeronorm.datasets import TableOptions
    >>> TableOptions(target="healed", ignore=("age",)).missing
    'median'
    """

    target: str | None = None
    task: TaskName | None = None
    time: str | None = None
    event: str | None = None
    ignore: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    sample_groups: str | None = None
    id: str | None = None
    adjust: tuple[str, ...] = ()
    missing: encoding.MissingChoice = "median"
    censored: CensoredChoice = "error"
    drop_unlabelled: bool = False
    min_class_size: int = 0

    def __post_init__(self) -> None:
        for name, choices in (("missing", encoding.MISSING_CHOICES), ("censored", CENSORED_CHOICES)):
            if getattr(self, name) not in choices:
                raise DataError(
                    f"must be one of {', '.join(choices)}. Got {getattr(self, name)!r} instead.", name
                )
        if (self.time is None) != (self.event is None):
            raise DataError(
                f"needs {parameter('event' if self.event is None else 'time', 'object')} as well.",
                "time" if self.event is None else "event",
            )


def build_table(raw: RawTable, options: TableOptions, source: str = "") -> Table:
    """Set the target, groups and ignored columns apart, encode texts, handle missing values, check all.

    Parameters
    ----------
    raw : RawTable
        What the reader of a file format returned.
    options : TableOptions
        The user's options.
    source : str, default=''
        Description of where the data come from.

    Returns
    -------
    Table
        The features, the target and notes about what was decided.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.datasets import TableOptions, build_table
    >>> from zeronorm.datasets._raw import RawTable
    >>> raw = RawTable.from_matrix(np.eye(4), targets={"y": np.array([0, 0, 1, 1])}, default_target="y")
    >>> build_table(raw, TableOptions()).task
    'classification'
    """
    draft = _set_roles(with_numbers(raw, _may_be_numbers(raw, options), options.censored), options)
    draft = _use_distinct_names(_take_ids(draft, options))
    coded = (*options.categorical, *_groups_beside_features(options))
    draft = replace(draft, raw=_declare_categories(draft.raw, coded))
    draft, set_aside, grouping = _set_identifiers_aside(draft, options)
    draft = handle_rows(draft, options.missing, options.drop_unlabelled)
    task, draft = settle_task(draft, options.task, options.min_class_size)
    draft = handle_missing(draft, options.missing)
    X, names, sources, groups, encoded = _encode_texts(draft.raw)
    draft = draft.noted(*encoded)
    encoding.check_finite(X, names)
    n_missing = int(encoding.missing_per_column(X).sum())
    covariates = columns_of_covariates(draft.raw, sources, options.adjust)
    apart = covariates_apart(X, names, covariates)
    if covariates.size:
        kept = np.delete(np.arange(len(names)), covariates)
        X, names, sources = X[:, kept], [names[i] for i in kept], sources[kept]
        groups = None if groups is None else np.unique(groups[kept], return_inverse=True)[1].astype(np.intp)
        groups = None if groups is None or groups.max(initial=-1) + 1 == len(names) else groups
        draft = draft.noted(adjusted_note(options.adjust, apart["covariate_names"]))
    if X.shape[1] == 0:
        raise DataError(
            f"No feature is left besides the target. Leave fewer columns out ({parameter('ignore')}), or check that "
            "the table holds measurements."
        )
    numeric_ids = [str(names[i]) for i in encoding.numeric_identifiers(X, names)]
    if draft.groups is None:
        grouping += encoding.groupings_apart(draft.raw.targets, draft.target_name)
        grouping += [
            str(names[i]) for i in encoding.numeric_groupings(X, names) if names[i] not in numeric_ids
        ]
    ids = draft.raw.sample_ids
    return Table(
        X=_by_row(X),
        y=draft.y,
        task=task,
        feature_names=np.asarray(names, dtype=object),
        source_columns=sources,
        target_name=draft.target_name,
        feature_groups=groups,
        sample_groups=draft.groups,
        sample_ids=None if ids is None else np.asarray(ids, dtype=object),
        id_columns=(*set_aside, *numeric_ids),
        group_columns=tuple(grouping),
        annotations=draft.raw.annotations,
        n_missing=n_missing,
        adjusted_for=options.adjust,
        **apart,
        notes=draft.notes,
        source=source,
    )


def _by_row(X: Any) -> Any:
    """A small array by row, as arrays of Python mostly are: loops for the other order are then never compiled."""
    is_small = isinstance(X, np.ndarray) and X.nbytes <= SMALL_COPY_BYTES
    return np.ascontiguousarray(X) if is_small else X


# -- Which column is what -----------------------------------------------------------------------------


def _may_be_numbers(raw: RawTable, options: TableOptions) -> list[int]:
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


def _set_roles(raw: RawTable, options: TableOptions) -> Draft:
    y, target_name, left_out, notes = (_take_times if options.time else _take_labels)(raw, options)
    groups, group_positions = _sample_groups(raw, options)
    both = set(_groups_beside_features(options))
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


def _take_ids(draft: Draft, options: TableOptions) -> Draft:
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


def _use_distinct_names(draft: Draft) -> Draft:
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


def _declare_categories(raw: RawTable, names: Sequence[str]) -> RawTable:
    for name in names:
        for position in matching(raw.names, name, "categorical"):
            if position in raw.texts or position not in raw.positions:
                continue
            codes = raw.column(position)
            cells = [None if np.isnan(v) else f"{v:g}" for v in codes]
            raw = raw.without([position])
            raw = replace(raw, texts={**raw.texts, position: cells})
    return raw


def _set_identifiers_aside(draft: Draft, options: TableOptions) -> tuple[Draft, list[str], list[str]]:
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


# -- Covariates ---------------------------------------------------------------------------------------


def _groups_beside_features(options: TableOptions) -> tuple[str, ...]:
    """The column of the sample groups, where it is also a covariate: its values are then codes of categories."""
    return tuple(name for name in options.adjust if name == options.sample_groups)


def columns_of_covariates(
    raw: RawTable, sources: NDArray[np.intp], adjust: Sequence[str]
) -> NDArray[np.intp]:
    """The encoded columns that are covariates; an error for a covariate that is no column of the features."""
    found: list[int] = []
    for name in adjust:
        columns = np.flatnonzero(np.isin(sources, matching(raw.names, name, "adjust")))
        if columns.size == 0:
            raise DataError(
                f"names {shown(name)}, which is the target or a column that is left out. Name columns of the table "
                "that are measured beside the features.",
                "adjust",
            )
        found += columns.tolist()
    return np.unique(np.asarray(found, dtype=np.intp))


def covariates_apart(X: Any, names: Sequence[str], covariates: NDArray[np.intp]) -> dict[str, Any]:
    """The fields of a table for these columns; empty where there are none."""
    if covariates.size == 0:
        return {}
    block = X.block(covariates) if isinstance(X, Design) else X[:, covariates]
    values = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
    return {
        "covariates": values.astype(np.float64),
        "covariate_names": tuple(str(names[i]) for i in covariates),
    }


def adjusted_note(adjust: Sequence[str], names: Sequence[str]) -> str:
    """The note that says what the features are selected beside."""
    coded = "" if len(names) == len(adjust) else f", as {counted(len(names), 'column')}"
    return Message(
        f"Features are selected for what they add to {shown_list(list(adjust))}{coded}, which every model has "
        f"({parameter('adjust')})."
    )


# -- Texts as numbers ---------------------------------------------------------------------------------


def _encode_texts(
    raw: RawTable,
) -> tuple[Any, list[str], NDArray[np.intp], NDArray[np.intp] | None, tuple[str, ...]]:
    """All features in the order of the file, with the levels of a text column as one group, and notes."""
    names = raw.numeric_names()
    sources = raw.positions
    if not raw.texts:
        return raw.values, names, sources, None, ()
    blocks = []
    for position, cells in raw.texts.items():
        encoded = encoding.encode(cells)
        blocks.append(encoded.indicators)
        names += [f"{raw.names[position]}={level}" for level in encoded.levels]
        sources = np.concatenate([sources, np.full(len(encoded.levels), position, dtype=np.intp)])
    note = (
        f"{counted(len(raw.texts), 'text column')} became {counted(sum(b.shape[1] for b in blocks), 'column')} of "
        f"zeros and ones: {shown_list([raw.names[position] for position in raw.texts])}."
    )
    if any(b.shape[1] > 1 for b in blocks):
        note += " Those of one text column are selected together or not at all."
    order = np.argsort(sources, kind="stable")
    X = side_by_side(raw.values, np.concatenate(blocks, axis=1), "Columns of text")[:, order]
    ordered_sources = sources[order]
    groups = np.unique(ordered_sources, return_inverse=True)[1].astype(np.intp)
    several = len(np.unique(groups)) < len(groups)
    return X, [names[i] for i in order], ordered_sources, groups if several else None, (note,)


# -- Files to tables in one call ----------------------------------------------------------------------


def read_table(
    path: str | Path,
    target: str | None = None,
    *,
    samples: str | Path | None = None,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    encoding: str | None = None,
    transpose: bool = False,
    sheet: str | int | None = None,
    header_row: int | None = None,
    with_columns: Sequence[str] = (),
    **options: Any,
) -> Table:
    """Read a CSV, TSV, Excel, ODS, Parquet, Arrow, NPZ, LIBSVM, MAT, ARFF or h5ad file, compressed or not.

    Parameters
    ----------
    path : str or Path
        The file. The ending of its name, or its content, says which format it has. "-" is standard input.
    target : str or None, default=None
        The column to predict. None: the target of formats that have one, such as LIBSVM.
    samples : str, Path or None, default=None
        A second file with one row per sample that holds the target. It is joined by the names of the samples.
    delimiter : str or None, default=None
        Character between two cells of a text file. None: the one that fits the file.
    decimal_comma : bool, default=False
        Whether decimals are written with a comma, as in 2,5.
    encoding : str or None, default=None
        Encoding of text files, such as "gb18030". None: detected from the content.
    transpose : bool, default=False
        Whether the samples are in columns.
    sheet : str, int or None, default=None
        Name or number of the sheet of a workbook. None: the first sheet that holds a table.
    header_row : int or None, default=None
        Number of the line or row that holds the names of the columns. None: found from the cells.
    with_columns : list of str, default=()
        Columns of ``samples`` that become features too.
    **options : object
        The fields of ``TableOptions``, such as ``task`` or ``ignore``.

    Returns
    -------
    Table
        The features, the target and notes about what was decided.

    Examples
    --------
    >>> from zeronorm.datasets import read_table
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "patients.csv"
    >>> _ = file.write_text("age,dose,healed\\n31,2,yes\\n45,1,no\\n52,3,yes\\n38,1,no\\n")
    >>> table = read_table(file, "healed")
    >>> table.X.shape, table.class_counts
    ((4, 2), {'no': 2, 'yes': 2})
    """
    text: dict[str, Any] = {"decimal_comma": decimal_comma, "encoding": encoding}
    where: dict[str, Any] = {"sheet": None if sheet is None else str(sheet), "header_row": header_row}
    raw = read_raw(Path(path), delimiter=delimiter, transpose=transpose, **where, **text)
    found = TableOptions(target=target, **options)
    if samples is not None:
        raw = join_samples(raw, read_raw(Path(samples), **text), found.id, with_columns)
        found = replace(found, id=None)
    return build_table(raw, found, source=str(path))
