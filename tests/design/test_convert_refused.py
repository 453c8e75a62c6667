"""Data that are not a matrix are refused, with a message about what was found and where."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from design.arrays import LABELS, samples
from zeronorm import RFE, FisherScore, as_design
from zeronorm.design._convert import check_container

VALUES = np.array([[1.0, 0.5], [2.0, 1.5], [3.0, 2.5]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "two-dimensional.*1 dimension"),
        (np.ones((2, 2, 2)), "two-dimensional.*3 dimension"),
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


def test_a_cell_that_holds_several_numbers_is_named():
    X = np.empty((3, 2), dtype=object)
    X[:] = 1.0
    X[1, 0] = [1.0, 2.0]
    with pytest.raises(ValueError, match=r"Row 1, column 0 holds \[1.0, 2.0\]; give one number per cell"):
        FisherScore().fit(X, [0, 1, 0])


def test_tables_without_one_number_and_one_name_per_column():
    check_container(pd.DataFrame({"a": [1, 2], "b": [True, False], "c": [Decimal(1), Decimal(2)]}))
    for frame, message in (
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "two columns are called 'a'"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", None]), "column 1 has no name"),
        (pd.DataFrame([[1.0, 2.0]], columns=[np.nan, "b"]), "column 0 has no name"),
        (pd.DataFrame({"a": [1.0], "t": pd.to_datetime(["2020-01-01"])}), "Column 't' holds times"),
        (pd.DataFrame({"a": [1.0], "d": pd.to_timedelta([1], unit="s")}), "Column 'd' holds times"),
        (pd.DataFrame({"a": [1.0], "w": ["word"]}), "Column 'w' of type"),
        (pd.DataFrame({"s": pd.arrays.SparseArray([1.0, np.nan])}), "leaves out missing values"),
    ):
        with pytest.raises(ValueError, match=message):
            check_container(frame)
        with pytest.raises(ValueError, match=message):
            as_design(frame)
    cells = np.empty((2, 2), dtype=object)
    cells[:] = [[1.0, 2.0], [3.0, 4.0]]
    check_container(cells)
    cells[1, 0] = [1.0, 2.0]
    with pytest.raises(ValueError, match=r"Row 1, column 0 holds \[1.0, 2.0\]"):
        check_container(cells)
    cells[1, 0] = np.float64(3.0)
    check_container(cells)


@pytest.mark.parametrize("convert", [check_container, as_design])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2.0], 3.0], "Row 0 has 2 values, but row 1 is no list of values: 3.0;"),
        ([3, [1, 2]], "Row 1 has 2 values, but row 0 is no list of values: 3;"),
        ([[1, 2], None], "Row 0 has 2 values, but row 1 is no list of values: None;"),
        ([[1, 2], "ab"], "Row 0 has 2 values, but row 1 is no list of values: 'ab';"),
        ([(1, 2), {3, 4}], "Row 0 has 2 values, but row 1 is no list of values: {3, 4};"),
        ([[1, 2], np.array(3)], r"Row 0 has 2 values, but row 1 is no list of values: array\(3\);"),
        ([[1.0, 2.0], [3.0, 4.0, 5.0]], "Row 0 has 2 values and row 1 has 3;"),
        ([[1, 2], [3, [4]]], r"Row 1, column 1 holds \[4\]; give one number per cell"),
    ],
)
def test_lists_that_are_not_tables_are_refused(convert, rows, message):
    with pytest.raises(ValueError, match=message):
        convert(rows)


def test_rows_of_equal_lengths_are_taken():
    check_container([[1.0, 2.0], [3.0, 4.0]])
    check_container([1.0, 2.0])  # one dimension, which as_design refuses
    check_container([np.array(1.0), np.array(2.0)])
    assert as_design([[1.0, 2.0], (3.0, 4.0)]).shape == (2, 2)


def test_cells_that_hold_one_number():
    cells = np.empty((2, 2), dtype=object)
    cells[:] = [[1.0, 2.0], [3.0, None]]
    cells[1, 1] = np.array(4.0)  # zero-dimensional
    check_container(cells)
    for wrong in ([5.0], (5.0,), np.array([5.0])):
        cells[0, 1] = wrong
        with pytest.raises(ValueError, match="Row 0, column 1 holds"):
            check_container(cells)
    rows = np.empty(2, dtype=object)
    rows[:] = [[1.0], [2.0]]
    check_container(rows)  # one dimension, which as_design refuses
    check_container(np.array([["a", "b"]]))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame(samples(), columns=[*"abcdefghijk", "c"]), "two columns are called 'c'"),
        (pd.DataFrame(samples(), columns=[*"abcdefghijk", None]), "column 11 has no name"),
        (pd.DataFrame(samples()).assign(day=pd.date_range("2020-01-01", periods=30)), "'day' .*datetime64"),
        (
            pl.DataFrame({"x": samples()[:, 0], "day": pd.date_range("2020-01-01", periods=30)}),
            "'day' .*Datetime",
        ),
        (pd.DataFrame({"x": samples()[:, 0], "word": ["a"] * 30}), "'word' "),
    ],
)
@pytest.mark.parametrize("selector", [None, FisherScore(1), RFE(n_features_to_select=1)])
def test_tables_that_are_not_numeric_are_refused(frame, message, selector):
    with pytest.raises(ValueError, match=message):
        as_design(frame) if selector is None else selector.fit(frame, LABELS)


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("X", [samples(), as_design(samples())], ids=["array", "design"])
def test_labels_that_are_missing_are_named(missing, X):
    y = np.asarray(["a", "b"] * 15, dtype=object)
    y[3] = missing
    with pytest.raises(ValueError, match=r"y contains (None|NaN): first found in row 3"):
        FisherScore(3).fit(X, y)
