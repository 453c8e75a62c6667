"""From a raw table and the user's wishes to a table that a selector can use."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm.datasets import encoding
from zeronorm.datasets.raw import RawTable
from zeronorm.datasets.readers import read_raw
from zeronorm.datasets.table import (
    DataError,
    Table,
    TaskName,
    check_target,
    infer_task,
    missing_labels,
    shown,
    shown_list,
)


@dataclass(frozen=True)
class TableOptions:
    """What the user says about a table.

    Parameters
    ----------
    target : str or None, default=None
        The column to predict. None: the target of formats that have one.
    task : {"classification", "regression"} or None, default=None
        None infers it from the target; a note says so.
    ignore : tuple of str, default=()
        Columns to leave out.
    categorical : tuple of str, default=()
        Columns whose numbers are codes of categories.
    sample_groups : str or None, default=None
        Column that says which samples belong together, such as a patient.
    missing : {"error", "median", "drop-rows", "drop-columns"}, default='error'
        What to do with missing values.

    Examples
    --------
    >>> from zeronorm.datasets import TableOptions
    >>> TableOptions(target="healed", ignore=("age",)).missing
    'error'
    """

    target: str | None = None
    task: TaskName | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    sample_groups: str | None = None
    missing: encoding.MissingChoice = "error"


def build_table(raw: RawTable, options: TableOptions, source: str = "") -> Table:
    """Set the target, groups and ignored columns apart, encode texts, handle missing values, check all.

    Parameters
    ----------
    raw : RawTable
        What the reader of a file format returned.
    options : TableOptions
        What the user says about the table.
    source : str, default=''
        Where the data come from, in words.

    Returns
    -------
    Table
        The features, the target and notes about what was decided.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm.datasets import TableOptions, build_table
    >>> from zeronorm.datasets.raw import RawTable
    >>> raw = RawTable.from_matrix(np.eye(4), targets={"y": np.array([0, 0, 1, 1])}, default_target="y")
    >>> build_table(raw, TableOptions()).task
    'classification'
    """
    notes = list(raw.notes)
    y, target_name, place = _take_target(raw, options)
    raw = raw.without([] if place is None else [place])
    raw = raw.without(p for name in options.ignore for p in find_columns(raw, name, "--ignore"))
    samples, raw = _take_sample_groups(raw, options)
    raw = _declare_categories(raw, options.categorical)
    raw, id_columns, ids = _set_text_identifiers_aside(raw, notes)
    raw, y, samples, ids = _drop_incomplete_rows(raw, y, samples, ids, target_name, options, notes)
    raw = _handle_missing(raw, options.missing, notes)
    task, y = _settle_task(y, target_name, options.task, notes)
    X, names, sources, groups = _encode_texts(raw, notes)
    encoding.check_finite(X, names)
    if X.shape[1] == 0:
        raise DataError("No feature is left besides the target. Check --target, --ignore and --missing.")
    numeric_ids = [str(names[i]) for i in encoding.numeric_identifiers(X, names)]
    if numeric_ids:
        notes.append(
            f"These columns of numbers look like identifiers but were kept: {shown_list(numeric_ids)}. "
            "Leave them out with --ignore if they are."
        )
    return Table(
        X=X,
        y=y,
        task=task,
        feature_names=np.asarray(names, dtype=object),
        source_columns=sources,
        target_name=target_name,
        feature_groups=groups,
        sample_groups=samples,
        sample_ids=None if ids is None else np.asarray(ids, dtype=object),
        id_columns=(*id_columns, *numeric_ids),
        notes=tuple(notes),
        source=source,
    )


def find_columns(raw: RawTable, name: str, option: str) -> list[int]:
    """All places of the columns called ``name``."""
    places = [place for place, known in enumerate(raw.names) if known == name]
    if places:
        return places
    close = difflib.get_close_matches(name, list(raw.names)[:5000], n=3)
    hint = f"Did you mean {shown_list(close)}?" if close else f"The first are {shown_list(list(raw.names))}."
    if not close and all(_is_number_text(known) for known in list(raw.names)[:100]):
        hint += " All names are numbers: the file may lack a header line."
    raise DataError(f"{option} names {shown(name)}, but the table has no such column. {hint}")


def _is_number_text(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _take_target(raw: RawTable, options: TableOptions) -> tuple[NDArray[Any], str, int | None]:
    """The target, its name, and its place when it is a column."""
    name = options.target or raw.default_target
    if name is None:
        candidates = list(raw.targets) or list(raw.names)
        raise DataError(
            f"Say with --target which column is to be predicted, one of {shown_list(candidates)}."
        )
    if name in raw.targets:
        return np.asarray(raw.targets[name]), name, None
    if raw.targets and name not in raw.names:
        raise DataError(f"--target names {shown(name)}, but the targets are {shown_list(list(raw.targets))}.")
    places = find_columns(raw, name, "--target")
    if len(places) > 1:
        raise DataError(
            f"--target names {shown(name)}, which stands {len(places)} times in the table. Rename one."
        )
    return raw.column(places[0]), name, places[0]


def _take_sample_groups(raw: RawTable, options: TableOptions) -> tuple[NDArray[Any] | None, RawTable]:
    name = options.sample_groups
    if name is None:
        return None, raw
    if name in raw.targets:
        return np.asarray(raw.targets[name]), raw
    places = find_columns(raw, name, "--sample-groups")
    labels = raw.column(places[0])
    if missing_labels(labels).any():
        raise DataError(
            f"The column {shown(name)} of --sample-groups has missing values. Fill them, so that every sample "
            "belongs to a group."
        )
    return labels, raw.without(places)


def _declare_categories(raw: RawTable, names: Sequence[str]) -> RawTable:
    for name in names:
        for place in find_columns(raw, name, "--categorical"):
            if place in raw.texts:
                continue
            codes = raw.column(place)
            cells = [None if np.isnan(v) else f"{v:g}" for v in codes]
            raw = raw.without([place])
            raw = replace(raw, texts={**raw.texts, place: cells})
    return raw


def _set_text_identifiers_aside(
    raw: RawTable, notes: list[str]
) -> tuple[RawTable, list[str], Sequence[str] | None]:
    found = []
    for place, cells in raw.texts.items():
        encoding.check_not_numbers(raw.names[place], cells)
        if encoding.is_text_identifier(cells):
            found.append(place)
    ids: Sequence[str] | None = raw.sample_ids
    if not found:
        return raw, [], ids
    names = [raw.names[place] for place in found]
    notes.append(
        f"These text columns look like identifiers and were set aside: {shown_list(names)}. "
        "Nearly every sample has its own value there."
    )
    if ids is None:
        ids = ["" if cell is None else cell for cell in raw.texts[found[0]]]
    return raw.without(found), names, ids


def _drop_incomplete_rows(
    raw: RawTable,
    y: NDArray[Any],
    samples: NDArray[Any] | None,
    ids: Sequence[str] | None,
    target_name: str,
    options: TableOptions,
    notes: list[str],
) -> tuple[RawTable, NDArray[Any], NDArray[Any] | None, Sequence[str] | None]:
    """Rows with a missing label are an error or, like other incomplete rows, dropped on request."""
    unlabelled = missing_labels(y)
    if options.missing != "drop-rows":
        if unlabelled.any():
            raise DataError(
                f"{int(unlabelled.sum())} of {len(y)} samples have no value in the target {shown(target_name)} "
                f"(first in data row {int(np.argmax(unlabelled)) + 1}). Fill them, or pass --missing drop-rows."
            )
        return raw, y, samples, ids
    incomplete = unlabelled | rows_with_missing(raw)
    if not incomplete.any():
        return raw, y, samples, ids
    keep = ~incomplete
    notes.append(f"{int(incomplete.sum())} of {len(y)} rows with missing values were dropped.")
    if not keep.any():
        raise DataError(
            "Every row has missing values, so --missing drop-rows leaves none. Choose another way."
        )
    index = np.flatnonzero(keep).tolist()
    return (
        raw.rows(keep),
        y[keep],
        None if samples is None else samples[keep],
        None if ids is None else [ids[i] for i in index],
    )


def rows_with_missing(raw: RawTable) -> NDArray[np.bool_]:
    """Rows in which a number or a text is missing."""
    incomplete = np.zeros(raw.n_samples, dtype=bool)
    if hasattr(raw.values, "tocoo"):
        entries = raw.values.tocoo()
        incomplete[entries.row[np.isnan(entries.data)]] = True
    else:
        incomplete |= np.isnan(raw.values).any(axis=1)
    for cells in raw.texts.values():
        incomplete |= np.asarray([cell is None for cell in cells])
    return incomplete


def _handle_missing(raw: RawTable, choice: encoding.MissingChoice, notes: list[str]) -> RawTable:
    counts = encoding.missing_per_column(raw.values)
    text_counts = {place: sum(cell is None for cell in cells) for place, cells in raw.texts.items()}
    if not counts.any() and not any(text_counts.values()):
        return raw
    if choice == "drop-columns":
        incomplete = [*raw.positions[counts > 0], *(place for place, count in text_counts.items() if count)]
        notes.append(f"{len(incomplete)} columns with missing values were dropped.")
        return raw.without(int(place) for place in incomplete)
    if choice != "median":
        all_counts = np.concatenate([counts, np.asarray(list(text_counts.values()), dtype=np.intp)])
        names = [*raw.numeric_names(), *(raw.names[place] for place in text_counts)]
        raise encoding.complain(all_counts, names, raw.n_samples)
    if counts.any():
        raw = replace(raw, values=encoding.fill_with_medians(raw.values, counts, raw.numeric_names()))
        notes.append(
            f"{int(counts.sum())} missing numbers in {int(np.count_nonzero(counts))} columns were replaced by the "
            "median of the column over all samples, before cross-validation and without looking at the target."
        )
    if any(text_counts.values()):
        notes.append("Missing texts were encoded as a level of their own.")
    return raw


def _settle_task(
    y: NDArray[Any], name: str, given: TaskName | None, notes: list[str]
) -> tuple[TaskName, NDArray[Any]]:
    if y.dtype.kind == "O" and all(isinstance(v, (bool, np.bool_)) for v in y):
        y = y.astype(str)
    task = given
    if task is None:
        task, reason = infer_task(y, name)
        notes.append(reason)
    return task, check_target(y, name, task, task_was_given=given is not None)


def _encode_texts(
    raw: RawTable, notes: list[str]
) -> tuple[Any, list[str], NDArray[np.intp], NDArray[np.intp] | None]:
    """All features in the order of the file, with the levels of a text column as one group."""
    names = raw.numeric_names()
    sources = raw.positions
    if not raw.texts:
        return raw.values, names, sources, None
    blocks = []
    for place, cells in raw.texts.items():
        encoded = encoding.encode(cells)
        blocks.append(encoded.indicators)
        names += [f"{raw.names[place]}={level}" for level in encoded.levels]
        sources = np.concatenate([sources, np.full(len(encoded.levels), place, dtype=np.intp)])
    notes.append(
        f"{len(raw.texts)} text columns were encoded as {sum(b.shape[1] for b in blocks)} indicator columns; "
        "the levels of one column enter and leave together."
    )
    order = np.argsort(sources, kind="stable")
    X = _side_by_side(raw.values, blocks)[:, order]
    ordered_sources = sources[order]
    groups = np.unique(ordered_sources, return_inverse=True)[1].astype(np.intp)
    several = len(np.unique(groups)) < len(groups)
    return X, [names[i] for i in order], ordered_sources, groups if several else None


def _side_by_side(values: Any, blocks: list[NDArray[np.float64]]) -> Any:
    if hasattr(values, "tocsr"):
        import scipy.sparse as sp

        return sp.hstack([values, *[sp.csr_matrix(block) for block in blocks]]).tocsr()
    return np.concatenate([values, *blocks], axis=1)


# -- Files to tables in one call --


def read_table(
    path: str | Path,
    target: str | None = None,
    *,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    transpose: bool = False,
    **options: Any,
) -> Table:
    """Read a CSV, TSV, Parquet, Arrow, NPZ, LIBSVM, MAT, ARFF or h5ad file.

    Parameters
    ----------
    path : str or Path
        The file. The ending of its name says which format it has.
    target : str or None, default=None
        The column to predict. None: the target of formats that have one, such as LIBSVM.
    delimiter : str or None, default=None
        Character between two cells of a text file. None: the usual one for the ending.
    decimal_comma : bool, default=False
        Whether decimals are written with a comma, as in 2,5.
    transpose : bool, default=False
        Whether the samples are in columns.
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
    raw = read_raw(Path(path), delimiter=delimiter, decimal_comma=decimal_comma, transpose=transpose)
    return build_table(raw, TableOptions(target=target, **options), source=str(path))
