"""What a table holds, before its use is known: its columns, their types, missing and suspicious values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm.datasets._catalogue import known_names, load_dataset
from zeronorm.datasets._encoding import (
    is_identifier_name,
    is_text_grouping,
    is_text_identifier,
    missing_per_column,
)
from zeronorm.datasets._numbers import Numbers, has_decimal_comma, numbers_in
from zeronorm.datasets._raw import RawTable
from zeronorm.datasets._table import are_dates, missing_labels
from zeronorm.datasets.readers import read_raw
from zeronorm.datasets.readers._workbooks import sheets_of
from zeronorm.workflow._options import DataOptions

N_EXAMPLES = 3  # different values that are shown of a column
FILE_OPTIONS = ("delimiter", "decimal_comma", "encoding", "transpose", "sheet", "header_row")


@dataclass(frozen=True)
class ColumnSummary:
    """What is known of one column.

    Parameters
    ----------
    name : its name.
    kind : "numbers", "text", "names of samples", "patients or batches", "dates", or "outcome" for a target that the
        format keeps apart.
    n_missing : number of missing values, without the suspicious ones.
    n_levels : number of different texts; None for numbers.
    examples : some of its values.
    odd : the first values that are no numbers, with the names of their rows.
    n_odd : how many there are.
    is_constant : whether all values are the same.
    """

    name: str
    kind: str
    n_missing: int
    n_levels: int | None
    examples: tuple[str, ...]
    odd: tuple[tuple[str, str], ...] = ()
    n_odd: int = 0
    is_constant: bool = False

    @property
    def needs_a_look(self) -> bool:
        """Whether a user should look at the column: it is not one of plain numbers."""
        return self.kind != "numbers" or self.n_odd > 0 or self.is_constant or is_identifier_name(self.name)


@dataclass(frozen=True)
class Preview:
    """A table as it was read, with summaries of its columns.

    Parameters
    ----------
    raw : the table.
    sheets : the names of the sheets of a workbook.
    """

    raw: RawTable
    sheets: tuple[str, ...] = ()

    @property
    def n_samples(self) -> int:
        return self.raw.n_samples

    @property
    def n_columns(self) -> int:
        return len(self.raw.names) + len(self.raw.targets)

    @cached_property
    def n_missing(self) -> int:
        """Missing values of all columns, without the suspicious ones."""
        texts = sum(cell is None for cells in self.raw.texts.values() for cell in cells)
        return int(self._missing.sum()) + texts

    @cached_property
    def first_to_see(self) -> list[int]:
        """Positions of the columns that need a look, then of the others, each in the order of the table."""
        constant = set(self.raw.positions[self._is_constant].tolist())
        named = {p for p in self.raw.positions.tolist() if is_identifier_name(self.raw.names[p])}
        first = sorted({*self.raw.texts, *constant, *named})
        taken = set(first)
        return [*first, *(p for p in self.raw.positions.tolist() if p not in taken)]

    def apart(self) -> list[ColumnSummary]:
        """The targets that the format keeps apart from the columns."""
        found = []
        for name, values in self.raw.targets.items():
            levels = list(dict.fromkeys(str(value) for value in np.asarray(values).tolist()))
            is_text = np.asarray(values).dtype.kind not in "iuf"
            found.append(
                ColumnSummary(
                    name,
                    "outcome",
                    int(missing_labels(np.asarray(values)).sum()),
                    len(levels) if is_text else None,
                    tuple(levels[:N_EXAMPLES]),
                )
            )
        return found

    def columns(self, positions: Iterable[int]) -> list[ColumnSummary]:
        """The summaries of the columns at these positions."""
        return [self._text(p) if p in self.raw.texts else self._number(p) for p in positions]

    def head(self, positions: Sequence[int], n_rows: int) -> list[list[str]]:
        """The first values of some columns, by row."""
        columns = []
        for position in positions:
            values = self.raw.column(position)[:n_rows]
            columns.append([_shown(value) for value in values.tolist()])
        return [list(row) for row in zip(*columns, strict=True)]

    @cached_property
    def _missing(self) -> NDArray[np.intp]:
        return np.asarray(missing_per_column(self.raw.values))

    @cached_property
    def _is_constant(self) -> NDArray[np.bool_]:
        values = self.raw.values
        if not isinstance(values, np.ndarray) or len(values) == 0:
            return np.zeros(len(self.raw.positions), dtype=bool)
        low = np.fmin.reduce(values, axis=0)
        return np.asarray(low == np.fmax.reduce(values, axis=0))

    def _number(self, position: int) -> ColumnSummary:
        index = int(np.flatnonzero(self.raw.positions == position)[0])
        values = self.raw.column(position)
        present = values[~np.isnan(values)]
        examples = tuple(dict.fromkeys(_shown(value) for value in present[:20].tolist()))[:N_EXAMPLES]
        return ColumnSummary(
            self.raw.names[position],
            "numbers",
            int(self._missing[index]),
            None,
            examples,
            is_constant=bool(self._is_constant[index]),
        )

    def _text(self, position: int) -> ColumnSummary:
        cells = self.raw.texts[position]
        present = [cell for cell in cells if cell is not None]
        examples = tuple(list(dict.fromkeys(present))[:N_EXAMPLES])
        numbers = numbers_in(cells, decimal_comma=self._decimal_comma)
        levels = len(set(present))
        if numbers is not None:
            odd = _odd(self.raw, numbers)
            kept = np.unique(numbers.values[~np.isnan(numbers.values)])
            return ColumnSummary(
                self.raw.names[position],
                "numbers",
                len(cells) - len(present),
                None,
                examples,
                odd[:N_EXAMPLES],
                len(odd),
                kept.size <= 1 and not odd,
            )
        return ColumnSummary(
            self.raw.names[position],
            _kind_of(cells, present),
            len(cells) - len(present),
            levels,
            examples,
            is_constant=levels <= 1,
        )

    @cached_property
    def _decimal_comma(self) -> bool:
        known = self.raw.decimal_comma
        return has_decimal_comma(self.raw.texts.values()) if known is None else known


def _odd(raw: RawTable, numbers: Numbers) -> tuple[tuple[str, str], ...]:
    """Values that are no plain numbers, with the names of their rows."""
    found = {**numbers.odd, **numbers.limits}
    return tuple((raw.at(row), found[row]) for row in sorted(found))


def _kind_of(cells: Sequence[str | None], present: Sequence[str]) -> str:
    if are_dates(present):
        return "dates"
    if is_text_identifier(cells):
        return "names of samples"
    return "patients or batches" if is_text_grouping(cells) else "text"


def _shown(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def preview(data: str | Path, options: DataOptions) -> Preview:
    """Read a table, or a known data set, as far as it can be read without a target.

    Parameters
    ----------
    data : path of a file, or the name of a data set.
    options : how the file is read; the roles of its columns do not matter.

    Returns
    -------
    Preview
        The table and summaries of its columns.
    """
    path = Path(data)
    if not path.exists() and str(data) in known_names():
        return Preview(_of_known(str(data)))
    sheets = sheets_of(path)
    return Preview(
        read_raw(path, **{name: getattr(options, name) for name in FILE_OPTIONS}),
        tuple(sheets),
    )


def _of_known(name: str) -> RawTable:
    table = load_dataset(name, download=False)
    names = [str(feature) for feature in table.feature_names]
    return RawTable.from_matrix(
        table.X,
        names,
        targets={table.target_name: table.y},
        default_target=table.target_name,
        notes=tuple(table.notes),
    )
