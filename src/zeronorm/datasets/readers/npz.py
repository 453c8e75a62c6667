"""NumPy archives with arrays X and y, or a CSR matrix as data, indices, indptr and shape."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from zeronorm.datasets.raw import RawTable
from zeronorm.datasets.table import DataError, shown, shown_list

CSR_KEYS = {"data", "indices", "indptr", "shape"}


def read(path: Path) -> RawTable:
    """The archive's matrix, feature names and candidate targets; nothing is unpickled."""
    arrays = _load(path)
    X = _matrix(arrays, path)
    names = arrays.get("feature_names")
    listed = None if names is None or len(names) != X.shape[1] else [str(name) for name in names]
    targets = {
        key: values
        for key, values in arrays.items()
        if values.ndim == 1 and len(values) == X.shape[0] and key not in CSR_KEYS | {"feature_names"}
    }
    default = "y" if "y" in targets else None
    return RawTable.from_matrix(X, listed, targets=targets, default_target=default)


def _load(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            # Arrays of a published second part are not samples of this table.
            keys = [key for key in archive.files if not key.endswith("_valid")]
            return {key: archive[key] for key in keys}
    except (ValueError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"The file {shown(str(path))} cannot be read as a NumPy archive: {reason}. "
            "Write it again with numpy.savez, with arrays of numbers or text (no Python objects)."
        ) from error


def _matrix(arrays: dict[str, Any], path: Path) -> Any:
    import scipy.sparse as sp

    if "X" in arrays and arrays["X"].ndim == 2 and arrays["X"].dtype.kind in "biuf":
        return arrays["X"]
    if set(arrays) >= CSR_KEYS:
        try:
            matrix = sp.csr_matrix(
                (arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"])
            )
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise DataError(f"The sparse matrix in {shown(str(path))} is not valid: {error}.") from error
        return matrix
    raise DataError(
        f"The archive {shown(str(path))} has no numeric matrix 'X' and no CSR matrix (data, indices, indptr, "
        f"shape). It holds {shown_list(sorted(arrays)) or 'nothing'}. Save the matrix under the name X."
    )
