"""Standardised views: exact zeros, large means, weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from zeronorm.design import StandardizedDesign, as_design


def make_dense(X, order):
    return as_design(np.array(X, order=order))


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_means_do_not_cancel(order):
    rng = np.random.default_rng(0)
    # Whole numbers shifted by a power of two: the centred data are known exactly.
    deviations = rng.integers(-8, 9, size=(32, 40)).astype(float)
    deviations[1::2] = -deviations[::2]
    scale = deviations.std(axis=0)
    Z = deviations / scale
    view = make_dense(deviations + 2.0**22, order).standardized()
    assert (view.mean / scale).min() > 5e5
    V, M = rng.standard_normal((32, 2)), rng.standard_normal((32, 32))
    np.testing.assert_allclose(view.scale, scale, rtol=1e-12)
    np.testing.assert_allclose(view.transpose_dot(V), Z.T @ V, rtol=0, atol=1e-12)
    np.testing.assert_allclose(view.dot(np.arange(40.0)), Z @ np.arange(40.0), rtol=0, atol=1e-10)
    np.testing.assert_allclose(view.gram(), Z @ Z.T, rtol=0, atol=1e-11)
    np.testing.assert_allclose(view.gram_adjoint(M), np.diag(Z.T @ M @ Z), rtol=0, atol=1e-10)
    np.testing.assert_allclose(view.column_stats().variance, 1.0, rtol=1e-12)


def test_large_means_in_sparse_data_do_not_cancel():
    rng = np.random.default_rng(0)
    deviations = rng.integers(-8, 9, size=(20, 10)).astype(float)
    deviations[1::2] = -deviations[::2]
    Z = deviations / deviations.std(axis=0)
    view = as_design(sparse.csc_array(deviations + 2.0**22)).standardized()
    np.testing.assert_allclose(view.gram(), Z @ Z.T, rtol=0, atol=1e-11)
    np.testing.assert_allclose(view.transpose_dot(np.ones(20)), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    "make", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array, sparse.csc_array]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_columns_become_exactly_zero(make, dtype):
    X = np.random.default_rng(0).standard_normal((1003, 6)).astype(dtype)
    X[:, 1] = 0.1
    X[:, 3] = 0.0
    X[:, 4] = 1e6 + 0.3
    if dtype == np.float64:
        X[:, 4] *= 1.0 + 2.0**-52 * (np.arange(1003) % 2)  # constant up to rounding
    view = as_design(make(X)).standardized()
    np.testing.assert_array_equal(view.scale[[1, 3, 4]], 1.0)
    y = np.random.default_rng(1).standard_normal(1003)
    for products in (view.transpose_dot(y), view.squared_norms(), view.gram_adjoint(np.eye(1003))):
        np.testing.assert_array_equal(products[[1, 3, 4]], 0.0)
        assert (products[[0, 2, 5]] != 0.0).all()
    np.testing.assert_array_equal(view.block([1, 3, 4]), 0.0)


@pytest.mark.parametrize("make", [np.ascontiguousarray, sparse.csr_array])
def test_weights_equal_duplicates(make):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((20, 5)), rng.integers(0, 4, size=20)
    weighted = as_design(make(X)).standardized(sample_weight=weights)
    repeated = as_design(np.repeat(X, weights, axis=0)).standardized()
    np.testing.assert_allclose(weighted.mean, repeated.mean, rtol=1e-12)
    np.testing.assert_allclose(weighted.scale, repeated.scale, rtol=1e-12)


@pytest.mark.parametrize("make", [np.ascontiguousarray, sparse.csr_array])
def test_only_centred_or_only_scaled(make):
    X = np.random.default_rng(0).standard_normal((20, 5)) + 1.0
    X[:, 2] = 3.0
    scale = np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    centred = as_design(make(X)).standardized(with_scale=False)
    scaled = as_design(make(X)).standardized(with_mean=False)
    np.testing.assert_allclose(centred.block(slice(None)), X - X.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(scaled.block(slice(None)), X / scale, rtol=1e-14)


def test_selections_keep_mean_and_scale():
    X = np.random.default_rng(0).standard_normal((20, 5))
    view = as_design(X).standardized()
    Z = view.block(slice(None))
    part = view.take_rows([3, 1, 4]).take([2, 0])
    np.testing.assert_array_equal(part.block(slice(None)), Z[[3, 1, 4]][:, [2, 0]])
    np.testing.assert_array_equal(part.mean, view.mean[[2, 0]])


@pytest.mark.parametrize("make", [np.ascontiguousarray, sparse.csr_array])
def test_moments_of_many_columns_are_gathered_when_used(make, monkeypatch):
    """Of wide data no selection holds means and scales of its own, and nothing else changes."""
    X = np.random.default_rng(0).standard_normal((20, 50)) + 2.0
    X[:, 7] = 3.0
    chosen, again = np.arange(1, 50, 2), np.array([3, 0, 9, 5, 20])
    v, M = np.arange(20.0), np.outer(np.arange(20.0), np.ones(20))

    def found():
        part = as_design(make(X)).standardized().take(chosen)
        for view in (part, part.take(again), part.take_rows([4, 1, 9] * 7)):
            rows = slice(0, view.n_samples)
            yield from (
                view.mean,
                view.scale,
                view.zero_columns,
                view.block(slice(None)),
                view.squared_norms(),
            )
            yield from (
                view.gram(),
                view.gram(np.arange(view.n_features)),
                view.dot(np.ones((view.n_features, 2))),
            )
            yield view.transpose_dot(np.resize(v, view.n_samples)[rows])
            yield view.transpose_dot(np.resize(M, (view.n_samples, 3)))

    expected = list(found())
    monkeypatch.setattr("zeronorm.design.standardized.WIDE", 4)
    monkeypatch.setattr("zeronorm.design.standardized._BAND_ENTRIES", 6)
    part = as_design(make(X)).standardized().take(chosen)
    assert part._moments._whole.mean.size == 50
    for got, wanted in zip(found(), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_an_outlier_in_one_class_leaves_the_others_exact():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    X[0] = 1e12
    y = np.arange(60) % 2
    for order in "CF":
        stats = make_dense(X, order).column_stats(y)
        np.testing.assert_allclose(stats.class_variance[1], X[1::2].var(axis=0), rtol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_tiny_weights_of_the_first_samples_do_not_spoil_the_variance(order):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 3))
    X[:50] += 1e6
    weights = np.where(np.arange(100) < 50, 1e-20, 1.0)
    stats = make_dense(X, order).column_stats(sample_weight=weights)
    expected = np.cov(X.T, aweights=weights, ddof=0).diagonal()
    np.testing.assert_allclose(stats.variance, expected, rtol=1e-10)


def test_wrong_mean_or_scale_is_refused():
    design = as_design(np.eye(3))
    with pytest.raises(ValueError, match="'mean' must have length 3"):
        StandardizedDesign(design, np.zeros(2), np.ones(3))
    with pytest.raises(ValueError, match="must be positive"):
        StandardizedDesign(design, np.zeros(3), np.zeros(3))


def test_what_is_known_is_not_read_again(monkeypatch):
    X = np.random.default_rng(0).normal(size=(9, 30)) + 3.0
    X[:, 4] = 2.0
    view = as_design(X).standardized()
    Z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    Z[:, 4] = 0.0
    first = view.gram()
    first[...] = np.nan  # belongs to the caller
    monkeypatch.setattr("zeronorm.design.dense.DenseDesign._fill", None)
    np.testing.assert_allclose(view.gram(), Z @ Z.T, atol=1e-12)
    np.testing.assert_allclose(view.gram(np.full(30, 0.5)), 0.5 * Z @ Z.T, atol=1e-12)
    np.testing.assert_allclose(view.squared_norms(), (Z**2).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(view.take([4, 2]).squared_norms(), [0.0, 9.0])


def test_norms_of_other_samples_are_computed():
    X = np.random.default_rng(0).normal(size=(9, 5)) + 3.0
    weight = np.arange(9.0)
    for view in (
        as_design(X).standardized().take_rows([0, 3, 5]),
        as_design(X).standardized(sample_weight=weight),
        as_design(X).standardized(with_mean=False),
        as_design(X).standardized(with_scale=False),
    ):
        np.testing.assert_allclose(view.squared_norms(), (view.block(slice(None)) ** 2).sum(axis=0))
