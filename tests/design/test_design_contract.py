"""Every backend keeps the contract, whatever the memory order, type and size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from zeronorm import AROM, RFE, ZeroNormSVM
from zeronorm.design import DenseDesign, StandardizedDesign, as_design, column_kernels, standardized
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
    check_design(lambda: as_design(X).standardized(), (X.astype(float) - view.mean) / view.scale)


@pytest.mark.parametrize("density", [0.2, 0.9])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])  # what every other class becomes
def test_standardized_sparse(make, density):
    X = sparse_data((15, 28), density)
    view = as_design(make(X)).standardized()
    assert view.is_sparse
    check_design(lambda: as_design(make(X)).standardized(), (X - view.mean) / view.scale)


def test_standardized_twice():
    X, rng = dense_data((11, 8)), np.random.default_rng(1)
    mean, scale = rng.standard_normal(8), rng.uniform(1.0, 2.0, 8)
    inner = as_design(X).standardized()
    expected = ((X - inner.mean) / inner.scale - mean) / scale
    check_design(lambda: StandardizedDesign(inner, mean, scale), expected)


def test_more_than_65535_columns():
    X = dense_data((3, 70_001), np.float32, "C")
    check_design(lambda: as_design(X), X)


def test_more_than_65535_standardized_columns():
    """Whose operations are those of the plain columns, and more."""
    X = dense_data((3, 70_001), np.float32, "F")
    view = as_design(X).standardized()
    check_design(lambda: view, (X.astype(float) - view.mean) / view.scale)


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


def test_columns_of_a_larger_array_are_recognized():
    whole = dense_data((20, 60), np.float32)
    for X in (whole[3:15, 10:31], whole[:, 5:], whole[2:], whole[::2], whole.T, whole[:, ::3], whole[4:4]):
        design = DenseDesign.of_part(X)
        np.testing.assert_array_equal(design.block(slice(None)), X)
        assert (design._array is whole) == (X.size > 0 and X.strides == whole.strides)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_vectors", [1, 5])
def test_float32_is_swept_where_it_lies(order, n_vectors):
    """More columns than one tile, rows that are no multiple of eight, part of the rows, poison in the others."""
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
def test_a_sweep_does_not_depend_on_the_number_of_threads(order, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.array(rng.normal(size=(31, 9000)), dtype=np.float32, order=order)
    v, w = rng.normal(size=31), rng.normal(size=9000)
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr("zeronorm.design.dense._reading_threads", lambda n_bytes, n=n_threads: n)
        results.append((as_design(X).transpose_dot(v), as_design(X).dot(w)))
    for one, three in zip(*results, strict=True):
        assert np.array_equal(one, three)


@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_of_outer_squares_in_parts_do_not_depend_on_the_number_of_threads(order, monkeypatch):
    """Several parts of unequal size, each summed by one thread, columns of large mean, weights with zeros."""
    monkeypatch.setattr(column_kernels, "_PAIRS_PER_PART", 20_000)
    rng = np.random.default_rng(0)
    X = np.array(rng.normal(size=(31, 901)) + 5.0, dtype=np.float32, order=order)
    columns, rows = np.arange(901) % 4 / 3, np.arange(31) % 3 / 2
    assert len(column_kernels.outer_square_parts(31, 901)) == 16
    assert len(column_kernels.outer_square_parts(901, 31)) > 1
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr(column_kernels, "available_threads", lambda n=n_threads: n)
        design = as_design(X)
        standardized = design.standardized()
        results.append(
            (design.gram(), design.gram(columns), standardized.gram(columns), standardized.sandwich(rows))
        )
    exact = X.astype(float)
    Z = (exact - exact.mean(axis=0)) / exact.std(axis=0)
    wanted = (exact @ exact.T, (exact * columns) @ exact.T, (Z * columns) @ Z.T, (Z.T * rows) @ Z)
    for one, three, right in zip(*results, wanted, strict=True):
        assert np.array_equal(one, three)
        np.testing.assert_allclose(one, right, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("width", [1 << 13, 1 << 20])
def test_gram_matrices_in_tiles_do_not_depend_on_the_number_of_threads(order, width, monkeypatch):
    """Tiles and blocks of unequal size, columns of large mean, weights with zeros, a gathered selection."""
    monkeypatch.setattr(column_kernels, "_BAND", 7)
    monkeypatch.setattr(column_kernels, "_PAIRS_WORTH_TILES", 1)
    monkeypatch.setattr("zeronorm.design.base._LARGEST_BLOCK_BYTES", width)
    monkeypatch.setattr("zeronorm.design.base._BYTES_FILLED_BY_A_THREAD", 1 << 10)
    rng = np.random.default_rng(0)
    X = np.array(rng.normal(size=(31, 901)) + 5.0, dtype=np.float32, order=order)
    columns, some = np.arange(901) % 4 / 3, rng.permutation(901)[:600]
    assert column_kernels.suits_tiles(31, 901)
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr("zeronorm.design.base.available_threads", lambda n=n_threads: n)
        design = as_design(X)
        standardized = design.standardized()
        results.append(
            (design.gram(), design.gram(columns), standardized.gram(columns), standardized.take(some).gram())
        )
    exact = X.astype(float)
    Z = (exact - exact.mean(axis=0)) / exact.std(axis=0)
    wanted = (exact @ exact.T, (exact * columns) @ exact.T, (Z * columns) @ Z.T, Z[:, some] @ Z[:, some].T)
    for one, three, right in zip(*results, wanted, strict=True):
        assert np.array_equal(one, three)
        np.testing.assert_allclose(one, right, rtol=1e-10, atol=1e-9)


def test_tiles_serve_where_memory_allows_too_few_parts():
    assert column_kernels.suits_tiles(2000, 100_000)  # a matrix has 32 MB: six parts
    assert column_kernels.suits_tiles(1000, 300)  # little work: one part
    assert not column_kernels.suits_tiles(200, 10**6)
    assert not column_kernels.suits_tiles(2000, 10**6)
    assert not column_kernels.suits_tiles(100, 10**4)


def test_parts_of_outer_squares_take_little_memory():
    """A matrix for each part: none of its own where it would be large against the data."""
    assert column_kernels.outer_square_parts(10_000, 20_000) == [range(20_000)]
    for side, depth in ((200, 10**6), (2000, 200_000), (60, 2000), (0, 5), (5, 0)):
        parts = column_kernels.outer_square_parts(side, depth)
        assert parts[0].start == 0
        assert parts[-1].stop == depth
        assert (len(parts) - 1) * 8 * side**2 <= max(32 << 20, side * depth)


def test_an_outer_square_refuses_memory_that_blas_cannot_read():
    with pytest.raises(ValueError, match="contiguous"):
        column_kernels.add_outer_square(np.zeros((4, 4), order="F"), np.ones((8, 8))[::2, ::2])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("outside", [0.0, np.nan, np.inf])
def test_products_of_taken_rows_know_nothing_of_the_others(order, outside):
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


def test_products_of_two_designs_need_the_same_features():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    np.testing.assert_allclose(as_design(one).cross_gram(as_design(other)), one @ other.T)
    with pytest.raises(ValueError, match=r"the same features\. Got 3 and 2"):
        as_design(one).cross_gram(as_design(rng.normal(size=(4, 2))))


def _wide_data(order="F"):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(37, 1400)) * rng.uniform(0.1, 10.0, 1400) + rng.uniform(-5.0, 5.0, 1400)
    return np.array(X, dtype=np.float32, order=order)


def _standardized_exactly(X):
    exact = X.astype(float)
    return (exact - exact.mean(axis=0)) / exact.std(axis=0)


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_wide_numbers_of_single_precision_are_multiplied_as_such(order, tiles, monkeypatch):
    """The sums keep the digits that the numbers have, for any scale, and do not depend on the number of threads."""
    monkeypatch.setattr(standardized, "_PAIRS_WORTH_SINGLE", 0)
    monkeypatch.setattr(standardized, "_NUMBERS_WORTH_A_KERNEL", 0)
    monkeypatch.setattr(column_kernels, "_PAIRS_PER_PART", 20_000)
    monkeypatch.setattr(column_kernels, "_BAND", 7)
    monkeypatch.setattr(column_kernels, "suits_tiles", lambda *shape: tiles)
    X = _wide_data(order)
    Z, scale = _standardized_exactly(X), 10.0 ** -(np.arange(1400) % 9)
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr(column_kernels, "available_threads", lambda n=n_threads: n)
        monkeypatch.setattr("zeronorm.design.base.available_threads", lambda n=n_threads: n)
        design = as_design(X).standardized()
        results.append((design.gram(), design.gram(scale), design.take(np.arange(0, 1400, 2)).gram()))
    wanted = (Z @ Z.T, (Z * scale) @ Z.T, Z[:, ::2] @ Z[:, ::2].T)
    for one, three, right in zip(*results, wanted, strict=True):
        assert np.array_equal(one, three)
        assert np.array_equal(one, one.T)
        size = np.sqrt(np.outer(np.diag(right), np.diag(right)))
        error = float((np.abs(one - right) / size).max())
        assert 1e-12 < error < np.sqrt(512) * 2.0**-24  # 512 roundings that are independent of each other


@pytest.mark.parametrize("size", [1e-200, 1e-60, 1e60, 1e200])
def test_scales_beyond_single_precision(size, monkeypatch):
    """Their squares would be zero or infinite there."""
    monkeypatch.setattr(standardized, "_PAIRS_WORTH_SINGLE", 0)
    X = _wide_data()
    scale = np.linspace(0.5, 1.0, 1400)
    usual, extreme = (as_design(X).standardized().gram(s * scale) for s in (1.0, size))
    np.testing.assert_allclose(extreme / size, usual, rtol=1e-5, atol=1e-5 * np.abs(usual).max())
    assert not as_design(X).standardized().gram(np.zeros(1400)).any()


@pytest.mark.parametrize("kind", ["tall", "double", "other units", "little work"])
def test_other_products_have_double_precision(kind, monkeypatch):
    """Tall data, whose Gram matrix is singular; columns of any size; and what is quick anyway."""
    if kind != "little work":
        monkeypatch.setattr(standardized, "_PAIRS_WORTH_SINGLE", 0)
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
    monkeypatch.setattr(standardized, "_PAIRS_WORTH_SINGLE", 0)
    selectors.append(method(n_features_to_select=10).fit(X, y))
    double, single = (selector.get_support(indices=True).tolist() for selector in selectors)
    assert double == single
