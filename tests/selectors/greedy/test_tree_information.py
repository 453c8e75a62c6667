"""ID3 and C4.5 against the figures that Quinlan printed, a plain recursion, and scikit-learn's trees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.metrics import mutual_info_score
from sklearn.tree import DecisionTreeClassifier

from zeronorm import TreeSelector
from zeronorm.engines.trees._information import (
    InformationTree,
    best_cuts,
    best_split,
    categories_apart,
    largest_error_rate,
)

# Outlook (sunny, overcast, rain), temperature (hot, mild, cool), humidity (high, normal), windy; play or not.
# Quinlan 1986, table 1.
SATURDAYS = np.array(
    [
        [0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [2, 1, 0, 0], [2, 2, 1, 0], [2, 2, 1, 1], [1, 2, 1, 1],
        [0, 1, 0, 0], [0, 2, 1, 0], [2, 1, 1, 0], [0, 1, 1, 1], [1, 1, 0, 1], [1, 0, 1, 0], [2, 1, 0, 1],
    ]
)  # fmt: skip
PLAY = np.array([0, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 0])


def id3(**settings):
    return TreeSelector(method="id3", discrete_features="all", **settings)


def gain_of(column):
    found = categories_apart(SATURDAYS[:, column], np.eye(2)[PLAY], 1)
    return found.gain, found.own


def test_gains_of_the_saturday_mornings():
    """The paper prints 0.246, 0.029, 0.151 and 0.048 bits, from rounded terms."""
    gains = [gain_of(column)[0] for column in range(4)]
    np.testing.assert_allclose(gains, [0.246, 0.029, 0.151, 0.048], atol=1.1e-3)
    # C4.5 prints the information in the three branches of outlook, 1.577 bits, and the ratio 0.156.
    assert gain_of(0)[1] == pytest.approx(1.577, abs=6e-4)
    assert gain_of(0)[0] / gain_of(0)[1] == pytest.approx(0.156, abs=6e-4)


@pytest.mark.parametrize("method", ["id3", "c4.5"])
def test_the_tree_of_the_saturday_mornings(method):
    """Outlook at the root, then humidity where it is sunny and windy where it rains; temperature is not used."""
    s = TreeSelector(method=method, discrete_features="all", confidence=None).fit(SATURDAYS, PLAY)
    tree = s.tree_
    assert tree.feature[0] == 0
    below = {
        int(value): int(feature)
        for parent, value, feature in zip(tree.parent, tree.value, tree.feature, strict=True)
        if parent == 0
    }
    assert below == {0: 2, 1: -1, 2: 3}
    assert tree.errors[tree.feature < 0].sum() == 0
    assert s.get_support(indices=True).tolist() == [0, 2, 3]
    gains = np.array(
        [gain_of(0)[0], 0.0, 5 / 14 * 0.971, 5 / 14 * 0.971]
    )  # below, all that is unknown is gained
    np.testing.assert_allclose(s.scores_[[0, 2, 3]], (gains / gains.sum())[[0, 2, 3]], atol=1e-3)


def test_largest_error_rates_are_those_that_quinlan_prints():
    """C4.5, section 4.2, at 25 %; the last one is interpolated there, and 0.1596 by the binomial distribution."""
    errors, sizes = np.array([0, 0, 0, 1]), np.array([6, 9, 1, 16])
    found = largest_error_rate(errors, sizes, 0.25)
    np.testing.assert_allclose(found, [0.206, 0.143, 0.750, 0.157], atol=3e-3)
    np.testing.assert_allclose(binom.cdf(errors, sizes, found), 0.25)
    assert largest_error_rate(np.array([3]), np.array([3]), 0.25) == pytest.approx(1.0)


def leaf_of_sixteen():
    """The branches of 6, 9 and 1 samples of Quinlan's example, whose last one is of another class."""
    return InformationTree(
        feature=np.array([5, -1, -1, -1]),
        threshold=np.full(4, np.nan),
        parent=np.array([-1, 0, 0, 0]),
        value=np.array([0.0, 0.0, 1.0, 2.0]),
        n_samples=np.array([16, 6, 9, 1]),
        errors=np.array([1, 0, 0, 0]),
        gain=np.array([0.3, 0.0, 0.0, 0.0]),
    )


def test_pruning_of_the_example_that_quinlan_prints():
    """The branches are expected to make 3.273 errors, the leaf 16 U(1, 16) = 2.55: it replaces them."""
    assert leaf_of_sixteen().pruned(0.25).feature.tolist() == [-1]
    # With little pruning the leaf counts more: 16 U(1, 16) = 1.83 at 80 % against 6 U + 9 U + U = 0.66.
    assert leaf_of_sixteen().pruned(0.8).feature.tolist() == [5, -1, -1, -1]


def entropy(labels):
    share = np.bincount(labels) / len(labels)
    share = share[share > 0]
    return -np.sum(share * np.log2(share))


def plain_growth(X, y, discrete, by_ratio, used):
    """The definition: all splits of all columns, gains by mutual information, recursion."""
    if np.unique(y).size < 2:
        return
    found = []
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        if discrete[j]:
            branches = [np.searchsorted(values, X[:, j])] if values.size > 1 else []
        else:
            branches = [(X[:, j] > t).astype(int) for t in values[:-1]]
        gains = [mutual_info_score(y, branch) / np.log(2) for branch in branches]
        if gains and max(gains) > 1e-9:
            best = int(np.argmax(np.round(gains, 9)))
            found.append((j, gains[best], entropy(branches[best]), branches[best]))
    if not found:
        return
    mean = np.mean([gain for _, gain, _, _ in found])
    worth = [(gain / own if gain > mean - 1e-9 else -1.0) if by_ratio else gain for _, gain, own, _ in found]
    j, gain, _, branch = found[int(np.argmax(np.round(worth, 9)))]
    used[j] += gain * len(y)
    for b in np.unique(branch):
        plain_growth(X[branch == b], y[branch == b], discrete, by_ratio, used)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["id3", "c4.5"])
def test_trees_are_those_of_a_plain_recursion(method, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6))
    X[:, :3] = rng.integers(0, 4, size=(40, 3))
    y = ((X[:, 0] > 1) + (X[:, 4] > 0.3) + (rng.random(40) < 0.1)).astype(int)
    discrete = np.arange(6) < 3
    gained = np.zeros(6)
    plain_growth(X, y, discrete, method == "c4.5", gained)
    s = TreeSelector(method=method, discrete_features=discrete, confidence=None).fit(X, y)
    assert s.get_support(indices=True).tolist() == np.flatnonzero(gained).tolist()
    np.testing.assert_allclose(s.scores_[s.support_], gained[gained > 0] / gained.sum(), rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_with_thresholds_alone_id3_grows_the_entropy_tree_of_another_library(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 8)).astype(np.float32)
    y = ((X[:, 2] > 0.3) ^ (X[:, 5] > -0.2)).astype(int)
    s = TreeSelector(method="id3", max_depth=2).fit(X, y)
    peer = DecisionTreeClassifier(criterion="entropy", max_depth=2, random_state=0).fit(X, y)
    used = np.flatnonzero(peer.feature_importances_)
    np.testing.assert_allclose(s.scores_[used], peer.feature_importances_[used], rtol=1e-6)
    assert s.get_support(indices=True).tolist() == used.tolist()


def test_the_ratio_does_not_prefer_many_branches():
    """A number for each sample has all the gain there is, and a low ratio."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    noise = rng.integers(0, 2, size=(60, 4))  # without it the gain of the good column is below the mean
    X = np.column_stack([np.arange(60), np.where(rng.random(60) < 0.9, y, 1 - y), noise])
    first = {
        method: TreeSelector(method=method, discrete_features="all", max_depth=1).fit(X, y).tree_.feature[0]
        for method in ("id3", "c4.5")
    }
    assert first == {"id3": 0, "c4.5": 1}


def test_splits_below_the_mean_gain_are_not_compared_by_their_ratio():
    """A single rare value has the highest ratio and hardly any gain."""
    y = np.repeat([0, 1], 50)
    rare = np.zeros(100)
    rare[0] = 1.0
    good = np.where(np.arange(100) % 10 < 3, 1 - y, y).astype(float)
    found = best_split(np.column_stack([rare, good]), np.eye(2)[y], np.ones(2, dtype=bool), True, 1)
    assert found.column == 1
    assert best_cuts(rare[:, None], np.eye(2)[y], 2) == []  # one sample is too few for a branch of two


def test_two_branches_need_the_least_number_of_samples():
    column = np.array([0, 0, 0, 1, 2])
    indicator = np.eye(2)[[0, 0, 1, 1, 1]]
    assert categories_apart(column, indicator, 1) is not None
    assert categories_apart(column, indicator, 2) is None


def test_pruning_leaves_the_noise_out():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 10))
    y = ((X[:, 3] > 0) ^ (rng.random(300) < 0.1)).astype(int)
    sizes = {
        c: TreeSelector(method="c4.5", confidence=c).fit(X, y).path_.selected_size
        for c in (None, 0.25, 0.001)
    }
    assert sizes[None] > sizes[0.25] > sizes[0.001]
    assert TreeSelector(1, method="c4.5").fit(X, y).get_support(indices=True).tolist() == [3]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"task": "regression"}, "'task' parameter of TreeSelector must be 'classification' with method='id3'"),
        ({"criterion": "gini"}, "'criterion' parameter of TreeSelector must be 'auto' or 'entropy' with method='id3'"),
        ({"n_trees": 5}, "'n_trees' parameter of TreeSelector must be 1 with method='id3'"),
        ({"ccp_alpha": "auto"}, "'ccp_alpha' parameter of TreeSelector must be 0 with method='id3'"),
        ({"discrete_features": [4]}, "'discrete_features' parameter names column 4"),
        ({"confidence": 1.0}, "'confidence' parameter of TreeSelector"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        TreeSelector(method="id3", **params).fit(SATURDAYS, PLAY)
