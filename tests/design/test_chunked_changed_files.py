"""Files that are damaged, change or disappear raise errors."""

from __future__ import annotations

import os
import pickle

import numpy as np
import polars as pl
import pytest

from design.arrays import LABELS, numbers, samples, saved
from zeronorm import L1SVM, as_design
from zeronorm.design import _chunked as chunked
from zeronorm.design._chunked import DataFileError, stamp_of


@pytest.fixture(params=["C", "F"])
def path(request, tmp_path):
    np.save(tmp_path / "x.npy", np.asarray(samples(), order=request.param))
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
    monkeypatch.setattr("zeronorm.design._chunked.stamp_of", lambda path: design._files[0]._stamp)
    os.truncate(path, 200)
    with pytest.raises(DataFileError, match="has become shorter"):
        design.gram()


def test_a_file_that_changes_is_noticed(path):
    design = as_design(path)
    X = samples()
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
    pl.DataFrame({name: samples()[:, j] for j, name in enumerate(columns)}).write_parquet(
        folder / "x.parquet"
    )
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


def test_a_changed_file_is_noticed_when_columns_were_kept(tmp_path):
    X = numbers((20, 40), order="F")
    path = saved(tmp_path, X)
    left = as_design(path).take([3, 30])
    left.gram()
    saved(tmp_path, numbers((20, 41), order="F"))
    with pytest.raises(chunked.DataFileError, match="has changed"):
        left.gram()


def test_the_stamp_of_a_folder_is_that_of_all_its_files(tmp_path):
    folder = tmp_path / "x"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "one").write_bytes(b"123")
    before = stamp_of(folder)
    (folder / "two").write_bytes(b"45678")
    assert stamp_of(folder)[0] == before[0] + 5
    os.utime(folder / "two", ns=(0, 2 * 10**18))
    assert stamp_of(folder)[1] == 2 * 10**18
    with pytest.raises(chunked.DataFileError, match="is gone"):
        stamp_of(tmp_path / "y")


def test_an_empty_folder_has_neither_size_nor_time(tmp_path):
    assert stamp_of(tmp_path) == (0, 0)


def test_a_numpy_file_runs_no_program(tmp_path):
    """A pickled object could run any code, so it is not loaded."""

    class Program:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    (tmp_path / "x.npy").write_bytes(pickle.dumps(Program()))
    with pytest.raises(ValueError, match="cannot be read as a NumPy file"):
        as_design(tmp_path / "x.npy")
    assert not (tmp_path / "made").exists()
