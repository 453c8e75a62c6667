"""IntervalSelector: geometry of the intervals, the search, and what it finds."""

from __future__ import annotations

import itertools
from itertools import chain
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import zeronorm
from small_problems import noise
from zeronorm import IntervalSelector
from zeronorm.selectors.filters import _interval as interval
from zeronorm.selectors.filters._interval import covering_intervals


def spectrum(seed=0, n=80, p=64, planted=(40, 48), task="classification"):
    """Noise with a signal in all columns of one interval."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = rng.normal(size=n)
    y = signal if task == "regression" else (signal > 0).astype(int)
    shift = signal if task == "regression" else 1.2 * (2 * y - 1)
    X[:, planted[0] : planted[1]] += shift[:, None]
    return X, y


def test_two_parts_give_the_left_central_and_right_half():
    assert covering_intervals(0, 12, 2, 1) == [(0, 6), (3, 9), (6, 12)]
    assert covering_intervals(100, 112, 3, 1) == [(100, 104), (102, 106), (104, 108), (106, 110), (108, 112)]
    assert covering_intervals(0, 100, 2, 80) == [(0, 80), (20, 100)]


@given(st.integers(2, 400), st.integers(2, 6), st.data())
def test_intervals_cover_the_range_and_overlap_by_half(whole, parts, data):
    shortest = data.draw(st.integers(1, whole - 1))
    found = covering_intervals(7, 7 + whole, parts, shortest)
    length = found[0][1] - found[0][0]
    assert length == max(shortest, -(-whole // parts)) < whole
    assert found[0][0] == 7
    assert found[-1][1] == 7 + whole
    for (a, b), (c, d) in itertools.pairwise(found):
        assert b - a == d - c == length
        assert 0 < c - a <= length / 2 + 1
    if whole % (2 * parts) == 0 and shortest <= whole // parts:
        assert len(found) == 2 * parts - 1


@pytest.mark.parametrize("seed", range(3))
def test_finds_a_planted_interval(seed):
    X, y = spectrum(seed)
    s = IntervalSelector(8, learner=GaussianNB(), random_state=seed).fit(X, y)
    chosen = np.flatnonzero(s.support_)
    assert np.all(np.diff(chosen) == 1)
    assert np.count_nonzero((chosen >= 40) & (chosen < 48)) >= 6


def test_finds_a_planted_interval_for_regression():
    X, y = spectrum(task="regression", n=120)
    s = IntervalSelector(8, task="regression", random_state=0).fit(X, y)
    chosen = np.flatnonzero(s.support_)
    assert np.count_nonzero((chosen >= 40) & (chosen < 48)) >= 6


@pytest.mark.parametrize(
    ("task", "model"), [("classification", SVC(kernel="linear")), ("regression", Ridge())]
)
def test_the_default_learner_standardises_the_training_samples_of_each_fold(task, model):
    X, y = spectrum(p=16, planted=(4, 8), task=task)
    X = X * np.geomspace(1.0, 100.0, 16) + 5.0
    s = IntervalSelector(task=task, cv=2).fit(X, y)
    plain = make_pipeline(StandardScaler(), model)
    for (first, last), error in zip(s.intervals_, s.errors_, strict=True):
        expected = -np.mean(cross_val_score(plain, X[:, first:last], y, cv=2))
        assert error == pytest.approx(expected)


def test_errors_and_choices_agree_with_plain_cross_validation():
    X, y = spectrum()
    learner = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    s = IntervalSelector(learner=learner, cv=folds).fit(X, y)

    def error(first, last):
        return -np.mean(cross_val_score(learner, X[:, first:last], y, cv=folds))

    for (first, last), (a, b), value in zip(s.intervals_, s.intervals_[1:], s.errors_[1:], strict=False):
        candidates = covering_intervals(first, last, 2, 1)
        errors = [error(*c) for c in candidates]
        assert (a, b) == candidates[int(np.argmin(errors))]
        assert value == pytest.approx(min(errors))
    assert s.errors_[0] == pytest.approx(error(0, 64))


def test_stops_before_the_error_rises():
    X, y = spectrum()
    s = IntervalSelector(learner=GaussianNB(), random_state=0).fit(X, y)
    assert np.all(np.diff(s.errors_[:-1]) <= 1e-12)
    kept = s.intervals_[-2] if s.errors_[-1] > s.errors_[-2] + 1e-12 else s.intervals_[-1]
    assert np.flatnonzero(s.support_).tolist() == list(range(*kept))


def test_every_size_is_an_interval():
    X, y = spectrum(p=37, planted=(5, 12))
    s = IntervalSelector(3, learner=GaussianNB(), random_state=0).fit(X, y)
    for k in range(1, 38):
        assert np.all(np.diff(s.path_.support(k)) == 1)
    for first, last in s.intervals_:
        assert s.path_.support(last - first).tolist() == list(range(first, last))


def test_number_of_jobs_changes_nothing():
    X, y = spectrum(n=40, p=16, planted=(2, 6))
    one, two = (IntervalSelector(4, cv=2, n_jobs=j, random_state=0).fit(X, y) for j in (1, 2))
    np.testing.assert_array_equal(one.errors_, two.errors_)


def test_bad_input():
    X, y = spectrum(p=16, planted=(2, 6))
    with pytest.raises(ValueError, match="between 1 and the 16 features"):
        IntervalSelector(17).fit(X, y)
    for parts in (1, 2.5, True):
        with pytest.raises(ValueError, match="'n_parts' parameter of IntervalSelector"):
            IntervalSelector(n_parts=parts).fit(X, y)
    lone = np.where(np.arange(len(y)) == 3, "rare", "common")
    with pytest.raises(ValueError, match=r"two samples of each class.*'rare'"):
        IntervalSelector().fit(X, lone)


def test_halves_of_the_data_need_two_samples_of_each_class():
    zeronorm.IntervalSelector(1).fit(noise(4), list("pqpq"))
    with pytest.raises(ValueError, match=r"Got one of class .*'q'"):
        zeronorm.IntervalSelector(1).fit(noise(4), list("pqpp"))
    zeronorm.IntervalSelector(1, task="regression").fit(noise(4), [0.5, 1.0, 2.0, 3.0])


def test_the_training_samples_of_every_fold_need_two_classes():
    X, y = noise(8, 4), np.array(list("aabbaabb"))
    rows = np.arange(8)
    parts = [(rows[y == "a"], rows[y == "b"]), (rows[:4], rows[4:])]
    with pytest.raises(ValueError, match="IntervalSelector"):
        zeronorm.IntervalSelector(learner=DummyClassifier(), cv=parts).fit(X, y)
    zeronorm.IntervalSelector(learner=DummyClassifier(), cv=parts[1:]).fit(X, y)


def test_a_path_of_intervals_grows_outwards():
    path = interval._path([(0, 8), (2, 6), (3, 5)], [0.3, 0.2, 0.4], 8, 1)
    assert path.order.tolist() == [3, 4, 2, 5, 1, 6, 0, 7]
    assert (path.selected_size, path.n_iter) == (4, 3)
    assert path.visited_sizes.tolist() == [8, 4, 2]
    assert path.objective.tolist() == [0.3, 0.2, 0.4]
    one = interval._path([(0, 3)], [0.5], 3, 0)
    assert (one.order.tolist(), one.selected_size) == ([1, 0, 2], 3)


class Noting(ClassifierMixin, RegressorMixin, BaseEstimator):
    """A learner that records its training rows, which the leading digits of every value encode."""

    noted: ClassVar[list] = []

    def fit(self, X, y):
        self.noted.append(frozenset(np.floor(X[:, 0]).astype(int).tolist()))
        self.classes_, self.first_ = np.unique(y), y[0]
        return self

    def predict(self, X):
        return np.repeat(self.first_, len(X))


def training_rows(y, n_splits, groups=None, **params):
    """The training rows of every split, of one candidate after the other."""
    Noting.noted.clear()
    X = np.arange(len(y))[:, None] + np.random.default_rng(1).uniform(0.1, 0.9, size=(len(y), 6))
    selector = zeronorm.IntervalSelector(learner=Noting(), random_state=0, **params).fit(X, y, groups=groups)
    rows = [Noting.noted[k : k + n_splits] for k in range(0, len(Noting.noted), n_splits)]
    assert len(rows) >= 2 * len(selector.intervals_) - 1
    return rows


@pytest.mark.parametrize(("cv", "n_splits", "n_folds"), [(None, 10, 2), (3, 3, 3)])
def test_splits_of_an_interval_keep_groups_whole(cv, n_splits, n_folds):
    groups = np.arange(24) // 4
    splits, *_ = training_rows(np.arange(24) % 2, n_splits, groups, cv=cv)
    tested = [sorted(set(range(24)) - train) for train in splits]
    for first in range(0, n_splits, n_folds):
        assert sorted(chain.from_iterable(tested[first : first + n_folds])) == list(range(24))
    for train, test in zip(splits, tested, strict=True):
        assert not set(groups[list(train)]) & set(groups[test])
    assert len(set(splits)) > n_folds or cv is not None  # each repeat has a seed of its own


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_halves_of_an_interval_are_the_same_for_every_candidate(task):
    y = np.arange(12) % 2 if task == "classification" else noise(12, 1)[:, 0]
    first, *others = training_rows(y, 10, task=task, scoring=lambda model, X, y: float(X.mean()))
    assert all(found == first for found in others)
    assert [len(train) for train in first] == [6] * 10
    assert len(set(first)) > 2
