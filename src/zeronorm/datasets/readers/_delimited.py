"""CSV, TSV and other text tables.

The header is read here and not by polars, because names may repeat or hold line breaks. Column types
are guessed from the first rows and given to polars, which is four times as fast on 10^5 columns as
its own inference; when the guess is wrong, everything is read as text and converted. Every row is
counted before, because polars would fill short rows with missing values. Of very wide tables each row is
read as if it were a column: polars takes much memory for each column, but little for each cell.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import parameter, setting
from zeronorm.datasets._numbers import has_decimal_comma
from zeronorm.datasets._raw import MISSING_TEXTS, RawTable, is_number, reader
from zeronorm.datasets._table import DataError, counted, shown
from zeronorm.datasets.readers._columnar import LONG_WHOLE_NUMBER, raw_from_frame, raw_from_transposed
from zeronorm.datasets.readers._opening import TEXT_ENDINGS, Opened, as_utf8
from zeronorm.design._annotated import design_of_rows

DEFAULT_SEPARATORS = {".tsv": "\t", ".tab": "\t", ".txt": "\t", ".gct": "\t", ".dat": "\t", ".asc": "\t"}
SEPARATORS = (",", ";", "\t", "|", " ")
NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
COMMENTS = ("#", "!")  # "!" in the tables of the Gene Expression Omnibus
GUESS_CELLS = 200_000
LOOKED_AT = 20
WIDE = 10_000  # columns; wider tables are read row by row
NOWHERE = "\x1f"  # the ASCII unit separator, which is in no table
LONGEST_FIELD = 1 << 24
_LONG = re.compile(LONG_WHOLE_NUMBER)
_QUOTED = re.compile(rb'"[^"]*"')


@dataclass(frozen=True)
class Layout:
    """How a text table is laid out.

    Parameters
    ----------
    separator : the character between cells.
    names : the column names; a column of row names without a header has an empty one.
    first_rows : cells of the first rows.
    skip_lines : physical lines before the first row.
    notes : sentences about what was decided.
    """

    separator: str
    names: list[str]
    first_rows: list[list[str]]
    skip_lines: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Body:
    """The rows of a text table.

    Parameters
    ----------
    path : the file that holds them.
    quote : its quotation mark; None where quotation marks are plain characters.
    skip_lines : line feeds before the first row.
    n_rows : number of rows.
    """

    path: Path
    quote: str | None
    skip_lines: int
    n_rows: int

    @cached_property
    def has_dots(self) -> bool:
        """Whether a row has a dot, which may be a decimal mark or separate thousands."""
        with self.path.open("rb") as stream:
            return any(b"." in line for line in itertools.islice(stream, self.skip_lines, None))


@reader("", *TEXT_ENDINGS, takes=("delimiter", "decimal_comma", "transpose", "header_row", "memory_budget"))
def read_delimited(file: Opened, *, decimal_comma: bool = False, **options: Any) -> RawTable:
    """The table in a delimited text file with a header line; its numbers stay on disk with a ``memory_budget``.

    Without ``decimal_comma`` the cells show whether decimals have a comma.
    """
    return read_text(file, decimal_comma=decimal_comma or None, **options)


def read_text(
    file: Opened,
    *,
    decimal_comma: bool | None,
    delimiter: str | None = None,
    transpose: bool = False,
    header_row: int | None = None,
    memory_budget: int | None = None,
) -> RawTable:
    """The table in a text file; ``decimal_comma`` None finds out whether decimals have a comma."""
    is_gct = file.ending == ".gct"
    file = as_utf8(file)
    start = 2 if is_gct else 0
    file, layout = _find_layout(file, delimiter, start if header_row is None else header_row - 1, header_row)
    if not layout.first_rows:
        raise DataError(f"{file.subject} has a header but no rows. Add the data.")
    body = _checked_body(file, layout)
    transposed = transpose or is_gct
    notes = (*file.notes, *layout.notes)
    raw = _read_body(file, layout, body, decimal_comma, transposed, memory_budget)
    if decimal_comma is None and has_decimal_comma(raw.texts.values()):
        raw = _read_body(file, layout, body, True, transposed, memory_budget)
        notes = (*notes, "The numbers of the file are written with a decimal comma.")
    return replace(raw, notes=(*notes, *raw.notes))


def _read_body(
    file: Opened,
    layout: Layout,
    body: Body,
    decimal_comma: bool | None,
    transposed: bool,
    memory_budget: int | None,
) -> RawTable:
    all_text = transposed or (bool(decimal_comma) and body.has_dots)
    kinds = _guessed_kinds(layout, bool(decimal_comma), all_text=all_text)
    row_by_row = len(kinds) >= WIDE or memory_budget is not None
    if row_by_row and not all_text and body.quote is not None:
        raw = _read_wide(body, layout, kinds, bool(decimal_comma), memory_budget)
        if raw is not None:
            return replace(raw, decimal_comma=decimal_comma)
    scan = {
        "source": body.path,
        "separator": layout.separator,
        "decimal_comma": bool(decimal_comma),
        "skip_lines": body.skip_lines,
        "quote_char": body.quote,
    }
    to_raw = raw_from_transposed if transposed else raw_from_frame
    frame = _scan(scan, kinds, file)
    if frame.height != body.n_rows:
        raise DataError(
            f"{file.subject} has {counted(body.n_rows, 'row')}, but {frame.height} could be read. Check its quotation "
            "marks and the ends of its lines."
        )
    return to_raw(layout.names, frame, decimal_comma)


# -- The header ---------------------------------------------------------------------------------------


def _find_layout(
    file: Opened, delimiter: str | None, start: int, header_row: int | None
) -> tuple[Opened, Layout]:
    skipped, lines = _first_lines(file.path, start, header_row is not None)
    if lines and lines[0].lstrip().lower().startswith(("<!doctype html", "<html")):
        raise DataError(f"{file.subject} is a web page, not a table. Download the data itself.")
    notes: tuple[str, ...] = ()
    wanted = None if delimiter is None else NAMED_SEPARATORS.get(delimiter, delimiter)
    if wanted is not None and len(wanted.encode()) != 1:
        raise DataError(
            f"must be one plain character, 'tab' or 'space'. Got {shown(wanted)} instead.",
            "delimiter",
        )
    default = DEFAULT_SEPARATORS.get(file.ending, ",")
    separator = wanted or _likely_separator(lines, default)
    if separator is None or _count(lines[0], separator) < 2:
        raise _one_column(file, separator or default, lines, skipped)
    if wanted is None and separator != default:
        notes = (f"The columns are separated by {_spoken(separator)}.",)
    if separator == " " and any("  " in line or line != line.strip() for line in lines):
        file = replace(file, path=_with_tabs(file))
        separator = "\t"
        skipped, lines = _first_lines(file.path, start, header_row is not None)
    names, first_rows, header_lines = _read_head(file, separator, skipped)
    width = {len(row) for row in first_rows}
    if width == {len(names) + 1}:
        names = ["", *names]
        notes = (*notes, "The header has one name fewer than the rows: the first column holds row names.")
    return file, Layout(separator, [name.strip() for name in names], first_rows, header_lines, notes)


def _first_lines(path: Path, start: int, is_header: bool) -> tuple[int, list[str]]:
    """The number of lines before the header (comments, empty lines), and the first lines from the header on.

    A comment line with as many cells as the row below it, like ``#sample,x,y``, is the header. Only line feeds end a
    line: a quoted name may hold a carriage return. With ``is_header`` the header is the line at ``start``.
    """
    lines: list[str] = []
    above, n_before = "", start
    with path.open(encoding="utf-8-sig", newline="\n") as stream:
        for line in itertools.islice(stream, start, None):
            if not lines and not is_header and (not line.strip() or line.startswith(COMMENTS)):
                above, n_before = line.rstrip("\r\n"), n_before + 1
                continue
            if lines and lines[0].count('"') % 2:  # a name in the header holds a line break
                lines[0] += "\n" + line.rstrip("\r\n")
            else:
                lines.append(line.rstrip("\r\n"))
            if len(lines) == LOOKED_AT or sum(map(len, lines)) > GUESS_CELLS:
                break
    if lines and above.startswith(COMMENTS):
        separator = _likely_separator(lines[:1], ",")
        same = separator is not None and _count(above, separator) == _count(lines[0], separator)
        if same and separator is not None and _has_numbers(lines[0], separator):
            return n_before - 1, [above[1:], *lines]
    return n_before, lines


def _has_numbers(line: str, separator: str) -> bool:
    return any(is_number(cell.strip()) and cell.strip() for cell in line.split(separator)[1:])


def _likely_separator(lines: list[str], default: str) -> str | None:
    """The default where it divides the header, else the character that divides header and rows into most cells."""
    if not lines:
        return None
    if _count(lines[0], default) > 1:
        return default
    rows = [line for line in lines[1:] if line.strip() and not line.startswith(COMMENTS)]
    found: dict[str, int] = {}
    for separator in SEPARATORS:
        n = _count(lines[0], separator)
        if n > 1 and all(_count(row, separator) in (n, n + 1) for row in rows):
            found[separator] = n
    return max(found, key=lambda s: found[s]) if found else None


def _count(line: str, separator: str) -> int:
    bare = _QUOTED.sub(b"q", line.encode())
    return len(bare.split()) if separator == " " else bare.count(separator.encode()) + 1


def _spoken(separator: str) -> str:
    return {"\t": "tabs", " ": "spaces"}.get(separator, repr(separator))


def _with_tabs(file: Opened) -> Path:
    """A copy in which columns that are aligned by runs of spaces are separated by tabs."""
    target = file.folder / "tabs.tsv"
    with file.path.open(encoding="utf-8-sig") as source, target.open("w", encoding="utf-8") as copy:
        for line in source:
            copy.write("\t".join(line.split()) + "\n")
    return target


def _one_column(file: Opened, separator: str, lines: list[str], skipped: int) -> DataError:
    if not lines:
        return DataError(
            f"{file.subject} holds only comments or empty lines. Give a file with a header and data."
        )
    wide = next((number for number, line in enumerate(lines) if _count(line, separator) > 1), None)
    title = ""
    if wide is not None:
        title = f" Line {skipped + wide + 1} has {_count(lines[wide], separator)} cells: if it is the header, below a "
        title += f"title, set {setting('header_row', skipped + wide + 1)}."
    return DataError(
        f"With the delimiter {separator!r} {file} has only one column, {shown(lines[0])}. Give a table with a target "
        f"and at least one feature.{title} If another character separates the columns, name it "
        f"({parameter('delimiter')})."
    )


def _read_head(file: Opened, separator: str, skipped: int) -> tuple[list[str], list[list[str]], int]:
    """Names, the first rows, and how many lines come before the rows (names may hold line breaks)."""
    csv.field_size_limit(LONGEST_FIELD)
    with file.path.open(encoding="utf-8-sig", newline="\n") as stream:
        list(itertools.islice(stream, skipped))
        rows = csv.reader(stream, delimiter=separator)
        try:
            names = next(rows, [])
            header_lines = rows.line_num
            n_rows = min(100, max(2, GUESS_CELLS // max(1, len(names))))
            first_rows = [row for row in itertools.islice(rows, n_rows) if _is_data(row)]
        except csv.Error as error:
            raise DataError(
                f"{file.subject} cannot be read as text near line {skipped + rows.line_num}. Is it a CSV file? If so, "
                "check its quotation marks, and that all its lines end in the same way."
            ) from error
    if names and names[0].startswith(COMMENTS[0]):
        names[0] = names[0].removeprefix(COMMENTS[0])
    return names, first_rows, skipped + header_lines


def _is_data(row: list[str]) -> bool:
    return any(cell.strip() for cell in row) and not (row[0].startswith(COMMENTS) and len(row) == 1)


# -- The rows -----------------------------------------------------------------------------------------


def _checked_body(file: Opened, layout: Layout) -> Body:
    """The rows of the file; an error where one has another number of cells than the header.

    Empty lines and comments between the rows are left out of a copy. Where quotation marks stand
    alone within cells, as inches or in names of genes, they are taken as plain characters.
    """
    width = len(layout.names)
    n_records, found = _records(file.path, layout, quoted=True)
    wrong = [record for record in found if record[1] != 0]
    if not wrong and not found:
        return Body(file.path, '"', layout.skip_lines, n_records)
    if wrong:
        n_plain, odd = _records(file.path, layout, quoted=False)
        if not odd:
            return Body(file.path, None, layout.skip_lines, n_plain)
        line, cells = wrong[0]
        if cells < 0:
            raise DataError(f"In {file} a quotation mark in line {line} is never closed. Close or remove it.")
        raise DataError(
            f"Line {line} of {file} has {counted(cells, 'cell')}, but the header has {width}. Correct it, or name "
            f"the right separator ({parameter('delimiter')})."
        )
    rows = _without_lines(file, layout, {line for line, _ in found})
    return Body(rows, '"', 0, n_records - len(found))


def _records(path: Path, layout: Layout, *, quoted: bool) -> tuple[int, list[tuple[int, int]]]:
    """The number of records, and line number and number of cells of those that are not rows.

    Empty lines and comments have 0 cells, a record that never ends has -1.
    """
    separator, width = layout.separator.encode(), len(layout.names)
    count = 0
    odd: list[tuple[int, int]] = []
    with path.open("rb") as stream:
        lines = enumerate(itertools.islice(stream, layout.skip_lines, None), layout.skip_lines + 1)
        for number, line in lines:
            count += 1
            if line.count(separator) + 1 == width and (not quoted or b'"' not in line):
                continue
            record = line
            while quoted and record.count(b'"') % 2:
                following = next(lines, None)
                if following is None:
                    return count, [*odd, (number, -1)]
                record += following[1]
            bare = _QUOTED.sub(b"", record) if quoted else record
            cells = bare.count(separator) + 1
            if cells != width:
                is_no_row = not record.strip() or record.startswith(tuple(mark.encode() for mark in COMMENTS))
                odd.append((number, 0 if is_no_row else cells))
    return count, odd


def _without_lines(file: Opened, layout: Layout, left_out: set[int]) -> Path:
    target = file.folder / "rows"
    with file.path.open("rb") as source, target.open("wb") as copy:
        for number, line in enumerate(source, 1):
            if number > layout.skip_lines and number not in left_out:
                copy.write(line)
    return target


def _guessed_kinds(layout: Layout, decimal_comma: bool, *, all_text: bool) -> list[Any]:
    import polars as pl

    width = len(layout.names)
    if all_text:
        return [pl.String] * width
    cells = itertools.zip_longest(*layout.first_rows, fillvalue="")
    kinds = [pl.Float64 if _looks_numeric(column, decimal_comma) else pl.String for column in cells]
    return kinds[:width] + [pl.String] * (width - len(kinds))


def _scan(scan: dict[str, Any], kinds: list[Any], file: Opened) -> Any:
    """The rows, read with the guessed column types, else with texts for missing values too, else all as text."""
    import polars as pl

    names = [f"c{i}" for i in range(len(kinds))]
    as_text = [pl.String] * len(names)
    for guess, nulls in ((kinds, None), (kinds, list(MISSING_TEXTS)), (as_text, None)):
        schema = dict(zip(names, guess, strict=True))
        try:
            return pl.read_csv(**scan, has_header=False, schema=schema, null_values=nulls)
        except pl.exceptions.PolarsError:
            continue
    raise DataError(
        f"{file.subject} cannot be read as {len(names)} columns. Check the quotation marks in its cells, and name the "
        f"separator ({parameter('delimiter')}) if it is another one."
    )


# -- Very wide tables ---------------------------------------------------------------------------------


class _Irregular(Exception):
    """A row has text among its numbers."""


def _read_wide(
    body: Body, layout: Layout, kinds: list[Any], decimal_comma: bool, memory_budget: int | None
) -> RawTable | None:
    """The table read row by row, where text columns are only first or last; None where it must be read otherwise."""
    import polars as pl

    numeric = np.flatnonzero([kind == pl.Float64 for kind in kinds])
    if numeric.size == 0 or numeric.size != numeric[-1] - numeric[0] + 1:
        return None
    n_before, n_after = int(numeric[0]), len(kinds) - 1 - int(numeric[-1])
    separator = layout.separator.encode()
    texts: list[list[str]] = []

    def rows() -> Iterator[NDArray[np.float64]]:
        with body.path.open("rb") as stream:
            for line in itertools.islice(stream, body.skip_lines, None):
                *before, rest = line.rstrip(b"\r\n").split(separator, n_before)
                measured, *after = rest.rsplit(separator, n_after)
                row = _numbers_of(measured, separator, decimal_comma)
                cells = [_unquoted(cell) for cell in (*before, *after)]
                if row is None or len(row) != numeric.size or None in cells:
                    raise _Irregular
                texts.append([cell.decode() for cell in cells if cell is not None])
                yield row

    try:
        values = _values(rows(), numeric.size, body.path, memory_budget)
    except _Irregular:
        return None
    positions = [position for position, kind in enumerate(kinds) if kind != pl.Float64]
    columns = zip(*texts, strict=True)
    beside = pl.DataFrame({str(position): cells for position, cells in zip(positions, columns, strict=True)})
    described = raw_from_frame(beside.columns, beside, decimal_comma)
    if described.positions.size:  # texts at the beginning, all others numbers
        return None
    found = {positions[i]: cells for i, cells in described.texts.items()}
    return RawTable(names=layout.names, values=values, positions=numeric, texts=found)


def _values(rows: Iterator[NDArray[np.float64]], width: int, path: Path, memory_budget: int | None) -> Any:
    """All rows in one array, or in a temporary file."""
    if memory_budget is None:
        return np.stack(list(rows))
    height = max(1, memory_budget // 8 // (8 * width))
    bands = (np.stack(band) for band in iter(lambda: list(itertools.islice(rows, height)), []))
    n_bytes = 4 * path.stat().st_size  # two characters or more for a number
    return design_of_rows(bands, width, memory_budget, n_bytes, is_sparse=False)


def _unquoted(cell: bytes) -> bytes | None:
    """The text within quotation marks; None where they do not enclose the whole cell."""
    if b'"' not in cell:
        return cell
    inner = cell[1:-1]
    return inner if cell == b'"' + inner + b'"' and b'"' not in inner else None


def _numbers_of(cells: bytes, separator: bytes, decimal_comma: bool) -> NDArray[np.float64] | None:
    """The cells of one row as numbers, NaN where one is missing; None where one is a text."""
    import polars as pl

    for nulls in (None, list(MISSING_TEXTS)):
        try:
            column = pl.read_csv(
                cells + separator,
                has_header=False,
                schema={"cell": pl.Float64},
                eol_char=separator.decode(),
                separator=NOWHERE,
                quote_char=None,
                null_values=nulls,
                decimal_comma=decimal_comma,
            )
        except pl.exceptions.PolarsError:
            continue
        return column.to_series().to_numpy()
    return None


def _looks_numeric(cells: tuple[str, ...], decimal_comma: bool) -> bool:
    texts = [cell.strip().replace(",", ".") if decimal_comma else cell.strip() for cell in cells]
    return all(map(is_number, texts)) and not any(map(_LONG.fullmatch, texts))
