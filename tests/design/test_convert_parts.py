"""What becomes a design and how: types, names, containers that are refused, copies that are gathered."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from zeronorm import as_design
from zeronorm.design import base, chunked, convert
from zeronorm.design.convert import check_container, gathered, has_own_backend
from zeronorm.design.dense import DenseDesign
from zeronorm.design.sparse import SparseDesign


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.float64, np.float64),
        (np.float32, np.float32),
        (np.float16, np.float32),
        (np.longdouble, np.float64),
        (np.int8, np.float64),
        (np.int64, np.float64),
        (bool, np.float64),
        (">f4", np.float32),
        (">f8", np.float64),
        (object, np.float64),
    ],
)
def test_types_of_dense_and_sparse_data(given, kept):
    X = np.array([[1, 0, 1], [0, 1, 1]]).astype(given)
    design = as_design(X)
    assert design.dtype == kept
    np.testing.assert_array_equal(design.block(slice(None)), X.astype(float))
    if np.dtype(given).isnative and given not in (np.float16, object, np.longdouble):
        for make in (sparse.csr_array, sparse.csc_array):
            found = as_design(make(X))
            assert isinstance(found, SparseDesign)
            assert found.dtype == kept
            np.testing.assert_array_equal(found.block(slice(None)), X.astype(float))
        assert as_design(sparse.coo_array(X)).dtype == np.float64


def test_complex_numbers_and_words_are_refused():
    with pytest.raises(ValueError, match="Complex data"):
        as_design(np.ones((2, 2), dtype=complex))
    with pytest.raises(ValueError, match="X must be numeric"):
        as_design(np.array([["a", "b"], ["c", "d"]]))
    for shape, said in (((3,), "1 dimension"), ((2, 2, 2), "3 dimension")):
        with pytest.raises(ValueError, match=said):
            as_design(np.ones(shape))


def test_names_of_frames_and_names_that_are_given():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert as_design(frame).feature_names.tolist() == ["a", "b"]
    assert as_design(frame, feature_names=["x", "y"]).feature_names.tolist() == ["x", "y"]
    thin = frame.astype(pd.SparseDtype(float, 0.0))
    assert as_design(thin).feature_names.tolist() == ["a", "b"]
    assert as_design(thin, feature_names=["x", "y"]).feature_names.tolist() == ["x", "y"]
    assert as_design(thin).is_sparse
    assert as_design(np.ones((2, 2))).feature_names is None
    assert as_design(np.ones((2, 2)), feature_names=["x", "y"]).feature_names.tolist() == ["x", "y"]
    for wrong in (["x"], ["x", "y", "z"]):
        with pytest.raises(ValueError, match="must name the 2 columns"):
            as_design(frame, feature_names=wrong)
    mixed = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0], fill_value=0.0), "b": [1.0, 2.0]})
    assert not as_design(mixed).is_sparse


def test_tables_without_one_number_and_one_name_per_column():
    check_container(pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [Decimal(1), Decimal(2)]}))
    for frame, said in (
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "two columns are called 'a'"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", None]), "column 1 has no name"),
        (pd.DataFrame([[1.0, 2.0]], columns=[np.nan, "b"]), "column 0 has no name"),
        (pd.DataFrame({"a": [1.0], "t": pd.to_datetime(["2020-01-01"])}), "Column 't' holds times"),
        (pd.DataFrame({"a": [1.0], "d": pd.to_timedelta([1], unit="s")}), "Column 'd' holds times"),
        (pd.DataFrame({"a": [1.0], "w": ["word"]}), "Column 'w' of type"),
        (pd.DataFrame({"s": pd.arrays.SparseArray([1.0, np.nan])}), "leaves out missing values"),
    ):
        with pytest.raises(ValueError, match=said):
            check_container(frame)
        with pytest.raises(ValueError, match=said):
            as_design(frame)
    cells = np.empty((2, 2), dtype=object)
    cells[:] = [[1.0, 2.0], [3.0, 4.0]]
    check_container(cells)
    cells[1, 0] = [1.0, 2.0]
    with pytest.raises(ValueError, match=r"Row 1, column 0 holds \[1.0, 2.0\]"):
        check_container(cells)
    cells[1, 0] = np.float64(3.0)
    check_container(cells)


def test_data_with_a_backend_of_their_own():
    assert not has_own_backend(np.ones((2, 2)))
    assert not has_own_backend([[1.0]])
    assert not has_own_backend(sparse.csr_array(np.ones((2, 2))))
    strict = pytest.importorskip("array_api_strict")
    assert has_own_backend(strict.ones((2, 2)))
    da = pytest.importorskip("dask.array")
    assert has_own_backend(da.ones((2, 2)))

    class Other:
        pass

    assert not has_own_backend(Other())
    base.BACKENDS.append((lambda X: isinstance(X, Other), lambda X, names: None))
    try:
        assert has_own_backend(Other())
        assert not has_own_backend(np.ones((2, 2)))
    finally:
        base.BACKENDS.pop()


def test_small_data_are_gathered_and_large_ones_stay(monkeypatch):
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(6, 8)))
    part = as_design(X, feature_names=list("abcdefgh")).take([5, 1, 2])
    together = gathered(part)
    assert isinstance(together, DenseDesign)
    assert together._array.flags.c_contiguous
    np.testing.assert_array_equal(together._array, X[:, [5, 1, 2]])
    assert together.feature_names.tolist() == ["f", "b", "c"]
    n_bytes = 8 * 6 * 3
    for limit, stays in ((n_bytes, False), (n_bytes - 1, True)):
        monkeypatch.setattr(convert, "SMALL_COPY_BYTES", limit)
        assert (gathered(part) is part) == stays
    thin = as_design(sparse.csr_array(X))
    for limit, stays in ((8 * 48, False), (8 * 48 - 1, True)):
        monkeypatch.setattr(base, "SMALL_COPY_BYTES", limit)
        assert (thin.resident() is thin) == stays
    resident = part.resident()
    np.testing.assert_array_equal(resident.block(slice(None)), X[:, [5, 1, 2]])
    assert resident.feature_names.tolist() == ["f", "b", "c"]


def test_what_is_known_to_be_finite_stays_so():
    X = np.ones((4, 3))
    for check in (True, False):
        design = as_design(X, check_finite=check)
        for part in (design.take([2, 0]), design.take_rows([1]), design.resident(), design.standardized()):
            assert part._known_finite == check
        assert design.take(slice(None)) is design
    assert as_design(design) is design


def test_files_and_their_limits(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 2), dtype=np.float32))
    np.save(tmp_path / "b.npy", np.zeros((3, 1)))
    one, both = as_design(tmp_path / "a.npy"), as_design([tmp_path / "a.npy", str(tmp_path / "b.npy")])
    assert (one.dtype, both.dtype, both.shape) == (np.float32, np.float64, (3, 3))
    np.testing.assert_array_equal(both.block([2, 0]), [[0.0, 1.0]] * 3)
    assert both.feature_names is None
    assert one.memory_budget == 512 * 2**20
    assert as_design(tmp_path / "a.npy", memory_budget=1).memory_budget == 1
    with pytest.raises(ValueError, match="positive number of bytes"):
        as_design(tmp_path / "a.npy", memory_budget=0)
    assert chunked.are_files("x.npy")
    assert chunked.are_files([tmp_path / "a.npy"])
    assert not chunked.are_files([])
    assert not chunked.are_files([tmp_path / "a.npy", 1.0])
    quarter = 32 * 3 * 2
    for budget, stays in ((quarter, False), (quarter - 1, True)):
        design = as_design(tmp_path / "a.npy", memory_budget=budget)
        assert (design.resident() is design) == stays


@pytest.mark.parametrize("with_mean", [True, False])
@pytest.mark.parametrize("with_scale", [True, False])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_view_centres_and_scales_as_asked(with_mean, with_scale, make):
    X = np.where(np.arange(40).reshape(10, 4) % 3 == 0, np.arange(40.0).reshape(10, 4), 0.0)
    X[:, 2] = 7.0
    weight = np.arange(10.0)
    view = as_design(make(X)).standardized(with_mean, with_scale, weight)
    mean = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    spread[2] = 1.0
    wanted = (X - mean * with_mean) / (spread if with_scale else 1.0)
    np.testing.assert_allclose(view.block(slice(None)), wanted, atol=1e-12)
    assert view.zero_columns.tolist() == [False, False, with_mean, False]
    np.testing.assert_allclose(view.squared_norms(), (wanted**2).sum(axis=0), atol=1e-9)
    M = np.arange(100.0).reshape(10, 10)
    np.testing.assert_allclose(view.gram_adjoint(M), np.einsum("ik,ij,jk->k", wanted, M, wanted), atol=1e-6)
    np.testing.assert_allclose(
        view.gram([1.0, 2.0, 3.0, 4.0]), (wanted * [1.0, 2.0, 3.0, 4.0]) @ wanted.T, atol=1e-9
    )
    np.testing.assert_allclose(view.gram(np.full(4, 2.0)), 2.0 * wanted @ wanted.T, atol=1e-9)
    np.testing.assert_allclose(
        view.gram(), wanted @ wanted.T, atol=1e-9
    )  # after another multiple was asked for
    plain = as_design(make(X))
    np.testing.assert_allclose(view.cross_gram(plain), wanted @ X.T, atol=1e-8)
    np.testing.assert_allclose(
        view.cross_gram(view.take_rows([3]), np.arange(4.0)),
        (wanted * np.arange(4.0)) @ wanted[[3]].T,
        atol=1e-8,
    )
    view.release()
    assert view._plain_gram is None
