"""Odd inputs of single selectors: used as they are meant, or refused with a message."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.svm import SVC

from fuzz.inputs import ROWS, clean_data
from zeronorm import (
    ARD,
    RFE,
    RFECV,
    FisherScore,
    ForwardLeastSquares,
    Grafting,
    GramSchmidt,
    IntervalSelector,
    Relief,
    TreeSelector,
    WelchScore,
)

X, Y = clean_data(False)


@pytest.mark.parametrize("selector", [RFECV(cv=2), RFE(SVC(kernel="linear"), n_features_to_select=2)])
@pytest.mark.parametrize(
    "row", [name for name in ROWS if "_array " in name or name == "sparse with values missing"]
)
def test_elimination_checks_sparse_structures(selector, row):
    with pytest.raises(ValueError, match="sparse matrix X is damaged"):
        selector.fit(ROWS[row].make(X, Y, False).X, Y)


@pytest.mark.parametrize("row", ["frame with equal names", "frame with dates", "frame with text"])
def test_elimination_checks_data_frames(row):
    with pytest.raises(ValueError, match=r"names of the columns|must be numeric"):
        RFECV(cv=2).fit(ROWS[row].make(X, Y, False).X, Y)


def test_elimination_takes_a_target_of_one_column():
    with pytest.warns(DataConversionWarning):
        column = RFECV(cv=2).fit(X, Y[:, None])
    assert np.array_equal(column.support_, RFECV(cv=2).fit(X, Y).support_)


@pytest.mark.filterwarnings("ignore:The (least populated|smallest) class")
@pytest.mark.parametrize("selector", [RFECV(cv=2), IntervalSelector(cv=2)])
def test_a_training_set_of_one_class_is_named(selector):
    with pytest.raises(ValueError, match=r"holds only the class 0.*Use fewer folds"):
        selector.fit(X, (np.arange(len(Y)) == 5).astype(int))


def test_an_estimator_says_itself_that_one_class_is_too_few():
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        RFE(SVC(kernel="linear")).fit(X, np.zeros(len(Y)))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, 2.0], [1.0]], "Row 0 has 2 values and row 1 has 1"),
        (np.array([[1.0, [2, 3]], [1.0, 2.0]], dtype=object), r"Row 0, column 1 holds \[2, 3\]"),
        (
            pd.DataFrame({"a": [1.0, np.nan]}).astype(pd.SparseDtype(float, np.nan)),
            "Column 'a' leaves out missing values",
        ),
    ],
)
def test_tables_of_unlike_cells_are_refused_with_a_message(rows, message):
    with pytest.raises(ValueError, match=message):
        FisherScore().fit(rows, [0, 1])


@pytest.mark.parametrize("missing", [None, np.nan])
def test_groups_need_all_labels(missing):
    with pytest.raises(
        ValueError, match=r"'feature_groups' parameter must give one label per column.*column 3"
    ):
        FisherScore(feature_groups=["a", "a", "b", missing, "b", "c", "c", "c"]).fit(X, Y)


@pytest.mark.parametrize("weight", [1e308, 1e-308])
def test_weights_beyond_arithmetic_are_refused(weight):
    with pytest.raises(ValueError, match=r"'sample_weight' must be zero or between 1e-150 and 1e\+150"):
        WelchScore().fit(X, Y, sample_weight=np.full(len(Y), weight))


@pytest.mark.parametrize("selector", [ForwardLeastSquares(3), GramSchmidt(3)])
def test_tiny_units_change_nothing_or_are_refused(selector):
    expected = selector.fit(X, Y).support_
    assert np.array_equal(selector.fit(X * 1e-140, Y).support_, expected)
    with pytest.raises(ValueError, match="Squares of differences below 1e-140 underflow"):
        selector.fit(X * 1e-160, Y)


@pytest.mark.parametrize("unit", [1e9, 1e-9])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_intervals_do_not_depend_on_the_unit(unit, offset):
    """In raw units the learner inside ran for hours."""
    expected = IntervalSelector(2, cv=3).fit(X, Y).support_
    assert np.array_equal(IntervalSelector(2, cv=3).fit(X * unit + offset * unit, Y).support_, expected)


def test_relief_refuses_what_overflows():
    with pytest.raises(ValueError, match=r"Squares of values beyond 1e\+150 overflow"):
        Relief().fit(np.where(X > 0, 1e308, -1e308), Y)


def test_trees_take_single_precision_to_its_end():
    wide = np.where(X > 0, 3e38, -3e38).astype(np.float32)
    expected = TreeSelector(3, random_state=0).fit(np.sign(X), Y).support_
    assert np.array_equal(TreeSelector(3, random_state=0).fit(wide, Y).support_, expected)


@pytest.mark.parametrize("selector", [ARD(task="regression"), Grafting(task="regression")])
def test_targets_that_overflow_are_refused(selector):
    target = clean_data(True)[1]
    with pytest.raises(ValueError, match=r"Input y contains .*rescale the target first"):
        selector.fit(X, target * 1e200)


def test_relief_takes_denormal_numbers():
    assert np.all(np.isfinite(Relief(3).fit(np.round(X) * 5e-324, Y).scores_))
