"""Standardised views: exact zeros, large means, weights, selections, and cached Gram matrices."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from design.arrays import data
from zeronorm import as_design
from zeronorm.design import _ways as ways


def make_dense(X, order):
    return as_design(np.array(X, order=order))


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_means_do_not_cancel(order):
    rng = np.random.default_rng(0)
    # Integers shifted by a power of two: the centred data are known exactly.
    deviations = rng.integers(-8, 9, size=(32, 40)).astype(float)
    deviations[1::2] = -deviations[::2]
    scale = deviations.std(axis=0)
    Z = deviations / scale
    view = make_dense(deviations + 2.0**22, order).standardized()
    assert (view.affine.mean / scale).min() > 5e5
    V, M = rng.standard_normal((32, 2)), rng.standard_normal((32, 32))
    np.testing.assert_allclose(view.affine.scale, scale, rtol=1e-12)
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
    np.testing.assert_array_equal(view.affine.scale[[1, 3, 4]], 1.0)
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
    np.testing.assert_allclose(weighted.affine.mean, repeated.affine.mean, rtol=1e-12)
    np.testing.assert_allclose(weighted.affine.scale, repeated.affine.scale, rtol=1e-12)


@pytest.mark.parametrize("make", [np.ascontiguousarray, sparse.csr_array])
def test_only_centred_or_only_scaled(make):
    X = np.random.default_rng(0).standard_normal((20, 5)) + 1.0
    X[:, 2] = 3.0
    scale = np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    centred = as_design(make(X)).standardized(with_scale=False)
    scaled = as_design(make(X)).standardized(with_mean=False)
    np.testing.assert_allclose(centred.block(slice(None)), X - X.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(scaled.block(slice(None)), X / scale, rtol=1e-14)


@pytest.mark.parametrize("make", [np.ascontiguousarray, sparse.csr_array])
@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e150])
def test_a_common_scale_is_the_root_of_the_mean_variance(make, unit):
    X = np.round(np.random.default_rng(0).exponential(size=(30, 6)) * [1, 1, 5, 5, 20, 0], 1)
    kept = X[:, :5]
    expected = (kept - kept.mean(axis=0)) / np.sqrt(np.mean((kept - kept.mean(axis=0)) ** 2))
    view = as_design(make(X * unit)).standardized(common=True)
    np.testing.assert_allclose(view.block(slice(5)), expected, atol=1e-12)
    np.testing.assert_allclose(view.gram(), expected @ expected.T, atol=1e-10)
    np.testing.assert_allclose(view.squared_norms(), [*(expected**2).sum(axis=0), 0.0], atol=1e-10)
    assert view.affine.zero_columns.tolist() == [False] * 5 + [True]
    assert not view.affine.has_unit_variance


def test_selections_keep_mean_and_scale():
    X = np.random.default_rng(0).standard_normal((20, 5))
    view = as_design(X).standardized()
    Z = view.block(slice(None))
    part = view.take_rows([3, 1, 4]).take([2, 0])
    np.testing.assert_array_equal(part.block(slice(None)), Z[[3, 1, 4]][:, [2, 0]])
    np.testing.assert_array_equal(part.affine.mean, view.affine.mean[[2, 0]])


@pytest.mark.parametrize("make", [np.ascontiguousarray, sparse.csr_array])
def test_moments_of_many_columns_are_computed_when_used(make, monkeypatch):
    """Selections of wide data hold no means and scales, and give the same results."""
    X = np.random.default_rng(0).standard_normal((20, 50)) + 2.0
    X[:, 7] = 3.0
    chosen, again = np.arange(1, 50, 2), np.array([3, 0, 9, 5, 20])
    v, M = np.arange(20.0), np.outer(np.arange(20.0), np.ones(20))

    def found():
        part = as_design(make(X)).standardized().take(chosen)
        for view in (part, part.take(again), part.take_rows([4, 1, 9] * 7)):
            rows = slice(0, view.n_samples)
            yield from (
                view.affine.mean,
                view.affine.scale,
                view.affine.zero_columns,
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
    monkeypatch.setattr("zeronorm.design._affine.WIDE", 4)
    monkeypatch.setattr("zeronorm.design._affine._COLUMNS_AT_A_TIME", 6)
    monkeypatch.setattr("zeronorm.design._gram._BAND_ENTRIES", 6)
    part = as_design(make(X)).standardized().take(chosen)
    assert part.affine._whole.mean.size == 50
    for got, wanted in zip(found(), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_wrong_mean_or_scale_is_refused():
    design = as_design(np.eye(3))
    with pytest.raises(ValueError, match="'mean' must have length 3"):
        design.transformed(np.zeros(2), np.ones(3))
    with pytest.raises(ValueError, match="must be positive"):
        design.transformed(np.zeros(3), np.zeros(3))


def test_what_is_known_is_not_read_again(monkeypatch):
    X = np.random.default_rng(0).normal(size=(9, 30)) + 3.0
    X[:, 4] = 2.0
    view = as_design(X).standardized()
    Z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    Z[:, 4] = 0.0
    first = view.gram()
    first[...] = np.nan  # belongs to the caller
    monkeypatch.setattr("zeronorm.design._dense.DenseDesign._fill", None)
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


@pytest.mark.parametrize("with_mean", [True, False])
@pytest.mark.parametrize("with_scale", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_view_centres_and_scales_as_asked(with_mean, with_scale, make):
    X = np.where(np.arange(40).reshape(10, 4) % 3 == 0, np.arange(40.0).reshape(10, 4), 0.0)
    X[:, 2] = 7.0
    weight = np.arange(10.0)
    view = as_design(make(X)).standardized(with_mean, with_scale, weight)
    mean = np.average(X, axis=0, weights=weight)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    scale[2] = 1.0
    wanted = (X - mean * with_mean) / (scale if with_scale else 1.0)
    np.testing.assert_allclose(view.block(slice(None)), wanted, atol=1e-12)
    assert view.affine.zero_columns.tolist() == [False, False, with_mean, False]
    np.testing.assert_allclose(view.squared_norms(), (wanted**2).sum(axis=0), atol=1e-9)
    M = np.arange(100.0).reshape(10, 10)
    np.testing.assert_allclose(view.gram_adjoint(M), np.einsum("ik,ij,jk->k", wanted, M, wanted), atol=1e-6)
    np.testing.assert_allclose(
        view.gram([1.0, 2.0, 3.0, 4.0]), (wanted * [1.0, 2.0, 3.0, 4.0]) @ wanted.T, atol=1e-9
    )
    np.testing.assert_allclose(view.gram(np.full(4, 2.0)), 2.0 * wanted @ wanted.T, atol=1e-9)
    np.testing.assert_allclose(
        view.gram(), wanted @ wanted.T, atol=1e-9
    )  # after a Gram matrix with another factor
    plain = as_design(make(X))
    np.testing.assert_allclose(view.cross_gram(plain), wanted @ X.T, atol=1e-8)
    np.testing.assert_allclose(
        view.cross_gram(view.take_rows([3]), np.arange(4.0)),
        (wanted * np.arange(4.0)) @ wanted[[3]].T,
        atol=1e-8,
    )
    view.release()
    assert view._kept_gram is None


def test_a_rescaled_view_keeps_constant_columns_at_zero():
    X = data()
    X[:, 3] = 5.0
    view = as_design(X).standardized()
    assert np.flatnonzero(view.affine.zero_columns).tolist() == [3]
    np.testing.assert_allclose(view.squared_norms(), np.where(np.arange(9) == 3, 0.0, 12.0))
    some = view.take([3, 0])
    assert some.squared_norms().tolist() == [0.0, 12.0]
    rows = view.take_rows([0, 4, 4])
    Z = np.where(
        np.arange(9) == 3, 0.0, (X - X.mean(axis=0)) / np.where(np.arange(9) == 3, 1.0, X.std(axis=0))
    )
    np.testing.assert_allclose(rows.squared_norms(), (Z[[0, 4, 4]] ** 2).sum(axis=0), atol=1e-12)
    plain = as_design(X).transformed(X.mean(axis=0), np.ones(9))
    np.testing.assert_allclose(plain.squared_norms(), 12 * X.var(axis=0), atol=1e-9)


def test_stored_columns_come_with_their_shift():
    X = np.where(np.random.default_rng(0).random((12, 5)) < 0.5, data((12, 5)), 0.0)
    view = as_design(sparse.csr_array(X)).standardized()
    columns = np.array([4, 1])
    stored, shift = view.stored_columns(columns)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(stored.toarray() - shift, Z[:, columns], atol=1e-12)
    assert as_design(X).standardized().stored_columns(columns) is None
    far = as_design(sparse.csr_array(X)).transformed(np.full(5, 1e6), np.ones(5))
    assert far.stored_columns(columns) is None  # the correction would lose too many digits
    np.testing.assert_allclose(far.dot(np.ones(5)), (X - 1e6).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "largest"), [(np.asarray, 10.0), (sparse.csr_array, 1e4)], ids=["dense", "sparse"]
)
def test_means_up_to_which_products_are_corrected(make, largest):
    plain = as_design(make(np.eye(4)))
    for factor, corrected in ((1.0, True), (1.0 + 1e-12, False), (-1.0, True), (-1.5, False)):
        mean = np.zeros(4)
        mean[2] = 2.0 * factor * largest
        view = plain.transformed(mean, np.full(4, 2.0))
        assert ways.corrects_vectors(view) == corrected
        assert ways.corrects(view) == (corrected and plain.is_sparse)
        ignored = plain.transformed(mean, np.full(4, 2.0), zero_columns=np.arange(4) == 2)
        assert ways.corrects_vectors(ignored)


def test_products_of_two_views_of_which_one_has_large_means():
    deviations = np.random.default_rng(0).integers(-8, 9, size=(6, 4)).astype(float)
    near = as_design(sparse.csr_array(deviations)).transformed(np.zeros(4), np.ones(4))
    far = as_design(sparse.csr_array(deviations + 2.0**40)).transformed(np.full(4, 2.0**40), np.ones(4))
    for one, other in ((near, far), (far, near)):
        np.testing.assert_array_equal(one.cross_gram(other), deviations @ deviations.T)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_view_without_samples_or_features(make):
    view = as_design(make(data())).standardized()
    assert view.take_rows([]).squared_norms().tolist() == [0.0] * 9
    nothing = view.take([])
    assert nothing.squared_norms().shape == (0,)
    assert nothing.dot(np.empty(0)).tolist() == [0.0] * 12
    assert nothing.transpose_dot(np.ones(12)).shape == (0,)
    assert not nothing.gram().any()
    again = as_design(make(data())).take([]).standardized()
    assert (again.shape, again.affine.mean.shape) == ((12, 0), (0,))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_two_shifts_and_scales_are_one(make):
    X = data()
    X[:, 3] = 5.0
    Z = as_design(make(X)).standardized().block(slice(None))
    mean, scale = np.where(np.arange(9) == 3, 0.0, 0.5), np.linspace(0.5, 2.0, 9)
    twice = as_design(make(X)).standardized().transformed(mean, scale)
    np.testing.assert_allclose(twice.block(slice(None)), (Z - mean) / scale, atol=1e-12)
    np.testing.assert_allclose(twice.gram(), ((Z - mean) / scale) @ ((Z - mean) / scale).T, atol=1e-9)
    assert np.flatnonzero(twice.affine.zero_columns).tolist() == [3]
    assert not twice.affine.has_unit_variance
    again = as_design(make(X)).transformed(scale=scale).standardized()
    np.testing.assert_allclose(again.block(slice(None)), Z, atol=1e-12)
    assert again.affine.has_unit_variance
    with pytest.raises(ValueError, match="Columns of zeros cannot be shifted"):
        as_design(make(X)).standardized().transformed(np.ones(9))


def test_a_view_changes_neither_the_data_nor_other_views():
    X = data()
    design = as_design(X, feature_names=list("abcdefghi"))
    view = design.standardized()
    other = view.transformed(scale=np.full(9, 2.0))
    np.testing.assert_array_equal(design.block(slice(None)), X)
    np.testing.assert_allclose(other.block(slice(None)), 0.5 * view.block(slice(None)), rtol=1e-14)
    assert design.affine is None
    assert list(other.take([2, 0]).feature_names) == ["c", "a"]
    copied = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(copied.gram(), other.gram())


@pytest.mark.parametrize("scale_sq", [None, "weights", "signed"])
def test_a_small_gram_matrix_is_one_product_and_equals_the_sum_over_blocks(scale_sq, monkeypatch):
    X = data((12, 40)) + 3.0
    weights = np.linspace(0.1, 2.0, 40)
    scale = {None: None, "weights": weights, "signed": weights - 1.0}[scale_sq]
    found = as_design(X).standardized().gram(scale)
    monkeypatch.setattr(ways, "LITTLE_WORK", 1)
    np.testing.assert_allclose(found, as_design(X).standardized().gram(scale), atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
