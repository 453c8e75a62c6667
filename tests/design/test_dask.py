"""Dask arrays keep the contract whatever their chunks, and are never computed as a whole."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm import FisherScore, GramSchmidt, as_design
from zeronorm.design.dask import DaskDesign
from zeronorm.testing import check_design

da = pytest.importorskip("dask.array", reason="dask is not installed")


@pytest.fixture(autouse=True)
def _in_this_thread():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def data(shape=(9, 12), dtype=np.float64, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 3.0 + 1.0).astype(dtype)


def test_the_contract():
    X = data((5, 6))
    check_design(lambda: as_design(da.from_array(X, chunks=(3, 4))), X)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize("chunks", [(-1, 5), (4, 5), (4, -1)])
def test_the_contract_for_other_chunks_and_types(chunks, dtype):
    X = data(dtype=dtype)
    check_design(lambda: as_design(da.from_array(X, chunks=chunks)), X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_types(dtype):
    X = data(dtype=dtype)
    design = as_design(da.from_array(X, chunks=(-1, 5)))
    assert isinstance(design, DaskDesign)
    assert design.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_allclose(design.gram(), X.astype(float) @ X.T.astype(float), rtol=1e-12)
    np.testing.assert_array_equal(design.block([3, 0]), X[:, [3, 0]])


def test_selectors_take_dask_arrays():
    X = data((40, 30))
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
    X = da.from_array(data(), chunks=(3, -1))
    with pytest.raises(ValueError, match=r"must be known.*compute_chunk_sizes"):
        as_design(X[X[:, 0] > 0])


def test_wrong_kinds_are_refused():
    with pytest.raises(ValueError, match="must be two-dimensional"):
        as_design(da.ones(5))
    with pytest.raises(ValueError, match="type complex128"):
        as_design(da.ones((2, 2), dtype=complex))


def test_values_that_are_not_finite_are_named():
    X = data()
    X[2, 7] = np.inf
    with pytest.raises(ValueError, match="contains infinity: first found in row 2, column 7"):
        as_design(da.from_array(X, chunks=(4, 4)))
