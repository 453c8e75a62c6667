"""What selectors promise to scikit-learn: tags, routing, checks of the data, estimators inside."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import get_tags

import zeronorm
from zeronorm import RFE, RFECV, FisherScore, LassoSelector, Relief, SVMWeights, as_design
from zeronorm.registry import all_methods

SELECTORS = [s for kind in ("selector", "meta") for m in all_methods(kind) for s in m.instances()]


def data(n=24, p=5, seed=0):
    y = np.arange(n) % 2
    return np.random.default_rng(seed).normal(size=(n, p)) + y[:, None] * np.eye(p)[1], y


def test_every_selector_needs_a_target_and_promises_no_score():
    for selector in SELECTORS:
        tags = get_tags(selector)
        assert tags.target_tags.required
        assert (tags.classifier_tags or tags.regressor_tags).poor_score
        assert tags.input_tags.sparse is selector._accepts_sparse
        assert tags.input_tags.allow_nan is selector._allow_nan


@pytest.mark.parametrize("cls", [RFE, RFECV])
@pytest.mark.parametrize(
    ("estimator", "kind", "is_sparse", "has_gaps"),
    [
        (LogisticRegression(), "classifier", True, False),
        (GaussianNB(), "classifier", False, False),
        (HistGradientBoostingClassifier(), "classifier", False, True),
        (LinearRegression(), "regressor", True, False),
    ],
)
def test_an_elimination_has_the_abilities_of_its_estimator(cls, estimator, kind, is_sparse, has_gaps):
    selector = cls(estimator)
    tags = get_tags(selector)
    assert tags.estimator_type == kind
    assert (tags.input_tags.sparse, tags.input_tags.allow_nan) == (is_sparse, has_gaps)
    assert (tags.classifier_tags is None) == (kind == "regressor") != (tags.regressor_tags is None)
    assert (tags.classifier_tags or tags.regressor_tags).poor_score
    assert selector._task_name() == ("regression" if kind == "regressor" else "classification")
    for name in ("predict", "score", "decision_function", "predict_proba", "predict_log_proba"):
        assert hasattr(selector, name) == hasattr(estimator, name), name
        assert not hasattr(cls(), name)


@pytest.mark.parametrize("n", [1, 2])
def test_two_samples_are_enough_to_begin(n):
    X, y = [[1.0, 2.0], [3.0, 2.5]][:n], [0.5, 1.0][:n]
    for selector in (LassoSelector(task="regression"), RFE(LinearRegression())):
        for given in (X, as_design(X)):
            if n == 2:
                assert selector.fit(given, y).n_features_ == 1
            else:
                with pytest.raises(ValueError, match=r"minimum of 2|at least two samples"):
                    selector.fit(given, y)


def test_gaps_reach_an_estimator_that_fills_them():
    X, y = data()
    gaps = X.copy()
    gaps[3, 1] = np.nan
    filled = make_pipeline(SimpleImputer(), LogisticRegression())
    selector = Relief(2, n_neighbors=3, estimator=filled).fit(gaps, y)
    assert selector.predict(gaps).shape == (24,)
    with pytest.raises(ValueError, match="infinity"):
        selector.predict(np.where(gaps == gaps[0, 0], np.inf, gaps))
    with pytest.raises(ValueError, match="NaN"):
        SVMWeights(2, estimator=LogisticRegression()).fit(X, y).predict(gaps)


def test_sparse_data_reach_the_estimator_and_others_refuse_them():
    X, y = data()
    stored = sparse.csr_array(np.round(X))
    fitted = FisherScore(2, estimator=LogisticRegression()).fit(stored, y)
    np.testing.assert_array_equal(fitted.predict(stored), fitted.predict(stored.toarray()))
    interval = zeronorm.IntervalSelector(2, cv=2, estimator=LogisticRegression())
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        interval.fit(stored, y)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        interval.fit(X, y).predict(stored)


class Remembering(ClassifierMixin, BaseEstimator):
    """A classifier that keeps what it was given."""

    def fit(self, X, y, groups=None, sample_weight=None):
        self.groups_, self.weight_, self.classes_ = groups, sample_weight, np.unique(y)
        self.coef_ = np.abs(X).sum(axis=0)[None, :]
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


class Plain(Remembering):
    """One that knows no groups."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, None, sample_weight)


def test_groups_and_weights_reach_the_estimator_of_an_elimination():
    X, y = data()
    groups, weight = np.arange(24) // 2, np.linspace(0.5, 2.0, 24)
    fitted = RFE(Remembering(), n_features_to_select=2).fit(X, y, sample_weight=weight, groups=groups)
    np.testing.assert_array_equal(fitted.estimator_.groups_, groups)
    np.testing.assert_array_equal(fitted.estimator_.weight_, weight)
    without = RFE(Remembering(), n_features_to_select=2).fit(X, y)
    assert (without.estimator_.groups_, without.estimator_.weight_) == (None, None)
    plain = RFE(Plain(), n_features_to_select=2).fit(X, y, groups=groups)
    assert plain.estimator_.groups_ is None
    assert plain.n_iter_ == 4  # five, four and three features, and the two that stay
    assert plain.converged_
    assert plain.classes_.tolist() == [0, 1]
    order = np.argsort(-np.abs(X).sum(axis=0))
    assert plain.path_.order.tolist() == order.tolist()
    assert np.flatnonzero(plain.support_).tolist() == sorted(order[:2])
    assert plain.ranking_[order].tolist() == [1, 1, 2, 3, 4]


def test_weights_of_the_samples_reach_the_estimator_unless_others_are_given():
    X, y = data()
    weight = np.linspace(0.5, 2.0, 24)
    fitted = FisherScore(2, estimator=Remembering()).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(fitted.estimator_.weight_, weight)
    given = FisherScore(2, estimator=Remembering()).fit(X, y, sample_weight=weight, groups=np.arange(24))
    np.testing.assert_array_equal(given.estimator_.groups_, np.arange(24))
    assert FisherScore(2, estimator=Remembering()).fit(X, y).estimator_.weight_ is None


def test_an_elimination_takes_a_design_with_its_names():
    X, y = data()
    plain = RFE(LogisticRegression(), n_features_to_select=2).fit(X, y)
    named = RFE(LogisticRegression(), n_features_to_select=2).fit(
        as_design(X, feature_names=list("abcde")), y
    )
    np.testing.assert_array_equal(named.ranking_, plain.ranking_)
    assert named.feature_names_in_.tolist() == list("abcde")
    assert not hasattr(plain, "feature_names_in_")
    for selector in (RFE(LogisticRegression()), RFECV(LogisticRegression(), cv=2)):
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[24, 23\]"):
            selector.fit(as_design(X), y[:-1])


def test_metadata_goes_where_it_was_asked_for():
    X, y = data()
    weight = np.linspace(0.5, 2.0, 24)
    with config_context(enable_metadata_routing=True):
        asking = Remembering().set_fit_request(groups=True, sample_weight=True)
        fitted = FisherScore(2, estimator=asking).fit(X, y, groups=np.arange(24))
        np.testing.assert_array_equal(fitted.estimator_.groups_, np.arange(24))
        routing = fitted.get_metadata_routing()
        assert "estimator" in dict(routing)
        assert routing._self_request is not None
        assert zeronorm.Relief().get_metadata_routing()._self_request is None  # it takes no weights
        assert "estimator" not in dict(FisherScore().get_metadata_routing())
        whole = RFE(asking, n_features_to_select=2).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(whole.estimator_.weight_, weight)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_machine_that_eliminates_when_none_is_given(task):
    selector = RFECV(task=task)
    model = selector._working_estimator()
    assert type(model).__name__ == ("SVR" if task == "regression" else "SVC")
    assert model.kernel == "linear"
    given = LinearSVC()
    assert RFECV(given)._working_estimator() is given


def test_columns_of_the_machine_inside_are_standardised_by_the_training_part():
    X, _ = data()
    train, test = RFECV()._on_our_scale(X[:16], X[16:])
    np.testing.assert_allclose(train, (X[:16] - X[:16].mean(axis=0)) / X[:16].std(axis=0))
    np.testing.assert_allclose(test, (X[16:] - X[:16].mean(axis=0)) / X[:16].std(axis=0))
    same = RFECV(SVC(kernel="linear"))._on_our_scale(X[:16], X[16:])
    np.testing.assert_array_equal(same[0], X[:16])
    np.testing.assert_array_equal(same[1], X[16:])
