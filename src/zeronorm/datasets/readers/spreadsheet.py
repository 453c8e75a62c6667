"""Sheets of Excel and LibreOffice workbooks, written out as CSV for the reader of text."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from zeronorm.datasets.raw import RawTable, reader
from zeronorm.datasets.readers.delimited import read_delimited
from zeronorm.datasets.readers.opening import Opened
from zeronorm.datasets.table import DataError, shown, shown_list


@reader(".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", takes=("decimal_comma", "transpose"))
def read_spreadsheet(file: Opened, *, decimal_comma: bool = False, transpose: bool = False) -> RawTable:
    """The table on the first sheet that holds one."""
    return read_delimited(_as_csv(file), decimal_comma=decimal_comma, transpose=transpose)


def _as_csv(file: Opened) -> Opened:
    """The first sheet that holds a table, as a CSV file."""
    try:
        import python_calamine
    except ImportError as error:
        raise DataError(
            f"Reading {file} needs the package python-calamine. Install it with `pip install python-calamine`, or "
            "save the sheet as CSV."
        ) from error
    try:
        with python_calamine.load_workbook(str(file.path)) as workbook:
            sheets = {name: workbook.get_sheet_by_name(name).to_python() for name in workbook.sheet_names}
    except (python_calamine.CalamineError, python_calamine.PasswordError, OSError) as error:
        protected = isinstance(error, python_calamine.PasswordError)
        raise DataError(
            f"{file.subject} is protected by a password. Save it without one."
            if protected
            else f"{file.subject} is damaged or not a workbook. Open it, and save it again or as CSV."
        ) from error
    filled = {name: rows for name, rows in sheets.items() if any(_is_filled(row) for row in rows)}
    if not filled:
        raise DataError(f"{file.subject} has no sheet with cells. Put the table on a sheet, with a header.")
    name, others = next(iter(filled)), list(filled)[1:]
    path = file.folder / "sheet.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(_trimmed(filled[name]))
    found = replace(file, path=path, ending=".csv")
    if others:
        found = found.noted(
            f"The sheet {shown(name)} was read; {shown_list(others)} {'was' if len(others) == 1 else 'were'} not. Save "
            "another sheet as a file of its own to use it."
        )
    return found


def _trimmed(rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    """Cells as text, without the empty rows and columns around the table."""
    texts = [[_text(cell) for cell in row] for row in rows if _is_filled(row)]
    width = max(len(row) for row in texts)
    texts = [[*row, *[""] * (width - len(row))] for row in texts]
    used = [column for column in range(width) if any(row[column] for row in texts)]
    return [row[used[0] : used[-1] + 1] for row in texts]


def _is_filled(row: Sequence[Any]) -> bool:
    return any(cell not in ("", None) for cell in row)


def _text(cell: Any) -> str:
    """A workbook keeps whole numbers as 2.0, and a name or a label is 2."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return "" if cell is None else str(cell)
