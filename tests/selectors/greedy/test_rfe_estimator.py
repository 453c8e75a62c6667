"""RFE and RFECV with an estimator: its abilities, its settings, and where groups, weights and metadata go."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import get_tags

import zeronorm
from small_problems import Remembering, noise
from zeronorm import RFE, RFECV, as_design
from zeronorm.engines.elimination import _linear as linear_models
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Binary, Multiclass, Real
from zeronorm.selectors.greedy import _rfe as rfe
from zeronorm.solvers.linear import EpsilonInsensitiveLoss, HingeLoss, LinearProblem, Way

INF = float("inf")


def data(n=24, p=5, seed=0):
    y = np.arange(n) % 2
    return np.random.default_rng(seed).normal(size=(n, p)) + y[:, None] * np.eye(p)[1], y


def test_settings_of_the_models_inside_an_elimination():
    selector = RFE(multi_class="one_vs_one", loss="squared")
    problem = Problem(design=as_design(np.eye(6)), target=Multiclass(np.arange(6) % 3, np.arange(3)))
    for cost, inside in ((2.0, 2.0), (0.99e100, 0.99e100), (1e100, INF)):
        selector.C_, selector.epsilon_ = cost, None
        linear = selector._linear_problem(problem)
        assert linear.loss == HingeLoss(squared=True)
        assert set(linear.costs.ravel()) == {0.0, inside}
        assert linear.n_models == 3
    selector.set_params(loss="hinge", task="regression").epsilon_ = 0.25
    real = Problem(design=as_design(np.eye(6)), target=Real(np.arange(6.0)))
    assert selector._linear_problem(real).loss == EpsilonInsensitiveLoss(0.25)


@pytest.mark.parametrize(("size", "found"), [(None, 3), (2, 2), (7, 7), (0.5, 3), (0.1, 1), (1.0, 7)])
def test_the_size_of_an_elimination_with_an_estimator(size, found):
    X, y = noise(20, 7), np.arange(20) % 2
    assert RFE(LogisticRegression(), n_features_to_select=size).fit(X, y).n_features_ == found
    assert RFE(LogisticRegression()).fit(X[:, :1], y).n_features_ == 1


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


class Plain(Remembering):
    """An estimator whose fit takes no groups."""

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


@pytest.mark.parametrize(("C", "growth"), [("auto", 3.0), (2.0, 1.0)])
def test_models_on_tall_data_take_over_with_the_cost_of_the_features_that_are_left(C, growth, monkeypatch):
    """Six columns of length one: the two that are left have a third of the total."""
    made = []

    class FourRemoved:
        def __init__(self, problem, linear, **settings):
            made.append((None, linear.costs.max(), settings["cost_follows"]))

        def eliminate(self, record, stop_at):
            assert stop_at == 3
            record.remove(np.arange(4))

    def models(problem, linear, active, **settings):
        made.append((active.tolist(), linear.costs.max(), settings["cost_follows"]))

    monkeypatch.setattr(rfe, "OneByOne", FourRemoved)
    monkeypatch.setattr(rfe, "LinearModels", models)
    monkeypatch.setattr(rfe, "eliminate", lambda *args: None)
    monkeypatch.setattr(rfe, "smallest_gram_size", lambda *args: 3)
    problem = Problem(design=as_design(np.eye(6)), target=Binary(np.arange(6) % 2))
    selector = RFE(C=C)
    selector.C_, selector.epsilon_ = 2.0, None
    selector._eliminate_linear(rfe.Elimination(problem))
    assert made == [(None, 2.0, C == "auto"), ([4, 5], 2.0 * growth, C == "auto")]


def test_the_cost_grows_when_the_gram_matrix_is_given_up(monkeypatch):
    """Rounds of two of six columns of length one; with two left, the models are those of tall data."""
    monkeypatch.setattr(
        linear_models, "choose", lambda loss, norm, shape: Way.GRAM if shape[1] > 2 else Way.PRIMAL
    )
    problem = Problem(design=as_design(np.eye(6)), target=Binary(np.arange(6) % 2))
    linear = LinearProblem.of(problem, HingeLoss(), 2.0)
    models = linear_models.LinearModels(problem, linear, tol=1e-6, cost_follows=True)
    costs = []
    for _ in range(3):
        models.train()
        costs.append(float(models.linear.costs.max()))
        models.remove(models.active[:2] if models.active.size > 2 else models.active[:1])
    assert costs == [2.0, 2.0, 6.0]


def pairs_of(routing):
    return {name: {(pair.caller, pair.callee) for pair in part.mapping} for name, part in routing}


def test_where_metadata_of_an_elimination_go():
    with config_context(enable_metadata_routing=True):
        assert pairs_of(RFE(LogisticRegression()).get_metadata_routing()) == {
            "estimator": {("fit", "fit"), ("predict", "predict"), ("score", "score")}
        }
        assert pairs_of(RFECV(LogisticRegression(), cv=2).get_metadata_routing()) == {
            "estimator": {("fit", "fit"), ("predict", "predict")},
            "splitter": {("fit", "split")},
            "scorer": {("fit", "score"), ("score", "score")},
        }
        own = dict(RFECV(LogisticRegression(), cv=GroupKFold(2)).get_metadata_routing())
        assert own["splitter"].router.split.requests["groups"] is True
        assert "estimator" not in pairs_of(RFE().get_metadata_routing())
    groups = np.arange(6)
    plain = RFECV(LogisticRegression(), cv=2)._routed_to_parts({"groups": groups})
    assert (plain.estimator.fit, plain.scorer.score) == ({}, {})
    assert plain.splitter.split["groups"] is groups


def test_too_many_features_warn_as_in_scikit_learn():
    X, y = noise(20), np.arange(20) % 2
    assert RFE(LogisticRegression(), n_features_to_select=3).fit(X, y).n_features_ == 3
    with pytest.warns(UserWarning, match="n_features_to_select=4 > n_features=3"):
        assert RFE(LogisticRegression(), n_features_to_select=4).fit(X, y).n_features_ == 3
    assert RFE(LogisticRegression()).fit(X, y).n_features_ == 1
    assert RFECV(cv=2, min_features_to_select=3).fit(X, y).n_features_ == 3
    with pytest.warns(UserWarning, match="min_features_to_select=4 > n_features=3"):
        assert RFECV(cv=2, min_features_to_select=4).fit(X, y).n_features_ == 3


def test_elimination_refuses_what_scikit_learn_refuses():
    X, y = noise(12), np.arange(12) % 2
    for selector in (
        RFE(LogisticRegression()),
        zeronorm.RFECV(LogisticRegression(), cv=2),
        zeronorm.RFECV(cv=2),
    ):
        with pytest.raises(ValueError, match="None: first found in row 2"):
            selector.fit(X, [0, 1, None, *y[3:].tolist()])
        fitted = selector.fit(X, y)
        assert fitted.get_support().sum() >= 1
    for call, text in (("predict", "depth"), ("score", "depth")):
        fitted = zeronorm.RFECV(LogisticRegression(), cv=2).fit(X, y)
        given = (X,) if call == "predict" else (X, y)
        with pytest.raises((TypeError, ValueError), match=text):
            getattr(fitted, call)(*given, depth=3)
    rows = np.arange(12)
    with pytest.raises(ValueError, match="RFECV"):
        zeronorm.RFECV(cv=[(rows[y == 0], rows[y == 1])]).fit(X, y)
