"""AnnData on disk: dense and sparse, HDF5 and Zarr, by row and by column, all equal to the array in memory."""

from __future__ import annotations

import gc
import os
import pickle
import tempfile
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from design.annotated_files import numbers, written
from zeronorm import as_design
from zeronorm.design import DataFileError, SparseDesign, pack
from zeronorm.design._annotated import DenseBands, SparseBands, StoredDense, _cut
from zeronorm.design._chunked import ChunkedDesign
from zeronorm.design._sparse import SparseFileDesign
from zeronorm.testing import check_design

anndata = pytest.importorskip("anndata", reason="anndata is not installed")


h5py = pytest.importorskip("h5py", reason="h5py is not installed")


pytestmark = [
    pytest.mark.filterwarnings("ignore:Writing zarr v2 data"),
    pytest.mark.filterwarnings("ignore:The codec"),
]


SMALL = 2000  # bytes: several blocks of columns, several bands of rows


FORMS = {"dense": np.asarray, "csr": sparse.csr_matrix, "csc": sparse.csc_matrix}


@pytest.mark.parametrize(
    ("backend", "form"),
    [
        ("h5ad", "dense"),
        ("h5ad", "csr"),
        ("h5ad", "csc"),
        # It would open 1,400 files; the values are tested below.
        pytest.param("zarr", "csc", marks=pytest.mark.slow),
    ],
)
def test_the_contract(tmp_path, backend, form):
    path = written(tmp_path, FORMS[form](numbers()), backend)
    design = as_design(path, memory_budget=SMALL)
    assert type(design) is (ChunkedDesign if form == "dense" else SparseFileDesign)
    check_design(lambda: design, numbers())


@pytest.mark.parametrize("budget", [SMALL, None])
@pytest.mark.parametrize("backend", ["h5ad", "zarr"])
@pytest.mark.parametrize("form", FORMS)
def test_values_and_names(tmp_path, backend, form, budget):
    design = as_design(written(tmp_path, FORMS[form](numbers()), backend), memory_budget=budget)
    np.testing.assert_array_equal(design.block(slice(None)), numbers())
    np.testing.assert_allclose(design.gram(), numbers() @ numbers().T)
    assert design.feature_names[10] == "gene 10"
    assert design.is_sparse == (form != "dense")
    assert isinstance(design, SparseDesign) == (form != "dense" and budget is None)


@pytest.mark.parametrize(
    ("column", "first"),
    [
        ({"values": ["A", "B"], "mask": [False, False]}, "A"),  # written by anndata 0.13 or later
        ({"values": ["A", "B"], "mask": [False, True]}, None),
        ({"values": ["A", "B"]}, "A"),
        ({"categories": ["B", "A"], "codes": [1, 0]}, "A"),
        ({"categories": ["B", "A"], "codes": [1, -1]}, None),
        ({"other": [0, 1]}, None),
    ],
)
def test_ways_to_store_the_names(tmp_path, column, first):
    path = written(tmp_path, numbers((7, 2)))
    with h5py.File(path, "a") as root:
        del root["var/_index"]
        for name, entries in column.items():
            root[f"var/_index/{name}"] = entries
    names = as_design(path).feature_names
    assert (None if names is None else names[0]) == first


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.bool_])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_other_types(tmp_path, form, dtype):
    X = numbers(dtype=dtype)
    design = as_design(written(tmp_path, FORMS[form](X)), memory_budget=SMALL)
    np.testing.assert_array_equal(design.block(slice(None)), X.astype(np.float64))
    assert design.dtype == (np.float32 if dtype == np.float32 else np.float64)


def test_narrow_chunks_are_read_without_a_temporary_file(tmp_path):
    X = numbers((40, 60))
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file.create_dataset("X", data=X, chunks=(10, 7), compression="gzip")
    path = tmp_path / "x.h5ad"
    design = as_design(path, memory_budget=1 << 17)
    assert isinstance(design._files[0], StoredDense)
    assert design._block_width() % 7 == 0
    np.testing.assert_array_equal(design.block([59, 3, 8]), X[:, [59, 3, 8]])
    np.testing.assert_array_equal(design.take_rows([5, 2]).block(slice(None)), X[[5, 2]])


def test_chunks_of_whole_rows_are_transposed_once(tmp_path, monkeypatch):
    X = numbers()
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file.create_dataset("X", data=X, chunks=(3, 11), compression="gzip")
    design = as_design(tmp_path / "x.h5ad", memory_budget=SMALL // 2)
    assert isinstance(design._files[0], DenseBands)
    monkeypatch.setattr(StoredDense, "read", None)
    check_design(lambda: design, X)


def test_the_temporary_file_is_removed_with_the_design(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    abandoned = tmp_path / "zeronorm-999999999-abc.bands"
    abandoned.write_bytes(b"left by a killed process")
    in_use = tmp_path / f"zeronorm-{os.getppid()}-abc.bands"
    in_use.write_bytes(b"of a process that runs")
    X = numbers()
    path = written(tmp_path, sparse.csr_matrix(X))
    design = as_design(path, memory_budget=SMALL)
    assert isinstance(design._source, SparseBands)
    assert len(design._source._bands) > 1
    bands = design._source.path
    again = pickle.loads(pickle.dumps(design))
    assert not abandoned.exists()
    assert in_use.exists()
    del again
    assert bands.exists()
    del design
    assert not bands.exists()


def test_unsorted_and_repeated_entries_are_summed(tmp_path):
    path = written(tmp_path, sparse.csr_matrix(np.ones((2, 3))))
    with h5py.File(path, "r+") as file:
        file["X/indices"][...] = [2, 0, 2, 1, 1, 0]
    expected = [[1.0, 0.0, 2.0], [1.0, 2.0, 0.0]]
    for budget in (128, None):
        np.testing.assert_array_equal(as_design(path, memory_budget=budget).block(slice(None)), expected)


def test_a_budget_is_kept(tmp_path):
    X = sparse.random(1000, 1000, density=0.2, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
    path, budget = written(tmp_path, X), 512 << 10
    for begin in (gc.collect, tracemalloc.start):  # the first call loads and compiles
        begin()
        gc.disable()  # collecting objects of other tests takes memory too
        design = as_design(path, memory_budget=budget)
        design.transpose_dot(np.ones(1000))
        design.column_stats()
        gc.enable()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    vectors = 20 * 8 * 1000
    assert peak < budget + vectors < 8 * X.nnz / 2


@pytest.mark.parametrize("form", FORMS)
def test_packing_reads_blocks(tmp_path, form):
    X = numbers()
    packed = pack(written(tmp_path, FORMS[form](X)), tmp_path / "x.zncols")
    np.testing.assert_array_equal(as_design(packed).block(slice(None)), X)
    assert as_design(packed).feature_names[3] == "gene 3"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [0, 100, -100, -1])
def test_a_truncated_file_is_refused(tmp_path, form, size):
    path = written(tmp_path, FORMS[form](numbers()))
    os.truncate(path, size if size >= 0 else path.stat().st_size + size)
    with pytest.raises(ValueError, match=r"x\.h5ad cannot be read as AnnData.*write it again"):
        as_design(path)


@pytest.mark.parametrize(("backend", "form"), [("h5ad", "dense"), ("h5ad", "csc"), ("zarr", "csc")])
def test_a_file_that_changes_is_noticed(tmp_path, backend, form):
    path = written(tmp_path, FORMS[form](numbers()), backend)
    design = as_design(path, memory_budget=SMALL)
    written(tmp_path, FORMS[form](numbers(seed=1)), backend)
    for file in [path, *path.rglob("*")]:
        os.utime(file, ns=(1, 1))
    with pytest.raises(DataFileError, match="has changed since it was opened"):
        design.gram()


def test_parts_that_do_not_fit_are_refused(tmp_path):
    path = written(tmp_path, sparse.csr_matrix(numbers()))
    with h5py.File(path, "r+") as file:
        file["X/indices"][5] = 11
    with pytest.raises(DataFileError, match=r"'indices' holds 11 at position 5"):
        as_design(path)
    with h5py.File(path, "r+") as file:
        file["X/indptr"][3] = 0
    with pytest.raises(ValueError, match="parts of the sparse matrix X do not fit together"):
        as_design(path)


@pytest.mark.parametrize("content", ["nothing", "text", "cube"])
def test_contents_other_than_a_matrix_are_refused(tmp_path, content):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        if content == "text":
            file["X"] = np.array([[b"a", b"b"]])
        elif content == "cube":
            file["X"] = np.zeros((2, 2, 2))
    with pytest.raises(ValueError, match=r"no matrix X|must hold real numbers|must have two dimensions"):
        as_design(tmp_path / "x.h5ad")


def test_a_sparse_file_cannot_be_combined_with_others(tmp_path):
    X = numbers()
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(ValueError, match="cannot be combined with other files"):
        as_design([tmp_path / "a.npy", written(tmp_path, sparse.csr_matrix(X))])


def test_lines_are_cut_by_their_stored_values():
    """Lines with 3, 1, 0, 9, 2 and 2 values are cut into parts of at most 4 values, or one line with more."""
    bounds = np.array([0, 3, 4, 4, 13, 15, 17])
    assert list(_cut(bounds, 4)) == [range(3), range(3, 4), range(4, 6)]
    assert list(_cut(bounds, 2)) == [range(1), range(1, 3), range(3, 4), range(4, 5), range(5, 6)]
    assert list(_cut(bounds, 100)) == [range(6)]
    assert list(_cut(np.array([0]), 4)) == []
