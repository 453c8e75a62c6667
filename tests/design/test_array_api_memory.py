"""Memory of a device: sizes of blocks, lack of memory, and which selections are copied on the device."""

from __future__ import annotations

import numpy as np
import pytest

from design.arrays import numbers
from zeronorm import as_design
from zeronorm.design import _array_api as array_api
from zeronorm.design import contiguous
from zeronorm.design._array_api import ArrayApiDesign
from zeronorm.design._dense import DenseDesign
from zeronorm.testing import check_design

pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")


def test_blocks_of_few_columns_and_rows(xp, monkeypatch):
    monkeypatch.setattr(array_api, "block_bytes", lambda array, *wanted: 200)
    X = numbers((7, 23))
    check_design(lambda: as_design(xp.asarray(X)), X)


@pytest.mark.parametrize("n", [512, 515])
def test_gram_matrices_from_bands_of_rows(xp, n, monkeypatch):
    """Also with blocks of few columns: each adds to all bands."""
    monkeypatch.setattr(array_api, "block_bytes", lambda array, *wanted: 200)
    multiplied, add_outer = [], ArrayApiDesign._add_outer

    def counted(self, left, right, total):
        multiplied.append(left.shape[0] * right.shape[0] * left.shape[1])
        return add_outer(self, left, right, total)

    monkeypatch.setattr(ArrayApiDesign, "_add_outer", counted)
    X, scale = numbers((n, 23)), np.linspace(0.1, 2.0, 23)
    found = as_design(xp.asarray(X)).gram(scale)
    np.testing.assert_allclose(found, (X * scale) @ X.T, atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    assert sum(multiplied) < 0.75 * n * n * 23


def test_blocks_become_smaller_if_memory_is_short(xp, monkeypatch):
    X = numbers((6, 40))
    centered = ArrayApiDesign._centered

    def scarce(self, columns):
        if len(columns) > 3:
            raise MemoryError
        return centered(self, columns)

    monkeypatch.setattr(ArrayApiDesign, "_centered", scarce)
    design = as_design(xp.asarray(X))
    np.testing.assert_allclose(design.gram(), X @ X.T, rtol=1e-12)
    np.testing.assert_allclose(design.transpose_dot(X[:, 0]), X.T @ X[:, 0], rtol=1e-12)

    def none_left(self, columns):
        raise MemoryError

    monkeypatch.setattr(ArrayApiDesign, "_centered", none_left)
    with pytest.raises(MemoryError, match=r"memory of the device .* does not suffice.*move the data"):
        design.gram()


def test_lack_of_memory_between_bands_counts_none_of_them_twice(xp, monkeypatch):
    calls, add_outer = [], ArrayApiDesign._add_outer

    def scarce(self, left, right, total):
        calls.append(left.shape[1])
        if left.shape[1] > 10 and len(calls) == 3:
            raise MemoryError
        return add_outer(self, left, right, total)

    monkeypatch.setattr(ArrayApiDesign, "_add_outer", scarce)
    X = numbers((512, 40))
    np.testing.assert_allclose(as_design(xp.asarray(X)).gram(), X @ X.T, rtol=1e-12, atol=1e-12)
    assert calls == [40, 40, 40, *[20] * 8]


def test_large_selections_stay_on_the_device(xp):
    """Selections larger than 32 MiB are not copied to the host."""
    X = np.tile(numbers((32, 1000)), (2, 70))
    design = as_design(xp.asarray(X)).standardized()
    assert type(design.take([4, 1, 20, 8]).in_memory()).__name__ == "DenseDesign"
    part = design.take(np.arange(70_000)[::-1])
    for in_memory in (part.in_memory(), contiguous(part)):
        assert isinstance(in_memory, ArrayApiDesign)
        assert in_memory._array.shape == (64, 70_000)
        np.testing.assert_allclose(in_memory.gram(), part.gram(), rtol=1e-12, atol=1e-8)


@pytest.fixture
def asked(monkeypatch):
    """Records how many bytes are requested for each block, and grants ``granted`` bytes."""

    class Asked(list):
        granted = 10**6

    found = Asked()
    monkeypatch.setattr(
        array_api, "block_bytes", lambda array, wanted: found.append(wanted) or min(wanted, found.granted)
    )
    return found


def test_blocks_of_columns_and_rows_as_large_as_the_device_allows(xp, asked, monkeypatch):
    X = numbers((6, 10))
    design = as_design(xp.asarray(X), check_finite=False)
    asked.clear()
    for granted, width in ((1, 1), (8 * 6 * 3 - 1, 2), (8 * 6 * 3, 3), (10**6, 10)):
        asked.granted = granted
        slices = list(design._device_slices(6))
        assert [part.start for part in slices] == list(range(0, 10, width))
        assert [len(part) for part in slices[:-1]] == [width] * (len(slices) - 1)
        assert slices[-1].stop == 10
    assert set(asked) == {8 * 6 * 10}
    assert [len(part) for part in design._device_slices(6, 4)] == [4, 4, 2]
    asked.granted = 10**6
    assert list(design._device_slices(0)) == [range(10)]
    heights, take = [], ArrayApiDesign._take_rows
    monkeypatch.setattr(
        ArrayApiDesign, "_take_rows", lambda self, rows: heights.append(len(rows)) or take(self, rows)
    )
    d = np.linspace(-1.0, 1.0, 6)
    for granted, wanted in ((1, [1] * 6), (8 * 10 * 4 - 1, [3, 3]), (8 * 10 * 4, [4, 2]), (10**6, [6])):
        asked.granted = granted
        asked.clear()
        heights.clear()
        np.testing.assert_allclose(design.sandwich(d), (X.T * d) @ X, atol=1e-12)
        assert heights == wanted
        assert asked == [8 * 6 * 10]


def test_distances_need_one_matrix_of_all_pairs(xp, asked):
    X = numbers((6, 4))
    design = as_design(xp.asarray(X), check_finite=False)
    asked.clear()
    asked.granted = 8 * 36 - 1
    assert design.distances(np.ones(4)) is None
    assert asked == [8 * 36]
    asked.granted = 8 * 36
    expected = np.abs(X[:, None] - X[None]).sum(axis=2)
    np.testing.assert_allclose(design.distances(np.ones(4)), expected, atol=1e-12)
    assert design.take([]).distances(np.empty(0)) is None


def test_which_selections_are_copied_on_the_device(xp, monkeypatch):
    X = numbers((8, 30))
    names = np.array([f"g{j}" for j in range(30)], dtype=object)
    design = as_design(xp.asarray(X), feature_names=names)
    assert isinstance(contiguous(design), DenseDesign)
    monkeypatch.setattr(array_api, "_HOST_WORK", 8 * 30 * 8)
    assert isinstance(contiguous(design), DenseDesign)
    monkeypatch.setattr(array_api, "_HOST_WORK", 8 * 30 * 8 - 1)
    assert contiguous(design) is design
    monkeypatch.setattr(array_api, "_HOST_WORK", 8 * 30 * 8)
    for apart, samples, stays in ((True, 7, True), (True, 8, False), (False, 7, False)):
        monkeypatch.setattr(array_api, "has_own_memory", lambda array, apart=apart: apart)
        monkeypatch.setattr(array_api, "_HOST_SAMPLES", samples)
        assert isinstance(contiguous(design), DenseDesign)
        assert (design.in_memory() is design) == stays
    ranges = design.take(slice(2, 29)).take_rows(slice(1, 8))
    monkeypatch.setattr(array_api, "_HOST_WORK", 1)
    assert contiguous(ranges) is ranges
    view = design.standardized()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for whole, exact in ((design, X), (view, Z)):
        for rows, columns in (([5, 2], slice(0, 9)), (slice(0, 5), [9, 3]), ([5, 2], [9, 3])):
            part = whole.take(columns).take_rows(rows)
            together = contiguous(part)
            assert tuple(together._array.shape) == part.shape
            np.testing.assert_allclose(together.block(slice(None)), exact[rows][:, columns], atol=1e-12)
            if whole is design:
                assert together.feature_names.tolist() == names[columns].tolist()
    rounded = X.copy()
    rounded[:, 4] = np.where(np.arange(8) % 2, 1e6, np.nextafter(1e6, 2e6))
    few = as_design(xp.asarray(rounded)).standardized().take([9, 4])
    moved = contiguous(few)
    assert moved is not few
    assert moved.affine.zero_columns.tolist() == [False, True]
    assert not moved.block([1]).any()
    ranged = as_design(xp.asarray(rounded)).standardized()
    assert contiguous(ranged) is ranged
