"""Parquet and Arrow (IPC, Feather) files, workbooks, and the conversion of a data frame to a raw table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zeronorm.datasets._raw import MISSING_TEXTS, RawTable, reader
from zeronorm.datasets._table import DataError, shown, shown_list
from zeronorm.datasets.readers._opening import Opened

PARQUET = (".parquet", ".pq")
# Missing where the other cells of a column are numbers; alone they may be labels, as in "+" and "-".
MISSING_AMONG_NUMBERS = (".", "-", "--")
# What programs write next to the names of features: symbols, locations on the genome, lengths.
DESCRIBING_NAMES = {
    *("description", "desc", "annotation", "title", "name", "symbol", "gene_symbol", "gene_name", "genename"),
    *(
        "gene",
        "gene_id",
        "geneid",
        "entrez",
        "entrezid",
        "entrez_id",
        "ensembl",
        "refseq",
        "unigene",
        "gb_acc",
    ),
    *(
        "accession",
        "uniprot",
        "protein",
        "biotype",
        "gene_biotype",
        "feature_type",
        "mz",
        "rt",
        "retention_time",
    ),
    *("chr", "chrom", "chromosome", "start", "end", "stop", "strand", "length"),
}


@reader(*PARQUET, ".arrow", ".feather", ".ipc", takes=("transpose",))
def read_columnar(file: Opened, *, transpose: bool = False) -> RawTable:
    """The table in a Parquet or Arrow file."""
    frame = _read_frame(file)
    if frame.width < 2:
        raise DataError(
            f"{file.subject} has {frame.width} column. Give a table with a target and at least one feature."
        )
    names = list(frame.columns)
    return raw_from_transposed(names, frame) if transpose else raw_from_frame(names, frame)


def _read_frame(file: Opened) -> Any:
    import polars as pl

    kind = "Parquet" if file.ending in PARQUET else "Arrow"
    try:
        return pl.read_parquet(file.path) if kind == "Parquet" else pl.read_ipc(file.path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DataError(
            f"{file.subject} is damaged or not {kind}. Write it again, or check that the copy is complete."
        ) from error


# -- From a polars frame to a raw table: which columns are numbers and which are text --


def raw_from_frame(
    names: list[str], frame: Any, decimal_comma: bool = False, *, keep_text: bool = False
) -> RawTable:
    """The raw table of a data frame: columns of numbers, booleans and texts that are all numbers become ``values``.

    With ``keep_text`` texts stay texts, because the format says which columns are numeric.
    """
    import polars as pl

    texts: dict[int, list[str | None]] = {}
    converted = {}
    numeric_positions = []
    for position, (name, kind) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if kind.is_numeric() or kind == pl.Boolean or kind == pl.Null:
            numeric_positions.append(position)
            continue
        column = _as_text(frame.get_column(name))
        numbers = None if keep_text else _as_numbers(column, decimal_comma)
        if numbers is None:
            texts[position] = column.to_list()
        else:
            converted[position] = numbers
            numeric_positions.append(position)
    # Column by column: for very many columns a query takes longer than reading the file, and twice the memory.
    values = pl.DataFrame(
        [
            converted[i].alias(frame.columns[i]) if i in converted else frame.to_series(i)
            for i in numeric_positions
        ]
    )
    return RawTable(
        names=names,
        values=_to_matrix(values, frame.height),
        positions=np.asarray(numeric_positions, dtype=np.intp),
        texts=texts,
    )


def _to_matrix(frame: Any, n_rows: int) -> Any:
    import polars as pl

    if frame.width == 0:
        return np.empty((n_rows, 0))
    kind = pl.Float32 if set(frame.dtypes) == {pl.Float32} else pl.Float64
    if set(frame.dtypes) != {kind}:
        frame = frame.cast(kind)
    return frame.to_numpy(order="fortran")


def _as_text(column: Any) -> Any:
    import polars as pl

    text = column.cast(pl.String, strict=False).str.strip_chars()
    return text.set(text.is_in(MISSING_TEXTS), None)


def _as_numbers(text: Any, decimal_comma: bool) -> Any:
    """The column as floats, or None when a cell is not a number; "." and "-" among numbers are missing."""
    import polars as pl

    if decimal_comma:
        text = text.str.replace(",", ".", literal=True)
    numbers = text.cast(pl.Float64, strict=False)
    gaps = int(text.is_in(MISSING_AMONG_NUMBERS).sum())
    present = len(text) - text.null_count()
    is_numeric = numbers.null_count() == text.null_count() + gaps and (gaps < present or not present)
    return numbers if is_numeric else None


# -- Tables with samples in columns --


def raw_from_transposed(names: list[str], frame: Any, decimal_comma: bool = False) -> RawTable:
    """A table with samples in columns: the first column names the features, the header names the samples.

    Columns beside the names that describe the features instead of measuring them are set aside.
    """
    import polars as pl

    feature_names = [(name or "").strip() for name in frame.to_series(0).cast(pl.String).to_list()]
    cells = pl.DataFrame(
        [_as_text(frame.to_series(position)).alias(f"c{position}") for position in range(1, frame.width)]
    )
    numbers = pl.DataFrame([_lenient_numbers(column, decimal_comma) for column in cells.iter_columns()])
    failed = [
        (text.is_not_null() & number.is_null() & ~text.is_in(MISSING_AMONG_NUMBERS)).to_numpy()
        for text, number in zip(cells.iter_columns(), numbers.iter_columns(), strict=True)
    ]
    describing = _describing_columns(names[1:], failed)
    measured = [position for position in range(cells.width) if position not in set(describing)]
    is_text_row = np.zeros(frame.height, dtype=bool)
    for position in measured:
        is_text_row |= failed[position]
    values = numbers.select(pl.nth(measured)).to_numpy(order="fortran")  # (features, samples)
    kept = cells.select(pl.nth(measured))
    notes = ["The table has samples in columns and was transposed."]
    if describing:
        described = shown_list([names[1 + position] for position in describing])
        notes.append(f"These columns describe the features and are not samples: {described}.")
    return RawTable(
        names=feature_names,
        values=values[~is_text_row].T,
        positions=np.flatnonzero(~is_text_row),
        texts={int(i): list(kept.row(int(i))) for i in np.flatnonzero(is_text_row)},
        sample_ids=[names[1 + position] for position in measured],
        notes=tuple(notes),
    )


def _lenient_numbers(text: Any, decimal_comma: bool) -> Any:
    import polars as pl

    text = text.str.replace(",", ".", literal=True) if decimal_comma else text
    return text.cast(pl.Float64, strict=False)


def _describing_columns(names: list[str], failed: list[Any]) -> list[int]:
    """Positions of the columns that describe features: mostly text, or leading columns with known names.

    A sample has text only in the few rows that hold labels; a description has it in most rows.
    """
    shares = np.asarray([float(column.mean()) for column in failed])
    usual = float(np.median(shares))
    found = [position for position, share in enumerate(shares) if share > 0.5 and share > usual + 0.25]
    for position, name in enumerate(names):
        if position not in found and name.strip().lower() not in DESCRIBING_NAMES:
            break
        found.append(position)
    found = sorted(set(found))
    return found if len(found) < len(names) else []


# -- Sheets of Excel and LibreOffice workbooks --


@reader(".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", takes=("decimal_comma", "transpose"))
def read_spreadsheet(file: Opened, *, decimal_comma: bool = False, transpose: bool = False) -> RawTable:
    """The table on the first sheet that holds one, written out as CSV for the reader of text."""
    from zeronorm.datasets.readers._delimited import read_delimited

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
    """The text of a cell; whole numbers, which a workbook stores as 2.0, are written as 2."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return "" if cell is None else str(cell)
