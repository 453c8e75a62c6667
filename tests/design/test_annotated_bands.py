"""Bands of rows that are stored by column in a temporary file, and the removal of that file."""

from __future__ import annotations

import gc
import os
import pickle

import numpy as np
import pytest
from scipy import sparse

from design.arrays import data
from zeronorm import as_design
from zeronorm.design import _annotated as annotated
from zeronorm.design import _chunked as chunked
from zeronorm.design._annotated import DenseBands, Scratch, SparseBands, StoredDense, design_of_rows
from zeronorm.design._chunked import DataFileError
from zeronorm.design._sparse import SparseFileDesign

h5py = pytest.importorskip("h5py", reason="h5py is not installed")


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
    assert stored.by_column(10, 30) is stored  # each chunk is decoded at most twice
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


def test_a_temporary_file_is_removed_by_its_process(tmp_path, monkeypatch):
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
    annotated._remove(path, os.getpid())  # already removed


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


def test_space_for_sparse_rows_stored_by_column_is_twice_their_size(tmp_path, monkeypatch):
    anndata = pytest.importorskip("anndata")
    X = sparse.csr_matrix(np.where(data((30, 20)) > 1.0, data((30, 20)), 0.0))
    anndata.AnnData(X).write_h5ad(tmp_path / "x.h5ad")
    asked = []
    monkeypatch.setattr(annotated, "require_room", lambda path, n_bytes: asked.append(n_bytes))
    design = as_design(tmp_path / "x.h5ad", memory_budget=2000)
    assert asked == [2 * (8 + 4) * X.nnz]
    np.testing.assert_array_equal(design.block(slice(None)), X.toarray())


@pytest.mark.parametrize("is_sparse", [False, True])
def test_rows_that_come_band_by_band(is_sparse):
    X = np.where(np.random.default_rng(0).random((11, 7)) < 0.4, data((11, 7)), 0.0)
    bands = [X[:4], X[4:5], X[5:]]
    made = (sparse.csr_array(band) if is_sparse else band for band in bands)
    design = design_of_rows(made, 7, 10**6, 8 * 77, is_sparse=is_sparse)
    assert isinstance(design, SparseFileDesign if is_sparse else chunked.ChunkedDesign)
    assert design._known_finite
    np.testing.assert_array_equal(design.block(slice(None)), X)
    np.testing.assert_array_equal(
        design.take([6, 1, 6]).take_rows([10, 3]).block(slice(None)), X[[10, 3]][:, [6, 1, 6]]
    )
    np.testing.assert_allclose(design.gram(), X @ X.T)
    np.testing.assert_allclose(design.column_stats().mean, X.mean(axis=0))
    X[6, 3] = np.inf
    made = (sparse.csr_array(band) if is_sparse else band for band in bands)
    with pytest.raises(ValueError, match="infinity"):
        design_of_rows(made, 7, 10**6, 8 * 77, is_sparse=is_sparse)


def test_bands_are_joined_by_column():
    X = np.where(np.random.default_rng(0).random((11, 7)) < 0.4, data((11, 7)), 0.0)
    bands = annotated.SparseBands((sparse.csc_array(part) for part in (X[:4], X[4:5], X[5:])), 7, 0)
    assert bands.shape == (11, 7)
    assert bands.stored_per_column.tolist() == (X != 0.0).sum(axis=0).tolist()
    for columns in (range(7), range(2, 5), range(6, 7)):
        found = bands.stored(columns)
        assert (found.format, found.has_canonical_format) == ("csc", True)
        np.testing.assert_array_equal(found.toarray(), X[:, columns])
