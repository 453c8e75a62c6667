"""Conventions of scikit-learn: tags, routing of metadata, checks of the data, estimators inside selectors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import zeronorm
from small_problems import Remembering
from zeronorm import RFE, RFECV, FisherScore, LassoSelector, Relief, SVMWeights, as_design
from zeronorm.registry import all_methods
from zeronorm.selectors import _base as base

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


def test_missing_values_reach_an_estimator_that_imputes_them():
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


def test_weights_of_the_samples_reach_the_estimator_unless_others_are_given():
    X, y = data()
    weight = np.linspace(0.5, 2.0, 24)
    fitted = FisherScore(2, estimator=Remembering()).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(fitted.estimator_.weight_, weight)
    given = FisherScore(2, estimator=Remembering()).fit(X, y, sample_weight=weight, groups=np.arange(24))
    np.testing.assert_array_equal(given.estimator_.groups_, np.arange(24))
    assert FisherScore(2, estimator=Remembering()).fit(X, y).estimator_.weight_ is None


def test_metadata_is_routed_where_it_was_requested():
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


# -- What a path holds, and what reaches a selector inside another --


@pytest.mark.parametrize("backend", [pd.DataFrame, lambda X: X.tolist(), np.asarray, as_design])
def test_missing_values_reach_a_wrapped_selector(backend):
    X, y = data()
    X[3, 0] = np.nan
    whole = as_design(X, allow_nan=True) if backend is as_design else backend(X)
    relief = zeronorm.StabilitySelection(Relief(n_neighbors=3), subset_size=1, n_subsamples=2, random_state=0)
    assert relief.fit(whole, y).frequencies_.sum() == 1.0
    fisher = zeronorm.StabilitySelection(FisherScore(), subset_size=1, n_subsamples=2)
    with pytest.raises(ValueError, match="NaN"):
        fisher.fit(whole, y)


@pytest.mark.parametrize("backend", [np.asarray, as_design])
@pytest.mark.parametrize("selector", [FisherScore(2), RFE(), RFECV(cv=2)], ids=lambda s: type(s).__name__)
def test_no_prediction_before_the_fit(selector, backend):
    """The error is about the missing fit, not about the missing attribute `estimator_`."""
    X, y = data()
    selector = selector.set_params(estimator=LogisticRegression())
    for call in ("predict", "decision_function", "predict_proba"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(selector, call)(backend(X))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        selector.score(backend(X), y)


def test_the_tags_are_those_of_the_task():
    for selector in SELECTORS:
        tags, has_classes = get_tags(selector), selector._task_name() == "classification"
        assert (tags.regressor_tags is None) == has_classes, selector
        assert (tags.classifier_tags is not None) == has_classes, selector


def test_the_tags_state_whether_more_than_two_classes_are_supported():
    found = set()
    for selector in SELECTORS:
        if selector._task_name() == "classification":
            takes_more = "multiclass" in selector._tasks()
            assert get_tags(selector).classifier_tags.multi_class == takes_more, selector
            found.add(takes_more)
    assert found == {True, False}


def test_plain_arrays_need_no_checks_and_have_no_names(monkeypatch):
    """As with scikit-learn's checks, names of an earlier data frame are dropped, and other data are still checked."""
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    selector = FisherScore(1).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    expected = selector.scores_
    with monkeypatch.context() as without_checks:
        without_checks.setattr(base, "validate_data", None)
        selector.fit(X, y)
    # A data frame may be stored in another memory order, and its sums then differ by rounding.
    np.testing.assert_allclose(selector.scores_, expected, rtol=1e-12)
    assert selector.n_features_in_ == 3
    assert not hasattr(selector, "feature_names_in_")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        selector.fit(X, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        selector.fit(np.where(X[3, 1] == X, np.nan, X), y)
