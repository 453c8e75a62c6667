"""CSV and TSV files.

The header is read here and not by polars, because names may repeat or hold line breaks. Column types
are guessed from the first rows and given to polars, which is four times as fast on 10^5 columns as
its own inference; when the guess is wrong, everything is read as text and converted.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any

from zeronorm.datasets.raw import MISSING_TEXTS, RawTable, reader
from zeronorm.datasets.readers.columnar import raw_from_frame, raw_from_transposed
from zeronorm.datasets.table import DataError, shown

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
OTHER_DELIMITERS = (",", ";", "\t", "|", " ")
GUESS_CELLS = 200_000
CHUNK_BYTES = 1 << 24
LONGEST_FIELD = 1 << 24


@reader(".csv", ".tsv", ".tab", ".txt", takes=("delimiter", "decimal_comma", "transpose"))
def read_delimited(
    path: Path, *, delimiter: str | None = None, decimal_comma: bool = False, transpose: bool = False
) -> RawTable:
    """The table in a delimited text file with a header line."""
    import polars as pl

    separator = delimiter or DELIMITERS[path.suffix.lower()]
    if len(separator.encode()) != 1:
        raise DataError(f"The delimiter must be one plain character. Got {shown(separator)} instead.")
    _check_utf8(path)
    names, first_rows, header_lines = _read_head(path, separator)
    _check_delimiter(names, separator, path)
    if not first_rows:
        raise DataError(f"The file {shown(str(path))} has a header but no rows. Add the data.")
    scan = {
        "source": path,
        "separator": separator,
        "decimal_comma": decimal_comma,
        "skip_lines": header_lines,
        "columns": [f"c{i}" for i in range(len(names))],
    }
    kinds = [
        pl.String if transpose or not _looks_numeric(cells, decimal_comma) else pl.Float64
        for cells in itertools.zip_longest(*first_rows, fillvalue="")
    ]
    kinds = kinds[: len(names)] + [pl.String] * (len(names) - len(kinds))
    frame = _scan(scan, kinds, path)
    if transpose:
        return raw_from_transposed(names, frame, decimal_comma)
    return raw_from_frame(names, frame, decimal_comma)


def _scan(scan: dict[str, Any], kinds: list[Any], path: Path) -> Any:
    """The body of the file: with the guessed column types, with texts for missing values too, or as text."""
    import polars as pl

    columns = scan.pop("columns")
    as_text = [pl.String] * len(columns)
    for guess, nulls in ((kinds, None), (kinds, list(MISSING_TEXTS)), (as_text, None)):
        schema = dict(zip(columns, guess, strict=True))
        try:
            return pl.read_csv(**scan, has_header=False, schema=schema, null_values=nulls)
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    raise DataError(
        f"The file {shown(str(path))} cannot be read as {len(columns)} columns: {reason}. "
        "Check that every row has as many cells as the header, and pass --delimiter if it is another one."
    )


def _check_utf8(path: Path) -> None:
    """Decode piece by piece, so that a large file is never held twice."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")()
    position = 0
    with path.open("rb") as stream:
        while piece := stream.read(CHUNK_BYTES):
            try:
                decoder.decode(piece)
            except UnicodeDecodeError as error:
                raise DataError(
                    f"The file {shown(str(path))} is not UTF-8 text (near byte {position + error.start}). Save "
                    "it as UTF-8, for example with `iconv -f latin1 -t utf-8`."
                ) from error
            position += len(piece)


def _read_head(path: Path, separator: str) -> tuple[list[str], list[list[str]], int]:
    """Names, the first rows, and how many lines the header takes (names may hold line breaks)."""
    csv.field_size_limit(LONGEST_FIELD)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream, delimiter=separator)
        try:
            names = next(rows, [])
            header_lines = rows.line_num
            n_rows = min(100, max(2, GUESS_CELLS // max(1, len(names))))
            first_rows = [row for row in itertools.islice(rows, n_rows) if row]
        except csv.Error as error:
            raise DataError(
                f"The file {shown(str(path))} cannot be read as text: {error}. Is it a CSV file?"
            ) from error
    if "\0" in "".join(names):
        raise DataError(
            f"The file {shown(str(path))} holds binary data, not text. Give it the ending of its format."
        )
    return names, first_rows, header_lines


def _check_delimiter(names: list[str], separator: str, path: Path) -> None:
    if len(names) > 1:
        return
    header = names[0] if names else ""
    found = [d for d in OTHER_DELIMITERS if d != separator and d in header]
    hint = f"It seems to be separated by {found[0]!r}: pass --delimiter {found[0]!r}." if found else ""
    raise DataError(
        f"With the delimiter {separator!r} the file {shown(str(path))} has only one column, {shown(header)}. "
        + (hint or "A table needs a target and at least one feature.")
    )


def _looks_numeric(cells: tuple[str, ...], decimal_comma: bool) -> bool:
    return all(_is_number(cell.strip(), decimal_comma) for cell in cells)


def _is_number(cell: str, decimal_comma: bool) -> bool:
    if cell in MISSING_TEXTS:
        return True
    try:
        float(cell.replace(",", ".") if decimal_comma else cell)
    except ValueError:
        return False
    return "_" not in cell
