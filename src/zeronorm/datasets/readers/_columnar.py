"""Parquet and Arrow (IPC, Feather) files, and the conversion of a data frame to a raw table."""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm.datasets._numbers import MISSING_AMONG_NUMBERS
from zeronorm.datasets._raw import MISSING_TEXTS, RawTable, reader
from zeronorm.datasets._table import DataError, shown_list
from zeronorm.datasets.readers._opening import Opened

PARQUET = (".parquet", ".pq")
# Whole numbers of more digits than a float holds: names of samples, if most of them differ.
LONG_WHOLE_NUMBER = r"^[+-]?[0-9]{17,}$"
LARGEST_EXACT = 2**53
# Numbers in any notation, also limits such as "<0,5".
LIKE_A_NUMBER = r"^[<>≤≥]?=?\s*[+\-−]?[0-9.,'’\s]*([eE][+-]?[0-9]+)?-*$"  # and what is missing
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
    names: list[str], frame: Any, decimal_comma: bool | None = None, *, keep_text: bool = False
) -> RawTable:
    """The raw table of a data frame: columns of numbers, booleans and texts that are all numbers become ``values``.

    With ``keep_text`` texts stay texts, because the format says which columns are numeric.
    """
    import polars as pl

    texts: dict[int, list[str | None]] = {}
    converted = {}
    numeric_positions = []
    for position, (name, kind) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        is_numeric = kind.is_numeric() or kind == pl.Boolean or kind == pl.Null
        if is_numeric and not (kind.is_integer() and _is_name(frame.get_column(name))):
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
        decimal_comma=decimal_comma,
    )


def _is_name(column: Any) -> bool:
    """Whether most whole numbers of a column differ, and some have more digits than a float holds."""
    largest = column.abs().max() if column.dtype.is_signed_integer() else column.max()
    return largest is not None and largest > LARGEST_EXACT and 2 * column.n_unique() > len(column)


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


def _as_numbers(text: Any, decimal_comma: bool | None) -> Any:
    """The column as floats, or None when a cell is not a plain number; "." and "-" among numbers are missing."""
    if decimal_comma and text.str.contains(".", literal=True).any():
        return None  # dots may separate thousands
    numbers = _plain_numbers(text, decimal_comma)
    gaps = int(text.is_in(MISSING_AMONG_NUMBERS).sum())
    present = len(text) - text.null_count()
    is_numeric = numbers.null_count() == text.null_count() + gaps and (gaps < present or not present)
    if is_numeric and text.str.contains(LONG_WHOLE_NUMBER).any() and 2 * text.n_unique() > len(text):
        return None
    return numbers if is_numeric else None


def _described_rows(frame: Any, position: int) -> dict[int, str]:
    """The texts of a column that describes features, by row."""
    import polars as pl

    cells = frame.to_series(position).cast(pl.String).str.strip_chars().to_list()
    return {row: cell for row, cell in enumerate(cells) if cell}


def _plain_numbers(text: Any, decimal_comma: bool | None) -> Any:
    """The cells as floats; missing where one is not a plain number, or has a dot that may separate thousands."""
    import polars as pl

    if decimal_comma:
        text = text.set(text.str.contains(".", literal=True), None).str.replace(",", ".", literal=True)
    return text.cast(pl.Float64, strict=False)


# -- Tables with samples in columns --


def raw_from_transposed(names: list[str], frame: Any, decimal_comma: bool | None = None) -> RawTable:
    """A table with samples in columns: the first column names the features, the header names the samples.

    Columns beside the names that describe the features instead of measuring them are set aside.
    """
    import polars as pl

    feature_names = [(name or "").strip() for name in frame.to_series(0).cast(pl.String).to_list()]
    cells = pl.DataFrame(
        [_as_text(frame.to_series(position)).alias(f"c{position}") for position in range(1, frame.width)]
    )
    numbers = pl.DataFrame([_plain_numbers(column, decimal_comma) for column in cells.iter_columns()])
    failed = [
        (text.is_not_null() & number.is_null() & ~text.is_in(MISSING_AMONG_NUMBERS)).to_numpy()
        for text, number in zip(cells.iter_columns(), numbers.iter_columns(), strict=True)
    ]
    is_text = [~(text.fill_null(".").str.contains(LIKE_A_NUMBER)) for text in cells.iter_columns()]
    describing = _describing_columns(names[1:], [column.to_numpy() for column in is_text])
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
        annotations={names[1 + position]: _described_rows(frame, 1 + position) for position in describing},
        notes=tuple(notes),
        decimal_comma=decimal_comma,
    )


def _describing_columns(names: list[str], is_text: list[Any]) -> list[int]:
    """Positions of the columns that describe features: mostly text, or leading columns with known names.

    A sample has text only in the few rows that hold labels; a description has it in most rows, and between samples
    in nearly all rows.
    """
    shares = np.asarray([float(column.mean()) for column in is_text])
    usual = float(np.median(shares))
    found = [
        position
        for position, share in enumerate(shares)
        if share > (0.5 if position in (0, len(names) - 1) else 0.9) and share > usual + 0.25
    ]
    for position, name in enumerate(names):
        if position not in found and name.strip().lower() not in DESCRIBING_NAMES:
            break
        found.append(position)
    found = sorted(set(found))
    return found if len(found) < len(names) else []
