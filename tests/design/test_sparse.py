"""Sparse matrices: damaged structures are refused; stored columns; conversion of small data to one dense block."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from design.arrays import LABELS, data, samples
from zeronorm import L1SVM, FisherScore
from zeronorm.design import as_design
from zeronorm.design._convert import check_container
from zeronorm.design._sparse import check_structure


def damaged(make, array, position, value):
    X = make(np.where(np.abs(samples()) > 1.0, samples(), 0.0))
    getattr(X, array)[position] = value
    return X


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(
    ("array", "position", "value", "message"),
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
def test_sparse_structures_are_checked(make, array, position, value, message, selector):
    X = damaged(make, array, position, value)
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


def test_a_damaged_matrix_is_refused_as_a_container_too():
    X = sparse.csr_array(data((4, 3)))
    check_container(X)
    X.indices[2] = 7
    with pytest.raises(ValueError, match="holds 7 at position 2"):
        check_container(X)


def test_structures_of_each_format():
    X = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [3.0, 0.0, 0.0]]))
    for change, message in (
        (lambda m: m.indptr.__setitem__(1, -1), "must not decrease, but entry 1 is -1"),
        (lambda m: m.indptr.__setitem__(0, 1), "must begin with 0 and begins with 1"),
        (lambda m: setattr(m, "indptr", m.indptr[:-1]), "must have 4 entries and has 3"),
        (lambda m: setattr(m, "indices", m.indices[:-1]), "ends with 3, but 2 values are stored"),
        (lambda m: setattr(m, "data", m.data[:-1]), "ends with 3, but 2 values are stored"),
        (lambda m: m.indices.__setitem__(2, 3), r"'indices' holds 3 at position 2, not in 0\.\.2"),
    ):
        damaged = X.copy()
        change(damaged)
        with pytest.raises(ValueError, match=message):
            check_structure(damaged)
    longer = X.copy()
    longer.indices, longer.data = np.append(X.indices, 99), np.append(X.data, 9.0)
    check_structure(longer)  # entries after the last bound are ignored
    pairs = sparse.coo_array(X)
    check_structure(pairs)
    for axis, name in ((0, "row"), (1, "column")):
        wrong = pairs.copy()
        wrong.coords = tuple(np.where(k == axis, 3, c) for k, c in enumerate(pairs.coords))
        with pytest.raises(ValueError, match=f"'{name}' holds 3 at position 0"):
            check_structure(wrong)
    check_structure(sparse.lil_array(X))
    blocks = sparse.bsr_array(np.ones((2, 6)), blocksize=(1, 3))
    check_structure(blocks)
    blocks.indices[1] = 2
    with pytest.raises(ValueError, match=r"not in 0\.\.1"):
        check_structure(blocks)


def test_sparse_data_become_one_dense_block_only_when_it_is_small():
    X = sparse.random(3000, 2000, density=1e-3, format="csr", rng=np.random.default_rng(0))
    design = as_design(X)
    assert design.in_memory() is design
    view = design.standardized()
    assert view.in_memory() is view
    few = view.take(np.arange(0, 2000, 20))
    assert not few.in_memory().is_sparse
    np.testing.assert_array_equal(few.in_memory().block([3]), few.block([3]))
