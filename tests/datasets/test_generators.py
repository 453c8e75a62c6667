"""The synthetic problems have the properties their papers state."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import accuracy_score

from zeronorm.datasets import (
    append_probes,
    make_linear_toy,
    make_nonlinear_toy,
    make_polynomial_toy,
    make_reusable_features,
    make_twonorm,
)
from zeronorm.datasets._generators import GENERATORS, _random_polynomial

N = 40_000


def log_density(X, means):
    return norm.logpdf(X[:, None, :], loc=means[None, :, :]).sum(axis=2)


def linear_toy_log_odds(X):
    """Exact log odds from the two components of each class (all six features)."""
    up, none = np.arange(1.0, 4.0), np.zeros(3)
    weights = np.log([0.7, 0.3])
    positive = log_density(X, np.asarray([[*up, *none], [*none, *up]])) + weights
    negative = log_density(X, -np.asarray([[*up, *none], [*none, *up]])) + weights
    return np.logaddexp(*positive.T) - np.logaddexp(*negative.T)


def test_bayes_error_of_the_linear_toy():
    X, y, relevant = make_linear_toy(N, standardize=False, random_state=0)
    predicted = np.where(linear_toy_log_odds(X[:, relevant]) > 0, 1, -1)
    error = 1.0 - accuracy_score(y, predicted)
    assert error == pytest.approx(0.0037, abs=4 * np.sqrt(0.0037 / N))
    assert X[:, 6:].std() == pytest.approx(20.0, rel=0.01)
    assert X.shape == (N, 202)


def test_bayes_error_of_the_nonlinear_toy():
    X, y, relevant = make_nonlinear_toy(N, standardize=False, random_state=1)
    positive = np.logaddexp(*log_density(X[:, relevant], np.asarray([[3.0, 3.0], [-3.0, -3.0]])).T)
    negative = np.logaddexp(*log_density(X[:, relevant], np.asarray([[3.0, -0.75], [-3.0, 0.75]])).T)
    error = 1.0 - accuracy_score(y, np.where(positive > negative, 1, -1))
    assert error == pytest.approx(0.031, abs=4 * np.sqrt(0.031 / N))


def test_bayes_error_of_twonorm_does_not_depend_on_the_dimension():
    for n_features in (5, 20):
        X, y, _ = make_twonorm(N, n_features=n_features, random_state=2)
        error = 1.0 - accuracy_score(y, np.sign(X.sum(axis=1)))
        expected = norm.cdf(-2.0)
        assert error == pytest.approx(expected, abs=4 * np.sqrt(expected / N))


def test_reusable_features_follow_the_printed_mixture():
    X, y, relevant = make_reusable_features(N, random_state=3)
    assert set(np.unique(X)) == {-1.0, 0.0, 1.0}
    # Feature 1 is in two of the three sets of class 1: fixed with probability 0.6, else uniform.
    assert np.mean(X[y == 0, 0] == 1) == pytest.approx(0.6 + 0.4 / 3, abs=0.015)
    assert np.mean(X[y == 1, 0] == 1) == pytest.approx(1 / 3, abs=0.015)
    # Features 4 and 8 serve classes 2 and 3.
    for feature in (3, 7):
        assert np.mean(X[y == 1, feature] == 1) == pytest.approx(0.6 + 0.4 / 3, abs=0.015)
        assert np.mean(X[y == 2, feature] == 1) == pytest.approx(0.6 + 0.4 / 3, abs=0.015)
    assert np.all(np.abs(X[:, 9:].mean(axis=0)) < 0.03)
    assert relevant.tolist() == list(range(9))


@pytest.mark.parametrize(("target", "relevant"), [("product", [0, 1, 2]), ("linear", [0])])
def test_labels_of_polynomials_depend_on_the_relevant_inputs_only(target, relevant):
    X, y, found = make_polynomial_toy(500, target=target, random_state=0)
    assert found.tolist() == relevant
    expected = X[:, 0] * X[:, 1] + X[:, 2] if target == "product" else X[:, 0]
    np.testing.assert_array_equal(y, np.where(expected > 0, 1, -1))


@pytest.mark.parametrize(("sparsity", "terms"), [(0.95, 3), (0.9, 6), (0.8, 13), (0.0, 65)])
def test_random_polynomials_have_the_asked_number_of_terms(sparsity, terms):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 10))
    values, relevant = _random_polynomial(X, sparsity, rng)
    first, second = np.triu_indices(10)
    coefficients = np.linalg.lstsq(np.column_stack([X, X[:, first] * X[:, second]]), values, rcond=None)[0]
    used = np.flatnonzero(np.abs(coefficients) > 1e-9)
    assert len(used) == terms
    inputs = {i for i in used if i < 10} | {
        i for t in used if t >= 10 for i in (first[t - 10], second[t - 10])
    }
    assert set(relevant.tolist()) == inputs


@pytest.mark.parametrize("target", ["cubic", 1.0, -0.1])
def test_unknown_polynomials_are_refused(target):
    with pytest.raises(ValueError, match="target"):
        make_polynomial_toy(10, target=target)


def test_probes_look_like_columns_and_leave_the_data_alone():
    rng = np.random.default_rng(5)
    X = rng.gamma(2.0, size=(200, 6))
    permuted = append_probes(X, 50, random_state=0)
    np.testing.assert_array_equal(permuted[:, :6], X)
    originals = {tuple(column) for column in np.sort(X, axis=0).T}
    assert all(tuple(column) in originals for column in np.sort(permuted[:, 6:], axis=0).T)
    gaussian = append_probes(X, 400, kind="gaussian", random_state=0)[:, 6:]
    assert gaussian.mean() == pytest.approx(X.mean(), rel=0.05)
    with pytest.raises(ValueError, match="'kind'"):
        append_probes(X, 1, kind="other")


@pytest.mark.parametrize("name", GENERATORS)
def test_the_same_seed_gives_the_same_data(name):
    first, second = (GENERATORS[name](random_state=7) for _ in range(2))
    other = GENERATORS[name](random_state=8)
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, second.y)
    assert not np.array_equal(first.X, other.X)
    assert len(np.unique(first.y)) >= 2
