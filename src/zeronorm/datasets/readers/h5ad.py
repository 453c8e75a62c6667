"""AnnData files, where the package anndata is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from zeronorm.datasets.raw import RawTable
from zeronorm.datasets.table import DataError, shown


def read(path: Path) -> RawTable:
    """``X`` with the names of the variables; every column of ``obs`` is a candidate target."""
    try:
        import anndata
    except ImportError as error:
        raise DataError(
            f"Reading {shown(str(path))} needs the package anndata. Install it with `pip install anndata`."
        ) from error
    try:
        data = anndata.read_h5ad(path)
    except Exception as error:  # h5py and anndata raise many kinds on damaged files
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"The file {shown(str(path))} is damaged or not an h5ad file: {reason}. Write it again."
        ) from error
    if data.X is None:
        raise DataError(f"The file {shown(str(path))} has no matrix X. Store the measurements in X.")
    targets = {str(name): _plain(data.obs[name]) for name in data.obs.columns}
    return RawTable.from_matrix(
        data.X,
        [str(name) for name in data.var_names],
        targets=targets,
        sample_ids=[str(name) for name in data.obs_names],
    )


def _plain(column: object) -> np.ndarray:
    values = np.asarray(column)
    return values if values.dtype.kind in "biuf" else np.asarray(values, dtype=object)
