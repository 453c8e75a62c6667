"""What `as_design` takes, and how it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from zeronorm import FisherScore
from zeronorm.design import DenseDesign, SparseDesign, as_design

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


def test_a_design_is_returned_as_it_is():
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


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_values_that_are_not_finite(make, value, word):
    X = np.ones((4, 3))
    X[2, 1] = value
    with pytest.raises(ValueError, match=f"contains {word}: first found in row 2, column 1 \\('dose'\\)"):
        as_design(make(X), feature_names=["age", "dose", "weight"])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_nan_passes_when_allowed_but_infinity_does_not(make):
    X = np.ones((4, 3))
    X[2, 1] = np.nan
    assert np.isnan(as_design(make(X), allow_nan=True).block([1])[2, 0])
    X[0, 2] = np.inf
    with pytest.raises(ValueError, match="contains infinity"):
        as_design(make(X), allow_nan=True)


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_values_whose_squares_overflow_are_refused(make):
    X = np.full((3, 2), 1e150)
    assert as_design(make(X)).shape == (3, 2)
    X[2, 1] = -1e308
    with pytest.raises(ValueError, match=r"contains -1e\+308: first found in row 2, column 1.*rescale"):
        as_design(make(X))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_columns_whose_squared_differences_underflow_are_refused(make):
    X = np.arange(12.0).reshape(4, 3)
    X[:, 0], X[:, 2] = 0.0, 1e-200  # constant columns have no differences
    assert as_design(make(X)).standardized().zero_columns.tolist() == [True, False, True]
    X[:, 1] *= 1e-160
    design = as_design(make(X), feature_names=["age", "dose", "weight"])
    with pytest.raises(ValueError, match=r"no more than 9e-160 in column 1 \('dose'\).*rescale such columns"):
        design.standardized()


def test_large_values_of_single_precision_pass():
    X = np.full((30, 20), np.finfo(np.float32).max)
    assert np.isfinite(as_design(X).gram()).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_standardizing_names_what_an_unchecked_design_holds(value):
    X = np.arange(12.0).reshape(4, 3)
    X[2, 1] = value
    design = as_design(X, check_finite=False)
    with pytest.raises(ValueError, match="first found in row 2, column 1"):
        design.standardized()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "two-dimensional"),
        (np.ones((2, 2, 2)), "two-dimensional"),
        (np.ones((0, 2)), "at least one row and one column"),
        (np.ones((2, 0)), "at least one row and one column"),
        (sparse.csr_array((0, 2)), "at least one row and one column"),
        (np.array([["a", "b"]]), "must be numeric"),
        (np.array([[1.0, "b"]], dtype=object), "must be numeric"),
        (np.ones((2, 2), dtype=complex), "Complex data not supported"),
        (sparse.csr_array(np.ones((2, 2), dtype=complex)), "Complex data not supported"),
    ],
)
def test_data_that_cannot_be_used(X, message):
    with pytest.raises(ValueError, match=message):
        as_design(X)


def test_too_few_names():
    with pytest.raises(ValueError, match=r"must name the 2 columns of X\. Got 1 names"):
        as_design(VALUES, feature_names=["age"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [([2], "column 2 does not exist"), ([0.5], "must be a slice"), ([[0]], "must be one-dimensional")],
)
def test_selections_that_do_not_exist(columns, message):
    with pytest.raises(IndexError, match=message):
        as_design(VALUES).take(columns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0.0, 1.0, 1.0]}, "integer class codes"),
        ({"y": [0, -1, 1]}, "must not be negative"),
        ({"sample_weight": [0, 0, 0]}, "not all zero"),
        ({"sample_weight": [1, -1, 1]}, "not negative"),
        ({"sample_weight": [1, np.nan, 1]}, "finite"),
    ],
)
def test_statistics_refuse_wrong_classes_and_weights(arguments, message):
    with pytest.raises(ValueError, match=message):
        as_design(VALUES).column_stats(**arguments)


def test_sparse_data_become_one_dense_block_only_when_it_is_small():
    X = sparse.random(3000, 2000, density=1e-3, format="csr", rng=np.random.default_rng(0))
    design = as_design(X)
    assert design.resident() is design
    view = design.standardized()
    assert view.resident() is view
    few = view.take(np.arange(0, 2000, 20))
    assert not few.resident().is_sparse
    np.testing.assert_array_equal(few.resident().block([3]), few.block([3]))


def test_a_cell_that_holds_several_numbers_is_named():
    X = np.empty((3, 2), dtype=object)
    X[:] = 1.0
    X[1, 0] = [1.0, 2.0]
    with pytest.raises(ValueError, match=r"Row 1, column 0 holds \[1.0, 2.0\]; give one number per cell"):
        FisherScore().fit(X, [0, 1, 0])
