"""Compiled learners against scikit-learn's, on the same draws."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.tree import DecisionTreeClassifier

from oracles.subsets import gaussian_classes, make_pool, random_draws, scikit_errors
from zeronorm.engines.weighting.learners import resolve_learner
from zeronorm.engines.weighting.learners._base import ScikitLearner
from zeronorm.engines.weighting.learners._linear import SubsetLDA, SubsetSVM
from zeronorm.engines.weighting.learners._nearest import SubsetCentroid, SubsetKNN, nearest_neighbours
from zeronorm.engines.weighting.learners._tree import SubsetCART, grow_tree, tree_predict

ONE_VS_REST = np.eye(3, dtype=np.int64)
LEARNERS = [
    SubsetSVM(C=0.5, tol=1e-9),
    SubsetKNN(3),
    SubsetLDA(0.2),
    SubsetCentroid(),
]


def errors_of(learner, pool, draws):
    out = np.full(len(draws.features), np.nan)
    learner.errors(pool, draws, 0, len(out), out)
    return out


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_two_classes_match_scikit_learn(learner):
    X, y = gaussian_classes(n=80, p=8)
    pool, draws = make_pool(X, y), random_draws(80, 8)
    np.testing.assert_allclose(
        errors_of(learner, pool, draws), scikit_errors(learner.as_estimator(), pool, draws)
    )


@pytest.mark.parametrize("learner", LEARNERS[1:], ids=lambda learner: type(learner).__name__)
def test_three_classes_match_scikit_learn(learner):
    X, y = gaussian_classes(n=90, p=8, n_classes=3)
    pool, draws = make_pool(X, y), random_draws(90, 8, seed=1)
    np.testing.assert_allclose(
        errors_of(learner, pool, draws), scikit_errors(learner.as_estimator(), pool, draws)
    )


@pytest.mark.filterwarnings("ignore:Only one sample available")  # a class of one, in scikit-learn's LDA
@pytest.mark.parametrize("learner", [LEARNERS[0], LEARNERS[2]], ids=lambda learner: type(learner).__name__)
def test_one_against_all_matches_scikit_learn(learner):
    X, y = gaussian_classes(n=90, p=8, n_classes=3)
    pool, draws = make_pool(X, y, coding=ONE_VS_REST), random_draws(90, 8, bootstrap_size=12, seed=2)
    # Sometimes a class is missing in the training set, and its model predicts "rest".
    draws.train[0] = np.flatnonzero(y != 1)[:12]
    np.testing.assert_allclose(
        errors_of(learner, pool, draws), scikit_errors(learner.as_estimator(), pool, draws)
    )


def test_only_the_asked_range_is_written():
    X, y = gaussian_classes()
    pool, draws = make_pool(X, y), random_draws(60, 6)
    whole, part = errors_of(SubsetCentroid(), pool, draws), np.full(30, -1.0)
    SubsetCentroid().errors(pool, draws, 7, 19, part)
    assert np.array_equal(part[7:19], whole[7:19])
    assert np.all(part[:7] == -1.0)
    assert np.all(part[19:] == -1.0)


# -- trees ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"max_depth": 2}, {"min_samples_leaf": 4}])
def test_tree_matches_scikit_learn_where_the_best_split_is_unique(settings):
    # One feature without ties leaves at most a few equally pure thresholds; compare the purity reached.
    rng = np.random.default_rng(3)
    for n_labels in (2, 3):
        x, labels = rng.normal(size=(1, 200)), rng.integers(0, n_labels, size=200)
        x[0] += labels
        depth, leaf = settings.get("max_depth", 1 << 30), settings.get("min_samples_leaf", 1)
        ours = tree_predict(grow_tree(x, labels, n_labels, depth, leaf), x)
        peer = DecisionTreeClassifier(**settings, random_state=0).fit(x.T, labels)
        assert np.mean(ours == peer.predict(x.T)) == 1.0
        fresh = rng.normal(size=(1, 500)) + 0.5
        assert (
            np.mean(tree_predict(grow_tree(x, labels, n_labels, depth, leaf), fresh) == peer.predict(fresh.T))
            > 0.97
        )


def test_first_split_is_the_purest_one():
    rng = np.random.default_rng(4)
    for _ in range(20):
        train, labels = rng.normal(size=(3, 40)), rng.integers(0, 3, size=40)
        tree = grow_tree(train, labels, 3, 1, 1)
        candidates = [(gini_after(train[f], labels, t), f, t) for f in range(3) for t in midpoints(train[f])]
        best = min(value for value, _, _ in candidates)
        assert gini_after(train[tree.feature[0]], labels, tree.threshold[0]) == pytest.approx(best, abs=1e-12)


def midpoints(values):
    ordered = np.sort(values)
    return (ordered[:-1] + ordered[1:]) / 2


def gini_after(values, labels, threshold):
    total = 0.0
    for side in (values <= threshold, values > threshold):
        share = np.bincount(labels[side], minlength=3) / side.sum()
        total += side.mean() * (1.0 - np.sum(share**2))
    return total


def test_full_tree_remembers_distinct_points():
    rng = np.random.default_rng(5)
    train, labels = rng.normal(size=(2, 60)), rng.integers(0, 4, size=60)
    assert np.array_equal(tree_predict(grow_tree(train, labels, 4, 1 << 30, 1), train), labels)


def test_tree_of_constant_features_is_a_leaf():
    train, labels = np.ones((2, 5)), np.array([1, 0, 1, 1, 0])
    assert np.array_equal(tree_predict(grow_tree(train, labels, 2, 10, 1), train), np.ones(5))


def test_neighbouring_numbers_can_be_split():
    low = 1.0 + 2.0**-52
    train, labels = np.array([[low, np.nextafter(low, 2.0)]]), np.array([0, 1])
    assert tree_predict(grow_tree(train, labels, 2, 10, 1), train).tolist() == [0, 1]


# -- neighbours -----------------------------------------------------------------------------------------


def test_hamming_neighbours_match_brute_force():
    rng = np.random.default_rng(6)
    train, test = rng.integers(-1, 2, size=(5, 40)) * 1.0, rng.integers(-1, 2, size=(5, 30)) * 1.0
    distance = (train[:, None, :] != test[:, :, None]).sum(axis=0)
    expected = np.argsort(distance, axis=1, kind="stable")[:, :7]
    assert np.array_equal(nearest_neighbours(train, test, 7, True), expected)


def test_repeated_features_count_once():
    X, y = gaussian_classes()
    pool, draws = make_pool(X, y), random_draws(60, 6, subset_size=3)
    draws.features[:] = [0, 0, 3]
    twice = errors_of(SubsetKNN(), pool, draws)
    draws.features[:] = [0, 3, 3]
    assert np.array_equal(errors_of(SubsetKNN(), pool, draws), twice)


# -- costs ----------------------------------------------------------------------------------------------


def test_balanced_cost_is_one_minus_balanced_accuracy():
    X, y = gaussian_classes(n=90, n_classes=3)
    draws = random_draws(90, 6)
    plain, balanced = make_pool(X, y), make_pool(X, y, balanced=True)
    expected = []
    for features, train, test in zip(draws.features, draws.train, draws.test, strict=True):
        chosen = np.unique(features)
        model = SubsetCentroid().as_estimator().fit(X[train][:, chosen], y[train])
        expected.append(1.0 - balanced_accuracy_score(y[test], model.predict(X[test][:, chosen])))
    found = errors_of(SubsetCentroid(), balanced, draws)
    np.testing.assert_allclose(found, expected)
    assert not np.allclose(found, errors_of(SubsetCentroid(), plain, draws))


def test_class_costs_weigh_mistakes():
    X, y = gaussian_classes(n=60)
    draws = random_draws(60, 6, batch_size=5)
    cost = np.array([1.0, 3.0])
    found = errors_of(SubsetCentroid(), make_pool(X, y, class_cost=cost), draws)
    for b in range(5):
        chosen = np.unique(draws.features[b])
        train, test = draws.train[b], draws.test[b]
        model = SubsetCentroid().as_estimator().fit(X[train][:, chosen], y[train])
        wrong = model.predict(X[test][:, chosen]) != y[test]
        assert found[b] == pytest.approx(np.average(wrong, weights=cost[y[test]]))


# -- choosing a learner ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (3, "must be a scikit-learn classifier"),
        (SubsetSVM(C=0), "'C' parameter of SubsetSVM"),
        (SubsetKNN(0), "'n_neighbors'"),
        (SubsetKNN(11), "cannot be found in training samples of 10"),
        (SubsetKNN(metric="cosine"), "'euclidean' or 'hamming'"),
        (SubsetLDA(0.0), "above 0 and at most 1"),
        (SubsetLDA(2.0), "above 0 and at most 1"),
        (SubsetCART(max_depth=0), "'max_depth'"),
        (SubsetCART(min_samples_leaf=0), "'min_samples_leaf'"),
    ],
)
def test_bad_learners_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        resolve_learner(bad, 10)


def test_scikit_learn_classifiers_get_an_adapter():
    learner = resolve_learner(LogisticRegression(), 10)
    assert isinstance(learner, ScikitLearner)
    assert not learner.is_binary
