"""Products of standardised wide data in single precision are as accurate as the data."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm import AROM, RFE, ZeroNormSVM, as_design
from zeronorm.design import _blocks as blocks
from zeronorm.design import _outer_products as outer_products
from zeronorm.design import _ways as ways


def _wide_data(order="F"):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(37, 1400)) * rng.uniform(0.1, 10.0, 1400) + rng.uniform(-5.0, 5.0, 1400)
    return np.array(X, dtype=np.float32, order=order)


def _standardized_exactly(X):
    exact = X.astype(float)
    return (exact - exact.mean(axis=0)) / exact.std(axis=0)


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_wide_data_in_single_precision_are_multiplied_in_single_precision(order, tiles, monkeypatch):
    """The sums are as accurate as the data, for any scale, and do not depend on the number of threads."""
    monkeypatch.setattr(ways, "PAIRS_WORTH_SINGLE", 0)
    monkeypatch.setattr(blocks, "_NUMBERS_WORTH_A_KERNEL", 0)
    monkeypatch.setattr(outer_products, "_PAIRS_PER_PART", 20_000)
    monkeypatch.setattr(outer_products, "_BAND", 7)
    monkeypatch.setattr(outer_products, "suits_tiles", lambda *shape: tiles)
    X = _wide_data(order)
    Z, scale = _standardized_exactly(X), 10.0 ** -(np.arange(1400) % 9)
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr(outer_products, "available_threads", lambda n=n_threads: n)
        monkeypatch.setattr("zeronorm.design._gram.available_threads", lambda n=n_threads: n)
        design = as_design(X).standardized()
        results.append((design.gram(), design.gram(scale), design.take(np.arange(0, 1400, 2)).gram()))
    wanted = (Z @ Z.T, (Z * scale) @ Z.T, Z[:, ::2] @ Z[:, ::2].T)
    for one, three, right in zip(*results, wanted, strict=True):
        assert np.array_equal(one, three)
        assert np.array_equal(one, one.T)
        size = np.sqrt(np.outer(np.diag(right), np.diag(right)))
        error = float((np.abs(one - right) / size).max())
        assert 1e-12 < error < np.sqrt(512) * 2.0**-24  # 512 independent rounding errors


@pytest.mark.parametrize("size", [1e-200, 1e-60, 1e60, 1e200])
def test_scales_beyond_single_precision(size, monkeypatch):
    """The squares of such scales would be zero or infinite in single precision."""
    monkeypatch.setattr(ways, "PAIRS_WORTH_SINGLE", 0)
    X = _wide_data()
    scale = np.linspace(0.5, 1.0, 1400)
    usual, extreme = (as_design(X).standardized().gram(s * scale) for s in (1.0, size))
    np.testing.assert_allclose(extreme / size, usual, rtol=1e-5, atol=1e-5 * np.abs(usual).max())
    assert not as_design(X).standardized().gram(np.zeros(1400)).any()


@pytest.mark.parametrize("kind", ["tall", "double", "other units", "little work"])
def test_other_products_have_double_precision(kind, monkeypatch):
    """Tall data, whose Gram matrix is singular; columns without unit variance; and small data."""
    if kind != "little work":
        monkeypatch.setattr(ways, "PAIRS_WORTH_SINGLE", 0)
    X = _wide_data()
    X = X[:, :140] if kind == "tall" else X.astype(float) if kind == "double" else X
    design = as_design(X).standardized(with_scale=kind != "other units")
    exact = X - X.astype(float).mean(axis=0)
    Z = exact if kind == "other units" else exact / exact.std(axis=0)
    np.testing.assert_allclose(design.gram(), Z @ Z.T, rtol=1e-10, atol=1e-10 * np.abs(Z @ Z.T).max())


@pytest.mark.parametrize("method", [AROM, RFE, ZeroNormSVM])
def test_products_of_single_precision_select_the_same(method, monkeypatch):
    X, y = _wide_data(), np.arange(37) % 2
    X[:, ::140] += 3.0 * X.std(axis=0)[::140] * y[:, None].astype(np.float32)
    selectors = [method(n_features_to_select=10).fit(X, y)]
    monkeypatch.setattr(ways, "PAIRS_WORTH_SINGLE", 0)
    selectors.append(method(n_features_to_select=10).fit(X, y))
    double, single = (selector.get_support(indices=True).tolist() for selector in selectors)
    assert double == single


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_centred_and_scaled_in_one_pass_as_in_two(dtype):
    """With one pass, too, numbers are rounded to single precision after centring and again after scaling."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(40, 1000)) + 3.0, dtype=np.float32)
    view, scale = as_design(X).standardized(), rng.random(1000).astype(dtype)
    found, expected = (np.empty((40, 1000), dtype=dtype, order="F") for _ in range(2))
    assert found.size >= blocks._NUMBERS_WORTH_A_KERNEL
    blocks.fill(view, range(1000), found, scale)
    blocks.fill(view, range(1000), expected)
    expected *= scale
    np.testing.assert_array_equal(found, expected)
    rows = np.empty((40, 1000), dtype=dtype)
    blocks.fill(view, range(1000), rows, scale)
    np.testing.assert_allclose(rows, expected, rtol=1e-6)
