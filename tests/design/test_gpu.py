"""The contract and whole selections on a real device: `make test-gpu`."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm import (
    AROM,
    L1SVM,
    RFE,
    FisherScore,
    GramSchmidt,
    Relief,
    ZeroNormSVM,
    as_design,
)
from zeronorm.testing import check_design

pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")


def _torch(X):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    return torch.asarray(X, device="cuda")


def _cupy(X):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        pytest.skip("CuPy finds no CUDA device")
    return cupy.asarray(X)


@pytest.fixture(params=[_torch, _cupy], ids=["torch", "cupy"])
def on_gpu(request):
    request.param(np.ones((1, 1)))  # skips where there is no device
    return request.param


def data(shape=(40, 3000), dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) * rng.uniform(0.1, 9.0, shape[1]) + rng.uniform(-5.0, 5.0, shape[1])
    y = np.arange(shape[0]) % 2
    X[:, : min(10, shape[1])] += 2.0 * y[:, None]
    return X.astype(dtype), y


@pytest.mark.parametrize("shape", [(9, 120), (200, 3), (1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_contract(on_gpu, shape, dtype, order):
    X, _ = data(shape, dtype)
    array = on_gpu(np.asfortranarray(X) if order == "F" else X)
    check_design(lambda: as_design(array), X, rtol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_the_contract_of_the_standardized_view(on_gpu, offset):
    X = data((12, 90), np.float64)[0] + offset
    view = as_design(X).standardized()
    check_design(
        lambda: as_design(on_gpu(X)).standardized(), (X - view.affine.mean) / view.affine.scale, rtol=1e-8
    )


@pytest.mark.parametrize(
    "selector",
    [
        FisherScore(10), GramSchmidt(5), Relief(10), ZeroNormSVM(10), AROM(10), L1SVM(10), RFE(n_features_to_select=10),
        RFE(n_features_to_select=10, step=0.5), RFE(n_features_to_select=10, kernel="rbf", step=0.5),
    ],
    ids=repr,
)  # fmt: skip
def test_the_same_selection_as_on_the_host(on_gpu, selector):
    X, y = data()
    expected = selector.fit(X, y).support_
    np.testing.assert_array_equal(selector.fit(on_gpu(X), y).support_, expected)


def test_statistics_do_not_need_a_copy_of_the_data(on_gpu):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if on_gpu is not _torch:
        pytest.skip("memory is counted by torch")
    X = torch.randn((1000, 400_000), device="cuda")
    design = as_design(X, check_finite=False).standardized()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    design.transpose_dot(np.ones(1000))
    design.dot(np.ones(400_000))
    design.column_stats(np.arange(1000) % 2)
    assert torch.cuda.max_memory_allocated() - before < 0.25 * X.nbytes
