"""Readers of file formats: every module of this folder is loaded, and ``read_raw`` chooses by the file's ending."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

from zeronorm._messages import setting
from zeronorm.datasets._raw import READERS, RawTable, Reader
from zeronorm.datasets._table import DataError, shown
from zeronorm.datasets.readers._opening import COMPRESSED, Opened, check_readable, opened
from zeronorm.registry import load_extensions

__all__ = ["check_readable", "known_formats", "read_raw"]


def known_formats() -> dict[str, Reader]:
    """The readers of this folder and those registered by other packages, by the ending of the file's name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    load_extensions()
    return READERS


def read_raw(
    path: Path,
    *,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    transpose: bool = False,
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    memory_budget: int | None = None,
) -> RawTable:
    """The table in a file, compressed or not; the path "-" is standard input.

    ``encoding`` is that of a text file; None detects it. ``sheet`` is the name or number of a sheet of a workbook, and
    ``header_row`` the number of the line or row that holds the names of the columns. Formats that can be read piece by
    piece are not loaded into memory when the file is larger than ``memory_budget`` bytes.
    """
    formats = known_formats()
    with opened(path, encoding) as file:
        if file.ending not in formats:
            known = ", ".join(sorted(ending for ending in formats if ending))
            raise DataError(
                f"{file.subject} ends in {shown(file.ending)}, which is not a known format. Rename or convert it to "
                f"one of {known}, each also with {', '.join(COMPRESSED)}."
            )
        found = formats[file.ending]
        options: dict[str, Any] = {
            "delimiter": delimiter,
            "decimal_comma": decimal_comma,
            "transpose": transpose,
            "sheet": sheet,
            "header_row": header_row,
            "memory_budget": None if memory_budget is None or file.size <= memory_budget else memory_budget,
        }
        for name in ("sheet", "header_row"):
            if options[name] is not None and name not in found.takes:
                raise DataError(f"does not apply to {file}. Leave it out.", name)
        raw = found.read(file, **{name: options[name] for name in found.takes})
        return _transposed_matrix(raw, file) if transpose and "transpose" not in found.takes else raw


def _transposed_matrix(raw: RawTable, file: Opened) -> RawTable:
    if raw.texts or raw.sample_ids is not None:
        raise DataError(f"does not apply to {file.ending} files. Leave it out.", "transpose")
    lengths = {len(target) for target in raw.targets.values()}
    if lengths and lengths != {raw.values.shape[1]}:
        raise DataError(
            f"Transposed, the {raw.values.shape[1]} columns of {file} are samples, but the target has "
            f"{lengths.pop()} values. Leave {setting('transpose', True)} out, or give a target of that length."
        )
    return RawTable.from_matrix(
        raw.values.T, targets=raw.targets, default_target=raw.default_target, notes=raw.notes
    )
