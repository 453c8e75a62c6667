"""Kernels for a GPU compared with plain products; without a GPU, Triton's interpreter runs them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")
pytest.importorskip("triton", reason="triton is not installed: it comes with torch for CUDA")

from zeronorm.design import _array_api as array_api  # noqa: E402
from zeronorm.design import _device_kernels as device_kernels  # noqa: E402
from zeronorm.design import as_design  # noqa: E402
from zeronorm.testing import check_design  # noqa: E402


def data(shape, dtype=np.float32):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=shape) * rng.uniform(0.1, 5.0, shape[1]) + rng.uniform(-9.0, 9.0, shape[1])).astype(
        dtype
    )
    return torch.asarray(X, device=DEVICE), X.astype(np.float64)


@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (33, 17_000), (50, 5), (1001, 3)])
def test_sums_in_double_precision(shape):
    x, X = data(shape)
    rng = np.random.default_rng(1)
    for q in ((), (1,), (3,)):
        V, w = rng.normal(size=(shape[0], *q)), rng.normal(size=(shape[1], *q))
        found = device_kernels.transpose_dot(x, torch.asarray(V, device=DEVICE)).cpu().numpy()
        np.testing.assert_allclose(found, X.T @ V, rtol=1e-10, atol=1e-10)
        found = device_kernels.dot(x, torch.asarray(w, device=DEVICE)).cpu().numpy()
        np.testing.assert_allclose(found, X @ w, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (33, 1700), (50, 5)])
@pytest.mark.parametrize("turned", [False, True])
def test_centred_columns_in_double_precision(shape, turned):
    x, X = data(shape)
    x = x.T.contiguous().T if turned else x
    shift, factor = X.mean(axis=0), np.linspace(0.1, 2.0, shape[1])
    found = device_kernels.centered(
        x, torch.asarray(shift, device=DEVICE), torch.asarray(factor, device=DEVICE)
    )
    np.testing.assert_allclose(found.cpu().numpy(), (X - shift) * factor, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("shape", [(1, 1), (7, 300), (50, 5), (1001, 3)])
def test_moments_of_chosen_rows(shape):
    x, X = data(shape)
    rows = np.random.default_rng(2).permutation(shape[0])[: max(1, shape[0] // 2)]
    weights = np.linspace(2.0, 1.0, rows.size)
    found = device_kernels.column_moments(
        x, torch.asarray(rows, device=DEVICE), torch.asarray(weights, device=DEVICE), weights.sum()
    )
    low, high, mean, sum_sq = found.cpu().numpy()
    part = X[rows]
    expected = np.average(part, axis=0, weights=weights)
    np.testing.assert_array_equal(low, part.min(axis=0))
    np.testing.assert_array_equal(high, part.max(axis=0))
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    np.testing.assert_allclose(sum_sq, weights @ (part - expected) ** 2, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("shape", [(2, 1), (7, 300), (70, 130)])
def test_distances_of_samples(shape, squared):
    x, X = data(shape)
    difference = X[:, None, :] - X[None, :, :]
    expected = (difference**2 if squared else np.abs(difference)).sum(axis=2)
    found = device_kernels.distances(x.double(), squared).cpu().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 1), (7, 300)])
@pytest.mark.parametrize("n_pairs", [25, 300])
def test_sums_of_differences_over_pairs(shape, n_pairs):
    x, X = data(shape)
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, shape[0], size=(2, n_pairs))
    weights = rng.random(n_pairs)
    on_device = [torch.asarray(a, device=DEVICE) for a in (first, second, weights)]
    found = device_kernels.difference_sums(x, *on_device).cpu().numpy()
    np.testing.assert_allclose(found, weights @ np.abs(X[first] - X[second]), rtol=1e-12)


@pytest.mark.parametrize("view", ["plain", "standardized"])
def test_the_contract_holds_with_the_kernels(view, monkeypatch):
    """Also if only every other column is selected."""
    monkeypatch.setattr(array_api, "kernels_for", lambda array: device_kernels)
    monkeypatch.setattr(array_api, "difference_kernels_for", lambda array: device_kernels)
    x, X = data((9, 40))
    if view == "plain":
        check_design(lambda: as_design(x), X, rtol=1e-9)
    else:
        expected = as_design(X).standardized().affine
        check_design(lambda: as_design(x).standardized(), (X - expected.mean) / expected.scale, rtol=1e-8)


def test_designs_compare_samples_with_the_kernels(monkeypatch):
    x, X = data((40, 90))
    monkeypatch.setattr(array_api, "kernels_for", lambda array: device_kernels)
    monkeypatch.setattr(array_api, "difference_kernels_for", lambda array: device_kernels)
    rows = np.flatnonzero(np.arange(40) % 3)
    design, part = as_design(x).take_rows(rows), X[rows]
    scale = np.linspace(0.5, 1.0, 90)
    expected = (scale * np.abs(part[:, None, :] - part[None, :, :])).sum(axis=2)
    np.testing.assert_allclose(design.distances(scale), expected, rtol=1e-12)
    first, second = np.arange(rows.size), np.arange(rows.size)[::-1].copy()
    found = design.difference_sums(first, second, np.ones(rows.size))
    np.testing.assert_allclose(found, np.abs(part[first] - part[second]).sum(axis=0), rtol=1e-12)


def test_designs_use_the_kernels_and_agree_with_numpy(monkeypatch):
    x, X = data((40, 600))
    calls = []
    for name in ("transpose_dot", "dot", "column_moments"):
        kernel = getattr(device_kernels, name)
        monkeypatch.setattr(
            device_kernels, name, lambda *a, kernel=kernel, name=name: calls.append(name) or kernel(*a)
        )
    monkeypatch.setattr(array_api, "kernels_for", lambda array: device_kernels)
    y = np.arange(40) % 2
    design, host = as_design(x).standardized(), as_design(X).standardized()
    rows = np.flatnonzero(np.arange(40) % 3)
    for found, expected in ((design, host), (design.take_rows(rows), host.take_rows(rows))):
        n, p = found.shape
        np.testing.assert_allclose(found.dot(np.arange(p)), expected.dot(np.arange(p)), rtol=1e-8, atol=1e-6)
        np.testing.assert_allclose(
            found.transpose_dot(np.arange(n)), expected.transpose_dot(np.arange(n)), rtol=1e-8, atol=1e-6
        )
        for name in ("class_mean", "class_variance", "mean", "variance", "minimum", "maximum"):
            left, right = (getattr(d.column_stats(y[:n]), name) for d in (found, expected))
            np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)
    assert set(calls) == {"transpose_dot", "dot", "column_moments"}


def test_the_check_accepts_the_kernels():
    device = "cuda:0" if DEVICE == "cuda" else "cpu"
    assert device_kernels.usable_for(device)
    assert device_kernels.compares_samples_on(device)


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from zeronorm.design import _device_kernels as kernels

KINDS = {
    "x": "*fp32", "columns": "*fp64", "stride": "i64", "rows": "*i64", "first": "*i64", "second": "*i64",
    "weights": "*fp64", "total_weight": "fp64", "out": "*fp64",
}
CHOICES = {"CENTER": 16, "ROWS": 8, "COLUMNS": 128, "PART": 16384, "PAIRS": 8, "SQUARED": False}
CHOICES |= {"TILE": 64, "AT_ONCE": 4}
for name in ("_column_sums", "_row_sums", "_column_moments", "_distances", "_difference_sums"):
    function = getattr(kernels, name)
    chosen = {argument: CHOICES[argument] for argument in function.arg_names if argument in CHOICES}
    kinds = {
        argument: "constexpr" if argument in chosen else KINDS.get(argument, "i32") for argument in function.arg_names
    }
    triton.compile(ASTSource(function, signature=kinds, constexprs=chosen), target=GPUTarget("cuda", 90, 32))
    print(name)
"""


def test_the_kernels_compile_for_a_gpu_that_is_not_present():
    """The interpreter accepts code that the compiler refuses, such as a variable that changes its shape in a loop."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    ran = subprocess.run(
        [sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert len(ran.stdout.split()) == 5
