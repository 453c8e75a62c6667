"""Every backend fulfils the contract, whatever the memory order, type and size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from zeronorm.design import as_design
from zeronorm.testing import check_design

SHAPES = [(13, 29), (40, 5), (1, 7), (9, 1), (1, 1)]


SPARSE_CLASSES = [
    sparse.csr_matrix,
    sparse.csc_matrix,
    sparse.csr_array,
    sparse.csc_array,
    sparse.coo_array,
    sparse.lil_matrix,
]


def dense_data(shape, dtype=np.float64, order="C", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * rng.uniform(0.1, 10.0, shape[1]) + rng.uniform(-5.0, 5.0, shape[1])
    X = np.array(X, dtype=dtype, order=order)
    X.flags.writeable = False
    return X


def sparse_data(shape, density=0.2, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.uniform(size=shape) < density, rng.standard_normal(shape) + 1.0, 0.0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense(shape, order, dtype):
    X = dense_data(shape, dtype, order)
    check_design(lambda: as_design(X), X)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_slices_of_a_larger_array(order, dtype):
    whole = dense_data((20, 60), dtype, order)
    for X in (whole[3:15, 10:31], whole[::2, ::3], whole[::-1, ::-1]):
        check_design(lambda X=X: as_design(X), X)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, np.float16, ">f8"])
def test_other_types_are_converted(dtype):
    X = (dense_data((12, 9)) > 0.3).astype(dtype)
    check_design(lambda: as_design(X), X)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_sparse(make, shape):
    X = sparse_data(shape)
    check_design(lambda: as_design(make(X)), X)


@pytest.mark.parametrize("make", SPARSE_CLASSES)
def test_every_sparse_class_becomes_one_of_these(make):
    X = sparse_data((13, 29))
    check_design(lambda: as_design(make(X)), X)
    for shape in SHAPES:
        X = sparse_data(shape)
        np.testing.assert_array_equal(as_design(make(X)).block(slice(None)), X)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_sparse_of_other_types(make, dtype):
    X = sparse_data((15, 22)).astype(dtype)
    check_design(lambda: as_design(make(X)), X)


def test_sparse_that_is_nearly_full_uses_dense_products():
    X = sparse_data((14, 30), density=0.9)
    check_design(lambda: as_design(sparse.csr_array(X)), X)


def test_sparse_read_only_buffers():
    X = sparse.csc_array(sparse_data((15, 22)))
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    check_design(lambda: as_design(X), X.toarray())


def test_sparse_with_duplicate_and_unsorted_entries_is_not_changed():
    data, rows, indptr = np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])
    X = sparse.csc_array((data, rows, indptr), shape=(3, 2))
    check_design(lambda: as_design(X), [[2.0, 0.0], [0.0, 8.0], [5.0, 0.0]])
    np.testing.assert_array_equal(X.data, [1.0, 2.0, 4.0, 8.0])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(13, 29), (40, 5), (1, 7)])
def test_standardized_dense(shape, order, dtype):
    X = dense_data(shape, dtype, order)
    view = as_design(X).standardized()
    check_design(
        lambda: as_design(X).standardized(), (X.astype(float) - view.affine.mean) / view.affine.scale
    )


@pytest.mark.parametrize("density", [0.2, 0.9])
@pytest.mark.parametrize(
    "make", [sparse.csr_array, sparse.csc_array]
)  # all other classes are converted to these
def test_standardized_sparse(make, density):
    X = sparse_data((15, 28), density)
    view = as_design(make(X)).standardized()
    assert view.is_sparse
    check_design(lambda: as_design(make(X)).standardized(), (X - view.affine.mean) / view.affine.scale)


def test_standardized_twice():
    X, rng = dense_data((11, 8)), np.random.default_rng(1)
    mean, scale = rng.standard_normal(8), rng.uniform(1.0, 2.0, 8)
    inner = as_design(X).standardized()
    expected = ((X - inner.affine.mean) / inner.affine.scale - mean) / scale
    check_design(lambda: inner.transformed(mean, scale), expected)


def test_more_than_65535_columns():
    X = dense_data((3, 70_001), np.float32, "C")
    check_design(lambda: as_design(X), X)


def test_more_than_65535_standardized_columns():
    """The operations of a standardised view include those of the raw columns."""
    X = dense_data((3, 70_001), np.float32, "F")
    view = as_design(X).standardized()
    check_design(lambda: view, (X.astype(float) - view.affine.mean) / view.affine.scale)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_more_than_65535_sparse_columns(make):
    X = sparse_data((4, 70_001), density=0.01)
    check_design(lambda: as_design(make(X)), X)


@settings(max_examples=12, deadline=None)
@given(n=st.integers(1, 12), p=st.integers(1, 12), seed=st.integers(0, 1000), data=st.data())
def test_any_small_matrix(n, p, seed, data):
    make = data.draw(st.sampled_from([np.asfortranarray, np.ascontiguousarray, *SPARSE_CLASSES]))
    X = sparse_data((n, p), density=data.draw(st.sampled_from([0.0, 0.3, 1.0])), seed=seed)
    check_design(lambda: as_design(make(X)), X, random_state=seed)
