"""What the base class does for all selectors."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from zeronorm import RFECV, FisherScore, LassoSelector, SelectorCV, as_design
from zeronorm.registry import all_methods
from zeronorm.selection import problem

TALKING = [
    m
    for kind in ("selector", "meta")
    for m in all_methods(kind)
    if "verbose" in m.instances()[0].get_params(deep=False)
    and m.cls is not RFECV  # which counts as scikit-learn does
]
STOPS_EARLY = {"fsv", "perceptron-rfe"}  # far before the largest number of steps


@pytest.mark.parametrize("change", [-1, 1])
def test_predictions_need_the_columns_of_the_fit(change):
    X, y = make_classification(40, 6, random_state=0)
    fitted = FisherScore(2, estimator=LogisticRegression()).fit(X, y)
    other = np.ones((3, 6 + change))
    for call in (fitted.predict, fitted.predict_proba, fitted.decision_function, fitted.transform):
        with pytest.raises(ValueError, match=f"X has {6 + change} features, but FisherScore is expecting 6"):
            call(other)
    assert fitted.n_features_in_ == 6
    assert fitted.predict(X).shape == (40,)


class Bar:
    def __init__(self, total):
        self.total, self.done = total, 0

    def advance(self, steps=0, text=""):
        self.done += steps


@pytest.mark.parametrize("method", TALKING, ids=lambda m: m.name)
def test_progress_ends_near_what_was_announced(method, monkeypatch):
    X, y = make_classification(40, 8, n_informative=3, n_redundant=0, random_state=0)
    X = np.abs(X)
    X[:, 0] += 10 * y  # hard margins need classes that can be separated
    bars = []

    @contextmanager
    def bar(description, total):
        bars.append(Bar(total))
        yield bars[-1]

    monkeypatch.setattr(problem, "_bar", bar)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        method.instances()[0].set_params(verbose=True).fit(X, y)
    for shown in bars:
        if shown.total is not None:
            least = 1 if method.name in STOPS_EARLY else shown.total - 1
            assert least <= shown.done <= shown.total


def test_of_equal_columns_the_first_stays_longest():
    """In the order of the built-in machine; with an estimator it is that of scikit-learn, where the first leaves."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    noise = rng.normal(size=(40, 2))
    X = np.column_stack([noise, noise, 3.0 * y + rng.normal(size=40)])
    ranking = RFECV(cv=3).fit(X, y).ranking_
    assert ranking[4] == 1
    assert ranking[0] < ranking[2]
    assert ranking[1] < ranking[3]


@pytest.mark.parametrize(
    ("size", "number"), [(None, 4), (3, 3), (np.int64(2), 2), (0.5, 4), (0.01, 1), (1.0, 9), (0.34, 3)]
)
def test_the_number_of_features_is_a_count_or_a_share(size, number):
    X, y = make_classification(40, 9, random_state=0)
    fitted = FisherScore(size).fit(X, y)
    assert fitted.n_features_ == fitted.support_.sum() == number
    np.testing.assert_array_equal(np.flatnonzero(fitted.support_), np.sort(fitted.path_.order[:number]))
    np.testing.assert_array_equal(fitted.ranking_ == 1, fitted.support_)


def test_what_must_be_in_sets_the_least_number():
    X, y = make_classification(40, 8, random_state=0)
    kept = FisherScore(always_keep=[0, 1, 2, 3, 4]).fit(X, y)  # without them, half of eight
    np.testing.assert_array_equal(np.flatnonzero(kept.support_), [0, 1, 2, 3, 4])
    grouped = FisherScore(feature_groups=[0, 0, 0, 1, 1, 1, 2, 2]).fit(X, y)
    assert grouped.n_features_ in (2, 3)  # the most whole groups within four
    large = FisherScore(feature_groups=[0] * 7 + [1]).fit(X, y)
    assert large.n_features_ in (1, 7)


def test_a_size_beyond_the_features_and_wrong_groups_are_refused():
    X, y = make_classification(40, 6, random_state=0)
    with pytest.raises(ValueError, match=r"between 1 and the 6 features of X\. Got 7 instead"):
        FisherScore(7).fit(X, y)
    with pytest.raises(ValueError, match=r"one label for each of the 40 samples. Got shape \(39,\)"):
        SelectorCV(FisherScore(), cv=3).fit(X, y, groups=np.arange(39))
    with pytest.raises(ValueError, match=r"at least two classes in y\. Got one class only"):
        FisherScore().fit(as_design(X), np.ones(40))
    with pytest.raises(ValueError, match=r"needs at least two samples\. Got 1 sample"):
        FisherScore().fit(as_design(X[:1]), [1])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[40, 39\]"):
        FisherScore().fit(as_design(X), y[:39])
    with pytest.raises(
        TypeError, match=r"unexpected arguments .'depth'.: they would be passed to 'estimator'"
    ):
        FisherScore().fit(X, y, depth=3)


def test_names_come_with_a_design_and_go_without():
    X, y = make_classification(40, 3, n_informative=2, n_redundant=0, random_state=0)
    fitted = FisherScore().fit(as_design(X, feature_names=["a", "b", "c"]), y)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(fitted.fit(as_design(X), y), "feature_names_in_")
    assert fitted.n_features_in_ == 3


def test_samples_without_weight_are_as_if_they_were_not_there():
    X, y = make_classification(40, 5, random_state=0)
    weight = np.where(np.arange(40) < 30, 1.5, 0.0)
    whole = FisherScore(2, estimator=LogisticRegression()).fit(X, y, sample_weight=weight)
    part = FisherScore(2, estimator=LogisticRegression()).fit(X[:30], y[:30], sample_weight=weight[:30])
    np.testing.assert_allclose(whole.scores_, part.scores_)
    np.testing.assert_allclose(whole.estimator_.coef_, part.estimator_.coef_)
    alone = LogisticRegression().fit(X[:30][:, part.support_], y[:30], sample_weight=weight[:30])
    np.testing.assert_allclose(part.estimator_.coef_, alone.coef_)


def test_labels_stay_what_they_are_and_targets_become_numbers():
    X, y = make_classification(40, 5, random_state=0)
    named = FisherScore().fit(X, np.where(y, "yes", "no").astype(object))
    assert named.classes_.tolist() == ["no", "yes"]
    numbers = X[:, 0] + X[:, 1]
    wanted = LassoSelector(task="regression").fit(X, numbers).scores_
    np.testing.assert_array_equal(
        LassoSelector(task="regression").fit(X, numbers.astype(object)).scores_, wanted
    )
