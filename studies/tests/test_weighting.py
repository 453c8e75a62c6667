"""Metrics of learned distributions over features, and the words of the spam data."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from zeronorm.datasets import load_dataset
from zeronorm.selectors.stochastic._ofw import OptimalFeatureWeighting
from zeronorm_studies.declared.gadat2007_spam import FIGURE_18, SPAM_WORDS
from zeronorm_studies.declared.gadat2007_usps import ClassVoters, error_of_each_model, error_of_each_vote
from zeronorm_studies.models import (
    GaussianSVC,
    energy_after,
    energy_before,
    mean_energy,
    mean_squared_distance,
    mean_voter_error,
    not_learned,
    voters,
    weight_metric,
)

# Short runs do not settle, and say so.
pytestmark = pytest.mark.filterwarnings("ignore:.*still moved:sklearn.exceptions.ConvergenceWarning")

SETTINGS = {"learner": "cart", "subset_size": 2, "max_iter": 400}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_weights_are_read_off_distributions_votes_and_trees(iris):
    X, y = iris
    distribution = OptimalFeatureWeighting(random_state=0, **SETTINGS).fit(X, y)
    vote = voters(SETTINGS, 3, None).fit(X, y)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    expected = {
        distribution: distribution.weights_,
        vote: vote.selector_.weights_,
        tree: tree.feature_importances_,
    }
    for model, weights in expected.items():
        found = [weight_metric("x", index).function(model, X, y) for index in range(4)]
        assert found == pytest.approx(list(weights))


def test_a_distribution_that_does_not_learn_is_uniform(iris):
    X, y = iris
    distribution = OptimalFeatureWeighting(random_state=0, **not_learned(SETTINGS)).fit(X, y)
    assert distribution.weights_ == pytest.approx([0.25] * 4, abs=1e-6)


def test_learning_lowers_the_energy(iris):
    X, y = iris
    distribution = OptimalFeatureWeighting(random_state=0, **{**SETTINGS, "max_iter": 3000}).fit(X, y)
    uniform = distribution.mean_error(X, y, weights=np.full(4, 0.25), n_subsets=2000, random_state=0)
    assert energy_before(distribution, X, y) == pytest.approx(uniform, abs=0.06)
    assert energy_after(distribution, X, y) < energy_before(distribution, X, y)


def test_the_mean_energy_of_a_distribution_that_does_not_learn_is_that_of_the_uniform_distribution(iris):
    X, y = iris
    still = {**not_learned(SETTINGS), "max_iter": 1000, "batch_size": 4, "tol": 1e-12}
    distribution = OptimalFeatureWeighting(random_state=0, **still).fit(X, y)
    assert distribution.history_.steps[-1] == 1000
    uniform = distribution.mean_error(X, y, weights=np.full(4, 0.25), n_subsets=4000, random_state=0)
    assert mean_energy(distribution, X, y) == pytest.approx(uniform, abs=0.01)


def test_voters_are_scored_one_by_one(iris):
    X, y = iris
    names = np.asarray(["a", "b", "c"])[y]
    vote = voters(SETTINGS, 4, DecisionTreeClassifier(max_depth=1)).fit(X, names)
    errors = []
    for voter, subset in zip(vote.estimators_, vote.subsets_, strict=True):
        errors.append(np.mean(voter.predict(X[:, subset]) != y))
    assert mean_voter_error(vote, X, names) == pytest.approx(np.mean(errors))
    assert min(errors) >= 1 / 3 - 1e-12


def test_each_class_has_its_own_voters():
    X, y = load_digits(return_X_y=True)
    names = np.asarray([f"digit {code}" for code in y])
    distribution = OptimalFeatureWeighting(subset_size=10, bootstrap_size=50, max_iter=50)
    model = ClassVoters(distribution, LinearSVC(dual=False), n_voters=4, subset_size=20).fit(
        X[:1000], names[:1000]
    )
    Z, truth = X[1000:], y[1000:]
    decisions = model.decisions(Z)
    assert decisions.shape == (10, 4, 797)
    votes = (decisions > 0).sum(axis=1)
    expected = []
    for i in range(len(Z)):
        leaders = np.flatnonzero(votes[:, i] == votes[:, i].max())
        expected.append(leaders[np.argmax(decisions[leaders, :, i].sum(axis=1))])
    predicted = model.predict(Z)
    assert predicted.tolist() == [f"digit {code}" for code in expected]
    assert np.mean(predicted == names[1000:]) > 0.6
    one_by_one = [np.mean((decisions[c] > 0) != (truth == c)) for c in range(10)]
    assert error_of_each_model(model, Z, names[1000:]) == pytest.approx(np.mean(one_by_one))
    against = [np.where(truth == c, 4 - votes[c], votes[c]) for c in range(10)]
    assert np.any(np.asarray(against) == 2)
    majorities = [np.mean((count > 2) + 0.5 * (count == 2)) for count in against]
    assert error_of_each_vote(model, Z, names[1000:]) == pytest.approx(np.mean(majorities))


def test_the_words_of_the_figure_are_in_the_data():
    assert len(SPAM_WORDS) == 54
    assert len(set(SPAM_WORDS)) == 54
    assert set(FIGURE_18) <= set(SPAM_WORDS)
    assert sum(FIGURE_18.values()) < 100


@pytest.mark.skipif("ZERONORM_DATA" not in os.environ, reason="ZERONORM_DATA is not set")
def test_the_words_are_in_the_order_of_the_columns():
    names = [str(name) for name in load_dataset("spambase").feature_names[:54]]
    signs = {
        "semicolon": ";",
        "bracket": "(",
        "boxbracket": "[",
        "exclamation": "!",
        "dollar": "$",
        "hash": "#",
    }
    words = [name.removeprefix("word_freq_").removeprefix("char_freq_") for name in names]
    assert [signs.get(word, word) for word in words] == list(SPAM_WORDS)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_gaussian_width_follows_the_distances_and_not_the_means(make):
    rng = np.random.default_rng(0)
    X, y = np.round(rng.normal(size=(40, 5)), 1), np.arange(40) % 2
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    moved = X + 100.0 * np.arange(5)
    assert mean_squared_distance(make(moved)) == pytest.approx(distances.mean())
    centred = X - X.mean(axis=0)
    expected = SVC(gamma=0.5 / (5 * centred.var())).fit(centred, y).decision_function(centred)
    model = GaussianSVC(width=0.5).fit(make(moved), y)
    np.testing.assert_allclose(model.decision_function(make(moved)), expected, atol=1e-3)
