"""Files of columns: what goes in comes out, within the budget, and damage of any kind is noticed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zlib

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from zeronorm import AROM, RFE, FisherScore, ZeroNormSVM
from zeronorm.design import as_design, chunked, pack, packing
from zeronorm.design.chunked import ChunkedDesign, DataFileError
from zeronorm.testing import check_design


def data(shape=(13, 29), dtype=np.float64, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 3.0 + 1.0).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_contract(tmp_path, dtype, monkeypatch):
    monkeypatch.setattr("zeronorm.design.packing._PIECE_BYTES", 500)
    X = data(dtype=dtype)
    path = pack(X, tmp_path / "x.zncols")
    check_design(lambda: as_design(path), X)
    assert isinstance(as_design(path), ChunkedDesign)
    assert as_design(path).dtype == dtype


@pytest.mark.parametrize("shape", [(40, 5), (1, 3), (6, 1)])
def test_other_shapes(tmp_path, shape):
    X = data(shape)
    path = pack(X, tmp_path / "x.zncols")
    check_design(lambda: as_design(path), X)


def test_anything_that_is_a_design_can_be_packed(tmp_path):
    X = data()
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
    X = data((40, 3000), np.float32)
    y = np.arange(40) % 2
    X[:, 12:18] += 2.0 * y[:, None]
    design = as_design(pack(X, tmp_path / "x.zncols"), memory_budget=1 << 20)
    assert 8 * 40 * design._block_width() <= (1 << 20) // 8
    np.testing.assert_array_equal(selector.fit(design, y).support_, selector.fit(X, y).support_)


def test_every_cut_is_noticed_when_the_file_is_opened(tmp_path):
    path = pack(data(), tmp_path / "x.zncols")
    size = path.stat().st_size
    for length in (0, 5, 30, 64, 1000, size - 1):
        os.truncate(path, length)
        with pytest.raises(ValueError, match=r"x\.zncols is (not|damaged).*pack the data again"):
            as_design(path)
        pack(data(), path)


@pytest.mark.parametrize("seed", range(30))
def test_every_changed_byte_is_noticed(tmp_path, seed, monkeypatch):
    monkeypatch.setattr("zeronorm.design.packing._PIECE_BYTES", 500)
    path = pack(data(), tmp_path / "x.zncols")
    content = bytearray(path.read_bytes())
    place = int(np.random.default_rng(seed).choice([k for k in range(len(content)) if not 28 <= k < 64]))
    content[place] ^= 0x40
    path.write_bytes(content)
    with pytest.raises((ValueError, DataFileError), match="pack the data again"):
        as_design(path).gram()


def test_a_file_that_changes_while_it_is_used_is_noticed(tmp_path):
    path = pack(data(), tmp_path / "x.zncols")
    design = as_design(path)
    pack(data(seed=1), path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(DataFileError, match="has changed"):
        design.gram()


def test_a_conversion_that_fails_leaves_what_was_there(tmp_path):
    path = pack(data(), tmp_path / "x.zncols")
    before = path.read_bytes()
    wrong = data(seed=1)
    wrong[3, 3] = np.nan
    with pytest.raises(ValueError, match="row 3, column 3"):
        pack(wrong, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.zncols"]


SLOW_PACK = """
import sys
import time
import numpy as np
import zeronorm.design.packing as module
from zeronorm.design import pack
real = module.checksum_of
module._PIECE_BYTES = 500
module.checksum_of = lambda piece: (print("piece", flush=True), time.sleep(0.2), real(piece))[2]
pack(np.ones((13, 2900)), sys.argv[1])
"""


def test_a_killed_conversion_leaves_nothing_that_loads_and_the_next_one_cleans_up(tmp_path):
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
    pack(data(), path)
    assert os.listdir(tmp_path) == ["x.zncols"]


def test_wrong_names_and_places_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must end with"):
        pack(data(), tmp_path / "x.npy")
    with pytest.raises(ValueError, match="There is no folder"):
        pack(data(), tmp_path / "nowhere" / "x.zncols")


def test_a_full_disk_is_noticed_before(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
    with pytest.raises(ValueError, match="GiB are free on that disk"):
        pack(data(), tmp_path / "x.zncols")


def test_values_are_checked_when_they_are_written_and_not_again(tmp_path, monkeypatch):
    path = pack(data(), tmp_path / "x.zncols")
    with monkeypatch.context() as patch:
        patch.setattr("zeronorm.design.packing.PackedFile.read", None)
        assert as_design(path)._known_finite
    for value in (np.nan, np.inf, 1e200):
        X = data()
        X[2, 3] = value
        unchecked = as_design(X, check_finite=False)
        with pytest.raises(ValueError, match="Columns 0 to 28 hold NaN, infinity or values beyond 1e\\+150"):
            pack(unchecked, path)


def test_each_column_is_read_once_in_a_sweep(tmp_path, monkeypatch):
    monkeypatch.setattr("zeronorm.design.packing._PIECE_BYTES", 13 * 8 * 3)
    X = data((13, 600))
    design = as_design(pack(X, tmp_path / "x.zncols"), memory_budget=13 * 8 * 8 * 10)
    n_bytes, real = 0, chunked._read_into

    def counted(stream, file, offset, out):
        nonlocal n_bytes
        n_bytes += out.nbytes
        real(stream, file, offset, out)

    monkeypatch.setattr(chunked, "_read_into", counted)
    for _ in range(2):  # with and without comparing checksums
        n_bytes = 0
        stats = design.column_stats()
        assert n_bytes == X.nbytes
    np.testing.assert_allclose(stats.mean, X.mean(axis=0))


def test_scattered_columns_are_read_with_those_between(tmp_path):
    X = data((13, 600))
    design = as_design(pack(X, tmp_path / "x.zncols"))
    for chosen in ([5, 3, 599, 3, 0], list(range(0, 600, 7)), [599, 0]):
        np.testing.assert_array_equal(design.block(chosen), X[:, chosen])


def test_checksums_are_sums_of_words_and_of_words_times_their_places():
    values = np.random.default_rng(0).normal(size=(5, 7)).astype("<f4")
    words = [int(word) for word in values.reshape(-1).view(np.uint32)]
    weighted = sum(place * word for place, word in enumerate(words, 1)) % 2**64
    assert packing.checksum_of(values) == (weighted << 64) + sum(words) % 2**64
    large = np.full((2, 300_000), -np.nan, dtype="<f8")  # sums that overflow
    words = large.view(np.uint32).reshape(-1).astype(object)
    weighted = int((np.arange(1, words.size + 1, dtype=object) * words).sum()) % 2**64
    assert packing.checksum_of(large) == (weighted << 64) + int(words.sum()) % 2**64
    exchanged = values.copy()
    exchanged[0, :2] = values[0, 1::-1]
    assert packing.checksum_of(exchanged) != packing.checksum_of(values)


def test_files_with_a_crc_for_each_piece_are_read(tmp_path):
    """As the first versions wrote them."""
    X = np.random.default_rng(0).normal(size=(6, 40))
    path = pack(X, tmp_path / "x.zncols")
    content = path.read_bytes()
    _, place, length, _ = packing._HEAD.unpack(content[: packing._HEAD.size])
    index = json.loads(content[place : place + length])
    assert len(index.pop("sums")) == 1
    index["checksums"] = [zlib.crc32(content[packing._HEAD_BYTES : place])]
    text = json.dumps(index).encode()
    head = packing._HEAD.pack(packing._MAGIC, place, len(text), zlib.crc32(text))
    for damage in (b"", b"\x01"):
        data = bytearray(head.ljust(packing._HEAD_BYTES, b"\0") + content[packing._HEAD_BYTES : place] + text)
        data[packing._HEAD_BYTES : packing._HEAD_BYTES + len(damage)] = damage
        path.write_bytes(data)
        design = as_design(path)
        if damage:
            with pytest.raises(DataFileError, match="damaged"):
                design.block(slice(None))
        else:
            np.testing.assert_array_equal(design.block(slice(None)), X)
