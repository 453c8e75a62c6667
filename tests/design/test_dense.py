"""Arrays in memory: which are read without a copy, in which precision, and by how many threads."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from design.arrays import data
from zeronorm import as_design
from zeronorm.design import _dense as dense
from zeronorm.design import column_range
from zeronorm.design._blocks import row_blocks
from zeronorm.design._dense import DenseDesign, in_one_piece


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_vectors", [1, 5])
def test_products_of_float32_are_compiled_loops_without_a_copy(order, n_vectors):
    """More columns than one tile, rows that are not a multiple of eight, some of the rows, NaN in the others."""
    rng = np.random.default_rng(0)
    X = np.array(rng.normal(size=(30, 5000)), dtype=np.float32, order=order)
    X[3] = np.nan
    rows = np.delete(np.arange(30), 3)[::-1]
    V, w = rng.normal(size=(29, n_vectors)), rng.normal(size=4990)
    design = as_design(X, check_finite=False).take_rows(rows).take(slice(7, 4997))
    part = X[rows, 7:4997].astype(float)
    np.testing.assert_allclose(design.transpose_dot(V), part.T @ V, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(design.transpose_dot(V[:, 0]), part.T @ V[:, 0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(design.dot(w), part @ w, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("order", ["C", "F"])
def test_compiled_products_do_not_depend_on_the_number_of_threads(order, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.array(rng.normal(size=(31, 9000)), dtype=np.float32, order=order)
    v, w = rng.normal(size=31), rng.normal(size=9000)
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr("zeronorm.design._dense._n_read_threads", lambda n_bytes, n=n_threads: n)
        results.append((as_design(X).transpose_dot(v), as_design(X).dot(w)))
    for one, three in zip(*results, strict=True):
        assert np.array_equal(one, three)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("outside", [0.0, np.nan, np.inf])
def test_products_of_selected_rows_do_not_depend_on_the_others(order, outside):
    rng = np.random.default_rng(3)
    X = np.array(rng.normal(size=(9, 40)), order=order)
    rows = np.array([7, 2, 2, 0, 5, 8])  # most of the samples, one twice
    others = np.setdiff1d(np.arange(9), rows)
    X[others] = outside
    taken = DenseDesign(X).take_rows(rows)
    w, V = rng.normal(size=40), rng.normal(size=(6, 3))
    np.testing.assert_allclose(taken.dot(w), X[rows] @ w, rtol=1e-12)
    np.testing.assert_allclose(taken.transpose_dot(V), X[rows].T @ V, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(taken.transpose_dot(V[:, 0]), X[rows].T @ V[:, 0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(40, 21), (9, 8), (3, 1), (1, 9), (5, 16)])
def test_blocks_of_column_ordered_data(dtype, shape):
    X = np.asfortranarray(np.random.default_rng(0).normal(size=shape).astype(dtype))
    n, p = shape
    for width in (p, p + 3):
        out = np.zeros((n, width))
        as_design(X).block(slice(0, p), out[:, :p])
        np.testing.assert_array_equal(out[:, :p], X)
        assert not out[:, p:].any()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranges_of_more_columns_than_stay_in_the_cache(order, dtype, monkeypatch):
    X = np.array(data((400, 2500)), dtype=dtype, order=order)
    for n_threads in (1, 3):
        monkeypatch.setattr(dense, "_n_read_threads", lambda n_bytes, n=n_threads: n)
        low, high = column_range(as_design(X))
        np.testing.assert_array_equal(low, X.min(axis=0))
        np.testing.assert_array_equal(high, X.max(axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_which_arrays_blas_can_read_without_a_copy(dtype):
    X = np.array(data((6, 8)), dtype=dtype)
    design = as_design(X)
    for part, in_place in (
        (design, True),
        (design.take(slice(2, 7)), True),
        (design.take_rows(slice(1, None, 2)), True),
        (design.take(slice(None, None, 2)), False),
        (design.take([3, 1]), False),
        (design.take_rows([3, 1]), False),
    ):
        memory = part._memory
        assert (memory is not None) == (in_place and dtype == np.float64)
        assert memory is None or np.shares_memory(memory, X)


@pytest.mark.parametrize("order", ["C", "F"])
def test_which_single_precision_data_have_compiled_products(order):
    X = np.array(data((6, 8)), dtype=np.float32, order=order)
    design, one, eight, nine = as_design(X), np.ones(6), np.ones((6, 8)), np.ones((6, 9))
    assert [design._uses_compiled_products(vectors) for vectors in (one, eight, nine)] == [True, True, False]
    assert as_design(X).take(slice(2, 7))._uses_compiled_products(one)
    assert as_design(X).take_rows([5, 1])._uses_compiled_products(one)
    for part in (
        design.take([3, 1]),
        design.take(slice(None, None, 2)),
        design.take([]),
        as_design(X.astype(float)),
        DenseDesign(X[::2, ::2]),
    ):
        assert not part._uses_compiled_products(one)


@pytest.mark.parametrize("order", ["C", "F"])
def test_finite_single_precision_is_read_line_by_line(order, monkeypatch):
    X = np.array(data((6, 8)), dtype=np.float32, order=order)
    monkeypatch.setattr(dense, "_n_read_threads", lambda n_bytes: 2)
    assert as_design(X)._surely_finite()
    for position in ((0, 0), (5, 7), (3, 2)):
        spoilt = X.copy(order="K")
        spoilt[position] = np.inf
        assert not DenseDesign(spoilt)._surely_finite()
        assert not DenseDesign(spoilt).take_rows([position[0], 1])._surely_finite()


def test_which_arrays_are_recognized_as_columns_of_a_larger_matrix():
    whole = data((6, 8))
    flat = np.arange(48.0)
    others = [
        whole.copy(),  # a copy
        flat.reshape(6, 8)[:, 2:5],  # of a vector
        np.ones((6, 8), dtype=np.int64).view(np.float64)[:, 1:4],  # of another type
        np.asfortranarray(whole)[:, 1:4],
        np.ascontiguousarray(whole)[:, ::2],
        whole[:, :0],
        whole[4:4],
        whole[::2],
        whole.T,
        data((2, 3, 4))[0],  # of three dimensions
    ]
    for array in others:
        design = DenseDesign.of_part(array)
        assert design._array is array
        np.testing.assert_array_equal(design.block(slice(None)), array)
    design = DenseDesign.of_part(whole[1:4, 2:7])
    assert design._array is whole
    assert (design._rows, design._columns) == (range(1, 4), range(2, 7))


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_range_without_samples_is_an_error(order):
    design = as_design(np.array(data(), order=order)).take_rows([])
    with pytest.raises(ValueError, match="at least one sample"):
        column_range(design)


def test_a_sandwich_of_rows_in_memory_equals_that_of_copied_rows():
    """Contiguous rows are multiplied without a copy, in the same blocks and the same order."""
    rng = np.random.default_rng(0)
    X, d = rng.normal(size=(3000, 40)), rng.random(3000)
    found = DenseDesign(X).sandwich(d)
    contiguous = DenseDesign(X[:, ::-1].copy()).take(np.arange(39, -1, -1)).sandwich(d)
    assert len(list(row_blocks(DenseDesign(X), d))) > 1
    np.testing.assert_array_equal(found, contiguous)
    np.testing.assert_allclose(found, X.T @ (d[:, None] * X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scattered_rows_in_one_piece(order, dtype):
    X = np.array(np.random.default_rng(0).normal(size=(9, 7)), dtype=dtype, order=order)
    whole = as_design(X, feature_names=list("abcdefg"))
    part = whole.take_rows([8, 1, 2, 5]).take([0, 3, 6])
    copied = in_one_piece(part)
    np.testing.assert_array_equal(copied.block(slice(None)), X[np.ix_([8, 1, 2, 5], [0, 3, 6])])
    assert copied.dtype == dtype
    assert copied.backend.order == order
    assert list(copied.feature_names) == ["a", "d", "g"]
    assert copied._known_finite == part._known_finite
    assert (copied._memory is None) == (dtype == np.float32)
    assert in_one_piece(whole) is whole  # nothing is scattered
    assert in_one_piece(whole.take_rows(slice(2, 6)))._array is X
    n_columns = (1 << 24) // X.itemsize  # of which two samples have 32 MiB
    large = as_design(np.zeros((3, n_columns + 1), dtype, order), check_finite=False).take_rows([2, 0])
    few = large.take(slice(0, n_columns))
    assert in_one_piece(few) is not few
    assert in_one_piece(large) is large
    sparse_part = as_design(sparse.csr_array(X)).take_rows([8, 1])
    assert in_one_piece(sparse_part) is sparse_part


def test_the_view_of_data_in_memory_is_made_once_and_is_not_pickled():
    design = as_design(np.random.default_rng(0).normal(size=(50, 40)))
    size = len(pickle.dumps(design))
    assert design._memory is design._memory
    assert len(pickle.dumps(design)) == size
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(design)).gram(), design.gram())
