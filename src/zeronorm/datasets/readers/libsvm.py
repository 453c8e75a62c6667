"""LIBSVM (svmlight) text files."""

from __future__ import annotations

from pathlib import Path

from zeronorm.datasets.raw import RawTable
from zeronorm.datasets.table import DataError, shown


def read(path: Path) -> RawTable:
    """The sparse matrix of a LIBSVM file, with the labels as the target ``label``."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path))
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"The file {shown(str(path))} cannot be read as LIBSVM text: {error}. "
            "Each line must be 'label index:value index:value …' with ascending indices."
        ) from error
    return RawTable.from_matrix(X, targets={"label": y}, default_target="label")
