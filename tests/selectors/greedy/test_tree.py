"""TreeSelector against scikit-learn's trees and a brute-force best split."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import mutual_info_score
from sklearn.tree import DecisionTreeRegressor

from zeronorm import TreeSelector


def threshold_problem(seed: int = 0, n: int = 120, p: int = 15):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = (X[:, 3] > 0.2) * 2 + (X[:, 9] > -0.3)
    return X, y


def best_split_information(x, y):
    """Largest mutual information (nats) between y and any threshold of x."""
    thresholds = np.unique(x)[1:]
    return max(mutual_info_score(y, x >= t) for t in thresholds)


def test_selects_what_the_tree_splits_on():
    X, y = threshold_problem()
    s = TreeSelector(random_state=0).fit(X, y)
    splits = s.tree_.tree_.feature
    assert set(s.get_support(indices=True)) == set(splits[splits >= 0]) == {3, 9}
    assert np.array_equal(s.scores_[s.support_], s.tree_.feature_importances_[s.support_])


@pytest.mark.parametrize("seed", range(4))
def test_a_stump_takes_the_feature_with_most_information(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 6))
    y = np.arange(50) % 3
    X[:, 1:4] += 0.4 * y[:, None]
    s = TreeSelector(criterion="entropy", max_depth=1, random_state=0).fit(X, y)
    information = [best_split_information(X[:, j], y) for j in range(6)]
    assert s.path_.order[0] == np.argmax(information)
    impurity = s.tree_.tree_.impurity
    share = s.tree_.tree_.weighted_n_node_samples / len(y)
    gained = (impurity[0] - share[1:] @ impurity[1:]) * np.log(2.0)  # scikit-learn counts in bits
    assert gained == pytest.approx(max(information), rel=1e-6)


def test_regression_finds_an_interaction():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, size=(300, 8))
    y = np.where(X[:, 2] > 0.2, np.where(X[:, 6] > 0, 3.0, -3.0), 0.5)
    s = TreeSelector(task="regression", max_depth=3, random_state=0).fit(X, y)
    assert set(s.path_.order[:2]) == {2, 6}
    single = X.astype(np.float32)
    seed = s.tree_.random_state
    peer = DecisionTreeRegressor(max_depth=3, random_state=seed).fit(single, y)
    assert np.array_equal(s.tree_.feature_importances_, peer.feature_importances_)


def test_a_forest_averages_its_trees():
    X, y = threshold_problem(2)
    s = TreeSelector(5, n_trees=40, random_state=3).fit(X, y)
    peer = RandomForestClassifier(40, max_features="sqrt", random_state=s.tree_.random_state)
    peer.fit(X.astype(np.float32), y)
    assert np.allclose(s.scores_[[3, 9]], peer.feature_importances_[[3, 9]])
    assert set(s.path_.order[:2]) == {3, 9}


def test_unused_features_follow_by_their_own_association():
    rng = np.random.default_rng(4)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 5))
    X[:, 0] += 10.0 * y  # one split ends the tree
    X[:, 3] += 2.0 * y
    X[:, 4] += 1.0 * y
    s = TreeSelector(random_state=0).fit(X, y)
    assert s.path_.own_size == 1
    assert s.path_.order[:3].tolist() == [0, 3, 4]
    assert np.all(np.diff(s.scores_[s.path_.order]) <= 0.0)
    r = TreeSelector(task="regression", random_state=0, max_depth=1).fit(X, y + 0.5 * X[:, 3])
    correlation = np.abs(np.corrcoef(X.T, y + 0.5 * X[:, 3])[-1, :-1])
    rest = r.path_.order[1:]
    assert np.all(np.diff(correlation[rest]) <= 0.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"criterion": "squared_error"}, r"parameter of TreeSelector must be 'auto', 'gini' or 'entropy' for"),
        ({"criterion": "gini", "task": "regression"}, r"'auto' or 'squared_error' for task='regression'"),
        ({"n_trees": 0}, "'n_trees' parameter of TreeSelector must be a whole number of at least 1"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(params, message):
    X, y = threshold_problem()
    with pytest.raises(ValueError, match=message):
        TreeSelector(**params).fit(X, y)


def test_values_beyond_single_precision_are_refused():
    X, y = threshold_problem()
    X[0, 0] = 1e300
    with pytest.raises(ValueError, match="beyond 1e\\+150 overflow"):
        TreeSelector().fit(X, y)


@pytest.mark.parametrize("unit", [1e-6, 1e-9, 1e-30])
def test_the_unit_of_the_columns_does_not_matter(unit):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 8)), np.arange(60) % 2
    X[:, 5:7] += 1.0 * y[:, None]
    plain, scaled = (TreeSelector(random_state=0).fit(A, y) for A in (X, unit * X))
    assert scaled.path_.order.tolist() == plain.path_.order.tolist()


def test_a_tree_without_splits_still_gives_an_order():
    X, y = threshold_problem(n=6)
    s = TreeSelector(min_samples_leaf=5, random_state=0).fit(X, y)
    assert s.path_.own_size == 0
    assert s.support_.sum() == 1
    assert np.all(np.isfinite(s.scores_))
