"""The readers of file formats; every module of this folder is loaded, and ``read_raw`` picks by the ending."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

from zeronorm.datasets.raw import READERS, RawTable, Reader
from zeronorm.datasets.table import DataError, shown


def known_formats() -> dict[str, Reader]:
    """The readers of this folder and those entered from outside, by the ending of the file's name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return READERS


def read_raw(
    path: Path, *, delimiter: str | None = None, decimal_comma: bool = False, transpose: bool = False
) -> RawTable:
    """The table in a file, with the format taken from the ending of its name."""
    check_readable(path)
    ending = path.suffix.lower()
    formats = known_formats()
    if ending not in formats:
        raise DataError(
            f"The file {shown(str(path))} ends in {shown(ending)}, which is not a known format. "
            f"Rename or convert it to one of {', '.join(sorted(formats))}."
        )
    found = formats[ending]
    options: dict[str, Any] = {
        "delimiter": delimiter,
        "decimal_comma": decimal_comma,
        "transpose": transpose,
    }
    raw = found.read(path, **{name: options[name] for name in found.takes})
    return _transposed_matrix(raw, path) if transpose and "transpose" not in found.takes else raw


def check_readable(path: Path) -> None:
    """Refuse what is missing, a directory, unreadable or empty."""
    if not path.exists():
        raise DataError(
            f"There is no file {shown(str(path))}. Check the path, or see `zeronorm datasets` for known names."
        )
    if path.is_dir():
        raise DataError(f"{shown(str(path))} is a directory. Give the path of one file in it.")
    try:
        with path.open("rb") as stream:
            empty = not stream.read(1)
    except OSError as error:
        raise DataError(
            f"The file {shown(str(path))} cannot be read: {error.strerror}. Check its permissions."
        ) from error
    if empty:
        raise DataError(f"The file {shown(str(path))} is empty. Give a file with a header and data.")


def _transposed_matrix(raw: RawTable, path: Path) -> RawTable:
    if raw.texts or raw.sample_ids is not None:
        raise DataError(f"--transpose does not apply to {path.suffix} files. Leave it out.")
    lengths = {len(target) for target in raw.targets.values()}
    if lengths and lengths != {raw.values.shape[1]}:
        raise DataError(
            f"With --transpose the {raw.values.shape[1]} columns of {shown(str(path))} are samples, but the "
            f"target has {lengths.pop()} values. Leave --transpose out, or give a target of that length."
        )
    return RawTable.from_matrix(
        raw.values.T, targets=raw.targets, default_target=raw.default_target, notes=raw.notes
    )
