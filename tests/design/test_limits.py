"""Designs in memory by their definitions: where one way ends and another begins, and what is asked of each way."""

from __future__ import annotations

import threading
from types import FunctionType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from zeronorm import as_design
from zeronorm._threads import read_in_turn
from zeronorm.design import StandardizedDesign, column_kernels, convert, dense, index, standardized, stats
from zeronorm.design.base import Design
from zeronorm.design.convert import check_container
from zeronorm.design.dense import DenseDesign
from zeronorm.design.sparse import SparseFileDesign, check_structure


def data(shape=(12, 9), seed=0):
    return np.random.default_rng(seed).normal(size=shape) * 2.0 + 1.0


# -- What every design does --


def test_blocks_of_one_column_at_least():
    design = as_design(data((4, 3)))
    assert [place for place, _ in design.iter_blocks(1)] == [slice(0, 1), slice(1, 2), slice(2, 3)]
    with pytest.raises(ValueError, match=r"'block_size' parameter must be at least 1\. Got 0"):
        list(design.iter_blocks(0))


def test_a_block_is_written_where_it_is_wanted():
    X = data((4, 3))
    out = np.full((4, 2), np.nan)
    assert as_design(X).block([2, 0], out) is out
    np.testing.assert_array_equal(out, X[:, [2, 0]])
    assert as_design(X).block([2, 0]).flags.f_contiguous


def test_tall_means_more_than_four_samples_for_each_feature():
    assert not as_design(np.ones((20, 5)))._is_tall
    assert as_design(np.ones((21, 5)))._is_tall


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("width", "height"), [(1, 7), (2, 15), (5, 30), (0, 1)])
def test_blocks_of_rows_are_as_large_as_blocks_of_columns(order, width, height, monkeypatch):
    X = np.array(data((30, 4)), dtype=np.float32, order=order)
    monkeypatch.setattr(DenseDesign, "_block_width", lambda self: width)
    found = [(rows.start, rows.stop, block.copy()) for rows, block in as_design(X)._row_blocks()]
    assert [start for start, _, _ in found] == list(range(0, 30, height))
    assert all(block.flags.c_contiguous for _, _, block in found)
    np.testing.assert_array_equal(np.concatenate([block for _, _, block in found]), X)
    assert next(block.shape for _, block in as_design(X).take([])._row_blocks()) == (30 if width else 1, 0)


def test_scratch_blocks_share_one_memory(monkeypatch):
    X = data((6, 9)).astype(np.float32)
    monkeypatch.setattr(DenseDesign, "_block_width", lambda self: 4)
    blocks = [(columns, block) for columns, block in as_design(X)._scratch_blocks()]
    assert [columns for columns, _ in blocks] == [slice(0, 4), slice(4, 8), slice(8, 9)]
    assert [block.shape for _, block in blocks] == [(6, 4), (6, 4), (6, 1)]
    assert all(np.shares_memory(block, blocks[0][1]) for _, block in blocks)
    assert blocks[0][1].base.size == 24


@pytest.mark.parametrize("n_chosen", [0, 1, 3, 4, 5, 9])
def test_features_without_weight_are_left_out_where_they_are_most(n_chosen, monkeypatch):
    """Fewer than half of nine, that is three."""
    X = data((5, 9)).astype(np.float32)
    scale = np.zeros(9)
    scale[np.arange(n_chosen)] = 1.5
    taken, take = [], DenseDesign.take
    monkeypatch.setattr(DenseDesign, "take", lambda self, columns: taken.append(1) or take(self, columns))
    exact = (X.astype(float) * scale) @ X.T.astype(float)
    np.testing.assert_allclose(as_design(X).gram(scale), exact, atol=1e-12)
    assert bool(taken) == (n_chosen < 4)


def test_vectors_of_a_wrong_shape():
    design = as_design(data((5, 3)))
    for call, wrong in (
        (design.dot, np.ones(4)),
        (design.dot, np.ones((4, 3))),
        (design.dot, np.ones((3, 2, 2))),
        (design.dot, 1.0),
        (design.transpose_dot, np.ones((3, 5))),
        (design.transpose_dot, np.ones((5, 1, 1))),
    ):
        with pytest.raises(ValueError, match="rows and at most 2 axes"):
            call(wrong)
    for call, wrong in (
        (design.gram, np.ones((3, 1))),
        (design.sandwich, np.ones(3)),
        (design.gram, np.ones(5)),
        (lambda w: design.cross_gram(design, w), np.ones(5)),
    ):
        with pytest.raises(ValueError, match="must be a vector of length"):
            call(wrong)
    with pytest.raises(ValueError, match=r"M must have shape \(5, 5\)"):
        design.gram_adjoint(np.ones((3, 3)))


@pytest.mark.parametrize("n_places", [2, 3])
def test_a_part_is_read_ahead_only_where_that_is_asked_for(n_places):
    second = threading.Event()
    read = []

    def place(k):
        read.append(k)
        if k == 1:
            second.set()
        return k

    parts = read_in_turn(place, list(range(n_places)), ahead=False)
    assert next(parts) == 0
    assert read == [0]
    parts = read_in_turn(place, list(range(n_places)), ahead=True)
    assert next(parts) == 0
    assert second.wait(10)
    assert list(parts) == list(range(1, n_places))


def test_memory_is_given_up_and_nothing_else_happens():
    design = as_design(data())
    assert design.release() is None
    assert design._fused() is design
    assert design._affine(np.zeros(9), np.ones(9)) is None
    assert not design._has_affine
    assert design.stored_columns(np.array([1])) is None
    assert design.distances(np.ones(9)) is None
    assert design.difference_sums(np.array([0]), np.array([1]), np.ones(1)) is None
    assert Design.is_sparse is False


# -- Arrays --


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranges_of_more_columns_than_stay_in_the_cache(order, dtype, monkeypatch):
    monkeypatch.setattr(dense, "NARROWEST", 4)
    monkeypatch.setattr(dense, "CACHE_BYTES", 1)
    X = np.array(data((5, 11)), dtype=dtype, order=order)
    for n_threads in (1, 3):
        monkeypatch.setattr(dense, "_reading_threads", lambda n_bytes, n=n_threads: n)
        low, high = as_design(X).column_range()
        np.testing.assert_array_equal(low, X.min(axis=0))
        np.testing.assert_array_equal(high, X.max(axis=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_blas_can_read_in_place(dtype):
    X = np.array(data((6, 8)), dtype=dtype)
    design = as_design(X)
    for part, in_place in (
        (design, True),
        (design.take(slice(2, 7)), True),
        (design.take_rows(slice(1, None, 2)), True),
        (design.take(slice(None, None, 2)), False),
        (design.take([3, 1]), False),
        (design.take_rows([3, 1]), False),
    ):
        memory = part._memory()
        assert (memory is not None) == (in_place and dtype == np.float64)
        assert memory is None or np.shares_memory(memory, X)


@pytest.mark.parametrize("order", ["C", "F"])
def test_which_single_precision_is_swept(order):
    X = np.array(data((6, 8)), dtype=np.float32, order=order)
    design, one, eight, nine = as_design(X), np.ones(6), np.ones((6, 8)), np.ones((6, 9))
    assert [design._is_swept(vectors) for vectors in (one, eight, nine)] == [True, True, False]
    assert as_design(X).take(slice(2, 7))._is_swept(one)
    assert as_design(X).take_rows([5, 1])._is_swept(one)
    for part in (
        design.take([3, 1]),
        design.take(slice(None, None, 2)),
        design.take([]),
        as_design(X.astype(float)),
        DenseDesign(X[::2, ::2]),
    ):
        assert not part._is_swept(one)


@pytest.mark.parametrize("order", ["C", "F"])
def test_finite_single_precision_is_read_line_by_line(order, monkeypatch):
    X = np.array(data((6, 8)), dtype=np.float32, order=order)
    monkeypatch.setattr(dense, "_reading_threads", lambda n_bytes: 2)
    assert as_design(X)._surely_finite()
    for place in ((0, 0), (5, 7), (3, 2)):
        spoilt = X.copy(order="K")
        spoilt[place] = np.inf
        assert not DenseDesign(spoilt)._surely_finite()
        assert not DenseDesign(spoilt).take_rows([place[0], 1])._surely_finite()


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_class_without_samples_has_no_moments(order):
    """And small spreads stay what they are."""
    X = np.array(1e-3 * data((14, 5)), order=order)
    y = np.where(np.arange(14) < 5, 0, 3)
    found = as_design(X).column_stats(y)
    assert found.count.tolist() == [5, 0, 0, 9]
    assert not found.class_mean[1:3].any()
    assert not found.class_variance[1:3].any()
    for c, own in ((0, X[:5]), (3, X[5:])):
        np.testing.assert_allclose(found.class_mean[c], own.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(found.class_variance[c], own.var(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found.variance, X.var(axis=0), rtol=1e-10)
    np.testing.assert_array_equal(found.minimum, X.min(axis=0))
    X[:, 2] = 0.1  # whose mean is rounded
    rows = np.array([13, 0, 4, 7, 2, 9])
    for n_classes in (4, 9):  # the last of them has no samples either
        for chosen in (rows, np.arange(14)):
            y = np.append(np.where(chosen < 5, 0, 3), n_classes - 1)
            weight = np.append(np.ones(chosen.size), 0.0)
            part = as_design(X).take_rows(np.append(chosen, 1))
            found = part.column_stats(y, weight)
            assert found.n_classes == n_classes
            for c in range(n_classes):
                own = X[chosen[y[:-1] == c]]
                mean = own.mean(axis=0) if len(own) else np.zeros(5)
                spread = own.var(axis=0) if len(own) else np.zeros(5)
                np.testing.assert_allclose(found.class_mean[c], mean, rtol=1e-12)
                np.testing.assert_allclose(found.class_variance[c], spread, rtol=1e-10, atol=1e-20)
            assert found.class_mean[0, 2] == found.mean[2] == 0.1
            assert found.class_variance[0, 2] == found.variance[2] == 0.0


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_extremes_of_columns_without_a_zero(make, sign):
    X = sign * (np.abs(data((9, 4))) + 1.0)
    X[2, 1] = X[4, 3] = 0.0
    weight = np.ones(9)
    weight[4] = 0.0
    found = as_design(make(X)).column_stats(sample_weight=weight)
    counted = X[weight > 0.0]
    np.testing.assert_array_equal(found.minimum, counted.min(axis=0))
    np.testing.assert_array_equal(found.maximum, counted.max(axis=0))
    assert found.count.tolist() == [8]


def interpreted(kernel):
    """The same loop run by Python, which notices an index beyond the end of an array."""
    names = {name: interpreted(callee) for name, callee in kernel.callees().items()}
    function = kernel.function
    return FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("y", [[0], [0, 4], [4, 0], [0, 1, 0], [2, 0, 1, 2, 0], [6, 0, 6], list(range(9))])
def test_loops_of_statistics_stay_inside_their_arrays(order, y, monkeypatch):
    """More classes than samples, one class without a partner, fewer rows than are handled at a time."""
    for name in ("rows_stats", "columns_stats", "columns_stats_in_place", "combine_classes", "sparse_stats"):
        kernel = getattr(stats, name)
        monkeypatch.setattr(stats, name, interpreted(getattr(kernel, "zeronorm_kernel", kernel)))
    X, codes = np.array(data((len(y), 3)), order=order), np.array(y)
    rows = np.arange(len(y))[::-1]
    for design, own, exact in (
        (as_design(X), codes, X),
        (as_design(X).take_rows(rows), codes[rows], X[rows]),
        (as_design(sparse.csc_array(X)), codes, X),
    ):
        found = design.column_stats(own)
        assert found.count.tolist() == np.bincount(codes).tolist()
        for c in set(y):
            np.testing.assert_allclose(found.class_mean[c], exact[own == c].mean(axis=0), rtol=1e-12)
            np.testing.assert_allclose(found.class_variance[c], exact[own == c].var(axis=0), atol=1e-12)
        np.testing.assert_allclose(found.variance, X.var(axis=0), atol=1e-12)
        np.testing.assert_array_equal(found.minimum, X.min(axis=0))
        np.testing.assert_array_equal(found.maximum, X.max(axis=0))


# -- Statistics --


def test_codes_and_weights_that_are_refused():
    design = as_design(data((3, 2)))
    for y in ([0, 1], [[0, 1, 1]], [0.0, 1.0, 1.0], ["a", "b", "a"]):
        with pytest.raises(ValueError, match="'y' must hold 3 integer class codes"):
            design.column_stats(y)
    for weight, said in (
        ([1.0, 1.0], "must have length 3"),
        ([1.0, -1e-300, 1.0], "finite and not negative"),
        ([np.inf, 1.0, 1.0], "finite and not negative"),
        ([0.0, 0.0, 0.0], "not all zero"),
    ):
        with pytest.raises(ValueError, match=said):
            design.column_stats(sample_weight=weight)
    assert design.column_stats([True, False, True]).count.tolist() == [1, 2]
    assert design.column_stats(sample_weight=[0.0, 0.0, 1e-300]).count.tolist() == [1]


def test_the_smallest_range_that_can_be_squared():
    X = np.zeros((4, 2))
    X[:, 1] = np.arange(4.0)
    for width, fits in ((1e-140, True), (0.99e-140, False)):
        X[2, 0] = width
        design = as_design(X)
        if fits:
            assert design.standardized().zero_columns.tolist() == [False, False]
        else:
            with pytest.raises(ValueError, match=r"no more than 9\.9e-141 in column 0"):
                design.standardized()


def test_a_column_is_compared_with_its_own_size():
    """The quick look at all columns at once takes none for constant or not."""
    eps = np.finfo(float).eps
    low, high = np.array([0.0, 1.0, 1e9]), np.array([1e-9, 1.0 + 4 * eps, 2e9])
    assert stats.is_constant_range(low, high).tolist() == [False, True, False]
    assert stats.is_constant_range(low[[0, 2]], high[[0, 2]]).tolist() == [False, False]
    assert stats.is_constant_range(-high, -low).tolist() == [False, True, False]
    found = as_design(np.stack([low, high])).column_stats()
    assert found.is_constant().tolist() == [False, True, False]
    for n_roundings, constant in ((8.0, True), (8.5, False)):
        one, less = np.array([1.0]), np.array([1.0 - n_roundings * eps])
        assert stats.is_constant_range(less, one).tolist() == [constant]
        assert stats.is_constant_range(-one, -less).tolist() == [constant]


def test_the_largest_values_that_are_usual():
    for value, usual in (
        (1e150, True),
        (np.nextafter(1e150, 2e150), False),
        (np.inf, False),
        (np.nan, False),
    ):
        zero, one = np.zeros(2), np.array([0.0, value])
        assert stats._Extremes.of(zero, zero, one).all_usual == usual
        assert stats._Extremes.of(zero, -one, zero).all_usual == usual
    assert not stats._Extremes.of(np.array([np.inf]), np.zeros(1), np.zeros(1)).all_usual
    found = stats._Extremes.of(np.zeros(2), np.array([-2.0, 1.0]), np.array([-1.5, 4.0]))
    assert (found.smallest_width, found.lowest, found.highest) == (0.5, -2.0, 4.0)


@pytest.mark.parametrize(("allow_nan", "known"), [(False, True), (True, False)])
def test_what_a_closer_look_has_found_is_known(allow_nan, known, monkeypatch):
    """The sum of these numbers is no number of single precision, though each of them is."""
    design = DenseDesign(np.full((3, 2), np.finfo(np.float32).max))
    assert not design._surely_finite()
    stats.require_finite(design, allow_nan)
    assert design._known_finite == known
    monkeypatch.setattr(DenseDesign, "_blocks", None)
    if known:
        stats.require_finite(design)  # reads nothing
    plain = DenseDesign(np.ones((3, 2)))
    stats.require_finite(plain, allow_nan)
    assert plain._known_finite


# -- Sums of outer squares --


@pytest.mark.parametrize("n_parts", [1, 2, 3])
def test_parts_of_a_sum_are_added_in_their_order(n_parts):
    parts = [range(3 * k, 3 * k + 3) for k in range(n_parts)]
    given = []

    def add(part, matrix):
        given.append(matrix)
        assert (matrix.shape, matrix.flags.f_contiguous) == ((2, 2), True)
        matrix += sum(part)

    total = np.full((2, 2), 0.5, order="F")
    column_kernels.add_in_parts(total, add, parts)
    assert np.all(total == 0.5 + sum(range(3 * n_parts)))
    assert [matrix is total for matrix in given] == [n_parts == 1] * n_parts


def test_what_is_worth_tiles():
    """Two bands of 256 rows at least, and 2²⁶ products."""
    for side, depth, worth in ((512, 300, True), (511, 300, False), (1000, 68, True), (1000, 67, False)):
        assert column_kernels.suits_tiles(side, depth) == worth


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_outer_square_fills_the_lower_triangle(order):
    block = np.array(data((5, 3)), order=order)
    for n_threads in (1, 2):
        one, other = np.zeros((5, 5), order="F"), np.zeros((5, 5), order="F")
        column_kernels.add_outer_square(one, block)
        column_kernels.add_outer_square(one, block[:, :0])
        column_kernels.add_outer_square_in_tiles(other, block, n_threads)
        for found in (one, other):
            np.testing.assert_allclose(np.tril(found), np.tril(block @ block.T), atol=1e-12)
            np.testing.assert_allclose(column_kernels.symmetric_result(found), block @ block.T, atol=1e-12)


# -- Orders --


@pytest.mark.parametrize("n_threads", [1, 3, 4, 16])
def test_keys_are_sorted_by_any_number_of_threads(monkeypatch, n_threads):
    """Values near each other, of all sizes, and few different ones."""
    monkeypatch.setattr(index, "_NUMBERS_FOR_MORE", 32)
    monkeypatch.setattr(index, "available_threads", lambda: n_threads)
    monkeypatch.setattr(index, "MANY", 8)
    rng = np.random.default_rng(n_threads)
    kinds = (rng.normal(size=500), np.exp(100 * rng.normal(size=500)), rng.integers(-2, 3, size=500) * 1.5)
    for values in (*kinds, np.full(500, 0.25), np.r_[kinds[0], -np.inf, np.inf]):
        for n_bits in (9, 16, 31):
            keys = index._keys_of(values, n_bits)
            found, spare = index._sort_keys(keys.copy(), n_bits)
            np.testing.assert_array_equal(found, np.sort(keys))
            assert spare.shape == found.shape


def test_keys_are_sorted_digit_by_digit():
    """All bits above the places, for any number of them."""
    values = np.random.default_rng(0).normal(size=300) * 10.0 ** np.arange(-150, 150)
    for n_bits in (9, 11, 16, 20, 31):
        keys = index._keys_of(values, n_bits)
        found, _ = index._sort_keys(keys.copy(), n_bits)
        np.testing.assert_array_equal(found, np.sort(keys))
        falling = values[found & ((1 << n_bits) - 1)]
        np.testing.assert_allclose(falling, -np.sort(-values), rtol=2.0 ** (n_bits - 51))


def test_values_are_put_right_across_the_bounds_of_threads(monkeypatch):
    def in_three(function, size):
        for first, last in ((4, 6), (0, 2), (2, 4)):
            function(first, last)

    monkeypatch.setattr(index, "in_threads", in_three)
    for values in ([1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [5, 6, 1, 2, 3, 4], [2, 1, 2, 1, 2, 1]):
        falling, order = np.array(values, dtype=float), np.arange(6)
        assert index._put_right(order, falling)
        assert falling.tolist() == sorted(values, reverse=True)
        assert [values[k] for k in order] == falling.tolist()
        ties = [order[falling == value] for value in set(values)]
        assert all(np.all(np.diff(places) > 0) for places in ties)


def test_an_index_of_a_part_is_one_of_the_whole():
    assert index.compose(range(3, 20), np.array([2, 3, 4])) == range(5, 8)
    assert index.compose(range(3, 20, 2), np.array([2, 0])).tolist() == [7, 3]
    assert index.compose(range(20), np.array([4, 5])) == range(4, 6)
    assert index.compose(range(20), np.array([5, 4])).tolist() == [5, 4]
    assert index.compose(np.array([9, 7, 5]), range(1, 3)).tolist() == [7, 5]
    assert index.compose(range(4, 16, 3), range(1, 3)) == range(7, 13, 3)


# -- Sparse matrices --


def test_structures_of_each_format():
    X = sparse.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [3.0, 0.0, 0.0]]))
    for change, said in (
        (lambda m: m.indptr.__setitem__(1, -1), "must not decrease, but entry 1 is -1"),
        (lambda m: m.indptr.__setitem__(0, 1), "must begin with 0 and begins with 1"),
        (lambda m: setattr(m, "indptr", m.indptr[:-1]), "must have 4 entries and has 3"),
        (lambda m: setattr(m, "indices", m.indices[:-1]), "ends with 3, but 2 values are stored"),
        (lambda m: setattr(m, "data", m.data[:-1]), "ends with 3, but 2 values are stored"),
        (lambda m: m.indices.__setitem__(2, 3), r"'indices' holds 3 at place 2, not in 0\.\.2"),
    ):
        damaged = X.copy()
        change(damaged)
        with pytest.raises(ValueError, match=said):
            check_structure(damaged)
    longer = X.copy()
    longer.indices, longer.data = np.append(X.indices, 99), np.append(X.data, 9.0)
    check_structure(longer)  # what is behind the last bound does not count
    pairs = sparse.coo_array(X)
    check_structure(pairs)
    for axis, name in ((0, "row"), (1, "column")):
        wrong = pairs.copy()
        wrong.coords = tuple(np.where(k == axis, 3, c) for k, c in enumerate(pairs.coords))
        with pytest.raises(ValueError, match=f"'{name}' holds 3 at place 0"):
            check_structure(wrong)
    check_structure(sparse.lil_array(X))
    blocks = sparse.bsr_array(np.ones((2, 6)), blocksize=(1, 3))
    check_structure(blocks)
    blocks.indices[1] = 2
    with pytest.raises(ValueError, match=r"not in 0\.\.1"):
        check_structure(blocks)


class Columns:
    """Sparse columns in memory that pretend to be on disk."""

    def __init__(self, X):
        self.matrix = sparse.csc_array(X)
        self.shape, self.dtype = X.shape, self.matrix.dtype

    @property
    def stored_per_column(self):
        return np.diff(self.matrix.indptr).astype(np.int64)

    def stored(self, columns):
        return self.matrix[:, columns.start : columns.stop]


@pytest.mark.parametrize(("share", "n_bands"), [(8.001, 1), (8, 2), (4, 3), (1, 9)])
def test_products_of_features_on_disk_go_band_by_band(share, n_bands, monkeypatch):
    """Each band takes an eighth of the budget and a little more."""
    X = np.where(np.random.default_rng(0).random((20, 6)) < 0.5, data((20, 6)), 0.0)
    source = Columns(X)
    n_bytes = 12 * source.matrix.nnz
    design = SparseFileDesign(source, memory_budget=int(np.ceil(share * n_bytes)))
    heights, read = [], SparseFileDesign._in_memory
    monkeypatch.setattr(
        SparseFileDesign, "_in_memory", lambda self: heights.append(self.n_samples) or read(self)
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
        found = part._in_memory()
        assert (found.shape, found.dtype) == (part.shape, np.float32)
        assert "".join(found.feature_names) == names
        np.testing.assert_array_equal(found.block(slice(None)), chosen)
    nothing = SparseFileDesign(Columns(X), memory_budget=10, columns=range(0))._in_memory()
    assert (nothing.shape, nothing.dtype) == ((8, 0), np.float32)


# -- Standardised views --


@pytest.mark.parametrize(
    ("make", "largest"), [(np.asarray, 10.0), (sparse.csr_array, 1e4)], ids=["dense", "sparse"]
)
def test_means_up_to_which_products_are_corrected(make, largest):
    plain = as_design(make(np.eye(4)))
    for factor, corrected in ((1.0, True), (1.0 + 1e-12, False), (-1.0, True), (-1.5, False)):
        mean = np.zeros(4)
        mean[2] = 2.0 * factor * largest
        view = StandardizedDesign(plain, mean, np.full(4, 2.0))
        assert view._vectors_correctable == corrected
        assert view._correctable == (corrected and plain.is_sparse)
        ignored = StandardizedDesign(plain, mean, np.full(4, 2.0), zero_columns=np.arange(4) == 2)
        assert ignored._vectors_correctable


def test_products_of_two_views_of_which_one_has_large_means():
    deviations = np.random.default_rng(0).integers(-8, 9, size=(6, 4)).astype(float)
    near = StandardizedDesign(as_design(sparse.csr_array(deviations)), np.zeros(4), np.ones(4))
    far = StandardizedDesign(
        as_design(sparse.csr_array(deviations + 2.0**40)), np.full(4, 2.0**40), np.ones(4)
    )
    for one, other in ((near, far), (far, near)):
        np.testing.assert_array_equal(one.cross_gram(other), deviations @ deviations.T)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_view_without_samples_or_features(make):
    view = as_design(make(data())).standardized()
    assert view.take_rows([]).squared_norms().tolist() == [0.0] * 9
    nothing = view.take([])
    assert nothing.squared_norms().shape == (0,)
    assert nothing.dot(np.empty(0)).tolist() == [0.0] * 12
    assert nothing.transpose_dot(np.ones(12)).shape == (0,)
    assert not nothing.gram().any()
    again = as_design(make(data())).take([]).standardized()
    assert (again.shape, again.mean.shape) == ((12, 0), (0,))


def test_bands_of_a_matrix_that_are_changed_at_a_time(monkeypatch):
    for entries, n, height in ((30, 10, 3), (39, 10, 3), (1, 4, 1), (100, 4, 25)):
        monkeypatch.setattr(standardized, "_BAND_ENTRIES", entries)
        bands = list(standardized._bands(n))
        assert [band.start for band in bands] == list(range(0, n, height))
        assert [band.stop for band in bands] == [min(start + height, n) for start in range(0, n, height)]
    assert list(standardized._bands(0)) == []


def test_moments_come_in_pieces(monkeypatch):
    monkeypatch.setattr(standardized, "_BAND_ENTRIES", 4)
    view = as_design(data()).standardized()
    places = list(view._moments.slices())
    assert places == [slice(0, 4), slice(4, 8), slice(8, 9)]
    for place in places:
        part = view._moments.piece(place)
        np.testing.assert_array_equal(part.mean, view.mean[place])
        np.testing.assert_array_equal(part.factor, 1.0 / view.scale[place])


# -- What becomes a design --


def test_what_is_a_table():
    columns, to_numpy = ["a"], lambda: None
    assert convert._is_frame(SimpleNamespace(columns=columns, to_numpy=to_numpy, shape=(3, 1)))
    for parts in (
        {"columns": columns, "shape": (3, 1)},
        {"to_numpy": to_numpy, "shape": (3, 1)},
        {"columns": columns, "to_numpy": to_numpy},
        {"columns": columns, "to_numpy": to_numpy, "shape": (3,)},
    ):
        assert not convert._is_frame(SimpleNamespace(**parts))
    frame = pd.DataFrame(index=range(3))
    assert not convert._is_sparse_frame(frame)
    with pytest.raises(ValueError, match="at least one row and one column"):
        as_design(frame)
    thin = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0], fill_value=0.0)})
    assert convert._is_sparse_frame(thin)
    assert not convert._is_sparse_frame(thin.assign(b=[1.0, 2.0]))
    assert not convert._is_sparse_frame(SimpleNamespace(dtypes=thin.dtypes))


def test_cells_that_hold_one_number():
    cells = np.empty((2, 2), dtype=object)
    cells[:] = [[1.0, 2.0], [3.0, None]]
    cells[1, 1] = np.array(4.0)  # of no dimension
    check_container(cells)
    for wrong in ([5.0], (5.0,), np.array([5.0])):
        cells[0, 1] = wrong
        with pytest.raises(ValueError, match="Row 0, column 1 holds"):
            check_container(cells)
    rows = np.empty(2, dtype=object)
    rows[:] = [[1.0], [2.0]]
    check_container(rows)  # of one dimension, which others refuse
    check_container(np.array([["a", "b"]]))


def test_names_belong_to_features_not_to_samples():
    names = [f"g{k}" for k in range(9)]
    design = as_design(data(), feature_names=names)
    assert design.take_rows([3, 1]).feature_names.tolist() == names
    assert design.take([3, 1]).take_rows([0]).take([1]).feature_names.tolist() == ["g1"]
    view = design.standardized()
    assert view.feature_names.tolist() == names
    assert view.take([8, 0]).feature_names.tolist() == ["g8", "g0"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_centred_and_scaled_in_one_pass_as_in_two(dtype):
    """Products in single precision round after centring and after scaling, in one pass too."""
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(40, 1000)) + 3.0, dtype=np.float32)
    view, scale = as_design(X).standardized(), rng.random(1000).astype(dtype)
    found, expected = (np.empty((40, 1000), dtype=dtype, order="F") for _ in range(2))
    assert view._is_worth_a_kernel(found)
    view._fill_scaled(range(1000), found, scale)
    view._fill(range(1000), expected)
    expected *= scale
    np.testing.assert_array_equal(found, expected)
    rows = np.empty((40, 1000), dtype=dtype)
    view._fill_scaled(range(1000), rows, scale)
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


def test_a_part_of_wide_data_is_added_to_its_lower_triangle():
    rng = np.random.default_rng(0)
    total, part = (
        np.asfortranarray(rng.normal(size=(5, 5))),
        np.asfortranarray(rng.normal(size=(5, 5)), np.float32),
    )
    before = total.copy()
    column_kernels._add_part(total, part, True)
    np.testing.assert_array_equal(total, before + np.tril(part))
    column_kernels._add_part(total, part, False)
    np.testing.assert_array_equal(total, before + np.tril(part) + part)
