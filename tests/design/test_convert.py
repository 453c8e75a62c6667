"""Inputs of `as_design`: types, names, frames, backends, and contiguous copies."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from design.arrays import data
from zeronorm import as_design
from zeronorm.design import _base as base
from zeronorm.design import _convert as convert
from zeronorm.design._convert import contiguous, has_own_backend
from zeronorm.design._dense import DenseDesign
from zeronorm.design._sparse import SparseDesign

TABLE = {"age": [1, 2, 3], "dose": [0.5, 1.5, 2.5]}


VALUES = np.array([[1.0, 0.5], [2.0, 1.5], [3.0, 2.5]])


@pytest.mark.parametrize("frame", [pd.DataFrame(TABLE), pl.DataFrame(TABLE)])
def test_frames_name_the_features(frame):
    design = as_design(frame)
    assert list(design.feature_names) == ["age", "dose"]
    np.testing.assert_array_equal(design.block(slice(None)), VALUES)
    assert list(design.take([1]).feature_names) == ["dose"]


def test_a_sparse_frame_stays_sparse():
    frame = pd.DataFrame(TABLE).astype(pd.SparseDtype(float, 0.0))
    design = as_design(frame)
    assert isinstance(design, SparseDesign)
    assert list(design.feature_names) == ["age", "dose"]
    np.testing.assert_array_equal(design.block(slice(None)), VALUES)


def test_a_sparse_frame_with_another_fill_value_is_read_right():
    frame = pd.DataFrame(TABLE).astype(pd.SparseDtype(float, 2.0))
    np.testing.assert_array_equal(as_design(frame).block(slice(None)), VALUES)


def test_a_design_is_returned_unchanged():
    design = as_design(VALUES)
    assert as_design(design) is design


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_not_copied(dtype, order):
    X = np.array(VALUES, dtype=dtype, order=order)
    design = as_design(X).take(slice(1, None)).take_rows([0, 2])
    assert design.dtype == dtype
    X[0, 1] = 7.0
    assert design.block(slice(None))[0, 0] == 7.0


def test_lists_are_taken():
    assert isinstance(as_design([[1, 2], [3, 4]]), DenseDesign)


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


def test_small_data_become_contiguous_and_large_ones_are_not_copied():
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(6, 8)))
    part = as_design(X, feature_names=list("abcdefgh")).take([5, 1, 2])
    for together in (contiguous(part), part.in_memory()):
        np.testing.assert_array_equal(together.block(slice(None)), X[:, [5, 1, 2]])
        assert together.feature_names.tolist() == ["f", "b", "c"]
        assert together is not part
    assert contiguous(part)._array.flags.c_contiguous
    columns = np.arange(1 << 16)[::-1]  # 32 MiB with 64 samples
    large = as_design(np.zeros((65, columns.size)), check_finite=False).take(columns)
    thin = as_design(sparse.csr_array((65, columns.size)), check_finite=False)
    for n_samples, stays in ((64, False), (65, True)):
        wide, sparse_rows = (design.take_rows(slice(0, n_samples)) for design in (large, thin))
        assert (contiguous(wide) is wide) == stays
        assert (sparse_rows.in_memory() is sparse_rows) == stays


def test_which_inputs_are_tables():
    columns, to_numpy = ["a"], lambda: None
    assert convert._is_frame(SimpleNamespace(columns=columns, to_numpy=to_numpy, shape=(3, 1)))
    for parts in (
        {"columns": columns, "shape": (3, 1)},
        {"to_numpy": to_numpy, "shape": (3, 1)},
        {"columns": columns, "to_numpy": to_numpy},
        {"columns": columns, "to_numpy": to_numpy, "shape": (3,)},
    ):
        assert not convert._is_frame(SimpleNamespace(**parts))
    frame = pd.DataFrame(index=range(3))
    with pytest.raises(ValueError, match="at least one row and one column"):
        as_design(frame)
    thin = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0], fill_value=0.0)})
    assert as_design(thin).is_sparse
    assert not as_design(thin.assign(b=[1.0, 2.0])).is_sparse


def test_names_belong_to_features_not_to_samples():
    names = [f"g{k}" for k in range(9)]
    design = as_design(data(), feature_names=names)
    assert design.take_rows([3, 1]).feature_names.tolist() == names
    assert design.take([3, 1]).take_rows([0]).take([1]).feature_names.tolist() == ["g1"]
    view = design.standardized()
    assert view.feature_names.tolist() == names
    assert view.take([8, 0]).feature_names.tolist() == ["g8", "g0"]
