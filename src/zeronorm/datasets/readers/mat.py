"""MATLAB files up to version 7."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from zeronorm.datasets.raw import RawTable
from zeronorm.datasets.table import DataError, shown, shown_list

TARGET_NAMES = ("y", "Y", "label", "labels", "target", "gnd")


def read(path: Path) -> RawTable:
    """The matrix X (or the largest matrix) and the vectors of as many entries as it has rows."""
    variables = _load(path)
    name = _matrix_name(variables, path)
    X = variables.pop(name)
    targets = {key: _vector(values) for key, values in variables.items() if _is_target(values, X.shape[0])}
    names = next((_texts(v) for v in variables.values() if _is_text_list(v, X.shape[1])), None)
    default = next((key for key in TARGET_NAMES if key in targets), None)
    X = X.tocsr() if hasattr(X, "tocsr") else X
    return RawTable.from_matrix(
        X,
        names,
        targets=targets,
        default_target=default,
        notes=(f"The matrix is the variable {shown(name)}.",),
    )


def _load(path: Path) -> dict[str, Any]:
    import scipy.io

    try:
        content = scipy.io.loadmat(path)
    except NotImplementedError as error:
        raise DataError(
            f"The file {shown(str(path))} is a MATLAB 7.3 file, which is not supported. "
            "Save it with save(…, '-v7')."
        ) from error
    except Exception as error:  # scipy raises many kinds on damaged files
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"The file {shown(str(path))} is damaged or not a MATLAB file: {reason}. Write it again."
        ) from error
    return {key: value for key, value in content.items() if not key.startswith("__")}


def _matrix_name(variables: dict[str, Any], path: Path) -> str:
    matrices = {
        key: value
        for key, value in variables.items()
        if getattr(value, "ndim", 0) == 2 and value.dtype.kind in "biuf" and min(value.shape) > 1
    }
    if "X" in matrices:
        return "X"
    if not matrices:
        raise DataError(
            f"The file {shown(str(path))} holds no numeric matrix, only {shown_list(sorted(variables))}. "
            "Save the matrix under the name X."
        )
    return max(matrices, key=lambda key: int(np.prod(matrices[key].shape)))


def _is_target(values: Any, n_samples: int) -> bool:
    if not isinstance(values, np.ndarray):
        return False
    return (values.dtype.kind in "biufU" and values.size == n_samples) or _is_text_list(values, n_samples)


def _is_text_list(values: Any, length: int) -> bool:
    """MATLAB's cell arrays of text arrive as object arrays of one-element text arrays."""
    if not isinstance(values, np.ndarray) or values.size != length:
        return False
    if values.dtype.kind == "U":
        return True
    return values.dtype == object and all(
        isinstance(cell, np.ndarray) and cell.dtype.kind == "U" for cell in values.ravel()
    )


def _texts(values: Any) -> list[str]:
    return [
        str(cell.ravel()[0]) if isinstance(cell, np.ndarray) and cell.size else str(cell)
        for cell in values.ravel()
    ]


def _vector(values: Any) -> Any:
    return np.asarray(_texts(values)) if values.dtype.kind in "OU" else values.ravel()
