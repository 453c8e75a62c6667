"""The table that every reader of a file format returns, and the list of readers."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import parameter
from zeronorm.datasets._table import DataError, shown, shown_list
from zeronorm.design import Design

# Texts that stand for a missing value.
MISSING_TEXTS = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "?"),
    *("#N/A", "#NA", "#VALUE!", "#DIV/0!", "<NA>"),
)


@dataclass(frozen=True)
class RawTable:
    """A table as it is in a file, before it is known which column is the target.

    Parameters
    ----------
    names : all column names in the order of the file; names may repeat.
    values : the numeric columns, dense or sparse; NaN marks a missing value. A Design, for data that stay on disk,
        has none.
    positions : position in ``names`` of each column of ``values``.
    texts : the other columns by their position in ``names``; None marks a missing value.
    targets : candidate targets that the format keeps apart from the columns, by name.
    default_target : the one of ``targets`` that is used when none is asked for.
    sample_ids : names of the rows, where the format has them.
    notes : sentences about what the reader decided.
    annotations : descriptions of columns, such as the titles of genes: by heading, then by position in ``names``.
    decimal_comma : whether decimals are written with a comma in ``texts``; None: the texts show it.
    """

    names: Sequence[str]
    values: Any
    positions: NDArray[np.intp]
    texts: Mapping[int, Sequence[str | None]] = field(default_factory=dict)
    targets: dict[str, NDArray[Any]] = field(default_factory=dict)
    default_target: str | None = None
    sample_ids: Sequence[str] | None = None
    notes: tuple[str, ...] = ()
    annotations: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    decimal_comma: bool | None = None

    @property
    def n_samples(self) -> int:
        if self.texts and self.values.shape[1] == 0:
            return len(next(iter(self.texts.values())))
        return int(self.values.shape[0])

    @classmethod
    def from_matrix(cls, X: Any, names: Sequence[str] | None = None, **fields: Any) -> RawTable:
        """A table whose columns are all numeric; columns without names are called x1, x2, …"""
        columns = X.shape[1]
        if names is None:
            names = [f"x{i}" for i in range(1, columns + 1)]
        return cls(names=names, values=as_float(X), positions=np.arange(columns), **fields)

    def without(self, positions: Iterable[int]) -> RawTable:
        """The table without the columns at these positions; the other columns keep their positions."""
        left_out = set(positions)
        if not left_out:
            return self
        kept = ~np.isin(self.positions, list(left_out))
        values = self.values if kept.all() else _columns(self.values, np.flatnonzero(kept))
        texts = {position: cells for position, cells in self.texts.items() if position not in left_out}
        return replace(self, values=values, positions=self.positions[kept], texts=texts)

    def with_columns(self, columns: Mapping[int, NDArray[np.float64]]) -> RawTable:
        """The table with more numeric columns, given by their positions in ``names``."""
        positions = np.concatenate([self.positions, np.fromiter(columns, dtype=np.intp)])
        order = np.argsort(positions, kind="stable")
        block = np.column_stack(list(columns.values()))
        values = side_by_side(self.values, block, "Columns of text")[:, order]
        return replace(self, values=values, positions=positions[order])

    def at(self, row: int) -> str:
        """The position of a row for a message: the name of the sample, or the number of the row."""
        if self.sample_ids is None:
            return f"data row {row + 1}"
        return f"the sample {shown(str(self.sample_ids[row]))}"

    def rows(self, keep: NDArray[np.bool_]) -> RawTable:
        """The table of the marked rows."""
        index = np.flatnonzero(keep).tolist()
        texts = {position: [cells[i] for i in index] for position, cells in self.texts.items()}
        ids = None if self.sample_ids is None else [self.sample_ids[i] for i in index]
        targets = {name: target[index] for name, target in self.targets.items()}
        on_disk = isinstance(self.values, Design)
        values = self.values.take_rows(np.flatnonzero(keep)) if on_disk else self.values[index]
        return replace(self, values=values, texts=texts, sample_ids=ids, targets=targets)

    def column(self, position: int) -> NDArray[Any]:
        """One column: floats, or an object array of texts."""
        if position in self.texts:
            return np.asarray(self.texts[position], dtype=object)
        index = int(np.flatnonzero(self.positions == position)[0])
        values = _columns(self.values, np.asarray([index]))
        if isinstance(values, Design):
            values = values.block(slice(None))
        dense = values.toarray() if hasattr(values, "toarray") else values
        return np.asarray(dense, dtype=np.float64).ravel()

    def numeric_names(self) -> list[str]:
        """Names of the columns of ``values``."""
        return [self.names[position] for position in self.positions]


def _columns(values: Any, index: NDArray[np.intp]) -> Any:
    return values.take(index) if isinstance(values, Design) else values[:, index]


def side_by_side(values: Any, columns: NDArray[Any], subject: str) -> Any:
    """The matrix ``values`` with more columns; ``subject`` names them in the error for a matrix on disk."""
    if isinstance(values, Design):
        raise DataError(
            f"{subject} cannot be features of data that stay on disk. Leave them out ({parameter('ignore')}), or load "
            "the table into memory."
        )
    if hasattr(values, "tocsr"):
        import scipy.sparse as sp

        return sp.hstack([values, sp.csr_matrix(columns)]).tocsr()
    return np.concatenate([values, columns], axis=1)


def as_float(X: Any) -> Any:
    """``X`` in float32 where that holds every value (small integers, booleans, float32), else float64."""
    if X.dtype in (np.float32, np.float64):
        return X
    exact = X.dtype.kind == "b" or (X.dtype.kind in "iu" and X.dtype.itemsize <= 2) or X.dtype == np.float16
    return X.astype(np.float32 if exact else np.float64)


def is_number(cell: str) -> bool:
    """Whether a cell is a number or stands for a missing one."""
    if cell in MISSING_TEXTS:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


# -- Names of columns ---------------------------------------------------------------------------------


MOST_COMPARED = 5000  # known names among which similar ones are looked for
SIMILAR = 0.8  # ratio of matching characters of similar names
REGULAR_EXPRESSION = "re:"
GLOB_CHARACTERS = "*?["


def matching(names: Sequence[str], wanted: str, parameter: str) -> list[int]:
    """Positions of the names equal to ``wanted`` or matching it as a pattern (``AFFX*``) or ``re:^AFFX``."""
    positions = [position for position, name in enumerate(names) if name == wanted]
    if positions:
        return positions
    if wanted.startswith(REGULAR_EXPRESSION):
        try:
            found = re.compile(wanted.removeprefix(REGULAR_EXPRESSION)).search
        except re.error as error:
            raise DataError(
                f"holds {shown(wanted)}, which is not a regular expression: {error}.", parameter
            ) from error
        positions = [position for position, name in enumerate(names) if found(name)]
    elif any(character in wanted for character in GLOB_CHARACTERS):
        found = re.compile(fnmatch.translate(wanted)).match
        positions = [position for position, name in enumerate(names) if found(name)]
    if positions:
        return positions
    raise no_such_column(names, wanted, parameter)


def no_such_column(names: Sequence[str], wanted: str, parameter: str, table: str = "the table") -> DataError:
    """The error for an unknown column name, with similar names."""
    start = f"names {shown(wanted)}, but"
    if wanted.startswith(REGULAR_EXPRESSION) or any(c in wanted for c in GLOB_CHARACTERS):
        text = f"{start} no column of {table} matches it. The first are {shown_list(list(names))}."
        return DataError(text, parameter)
    close = difflib.get_close_matches(wanted, list(dict.fromkeys(names))[:5000], n=3)
    hint = f"Did you mean {shown_list(close)}?" if close else f"The first are {shown_list(list(names))}."
    if not close and 2 * sum(is_number(name) for name in list(names)[:100]) > min(len(names), 100):
        hint += " Many names are numbers. Add a header line if the file has none."
    return DataError(f"{start} {table} has no such column. {hint}", parameter)


def similar_names(wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """For every unknown name with a similar known one, "'known' for 'wanted'"; upper and lower case are alike."""
    folded = {name.casefold(): name for name in reversed(known[:MOST_COMPARED])}
    found = {
        name: difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=SIMILAR) for name in wanted
    }
    return [f"{shown(folded[close[0]])} for {shown(name)}" for name, close in found.items() if close]


def distinct_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names with " (2)", " (3)" … after repeated ones, and the names that were repeated."""
    taken, found, repeated = set(names), [], []
    seen: dict[str, int] = {}
    for name in names:
        count = seen.get(name, 0) + 1
        text = name
        if count > 1:
            while (text := f"{name} ({count})") in taken:
                count += 1
            taken.add(text)
            repeated.append(name)
        seen[name] = count
        found.append(text)
    return found, list(dict.fromkeys(repeated))


# -- The readers of file formats, by the ending of the name --


@dataclass(frozen=True)
class Reader:
    """The function that reads one format, and the names of its options."""

    read: Callable[..., RawTable]
    takes: tuple[str, ...] = ()


READERS: dict[str, Reader] = {}


def reader(
    *endings: str, takes: Sequence[str] = ()
) -> Callable[[Callable[..., RawTable]], Callable[..., RawTable]]:
    """Decorator: the function reads ``Opened`` files of these endings. ``takes`` lists its options of ``read_raw``."""

    def enter(read: Callable[..., RawTable]) -> Callable[..., RawTable]:
        READERS.update(dict.fromkeys(endings, Reader(read, tuple(takes))))
        return read

    return enter
