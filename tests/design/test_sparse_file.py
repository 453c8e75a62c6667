"""Sparse columns on disk are read in parts that fit into the budget."""

from __future__ import annotations

import numpy as np
import pytest

from design.arrays import Columns, data
from zeronorm.design._sparse import SparseDesign, SparseFileDesign


@pytest.mark.parametrize("budget", [200, 2000, 10**6])
def test_sparse_columns_on_disk_are_read_in_parts(budget):
    X = np.where(np.random.default_rng(0).random((9, 30)) < 0.5, data((9, 30)), 0.0)
    source = Columns(X)
    design = SparseFileDesign(source, memory_budget=budget)
    cuts = design._cuts()
    assert [cut.start for cut in cuts[1:]] == [cut.stop for cut in cuts[:-1]]
    assert (cuts[0].start, cuts[-1].stop) == (0, 30)
    sizes = 12 * source.stored_per_column + 16
    for cut in cuts:
        assert sizes[cut].sum() <= budget // 8 or cut.stop - cut.start == 1
        if cut.stop < 30:
            assert sizes[cut.start : cut.stop + 1].sum() > budget // 8
    d = np.linspace(-1.0, 1.0, 9)
    np.testing.assert_allclose(design.sandwich(np.abs(d)), (X.T * np.abs(d)) @ X, atol=1e-12)
    small = design.take([3])
    assert isinstance(small, SparseDesign) == (4 * (sizes[3] - 16 + 8) <= budget)
    half = design.take_rows(range(3)).take(range(10))
    needed = 4 * (3 / 9 * (sizes[:10] - 16).sum() + 80)
    assert isinstance(half, SparseDesign) == (needed <= budget)
    np.testing.assert_array_equal(half.block(slice(None)), X[:3, :10])


@pytest.mark.parametrize(("share", "n_bands"), [(8.001, 1), (8, 2), (4, 3), (1, 9)])
def test_products_of_features_on_disk_go_band_by_band(share, n_bands, monkeypatch):
    """Each band takes about an eighth of the budget."""
    X = np.where(np.random.default_rng(0).random((20, 6)) < 0.5, data((20, 6)), 0.0)
    source = Columns(X)
    n_bytes = 12 * source.matrix.nnz
    design = SparseFileDesign(source, memory_budget=int(np.ceil(share * n_bytes)))
    heights, read = [], SparseFileDesign._read_whole
    monkeypatch.setattr(
        SparseFileDesign, "_read_whole", lambda self: heights.append(self.n_samples) or read(self)
    )
    d = np.linspace(-1.0, 2.0, 20)
    np.testing.assert_allclose(design.sandwich(d), (X.T * d) @ X, atol=1e-12)
    assert len(heights) == n_bands
    assert sum(heights) == 20


def test_a_selection_of_sparse_columns_on_disk():
    X = np.where(np.random.default_rng(0).random((8, 10)) < 0.5, data((8, 10)), 0.0).astype(np.float32)
    design = SparseFileDesign(Columns(X), np.array(list("abcdefghij"), dtype=object), memory_budget=10)
    for part, chosen, names in (
        (design.take([9, 1, 9]), X[:, [9, 1, 9]], "jbj"),
        (design.take_rows([5, 0]), X[[5, 0]], "abcdefghij"),
        (design.take_rows(slice(1, 8, 3)), X[1:8:3], "abcdefghij"),
    ):
        assert isinstance(part, SparseFileDesign)
        assert part.dtype == np.float32
        assert "".join(part.feature_names) == names
        np.testing.assert_array_equal(part.block(slice(None)), chosen)
        found = part._read_whole()
        assert (found.shape, found.dtype) == (part.shape, np.float32)
        assert "".join(found.feature_names) == names
        np.testing.assert_array_equal(found.block(slice(None)), chosen)
    nothing = SparseFileDesign(Columns(X), memory_budget=10, columns=range(0))._read_whole()
    assert (nothing.shape, nothing.dtype) == ((8, 0), np.float32)


def test_columns_that_are_not_far_apart_are_read_together():
    """Gaps of up to 64 columns are read, not skipped."""
    X = np.where(np.random.default_rng(0).random((9, 200)) < 0.5, data((9, 200)), 0.0)
    for columns, spans in (([150, 1, 65, 150], [(1, 66), (150, 151)]), ([66, 1], [(1, 2), (66, 67)])):
        source = Columns(X)
        part = SparseFileDesign(source, rows=range(2, 9), columns=np.array(columns), memory_budget=10**6)
        np.testing.assert_array_equal(part.block(slice(None)), X[2:][:, columns])
        assert source.read == spans
