"""ARFF files, dense or sparse.

The header is parsed here; a dense data section is CSV and goes through the same reader, so that 10^5
attributes take seconds.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zeronorm.datasets._raw import MISSING_TEXTS, RawTable, is_number, reader
from zeronorm.datasets._table import DataError, shown
from zeronorm.datasets.readers._columnar import raw_from_frame
from zeronorm.datasets.readers._opening import Opened, as_utf8

_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?P<name>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+)\s+(?P<kind>.+)$""", re.IGNORECASE
)
_SPARSE_CELL = re.compile(r"""\s*(\d+)\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,]+?)\s*(?:,|$)""")
_NUMERIC = ("numeric", "real", "integer")


@dataclass(frozen=True)
class Attribute:
    """One column: its name, and its levels when it is nominal."""

    name: str
    is_numeric: bool
    levels: tuple[str, ...] = ()


@reader(".arff")
def read_arff(file: Opened) -> RawTable:
    """The table in an ARFF file."""
    file = as_utf8(file)
    text = file.path.read_text(encoding="utf-8-sig")
    marker = re.search(r"^\s*@data\s*$", text, re.IGNORECASE | re.MULTILINE)
    if marker is None:
        raise DataError(
            f"{file.subject} has no @data line: it is cut off, or not an ARFF file. Copy it again, or give "
            "it the ending of its format."
        )
    attributes = [_parse_attribute(line, file) for line in _attribute_lines(text[: marker.start()])]
    if len(attributes) < 2:
        raise DataError(
            f"{file.subject} declares {len(attributes)} attributes. It needs a target and a feature."
        )
    lines = [line for line in text[marker.end() :].splitlines() if line.strip() and line.lstrip()[0] != "%"]
    if not lines:
        raise DataError(f"{file.subject} has no data after @data. Add the rows.")
    if lines[0].lstrip().startswith("{"):
        return replace(_read_sparse(attributes, lines, file), notes=file.notes)
    return replace(_read_dense(attributes, lines, file), notes=file.notes)


def _attribute_lines(header: str) -> Iterator[str]:
    return (line.strip() for line in header.splitlines() if line.strip().lower().startswith("@attribute"))


def _parse_attribute(line: str, file: Opened) -> Attribute:
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise DataError(f"The line {shown(line)} of {file} is not an ARFF attribute. Correct it.")
    name, kind = _unquoted(match["name"]), match["kind"].strip()
    if kind.startswith("{"):
        cells = re.findall(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,{}\s][^,{}]*""", kind)
        return Attribute(name, False, tuple(_unquoted(cell.strip()) for cell in cells))
    return Attribute(name, kind.split()[0].lower() in _NUMERIC)


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _read_dense(attributes: list[Attribute], lines: list[str], file: Opened) -> RawTable:
    import polars as pl

    body = "\n".join(lines)
    schema = {f"c{i}": pl.Float64 if a.is_numeric else pl.String for i, a in enumerate(attributes)}
    try:
        frame = pl.read_csv(
            body.encode(),
            has_header=False,
            schema=schema,
            null_values=list(MISSING_TEXTS),
            quote_char="'" if "'" in body else '"',
        )
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"The data of {file} do not fit its {len(attributes)} attributes: {_misfit(attributes, lines)}. Correct "
            "the file."
        ) from error
    return raw_from_frame([a.name for a in attributes], frame, keep_text=True)


def _misfit(attributes: list[Attribute], lines: list[str]) -> str:
    """A description of the first data line that does not fit the header."""
    rows = csv.reader(
        lines, quotechar="'" if any("'" in line for line in lines) else '"', skipinitialspace=True
    )
    for number, cells in enumerate(rows, 1):
        if len(cells) != len(attributes):
            return f"data line {number} has {len(cells)} cells"
        for attribute, cell in zip(attributes, cells, strict=True):
            if attribute.is_numeric and not is_number(cell.strip()):
                return f"data line {number} has {shown(cell)} for the number {shown(attribute.name)}"
    return "a cell cannot be read"


def _read_sparse(attributes: list[Attribute], lines: list[str], file: Opened) -> RawTable:
    """Rows such as ``{1 0.5, 7 2}``: attributes that are not listed are zero, or the first level."""
    import scipy.sparse as sp

    numeric = np.flatnonzero([a.is_numeric for a in attributes])
    column_at = {int(position): column for column, position in enumerate(numeric)}
    texts: dict[int, list[str | None]] = {
        i: [a.levels[0] if a.levels else None] * len(lines)
        for i, a in enumerate(attributes)
        if not a.is_numeric
    }
    rows, columns, values = [], [], []
    for row, line in enumerate(lines):
        for index, cell in _SPARSE_CELL.findall(line.strip().strip("{}")):
            position = int(index)
            if position in column_at:
                rows.append(row)
                columns.append(column_at[position])
                values.append(_number(cell, file))
            elif position in texts:
                texts[position][row] = None if cell in MISSING_TEXTS else _unquoted(cell)
            else:
                raise DataError(
                    f"Row {row + 1} of {file} names attribute {position}, but the header declares "
                    f"{len(attributes)}. Correct the file."
                )
    matrix: Any = sp.csr_matrix((values, (rows, columns)), shape=(len(lines), len(numeric)), dtype=np.float64)
    return RawTable([a.name for a in attributes], matrix, numeric.astype(np.intp), dict(texts))


def _number(cell: str, file: Opened) -> float:
    try:
        return float("nan") if cell in MISSING_TEXTS else float(cell)
    except ValueError as error:
        raise DataError(f"{file.subject} has {shown(cell)} where a number must be. Correct it.") from error
