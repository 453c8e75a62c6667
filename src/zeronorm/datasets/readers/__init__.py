"""One file per kind of file format; ``read_raw`` picks by the ending of the name."""

from __future__ import annotations

import importlib
from pathlib import Path

from zeronorm.datasets.raw import RawTable
from zeronorm.datasets.table import DataError, shown

# ending -> module of this package with a function read(path, **options)
READERS = {
    ".csv": "delimited",
    ".tsv": "delimited",
    ".tab": "delimited",
    ".txt": "delimited",
    ".parquet": "columnar",
    ".pq": "columnar",
    ".arrow": "columnar",
    ".feather": "columnar",
    ".ipc": "columnar",
    ".npz": "npz",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
    ".mat": "mat",
    ".arff": "arff",
    ".h5ad": "h5ad",
}
TABULAR = ("delimited", "columnar")  # formats whose rows can be samples or features


def read_raw(
    path: Path, *, delimiter: str | None = None, decimal_comma: bool = False, transpose: bool = False
) -> RawTable:
    """The table in a file, with the format taken from the ending of its name."""
    check_readable(path)
    ending = path.suffix.lower()
    if ending not in READERS:
        raise DataError(
            f"The file {shown(str(path))} ends in {shown(ending)}, which is not a known format. "
            f"Rename or convert it to one of {', '.join(sorted(READERS))}."
        )
    name = READERS[ending]
    reader = importlib.import_module(f"zeronorm.datasets.readers.{name}")
    if name == "delimited":
        raw: RawTable = reader.read(
            path, delimiter=delimiter, decimal_comma=decimal_comma, transpose=transpose
        )
    elif name == "columnar":
        raw = reader.read(path, transpose=transpose)
    else:
        raw = reader.read(path)
        if transpose:
            raw = _transposed_matrix(raw, path)
    return raw


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
