"""Packing: the data are read back unchanged, within the budget, and a failed conversion leaves no file."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from design.arrays import data, numbers
from zeronorm import AROM, RFE, FisherScore, ZeroNormSVM, as_design
from zeronorm.design import _chunked as chunked
from zeronorm.design import _packing as packing
from zeronorm.design._chunked import ChunkedDesign, open_files
from zeronorm.design._packing import full_disk_explained, is_running, pack, require_room
from zeronorm.testing import check_design


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_contract(tmp_path, dtype):
    X = numbers(dtype=dtype)
    path = pack(X, tmp_path / "x.zncols")
    check_design(lambda: as_design(path), X)
    assert isinstance(as_design(path), ChunkedDesign)
    assert as_design(path).dtype == dtype


@pytest.mark.parametrize("shape", [(40, 5), (1, 3), (6, 1)])
def test_other_shapes(tmp_path, shape):
    X = numbers(shape)
    path = pack(X, tmp_path / "x.zncols")
    check_design(lambda: as_design(path), X)


def test_any_design_can_be_packed(tmp_path):
    X = numbers()
    np.save(tmp_path / "x.npy", X)
    table = pl.DataFrame({f"gene {j}": X[:, j] for j in range(29)})
    table.write_parquet(tmp_path / "x.parquet")
    for source in (X, sparse.csr_array(X), table, tmp_path / "x.npy", tmp_path / "x.parquet", as_design(X)):
        packed = as_design(pack(source, tmp_path / "x.zncols"))
        np.testing.assert_array_equal(packed.block(slice(None)), X)
    assert as_design(pack(table, tmp_path / "x.zncols")).feature_names[3] == "gene 3"
    named = pack(X, tmp_path / "x.zncols", feature_names=[f"g{j}" for j in range(29)])
    assert as_design(named).feature_names[28] == "g28"


@pytest.mark.parametrize(
    "selector", [FisherScore(5), ZeroNormSVM(5), AROM(5), RFE(n_features_to_select=5, step=0.5)], ids=repr
)
def test_the_same_selection_as_in_memory_within_a_budget(tmp_path, selector):
    X = numbers((40, 3000), np.float32)
    y = np.arange(40) % 2
    X[:, 12:18] += 2.0 * y[:, None]
    design = as_design(pack(X, tmp_path / "x.zncols"), memory_budget=1 << 20)
    assert 8 * 40 * design._block_width() <= (1 << 20) // 8
    np.testing.assert_array_equal(selector.fit(design, y).support_, selector.fit(X, y).support_)


def test_a_failed_conversion_keeps_the_existing_file(tmp_path):
    path = pack(numbers(), tmp_path / "x.zncols")
    before = path.read_bytes()
    wrong = numbers(seed=1)
    wrong[3, 3] = np.nan
    with pytest.raises(ValueError, match="row 3, column 3"):
        pack(wrong, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.zncols"]


SLOW_PACK = """
import sys
import time
import numpy as np
import zeronorm.design._packing as module
from zeronorm.design import pack
real = module.checksum_of
module._PIECE_BYTES = 500
module.checksum_of = lambda piece: (print("piece", flush=True), time.sleep(0.2), real(piece))[2]
pack(np.ones((13, 2900)), sys.argv[1])
"""


def test_a_killed_conversion_leaves_no_file_that_opens_and_the_next_one_removes_its_draft(tmp_path):
    path = tmp_path / "x.zncols"
    process = subprocess.Popen([sys.executable, "-c", SLOW_PACK, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not path.exists()
    (left,) = os.listdir(tmp_path)
    with pytest.raises(ValueError, match="in files of type"):
        as_design(tmp_path / left)
    pack(numbers(), path)
    assert os.listdir(tmp_path) == ["x.zncols"]


def test_wrong_names_and_folders_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must end with"):
        pack(numbers(), tmp_path / "x.npy")
    with pytest.raises(ValueError, match="There is no folder"):
        pack(numbers(), tmp_path / "nowhere" / "x.zncols")


def test_a_full_disk_is_noticed_before(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
    with pytest.raises(ValueError, match="GiB are free on that disk"):
        pack(numbers(), tmp_path / "x.zncols")


def test_values_are_checked_when_they_are_written_and_not_again(tmp_path, monkeypatch):
    path = pack(numbers(), tmp_path / "x.zncols")
    with monkeypatch.context() as patch:
        patch.setattr("zeronorm.design._packing.PackedFile.read", None)
        assert as_design(path)._known_finite
    for value in (np.nan, np.inf, 1e200):
        X = numbers()
        X[2, 3] = value
        unchecked = as_design(X, check_finite=False)
        with pytest.raises(ValueError, match="Columns 0 to 28 hold NaN, infinity or values beyond 1e\\+150"):
            pack(unchecked, path)


def test_each_column_is_read_once_in_a_pass(tmp_path, monkeypatch):
    monkeypatch.setattr("zeronorm.design._packing._PIECE_BYTES", 13 * 8 * 3)
    X = numbers((13, 600))
    design = as_design(pack(X, tmp_path / "x.zncols"), memory_budget=13 * 8 * 8 * 10)
    n_bytes, real = 0, chunked._read_into

    def counted(stream, file, offset, out):
        nonlocal n_bytes
        n_bytes += out.nbytes
        real(stream, file, offset, out)

    monkeypatch.setattr(chunked, "_read_into", counted)
    for _ in range(2):  # the first pass compares checksums
        n_bytes = 0
        stats = design.column_stats()
        assert n_bytes == X.nbytes
    np.testing.assert_allclose(stats.mean, X.mean(axis=0))


def test_scattered_columns_are_read_with_those_between(tmp_path):
    X = numbers((13, 600))
    design = as_design(pack(X, tmp_path / "x.zncols"))
    for chosen in ([5, 3, 599, 3, 0], list(range(0, 600, 7)), [599, 0]):
        np.testing.assert_array_equal(design.block(chosen), X[:, chosen])


def test_values_that_cannot_be_stored(tmp_path):
    X = data((4, 6))
    for value, dtype, text in (
        (1e60, "float32", "too large for float32"),
        (1e149, "float64", None),
        (3e38, "float32", None),
    ):
        X[2, 4] = value
        if text is None:
            pack(X, tmp_path / "x.zncols", dtype=dtype)
        else:
            with pytest.raises(ValueError, match=rf"Columns 0 to 5 hold values that are {text}"):
                pack(X, tmp_path / "x.zncols", dtype=dtype)
    X[2, 4] = np.nan
    for dtype in ("float32", "float64"):
        with pytest.raises(ValueError, match="hold NaN, infinity or values beyond"):
            pack(as_design(X, check_finite=False), tmp_path / "x.zncols", dtype=dtype)


@pytest.mark.parametrize("dtype", ["int8", "float16", np.float32])
def test_types_other_than_float32_and_float64_are_refused(tmp_path, dtype):
    with pytest.raises(ValueError, match="must be 'float32', 'float64' or None"):
        pack(data(), tmp_path / "x.zncols", dtype=dtype)
    with pytest.raises(ValueError, match=r"must end with '\.zncols'"):
        pack(data(), tmp_path / "x.npy")


def test_free_space_is_checked_before_writing(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(packing, "require_room", lambda path, n_bytes: asked.append(n_bytes))
    pack(data((12, 9)), tmp_path / "x.zncols", dtype="float32")
    pack(data((12, 9)), tmp_path / "x.zncols")
    assert asked == [4 * 12 * 9, 8 * 12 * 9]


def test_drafts_of_processes_that_have_ended_are_removed(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone, active = tmp_path / f".x.zncols.{ended.pid}.part", tmp_path / f".x.zncols.{os.getppid()}.part"
    for draft in (gone, active):
        draft.write_bytes(b"")
    pack(data(), tmp_path / "x.zncols")
    assert (gone.exists(), active.exists()) == (False, True)
    assert is_running(str(os.getpid()))
    assert not is_running("no number")
    assert not is_running(str(ended.pid))


def test_a_process_of_another_user_counts_as_running(monkeypatch):
    def refuse(process, number):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert is_running("1")


def test_only_errors_of_a_full_disk_are_reported_as_such(tmp_path):
    for number in (errno.ENOSPC, errno.EDQUOT):
        with pytest.raises(ValueError, match="The disk is full"), full_disk_explained(tmp_path):
            raise OSError(number, "full")
    with pytest.raises(PermissionError), full_disk_explained(tmp_path):
        raise PermissionError(errno.EACCES, "not allowed")
    require_room(tmp_path / "x", 10)
    with pytest.raises(ValueError, match="no folder"):
        require_room(tmp_path / "nowhere" / "x", 10)
    with pytest.raises(ValueError, match="GiB are free"):
        require_room(tmp_path / "x", 1 << 60)


def test_the_largest_values_that_are_stored(tmp_path):
    largest = float(np.finfo(np.float32).max)
    for dtype, value, fits in (
        ("float64", 1e150, True),
        ("float64", -1e150, True),
        ("float64", np.nextafter(1e150, 2e150), False),
        ("float32", largest, True),
        ("float32", -largest, True),
        ("float32", 2.0 * largest, False),
    ):
        X = np.zeros((3, 2))
        X[1, 1] = value
        unchecked = as_design(X, check_finite=False)
        if fits:
            path = pack(unchecked, tmp_path / "x.zncols", dtype=dtype)
            assert open_files(path).block([1])[1, 0] == value
        else:
            with pytest.raises(ValueError, match="Columns 0 to 1 hold"):
                pack(unchecked, tmp_path / "x.zncols", dtype=dtype)


def test_a_disk_with_just_enough_space(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=10))
    require_room(tmp_path / "x", 10)
    with pytest.raises(ValueError, match="GiB are free on that disk"):
        require_room(tmp_path / "x", 11)


def test_the_file_is_synced_before_it_is_renamed(tmp_path, monkeypatch):
    path, seen = tmp_path / "x.zncols", []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append((os.fstat(handle).st_size, path.exists())))
    pack(data((4, 5)), path)
    assert seen == [(path.stat().st_size, False)]


def test_a_conversion_that_fails_midway_leaves_no_draft(tmp_path):
    X = data((4, 5))
    X[2, 3] = np.nan
    with pytest.raises(ValueError, match="hold NaN"):
        pack(as_design(X, check_finite=False), tmp_path / "x.zncols")
    assert os.listdir(tmp_path) == []


def test_checking_for_a_process_sends_it_no_signal(monkeypatch):
    sent = []
    monkeypatch.setattr(os, "kill", lambda process, number: sent.append((process, number)))
    assert packing.is_running("12345")
    assert sent == [(12345, 0)]
