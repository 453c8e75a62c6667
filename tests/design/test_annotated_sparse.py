"""Sparse matrices of AnnData: budgets, parts that do not fit, indices and names."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from design.arrays import data
from zeronorm import as_design
from zeronorm.design import _annotated as annotated
from zeronorm.design._chunked import DataFileError
from zeronorm.design._sparse import SparseDesign, SparseFileDesign

h5py = pytest.importorskip("h5py", reason="h5py is not installed")


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
