"""Trees by the number of errors: splits by hand, growth, pruning, and the scores of features."""

from __future__ import annotations

import numpy as np
import pytest

import zeronorm
from small_problems import noise, problem_of
from zeronorm import as_design
from zeronorm.engines._column_information import explained_share
from zeronorm.engines.trees import _cuts
from zeronorm.engines.trees._error_cuts import fewest_errors, grow_by_error
from zeronorm.engines.trees._nodes import chosen_cost
from zeronorm.selection.target import Labels
from zeronorm.selectors.greedy import _tree as tree


def test_a_leaf_that_costs_just_what_a_branch_saves_ends_there():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], dtype=np.float32)
    nodes = grow_by_error(X, np.array([0, 0, 1, 1, 1, 0]), 2, max_depth=None, min_leaf=1)
    costs = nodes.collapse_costs()
    assert nodes.feature[0] == 0
    for level in np.unique(costs[costs > 0.0]):
        at, below = nodes.pruned(float(level)), nodes.pruned(float(np.nextafter(level, 0.0)))
        np.testing.assert_array_equal(at.left < 0, costs <= level)
        np.testing.assert_array_equal(below.left < 0, costs < level)
    assert nodes.pruned(0.0).left.tolist() == nodes.left.tolist()
    assert nodes.pruned(float(costs[0])).used(1).tolist() == [False]


def test_the_cost_of_a_leaf_is_chosen_from_two_samples_of_a_class_on():
    """Noise: no leaf pays. With one sample of a class there is nothing to test on."""
    data = noise(12, 2).astype(np.float32)

    def grow(data, y):
        return grow_by_error(data, y, 2, max_depth=None, min_leaf=1)

    for n_rare, is_chosen in ((1, False), (2, True), (5, True)):
        y = (np.arange(12) < n_rare).astype(int)
        assert (chosen_cost(grow, data, Labels.of(y), 0) > 0.0) is is_chosen


def test_columns_of_a_tree_keep_their_differences_in_single_precision():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5)) * [1.0, 1.0, 1e-30, 1e30, 0.0] + [0.0, 1e9, 0.0, 0.0, 3.0]
    data = tree._single_precision(as_design(X))
    assert data.dtype == np.float32
    np.testing.assert_array_equal(data[:, 0], X[:, 0].astype(np.float32))  # as they are
    assert np.unique(data[:, 4]).size == 1
    for column in (1, 2):  # their ranks
        np.testing.assert_array_equal(data[:, column], X[:, column].argsort().argsort())
    np.testing.assert_allclose(data[:, 3], X[:, 3], rtol=1e-6)


def test_one_value_far_away_does_not_hide_the_differences_of_the_others():
    """A column of seconds since 1970 with one zero: single precision alone has a resolution of 128 s."""
    y = np.arange(60) % 2
    X = noise(60, 5)
    X[:, 3] = 1.7e9 + 10.0 * y + noise(60, 1, 1)[:, 0]
    expected = zeronorm.TreeSelector(random_state=0).fit(X, y)
    X[0, 3] = 0.0
    found = zeronorm.TreeSelector(random_state=0).fit(X, y)
    assert expected.path_.order[0] == found.path_.order[0] == 3
    assert found.tree_.get_depth() <= 3


def test_unused_features_stand_below_half_of_the_least_importance():
    importance, used = np.array([0.6, 0.0, 0.4, 0.0, 0.0]), np.array([True, True, True, False, False])
    found = tree._ranked_scores(importance, used, np.array([0.0, 0.0, 0.0, 0.5, 1.1]))
    np.testing.assert_allclose(found, [0.6, 0.4, 0.4, 0.1, 0.2])
    nothing = tree._ranked_scores(np.zeros(2), np.zeros(2, dtype=bool), np.array([0.3, 0.8]))
    np.testing.assert_allclose(nothing, [0.15, 0.4])


def test_the_explained_share_of_a_column_is_the_share_of_its_variance():
    X, y = noise(30, 4), np.arange(30) % 3
    X[:, 3] = 1.0
    three = problem_of(y, X, "multiclass", classes=np.arange(3))
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    wanted = ((means[y] - X.mean(axis=0)) ** 2).mean(axis=0)[:3] / X.var(axis=0)[:3]
    np.testing.assert_allclose(explained_share(three), [*wanted, 0.0], atol=1e-12)
    real = problem_of(X[:, 0] + noise(30, 1, 1)[:, 0], X, "regression")
    wanted = [np.corrcoef(x, real.y)[0, 1] ** 2 for x in X.T[:3]]
    np.testing.assert_allclose(explained_share(real)[:3], wanted, atol=1e-12)


def split(values, labels, min_leaf=1, n_classes=2):
    return fewest_errors(np.asarray(values, dtype=np.float32), np.eye(n_classes)[labels], min_leaf)


def test_the_split_with_the_fewest_errors_by_hand():
    column = [[1.0], [2.0], [4.0], [8.0]]
    assert split(column, [0, 0, 1, 1]) == (0, 3.0)
    assert split(column, [0, 1, 1, 1]) == (0, 1.5)
    assert split(column, [0, 1, 1, 1], min_leaf=2) == (0, 3.0)
    assert split(column, [0, 1, 1, 1], min_leaf=3) is None
    assert split(column[:3], [0, 1, 1], min_leaf=2) is None
    assert split([[1.0], [1.0], [1.0], [1.0]], [0, 0, 1, 1]) is None  # nothing to cut between
    assert split([[1.0], [2.0], [2.0], [2.0]], [0, 0, 1, 1]) == (0, 1.5)
    assert split([[0.0, 1.0], [1.0, 2.0], [2.0, 4.0], [3.0, 8.0]], [0, 0, 1, 1]) == (
        0,
        1.5,
    )  # the lowest column
    # One error each: the purer one.
    assert split([[0, 0], [1, 1], [2, 3], [3, 4], [4, 2], [5, 5]], [0, 0, 1, 0, 1, 1]) == (0, 1.5)
    close = np.float32(1.0), np.nextafter(np.float32(1.0), np.float32(2.0))
    assert split([[close[0]], [close[1]]], [0, 1])[1] < close[1]
    assert fewest_errors(np.array([[2.0], [1.0]], dtype=np.float32), np.eye(2)[[0, 1]], 1) == (0, 1.5)


def test_growth_ends_at_the_depth_and_where_a_node_is_pure():
    data = np.array([[0.0], [1.0], [2.0], [3.0]], dtype=np.float32)
    y = np.array([0, 1, 0, 0])
    whole = grow_by_error(data, y, 2, max_depth=None, min_leaf=1)
    assert whole.left.tolist() == [1, 2, -1, -1, -1]
    assert whole.right.tolist() == [4, 3, -1, -1, -1]
    assert whole.threshold.tolist()[:2] == [1.5, 0.5]
    assert whole.cost.tolist() == [0.25, 0.25, 0.0, 0.0, 0.0]
    assert whole.value.tolist() == [0.0, 0.0, 0.0, 1.0, 0.0]
    assert grow_by_error(data, y, 2, max_depth=1, min_leaf=1).left.tolist() == [1, -1, -1]
    assert grow_by_error(data, y, 2, max_depth=0, min_leaf=1).left.tolist() == [-1]
    assert grow_by_error(data, np.zeros(4, dtype=int), 2, max_depth=None, min_leaf=1).left.tolist() == [-1]
    np.testing.assert_array_equal(whole.predictions(data, np.array([0.0, 1.0])), [y, np.zeros(4)])
    np.testing.assert_allclose(whole.importance(2), [1.0, 0.0])


def test_a_share_of_the_samples_is_the_least_size_of_a_leaf():
    problem = problem_of(np.arange(20) % 2, noise(20), classes=np.arange(2))
    data = noise(20).astype(np.float32)
    for least, size in ((0.2, 4), (0.21, 5), (0.001, 1), (3, 3)):
        grow = zeronorm.TreeSelector(criterion="error", min_samples_leaf=least)._grower(problem, 0)
        nodes = grow(data, problem.y)
        wanted = grow_by_error(data, problem.y, 2, max_depth=None, min_leaf=size)
        np.testing.assert_array_equal(nodes.feature, wanted.feature)
        np.testing.assert_array_equal(nodes.threshold, wanted.threshold)
        counts = np.bincount(list(nodes.paths(data))[-1])
        assert counts[counts > 0].min() >= size


@pytest.mark.parametrize("start", [1e6, 1.0, 3e30, -7.0])
def test_neighbours_in_single_precision_are_separated(start):
    """Their middle rounds to one of them; at the upper one nothing was separated, and the growth never ended."""
    low = np.float32(start)
    for _ in range(4):
        high = np.nextafter(low, np.float32(np.inf))
        data, y = np.repeat([[low], [high]], 2, axis=0), np.array([0, 0, 1, 1])
        nodes = grow_by_error(data, y, 2, max_depth=3, min_leaf=1)
        assert nodes.predictions(data, np.zeros(1))[0].tolist() == [0.0, 0.0, 1.0, 1.0]
        low = high


@pytest.mark.parametrize("n_classes", [2, 3])
def test_splits_of_several_blocks_are_those_of_one(n_classes, monkeypatch):
    """Few values make many ties: fewer errors come first, then the lower impurity, then the lower column."""
    rng = np.random.default_rng(n_classes)
    cases = []
    for _ in range(60):
        data = rng.integers(0, 3, size=(9, 4)).astype(np.float32)
        cases.append((data, np.eye(n_classes)[rng.integers(0, n_classes, 9)]))
    whole = [fewest_errors(data, indicator, 1) for data, indicator in cases]
    assert {found[0] for found in whole if found is not None} == {0, 1, 2, 3}
    monkeypatch.setattr(_cuts, "MOST_ENTRIES", 1)
    assert [fewest_errors(data, indicator, 1) for data, indicator in cases] == whole


@pytest.mark.parametrize("home", [np.asarray, as_design])
def test_columns_whose_squares_overflow_are_refused(home):
    X, y = noise(20), np.arange(20) % 2
    X[:, 1] *= 1e160
    with pytest.raises(ValueError, match=r"first found in row 0, column 1.*overflow"):
        zeronorm.TreeSelector(random_state=0).fit(home(X), y)
