"""Dask arrays fulfil the contract, whatever their chunks, and are never computed as a whole."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from design.arrays import numbers
from zeronorm import FisherScore, GramSchmidt, as_design
from zeronorm.design import column_range
from zeronorm.design._dask import DaskDesign, is_dask_array
from zeronorm.testing import check_design

da = pytest.importorskip("dask.array", reason="dask is not installed")


@pytest.fixture(autouse=True)
def _in_this_thread():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def test_the_contract():
    X = numbers((5, 6))
    check_design(lambda: as_design(da.from_array(X, chunks=(3, 4))), X)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize("chunks", [(-1, 5), (4, 5), (4, -1)])
def test_the_contract_for_other_chunks_and_types(chunks, dtype):
    X = numbers((9, 12), dtype=dtype)
    check_design(lambda: as_design(da.from_array(X, chunks=chunks)), X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_types(dtype):
    X = numbers((9, 12), dtype=dtype)
    design = as_design(da.from_array(X, chunks=(-1, 5)))
    assert isinstance(design, DaskDesign)
    assert design.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_allclose(design.gram(), X.astype(float) @ X.T.astype(float), rtol=1e-12)
    np.testing.assert_array_equal(design.block([3, 0]), X[:, [3, 0]])


def test_selectors_take_dask_arrays():
    X = numbers((40, 30))
    y = np.arange(40) % 2
    X[:, 12] += 3.0 * y
    for selector in (FisherScore(5), GramSchmidt(5)):
        expected = selector.fit(X, y).path_.order.tolist()
        assert selector.fit(da.from_array(X, chunks=(-1, 7)), y).path_.order.tolist() == expected


def test_statistics_compute_each_chunk_once():
    computed = []

    def chunk(block_info=None):
        computed.append(block_info[None]["chunk-location"])
        return np.ones(block_info[None]["chunk-shape"])

    n_chunks, width = 6, 3000
    X = da.map_blocks(chunk, chunks=((20,), (width,) * n_chunks), dtype=float, meta=np.empty((0, 0)))
    design = DaskDesign(X)
    assert [s.stop - s.start for s, _ in design.iter_blocks()] == [width] * n_chunks
    computed.clear()
    design.column_stats()
    assert sorted(computed) == [(0, j) for j in range(n_chunks)]


def test_unknown_sizes_are_refused():
    X = da.from_array(numbers((9, 12)), chunks=(3, -1))
    with pytest.raises(ValueError, match=r"must be known.*compute_chunk_sizes"):
        as_design(X[X[:, 0] > 0])


def test_wrong_kinds_are_refused():
    with pytest.raises(ValueError, match="must be two-dimensional"):
        as_design(da.ones(5))
    with pytest.raises(ValueError, match="type complex128"):
        as_design(da.ones((2, 2), dtype=complex))


def test_values_that_are_not_finite_are_named():
    X = numbers((9, 12))
    X[2, 7] = np.inf
    with pytest.raises(ValueError, match="contains infinity: first found in row 2, column 7"):
        as_design(da.from_array(X, chunks=(4, 4)))


def counted_array(n_chunks=6, width=50, n=20):
    """A Dask array that records which chunks are computed."""
    computed = []

    def chunk(block_info=None):
        location = block_info[None]["chunk-location"]
        computed.append(location)
        return np.random.default_rng(location[1]).normal(size=block_info[None]["chunk-shape"])

    X = da.map_blocks(chunk, chunks=((n,), (width,) * n_chunks), dtype=float, meta=np.empty((0, 0)))
    return X, computed


OPERATIONS = {
    "gram": lambda d: d.gram(),
    "scaled gram": lambda d: d.gram(np.arange(d.n_features) + 1.0),
    "gram_adjoint": lambda d: d.gram_adjoint(np.eye(d.n_samples)),
    "dot": lambda d: d.dot(np.ones(d.n_features)),
    "transpose_dot": lambda d: d.transpose_dot(np.ones(d.n_samples)),
    "sandwich": lambda d: d.sandwich(np.ones(d.n_samples)),
    "squared_norms": lambda d: d.squared_norms(),
    "column_stats": lambda d: d.column_stats(np.arange(d.n_samples) % 2),
    "column_range": column_range,
}


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_computes_each_chunk_once(name, standardize):
    X, computed = counted_array()
    design = DaskDesign(X)
    design = design.standardized() if standardize else design
    computed.clear()
    OPERATIONS[name](design)
    is_known = standardize and name == "squared_norms"
    assert sorted(computed) == ([] if is_known else [(0, j) for j in range(6)])


def test_what_fits_into_memory_is_computed_once(monkeypatch):
    X, computed = counted_array()
    computed.clear()
    design = as_design(X).standardized()
    design.gram()
    assert len(computed) == 6
    monkeypatch.setattr("zeronorm.design._dask.available_bytes", lambda: X.nbytes)
    computed.clear()
    design = as_design(X)
    design.gram()
    assert len(computed) == 12


@pytest.mark.parametrize("chunks", [(-1, 4), (3, 4)])
def test_the_standardized_view(chunks):
    X = numbers((5, 6)) + 1000.0
    view = as_design(X).standardized()
    check_design(
        lambda: as_design(da.from_array(X, chunks=chunks)).standardized(),
        (X - view.affine.mean) / view.affine.scale,
    )


def test_tall_arrays_are_used_by_rows():
    X = numbers((300, 4))
    design = as_design(da.from_array(X, chunks=(100, 2)))
    np.testing.assert_allclose(design.sandwich(np.ones(300)), X.T @ X, rtol=1e-12)
    np.testing.assert_allclose(design.dot(np.ones(4)), X.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(design.transpose_dot(np.ones(300)), X.sum(axis=0), rtol=1e-12)


def test_an_operation_reads_each_chunk_once_and_only_those_it_needs(monkeypatch):
    """Also after selections of selections, in any order, which make no copies."""
    monkeypatch.setattr("zeronorm.design._dask.available_bytes", lambda: 0)  # nothing is persisted
    X = np.random.default_rng(0).normal(size=(12, 40))
    seen = []

    def read(block, block_info=None):
        seen.append(block_info[None]["chunk-location"][1])
        return block

    array = da.from_array(X, chunks=(-1, 10)).map_blocks(read, dtype=X.dtype, meta=np.empty((0, 0)))
    rows, first = np.array([7, 2, 9, 4, 0]), np.array([35, 3, 17, 4, 39, 12])
    part = as_design(array, check_finite=False).standardized().take(first).take_rows(rows).take([4, 1, 0, 2])
    expected = as_design(X).standardized().take(first).take_rows(rows).take([4, 1, 0, 2])
    v = np.arange(5.0)
    for operation in (
        lambda d: d.gram(np.arange(4.0)),
        lambda d: d.transpose_dot(v),
        lambda d: d.dot(np.arange(4.0)),
        lambda d: d.gram_adjoint(np.outer(v, v)),
        lambda d: d.column_stats(np.array([0, 1, 0, 1, 1])).class_mean,
        lambda d: d.squared_norms(),
        lambda d: np.array(column_range(d)),
        lambda d: d.cross_gram(expected),
    ):
        seen.clear()
        np.testing.assert_allclose(operation(part), operation(expected), atol=1e-12)
        assert sorted(seen) == [0, 1, 3]


def test_chunks_alone_do_not_make_an_array_of_dask():
    assert is_dask_array(da.ones((4, 2)))
    assert not is_dask_array(
        SimpleNamespace(chunks=(2, 2), shape=(4, 2))
    )  # HDF5 and Zarr arrays have chunks too
    assert not is_dask_array(np.ones((4, 2)))


@pytest.mark.parametrize(
    ("shape", "chunks", "n_blocks"),
    [
        ((8, 8), (4, 8), (1, 1)),  # wide: chunks hold all samples
        ((32, 8), (8, 8), (1, 1)),
        ((33, 8), (11, 4), (3, 2)),  # tall: unchanged
        ((8, 8), (8, 2), (1, 4)),
    ],
)
def test_wide_arrays_are_rechunked_to_hold_all_samples(shape, chunks, n_blocks):
    X = numbers(shape)
    design = as_design(da.from_array(X, chunks=chunks))
    assert design._array.numblocks == n_blocks
    assert design._keeps_indices == (n_blocks[0] == 1)


def test_parts_of_a_tall_array_in_bands_of_rows():
    X = numbers((40, 5))
    names = list("abcde")
    design = as_design(da.from_array(X, chunks=(10, 2)), feature_names=names)
    view = design.standardized()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for found, wanted in ((design, X), (view, Z)):
        part = found.take([4, 0, 4]).take_rows(np.arange(40)[::-3])
        exact = wanted[::-3][:, [4, 0, 4]]
        np.testing.assert_allclose(part.block(slice(None)), exact, atol=1e-12)
        np.testing.assert_allclose(part.block([2, 1]), exact[:, [2, 1]], atol=1e-12)
        np.testing.assert_allclose(
            part.gram([1.0, 2.0, 3.0]), (exact * [1.0, 2.0, 3.0]) @ exact.T, atol=1e-10
        )
        np.testing.assert_allclose(
            part.sandwich(np.arange(14.0)), (exact.T * np.arange(14.0)) @ exact, atol=1e-10
        )
        np.testing.assert_allclose(part.column_stats().variance, exact.var(axis=0), atol=1e-12)
        low, high = column_range(found.take_rows(slice(5, 25)))
        np.testing.assert_allclose(low, wanted[5:25].min(axis=0), atol=1e-12)
        np.testing.assert_allclose(high, wanted[5:25].max(axis=0), atol=1e-12)
    assert design.take([4, 0]).feature_names.tolist() == ["e", "a"]
    assert design.take_rows([4, 0]).feature_names.tolist() == names
    other = as_design(X[:3]).standardized()
    exact = (X[:3] - other.affine.mean) / other.affine.scale
    np.testing.assert_allclose(view.cross_gram(other), Z @ exact.T, atol=1e-10)
    np.testing.assert_allclose(
        view.cross_gram(view.take_rows([3, 1]), np.arange(5.0)),
        (Z * np.arange(5.0)) @ Z[[3, 1]].T,
        atol=1e-10,
    )


def test_an_array_without_elements():
    for shape in ((0, 4), (4, 0)):
        design = DaskDesign(da.ones(shape))
        assert design._is_empty
        assert design._surely_finite()
        n, p = shape
        np.testing.assert_array_equal(design.gram(), np.zeros((n, n)))
        np.testing.assert_array_equal(design.sandwich(np.ones(n)), np.zeros((p, p)))
        np.testing.assert_array_equal(design.dot(np.ones(p)), np.zeros(n))
        np.testing.assert_array_equal(design.transpose_dot(np.ones(n)), np.zeros(p))
        np.testing.assert_array_equal(design.squared_norms(), np.zeros(p))
        np.testing.assert_array_equal(design.gram_adjoint(np.ones((n, n))), np.zeros(p))
        view = design.transformed(np.ones(p), np.ones(p))
        assert view.gram().shape == (n, n)
        assert view.dot(np.ones(p)).shape == (n,)
    with pytest.raises(ValueError, match="at least one row"):
        as_design(da.ones((0, 4)))


def test_all_rows_and_columns_in_another_order():
    X = numbers((6, 8))
    design = as_design(da.from_array(X, chunks=(-1, 3)))
    backwards = np.arange(8)[::-1]
    for part, exact in (
        (design.take(backwards), X[:, ::-1]),
        (design.take_rows(np.arange(6)[::-1]), X[::-1]),
        (design.take(backwards).take_rows([5, 4, 3, 2, 1, 0]), X[::-1, ::-1]),
        (design.take(slice(2, 7)), X[:, 2:7]),
        (design.take_rows(slice(1, 5)), X[1:5]),
        (design.take_rows(slice(0, 6, 2)), X[::2]),
    ):
        n, p = exact.shape
        np.testing.assert_array_equal(part.block(slice(None)), exact)
        np.testing.assert_allclose(part.sandwich(np.arange(n)), (exact.T * np.arange(n)) @ exact, atol=1e-10)
        np.testing.assert_allclose(part.dot(np.arange(p)), exact @ np.arange(p), atol=1e-10)
        np.testing.assert_allclose(part.cross_gram(part), exact @ exact.T, atol=1e-10)
        np.testing.assert_array_equal(column_range(part)[0], exact.min(axis=0))


def test_chunks_without_columns_make_no_task():
    X = numbers((4, 6))
    array = da.concatenate([da.from_array(X[:, :2]), da.empty((4, 0)), da.from_array(X[:, 2:])], axis=1)
    array = array.rechunk(((4,), (2, 0, 4))) if array.numblocks[1] != 3 else array
    assert array.numblocks == (1, 3)
    design = DaskDesign(array)
    assert [piece.position for piece in design._by_columns()] == [slice(0, 2), slice(2, 6)]
    np.testing.assert_array_equal(column_range(design)[1], X.max(axis=0))


@pytest.mark.parametrize("chunks", [(-1, 4), (2, 4)])
def test_no_operation_copies_a_block_to_the_caller(chunks, monkeypatch):
    X, Z = numbers((6, 9)), numbers((1, 9), seed=1)
    design = DaskDesign(da.from_array(X, chunks=chunks))
    others = [(design, X), (as_design(Z), Z), (design.take_rows([3]), X[[3]])]

    def refuse(*_):
        raise AssertionError("a block came to the host")

    monkeypatch.setattr(DaskDesign, "_fill", refuse)
    for name, operation in OPERATIONS.items():
        found, exact = operation(design), operation(as_design(X))
        if name == "column_stats":
            found, exact = found.class_mean, exact.class_mean
        np.testing.assert_allclose(found, exact, atol=1e-10)
    for other, exact in others:
        np.testing.assert_allclose(design.cross_gram(other), X @ exact.T, atol=1e-10)
        scale = np.arange(9.0)
        np.testing.assert_allclose(design.cross_gram(other, scale), (X * scale) @ exact.T, atol=1e-10)
    assert design._surely_finite()
    monkeypatch.undo()
    assert design.cross_gram(as_design(Z).take_rows([])).shape == (6, 0)


def test_wrong_arguments_are_refused_before_a_task_begins():
    design = as_design(da.from_array(numbers((5, 4)), chunks=(-1, 2)))
    with pytest.raises(ValueError, match="5 integer class codes"):
        design.column_stats(np.linspace(0.0, 1.0, 5))
    with pytest.raises(ValueError, match="'sample_weight' must have length 5"):
        design.column_stats(None, np.ones(4))
    nothing = DaskDesign(da.ones((3, 0))).column_stats([0, 1, 1], [1.0, 2.0, 4.0])
    assert (nothing.count.tolist(), nothing.weight.tolist()) == ([1, 2], [1.0, 6.0])
    with pytest.raises(ValueError, match="at least one sample"):
        column_range(DaskDesign(da.ones((0, 3))))


def test_columns_that_are_constant_up_to_rounding_are_zero():
    X = numbers((8, 5))
    X[:, 3] = np.where(np.arange(8) % 2, 1e6, np.nextafter(1e6, 2e6))
    view = as_design(da.from_array(X, chunks=(-1, 2))).standardized()
    assert view.affine.zero_columns.tolist() == [False, False, False, True, False]
    assert view.transpose_dot(np.arange(8.0))[3] == 0.0
    assert view.gram_adjoint(np.eye(8))[3] == 0.0
    assert view.sandwich(np.ones(8))[3].tolist() == [0.0] * 5
    np.testing.assert_allclose(view.gram(), as_design(X).standardized().gram(), atol=1e-10)


def test_types_and_memory(monkeypatch):
    assert as_design(da.ones((3, 2), dtype=np.float16)).dtype == np.float32
    assert as_design(da.ones((3, 2), dtype=bool)).dtype == np.float64
    monkeypatch.setattr("zeronorm.design._dask.available_bytes", lambda: None)
    X, computed = counted_array(n_chunks=2)
    computed.clear()
    design = as_design(X, check_finite=False)
    assert not computed  # free memory is unknown: not persisted
    design.gram()
    design.gram()
    assert len(computed) == 4
    with pytest.raises(ValueError, match="two-dimensional"):
        as_design(da.ones((2, 2), dtype="M8[s]"))


def test_a_dask_task_that_fails_is_named():
    da = pytest.importorskip("dask.array", reason="dask is not installed")

    def fail(block):
        raise KeyError("lost chunk")

    X = da.ones((30, 12), chunks=(30, 4)).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(RuntimeError, match=r"Dask could not compute.*KeyError.*lost chunk"):
        as_design(X)
