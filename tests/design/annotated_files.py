"""Test matrices, and AnnData files that hold them."""

from __future__ import annotations

import numpy as np
import pytest

anndata = pytest.importorskip("anndata", reason="anndata is not installed")


def numbers(shape=(7, 11), dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.uniform(size=shape) < 0.6, rng.normal(size=shape) + 1.0, 0.0).astype(dtype)


def written(folder, X, backend="h5ad", **options):
    import pandas as pd

    obs = pd.DataFrame({"label": [f"c{i % 2}" for i in range(X.shape[0])]})
    obs.index = [f"cell {i}" for i in range(X.shape[0])]
    var = pd.DataFrame(index=[f"gene {j}" for j in range(X.shape[1])])
    data, path = anndata.AnnData(X, obs=obs, var=var), folder / f"x.{backend}"
    data.write_h5ad(path, **options) if backend == "h5ad" else data.write_zarr(path, **options)
    return path
