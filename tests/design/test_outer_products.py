"""Sums of outer products in parts and tiles do not depend on the number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from design.arrays import data
from zeronorm import as_design
from zeronorm.design import _outer_products as outer_products


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(200, 14_001), (600, 900)])
def test_gram_matrices_do_not_depend_on_the_number_of_threads(order, shape, monkeypatch):
    """Parts of unequal size, each summed by one thread, or tiles of the matrix; large means, weights with zeros."""
    rng = np.random.default_rng(0)
    n, p = shape
    X = np.array(rng.normal(size=shape) + 5.0, dtype=np.float32, order=order)
    columns = np.arange(p) % 4 / 3
    in_parts = len(outer_products.outer_square_parts(n, p)) > 1
    assert in_parts != outer_products.suits_tiles(n, p)
    results = []
    for n_threads in (1, 3):
        for module in ("_gram", "_outer_products"):
            monkeypatch.setattr(f"zeronorm.design.{module}.available_threads", lambda n=n_threads: n)
        design = as_design(X)
        results.append((design.gram(), design.standardized().gram(columns)))
    exact = X.astype(float)
    Z = (exact - exact.mean(axis=0)) / exact.std(axis=0)
    for one, three, right in zip(*results, (exact @ exact.T, (Z * columns) @ Z.T), strict=True):
        assert np.array_equal(one, three)
        np.testing.assert_allclose(one, right, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("order", ["C", "F"])
def test_products_of_features_do_not_depend_on_the_number_of_threads(order, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.array(rng.normal(size=(14_001, 200)) + 5.0, dtype=np.float32, order=order)
    rows = np.arange(14_001) % 3 / 2
    assert len(outer_products.outer_square_parts(200, 14_001)) > 1
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr(outer_products, "available_threads", lambda n=n_threads: n)
        results.append(as_design(X).standardized().sandwich(rows))
    exact = X.astype(float)
    Z = (exact - exact.mean(axis=0)) / exact.std(axis=0)
    assert np.array_equal(*results)
    np.testing.assert_allclose(results[0], (Z.T * rows) @ Z, rtol=1e-10, atol=1e-7)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("width", [1 << 13, 1 << 20])
def test_gram_matrices_in_tiles_do_not_depend_on_the_number_of_threads(order, width, monkeypatch):
    """Tiles and blocks of unequal size, columns of large mean, weights with zeros, a scattered selection."""
    monkeypatch.setattr(outer_products, "_BAND", 7)
    monkeypatch.setattr("zeronorm.design._ways.LITTLE_WORK", 1)
    monkeypatch.setattr("zeronorm.design._gram.LARGEST_BLOCK_BYTES", width)
    monkeypatch.setattr("zeronorm.design._gram._BYTES_FILLED_BY_A_THREAD", 1 << 10)
    rng = np.random.default_rng(0)
    X = np.array(rng.normal(size=(31, 901)) + 5.0, dtype=np.float32, order=order)
    columns, some = np.arange(901) % 4 / 3, rng.permutation(901)[:600]
    assert outer_products.suits_tiles(31, 901)
    results = []
    for n_threads in (1, 3):
        monkeypatch.setattr("zeronorm.design._gram.available_threads", lambda n=n_threads: n)
        design = as_design(X)
        standardized = design.standardized()
        results.append(
            (design.gram(), design.gram(columns), standardized.gram(columns), standardized.take(some).gram())
        )
    exact = X.astype(float)
    Z = (exact - exact.mean(axis=0)) / exact.std(axis=0)
    wanted = (exact @ exact.T, (exact * columns) @ exact.T, (Z * columns) @ Z.T, Z[:, some] @ Z[:, some].T)
    for one, three, right in zip(*results, wanted, strict=True):
        assert np.array_equal(one, three)
        np.testing.assert_allclose(one, right, rtol=1e-10, atol=1e-9)


def test_tiles_are_used_if_memory_allows_too_few_parts():
    assert outer_products.suits_tiles(2000, 100_000)  # a matrix has 32 MB: six parts
    assert outer_products.suits_tiles(1000, 300)  # little work: one part
    assert not outer_products.suits_tiles(200, 10**6)
    assert not outer_products.suits_tiles(2000, 10**6)
    assert not outer_products.suits_tiles(100, 10**4)


def test_parts_of_outer_products_take_little_memory():
    """Each part needs a matrix: there is one part only if that matrix is large compared with the data."""
    assert outer_products.outer_square_parts(10_000, 20_000) == [range(20_000)]
    for side, depth in ((200, 10**6), (2000, 200_000), (60, 2000), (0, 5), (5, 0)):
        parts = outer_products.outer_square_parts(side, depth)
        assert parts[0].start == 0
        assert parts[-1].stop == depth
        assert (len(parts) - 1) * 8 * side**2 <= max(32 << 20, side * depth)


def test_arrays_that_blas_cannot_read_are_refused():
    with pytest.raises(ValueError, match="contiguous"):
        outer_products.add_outer_square(np.zeros((4, 4), order="F"), np.ones((8, 8))[::2, ::2])


@pytest.mark.parametrize("n_parts", [1, 2, 3])
def test_parts_of_a_sum_are_added_in_their_order(n_parts):
    parts = [range(3 * k, 3 * k + 3) for k in range(n_parts)]
    given = []

    def add(part, matrix):
        given.append(matrix)
        assert (matrix.shape, matrix.flags.f_contiguous) == ((2, 2), True)
        matrix += sum(part)

    total = np.full((2, 2), 0.5, order="F")
    outer_products.add_in_parts(total, add, parts)
    assert np.all(total == 0.5 + sum(range(3 * n_parts)))
    assert [matrix is total for matrix in given] == [n_parts == 1] * n_parts


def test_sizes_from_which_tiles_are_used():
    """At least two bands of 256 rows, and 2²⁶ products."""
    for side, depth, worth in ((512, 300, True), (511, 300, False), (1000, 68, True), (1000, 67, False)):
        assert outer_products.suits_tiles(side, depth) == worth


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_outer_square_fills_the_lower_triangle(order):
    block = np.array(data((5, 3)), order=order)
    for n_threads in (1, 2):
        one, other = np.zeros((5, 5), order="F"), np.zeros((5, 5), order="F")
        outer_products.add_outer_square(one, block)
        outer_products.add_outer_square(one, block[:, :0])
        outer_products.add_outer_square_in_tiles(other, block, n_threads)
        for found in (one, other):
            np.testing.assert_allclose(np.tril(found), np.tril(block @ block.T), atol=1e-12)
            np.testing.assert_allclose(outer_products.symmetric_result(found), block @ block.T, atol=1e-12)


def test_a_part_of_wide_data_is_added_to_its_lower_triangle():
    rng = np.random.default_rng(0)
    total, part = (
        np.asfortranarray(rng.normal(size=(5, 5))),
        np.asfortranarray(rng.normal(size=(5, 5)), np.float32),
    )
    before = total.copy()
    outer_products._add_part(total, part, True)
    np.testing.assert_array_equal(total, before + np.tril(part))
    outer_products._add_part(total, part, False)
    np.testing.assert_array_equal(total, before + np.tril(part) + part)


def test_a_large_symmetric_matrix_is_mirrored():
    A = np.random.default_rng(0).normal(size=(150, 150))
    found = outer_products.symmetric_result(np.asfortranarray(np.tril(A)))
    np.testing.assert_array_equal(found, np.tril(A) + np.tril(A, -1).T)
    total = np.zeros((4, 3), order="F")
    left, right = data((4, 5)), data((3, 5), seed=1)
    for a in (np.asfortranarray(left), np.ascontiguousarray(left)):
        for b in (np.asfortranarray(right), np.ascontiguousarray(right)):
            outer_products.add_product(total, a, b)
    np.testing.assert_allclose(total, 4.0 * left @ right.T)
    outer_products.add_product(total, left[:, :0], right[:, :0])
    for order in ("C", "F"):
        design = as_design(np.array(left, order=order))
        no_samples = design.take_rows([])
        assert design.cross_gram(no_samples).shape == (4, 0)
        assert no_samples.cross_gram(design).shape == (0, 4)
