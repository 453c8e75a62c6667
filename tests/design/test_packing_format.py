"""The format of packed files: pieces, checksums, the index, and all sorts of damage."""

from __future__ import annotations

import json
import os
import struct
import zlib

import numpy as np
import pytest

from design.arrays import data, numbers
from zeronorm.design import _packing as packing
from zeronorm.design import as_design
from zeronorm.design._chunked import DataFileError
from zeronorm.design._packing import PackedFile, pack


def test_every_cut_is_noticed_when_the_file_is_opened(tmp_path):
    path = pack(numbers(), tmp_path / "x.zncols")
    size = path.stat().st_size
    for length in (0, 5, 30, 64, 1000, size - 1):
        os.truncate(path, length)
        with pytest.raises(ValueError, match=r"x\.zncols is (not|damaged).*pack the data again"):
            as_design(path)
        pack(numbers(), path)


@pytest.fixture(scope="module")
def two_pieces(tmp_path_factory):
    """A packed file whose columns have two checksums."""
    return pack(numbers((50_000, 12)), tmp_path_factory.mktemp("packed") / "x.zncols").read_bytes()


@pytest.mark.parametrize("seed", range(30))
def test_every_changed_byte_is_noticed(tmp_path, seed, two_pieces):
    rng, content = np.random.default_rng(seed), bytearray(two_pieces)
    position = int(rng.integers(HEAD_BYTES, len(content)) if seed % 3 else rng.integers(HEAD.size))
    content[position] ^= 0x40
    (tmp_path / "x.zncols").write_bytes(content)
    with pytest.raises((ValueError, DataFileError), match="pack the data again"):
        as_design(tmp_path / "x.zncols").column_stats()


def test_a_file_that_changes_while_it_is_used_is_noticed(tmp_path):
    path = pack(numbers(), tmp_path / "x.zncols")
    design = as_design(path)
    pack(numbers(seed=1), path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(DataFileError, match="has changed"):
        design.gram()


def test_checksums_are_sums_of_words_and_of_words_times_their_positions():
    values = np.random.default_rng(0).normal(size=(5, 7)).astype("<f4")
    words = [int(word) for word in values.reshape(-1).view(np.uint32)]
    weighted = sum(position * word for position, word in enumerate(words, 1)) % 2**64
    assert packing.checksum_of(values) == (weighted << 64) + sum(words) % 2**64
    large = np.full((2, 300_000), -np.nan, dtype="<f8")  # sums that overflow
    words = large.view(np.uint32).reshape(-1).astype(object)
    weighted = int((np.arange(1, words.size + 1, dtype=object) * words).sum()) % 2**64
    assert packing.checksum_of(large) == (weighted << 64) + int(words.sum()) % 2**64
    exchanged = values.copy()
    exchanged[0, :2] = values[0, 1::-1]
    assert packing.checksum_of(exchanged) != packing.checksum_of(values)


def test_files_with_a_crc_for_each_piece_are_read(tmp_path):
    """The first versions wrote such files."""
    X = np.random.default_rng(0).normal(size=(6, 40))
    path = pack(X, tmp_path / "x.zncols")
    content = path.read_bytes()
    _, offset, length, _ = HEAD.unpack(content[: HEAD.size])
    index = json.loads(content[offset : offset + length])
    assert len(index.pop("sums")) == 1
    index["checksums"] = [zlib.crc32(content[HEAD_BYTES:offset])]
    text = json.dumps(index).encode()
    head = HEAD.pack(MAGIC, offset, len(text), zlib.crc32(text))
    for damage in (b"", b"\x01"):
        data = bytearray(head.ljust(HEAD_BYTES, b"\0") + content[HEAD_BYTES:offset] + text)
        data[HEAD_BYTES : HEAD_BYTES + len(damage)] = damage
        path.write_bytes(data)
        design = as_design(path)
        if damage:
            with pytest.raises(DataFileError, match="damaged"):
                design.block(slice(None))
        else:
            np.testing.assert_array_equal(design.block(slice(None)), X)


# The format of the header, also in existing files: magic number; offset, length and checksum of the index.
HEAD, HEAD_BYTES, MAGIC = struct.Struct("<8sQQI"), 64, b"ZNCOLS1\n"


def changed_index(path, **changes):
    """Change entries of the index of a file, with a correct checksum."""
    content = path.read_bytes()
    magic, offset, length, _ = HEAD.unpack(content[: HEAD.size])
    index = {**json.loads(content[offset : offset + length]), **changes}
    text = json.dumps({key: value for key, value in index.items() if value != "left out"}).encode()
    head = HEAD.pack(magic, offset, len(text), zlib.crc32(text))
    path.write_bytes(head + content[len(head) : offset] + text)
    return path


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"dtype": "<i4"}, False),
        ({"dtype": "<f8"}, False),
        ({"shape": [4, 6]}, False),
        ({"shape": [4, 4]}, False),
        ({"shape": [5, 4]}, True),  # as many numbers
    ],
)
def test_an_index_that_does_not_fit(tmp_path, changes, fits):
    path = changed_index(pack(data((4, 5)), tmp_path / "x.zncols", dtype="float32"), **changes)
    if fits:
        assert PackedFile(path).shape == tuple(changes.get("shape", (4, 5)))
    else:
        with pytest.raises(ValueError, match="its index does not fit"):
            PackedFile(path)


def test_entries_that_older_packed_files_lack(tmp_path):
    path = pack(data((4, 5)), tmp_path / "x.zncols", about={"target": 1})
    assert (PackedFile(path).known_finite, PackedFile(path).about) == (True, {"target": 1})
    changed_index(path, finite="left out", about="left out")
    assert (PackedFile(path).known_finite, PackedFile(path).about) == (False, {})


def test_a_header_that_is_truncated_or_of_another_format(tmp_path):
    path = pack(data((4, 5)), tmp_path / "x.zncols")
    whole = path.read_bytes()
    for content in (whole[:8], whole[:20], whole[:27], b"A" + whole[1:], whole[:7] + b"A" + whole[8:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a complete file of columns"):
            PackedFile(path)
    for content in (whole[:28], whole + b"x", whole[:-1]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="its end is missing"):
            PackedFile(path)


def test_a_piece_has_at_least_one_column(tmp_path):
    X = data((600_000, 3))
    file = PackedFile(pack(X, tmp_path / "x.zncols"))
    assert file.columns_at_once == 1
    np.testing.assert_array_equal(file.read(range(600_000), range(3)), X)


def test_a_damaged_piece_is_noticed_where_its_columns_are_read(tmp_path, monkeypatch):
    """Columns of 1.6 MB, two in each piece; written in two blocks."""
    n = 200_000
    monkeypatch.setattr(packing, "_BLOCK_BYTES", 7 * n * 8)
    X = data((n, 11))
    path = pack(X, tmp_path / "x.zncols", about={"target": [1, 2]})
    file = PackedFile(path)
    assert (file.columns_at_once, file.about, file.known_finite, file.names) == (
        2,
        {"target": [1, 2]},
        True,
        None,
    )
    for columns in (range(2, 8), np.array([10, 0]), range(11), range(9, 11)):
        fresh = PackedFile(path)
        np.testing.assert_array_equal(fresh.read(range(n), columns), X[:, columns])
        np.testing.assert_array_equal(fresh.read(np.array([3, 1]), columns), X[[3, 1]][:, columns])
    with path.open("r+b") as stream:
        stream.seek(HEAD_BYTES + 8 * 5 * n)
        stream.write(b"\xff")
    for columns, is_damaged in (
        (range(4), False),
        (range(6, 11), False),
        (np.array([4]), True),
        (np.array([10, 5]), True),
        (range(3, 5), True),
    ):
        fresh = PackedFile(path)
        if is_damaged:
            with pytest.raises(DataFileError, match="damaged"):
                fresh.read(range(n), columns)
        else:
            np.testing.assert_array_equal(fresh.read(range(n), columns), X[:, columns])
