"""Parquet and Arrow (IPC, Feather) files, and what becomes of a frame: numbers, texts, samples in columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm.datasets.raw import MISSING_TEXTS, RawTable, reader
from zeronorm.datasets.readers.opening import Opened
from zeronorm.datasets.table import DataError, shown_list

PARQUET = (".parquet", ".pq")
# Missing where the other cells of a column are numbers; alone they may be labels, as in "+" and "-".
MISSING_AMONG_NUMBERS = (".", "-", "--")
# What programs write next to the names of features: symbols, places on the genome, lengths.
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
        raise DataError(f"{file.subject} has {frame.width} column. A table needs a target and a feature.")
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
    """Columns of numbers and booleans become ``values``, and so do texts that are all numbers.

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
        [_as_text(frame.to_series(place)).alias(f"c{place}") for place in range(1, frame.width)]
    )
    numbers = pl.DataFrame([_lenient_numbers(column, decimal_comma) for column in cells.iter_columns()])
    failed = [
        (text.is_not_null() & number.is_null() & ~text.is_in(MISSING_AMONG_NUMBERS)).to_numpy()
        for text, number in zip(cells.iter_columns(), numbers.iter_columns(), strict=True)
    ]
    describing = _describing_columns(names[1:], failed)
    measured = [place for place in range(cells.width) if place not in set(describing)]
    is_text_row = np.zeros(frame.height, dtype=bool)
    for place in measured:
        is_text_row |= failed[place]
    values = numbers.select(pl.nth(measured)).to_numpy(order="fortran")  # (features, samples)
    kept = cells.select(pl.nth(measured))
    notes = ["The table has samples in columns and was transposed."]
    if describing:
        described = shown_list([names[1 + place] for place in describing])
        notes.append(f"These columns describe the features and are no samples: {described}.")
    return RawTable(
        names=feature_names,
        values=values[~is_text_row].T,
        positions=np.flatnonzero(~is_text_row),
        texts={int(i): list(kept.row(int(i))) for i in np.flatnonzero(is_text_row)},
        sample_ids=[names[1 + place] for place in measured],
        notes=tuple(notes),
    )


def _lenient_numbers(text: Any, decimal_comma: bool) -> Any:
    import polars as pl

    text = text.str.replace(",", ".", literal=True) if decimal_comma else text
    return text.cast(pl.Float64, strict=False)


def _describing_columns(names: list[str], failed: list[Any]) -> list[int]:
    """Columns of text where samples have numbers, and the leading ones whose names say what they are.

    A sample has text only in the few rows that hold labels; a description has it in most rows.
    """
    shares = np.asarray([float(column.mean()) for column in failed])
    usual = float(np.median(shares))
    found = [place for place, share in enumerate(shares) if share > 0.5 and share > usual + 0.25]
    for place, name in enumerate(names):
        if place not in found and name.strip().lower() not in DESCRIBING_NAMES:
            break
        found.append(place)
    found = sorted(set(found))
    return found if len(found) < len(names) else []
