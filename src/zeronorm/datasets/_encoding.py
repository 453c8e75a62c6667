"""Encoding of text columns, detection of identifiers, missing values, and files of feature groups."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import Message, parameter, setting
from zeronorm.datasets._raw import RawTable
from zeronorm.datasets._table import DataError, Table, shown, shown_list
from zeronorm.datasets.readers import check_readable
from zeronorm.design import Design

MISSING_LEVEL = "(missing)"
MEDIAN_BLOCK = 4096


@dataclass(frozen=True)
class EncodedColumn:
    """The indicators of one text column and their levels."""

    indicators: NDArray[np.float64]
    levels: list[str]


def encode(cells: Sequence[str | None]) -> EncodedColumn:
    """One indicator per level in alphabetic order; with two levels only that of the second.

    A missing cell is a level of its own.
    """
    filled = np.asarray([MISSING_LEVEL if cell is None else cell for cell in cells], dtype=object)
    levels = sorted(set(filled.tolist()))
    used = levels[1:] if len(levels) == 2 else levels
    indicators = (filled[:, None] == np.asarray(used, dtype=object)[None, :]).astype(np.float64)
    return EncodedColumn(indicators, used)


# -- Columns that name a sample instead of measuring it --


# A text column with more levels than this share of the samples is taken as an identifier.
IDENTIFIER_SHARE = 0.5
FEWEST_LEVELS = 20
# A text column with at least so many levels, and at most so many samples per level, may tell patients apart.
FEWEST_GROUPS = 5
MOST_SAMPLES_PER_GROUP = 5
UNNAMED = ("", "Unnamed: 0", "X", "...1")
_GROUP_NAME = re.compile(
    r"(^|[\W_])(patient|subject|donor|person|participant|individual|animal|mouse|litter|family|batch|plate|site|centre|"
    r"center|hospital|cohort)([\W_]?(id|no|nr|number|code))?$",
    re.IGNORECASE,
)
_ID_NAME = re.compile(
    r"(^|[\W_])(id|ids|identifier|index|uuid|guid|barcode|accession|row|row_?number|rowname|unnamed: ?\d+)$",
    re.IGNORECASE,
)


def is_text_identifier(cells: Sequence[str | None]) -> bool:
    """Whether nearly every sample has its own text."""
    levels = len({cell for cell in cells if cell is not None})
    return levels > 2 and (levels == len(cells) or levels > max(FEWEST_LEVELS, IDENTIFIER_SHARE * len(cells)))


def is_text_grouping(cells: Sequence[str | None]) -> bool:
    """Whether a text has many levels with few samples each, as patients and batches have."""
    levels = len({cell for cell in cells if cell is not None})
    return levels >= FEWEST_GROUPS and levels * MOST_SAMPLES_PER_GROUP >= len(cells)


def grouping_note(name: str, cells: Sequence[str | None]) -> str:
    """The note about a column that is not a feature because it looks like a patient or a batch."""
    levels = len({cell for cell in cells if cell is not None})
    return Message(
        f"The text column {shown(name)} seems to hold patients or batches: it has {levels} different values, with "
        f"about {len(cells) / levels:.1f} samples each. It is not used as a feature. To use it as one, encode it "
        f"({setting('categorical', name)})."
    )


def numeric_groupings(X: Any, names: Sequence[str]) -> list[int]:
    """Columns of repeated whole numbers whose names are like those of patients or batches."""
    if hasattr(X, "tocsr") or isinstance(X, Design):
        return []
    found = []
    for column in (i for i, name in enumerate(names) if _GROUP_NAME.search(name)):
        values = X[:, column]
        if not np.all(np.isfinite(values)) or np.any(values != np.round(values)):
            continue
        if 2 < len(np.unique(values)) <= 0.5 * len(values):
            found.append(column)
    return found


def groupings_apart(columns: Mapping[str, NDArray[Any]], target: str) -> list[str]:
    """Candidate targets, other than the target itself, that look like patients or batches."""
    found = []
    for name, values in columns.items():
        if name == target:
            continue
        if values.dtype.kind in "OU":
            cells = [None if cell is None else str(cell) for cell in values]
            is_grouping = is_text_grouping(cells) and not is_text_identifier(cells)
        else:
            is_grouping = bool(numeric_groupings(np.asarray(values, dtype=np.float64)[:, None], [name]))
        if is_grouping:
            found.append(name)
    return found


def is_row_index(name: str, raw: RawTable, position: int) -> bool:
    """Whether a column is the first, has no name and only counts the rows, as pandas and R write it."""
    if position != 0 or name not in UNNAMED:
        return False
    values = raw.column(position)
    return len(values) > 2 and values[0] in (0.0, 1.0) and bool(np.all(np.diff(values) == 1.0))


def alike_but_for_case(y: NDArray[Any]) -> list[str]:
    """Labels that differ from another one in upper and lower case only."""
    if y.dtype.kind not in "OU":
        return []
    labels = sorted(set(map(str, y)))
    folded = [label.casefold() for label in labels]
    return [label for label, low in zip(labels, folded, strict=True) if folded.count(low) > 1]


def is_identifier_name(name: str) -> bool:
    """Whether a name reads like that of an identifier (id, patient_id, index, …)."""
    return bool(_ID_NAME.search(name.strip()))


def numeric_identifiers(X: Any, names: Sequence[str]) -> NDArray[np.intp]:
    """Columns of whole numbers, all different, that are named like an identifier or count the rows.

    Only columns whose name or first two rows fit are checked fully, so that 10^5 columns take little time.
    """
    n_samples = X.shape[0]
    if n_samples < 3 or hasattr(X, "tocsr") or isinstance(X, Design):
        return np.empty(0, dtype=np.intp)
    counts_up = np.abs(X[1] - X[0]) == 1.0
    named = np.fromiter((is_identifier_name(name) for name in names), dtype=bool, count=len(names))
    found = []
    for column in np.flatnonzero(counts_up | named):
        values = X[:, column]
        if not np.all(np.isfinite(values)) or np.any(values != np.round(values)):
            continue
        steps = np.diff(values)
        if np.all(steps == 1.0) or (named[column] and len(np.unique(values)) == n_samples):
            found.append(column)
    return np.asarray(found, dtype=np.intp)


# -- Missing values: found, explained, and handled the way the user chose --


MissingChoice = Literal["median", "error", "drop-rows", "drop-columns"]
MISSING_CHOICES: tuple[str, ...] = get_args(MissingChoice)


def missing_per_column(X: Any) -> NDArray[np.intp]:
    """Number of missing values in each column; data that stay on disk were checked and have none."""
    if isinstance(X, Design):
        return np.zeros(X.n_features, dtype=np.intp)
    if hasattr(X, "tocsc"):
        by_column = X.tocsc()
        flags = np.concatenate([[0], np.cumsum(np.isnan(by_column.data))])
        return np.asarray(flags[by_column.indptr[1:]] - flags[by_column.indptr[:-1]], dtype=np.intp)
    return np.asarray(np.count_nonzero(np.isnan(X), axis=0), dtype=np.intp)


def check_finite(X: Any, names: Sequence[str]) -> None:
    """Refuse infinite values; data that stay on disk were checked before."""
    if isinstance(X, Design):
        return
    data = X.data if hasattr(X, "tocsc") else X
    if not np.any(np.isinf(data)):
        return
    if hasattr(X, "tocsc"):
        cells = X.tocoo()
        columns, rows = cells.col[np.isinf(cells.data)], cells.row[np.isinf(cells.data)]
    else:
        columns, rows = np.nonzero(np.isinf(X.T))
    column = int(columns.min())
    raise DataError(
        f"The column {shown(names[column])} holds infinite values, first in data row "
        f"{rows[columns == column].min() + 1}. Correct them, or leave the column out ({parameter('ignore')})."
    )


def complain(counts: NDArray[np.intp], names: Sequence[str], n_samples: int) -> DataError:
    """The error that explains what is missing and what the choices are."""
    columns = np.flatnonzero(counts)
    worst = int(columns[np.argmax(counts[columns])])
    share = counts.sum() / max(1, n_samples * len(counts))
    return DataError(
        f"{int(counts.sum())} values are missing ({share:.1%} of all) in {len(columns)} of {len(counts)} columns, "
        f"most in {shown(names[worst])} ({int(counts[worst])} of {n_samples}). Set {setting('missing', 'median')}, "
        f"{setting('missing', 'drop-rows')} or {setting('missing', 'drop-columns')}."
    )


def column_medians(X: Any) -> NDArray[np.float64]:
    """The median of the known values of each column; 0 where there is none."""
    counts = missing_per_column(X)
    medians = np.zeros(X.shape[1])
    known = np.flatnonzero(counts < X.shape[0])
    if hasattr(X, "tocsc"):
        by_column = X.tocsc()
        for column in known:
            medians[column] = np.nanmedian(by_column[:, [column]].toarray())
    else:
        for start in range(0, known.size, MEDIAN_BLOCK):
            part = known[start : start + MEDIAN_BLOCK]
            medians[part] = np.nanmedian(X[:, part], axis=0)
    return medians


def fill(X: Any, values: NDArray[np.float64]) -> Any:
    """A copy of ``X`` in which each missing value is that of ``values`` for its column."""
    if hasattr(X, "tocsr"):
        filled = X.tocsr(copy=True)
        gaps = np.isnan(filled.data)
        filled.data[gaps] = values[filled.indices[gaps]]
        return filled
    filled = X.copy(order="K")
    rows, columns = np.nonzero(np.isnan(filled))
    filled[rows, columns] = values[columns]
    return filled


# -- A user's file that says which features belong together --


def read_feature_groups(path: Path, table: Table, column_names: list[str] | None = None) -> NDArray[np.intp]:
    """A group code per feature.

    The file is a CSV with the columns ``feature,group`` or a JSON object from group names to lists of
    features. Features that the file does not name stand alone; levels of one text column always stay
    together. ``column_names`` are the names in the file of the data, for naming a text column as a whole.

    Parameters
    ----------
    path : Path
        A CSV file with the columns ``feature,group``, or a JSON file that maps group names to lists of
        features.
    table : Table
        The data whose features are grouped.
    column_names : list of str or None, default=None
        Names of the columns in the file of the data. They are needed to name a text column as a whole.

    Returns
    -------
    ndarray of int
        One group code per feature.

    Examples
    --------
    >>> from zeronorm.datasets import read_feature_groups, read_table
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "patients.csv"
    >>> _ = file.write_text("age,dose,healed\\n31,2,yes\\n45,1,no\\n52,3,yes\\n38,1,no\\n")
    >>> groups = file.with_name("groups.csv")
    >>> _ = groups.write_text("feature,group\\nage,a\\ndose,a\\n")
    >>> read_feature_groups(groups, read_table(file, "healed")).tolist()
    [0, 0]
    """
    check_readable(path)
    group_of = _read_json(path) if path.suffix.lower() == ".json" else _read_csv(path)
    sources = table.source_columns
    known: dict[str, set[int]] = {}
    for name, source in zip(table.feature_names, sources, strict=True):
        known.setdefault(str(name), set()).add(int(source))
    for position, name in enumerate(column_names or []):
        if position in set(sources.tolist()):
            known.setdefault(name, set()).add(position)
    unknown = [name for name in group_of if name not in known]
    if unknown:
        raise DataError(
            f"The groups file {shown(str(path))} names features that the table does not have: "
            f"{shown_list(unknown)}. Correct the names."
        )
    label_of = {source: group for name, group in group_of.items() for source in known[name]}
    labels = [("named", label_of[s]) if s in label_of else ("alone", str(s)) for s in sources.tolist()]
    codes: dict[tuple[str, str], int] = {}
    return np.asarray([codes.setdefault(label, len(codes)) for label in labels], dtype=np.intp)


def _read_csv(path: Path) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"The groups file {shown(str(path))} cannot be read as UTF-8 CSV: {error}."
        ) from error
    if not rows or {"feature", "group"} - set(rows[0]):
        raise DataError(
            f"The groups file {shown(str(path))} must be a CSV with the columns feature,group and a row per "
            "feature, or a JSON object of lists. Correct its header."
        )
    return _without_repeats([(row["feature"] or "", row["group"] or "") for row in rows], path)


def _read_json(path: Path) -> dict[str, str]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"The groups file {shown(str(path))} is not valid JSON: {error}.") from error
    if not isinstance(content, dict) or not all(isinstance(members, list) for members in content.values()):
        raise DataError(f"The groups file {shown(str(path))} must map group names to lists of features.")
    empty = [group for group, members in content.items() if not members]
    if empty:
        raise DataError(
            f"The groups file {shown(str(path))} has {len(content)} groups, and {shown(empty[0])} has no feature. "
            "Remove it."
        )
    return _without_repeats(
        [(str(name), group) for group, members in content.items() for name in members], path
    )


def _without_repeats(pairs: list[tuple[str, str]], path: Path) -> dict[str, str]:
    group_of: dict[str, str] = {}
    for name, group in pairs:
        if group_of.setdefault(name, group) != group:
            raise DataError(
                f"The groups file {shown(str(path))} puts {shown(name)} into two groups. Choose one."
            )
    return group_of
