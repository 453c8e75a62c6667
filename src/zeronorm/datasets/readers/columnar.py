"""Parquet and Arrow (IPC, Feather) files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zeronorm.datasets.raw import RawTable
from zeronorm.datasets.readers.frame import raw_from_frame, raw_from_transposed
from zeronorm.datasets.table import DataError, shown


def read(path: Path, *, transpose: bool = False) -> RawTable:
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
