"""ARFF files, dense or sparse.

The header is parsed here; a dense data section is CSV and goes through the same reader, so that 10^5
attributes take seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zeronorm.datasets.raw import MISSING_TEXTS, RawTable, reader
from zeronorm.datasets.readers.columnar import raw_from_frame
from zeronorm.datasets.table import DataError, shown

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
def read_arff(path: Path) -> RawTable:
    """The table in an ARFF file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"The file {shown(str(path))} is not UTF-8 text. Save it as UTF-8.") from error
    marker = re.search(r"^\s*@data\s*$", text, re.IGNORECASE | re.MULTILINE)
    if marker is None:
        raise DataError(
            f"The file {shown(str(path))} has no @data line, so it is not an ARFF file or is cut off."
        )
    attributes = [_parse_attribute(line, path) for line in _attribute_lines(text[: marker.start()])]
    if len(attributes) < 2:
        raise DataError(
            f"The file {shown(str(path))} declares {len(attributes)} attributes. It needs a target and a feature."
        )
    lines = [line for line in text[marker.end() :].splitlines() if line.strip() and line.lstrip()[0] != "%"]
    if not lines:
        raise DataError(f"The file {shown(str(path))} has no data after @data. Add the rows.")
    if lines[0].lstrip().startswith("{"):
        return _read_sparse(attributes, lines, path)
    return _read_dense(attributes, lines, path)


def _attribute_lines(header: str) -> Iterator[str]:
    return (line.strip() for line in header.splitlines() if line.strip().lower().startswith("@attribute"))


def _parse_attribute(line: str, path: Path) -> Attribute:
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise DataError(f"The line {shown(line)} of {shown(str(path))} is not an ARFF attribute. Correct it.")
    name, kind = _unquoted(match["name"]), match["kind"].strip()
    if kind.startswith("{"):
        cells = re.findall(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,{}\s][^,{}]*""", kind)
        return Attribute(name, False, tuple(_unquoted(cell.strip()) for cell in cells))
    return Attribute(name, kind.split()[0].lower() in _NUMERIC)


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _read_dense(attributes: list[Attribute], lines: list[str], path: Path) -> RawTable:
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
        reason = str(error).splitlines()[0]
        raise DataError(
            f"The data of {shown(str(path))} do not fit its {len(attributes)} attributes: {reason}. Correct the file."
        ) from error
    return raw_from_frame([a.name for a in attributes], frame, keep_text=True)


def _read_sparse(attributes: list[Attribute], lines: list[str], path: Path) -> RawTable:
    """Rows such as ``{1 0.5, 7 2}``: attributes that are not listed are zero, or the first level."""
    import scipy.sparse as sp

    numeric = np.flatnonzero([a.is_numeric for a in attributes])
    place = {int(position): column for column, position in enumerate(numeric)}
    texts: dict[int, list[str | None]] = {
        i: [a.levels[0] if a.levels else None] * len(lines)
        for i, a in enumerate(attributes)
        if not a.is_numeric
    }
    rows, columns, values = [], [], []
    for row, line in enumerate(lines):
        for index, cell in _SPARSE_CELL.findall(line.strip().strip("{}")):
            position = int(index)
            if position in place:
                rows.append(row)
                columns.append(place[position])
                values.append(_number(cell, path))
            elif position in texts:
                texts[position][row] = None if cell in MISSING_TEXTS else _unquoted(cell)
            else:
                raise DataError(
                    f"Row {row + 1} of {shown(str(path))} names attribute {position}, but the header declares "
                    f"{len(attributes)}. Correct the file."
                )
    matrix: Any = sp.csr_matrix((values, (rows, columns)), shape=(len(lines), len(numeric)), dtype=np.float64)
    return RawTable([a.name for a in attributes], matrix, numeric.astype(np.intp), dict(texts))


def _number(cell: str, path: Path) -> float:
    try:
        return float("nan") if cell in MISSING_TEXTS else float(cell)
    except ValueError as error:
        raise DataError(
            f"The file {shown(str(path))} has {shown(cell)} where a number is due. Correct it."
        ) from error
