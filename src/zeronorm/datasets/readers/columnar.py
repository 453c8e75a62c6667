"""Parquet and Arrow (IPC, Feather) files, and what all tables of columns share: which are numbers, which are text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from zeronorm.datasets.raw import MISSING_TEXTS, RawTable, reader
from zeronorm.datasets.table import DataError, shown


@reader(".parquet", ".pq", ".arrow", ".feather", ".ipc", takes=("transpose",))
def read_columnar(path: Path, *, transpose: bool = False) -> RawTable:
    """The table in a Parquet or Arrow file."""
    frame = _read_frame(path)
    if frame.width < 2:
        raise DataError(
            f"The file {shown(str(path))} has {frame.width} column. A table needs a target and a feature."
        )
    names = list(frame.columns)
    return raw_from_transposed(names, frame) if transpose else raw_from_frame(names, frame)


def _read_frame(path: Path) -> Any:
    import polars as pl

    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pl.read_parquet(path)
        return pl.read_ipc(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"The file {shown(str(path))} is damaged or not a {path.suffix} file: {reason}. "
            "Write it again, or check that the copy is complete."
        ) from error


# -- From a polars frame to a raw table --


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
    values = frame.select(pl.nth(numeric_positions) if numeric_positions else [])
    if converted:
        values = values.with_columns(**{frame.columns[i]: column for i, column in converted.items()})
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
    """The column as floats, or None when a cell is not a number."""
    import polars as pl

    if decimal_comma:
        text = text.str.replace(",", ".", literal=True)
    numbers = text.cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == text.null_count() else None


def raw_from_transposed(names: list[str], frame: Any, decimal_comma: bool = False) -> RawTable:
    """A table with samples in columns: the first column names the features, the header names the samples."""
    import polars as pl

    feature_names = [name or "" for name in frame.to_series(0).cast(pl.String).to_list()]
    body = frame.select(pl.nth(range(1, frame.width)))
    cells = pl.DataFrame([_as_text(column) for column in body.iter_columns()])
    numbers = cells.with_columns(pl.all().str.replace(",", ".", literal=True)) if decimal_comma else cells
    numbers = numbers.cast(pl.Float64, strict=False)
    failed = np.zeros(frame.height, dtype=bool)
    for text, number in zip(cells.iter_columns(), numbers.iter_columns(), strict=True):
        failed |= (text.is_not_null() & number.is_null()).to_numpy()
    values = numbers.to_numpy(order="fortran")  # (features, samples)
    text_rows = np.flatnonzero(failed)
    texts = {int(i): list(cells.row(int(i))) for i in text_rows}
    return RawTable(
        names=feature_names,
        values=values[~failed].T,
        positions=np.flatnonzero(~failed),
        texts=texts,
        sample_ids=names[1:],
        notes=("The table has samples in columns and was transposed.",),
    )
