"""Mutual information against scikit-learn's estimates."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.special import comb, psi
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.metrics import mutual_info_score

import zeronorm
from small_problems import noise
from zeronorm import MutualInformation
from zeronorm.selectors.filters import _mutual_information as module


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


def mean_over_orders(x, y, k):
    """Ross's estimate with the mean of ψ over all orders of samples at equal distances."""
    terms = []
    for i in range(x.size):
        others = np.arange(x.size) != i
        distance, own = np.abs(x - x[i])[others], (y == y[i])[others]
        near = min(k, own.sum())
        radius = np.sort(distance[own])[near - 1]
        inside, edge = distance < radius, distance == radius
        wanted, n_own, n_edge = near - np.sum(own & inside), np.sum(own & edge), np.sum(edge)
        position = np.arange(1, n_edge + 1)  # of the wanted sample among those at equal distance
        chance = (
            comb(position - 1, wanted - 1) * comb(n_edge - position, n_own - wanted) / comb(n_edge, n_own)
        )
        terms.append(psi(near) - psi(own.sum() + 1) - chance @ psi(np.sum(inside) + position))
    return max(0.0, psi(x.size) + np.mean(terms))


@pytest.mark.parametrize("k", [1, 3, 20])
def test_equal_distances_in_all_orders(k):
    rng = np.random.default_rng(k)
    y = rng.permutation(np.repeat([0, 1, 2], [60, 35, 5]))
    columns = [rng.poisson(0.2 + 0.6 * y), rng.integers(0, 2, 100), rng.poisson(3.0, 100) * (y == 1)]
    X = np.column_stack([*columns, 0.1 * rng.poisson(1.0 + y)])  # tenths: distances are equal up to rounding
    expected = [mean_over_orders(x, y, k) for x in np.round(X.T / 0.1)]
    assert max(expected) > 0.1
    for data in (X, sparse.csr_array(X)):
        found = MutualInformation(n_neighbors=k).fit(data, y).scores_
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_ties_as_those_of_scikit_learn_on_average():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = np.where(rng.random(200) < 0.6, y, rng.integers(0, 2, 200))[:, None].astype(float)
    ours = MutualInformation().fit(X, y).scores_[0]
    peer = [mutual_info_classif(X, y, discrete_features=False, random_state=seed)[0] for seed in range(40)]
    assert min(peer) > 0.0  # where negative estimates count as zero, the mean would be too large
    assert abs(ours - np.mean(peer)) < 4 * np.std(peer) / np.sqrt(40)


def test_zeros_that_are_not_stored_cost_nothing():
    rng = np.random.default_rng(0)
    n, p = 100_000, 1000
    X = sparse.random(n, p, density=1e-3, format="csr", rng=rng)
    X.data = rng.integers(1, 4, X.data.size).astype(float)
    y = np.arange(n) % 2
    y[X[:, [7]].toarray().ravel() > 0] = 1
    start = time.process_time()
    for discrete in (None, "all"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            selector = MutualInformation(1, discrete_features=discrete).fit(X, y)
        assert selector.support_[7]
    assert time.process_time() - start < 5.0  # every number takes more than 20 s


def test_any_number_of_threads_gives_the_same():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 256)), rng.integers(0, 2, 400)
    assert module.useful_threads(2, X[:, :20].size * module.OPERATIONS_PER_VALUE) == 2
    one, two = (MutualInformation(random_state=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.scores_, two.scores_)


@pytest.mark.parametrize("k", [1, 3, 50])
def test_columns_on_a_device_have_the_same_information(k):
    strict = pytest.importorskip("array_api_strict")
    pytest.importorskip("array_api_compat")
    rng = np.random.default_rng(k)
    y = rng.permutation(np.repeat([0, 1, 2, 3], [60, 30, 4, 1]))  # one sample alone in its class
    X = rng.normal(size=(95, 7)) + np.outer(y, [0, 1, 2, 0, 0, 0, 0])
    X[:, 4] = rng.poisson(1.0, 95)  # ties
    X[:, 5], X[:, 6] = 2.0, 1e8 * X[:, 1]
    host, device = (MutualInformation(n_neighbors=k).fit(Z, y) for Z in (X, strict.asarray(X)))
    np.testing.assert_allclose(device.scores_, host.scores_, atol=1e-12)
    np.testing.assert_array_equal(device.path_.order, host.path_.order)
    expected = [by_definition(x, y, k) for x in X[:, :4].T]
    np.testing.assert_allclose(device.scores_[:4], expected, atol=1e-9)


def test_regression_agrees_with_scikit_learn():
    X, _ = problem()
    y = X[:, 4] ** 2
    s = MutualInformation(1, task="regression", n_neighbors=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(
        s.scores_, mutual_info_regression(X, y, n_neighbors=5, random_state=1), atol=1e-6
    )
    assert s.support_[4]


def kraskov_in_all_orders(x, y, k, n_orders=400):
    """The estimate by comparing all pairs, with tiny noise that separates equal values, on average."""
    rng, n, means = np.random.default_rng(0), x.size, []
    for _ in range(n_orders):
        dx, dy = (
            np.abs(np.subtract.outer(v, v)) for v in (x / x.std() + 1e-9 * rng.normal(size=n), y / y.std())
        )
        distance = np.maximum(dx, dy) + np.diag(np.full(n, np.inf))
        radius = np.sort(distance, axis=1)[:, [k - 1]]
        means.append(np.mean(psi((dx < radius).sum(axis=1)) + psi((dy < radius).sum(axis=1))))
    return psi(n) + psi(k) - np.mean(means), np.std(means) / np.sqrt(n_orders)


@pytest.mark.parametrize("k", [1, 3])
def test_regression_counts_equal_values_in_all_orders(k):
    rng = np.random.default_rng(k)
    X = np.column_stack(
        [rng.poisson(0.3, 90), rng.normal(size=90) * (rng.random(90) < 0.2), rng.integers(0, 2, 90)]
    )
    y = X.sum(axis=1) + 0.2 * rng.normal(size=90)
    found = MutualInformation(task="regression", n_neighbors=k).fit(X, y).scores_
    for x, score in zip(X.T, found, strict=True):
        expected, error = kraskov_in_all_orders(x, y, k)
        assert expected > 0.02  # negative estimates count as zero
        assert abs(score - expected) < 4.0 * error + 1e-9


@pytest.mark.parametrize("k", [1, 3, 30])
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_regression_on_sparse_columns_is_that_on_dense_ones(k, rounded, shift):
    """Few and many stored values, near zero and far from it, stored zeros, and targets that are equal or far away."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 12)) * (rng.random((200, 12)) < np.linspace(0.01, 0.9, 12))
    X[:, 3] *= 1e-3
    X[:, 3], X[0, 4] = np.where(X[:, 3] == 0.0, X[:, 3], X[:, 3] + np.sign(X[:, 3]) * 1e-4), 30.0
    X[:, 5] = np.round(X[:, 5])
    y = X @ rng.normal(size=12) + rng.standard_cauchy(200)
    y = np.round(y) if rounded else y
    stored = sparse.csc_array(X)
    stored.data[::9] = 0.0
    X = stored.toarray() + 0.0
    selector = MutualInformation(task="regression", n_neighbors=k, random_state=3)
    dense, found = selector.fit(X + shift, y).scores_, selector.fit(stored, y).scores_
    assert np.count_nonzero(dense) > 2
    np.testing.assert_allclose(found, dense, atol=1e-12)


def test_equal_targets_without_dependence_have_no_information():
    """Without a dependence the estimates are around zero, also with equal values in feature and target."""
    rng = np.random.default_rng(0)
    X, y = (
        sparse.csc_array(rng.poisson(0.2, size=(400, 300)).astype(float)),
        np.round(2.0 * rng.normal(size=400)),
    )
    scores = MutualInformation(task="regression", random_state=0).fit(X, y).scores_
    assert 0.3 < np.mean(scores > 0.0) < 0.7
    assert scores.max() < 0.1


def test_a_real_target_visits_the_stored_values_only():
    rng = np.random.default_rng(0)
    n, p = 100_000, 500
    X = sparse.random(n, p, density=1e-3, format="csr", rng=rng)
    y = rng.normal(size=n) + 5.0 * X[:, [7]].toarray().ravel()
    MutualInformation(1, task="regression").fit(X[:50], y[:50])  # compiles
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = MutualInformation(1, task="regression", random_state=0).fit(X, y)
    assert selector.support_[7]
    assert time.process_time() - start < 5.0  # every number takes minutes


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
def test_warns_before_a_computation_of_minutes(discrete, monkeypatch):
    monkeypatch.setattr(module, "LONG_S", 1e-9)
    X, y = np.random.default_rng(0).normal(size=(40, 3)).round(), np.arange(40) % 2
    selector = MutualInformation(1, discrete_features=discrete, random_state=0)
    with pytest.warns(UserWarning, match="40 × 3 numbers, zeros included: about 0 minutes") as said:
        selector.fit(X, y)
    assert said[0].filename == __file__
    assert ("discrete_features" in str(said[0].message)) == (discrete is None)


def test_neighbours_of_mutual_information_are_other_samples():
    y = np.arange(6) % 2
    zeronorm.MutualInformation(n_neighbors=5).fit(noise(6), y)
    with pytest.raises(ValueError, match="less than the number of samples, 6"):
        zeronorm.MutualInformation(n_neighbors=6).fit(noise(6), y)
    with pytest.raises(ValueError, match="one class with two samples or more"):
        zeronorm.MutualInformation().fit(noise(4), [0, 1, 2, 3])
    zeronorm.MutualInformation().fit(noise(4), [0, 1, 2, 2])
    zeronorm.MutualInformation(task="regression").fit(noise(4), [0.0, 1.0, 2.0, 3.0])


def test_a_seed_determines_the_noise_between_equal_targets():
    X, y = np.round(np.random.default_rng(0).normal(size=(40, 3))), np.arange(40.0) % 7
    selector = zeronorm.MutualInformation(task="regression", random_state=0)
    first = selector.fit(X, y).scores_
    np.testing.assert_array_equal(selector.fit(X, y).scores_, first)
    assert not np.array_equal(selector.set_params(random_state=1).fit(X, y).scores_, first)
