"""Kernels and devices replaced by stand-ins: selections passed to kernels, copies in blocks, lack of memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from design.arrays import data
from zeronorm import as_design
from zeronorm.design import _array_api as array_api
from zeronorm.design import column_range, contiguous
from zeronorm.design._array_api import ArrayApiDesign, to_device
from zeronorm.design._dense import DenseDesign
from zeronorm.execution import NotEnoughMemoryError

xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")


def test_memory_of_a_device_that_does_not_suffice_for_a_selection(monkeypatch):
    X = data()
    whole = as_design(xp.asarray(X))
    part = whole.take([5, 1, 2])
    monkeypatch.setattr(array_api, "SMALL_COPY_BYTES", 10)

    def fails_with(error):
        def native(self, columns):
            raise error

        monkeypatch.setattr(ArrayApiDesign, "_native", native)

    fails_with(MemoryError())
    assert contiguous(part) is part
    fails_with(KeyError("another fault"))
    with pytest.raises(KeyError, match="another fault"):
        contiguous(part)
    assert contiguous(whole) is whole


def test_only_too_little_memory_makes_blocks_smaller():
    design = as_design(xp.asarray(data()))
    seen = []

    def fails(columns):
        seen.append(columns)
        raise KeyError("another fault")

    with pytest.raises(KeyError, match="another fault"):
        design._in_blocks(fails)
    assert seen == [range(9)]


def test_data_are_copied_to_a_device_in_blocks(monkeypatch):
    X = data((6, 40)).astype(np.float32)
    asked = []

    def empty(device, shape, dtype):
        asked.append((device, shape, dtype))
        return xp.asarray(np.zeros(shape, dtype=dtype))

    monkeypatch.setattr(array_api, "empty_on", empty)
    names = [f"g{k}" for k in range(40)]
    design = as_design(X, feature_names=names)
    monkeypatch.setattr(DenseDesign, "_block_width", lambda self: 7)
    moved = to_device(design, "cuda:1")
    assert asked == [("cuda:1", (6, 40), np.float32)]
    assert moved.feature_names.tolist() == names
    assert moved._known_finite
    np.testing.assert_array_equal(moved.block(slice(None)), X)
    others = [f"h{k}" for k in range(40)]
    assert to_device(X, "cuda", feature_names=others).feature_names.tolist() == others
    assert to_device(X, "cuda").feature_names is None
    assert not to_device(as_design(X, check_finite=False), "cuda")._known_finite
    with pytest.raises(ValueError, match="X is sparse"):
        to_device(sparse.csr_array(X), "cuda")

    def none_left(device, shape, dtype):
        raise MemoryError

    monkeypatch.setattr(array_api, "empty_on", none_left)
    with pytest.raises(NotEnoughMemoryError, match=r"take 3\.0 GiB"):
        to_device(as_large(design), "cuda")

    def broken(device, shape, dtype):
        raise OSError("no such device")

    monkeypatch.setattr(array_api, "empty_on", broken)
    with pytest.raises(OSError, match="no such device"):
        to_device(X, "cuda")


def as_large(design):
    """The same design with a reported size of 3 GiB."""
    large = as_design(design.take(slice(None)).block(slice(None)).astype(np.float32))
    large.shape = large.n_samples, large.n_features = 1024, 768 * 1024
    return large


def test_ranges_of_a_device_are_views():
    X = data()
    array = xp.asarray(X)
    design = ArrayApiDesign(array, rows=range(2, 9), columns=range(1, 8, 3))
    part = design._native(range(3))
    np.testing.assert_array_equal(np.asarray(part), X[2:9, 1:8:3])
    assert np.shares_memory(np.asarray(part), np.asarray(array))
    whole = ArrayApiDesign(array)
    assert whole._native(range(9)) is array


class Kernels:
    """The kernels of a GPU, computed with NumPy."""

    def __init__(self, suited=True):
        self.suited, self.calls = suited, []

    def suits(self, array, n_vectors=1):
        self.calls.append(("suits", n_vectors))
        return self.suited

    def dot(self, x, w):
        self.calls.append("dot")
        return xp.asarray(np.asarray(x) @ np.asarray(w))

    def transpose_dot(self, x, V):
        self.calls.append("transpose_dot")
        return xp.asarray(np.asarray(x).T @ np.asarray(V))

    def column_moments(self, x, rows, weights, total):
        self.calls.append("column_moments")
        x, weights = np.asarray(x)[np.asarray(rows)], np.asarray(weights)
        assert np.all(np.diff(weights) <= 0.0)  # the heaviest first
        assert total == pytest.approx(weights.sum())
        mean = weights @ x / total
        return xp.asarray(np.stack([x.min(axis=0), x.max(axis=0), mean, weights @ (x - mean) ** 2]))

    def difference_sums(self, x, first, second, weights):
        self.calls.append("difference_sums")
        x = np.asarray(x)
        return xp.asarray(np.asarray(weights) @ np.abs(x[np.asarray(first)] - x[np.asarray(second)]))

    def compares_samples_on(self, device):
        return True


@pytest.fixture
def kernels(monkeypatch):
    found = Kernels()
    monkeypatch.setattr(array_api, "kernels_for", lambda array: found)
    monkeypatch.setattr(array_api, "difference_kernels_for", lambda array: found)
    return found


SELECTIONS = [(slice(None), slice(None)), ([7, 2, 2, 5], slice(2, 7)), (slice(1, 9, 2), slice(None))]


@pytest.mark.parametrize(("rows", "columns"), SELECTIONS)
def test_kernels_of_a_device_get_the_selected_part(kernels, rows, columns, monkeypatch):
    monkeypatch.setattr(array_api, "_SCAN_ROWS", 2.0)  # rows are copied, not scanned
    X = data()
    design = as_design(xp.asarray(X)).take_rows(rows).take(columns)
    part = X[rows][:, columns]
    n, p = part.shape
    rng = np.random.default_rng(1)
    w, V = rng.normal(size=(p, 3)), rng.normal(size=n)
    np.testing.assert_allclose(design.dot(w), part @ w)
    assert kernels.calls == [("suits", 3), "dot"]
    np.testing.assert_allclose(design.transpose_dot(V), part.T @ V)
    assert kernels.calls[2:] == [("suits", 1), "transpose_dot"]
    np.testing.assert_allclose(
        design.transpose_dot(np.outer(V, [1.0, 2.0])), np.outer(part.T @ V, [1.0, 2.0])
    )
    assert kernels.calls[4:] == [("suits", 2), "transpose_dot"]
    one = design.take(slice(0, 1))
    np.testing.assert_allclose(one.dot(np.ones(1)), part[:, 0])
    assert kernels.calls[6:] == [("suits", 1), "dot"]
    kernels.calls.clear()
    y, weight = np.arange(n) % 2, rng.uniform(0.5, 2.0, n)
    weight[0] = 0.0
    found = design.column_stats(y, weight)
    assert "column_moments" in kernels.calls
    assert ("suits", 1) in kernels.calls
    for c in (0, 1):
        own = (y == c) & (weight > 0)
        mean = np.average(part[own], axis=0, weights=weight[own])
        np.testing.assert_allclose(found.class_mean[c], mean)
        variance = np.average((part[own] - mean) ** 2, axis=0, weights=weight[own])
        np.testing.assert_allclose(found.class_variance[c], variance, atol=1e-12)
    np.testing.assert_allclose(found.mean, np.average(part, axis=0, weights=weight))
    np.testing.assert_allclose(found.minimum, part[weight > 0].min(axis=0))
    kernels.calls.clear()
    first, second = rng.integers(0, n, 5), rng.integers(0, n, 5)
    pairs = rng.uniform(size=5)
    np.testing.assert_allclose(
        design.difference_sums(first, second, pairs), pairs @ np.abs(part[first] - part[second])
    )
    assert kernels.calls == [("suits", 1), "difference_sums"]


def test_kernels_of_a_device_are_not_used_where_they_do_not_apply(kernels):
    X = data()
    design = as_design(xp.asarray(X))
    scattered, view = design.take([5, 1, 2]), design.standardized()
    kernels.calls.clear()
    np.testing.assert_allclose(scattered.dot(np.ones(3)), X[:, [5, 1, 2]].sum(axis=1))
    assert scattered._kernels() is None
    assert view._kernels() is None  # they do not centre
    assert design.take(slice(None, None, 2))._kernels() is None
    assert design.take([])._kernels() is None
    assert kernels.calls == []
    kernels.suited = False
    assert design._kernels() is None
    np.testing.assert_allclose(design.dot(np.ones(9)), X.sum(axis=1))
    assert "dot" not in kernels.calls


@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_scattered_parts_are_scanned_from_a_quarter_or_an_eighth_on(axis):
    X = data((16, 32))
    design = as_design(xp.asarray(X))
    for n_chosen, scans in ((2, False), (3, False), (4, True), (9, True)):
        chosen = np.arange(n_chosen)[::-1]
        if axis == "rows":
            part = design.take_rows(chosen)
            assert part._scans_all_rows == scans
            np.testing.assert_allclose(part.dot(np.ones(32)), X[chosen].sum(axis=1))
        else:
            part = design.take(chosen)
            assert part._scans_all_columns == (n_chosen >= 4)
        np.testing.assert_allclose(
            part.transpose_dot(np.ones(part.n_samples)), part.block(slice(None)).sum(axis=0)
        )
    assert not design.take_rows(slice(0, 8))._scans_all_rows
    assert not design._scans_all_columns
    view = design.standardized()
    assert not view.take_rows([3, 2, 1, 0])._scans_all_rows
    assert not view.take([3, 2, 1, 0])._scans_all_columns


def test_blocks_ranges_and_moments_of_a_centred_part_of_a_device():
    X = data()
    view = as_design(xp.asarray(X)).standardized()
    assert isinstance(view, ArrayApiDesign)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for columns in ([4, 0, 4], slice(2, 5)):
        part = view.take(columns)
        np.testing.assert_allclose(part.block(slice(None)), Z[:, columns], atol=1e-12)
        np.testing.assert_allclose(part.block([1]), Z[:, columns][:, [1]], atol=1e-12)
        low, high = column_range(part)
        np.testing.assert_allclose(low, Z[:, columns].min(axis=0), atol=1e-12)
        np.testing.assert_allclose(high, Z[:, columns].max(axis=0), atol=1e-12)
