"""Selections as indices, pieces to read, and sorting in descending order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from zeronorm.design import _index as index
from zeronorm.design._index import (
    as_index,
    as_selector,
    by_descending_value,
    compose,
    is_consecutive,
    spans_of,
)


def listed(found):
    return list(found) if isinstance(found, range) else found.tolist()


SELECTIONS = [
    slice(None),
    slice(2, 7),
    slice(1, 9, 3),
    slice(8, 1, -2),
    slice(None, None, -1),
    slice(5, 2),
    [3, 1, 1, 9],
    [-1, -10, 4],
    [2, 3, 4],
    [2, 3, 5],
    [4, 3, 2],
    [],
    np.arange(10) % 3 == 0,
    (np.arange(10) > 3) & (np.arange(10) < 8),
    np.zeros(10, dtype=bool),
    np.array([7], dtype=np.uint8),
]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_an_index_selects_what_numpy_does(selection):
    values = np.arange(10)
    chosen = values[selection] if len(np.atleast_1d(selection)) else values[:0]
    found = as_index(selection, 10, "column")
    assert listed(found) == chosen.tolist()
    np.testing.assert_array_equal(values[as_selector(found)], chosen)
    consecutive = chosen.size == 0 or chosen.tolist() == list(range(chosen[0], chosen[0] + chosen.size))
    if consecutive:
        assert isinstance(found, range)
    assert is_consecutive(found) == (isinstance(found, range) and found.step == 1)
    for inner in [*SELECTIONS[:6], [0], [-1], [1, 0]]:
        if isinstance(inner, list) and chosen.size < 2:
            continue
        part = compose(found, as_index(inner, chosen.size, "column"))
        assert listed(part) == chosen[inner].tolist()


def test_positions_that_do_not_exist_are_refused():
    assert listed(as_index([-10, 9], 10, "row")) == [0, 9]
    for wrong, named in (([10], 10), ([0, -11], -11), ([-11, 10], -11), ([-10, 10], 10)):
        with pytest.raises(IndexError, match=rf"The row {named} does not exist: there are 10 rows"):
            as_index(wrong, 10, "row")
    with pytest.raises(IndexError, match="9 entries"):
        as_index(np.ones(10, dtype=bool), 9, "row")
    with pytest.raises(IndexError, match="2 dimensions"):
        as_index([[1]], 10, "row")
    with pytest.raises(IndexError, match="float64"):
        as_index([1.0], 10, "row")
    mine = np.array([3, 1])
    found = as_index(mine, 10, "row")
    mine[0] = 7
    assert found.tolist() == [3, 1]


def test_an_empty_range_is_an_empty_slice():
    assert as_selector(range(5, 3)) == slice(5, 5, 1)
    assert as_selector(range(2, 9, 3)) == slice(2, 9, 3)


@pytest.mark.parametrize("gap", [0, 1, 2, 3, 100])
def test_pieces_hold_all_positions_and_no_gap_that_is_too_large(gap):
    for positions in ([4, 5, 9, 1, 9, 12], [7], [3, 1], range(0, 12, 4), [], np.array([20, 0, 10])):
        spans, pick = spans_of(
            positions if isinstance(positions, range) else np.array(positions, dtype=np.intp), gap
        )
        read = [k for start, stop in spans for k in range(start, stop)]
        assert [read[k] for k in pick] == list(positions)
        wanted = sorted({int(k) for k in positions})
        assert [start for start, _ in spans] == [
            k for n, k in enumerate(wanted) if n == 0 or k - wanted[n - 1] > gap
        ]
        assert all(start in wanted and stop - 1 in wanted for start, stop in spans)
    assert spans_of(range(3, 8), gap) == ([(3, 8)], None)
    assert spans_of(range(3, 3), gap) == ([(3, 3)], None)


def test_few_numbers_by_descending_value():
    values = np.array([1.0, np.nan, 3.0, -2.0, 0.0])
    order, descending = by_descending_value(values)
    assert order.tolist() == [2, 0, 4, 3, 1]
    np.testing.assert_array_equal(descending, values[order])


MANY = index.MANY


@pytest.mark.parametrize("kind", ["normal", "signs", "last bits", "few values", "sorted", "huge and tiny"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_many_numbers_by_descending_value(kind, n_threads, monkeypatch):
    monkeypatch.setattr(index, "available_threads", lambda: n_threads)
    rng = np.random.default_rng(0)
    n = 3 * MANY + 7
    values = {
        "normal": lambda: rng.normal(size=n),
        "signs": lambda: rng.choice([-1.0, -0.0, 0.0, 1.0], n) * rng.uniform(size=n),
        "last bits": lambda: 1.0 + rng.integers(0, 2**20, n) * 2.0**-52,
        "few values": lambda: rng.integers(-3, 4, n).astype(float),
        "sorted": lambda: -np.arange(n) / 7.0,
        "huge and tiny": lambda: rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n),
    }[kind]()
    order, descending = by_descending_value(values)
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    np.testing.assert_array_equal(descending, values[order])
    assert np.all(descending[:-1] >= descending[1:])
    assert values.flags.writeable  # and its values are unchanged
    np.testing.assert_array_equal(-np.sort(-values), descending)
    if kind == "few values":  # equal values keep their order
        assert all(np.all(np.diff(order[descending == v]) > 0) for v in range(-3, 4))


def test_a_missing_number_among_many_comes_last():
    values = np.random.default_rng(1).normal(size=MANY + 3)
    values[5] = np.nan
    order, descending = by_descending_value(values)
    assert order[-1] == 5
    assert np.all(descending[:-2] >= descending[1:-1])


def test_numbers_that_are_nearly_sorted_are_sorted_by_insertion():
    descending = np.array([5.0, 7.0, 6.0, 4.0, 4.0, 9.0])
    order = np.arange(6)
    assert index._sort_by_insertion(order, descending)
    assert (descending.tolist(), order.tolist()) == ([9.0, 7.0, 6.0, 5.0, 4.0, 4.0], [5, 1, 2, 0, 3, 4])
    rising = np.arange(40.0)
    assert not index._sort_by_insertion(np.arange(40), rising)  # that would take too many moves


def test_the_moves_of_an_insertion_are_counted():
    """Eight moves for each number and eight more are allowed."""
    values, order = np.arange(17.0), np.arange(17)  # 0 + 1 + ... + 16 = 136 moves, 8 · 16 + 8 allowed
    assert not index._insert(order, values.copy(), 0, 1, 17, False)
    assert index._insert(np.arange(16), np.arange(16.0), 0, 1, 16, False)
    lowest = np.array([1.0, 2.0, 3.0])
    assert index._insert(np.arange(3), lowest, 1, 1, 3, False)
    assert lowest.tolist() == [1.0, 3.0, 2.0]  # not beyond the lowest position
    first = np.array([5.0, 9.0, 3.0, 8.0])
    assert index._insert(np.arange(4), first, 0, 1, 4, True)
    assert first.tolist() == [9.0, 5.0, 3.0, 8.0]  # stops at the first value that is not moved


LONG = (1 << 18) + 23


@pytest.fixture
def many_parts(monkeypatch):
    """Threads work on unequal parts of a long vector."""

    def in_parts(function, size):
        bounds = [0, *range(3, size, 50_001), size]
        for first, last in itertools.pairwise(bounds):
            function(first, last)

    monkeypatch.setattr(index, "in_threads", in_parts)


@pytest.mark.parametrize("size", [23, LONG])
def test_operations_on_vectors(many_parts, size):
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=size), rng.normal(size=size)
    np.testing.assert_array_equal(index.each(np.multiply, left, right), left * right)
    np.testing.assert_array_equal(index.each(np.divide, left, 3.0), left / 3.0)
    above = index.each(np.greater, left, 0.1, bool)
    assert above.dtype == bool
    np.testing.assert_array_equal(above, left > 0.1)
    np.testing.assert_array_equal(index.roots(left**2), np.abs(left))
    np.testing.assert_array_equal(index.rising(size), np.arange(size))
    for values in (left.copy(), np.column_stack([left, right])):
        expected = np.abs(values)
        assert index.made_absolute(values) is values
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("mark", [True, False])
def test_marked_numbers_of_a_vector(many_parts, share, mark):
    rng = np.random.default_rng(1)
    for size in (23, LONG):
        mask = rng.random(size) < share
        for values in (rng.normal(size=size), np.arange(size), np.broadcast_to(2.5, size)):
            found = index.marked(values, mask, mark)
            assert found.dtype == values.dtype
            np.testing.assert_array_equal(found, values[mask == mark])


@pytest.mark.parametrize("n_threads", [1, 3, 4, 16])
def test_keys_are_sorted_by_any_number_of_threads(monkeypatch, n_threads):
    """Values close to each other, of all magnitudes, and with many ties."""
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
    """Keys are sorted by all bits above those that hold the position."""
    values = np.random.default_rng(0).normal(size=300) * 10.0 ** np.arange(-150, 150)
    for n_bits in (9, 11, 16, 20, 31):
        keys = index._keys_of(values, n_bits)
        found, _ = index._sort_keys(keys.copy(), n_bits)
        np.testing.assert_array_equal(found, np.sort(keys))
        descending = values[found & ((1 << n_bits) - 1)]
        np.testing.assert_allclose(descending, -np.sort(-values), rtol=2.0 ** (n_bits - 51))


def test_values_are_sorted_across_the_bounds_of_threads(monkeypatch):
    def in_three(function, size):
        for first, last in ((4, 6), (0, 2), (2, 4)):
            function(first, last)

    monkeypatch.setattr(index, "in_threads", in_three)
    for values in ([1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [5, 6, 1, 2, 3, 4], [2, 1, 2, 1, 2, 1]):
        descending, order = np.array(values, dtype=float), np.arange(6)
        assert index._sort_by_insertion(order, descending)
        assert descending.tolist() == sorted(values, reverse=True)
        assert [values[k] for k in order] == descending.tolist()
        ties = [order[descending == value] for value in set(values)]
        assert all(np.all(np.diff(positions) > 0) for positions in ties)


def test_an_index_into_a_selection_becomes_one_into_the_whole():
    assert index.compose(range(3, 20), np.array([2, 3, 4])) == range(5, 8)
    assert index.compose(range(3, 20, 2), np.array([2, 0])).tolist() == [7, 3]
    assert index.compose(range(20), np.array([4, 5])) == range(4, 6)
    assert index.compose(range(20), np.array([5, 4])).tolist() == [5, 4]
    assert index.compose(np.array([9, 7, 5]), range(1, 3)).tolist() == [7, 5]
    assert index.compose(range(4, 16, 3), range(1, 3)) == range(7, 13, 3)
