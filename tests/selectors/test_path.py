"""Semantics of SelectionPath: nested and ragged paths, groups, forced features, ties."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zeronorm.design._index import by_descending_value
from zeronorm.selection import _path as path_module
from zeronorm.selection._path import SelectionPath, order_by_score


def test_nested_path_reads_prefixes():
    path = SelectionPath.from_scores([0.1, 3.0, 2.0, -1.0])
    assert path.is_nested
    assert path.order.tolist() == [1, 2, 0, 3]
    assert path.support(2).tolist() == [1, 2]
    assert path.visited(3).tolist() == [0, 1, 2]
    assert path.ranking(2).tolist() == [2, 1, 1, 3]
    assert path.ranking().tolist() == [3, 1, 2, 4]


def test_elimination_visits_only_its_sizes():
    path = SelectionPath.from_elimination([3, 0, 2, 1], sizes=[4, 2, 1])
    assert path.order.tolist() == [1, 2, 0, 3]
    assert path.sizes.tolist() == [1, 2, 4]
    with pytest.raises(KeyError, match="no subset of size 3"):
        path.visited(3)
    assert path.support(3).tolist() == [0, 1, 2]


def test_ragged_path_prefers_the_best_objective_then_the_later():
    path = SelectionPath.from_subsets(
        [[0], [0, 1], [1, 2], [0, 2], [0, 1, 2, 3]],
        n_features=5,
        objective=np.array([5.0, 3.0, 2.0, 2.0, 1.0]),
    )
    assert not path.is_nested
    assert path.visited(2).tolist() == [0, 2]
    assert path.support(1).tolist() == [0]
    assert path.sizes.tolist() == [1, 2, 4]


def test_ragged_path_without_objective_takes_the_later():
    path = SelectionPath.from_subsets([[0, 1], [1, 2]], n_features=3)
    assert path.visited(2).tolist() == [1, 2]


def test_unvisited_size_cuts_the_smallest_superset_by_order():
    path = SelectionPath.from_subsets(
        [[4], [1, 2, 3, 4], [0, 1, 2, 3, 4]], n_features=6, order=[4, 3, 0, 2, 1, 5]
    )
    assert path.support(2).tolist() == [3, 4]
    assert path.support(3).tolist() == [2, 3, 4]


def test_beyond_the_largest_visited_the_order_extends():
    path = SelectionPath.from_subsets([[2], [2, 3]], n_features=5, order=[2, 0, 3, 1, 4])
    assert path.support(3).tolist() == [0, 2, 3]
    assert path.support(5).tolist() == [0, 1, 2, 3, 4]


def test_empty_visited_subsets_are_ignored():
    path = SelectionPath.from_subsets([[], [1]], n_features=3)
    assert path.support(1).tolist() == [1]
    only_empty = SelectionPath.from_subsets([[]], n_features=3, tie_break=[0.0, 2.0, 1.0])
    assert only_empty.support(1).tolist() == [1]


def test_groups_are_whole_and_have_the_position_of_their_best_member():
    groups = np.array([0, 1, 0, 2])
    path = SelectionPath.from_scores([1.0, 2.0, 3.0, 0.0]).constrained(groups, np.empty(0, dtype=np.intp))
    assert path.order.tolist() == [2, 0, 1, 3]
    assert path.support(2).tolist() == [0, 2]
    assert path.support(3).tolist() == [0, 1, 2]
    assert path.sizes.tolist() == [2, 3, 4]
    with pytest.raises(ValueError, match="No whole feature group fits into 1"):
        path.support(1)


def test_size_between_groups_takes_the_largest_union_that_fits():
    groups = np.array([0, 1, 1, 1])
    path = SelectionPath.from_scores([4.0, 3.0, 2.0, 1.0]).constrained(groups, np.empty(0, dtype=np.intp))
    assert path.support(3).tolist() == [0]
    with pytest.raises(KeyError):
        path.visited(3)


def test_forced_features_count_towards_the_size():
    path = SelectionPath.from_scores([4.0, 3.0, 2.0, 1.0]).constrained(None, np.array([3]))
    assert path.support(1).tolist() == [3]
    assert path.support(2).tolist() == [0, 3]
    both = SelectionPath.from_scores([4.0, 3.0, 2.0, 1.0]).constrained(None, np.array([2, 3]))
    with pytest.raises(ValueError, match="2 features are always kept"):
        both.support(1)


def test_forced_features_join_ragged_subsets():
    path = SelectionPath.from_subsets([[0], [0, 1]], n_features=4).constrained(None, np.array([3]))
    assert path.visited(2).tolist() == [0, 3]
    assert path.support(3).tolist() == [0, 1, 3]


@pytest.mark.parametrize("size", [0, -1, 4])
def test_sizes_outside_are_refused(size):
    path = SelectionPath.from_scores([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="between 1 and 3"):
        path.support(size)


def test_near_ties_go_to_the_lower_index():
    assert order_by_score([1.0, 1.0 + 1e-12, 1.0 - 1e-12, 0.5]).tolist() == [0, 1, 2, 3]
    assert order_by_score([1.0, 1.0 + 1e-6]).tolist() == [1, 0]
    assert order_by_score([np.inf, np.inf, 1.0]).tolist() == [0, 1, 2]
    assert order_by_score([]).tolist() == []


@pytest.mark.parametrize("n_parts", [2, 3, 7])
def test_ties_across_the_bounds_of_threads(monkeypatch, n_parts):
    """Bounds between threads, inside ties and at their ends, do not change the order."""
    rng = np.random.default_rng(n_parts)

    def in_parts(function, size):
        bounds = np.sort(rng.integers(0, size + 1, size=n_parts - 1)).tolist()
        for first, last in itertools.pairwise([0, *bounds, size]):
            if first < last:
                function(first, last)

    for digits in (0, 1, 2):
        scores = np.round(rng.normal(size=50), digits)
        expected = order_by_score(scores)
        monkeypatch.setattr(path_module, "in_threads", in_parts)
        for _ in range(20):
            np.testing.assert_array_equal(order_by_score(scores), expected)
        monkeypatch.undo()


def test_ratios_are_tied_by_their_own_size():
    scores = [1.0, 2.0, 1e15, 2e15, 2e15 + 8e4, 0.5]
    assert order_by_score(scores).tolist() == [3, 4, 2, 0, 1, 5]  # tied by the tolerance of the largest
    assert order_by_score(scores, ratios=True).tolist() == [3, 4, 2, 1, 0, 5]
    assert order_by_score([1.0, np.inf, 2.0], ratios=True).tolist() == [1, 2, 0]
    assert order_by_score([1.0, 1.0 + 1e-12], ratios=True).tolist() == [0, 1]


MANY_SCORES = {
    "distinct": lambda rng, n: rng.normal(size=n),
    "few values": lambda rng, n: rng.integers(0, 7, size=n).astype(float),
    "equal leading bits": lambda rng, n: 1.0 + 1e-11 * rng.normal(size=n),
    "some equal leading bits": lambda rng, n: np.where(rng.random(n) < 0.01, 1.0, 0.0) + 1e-9 * rng.random(n),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.2, -np.inf, rng.normal(size=n)),
    "missing": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
}


@pytest.fixture(params=[1, 3])
def n_threads(request, monkeypatch):
    """Long vectors are divided among this number of threads."""
    monkeypatch.setattr("zeronorm.execution._threads.available_threads", lambda: request.param)
    monkeypatch.setattr("zeronorm.execution._threads._NUMBERS_PER_THREAD", 1 << 12)
    monkeypatch.setattr("zeronorm.design._index.available_threads", lambda: request.param)


@cache
def many_scores_in_order(kind):
    """Scores, and their order by the definition; cached, because plain Python is slow."""
    scores = MANY_SCORES[kind](np.random.default_rng(0), 60_000)
    tolerance = 1e-10 * np.abs(scores[np.isfinite(scores)]).max()
    scores = scores.tolist()
    by_value = sorted(range(len(scores)), key=lambda k: (math.isnan(scores[k]), -scores[k]))
    group, expected = [by_value[0]], []
    for before, k in itertools.pairwise(by_value):
        if scores[before] - scores[k] > tolerance:
            expected += sorted(group)
            group = []
        group.append(k)
    return scores, expected + sorted(group)


@pytest.mark.usefixtures("n_threads")
@pytest.mark.parametrize("kind", MANY_SCORES)
def test_many_scores_are_ordered_as_few_are(kind):
    scores, expected = many_scores_in_order(kind)
    assert order_by_score(scores).tolist() == expected


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_order_is_a_permutation_and_descends(scores):
    order = order_by_score(scores)
    assert sorted(order) == list(range(len(scores)))
    sorted_scores = np.asarray(scores)[order]
    slack = 1e-10 * max(1e-300, np.abs(scores).max()) * len(scores)
    assert np.all(np.diff(sorted_scores) <= slack)


@given(st.permutations(range(6)), st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=6))
def test_every_size_has_a_support(order, subsets):
    path = SelectionPath.from_subsets([sorted(s) for s in subsets], n_features=6, order=list(order))
    for k in range(1, 7):
        support = path.support(k)
        assert len(support) == k
        supersets = [s for s in subsets if len(s) >= k]
        if supersets and not any(len(s) == k for s in subsets):
            smallest = min(len(s) for s in supersets)
            assert any(set(support.tolist()) <= s for s in subsets if len(s) == smallest)


@pytest.mark.parametrize(
    ("order", "scores", "agreeing"),
    [
        ([2, 0, 1], [2.0, 1.0, 3.0], [2.0, 1.0, 3.0]),
        ([2, 0, 1], [1.0, 5.0, 3.0], [5.0, 5.0, 5.0]),
        ([0, 1, 2], [3.0, 2.0, 2.5], [3.0, 2.5, 2.5]),
        ([0, 1, 3, 2], [4.0, 3.0, 1.0, 2.0], [4.0, 3.0, 1.0, 2.0]),
    ],
)
def test_scores_are_raised_to_the_highest_ranked_behind(order, scores, agreeing):
    path = SelectionPath(order=np.array(order), scores=np.array(scores))
    assert path.feature_scores().tolist() == agreeing
    assert path.scores.tolist() == scores


@pytest.mark.usefixtures("n_threads")
@pytest.mark.parametrize("last_bits", [0, 3, 16])
def test_many_values_with_equal_leading_bits_are_sorted(last_bits):
    """Runs of equal leading bits, also across the bounds of threads, and so long that everything is sorted again."""
    rng = np.random.default_rng(0)
    values = 1.0 + rng.integers(0, 2**17 >> last_bits, 40_000) * 2.0**-35
    values += rng.integers(0, 2**10, values.size) * 2.0**-51
    order, descending = by_descending_value(values)
    assert np.array_equal(descending, np.sort(values)[::-1])
    assert np.array_equal(descending, values[order])
    assert np.array_equal(np.sort(order), np.arange(values.size))


@pytest.mark.usefixtures("n_threads")
def test_many_features_are_ranked_and_scored_as_few_are(monkeypatch):
    rng = np.random.default_rng(0)
    path = SelectionPath(order=rng.permutation(20_000), scores=rng.normal(size=20_000))
    ranking, scores = path.ranking(7), path.feature_scores(7)
    monkeypatch.setattr("zeronorm.selection._path.MANY", 1 << 30)
    assert np.array_equal(path.ranking(7), ranking)
    assert np.array_equal(path.feature_scores(7), scores)
