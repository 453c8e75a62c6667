"""Zarr chunks: their length, their codec, and the message for a damaged file."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from design.annotated_files import numbers, written
from design.arrays import data
from zeronorm import as_design
from zeronorm.design import DataFileError
from zeronorm.design import _annotated as annotated
from zeronorm.design._annotated import explained


def test_the_length_of_a_chunk_of_blosc():
    """Bytes 12 to 15 of the header hold the length; no chunk is shorter than the header."""
    for stated, length, fits in (
        (16, 16, True),
        (3, 16, True),
        (20, 20, True),
        (20, 19, False),
        (20, 21, False),
    ):
        chunk = (b"\2\1\x21\x08" + struct.pack("<II", 99, 98) + struct.pack("<I", stated)).ljust(length, b"x")
        if fits:
            annotated._require_length("X/c/0", chunk)
        else:
            with pytest.raises(ValueError, match=f"X/c/0 has {length} bytes and must have 20"):
                annotated._require_length("X/c/0", chunk)
    with pytest.raises(ValueError, match="has 5 bytes and must have 16"):
        annotated._require_length("X/c/0", b"12345")


def test_which_arrays_are_compressed_by_blosc(tmp_path):
    heads = {
        "a/zarr.json": {"codecs": [{"name": "bytes"}, {"name": "blosc"}]},
        "b/zarr.json": {"codecs": [{"name": "blosc"}, {"name": "bytes"}, {"name": "gzip"}]},
        "c/.zarray": {"compressor": {"id": "blosc"}},
        "d/.zarray": {"compressor": None},
        "zarr.json": {"codecs": [{"name": "blosc"}]},  # of the root group, which is not an array
    }
    for name, head in heads.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(head))
    for folder, wanted in (
        ("a", True),
        ("a/c/0", True),
        ("b", False),
        ("c", True),
        ("d", False),
        ("e", False),
    ):
        assert annotated._is_by_blosc(tmp_path, folder) is wanted


def test_the_store_for_zarr_2(tmp_path, monkeypatch):
    class DirectoryStore:
        def __init__(self, path):
            self.path = Path(path)

        def __getitem__(self, key):
            return (self.path / key).read_bytes()

    storage = SimpleNamespace(DirectoryStore=DirectoryStore)
    monkeypatch.setattr(annotated, "_package", lambda name: SimpleNamespace(storage=storage))
    chunk = bytes(12) + struct.pack("<I", 20) + b"1234"
    for name, compressor in (("a", {"id": "blosc"}), ("b", {"id": "zlib"})):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".zarray").write_text(json.dumps({"compressor": compressor}))
        (tmp_path / name / "0.0").write_bytes(chunk)
        (tmp_path / name / "0.1").write_bytes(chunk[:-1])
    store = annotated._zarr_store(tmp_path)
    assert isinstance(store, DirectoryStore)
    assert store["a/0.0"] == store["b/0.0"] == chunk
    assert json.loads(store["a/.zarray"]) == {"compressor": {"id": "blosc"}}
    assert store["b/0.1"] == chunk[:-1]  # its codec detects this
    with pytest.raises(ValueError, match=r"a/0\.1 has 19 bytes and must have 20"):
        store["a/0.1"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_chunks_of_zeros_are_not_stored(tmp_path, zarr_format):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    numcodecs = pytest.importorskip("numcodecs", reason="numcodecs is not installed")
    X = data((6, 8))
    X[:3] = 0.0
    blosc = zarr.codecs.BloscCodec() if zarr_format == 3 else numcodecs.Blosc()
    root = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=zarr_format)
    root.create_array("X", shape=X.shape, dtype=X.dtype, chunks=(3, 8), compressors=blosc)[...] = X
    np.testing.assert_array_equal(as_design(tmp_path / "x.zarr").block(slice(None)), X)


def test_the_message_for_a_damaged_file_holds_that_of_the_library(tmp_path):
    for error, message in ((RuntimeError("one\ntwo"), r"\(one\)"), (RuntimeError(), r"\(RuntimeError\)")):
        with pytest.raises(OSError, match=message), explained(tmp_path, OSError):
            raise error
    for error in (DataFileError("mine"), ImportError("mine"), MemoryError("mine")):
        with pytest.raises(type(error), match=r"^mine$"), explained(tmp_path, KeyError):
            raise error


anndata = pytest.importorskip("anndata", reason="anndata is not installed")


zarr = pytest.importorskip("zarr", reason="zarr is not installed")


numcodecs = pytest.importorskip("numcodecs", reason="numcodecs is not installed")


pytestmark = [
    pytest.mark.filterwarnings("ignore:Writing zarr v2 data"),
    pytest.mark.filterwarnings("ignore:The codec"),
]


def largest_chunk(path):
    return max((file for file in path.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_chunk_of_blosc_that_is_cut_short_is_an_error(tmp_path, zarr_format):
    """Blosc would read beyond the end of the chunk, where the rest may still be in memory."""
    X, path = numbers((40, 60)), tmp_path / "x.zarr"
    blosc = zarr.codecs.BloscCodec() if zarr_format == 3 else numcodecs.Blosc()
    zarr.open_group(path, mode="w", zarr_format=zarr_format).create_array("X", data=X, compressors=blosc)
    np.testing.assert_array_equal(as_design(path).block(slice(None)), X)
    chunk = largest_chunk(path / "X")
    whole = chunk.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:10], b"", whole + b"more"):
        chunk.write_bytes(damaged)
        with pytest.raises(DataFileError, match=rf"x\.zarr cannot .* has {len(damaged)} bytes and must have"):
            as_design(path)


@pytest.mark.parametrize("codec", ["ZstdCodec", "GzipCodec"])
def test_other_chunks_that_are_cut_short_are_noticed_by_their_codec(tmp_path, codec):
    path = tmp_path / "x.zarr"
    root = zarr.open_group(path, mode="w")
    root.create_array("X", data=numbers((40, 60)), compressors=getattr(zarr.codecs, codec)())
    chunk = largest_chunk(path / "X")
    for size in (chunk.stat().st_size // 2, 10, 0):
        os.truncate(chunk, size)
        with pytest.raises(DataFileError, match=r"x\.zarr cannot be read as AnnData"):
            as_design(path)


def test_a_damaged_chunk_is_an_error(tmp_path):
    path = written(tmp_path, numbers((40, 60)), "zarr")
    largest_chunk(path / "X").write_bytes(b"no chunk of zarr")
    with pytest.raises(DataFileError, match=r"x\.zarr cannot be read as AnnData"):
        as_design(path)
