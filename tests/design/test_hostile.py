"""Damaged data: structures, files, tables and tasks that lie or fail give an error that says so."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from zeronorm import L1SVM, RFE, FisherScore, MarginLP, SVMWeights, as_design
from zeronorm._threads import NotEnoughMemoryError, require_memory
from zeronorm.design.chunked import DataFileError


def data(shape=(30, 12), seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


LABELS = np.arange(30) % 2


# -- Sparse matrices whose structure is wrong --


def damaged(make, array, place, value):
    X = make(np.where(np.abs(data()) > 1.0, data(), 0.0))
    getattr(X, array)[place] = value
    return X


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(
    ("array", "place", "value", "message"),
    [
        ("indices", 3, 10_000, "'indices' holds 10000"),
        ("indices", 3, -5, "'indices' holds -5"),
        ("indptr", 4, 10_000, "'indptr' must not decrease"),
        ("indptr", 4, -1, "'indptr' must not decrease"),
        ("indptr", 0, 2, "'indptr' must begin with 0"),
        ("indptr", -1, 1_000_000, "'indptr' ends with 1000000"),
    ],
)
@pytest.mark.parametrize("selector", [None, FisherScore(3), L1SVM(3)])
def test_sparse_structures_are_checked(make, array, place, value, message, selector):
    X = damaged(make, array, place, value)
    with pytest.raises(ValueError, match=f"sparse matrix X is damaged.*{message}"):
        as_design(X) if selector is None else selector.fit(X, LABELS)


def test_too_few_stored_values_are_noticed():
    X = sparse.csr_array(np.eye(30))
    X.data = X.data[:5]
    with pytest.raises(ValueError, match="sparse matrix X is damaged"):
        as_design(X)


def test_coordinates_are_checked():
    X = sparse.coo_array(np.eye(4))
    X.coords[1][2] = 9
    with pytest.raises(ValueError, match=r"sparse matrix X is damaged.*holds 9"):
        as_design(X)


# -- Values that are not finite in designs that nobody has checked --


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, sparse.csc_array])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("method", [RFE, L1SVM, SVMWeights, MarginLP])
def test_unchecked_designs_are_checked_when_they_are_used(make, value, standardize, method):
    X = data()
    X[7, 4] = value
    design = as_design(make(X), check_finite=False)
    with pytest.raises(ValueError, match="first found in row 7, column 4"):
        method(n_features_to_select=3, standardize=standardize).fit(design, LABELS)


def test_a_checked_design_is_not_read_again(monkeypatch):
    design = as_design(data())

    def refuse(self):
        raise AssertionError("the data were read once more")

    monkeypatch.setattr(type(design), "_surely_finite", refuse)
    L1SVM(3, standardize=False).fit(design.take(slice(2, None)).take_rows(slice(0, 20)), LABELS[:20])


# -- Files that change --


@pytest.fixture(params=["C", "F"])
def path(request, tmp_path):
    np.save(tmp_path / "x.npy", np.asarray(data(), order=request.param))
    return tmp_path / "x.npy"


def test_a_truncated_numpy_file_is_refused(path):
    os.truncate(path, path.stat().st_size - 8)
    with pytest.raises(ValueError, match=r"x\.npy.* is not complete"):
        as_design(path)


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00" + b"x" * 118, b"a,b\n1,2\n"]
)
def test_what_is_no_numpy_file_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.npy.* cannot be read as a NumPy file"):
        as_design(path)


def test_a_file_that_shrinks_is_noticed(path):
    design = as_design(path)
    os.truncate(path, 200)
    with pytest.raises(DataFileError, match="has changed since it was opened"):
        design.gram()


def test_a_file_that_shrinks_while_it_is_read_is_noticed(path, monkeypatch):
    design = as_design(path)
    monkeypatch.setattr("zeronorm.design.chunked.stamp_of", lambda path: design._files[0]._stamp)
    os.truncate(path, 200)
    with pytest.raises(DataFileError, match="has become shorter"):
        design.gram()


def test_a_file_that_changes_is_noticed(path):
    design = as_design(path)
    X = data()
    X[3, 3] = np.nan
    np.save(path, X)
    os.utime(path, ns=(1, 1))
    for again in (design, pickle.loads(pickle.dumps(design))):
        with pytest.raises(DataFileError, match="has changed since it was opened"):
            L1SVM(3).fit(again, LABELS)


def test_a_file_that_disappears_is_noticed(path):
    design = as_design(path)
    path.unlink()
    with pytest.raises(DataFileError, match="is gone"):
        design.gram()


def saved_table(folder, columns="abcdef"):
    pl.DataFrame({name: data()[:, j] for j, name in enumerate(columns)}).write_parquet(folder / "x.parquet")
    return folder / "x.parquet"


@pytest.mark.parametrize("size", [0, 10, 200, -5])
def test_a_truncated_table_is_refused(tmp_path, size):
    table = saved_table(tmp_path)
    os.truncate(table, size if size >= 0 else table.stat().st_size + size)
    with pytest.raises(ValueError, match=r"x\.parquet.* cannot be read as a Parquet file"):
        as_design(table)


def test_a_table_that_loses_columns_is_noticed(tmp_path):
    design = as_design(saved_table(tmp_path))
    saved_table(tmp_path, "abc")
    with pytest.raises(DataFileError, match="has changed since it was opened"):
        design.gram()


def test_a_table_that_is_damaged_inside_is_noticed(tmp_path):
    table = saved_table(tmp_path)
    design = as_design(table)
    content, times = bytearray(table.read_bytes()), table.stat()
    content[4:200] = b"\xff" * 196
    table.write_bytes(content)
    os.utime(table, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(DataFileError, match="cannot be read as a Parquet file"):
        design.block([0, 1])


# -- Tables in memory --


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame(data(), columns=[*"abcdefghijk", "c"]), "two columns are called 'c'"),
        (pd.DataFrame(data(), columns=[*"abcdefghijk", None]), "column 11 has no name"),
        (pd.DataFrame(data()).assign(day=pd.date_range("2020-01-01", periods=30)), "'day' .*datetime64"),
        (
            pl.DataFrame({"x": data()[:, 0], "day": pd.date_range("2020-01-01", periods=30)}),
            "'day' .*Datetime",
        ),
        (pd.DataFrame({"x": data()[:, 0], "word": ["a"] * 30}), "'word' "),
    ],
)
@pytest.mark.parametrize("selector", [None, FisherScore(1), RFE(n_features_to_select=1)])
def test_tables_that_are_no_matrix_are_refused(frame, message, selector):
    with pytest.raises(ValueError, match=message):
        as_design(frame) if selector is None else selector.fit(frame, LABELS)


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("X", [data(), as_design(data())], ids=["array", "design"])
def test_labels_that_are_missing_are_named(missing, X):
    y = np.asarray(["a", "b"] * 15, dtype=object)
    y[3] = missing
    with pytest.raises(ValueError, match=r"y contains (None|NaN): first found in row 3"):
        FisherScore(3).fit(X, y)


# -- Tasks that fail and memory that does not suffice --


def test_a_dask_task_that_fails_is_named():
    da = pytest.importorskip("dask.array", reason="dask is not installed")

    def fail(block):
        raise KeyError("lost chunk")

    X = da.ones((30, 12), chunks=(30, 4)).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(RuntimeError, match=r"Dask could not compute.*KeyError.*lost chunk"):
        as_design(X)


def test_too_large_matrices_are_refused_before_they_are_computed(monkeypatch):
    monkeypatch.setattr("zeronorm._threads.available_bytes", lambda: 10 << 30)
    design = as_design(np.ones((50_000, 3)), check_finite=False)
    with pytest.raises(NotEnoughMemoryError, match=r"Gram matrix of 50000 samples needs .* GiB.*10\.0 GiB"):
        design.gram()
    wide = as_design(np.ones((3, 50_000)), check_finite=False)
    with pytest.raises(NotEnoughMemoryError, match=r"50000 features"):
        wide.sandwich(np.ones(3))
    with pytest.raises(NotEnoughMemoryError, match="Gram matrix"):
        RFE(n_features_to_select=1, kernel="rbf").fit(
            np.random.default_rng(0).normal(size=(50_000, 3)), np.arange(50_000) % 2
        )


def test_little_memory_is_never_refused(monkeypatch):
    monkeypatch.setattr("zeronorm._threads.available_bytes", lambda: 1)
    require_memory(1000, "The table", "use less.")
