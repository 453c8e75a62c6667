"""Parts of the design layer: kernels of a device by stand-ins, constants and limits, packed pieces, kept columns."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import sparse

from zeronorm import as_design
from zeronorm._threads import NotEnoughMemoryError, opened, read_in_turn, work_in_turn
from zeronorm.design import (
    StandardizedDesign,
    annotated,
    array_api,
    chunked,
    column_kernels,
    dense,
    packing,
    stats,
)
from zeronorm.design.annotated import design_of_rows
from zeronorm.design.array_api import ArrayApiDesign, to_device
from zeronorm.design.base import BACKENDS, register_backend
from zeronorm.design.chunked import _KeptColumns, _places, open_files, stamp_of
from zeronorm.design.convert import check_container
from zeronorm.design.dense import DenseDesign
from zeronorm.design.packing import full_disk_explained, is_running, pack, require_room
from zeronorm.design.sparse import SparseDesign, SparseFileDesign, check_structure

xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")


def data(shape=(12, 9), seed=0):
    return np.random.default_rng(seed).normal(size=shape) * 2.0 + 1.0


# -- Kernels of a device, by stand-ins that say what they were given --


class Kernels:
    """What the kernels of a GPU do, in NumPy."""

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
    monkeypatch.setattr(array_api, "_SCAN_ROWS", 2.0)  # gathered, not scanned
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
        spread = np.average((part[own] - mean) ** 2, axis=0, weights=weight[own])
        np.testing.assert_allclose(found.class_variance[c], spread, atol=1e-12)
    np.testing.assert_allclose(found.mean, np.average(part, axis=0, weights=weight))
    np.testing.assert_allclose(found.minimum, part[weight > 0].min(axis=0))
    kernels.calls.clear()
    first, second = rng.integers(0, n, 5), rng.integers(0, n, 5)
    pairs = rng.uniform(size=5)
    np.testing.assert_allclose(
        design.difference_sums(first, second, pairs), pairs @ np.abs(part[first] - part[second])
    )
    assert kernels.calls == [("suits", 1), "difference_sums"]


def test_kernels_of_a_device_are_not_asked_for_what_they_cannot(kernels):
    X = data()
    design = as_design(xp.asarray(X))
    scattered, view = design.take([5, 1, 2]), design.standardized()._fused()
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
    view = design.standardized()._fused()
    assert not view.take_rows([3, 2, 1, 0])._scans_all_rows
    assert not view.take([3, 2, 1, 0])._scans_all_columns


def test_blocks_ranges_and_moments_of_a_centred_part_of_a_device():
    X = data()
    view = as_design(xp.asarray(X)).standardized()._fused()
    assert isinstance(view, ArrayApiDesign)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for columns in ([4, 0, 4], slice(2, 5)):
        part = view.take(columns)
        np.testing.assert_allclose(part.block(slice(None)), Z[:, columns], atol=1e-12)
        np.testing.assert_allclose(part.block([1]), Z[:, columns][:, [1]], atol=1e-12)
        low, high = part.column_range()
        np.testing.assert_allclose(low, Z[:, columns].min(axis=0), atol=1e-12)
        np.testing.assert_allclose(high, Z[:, columns].max(axis=0), atol=1e-12)


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
    assert part._resident_elsewhere() is part
    fails_with(KeyError("another fault"))
    with pytest.raises(KeyError, match="another fault"):
        part._resident_elsewhere()
    assert whole._resident_elsewhere() is whole


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
    """The same design, which says that it has 3 GiB."""
    large = as_design(design.take(slice(None)).block(slice(None)).astype(np.float32))
    large.shape = (1024, 768 * 1024)
    return large


# -- Statistics: constants, extremes, what is refused --


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_column_is_constant_up_to_eight_roundings(dtype):
    eps = float(np.finfo(dtype).eps)
    for sign in (1.0, -1.0):
        low, high = (
            np.array([100.0, 100.0, 0.0]),
            np.array([100.0 * (1 + 7 * eps), 100.0 * (1 + 10 * eps), 0.0]),
        )
        ends = np.sort(sign * np.stack([low, high]), axis=0)
        assert stats.is_constant_range(*ends, dtype).tolist() == [True, False, True]
    assert stats.is_constant_range(np.array([1.0]), np.array([2.0]), dtype).tolist() == [False]
    for size in (1e6, 1e-6):  # where no column is zero
        near = stats.is_constant_range(np.array([size]), np.array([size * (1 + 6 * eps)]), dtype)
        far = stats.is_constant_range(np.array([size]), np.array([size * (1 + 20 * eps)]), dtype)
        assert (near.tolist(), far.tolist()) == ([True], [False])
        both = np.array([-size]), np.array([-size * (1 - 6 * eps)])
        assert stats.is_constant_range(*both, dtype).tolist() == [True]
    across = stats.is_constant_range(np.array([-1e-20, 5.0]), np.array([1e-20, 5.0]), dtype)
    assert across.tolist() == [False, True]


def test_extremes_of_all_columns():
    mean, low, high = np.array([1.0, 0.0]), np.array([-3.0, -1.0]), np.array([2.0, 7.0])
    found = stats._Extremes.of(mean, low, high)
    assert (found.all_usual, found.smallest_width, found.lowest, found.highest) == (True, 5.0, -3.0, 7.0)
    for change in ((0, np.nan), (1, -2e150), (2, 2e150)):
        parts = [mean.copy(), low.copy(), high.copy()]
        parts[change[0]][1] = change[1]
        assert not stats._Extremes.of(*parts).all_usual
    assert np.isnan(stats._Extremes.of(mean, np.array([np.nan, 0.0]), high).smallest_width)
    nothing = stats._Extremes.of(np.empty(0), np.empty(0), np.empty(0))
    assert (nothing.all_usual, nothing.smallest_width) == (True, np.inf)


@pytest.mark.parametrize("order", ["C", "F"])
def test_finite_values_are_seen_whatever_their_layout(order):
    X = np.array(data((6, 8)), order=order)
    for values in (X, X[::2, ::3], X.astype(np.float32)):
        assert stats.is_surely_finite(values)
        for wrong in (np.nan, np.inf):
            spoilt = values.copy(order="K")
            spoilt[1, 1] = wrong
            assert not stats.is_surely_finite(spoilt)
    assert not stats.is_surely_finite(np.full((2, 2), 1e200))
    assert stats.is_surely_finite(np.full((2, 2), 1e30, dtype=np.float32))


def test_the_first_unusable_value_is_named_with_its_column():
    X = data((5, 4))
    names = np.array(["a", "b", "c", "d"], dtype=object)
    for value, text in ((np.nan, "NaN"), (-np.inf, "infinity"), (1e200, "1e[+]200")):
        X[3, 2] = value
        with pytest.raises(ValueError, match=rf"{text}: first found in row 3, column 2 \('c'\)"):
            stats.require_finite(DenseDesign(X, names))
    X[3, 2] = np.nan
    design = DenseDesign(X)
    stats.require_finite(design, allow_nan=True)
    assert not design._known_finite
    X[3, 2] = 1e149
    design = DenseDesign(X)
    stats.require_finite(design)
    assert design._known_finite
    X[:, 1] = 1e-145 * np.arange(5)
    with pytest.raises(ValueError, match=r"4e-145 in column 1 \('b'\)"):
        DenseDesign(X, names).standardized()


def test_statistics_after_a_shift_and_a_factor():
    X = data()
    found = as_design(X).column_stats(np.arange(12) % 2 * 2)  # the class in the middle is empty
    shift, factor = np.linspace(0.0, 1.0, 9), np.linspace(0.5, 2.0, 9)
    moved = found.affine(shift, factor)
    Z = (X - shift) * factor
    np.testing.assert_allclose(moved.mean, Z.mean(axis=0))
    np.testing.assert_allclose(moved.variance, Z.var(axis=0))
    np.testing.assert_allclose(moved.class_mean[0], Z[::2].mean(axis=0))
    np.testing.assert_allclose(moved.class_variance[2], Z[1::2].var(axis=0))
    assert not moved.class_mean[1].any()
    np.testing.assert_allclose(moved.minimum, Z.min(axis=0))
    np.testing.assert_allclose(moved.maximum, Z.max(axis=0))
    assert (moved.count.tolist(), moved.n_classes) == ([6, 0, 6], 3)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("way", ["many classes", "weights of zero", "some rows", "more than a block"])
def test_large_means_keep_their_digits_in_each_way(order, way):
    """Moments are taken about a centre of each class, which far from zero is not zero."""
    rng = np.random.default_rng(0)
    n = 1300 if way == "more than a block" else 90
    y = np.arange(n) % (9 if way == "many classes" else 2)
    X = np.array(rng.normal(size=(n, 70)) + 1e7 * (1.0 + y[:, None]), order=order)
    weight, rows = np.ones(n), np.arange(n)
    if way in ("weights of zero", "more than a block"):
        weight[::7] = 0.0
    if way == "some rows":
        rows = rng.permutation(n)[:60]
    found = as_design(X).take_rows(rows).column_stats(y[rows], weight[rows])
    for c in range(y.max() + 1):
        own = rows[(y[rows] == c) & (weight[rows] > 0.0)]
        exact = X[own] - 1e7 * (1.0 + c)
        np.testing.assert_allclose(found.class_variance[c], exact.var(axis=0), rtol=1e-6)
        np.testing.assert_allclose(found.class_mean[c], X[own].mean(axis=0), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keys_sort_as_the_numbers_do(dtype):
    values = np.array([-np.inf, -3.5, -1e-30, -0.0, 0.0, 1e-30, 2.0, np.inf], dtype=dtype)
    low, high = np.empty(1, np.int64), np.empty(1, np.int64)
    for first in range(8):
        part = np.random.default_rng(first).permutation(values[first:])[None]
        column_kernels.columns_range(column_kernels.float_bits(np.ascontiguousarray(part)), low, high)
        assert column_kernels.from_keys(low, np.dtype(dtype))[0] == values[first]
        assert column_kernels.from_keys(high, np.dtype(dtype))[0] == np.inf


def test_a_large_symmetric_matrix_is_mirrored():
    A = np.random.default_rng(0).normal(size=(150, 150))
    found = column_kernels.symmetric_result(np.asfortranarray(np.tril(A)))
    np.testing.assert_array_equal(found, np.tril(A) + np.tril(A, -1).T)
    total = np.zeros((4, 3), order="F")
    left, right = data((4, 5)), data((3, 5), seed=1)
    for a in (np.asfortranarray(left), np.ascontiguousarray(left)):
        for b in (np.asfortranarray(right), np.ascontiguousarray(right)):
            column_kernels.add_product(total, a, b)
    np.testing.assert_allclose(total, 4.0 * left @ right.T)
    column_kernels.add_product(total, left[:, :0], right[:, :0])
    for order in ("C", "F"):
        design = as_design(np.array(left, order=order))
        nobody = design.take_rows([])
        assert design.cross_gram(nobody).shape == (4, 0)
        assert nobody.cross_gram(design).shape == (0, 4)


# -- Backends, readings in turn --


def test_a_backend_of_a_package_is_found():
    class Table:
        values = data((3, 2))

    @register_backend(lambda X: isinstance(X, Table))
    def from_table(X, names):
        return DenseDesign(X.values, names)

    try:
        np.testing.assert_array_equal(as_design(Table()).block(slice(None)), Table.values)
    finally:
        BACKENDS.pop()


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_parts_come_in_their_order(ahead, n):
    read = []

    def place(k):
        read.append(k)
        return 10 * k

    assert list(read_in_turn(place, list(range(n)), ahead=ahead)) == [10 * k for k in range(n)]
    assert read == list(range(n))


def test_the_next_part_is_read_while_one_is_used():
    read = []
    parts = read_in_turn(lambda k: read.append(k) or k, [0, 1, 2], ahead=True)
    assert next(parts) == 0
    assert next(parts) == 1
    assert set(read) >= {0, 1}
    assert list(parts) == [2]


def test_several_parts_are_worked_on_side_by_side():
    """Three threads meet; one after the other they would wait for each other until the time is over."""
    meeting = threading.Barrier(3, timeout=5)
    parts = work_in_turn(lambda k: 10 * k, lambda k, raw: (meeting.wait(), k + raw)[1], range(6), n_threads=3)
    assert list(parts) == [11 * k for k in range(6)]


@pytest.mark.parametrize("n_threads", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 9])
def test_parts_are_read_in_order_and_once(n_threads, n):
    read = []
    parts = work_in_turn(
        lambda k: read.append(k) or -k, lambda k, raw: (k, raw), range(n), n_threads=n_threads
    )
    assert list(parts) == [(k, -k) for k in range(n)]
    assert read == list(range(n))


def test_a_thread_that_reads_on_keeps_its_file_open_and_closes_it(tmp_path):
    path, streams = tmp_path / "x", []
    path.write_bytes(bytes(range(9)))

    def read(place):
        with opened(path) as stream:
            streams.append(stream)
            stream.seek(place)
            return stream.read(1)[0]

    assert list(work_in_turn(read, lambda place, value: value, range(9), n_threads=2)) == list(range(9))
    assert len(set(map(id, streams))) == 1
    assert streams[0].closed
    read(0)
    assert streams[-1] is not streams[0]
    assert streams[-1].closed


# -- Columns that are kept --


def test_kept_columns_are_found_in_any_order():
    kept = _KeptColumns()
    assert kept.find(range(1)) is None
    assert not kept.has([3])
    lines = data((3, 4))
    kept.replace(np.array([7, 2, 5]), lines)
    assert kept.has([5, 7])
    assert not kept.has([5, 6])
    assert not kept.has([8])
    np.testing.assert_array_equal(kept.find(np.array([5, 7, 7])), lines[[2, 0, 0]].T)
    assert kept.find(np.array([2, 3])) is None
    kept.replace(np.array([2, 5]), lines[:2])
    np.testing.assert_array_equal(kept.find(np.array([5])), lines[[1]].T)
    kept.clear()
    assert not kept.has([5])
    assert _places(np.array([1, 4, 6]), [6, 1]).tolist() == [2, 0]
    assert _places(np.array([1, 4, 6]), range(2, 4)) is None


def test_what_is_worth_keeping(tmp_path):
    X = data((8, 20))
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    for budget, n_columns, worth in (
        (1280, 10, True),
        (1279, 10, False),
        (10**6, 20, False),
        (10**6, 19, True),
    ):
        design = open_files(tmp_path / "x.npy", memory_budget=budget).take(np.arange(n_columns)[::-1])
        assert design._is_worth_keeping == worth
    assert not open_files(tmp_path / "x.npy").take([])._is_worth_keeping


def test_the_stamp_of_a_folder_is_that_of_all_its_files(tmp_path):
    folder = tmp_path / "x"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "one").write_bytes(b"123")
    before = stamp_of(folder)
    (folder / "two").write_bytes(b"45678")
    assert stamp_of(folder)[0] == before[0] + 5
    os.utime(folder / "two", ns=(0, 2 * 10**18))
    assert stamp_of(folder)[1] == 2 * 10**18
    with pytest.raises(chunked.DataFileError, match="is gone"):
        stamp_of(tmp_path / "y")


def test_scattered_lines_are_read_with_what_is_between(tmp_path, monkeypatch):
    X = data((60, 4))
    np.save(tmp_path / "x.npy", X)
    file = open_files(tmp_path / "x.npy")._files[0]
    reads = []
    into = chunked._read_into
    monkeypatch.setattr(
        chunked, "_read_into", lambda s, f, o, out: reads.append(out.shape) or into(s, f, o, out)
    )
    line = 4 * 8
    for converted, gap, rows, wanted in (
        (10**6, 10**6, [3, 9, 50], [(48, 4)]),
        (10**6, 6 * line, [3, 9, 50], [(7, 4), (1, 4)]),
        (10**6, 5 * line, [3, 9, 50], [(1, 4)] * 3),
        (7 * line, 10**6, [3, 9, 50], [(7, 4), (1, 4)]),
        (6 * line, 10**6, [3, 9, 50], [(1, 4), (6, 4), (1, 4)]),  # read on from the last piece
        (10**6, 10**6, [9, 3, 9], [(7, 4)]),
    ):
        monkeypatch.setattr(chunked, "_CONVERTED_BYTES", converted)
        monkeypatch.setattr(chunked, "_LARGEST_GAP", gap)
        reads.clear()
        np.testing.assert_array_equal(file.read(np.array(rows), range(4)), X[rows])
        assert reads == wanted


def test_places_of_a_line_are_read_span_by_span(tmp_path, monkeypatch):
    X = data((3, 40))
    np.save(tmp_path / "x.npy", X)
    file = open_files(tmp_path / "x.npy")._files[0]
    reads, into = [], chunked._read_into
    monkeypatch.setattr(
        chunked, "_read_into", lambda s, f, o, out: reads.append(out.size) or into(s, f, o, out)
    )
    monkeypatch.setattr(chunked, "_LARGEST_GAP", 3 * 8)
    for columns, wanted in (([2, 4, 20, 30, 31], [3, 1, 2]), ([30, 2, 30], [1, 1]), (range(5, 9), [4])):
        reads.clear()
        chosen = columns if isinstance(columns, range) else np.array(columns)
        np.testing.assert_array_equal(file.read(range(3), chosen), X[:, columns])
        assert reads == 3 * wanted


# -- Packed files --


def test_pieces_of_a_packed_file(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_PIECE_BYTES", 3 * 5 * 8)
    monkeypatch.setattr(packing, "_BLOCK_BYTES", 7 * 5 * 8)
    X = data((5, 11))
    path = pack(X, tmp_path / "x.zncols", about={"target": [1, 2]})
    file = open_files(path)._files[0]
    assert (file._width, len(file._checksums), file.about) == (3, 4, {"target": [1, 2]})
    assert file.known_finite
    assert file.names is None
    for columns in (range(2, 8), np.array([10, 0]), range(11), range(9, 11)):
        fresh = open_files(path)._files[0]
        np.testing.assert_array_equal(fresh.read(range(5), columns), X[:, columns])
        assert fresh._checked == {int(c) // 3 for c in columns}
        np.testing.assert_array_equal(fresh.read(np.array([3, 1]), columns), X[[3, 1]][:, columns])


def test_values_that_cannot_be_stored(tmp_path):
    X = data((4, 6))
    for value, dtype, text in (
        (1e60, "float32", "too large for float32"),
        (1e149, "float64", None),
        (3e38, "float32", None),
    ):
        X[2, 4] = value
        if text is None:
            pack(X, tmp_path / "x.zncols", dtype=dtype)
        else:
            with pytest.raises(ValueError, match=rf"Columns 0 to 5 hold values that are {text}"):
                pack(X, tmp_path / "x.zncols", dtype=dtype)
    X[2, 4] = np.nan
    for dtype in ("float32", "float64"):
        with pytest.raises(ValueError, match="hold NaN, infinity or values beyond"):
            pack(as_design(X, check_finite=False), tmp_path / "x.zncols", dtype=dtype)


@pytest.mark.parametrize("dtype", ["int8", "float16", np.float32])
def test_other_types_than_two_are_not_packed(tmp_path, dtype):
    with pytest.raises(ValueError, match="must be 'float32', 'float64' or None"):
        pack(data(), tmp_path / "x.zncols", dtype=dtype)
    with pytest.raises(ValueError, match=r"must end with '\.zncols'"):
        pack(data(), tmp_path / "x.npy")


def test_room_on_the_disk_is_asked_for_before_it_is_written(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(packing, "require_room", lambda path, n_bytes: asked.append(n_bytes))
    pack(data((12, 9)), tmp_path / "x.zncols", dtype="float32")
    pack(data((12, 9)), tmp_path / "x.zncols")
    assert asked == [4 * 12 * 9, 8 * 12 * 9]


def test_sparse_rows_on_disk_take_twice_their_room_as_columns(tmp_path, monkeypatch):
    anndata = pytest.importorskip("anndata")
    X = sparse.csr_matrix(np.where(data((30, 20)) > 1.0, data((30, 20)), 0.0))
    anndata.AnnData(X).write_h5ad(tmp_path / "x.h5ad")
    asked = []
    monkeypatch.setattr(annotated, "require_room", lambda path, n_bytes: asked.append(n_bytes))
    design = as_design(tmp_path / "x.h5ad", memory_budget=2000)
    assert asked == [2 * (8 + 4) * X.nnz]
    np.testing.assert_array_equal(design.block(slice(None)), X.toarray())


def test_drafts_of_processes_that_have_ended_are_removed(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone, alive = tmp_path / f".x.zncols.{ended.pid}.part", tmp_path / f".x.zncols.{os.getppid()}.part"
    for draft in (gone, alive):
        draft.write_bytes(b"")
    pack(data(), tmp_path / "x.zncols")
    assert (gone.exists(), alive.exists()) == (False, True)
    assert is_running(str(os.getpid()))
    assert not is_running("no number")
    assert not is_running(str(ended.pid))


def test_a_process_of_somebody_else_is_running(monkeypatch):
    def refuse(process, number):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert is_running("1")


def test_only_a_full_disk_is_called_so(tmp_path):
    for number in (errno.ENOSPC, errno.EDQUOT):
        with pytest.raises(ValueError, match="The disk is full"), full_disk_explained(tmp_path):
            raise OSError(number, "full")
    with pytest.raises(PermissionError), full_disk_explained(tmp_path):
        raise PermissionError(errno.EACCES, "not allowed")
    require_room(tmp_path / "x", 10)
    with pytest.raises(ValueError, match="no folder"):
        require_room(tmp_path / "nowhere" / "x", 10)
    with pytest.raises(ValueError, match="GiB are free"):
        require_room(tmp_path / "x", 1 << 60)


# -- Bands of rows, sparse files --


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


def test_bands_are_put_together_by_column():
    X = np.where(np.random.default_rng(0).random((11, 7)) < 0.4, data((11, 7)), 0.0)
    bands = annotated.SparseBands((sparse.csc_array(part) for part in (X[:4], X[4:5], X[5:])), 7, 0)
    assert bands.shape == (11, 7)
    assert bands.stored_per_column.tolist() == (X != 0.0).sum(axis=0).tolist()
    for columns in (range(7), range(2, 5), range(6, 7)):
        found = bands.stored(columns)
        assert (found.format, found.has_canonical_format) == ("csc", True)
        np.testing.assert_array_equal(found.toarray(), X[:, columns])


class Columns:
    """Sparse columns in memory that pretend to be on disk."""

    def __init__(self, X):
        self.matrix = sparse.csc_array(X)
        self.shape, self.dtype, self.read = X.shape, self.matrix.dtype, []

    @property
    def stored_per_column(self):
        return np.diff(self.matrix.indptr).astype(np.int64)

    def stored(self, columns):
        self.read.append((columns.start, columns.stop))
        return self.matrix[:, columns.start : columns.stop]


@pytest.mark.parametrize("budget", [200, 2000, 10**6])
def test_sparse_columns_on_disk_are_read_in_parts(budget, monkeypatch):
    monkeypatch.setattr("zeronorm.design.sparse._LARGEST_COLUMN_GAP", 3)
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
    part = SparseFileDesign(source, rows=range(2, 9), columns=np.array([20, 1, 3, 20]), memory_budget=budget)
    source.read.clear()
    np.testing.assert_array_equal(part._read(part._columns)._csc.toarray(), X[2:][:, [20, 1, 3, 20]])
    assert source.read == [(1, 4), (20, 21)]
    d = np.linspace(-1.0, 1.0, 9)
    np.testing.assert_allclose(design.sandwich(np.abs(d)), (X.T * np.abs(d)) @ X, atol=1e-12)
    small = design.take([3])
    assert isinstance(small, SparseDesign) == (4 * (sizes[3] - 16 + 8) <= budget)
    half = design.take_rows(range(3)).take(range(10))
    needed = 4 * (3 / 9 * (sizes[:10] - 16).sum() + 80)
    assert isinstance(half, SparseDesign) == (needed <= budget)
    np.testing.assert_array_equal(half.block(slice(None)), X[:3, :10])


def test_a_damaged_matrix_is_refused_as_a_container_too():
    X = sparse.csr_array(data((4, 3)))
    check_container(X)
    X.indices[2] = 7
    with pytest.raises(ValueError, match="holds 7 at place 2"):
        check_container(X)


def test_ranges_of_a_device_are_views():
    X = data()
    array = xp.asarray(X)
    design = ArrayApiDesign(array, rows=range(2, 9), columns=range(1, 8, 3))
    part = design._native(range(3))
    np.testing.assert_array_equal(np.asarray(part), X[2:9, 1:8:3])
    assert np.shares_memory(np.asarray(part), np.asarray(array))
    whole = ArrayApiDesign(array)
    assert whole._native(range(9)) is array


def test_blocks_of_sparse_matrices_that_are_damaged_are_refused():
    X = sparse.bsr_array(np.kron(np.eye(3), np.ones((2, 2))))
    check_structure(X)
    X.indices[1] = 3
    with pytest.raises(ValueError, match=r"'indices' holds 3 at place 1, not in 0\.\.2"):
        check_structure(X)
    for make in (sparse.csr_array, sparse.csc_array):
        good = make(data((4, 3)))
        check_structure(good)
        good.indices[0] = -1
        with pytest.raises(ValueError, match="holds -1 at place 0"):
            check_structure(good)
        short = make(data((4, 3)))
        short.indptr[-2] = 99
        with pytest.raises(ValueError, match="must not decrease"):
            check_structure(short)


def test_a_rescaled_view_keeps_constant_columns_at_zero():
    X = data()
    X[:, 3] = 5.0
    view = as_design(X).standardized()
    assert np.flatnonzero(view.zero_columns).tolist() == [3]
    np.testing.assert_allclose(view.squared_norms(), np.where(np.arange(9) == 3, 0.0, 12.0))
    some = view.take([3, 0])
    assert some.squared_norms().tolist() == [0.0, 12.0]
    rows = view.take_rows([0, 4, 4])
    Z = np.where(
        np.arange(9) == 3, 0.0, (X - X.mean(axis=0)) / np.where(np.arange(9) == 3, 1.0, X.std(axis=0))
    )
    np.testing.assert_allclose(rows.squared_norms(), (Z[[0, 4, 4]] ** 2).sum(axis=0), atol=1e-12)
    plain = StandardizedDesign(as_design(X), X.mean(axis=0), np.ones(9))
    np.testing.assert_allclose(plain.squared_norms(), 12 * X.var(axis=0), atol=1e-9)
    weighted = as_design(X).standardized(sample_weight=np.arange(12) + 1.0)
    assert not weighted._unit_variance
    assert not as_design(X).standardized(with_mean=False)._unit_variance
    assert not as_design(X).standardized(with_scale=False)._unit_variance


def test_stored_columns_tell_what_is_to_be_taken_off():
    X = np.where(np.random.default_rng(0).random((12, 5)) < 0.5, data((12, 5)), 0.0)
    view = as_design(sparse.csr_array(X)).standardized()
    columns = np.array([4, 1])
    stored, shift = view.stored_columns(columns)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(stored.toarray() - shift, Z[:, columns], atol=1e-12)
    assert as_design(X).standardized().stored_columns(columns) is None
    far = StandardizedDesign(as_design(sparse.csr_array(X)), np.full(5, 1e6), np.ones(5))
    assert far.stored_columns(columns) is None  # the correction would cost too many digits
    np.testing.assert_allclose(far.dot(np.ones(5)), (X - 1e6).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("values", ["plain", "masked", "categories"])
def test_entries_of_a_column_of_a_table(values):
    if values == "plain":
        assert annotated._entries(np.array(["a", "b"])).tolist() == ["a", "b"]
    elif values == "masked":
        column = {"values": np.array(["a", "b"]), "mask": np.array([False, False])}
        assert annotated._entries(column).tolist() == ["a", "b"]
        column["mask"][1] = True
        assert annotated._entries(column) is None
        assert annotated._entries({"values": np.array(["a"])}).tolist() == ["a"]
    else:
        column = {"categories": np.array(["a", "b"]), "codes": np.array([1, 0, 1])}
        assert annotated._entries(column).tolist() == ["b", "a", "b"]
        column["codes"][2] = -1
        assert annotated._entries(column) is None
        assert annotated._entries({}) is None


# -- Arrays that are parts of others, lists, memory --


def test_only_columns_of_a_larger_matrix_are_taken_as_such():
    whole = data((6, 8))
    flat = np.arange(48.0)
    others = [
        whole.copy(),  # its own
        flat.reshape(6, 8)[:, 2:5],  # of a vector
        np.ones((6, 8), dtype=np.int64).view(np.float64)[:, 1:4],  # of another type
        np.asfortranarray(whole)[:, 1:4],
        np.ascontiguousarray(whole)[:, ::2],
        whole[:, :0],
        data((2, 3, 4))[0],  # of three dimensions
    ]
    for array in others:
        design = DenseDesign.of_part(array)
        assert design._array is array
        np.testing.assert_array_equal(design.block(slice(None)), array)
    design = DenseDesign.of_part(whole[1:4, 2:7])
    assert design._array is whole
    assert (design._rows, design._columns) == (range(1, 4), range(2, 7))


@pytest.mark.parametrize("convert", [check_container, as_design])
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1.0, 2.0], 3.0], "Row 0 has 2 values, but row 1 is no list of values: 3.0;"),
        ([3, [1, 2]], "Row 1 has 2 values, but row 0 is no list of values: 3;"),
        ([[1, 2], None], "Row 0 has 2 values, but row 1 is no list of values: None;"),
        ([[1, 2], "ab"], "Row 0 has 2 values, but row 1 is no list of values: 'ab';"),
        ([(1, 2), {3, 4}], "Row 0 has 2 values, but row 1 is no list of values: {3, 4};"),
        ([[1, 2], np.array(3)], r"Row 0 has 2 values, but row 1 is no list of values: array\(3\);"),
        ([[1.0, 2.0], [3.0, 4.0, 5.0]], "Row 0 has 2 values and row 1 has 3;"),
        ([[1, 2], [3, [4]]], r"Row 1, column 1 holds \[4\]; give one number per cell"),
    ],
)
def test_rows_that_are_no_rows_are_refused(convert, rows, said):
    with pytest.raises(ValueError, match=said):
        convert(rows)


def test_rows_of_equal_lengths_are_taken():
    check_container([[1.0, 2.0], [3.0, 4.0]])
    check_container([1.0, 2.0])  # one dimension, which others refuse
    check_container([np.array(1.0), np.array(2.0)])
    assert as_design([[1.0, 2.0], (3.0, 4.0)]).shape == (2, 2)


@pytest.mark.parametrize("order", ["C", "F"])
def test_no_samples_have_no_range(order):
    design = as_design(np.array(data(), order=order)).take_rows([])
    with pytest.raises(ValueError, match="at least one sample"):
        design.column_range()


def test_two_square_matrices_are_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr("zeronorm.design.base.require_memory", lambda n_bytes, *words: asked.append(n_bytes))
    design = as_design(data((12, 9)))
    design.gram()
    design.sandwich(np.ones(12))
    assert asked == [2 * 8 * 12**2, 2 * 8 * 9**2]


def test_an_empty_folder_has_neither_size_nor_time(tmp_path):
    assert stamp_of(tmp_path) == (0, 0)


def test_what_a_design_does_where_nothing_else_is_asked_for():
    X = data()
    X[:, 2] = 4.0
    view = as_design(X).standardized()
    np.testing.assert_allclose(view.mean, X.mean(axis=0))
    np.testing.assert_allclose(view.scale, np.where(np.arange(9) == 2, 1.0, X.std(axis=0)))
    assert as_design(X)._known_finite
    X[1, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        as_design(X)
    with pytest.raises(ValueError, match="NaN"):
        stats.require_finite(DenseDesign(X))
    X[1, 1] = 0.0
    pairs = as_design(xp.asarray(X)).distances(np.ones(9))
    np.testing.assert_allclose(pairs, np.abs(X[:, None] - X[None]).sum(axis=2), atol=1e-10)
    assert as_design(X).distances(np.ones(9)) is None
    assert not StandardizedDesign(as_design(X), np.zeros(9), np.ones(9))._unit_variance


def test_a_sandwich_of_rows_in_memory_is_that_of_gathered_rows():
    """Rows in one piece are multiplied where they lie, in the same blocks and the same order."""
    rng = np.random.default_rng(0)
    X, d = rng.normal(size=(3000, 40)), rng.random(3000)
    found = DenseDesign(X).sandwich(d)
    gathered = DenseDesign(X[:, ::-1].copy()).take(np.arange(39, -1, -1)).sandwich(d)
    assert len(list(DenseDesign(X)._scaled_rows(d))) > 1
    np.testing.assert_array_equal(found, gathered)
    np.testing.assert_allclose(found, X.T @ (d[:, None] * X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scattered_rows_in_one_piece(order, dtype, monkeypatch):
    X = np.array(np.random.default_rng(0).normal(size=(9, 7)), dtype=dtype, order=order)
    whole = as_design(X, feature_names=list("abcdefg"))
    part = whole.take_rows([8, 1, 2, 5]).take([0, 3, 6])
    copied = part.in_one_piece()
    np.testing.assert_array_equal(copied.block(slice(None)), X[np.ix_([8, 1, 2, 5], [0, 3, 6])])
    assert copied.dtype == dtype
    assert copied._order == order
    assert list(copied.feature_names) == ["a", "d", "g"]
    assert copied._known_finite == part._known_finite
    assert (copied._memory() is None) == (dtype == np.float32)
    assert whole.in_one_piece() is whole  # nothing is scattered
    assert whole.take_rows(slice(2, 6)).in_one_piece()._array is X
    monkeypatch.setattr(dense, "SMALL_COPY_BYTES", 4 * 3 * X.itemsize - 1)
    assert part.in_one_piece() is part
    sparse_part = as_design(sparse.csr_array(X)).take_rows([8, 1])
    assert sparse_part.in_one_piece() is sparse_part


def test_the_place_of_data_in_memory_is_found_once_and_does_not_travel():
    design = as_design(np.random.default_rng(0).normal(size=(50, 40)))
    size = len(pickle.dumps(design))
    assert design._memory() is design._memory()
    assert len(pickle.dumps(design)) == size
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(design)).gram(), design.gram())
