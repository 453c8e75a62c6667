"""The vote over subsets drawn from the learned distribution."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from oracles.subsets import gaussian_classes
from zeronorm import OptimalFeatureWeighting
from zeronorm.models import OFWClassifier

# Short runs do not converge, and warn.
pytestmark = pytest.mark.filterwarnings("ignore:.*still moved:sklearn.exceptions.ConvergenceWarning")


def model(learner="centroid", **settings):
    selector = OptimalFeatureWeighting(learner=learner, subset_size=2, max_iter=200)
    return OFWClassifier(selector, **({"n_estimators": 9, "random_state": 0} | settings))


def test_votes_are_those_of_the_voters():
    X, y = gaussian_classes(n=90, p=8, n_classes=3, shift=2.0)
    labels = np.array(["b", "c", "a"])[y]
    m = model().fit(X, labels)
    # Each voter computed by hand: standardised columns, then the nearest class mean.
    votes = np.zeros((90, 3))
    for subset in m.subsets_:
        Z = StandardScaler().fit_transform(X[:, subset])
        means = np.array([Z[labels == c].mean(axis=0) for c in m.classes_])
        winner = np.argmin(((Z[:, None] - means) ** 2).sum(axis=2), axis=1)
        votes[np.arange(90), winner] += 1 / 9
    np.testing.assert_allclose(m.predict_proba(X), votes)
    assert np.array_equal(m.predict(X), m.classes_[np.argmax(votes, axis=1)])


def test_subsets_follow_the_learned_distribution():
    X, y = gaussian_classes(n=60, p=6)
    m = model(n_estimators=1, subset_size=1, estimator=GaussianNB()).fit(X, y)
    m.n_estimators = 4000
    drawn = np.bincount(np.concatenate(m._draw_subsets(1, np.random.default_rng(0))), minlength=6) / 4000
    P = m.selector_.weights_
    assert np.all(np.abs(drawn - P) < 4 * np.sqrt(P * (1 - P) / 4000) + 1e-12)


def test_learned_features_beat_uniform_draws():
    X, y = gaussian_classes(n=150, p=60, shift=2.0, seed=1)
    selector = OptimalFeatureWeighting(learner="centroid", subset_size=3, max_iter=2000, batch_size=8)
    m = OFWClassifier(selector, n_estimators=51, random_state=0).fit(X[:100], y[:100])
    learned = np.mean(m.predict(X[100:]) == y[100:])
    m.selector_.weights_ = np.full(60, 1 / 60)
    rng = np.random.default_rng(0)
    m.subsets_ = m._draw_subsets(3, rng)
    m.estimators_ = m._train(X[:100], y[:100], m.subsets_, rng)
    assert learned > np.mean(m.predict(X[100:]) == y[100:]) + 0.05


def test_two_class_learners_vote_as_one_against_all():
    X, y = gaussian_classes(n=60, p=6, n_classes=3, shift=2.0)
    m = model("linear_svm", n_estimators=3).fit(X, y)
    assert isinstance(m.estimators_[0][-1], OneVsRestClassifier)
    assert np.mean(m.predict(X) == y) > 0.5


def test_size_is_chosen_by_cross_validation():
    # The classes differ in the product of two features: voters with one feature cannot see it.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    selector = OptimalFeatureWeighting(learner="cart", subset_size=2, max_iter=50)
    m = OFWClassifier(selector, n_estimators=15, subset_size=[1, 6], cv=3, random_state=0).fit(X, y)
    assert m.subset_size_ == 6


def test_same_seed_same_votes_for_any_number_of_workers():
    X, y = gaussian_classes(n=60, p=8)
    tree = DecisionTreeClassifier(max_features=1)
    fresh = np.random.default_rng(1).normal(size=(50, 8))
    with parallel_config("threading"):
        votes = [model(estimator=tree, n_jobs=j).fit(X, y).predict_proba(fresh) for j in (1, 2)]
    assert np.array_equal(votes[0], votes[1])
    other = model(estimator=tree, random_state=1).fit(X, y).predict_proba(fresh)
    assert not np.array_equal(other, votes[0])


def test_sparse_data_give_the_same_votes():
    X, y = gaussian_classes(n=60, p=8)
    X[np.abs(X) < 0.5] = 0.0
    assert np.array_equal(
        model().fit(sp.csr_array(X), y).predict(sp.csr_array(X)), model().fit(X, y).predict(X)
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_estimators": 0}, "'n_estimators'"),
        ({"subset_size": 0}, "'subset_size'"),
        ({"subset_size": []}, "'subset_size'"),
        ({"subset_size": [2, 0.5]}, "'subset_size'"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    X, y = gaussian_classes()
    with pytest.raises(ValueError, match=message):
        model(**settings).fit(X, y)


def test_bad_selectors_are_refused():
    X, y = gaussian_classes()
    with pytest.raises(ValueError, match="must be None or an OptimalFeatureWeighting"):
        OFWClassifier(GaussianNB()).fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        model().fit(X, np.zeros(60))
