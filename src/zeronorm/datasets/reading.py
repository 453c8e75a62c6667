"""Files to tables in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zeronorm.datasets.assemble import TableOptions, build_table
from zeronorm.datasets.readers import read_raw
from zeronorm.datasets.table import Table


def read_table(
    path: str | Path,
    target: str | None = None,
    *,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    transpose: bool = False,
    **options: Any,
) -> Table:
    """Read a CSV, TSV, Parquet, Arrow, NPZ, LIBSVM, MAT, ARFF or h5ad file.

    Parameters
    ----------
    path : the file; its ending tells the format.
    target : the column to predict.
    delimiter, decimal_comma : for text files.
    transpose : whether the samples are in columns.
    **options : see ``TableOptions``.
    """
    raw = read_raw(Path(path), delimiter=delimiter, decimal_comma=decimal_comma, transpose=transpose)
    return build_table(raw, TableOptions(target=target, **options), source=str(path))
