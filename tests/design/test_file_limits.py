"""Files by their definitions: sizes in bytes at which something changes, and single parts of files that are wrong."""

from __future__ import annotations

import gc
import io
import json
import os
import pickle
import struct
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from zeronorm import as_design
from zeronorm.design import annotated, chunked, packing
from zeronorm.design.annotated import DenseBands, Scratch, SparseBands, StoredDense, explained
from zeronorm.design.chunked import DataFileError, open_files
from zeronorm.design.packing import PackedFile, pack, require_room
from zeronorm.design.sparse import SparseDesign, SparseFileDesign

h5py = pytest.importorskip("h5py", reason="h5py is not installed")


def data(shape=(7, 11), seed=0):
    return np.random.default_rng(seed).normal(size=shape) + 0.5


# -- Sparse matrices of AnnData --


def written(path, matrix, **parts):
    """A sparse matrix in the words of AnnData; parts and attributes may be other ones."""
    attributes = {"encoding-type": f"{matrix.format}_matrix", "shape": matrix.shape}
    with h5py.File(path, "w") as file:
        for name in ("data", "indices", "indptr"):
            file[f"X/{name}"] = parts.get(name, getattr(matrix, name))
        file["X"].attrs.update(parts.get("attributes", attributes))
    return path


def thinned(shape=(7, 11)):
    X = np.where(np.random.default_rng(1).random(shape) < 0.5, data(shape), 0.0)
    X[3], X[:, 4] = 0.0, 0.0  # no stored value in a row and a column
    return X


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sparse_file_comes_into_memory_where_that_takes_a_quarter(tmp_path, make, dtype):
    """Four times value and index, and two bounds for each row and column."""
    X = make(thinned().astype(dtype))
    path = written(tmp_path / "x.h5ad", X)
    needed = 4 * (X.dtype.itemsize + 4) * X.nnz + 16 * (7 + 11 + 2)
    for budget, kind in ((needed, SparseDesign), (needed - 1, SparseFileDesign)):
        design = as_design(path, memory_budget=budget)
        assert type(design) is kind
        assert design.dtype == dtype
        np.testing.assert_array_equal(design.block(slice(None)), X.toarray())


def test_rows_are_turned_in_bands_of_an_eighth_of_the_budget(tmp_path):
    X = sparse.csr_array(thinned())
    path = written(tmp_path / "x.h5ad", X)
    for budget, most in ((8, 1), (8 * 12 * 2, 2), (8 * 12 * 9 + 95, 9)):
        bands = as_design(path, memory_budget=budget)._source._bands
        assert [n_rows for _, n_rows, _ in bands] == [len(r) for r in annotated._cut(X.indptr, most)]
        assert sum(n_stored for _, _, n_stored in bands) == X.nnz
        assert all(n_stored <= most for _, n_rows, n_stored in bands if n_rows > 1)


@pytest.mark.parametrize(
    ("parts", "fits"),
    [
        ({}, True),
        ({"indptr": [0, 2, 2]}, False),  # of three rows
        ({"indptr": [1, 2, 2, 3]}, False),
        ({"indptr": [0, 2, 2, 2]}, False),
        ({"indptr": [0, 2, 1, 3]}, False),
        ({"indices": [0, 1]}, False),
        ({"data": [1.0, 2.0]}, False),
        ({"attributes": {"encoding-type": "csr_matrix", "shape": (2, 4)}}, False),
        ({"attributes": {"h5sparse_format": "csr", "h5sparse_shape": (3, 4)}}, True),
        ({"attributes": {"encoding-type": "coo_matrix", "shape": (3, 4)}}, False),
    ],
)
def test_the_parts_of_a_sparse_matrix_fit_together(tmp_path, parts, fits):
    X = sparse.csr_array(np.array([[1.0, 2.0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 3.0]]))
    path = written(tmp_path / "x.h5ad", X, **parts)
    if fits:
        np.testing.assert_array_equal(as_design(path).block(slice(None)), X.toarray())
    else:
        with pytest.raises(
            ValueError, match=r"do not fit together|compressed sparse matrix and is 'coo_matrix'"
        ):
            as_design(path)


def test_indices_take_four_bytes_where_that_suffices(tmp_path):
    X = sparse.csr_array(thinned())
    path = written(tmp_path / "x.h5ad", X, indices=X.indices.astype(np.int64))
    for lines in (range(7), range(2, 5)):
        found = annotated.open_annotated(path)._lines(lines)
        assert (found.indices.dtype, found.indptr.dtype) == (np.int32, np.int32)


@pytest.mark.parametrize(("size", "wanted"), [(2**31 - 1, np.int32), (2**31, np.int64)])
def test_the_largest_size_whose_indices_take_four_bytes(tmp_path, size, wanted, monkeypatch):
    monkeypatch.setattr(annotated, "check_structure", lambda X: None)  # compiled once more for eight bytes
    X = sparse.csr_array(np.eye(2))
    attributes = {"encoding-type": "csr_matrix", "shape": (2, size)}
    path = written(tmp_path / "x.h5ad", X, indices=np.array([0, size - 1]), attributes=attributes)
    found = annotated.open_annotated(path)._lines(range(2))
    assert (found.indices.dtype, found.indptr.dtype) == (wanted, wanted)
    assert found.indices.tolist() == [0, size - 1]
    stored = annotated.open_annotated(written(path, X))
    stored.n_stored = size  # as if there were so many values
    found = stored._lines(range(2))
    assert (found.indices.dtype, found.indptr.dtype) == (wanted, wanted)


def test_an_index_that_would_fit_after_a_cut_is_no_index(tmp_path):
    X = sparse.csr_array(thinned())
    indices = X.indices.astype(np.int64)
    indices[3] += 2**32
    path = written(tmp_path / "x.h5ad", X, indices=indices)
    with pytest.raises(DataFileError, match=f"'indices' holds {indices[3]}"):
        as_design(path)


def test_half_precision_becomes_single(tmp_path):
    X = sparse.csr_array(thinned().round(1).astype(np.float32))
    path = written(tmp_path / "x.h5ad", X, data=X.data.astype(np.float16))
    assert as_design(path).dtype == np.float32
    assert as_design(path, memory_budget=100).dtype == np.float32


@pytest.mark.parametrize(
    ("names", "found"),
    [(["a", "b"], ["a", "b"]), ([1, 2], ["1", "2"]), (["a"], None), (["a", "b", "c"], None)],
)
def test_names_of_the_variables(tmp_path, names, found):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = data((3, 2))
        file["var/genes"] = names
    assert as_design(tmp_path / "x.h5ad").feature_names is None  # the table does not say which column it is
    with h5py.File(tmp_path / "x.h5ad", "a") as file:
        file["var"].attrs["_index"] = "genes"
    if found is None:
        with pytest.raises(ValueError, match=f"X has 2 columns and var names {len(names)}"):
            as_design(tmp_path / "x.h5ad")
    else:
        assert as_design(tmp_path / "x.h5ad").feature_names.tolist() == found


# -- Dense matrices of AnnData --


def test_bands_of_a_dense_matrix_are_whole_chunks(tmp_path, monkeypatch):
    X = data((40, 60))
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file.create_dataset("X", data=X, chunks=(3, 60))
        file["other"] = X
    stored, asked = StoredDense(tmp_path / "x.h5ad"), []
    monkeypatch.setattr(annotated, "require_room", lambda path, n_bytes: asked.append(n_bytes))
    for rows_in_budget, height in ((0, 1), (1, 1), (2, 2), (3, 3), (5, 3), (7, 6), (100, 40)):
        bands = stored.by_column(8 * rows_in_budget * 60 * 8, 29)
        assert isinstance(bands, DenseBands)
        assert {len(band) for band in bands._bands[:-1]} <= {height}
        assert len(bands._bands) == -(-40 // height)
        np.testing.assert_array_equal(bands.read(range(40), np.array([59, 0])), X[:, [59, 0]])
    assert asked == [40 * 60 * 8] * 7
    assert stored.by_column(10, 30) is stored  # each chunk is decoded no more than twice
    plain = StoredDense(tmp_path / "x.h5ad")
    with h5py.File(tmp_path / "x.h5ad") as file:
        plain._describe(file["other"])
    assert plain.columns_at_once == 1
    assert plain.by_column(10, 1) is plain


def test_rows_of_a_dense_matrix(tmp_path):
    X = data((9, 8))
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["X"] = X
    stored = StoredDense(tmp_path / "x.h5ad")
    for rows in (range(9), range(2, 5), range(0, 9, 2), range(4, 4), np.array([7, 0, 7])):
        for columns in (range(8), range(3, 5), np.array([6, 0]), range(0, 8, 3)):
            np.testing.assert_array_equal(stored.read(rows, columns), X[np.ix_(list(rows), list(columns))])


# -- Chunks of Zarr --


def test_the_length_of_a_chunk_of_blosc():
    """Bytes 12 to 15 of its head say how long it is; none is shorter than the head."""
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


def test_which_arrays_are_by_blosc(tmp_path):
    heads = {
        "a/zarr.json": {"codecs": [{"name": "bytes"}, {"name": "blosc"}]},
        "b/zarr.json": {"codecs": [{"name": "blosc"}, {"name": "bytes"}, {"name": "gzip"}]},
        "c/.zarray": {"compressor": {"id": "blosc"}},
        "d/.zarray": {"compressor": None},
        "zarr.json": {"codecs": [{"name": "blosc"}]},  # of the whole, which is no array
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


def test_a_folder_in_the_terms_of_zarr_2(tmp_path, monkeypatch):
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
    assert store["b/0.1"] == chunk[:-1]  # its own codec will notice
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


def test_what_a_library_says_of_a_damaged_file(tmp_path):
    for error, said in ((RuntimeError("one\ntwo"), r"\(one\)"), (RuntimeError(), r"\(RuntimeError\)")):
        with pytest.raises(OSError, match=said), explained(tmp_path, OSError):
            raise error
    for error in (DataFileError("mine"), ImportError("mine"), MemoryError("mine")):
        with pytest.raises(type(error), match=r"^mine$"), explained(tmp_path, KeyError):
            raise error


# -- Temporary files --


def test_a_temporary_file_and_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    n_open = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    scratch = Scratch(10)
    assert scratch.path.parent == tmp_path
    assert scratch.path.name.startswith(f"zeronorm-{os.getpid()}-")
    assert scratch.path.suffix == ".bands"
    if n_open is not None:
        assert len(os.listdir("/proc/self/fd")) == n_open
    assert pickle.loads(pickle.dumps(scratch)).path == scratch.path
    path = scratch.path
    annotated._remove(path, os.getpid() + 1)
    assert path.exists()
    del scratch
    gc.collect()
    assert not path.exists()
    annotated._remove(path, os.getpid())  # gone already


def test_a_temporary_file_that_is_too_short(tmp_path):
    bands = SparseBands([sparse.csc_array(data((4, 3)))], 3, 0)
    with open(bands.path, "rb") as stream:
        assert bands._array(stream, 0, 4, np.int64).tolist() == [0, 4, 8, 12]
        stream.seek(0, 2)
        end = stream.tell()
        assert (
            bands._array(stream, end - 16, 2, np.float64).tolist()
            == bands.stored(range(3)).data[-2:].tolist()
        )
        with pytest.raises(DataFileError, match="has become shorter"):
            bands._array(stream, end - 16, 3, np.float64)


# -- Packed files --


def changed_index(path, **changes):
    """The same file with other entries in its index, and a checksum that is right."""
    content = path.read_bytes()
    magic, place, length, _ = packing._HEAD.unpack(content[: packing._HEAD.size])
    index = {**json.loads(content[place : place + length]), **changes}
    text = json.dumps({key: value for key, value in index.items() if value != "left out"}).encode()
    head = packing._HEAD.pack(magic, place, len(text), zlib.crc32(text))
    path.write_bytes(head + content[len(head) : place] + text)
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


def test_what_older_packed_files_do_not_say(tmp_path):
    path = pack(data((4, 5)), tmp_path / "x.zncols", about={"target": 1})
    assert (PackedFile(path).known_finite, PackedFile(path).about) == (True, {"target": 1})
    changed_index(path, finite="left out", about="left out")
    assert (PackedFile(path).known_finite, PackedFile(path).about) == (False, {})


def test_a_head_that_is_cut_or_of_another_file(tmp_path):
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


def test_a_piece_has_one_column_at_least(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_PIECE_BYTES", 1)
    monkeypatch.setattr(packing, "_BLOCK_BYTES", 1)
    X = data((3, 4))
    file = PackedFile(pack(X, tmp_path / "x.zncols"))
    assert (file._width, len(file._checksums)) == (1, 4)
    np.testing.assert_array_equal(file.read(range(3), range(4)), X)


def test_a_disk_with_just_enough_room(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=10))
    require_room(tmp_path / "x", 10)
    with pytest.raises(ValueError, match="GiB are free on that disk"):
        require_room(tmp_path / "x", 11)


def test_all_is_on_the_disk_before_the_name_is_given(tmp_path, monkeypatch):
    path, seen = tmp_path / "x.zncols", []
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append((os.fstat(handle).st_size, path.exists())))
    pack(data((4, 5)), path)
    assert seen == [(path.stat().st_size, False)]


def test_a_conversion_that_fails_on_the_way_leaves_no_draft(tmp_path):
    X = data((4, 5))
    X[2, 3] = np.nan
    with pytest.raises(ValueError, match="hold NaN"):
        pack(as_design(X, check_finite=False), tmp_path / "x.zncols")
    assert os.listdir(tmp_path) == []


def test_to_ask_for_a_process_sends_it_nothing(monkeypatch):
    sent = []
    monkeypatch.setattr(os, "kill", lambda process, number: sent.append((process, number)))
    assert packing.is_running("12345")
    assert sent == [(12345, 0)]


# -- Lines of a file --


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_a_stream_that_gives_little_at_a_time(at_once):
    class Slow(io.BytesIO):
        def readinto(self, buffer):
            return super().readinto(memoryview(buffer)[:at_once])

    stored = np.arange(6.0)
    stream, file = Slow(stored.tobytes()), SimpleNamespace(path="x")
    out = np.empty((2, 2))
    chunked._read_into(stream, file, 8, out)
    np.testing.assert_array_equal(out.ravel(), stored[1:5])
    chunked._read_into(stream, file, 0, out[:0])
    with pytest.raises(DataFileError, match="has become shorter"):
        chunked._read_into(stream, file, 24, out)


def test_gaps_and_blocks_of_one_line_at_least(tmp_path, monkeypatch):
    X = data((9, 40))
    np.save(tmp_path / "x.npy", X)
    file, reads, into = open_files(tmp_path / "x.npy")._files[0], [], chunked._read_into
    monkeypatch.setattr(
        chunked, "_read_into", lambda s, f, o, out: reads.append(out.shape) or into(s, f, o, out)
    )
    monkeypatch.setattr(chunked, "_LARGEST_GAP", 1)
    np.testing.assert_array_equal(file.read(range(1), np.array([2, 4, 5])), X[:1, [2, 4, 5]])
    assert reads == [(1,), (2,)]
    monkeypatch.setattr(chunked, "_LARGEST_GAP", 10**6)
    monkeypatch.setattr(chunked, "_CONVERTED_BYTES", 1)
    reads.clear()
    np.testing.assert_array_equal(file.read(np.array([3, 4, 8]), range(40)), X[[3, 4, 8]])
    assert reads == [(1, 40)] * 3
    part = chunked._PartOfFiles(X)
    for n_bytes, width in ((1, 1), (8 * 9 * 5 - 1, 4), (8 * 9 * 5, 5)):
        monkeypatch.setattr(chunked, "_CONVERTED_BYTES", n_bytes)
        assert part._scratch_width() == width
    assert chunked._PartOfFiles(X[:0])._scratch_width() == 8 * 9 * 5 // 8


def test_how_files_are_stored(tmp_path):
    X = data((4, 3))
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    pl.DataFrame(X, schema=list("abc")).write_parquet(tmp_path / "x.parquet")
    pack(X, tmp_path / "x.zncols")
    for name, order, at_once, is_known in (
        ("rows.npy", "C", 1, False),
        ("columns.npy", "F", 1, False),
        ("x.parquet", "F", 1, False),
        ("x.zncols", "F", (4 << 20) // (4 * 8), True),
    ):
        design = open_files(tmp_path / name)
        file = design._files[0]
        assert (design._order, file.columns_at_once) == (order, at_once)
        assert design._known_finite == file.known_finite == is_known
    both = open_files([tmp_path / "rows.npy", tmp_path / "x.zncols"])
    assert not both._known_finite
    assert open_files([tmp_path / "x.zncols"] * 2)._known_finite


def test_types_of_the_columns_of_a_table(tmp_path):
    path = tmp_path / "x.parquet"
    for kinds, dtype in (
        ((pl.Float32, pl.Float32), np.float32),
        ((pl.Float32, pl.Float64), np.float64),
        ((pl.Float32, pl.Boolean), np.float64),
        ((pl.Int8, pl.Boolean), np.float64),
    ):
        frame = pl.DataFrame({"a": [1, 0], "b": [0, 1]}).with_columns(pl.col("a").cast(kinds[0]))
        frame.with_columns(pl.col("b").cast(kinds[1])).write_parquet(path)
        design = as_design(path)
        assert design.dtype == dtype
        np.testing.assert_array_equal(design.block(slice(None)), [[1.0, 0.0], [0.0, 1.0]])
    pl.DataFrame({"a": [1, 0], "t": ["x", "y"]}).write_parquet(path)
    with pytest.raises(ValueError, match="Column 't'"):
        as_design(path)


def test_a_numpy_file_runs_no_program(tmp_path):
    """What is pickled could be anything."""

    class Program:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    (tmp_path / "x.npy").write_bytes(pickle.dumps(Program()))
    with pytest.raises(ValueError, match="cannot be read as a NumPy file"):
        as_design(tmp_path / "x.npy")
    assert not (tmp_path / "made").exists()


def test_several_files_are_read_as_one(tmp_path):
    """Each part of a selection from its own file, in the smaller type that holds all."""
    X = data((5, 9)).astype(np.float32)
    parts = []
    for k, (first, last) in enumerate(((0, 2), (2, 3), (3, 9))):
        np.save(tmp_path / f"{k}.npy", X[:, first:last])
        parts.append(tmp_path / f"{k}.npy")
    design = open_files(parts)
    assert design.dtype == np.float32
    for columns in ([8, 2, 0, 2], slice(1, 4), [3], [2]):
        chosen = design.take(columns)
        np.testing.assert_array_equal(chosen.block(slice(None)), X[:, columns])
        np.testing.assert_allclose(
            chosen.dot(np.ones(chosen.n_features)), X[:, columns].sum(axis=1), rtol=1e-6
        )
        (stored,) = chosen._from_arrays(lambda columns, array: array)
        assert stored.dtype == np.float32
