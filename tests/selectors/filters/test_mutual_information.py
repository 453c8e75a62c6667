"""Mutual information against scikit-learn's estimates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import psi
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.metrics import mutual_info_score

from zeronorm import MutualInformation
from zeronorm.selectors.filters import mutual_information as module


def problem(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 9))
    X[:, 7] = rng.integers(0, 3, 80)
    y = (np.abs(X[:, 2]) > 1.0) | (X[:, 7] == 1)
    return X, y.astype(int)


def test_agrees_with_scikit_learn():
    X, y = problem()
    s = MutualInformation(discrete_features=[7], random_state=0).fit(X, y)
    expected = mutual_info_classif(X, y, discrete_features=[7], random_state=1)
    # Only the noise of relative size 1e-10 that separates equal values differs.
    np.testing.assert_allclose(s.scores_, expected, atol=1e-6)
    assert set(s.path_.support(2)) == {2, 7}


def by_definition(x, y, k):
    """Ross's estimate by comparing all pairs; classes of one sample do not count."""
    kept = np.isin(y, [c for c in np.unique(y) if np.sum(y == c) > 1])
    x, y = x[kept], y[kept]
    distance = np.abs(x[:, None] - x)
    terms = []
    for i in range(x.size):
        own = np.sort(distance[i, y == y[i]])  # the first is the sample itself
        near = min(k, own.size - 1)
        terms.append(psi(near) - psi(own.size) - psi(np.sum(distance[i] < own[near])))
    return max(0.0, psi(x.size) + np.mean(terms))


@pytest.mark.parametrize("k", [1, 3, 7, 40])
@pytest.mark.parametrize("sizes", [(40, 40), (70, 6, 4), (77, 2, 1)])
def test_classes_of_any_size(k, sizes):
    rng = np.random.default_rng(k)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = np.column_stack([rng.normal(size=(80, 5)) + y[:, None] * [0, 0, 1, 2, 5], rng.poisson(0.3, (80, 2))])
    s = MutualInformation(discrete_features=[5, 6], n_neighbors=k, random_state=0).fit(X, y)
    expected = [by_definition(x, y, k) for x in X[:, :5].T]
    expected += [mutual_info_score(x, y) for x in X[:, 5:].T]
    np.testing.assert_allclose(s.scores_, expected, atol=1e-9)


def test_ties_cost_no_more_than_their_noise():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (200, 1)).astype(float), rng.integers(0, 2, 200)
    ours = [MutualInformation(random_state=seed).fit(X, y).scores_[0] for seed in range(40)]
    peer = [mutual_info_classif(X, y, discrete_features=False, random_state=seed)[0] for seed in range(40)]
    spread = np.hypot(np.std(ours), np.std(peer)) / np.sqrt(40)
    assert abs(np.mean(ours) - np.mean(peer)) < 4 * spread


def test_any_number_of_threads_gives_the_same():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 256)), rng.integers(0, 2, 400)
    assert module.useful_threads(2, X.size * module.OPERATIONS_PER_VALUE) == 2
    one, two = (MutualInformation(random_state=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)


def test_regression_agrees_with_scikit_learn():
    X, _ = problem()
    y = X[:, 4] ** 2
    s = MutualInformation(1, task="regression", n_neighbors=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(
        s.scores_, mutual_info_regression(X, y, n_neighbors=5, random_state=1), atol=1e-6
    )
    assert s.support_[4]


def test_blocks_do_not_change_the_scores(monkeypatch):
    X, y = problem()
    selector = MutualInformation(discrete_features=[7], random_state=0)
    whole = selector.fit(X, y).scores_
    monkeypatch.setattr(module, "MOST_COLUMNS", 2)
    np.testing.assert_allclose(selector.fit(X, y).scores_, whole, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "'n_neighbors'"),
        ({"n_neighbors": 80}, "less than the number of samples, 80"),
        ({"n_neighbors": 2.5}, "'n_neighbors'"),
        ({"discrete_features": "some"}, "'discrete_features' parameter of MutualInformation must be None"),
        ({"discrete_features": [9]}, "column 9, but X has 9 columns"),
        ({"discrete_features": np.ones(4, dtype=bool)}, "one entry per column"),
        ({"discrete_features": ["dose"]}, "X has no column names"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        MutualInformation(**parameters).fit(X, y)


def test_classes_of_one_sample_only():
    X, _ = problem()
    with pytest.raises(ValueError, match="class with two samples"):
        MutualInformation().fit(X[:20], np.arange(20))


@pytest.mark.parametrize("discrete", [None, "all"])
def test_says_before_that_many_numbers_take_minutes(discrete, monkeypatch):
    monkeypatch.setattr(module, "LONG_S", 1e-9)
    X, y = np.random.default_rng(0).normal(size=(40, 3)).round(), np.arange(40) % 2
    selector = MutualInformation(1, discrete_features=discrete, random_state=0)
    with pytest.warns(UserWarning, match="40 × 3 numbers, zeros included: about 0 minutes") as said:
        selector.fit(X, y)
    assert said[0].filename == __file__
    assert ("discrete_features" in str(said[0].message)) == (discrete is None)
