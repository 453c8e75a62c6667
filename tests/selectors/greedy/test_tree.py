"""TreeSelector against scikit-learn's trees and a brute-force best split."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import mutual_info_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from zeronorm import TreeSelector
from zeronorm.engines.trees._nodes import Nodes


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


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2, 3))])
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
    assert s.path_.selected_size == 1
    assert s.path_.order[:3].tolist() == [0, 3, 4]
    assert np.all(np.diff(s.scores_[s.path_.order]) <= 0.0)
    r = TreeSelector(task="regression", random_state=0, max_depth=1).fit(X, y + 0.5 * X[:, 3])
    correlation = np.abs(np.corrcoef(X.T, y + 0.5 * X[:, 3])[-1, :-1])
    rest = r.path_.order[1:]
    assert np.all(np.diff(correlation[rest]) <= 0.0)


def errors_of_the_best_tree(X, y, depth):
    """Fewest training errors of the greedy tree that splits by errors, then by Gini's impurity; by brute force."""
    counts = np.bincount(y)
    if depth == 0 or counts.max() == len(y):
        return len(y) - counts.max()

    def scorer(inside):
        parts = [np.bincount(y[part]) for part in (inside, ~inside)]
        errors = sum(part.sum() - part.max() for part in parts)
        return errors, round(sum(part.sum() - (part**2).sum() / part.sum() for part in parts), 9)

    splits = [X[:, j] <= t for j in range(X.shape[1]) for t in np.unique(X[:, j])[:-1]]
    best = min(splits, key=scorer)
    return sum(errors_of_the_best_tree(X[part], y[part], depth - 1) for part in (best, ~best))


def errors_of(nodes, X, y):
    predicted = nodes.predictions(X.astype(np.float32), np.zeros(1))[0]
    return int(np.sum(predicted != y))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_splits_with_the_fewest_errors_are_those_of_brute_force(seed, depth):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 5)).astype(np.float32)
    y = np.digitize(X[:, 1] + X[:, 3] + 0.7 * rng.normal(size=40), [-0.7, 0.7])
    s = TreeSelector(criterion="error", max_depth=depth, random_state=0).fit(X, y)
    assert errors_of(s.tree_, X, y) == errors_of_the_best_tree(X, y, depth)


def test_fewest_errors_and_gini_differ():
    """Gini prefers a small pure node, the error rate does not."""
    y = np.repeat([0, 1], [40, 60])
    X = np.zeros((100, 2))
    X[:, 0] = np.r_[np.ones(25), np.zeros(75)]  # 25 of class 0 alone: 15 errors
    X[:, 1] = np.r_[np.ones(32), np.zeros(8), np.ones(6), np.zeros(54)]  # 8 + 6 errors
    chosen = {
        name: TreeSelector(1, criterion=name, max_depth=1, random_state=0).fit(X, y).path_.order[0]
        for name in ("gini", "error")
    }
    assert chosen["error"] == 1
    gini = [2 * 15 * 60 / 75, 2 * 32 * 6 / 38 + 2 * 8 * 54 / 62]
    assert chosen["gini"] == np.argmin(gini)


def subtrees(nodes, t=0):
    """Cost, leaves and split nodes of every way to prune below a node."""
    yield nodes.cost[t], 1, frozenset()
    if nodes.left[t] >= 0:
        for a, b in product(list(subtrees(nodes, nodes.left[t])), list(subtrees(nodes, nodes.right[t]))):
            yield a[0] + b[0], a[1] + b[1], a[2] | b[2] | {t}


@pytest.mark.parametrize("criterion", ["error", "gini"])
@pytest.mark.parametrize("alpha", [0.004, 0.013, 0.031, 0.07, 0.5])
def test_pruning_finds_the_best_of_all_subtrees(criterion, alpha):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    y = np.digitize(X[:, 0] + X[:, 2] + 0.8 * rng.normal(size=60), [0.0])
    s = TreeSelector(criterion=criterion, max_depth=4, ccp_alpha=alpha, random_state=0).fit(X, y)
    full = TreeSelector(criterion=criterion, max_depth=4, random_state=0).fit(X, y).tree_
    nodes = full if criterion == "error" else Nodes.of(full)
    # Of equally good subtrees the smaller one.
    _, _, splits = min(subtrees(nodes), key=lambda found: (round(found[0] + alpha * found[1], 12), found[1]))
    assert set(nodes.feature[list(splits)]) == set(used_by(s))
    pruned = nodes.pruned(alpha)
    assert frozenset(np.flatnonzero(pruned.feature >= 0)) == splits
    assert s.path_.selected_size == len(set(nodes.feature[list(splits)]))


def used_by(selector):
    fitted = selector.tree_
    features = fitted.feature if isinstance(fitted, Nodes) else fitted.tree_.feature
    return features[features >= 0]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_cost_of_a_leaf_by_cross_validation_is_that_of_plain_refits(task):
    """Every fold and cost with scikit-learn's own pruning; then one standard error above the smallest error."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(80, 6)).astype(np.float32)
    target = 2.0 * (X[:, 1] > 0) + (X[:, 4] > 0.5) + 0.8 * rng.normal(size=80)
    y = target if task == "regression" else (target > 1.0).astype(int)
    s = TreeSelector(task=task, ccp_alpha="auto", random_state=0).fit(X, y)
    kind, folding = {
        "regression": (DecisionTreeRegressor, KFold), "classification": (DecisionTreeClassifier, StratifiedKFold)
    }[task]  # fmt: skip
    seed = s.tree_.random_state
    levels = kind(random_state=seed).fit(X, y).cost_complexity_pruning_path(X, y).ccp_alphas
    levels = np.unique(levels)
    alphas = np.append(np.sqrt(levels[:-1] * levels[1:]), levels[-1])
    loss = np.empty((alphas.size, 80))
    for train, test in folding(5, shuffle=True, random_state=seed).split(X, y):
        for k, alpha in enumerate(alphas):
            fitted = kind(random_state=seed, ccp_alpha=alpha).fit(X[train], y[train])
            loss[k, test] = (fitted.predict(X[test]) - y[test]) ** 2
    mean = loss.mean(axis=1)
    limit = mean.min() + loss[np.argmin(mean)].std(ddof=1) / np.sqrt(80)
    assert s.ccp_alpha_ == pytest.approx(alphas[mean <= limit].max(), rel=1e-9)
    assert s.path_.selected_size < TreeSelector(task=task, random_state=0).fit(X, y).path_.selected_size


@pytest.mark.parametrize("criterion", ["auto", "error"])
def test_pruning_leaves_the_noise_out(criterion):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 12))
    y = ((X[:, 3] > 0) ^ (rng.random(200) < 0.1)).astype(int)
    whole = TreeSelector(criterion=criterion, random_state=0).fit(X, y)
    pruned = TreeSelector(criterion=criterion, ccp_alpha="auto", random_state=0).fit(X, y)
    assert whole.path_.selected_size > 3
    assert pruned.get_support(indices=True).tolist() == [3]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"criterion": "squared_error"}, r"parameter of TreeSelector must be 'auto', 'gini', 'entropy' or 'error' for"),
        ({"criterion": "gini", "task": "regression"}, r"'auto' or 'squared_error' for task='regression'"),
        ({"criterion": "error", "n_trees": 3}, r"'n_trees' parameter of TreeSelector must be 1 with criterion='error'"),
        ({"ccp_alpha": "auto", "n_trees": 3}, r"'n_trees' parameter of TreeSelector must be 1 with ccp_alpha='auto'"),
        ({"ccp_alpha": -0.1}, "'ccp_alpha' parameter of TreeSelector must be a finite number of at least 0 or 'auto'"),
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
    assert s.path_.selected_size == 0
    assert s.support_.sum() == 1
    assert np.all(np.isfinite(s.scores_))


def problem(seed=0, n=40, p=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = (X[:, 2] - X[:, 7] + 0.3 * rng.normal(size=n) > 0).astype(int)
    return X, y


def test_trees_do_not_depend_on_where_columns_start():
    X, y = problem(10)
    near, far = (TreeSelector(random_state=0).fit(X + offset, y) for offset in (0.0, 1e8))
    assert far.tree_.feature_importances_.max() > 0.0
    assert near.path_.order.tolist() == far.path_.order.tolist()
