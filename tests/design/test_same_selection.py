"""The same features are selected with every backend."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from zeronorm import AROM, L1SVM, RFE, FisherScore, GramSchmidt, Relief, SVMWeights, WelchScore, ZeroNormSVM
from zeronorm.design import as_design, pack

METHODS = [
    FisherScore(6), WelchScore(6), Relief(6), GramSchmidt(4), L1SVM(6), SVMWeights(6), ZeroNormSVM(6), AROM(6),
    RFE(n_features_to_select=6),
    RFE(n_features_to_select=6, step=0.5),
    RFE(n_features_to_select=6, kernel="rbf", step=0.5),
]  # fmt: skip


def _dask(X, folder):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    return da.from_array(X, chunks=(-1, 17))


def _strict(X, folder):
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    return pytest.importorskip("array_api_strict", reason="array-api-strict is not installed").asarray(X)


def _torch(X, folder):
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    return pytest.importorskip("torch", reason="torch is not installed").asarray(X)


def _saved(X, folder):
    np.save(folder / "x.npy", X)
    return as_design(folder / "x.npy")


def _sparse_file(X, folder):
    """A file stored by row, so that columns come from a temporary file, and larger than the budget."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    matrix = sparse.csr_array(X)
    with h5py.File(folder / "x.h5ad", "w") as file:
        for name in ("data", "indices", "indptr"):
            file[f"X/{name}"] = getattr(matrix, name)
        file["X"].attrs.update({"encoding-type": "csr_matrix", "shape": X.shape})
    return as_design(folder / "x.h5ad", memory_budget=64 << 10)


BACKENDS = {
    "columns in memory": lambda X, folder: np.asfortranarray(X),
    "sparse": lambda X, folder: sparse.csr_array(X),
    "NumPy file": _saved,
    "packed": lambda X, folder: as_design(pack(X, folder / "x.zncols")),
    "sparse h5ad": _sparse_file,
    "Dask": _dask,
    "array API": _strict,
    "torch": _torch,
}


@pytest.fixture(autouse=True)
def _dask_in_this_thread():
    dask = pytest.importorskip("dask", reason="dask is not installed")
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(50) % 2
    X = np.where(rng.uniform(size=(50, 60)) < 0.7, rng.normal(size=(50, 60)), 0.0)
    X[:, :8] += np.outer(y, np.linspace(0.5, 2.0, 8))
    return X, y


@pytest.fixture(scope="module")
def in_memory():
    """Features that the methods select from the array in memory."""
    return {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: repr(method).replace("\n", ""))
def test_the_same_selection(method, backend, data, in_memory, tmp_path):
    X, y = data
    if method not in in_memory:
        in_memory[method] = clone(method).fit(X, y).support_
    np.testing.assert_array_equal(method.fit(BACKENDS[backend](X, tmp_path), y).support_, in_memory[method])
