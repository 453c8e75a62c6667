"""Tables from arrays, data frames and designs; groups, forced features and folds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import zeronorm
from zeronorm import as_design
from zeronorm.design import Design
from zeronorm.resampling._splits import dense_columns
from zeronorm.workflow import _inputs as inputs
from zeronorm.workflow._inputs import DataOptions, check_folds, kept_columns, load_data

from .conftest import numbers, table_of

QUICK = {"method": "fisher", "features": 2, "cv": 3, "permutations": 0}


# -- Arrays, frames and designs --


@pytest.mark.parametrize("backend", ["array", "list", "design", "dask", "foreign"])
def test_the_same_numbers_make_the_same_table_from_every_backend(backend):
    X, y = numbers(12, 5)
    if backend == "dask":
        data = pytest.importorskip("dask.array").from_array(X, chunks=(6, 5))
    elif backend == "foreign":
        data = pytest.importorskip("array_api_strict").asarray(X)
    else:
        data = {"array": X, "list": X.tolist(), "design": as_design(X)}[backend]
    table = table_of(data, y)
    assert (table.n_samples, table.n_features, table.task) == (12, 5, "classification")
    assert isinstance(table.X, Design) == (
        backend in ("design", "dask", "foreign")
    )  # these are not loaded into memory
    np.testing.assert_allclose(as_design(table.X).block(slice(None)), X)
    assert table.y.tolist() == y.tolist()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("samples", pl.DataFrame({"a": [1]})),
        ("ignore", ["x1"]),
        ("only", ["x1"]),
        ("categorical", ["x1"]),
        ("transpose", True),
        ("min_class_size", 3),
        ("drop_unlabelled", True),
    ],
)
def test_columns_that_stay_where_they_are_are_not_changed(option, value):
    X, y = numbers(12, 5)
    with pytest.raises(ValueError, match=f"'{option}' parameter does not apply to"):
        table_of(as_design(X), y, **{option: value})


def test_a_design_brings_its_names_and_its_groups():
    X, y = numbers(12, 3)
    plain = table_of(as_design(X), y)
    assert plain.feature_names.tolist() == ["x1", "x2", "x3"]
    assert plain.target_name == "target"
    assert plain.sample_groups is None
    named = table_of(as_design(X, feature_names=["a", "b", "c"]), y, sample_groups=np.arange(12) // 4)
    assert named.feature_names.tolist() == ["a", "b", "c"]
    assert named.sample_groups.tolist() == (np.arange(12) // 4).tolist()
    assert named.source_columns.tolist() == [0, 1, 2]
    (guessed,) = plain.notes
    assert "holds text, so the task is classification" in guessed
    assert table_of(as_design(X), y, task="classification").notes == ()
    with pytest.raises(ValueError, match=r"must be an array, or the path of a \.npy file"):
        table_of(as_design(X), "label")


def test_a_target_may_be_a_column():
    X, y = numbers(12, 3)
    for data in (X, as_design(X)):
        assert table_of(data, y[:, None]).y.tolist() == y.tolist()
        with pytest.raises(
            ValueError, match=r"one value for each of the 12 samples\. Got an array of shape \(12, 2\)"
        ):
            table_of(data, np.column_stack([y, y]))


def test_a_table_is_taken_as_it_is():
    table = table_of(*numbers())
    assert load_data(table, DataOptions()) is table
    grouped = load_data(table, DataOptions(feature_groups=["u", "v", "u", "u"]))
    assert grouped.feature_groups.tolist() == [0, 1, 0, 0]


def test_columns_of_pandas_keep_their_kinds():
    frame = pd.DataFrame(
        {
            "n": [1, 2, 3, 4],
            "flag": [True, False, True, False],
            "whole": pd.array([1, None, 3, 4], dtype="Int64"),
            "kind": pd.Categorical([3, 1, 3, 1]),
            "text": ["p", None, "q", "p"],
            "y": ["u", "v", "u", "v"],
        },
        index=["s1", "s2", "s3", "s4"],
    )
    raw = inputs.raw_from_data_frame(frame)
    assert raw.names == ["n", "flag", "whole", "kind", "text", "y"]
    assert raw.positions.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(raw.values, [[1, 1, 1], [2, 0, np.nan], [3, 1, 3], [4, 0, 4]])
    assert raw.texts[3] == ["3", "1", "3", "1"]
    assert raw.texts[4] == ["p", None, "q", "p"]
    assert raw.sample_ids == ["s1", "s2", "s3", "s4"]
    assert inputs.raw_from_data_frame(frame.reset_index(drop=True)).sample_ids is None


def test_an_array_of_the_target_brings_its_name():
    X, y = numbers(8)
    frame = pd.DataFrame(X, columns=["a", "target", "c", "state"])
    assert load_data(frame, DataOptions(target=pd.Series(y, name="diagnosis"))).target_name == "diagnosis"
    table = load_data(frame, DataOptions(target=y))
    assert table.target_name == "target (given)"
    assert table.n_features == 4  # the column of that name is a feature
    named = load_data(frame, DataOptions(target=pd.Series(y, name="state"), sample_groups=np.arange(8) // 2))
    assert (named.target_name, named.sample_groups.tolist()) == ("state (given)", [0, 0, 1, 1, 2, 2, 3, 3])
    kept = load_data(as_design(X), DataOptions(target=pd.Series(y, name="diagnosis")))
    assert kept.target_name == "diagnosis"
    assert kept.source == type(as_design(X)).__name__
    assert load_data(X, DataOptions(target=y)).source == "array of 8 × 4"
    assert load_data(frame, DataOptions(target=y)).source == "data frame of 8 × 4"


def test_a_design_with_whole_numbers_is_classes_unless_said_otherwise():
    X, _ = numbers(8)
    design = as_design(X)
    counted = load_data(design, DataOptions(target=np.arange(8) % 3))
    assert counted.task == "classification"
    assert counted.y.dtype.kind == "i"
    real = load_data(design, DataOptions(target=np.arange(8), task="regression"))
    assert (real.task, real.y.dtype.kind, real.notes) == ("regression", "f", ())
    with pytest.raises(ValueError, match="like an identifier"):
        load_data(design, DataOptions(target=np.arange(8)))


def test_what_an_array_of_data_is():
    for wrong in (np.zeros((2, 2, 2)), np.array([["a"]]), np.zeros(3), np.zeros((2, 2), dtype=complex)):
        with pytest.raises(ValueError, match="must be a two-dimensional array of numbers"):
            load_data(wrong, DataOptions(target=[0, 1]))
    for kind in (bool, np.int8, np.uint16, np.float32):
        X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=kind)
        np.testing.assert_array_equal(load_data(X, DataOptions(target=list("uvuv"))).X, X.astype(float))


def test_columns_in_any_backend_are_dense():
    X, _ = numbers(6)
    wanted = X[:, [2, 0]]
    for backend in (X, sparse.csr_matrix(X), as_design(X), X.astype(np.float32)):
        found = dense_columns(backend, np.array([2, 0]))
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


# -- Groups and forced features --


def test_groups_of_features_are_labels_or_a_mapping():
    X, y = numbers(12, 4)
    names = [str(name) for name in table_of(X, y).feature_names]
    by_label = table_of(X, y, feature_groups=["b", "a", "b", "c"]).feature_groups
    assert by_label.tolist() == [1, 0, 1, 2]
    by_name = table_of(X, y, feature_groups={names[0]: "g", names[3]: "g"}).feature_groups
    assert by_name[0] == by_name[3]
    assert len(set(by_name.tolist())) == 3  # the others are groups of one feature
    with pytest.raises(ValueError, match="names 'nothing', which is not a feature"):
        table_of(X, y, feature_groups={"nothing": "g"})
    with pytest.raises(ValueError, match=r"one label for each of the 4 features.* Got shape \(3,\)"):
        table_of(X, y, feature_groups=[0, 1, 2])


def test_forced_features_are_columns_levels_or_patterns():
    frame = pl.DataFrame(
        {
            "a": [1.0, 2, 3, 5],
            "colour": list("rgbr"),
            "a=b": [2.0, 1, 0, 3],
            "ab": [1.0, 0, 2, 2],
            "y": list("uvuv"),
        }
    )
    table = load_data(frame, DataOptions(target="y"))
    names = table.feature_names.tolist()
    assert kept_columns(table, ("a",)) == [
        names.index("a")
    ]  # the column itself, not what begins like a level
    levels = [k for k, name in enumerate(names) if name.startswith("colour=")]
    assert len(levels) == 3
    assert kept_columns(table, ("colour", "colour")) == levels
    assert kept_columns(table, ("ab", "a")) == sorted((names.index("a"), names.index("ab")))
    assert kept_columns(table, ()) == []


def test_kept_columns_may_be_patterns(gappy):
    X, y = gappy
    result = zeronorm.select(X, y, keep=["x9", "re:^x1$"], **(QUICK | {"features": 3}))
    assert {"x1", "x9"} <= set(result.features)


# -- Folds --


def test_folds_need_samples_classes_and_groups():
    X, y = numbers(12, 3)
    with pytest.raises(ValueError, match=r"two samples in each fold\. 12 samples are too few for cv=7"):
        check_folds(table_of(X, X[:, 0], task="regression"), 7)
    check_folds(table_of(X, X[:, 0], task="regression"), 6)
    with pytest.raises(ValueError, match=r"'no' has 6 samples, too few for cv=7\. Set cv=6 or fewer"):
        check_folds(table_of(X, y), 7)
    check_folds(table_of(X, y), 6)
    grouped = table_of(X, y, sample_groups=np.arange(12) // 3)
    with pytest.raises(ValueError, match=r"has 4 groups, too few for cv=5\. Set cv=4"):
        check_folds(grouped, 5)
    check_folds(grouped, 4)


def test_small_classes_name_the_remedy():
    X = np.random.default_rng(0).normal(size=(30, 5))
    y = np.asarray(["a", "b"] * 14 + ["c", "c"])
    with pytest.raises(ValueError, match="min_class_size=3"):
        zeronorm.select(X, y, **QUICK)
    result = zeronorm.select(X, y, min_class_size=3, **QUICK)
    assert result.data["class_counts"] == {"a": 14, "b": 14}
    assert any("'c' (2)" in note for note in result.notes)


def test_classes_are_left_out_only_where_two_remain():
    y = np.repeat(["a", "b", "c"], [20, 30, 2])
    table = table_of(np.random.default_rng(0).normal(size=(52, 3)), y)
    with pytest.raises(
        ValueError, match=r"Set cv=2 or fewer, or leave out small classes: set min_class_size=5\.$"
    ):
        check_folds(table, 5)
    with pytest.raises(
        ValueError, match=r"The class 'c' has 2 samples, too few for cv=25\. Set cv=2 or fewer\.$"
    ):
        check_folds(table, 25)


def test_a_class_with_as_many_samples_as_folds_remains():
    y = np.repeat(["a", "b", "c"], [20, 5, 2])
    with pytest.raises(ValueError, match=r"leave out small classes: set min_class_size=5\.$"):
        check_folds(table_of(np.random.default_rng(0).normal(size=(27, 3)), y), 5)


def test_a_rare_class_may_be_another_one_in_capitals():
    y = np.repeat(["ill", "well", "ILL"], [20, 30, 2])
    table = table_of(np.random.default_rng(0).normal(size=(52, 3)), y)
    with pytest.raises(
        ValueError, match="'ILL' and 'ill' differ in upper and lower case only; if they are one class"
    ):
        check_folds(table, 5)
