"""Sheets of Excel and LibreOffice workbooks, which are written out as CSV for the reader of text."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from zeronorm._messages import Message, parameter
from zeronorm.datasets._raw import RawTable, reader
from zeronorm.datasets._table import DataError, shown, shown_list
from zeronorm.datasets.readers._delimited import read_text
from zeronorm.datasets.readers._opening import Opened, opened

Rows = Sequence[Sequence[Any]]
HEADER_SHARE = 0.8  # of the cells of a usual row of the table that its header has
FEWER_NUMBERS = 0.1  # a first sheet with a smaller share of the numbers of another one describes it


WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def sheets_of(path: Path) -> list[str]:
    """The names of the sheets of a workbook with cells; none for a file of another format."""
    with opened(path) as file:
        return list(_load(file)) if file.ending in WORKBOOKS else []


@reader(
    *WORKBOOKS,
    takes=("decimal_comma", "transpose", "sheet", "header_row"),
)
def read_spreadsheet(
    file: Opened,
    *,
    decimal_comma: bool = False,
    transpose: bool = False,
    sheet: str | None = None,
    header_row: int | None = None,
) -> RawTable:
    """The table on the sheet of this name or number, or on the first sheet that holds one."""
    sheets = _load(file)
    tables = {name: _table_of(rows, header_row) for name, rows in sheets.items()}
    name = _first_table(tables, file) if sheet is None else _named_sheet(sheet, list(sheets), file)
    table = tables[name]
    if table is None:
        raise _no_table(file, f"The sheet {shown(name)}", list(sheets))
    path = file.folder / "sheet.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(_trimmed(table.rows, decimal_comma))
    found = replace(file, path=path, ending=".csv")
    others = [other for other in sheets if other != name]
    if sheet is None and others:
        found = found.noted(
            Message(
                f"The sheet {shown(name)} was read; {shown_list(others)} {'was' if len(others) == 1 else 'were'} not. "
                f"To use another sheet, name it ({parameter('sheet')})."
            )
        )
    if header_row is None and table.n_above:
        found = found.noted(
            Message(
                f"The header of the table was found in row {table.first} of the sheet; what is above it was not read. "
                f"If another row is the header, give its number ({parameter('header_row')})."
            )
        )
    return read_text(found, decimal_comma=decimal_comma, transpose=transpose)


def _load(file: Opened) -> dict[str, Rows]:
    """The rows of all sheets with cells."""
    try:
        import python_calamine
    except ImportError as error:
        raise DataError(
            f"Reading {file} needs the package python-calamine. Install it with `pip install python-calamine`, or "
            "save the sheet as CSV."
        ) from error
    try:
        with python_calamine.load_workbook(str(file.path)) as workbook:
            sheets: dict[str, Rows] = {
                name: workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
                for name in workbook.sheet_names
            }
    except (python_calamine.CalamineError, python_calamine.PasswordError, OSError) as error:
        protected = isinstance(error, python_calamine.PasswordError)
        raise DataError(
            f"{file.subject} is protected by a password. Save it without one."
            if protected
            else f"{file.subject} is damaged or not a workbook. Open it, and save it again or as CSV."
        ) from error
    filled = {name: rows for name, rows in sheets.items() if any(map(_n_filled, rows))}
    if not filled:
        raise DataError(f"{file.subject} has no sheet with cells. Put the table on a sheet, with a header.")
    return filled


# -- Where the table is -------------------------------------------------------------------------------


@dataclass(frozen=True)
class SheetTable:
    """The rows of a table from its header on, the number of its first row, and of the rows with cells above it."""

    rows: Rows
    first: int
    n_above: int

    @property
    def n_numbers(self) -> int:
        """How many cells are numbers."""
        return sum(isinstance(cell, (int, float)) for row in self.rows for cell in row)


def _table_of(rows: Rows, header_row: int | None) -> SheetTable | None:
    """The table of a sheet: it begins at the first row with about as many cells as its usual rows have."""
    counts = [_n_filled(row) for row in rows]
    if header_row is not None:
        first = header_row - 1
    else:
        usual = median([count for count in counts if count > 1] or [0])
        width = median([count for count in counts if count >= usual] or [0])
        needed = max(2.0, min(width - 1, HEADER_SHARE * width))  # one name may be missing, above row names
        first = next((number for number, count in enumerate(counts) if count >= needed), len(rows))
    if first >= len(rows) or counts[first] < 2 or not any(counts[first + 1 :]):
        return None
    return SheetTable(rows[first:], first + 1, sum(map(bool, counts[:first])))


def _first_table(tables: dict[str, SheetTable | None], file: Opened) -> str:
    """The first sheet with a table; one that hardly has numbers gives way to the sheet with most numbers."""
    found = {name: table for name, table in tables.items() if table is not None}
    if not found:
        raise _no_table(file, "No sheet", list(tables))
    first = next(iter(found))
    numbers = {name: table.n_numbers for name, table in found.items()}
    most = max(numbers, key=lambda name: numbers[name])
    return most if numbers[first] < FEWER_NUMBERS * numbers[most] else first


def _named_sheet(sheet: str, names: list[str], file: Opened) -> str:
    """The name of the sheet that the user names or counts, from 1."""
    if sheet in names:
        return sheet
    if sheet.isdecimal() and 1 <= int(sheet) <= len(names):
        return names[int(sheet) - 1]
    raise DataError(
        f"names {shown(sheet)}, but the sheets of {file} are {shown_list(names, 20)}. Use one of them, or its number.",
        "sheet",
    )


def _no_table(file: Opened, where: str, names: list[str]) -> DataError:
    return DataError(
        f"{where} of {file} holds a table with a header, a row and at least two columns. Its sheets are "
        f"{shown_list(names, 20)}. Name one ({parameter('sheet')}), and the row of its header "
        f"({parameter('header_row')})."
    )


# -- Cells as text ------------------------------------------------------------------------------------


def _trimmed(rows: Rows, decimal_comma: bool) -> list[list[str]]:
    """Cells as text, without the empty rows and columns around the table."""
    texts = [[_text(cell, decimal_comma) for cell in row] for row in rows if _n_filled(row)]
    width = max(len(row) for row in texts)
    texts = [[*row, *[""] * (width - len(row))] for row in texts]
    used = [column for column in range(width) if any(row[column] for row in texts)]
    return [row[used[0] : used[-1] + 1] for row in texts]


def _n_filled(row: Sequence[Any]) -> int:
    return sum(cell not in ("", None) for cell in row)


def _text(cell: Any, decimal_comma: bool) -> str:
    """The text of a cell; whole numbers, which a workbook stores as 2.0, are written as 2."""
    if isinstance(cell, float):
        if cell.is_integer() and abs(cell) < 1e15:
            return str(int(cell))
        return str(cell).replace(".", ",") if decimal_comma else str(cell)
    return "" if cell is None else str(cell)
