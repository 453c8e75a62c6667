"""RFECV: folds, scores of all sizes at once, and the estimator that eliminates."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.svm import SVC, LinearSVC

from small_problems import noise
from zeronorm import RFECV
from zeronorm.engines.elimination.known_models import KnownRanker
from zeronorm.selectors.greedy import rfecv


def known_ranker(as_itself):
    ranker = KnownRanker.__new__(KnownRanker)
    ranker.refits, ranker.stands_in_as_itself = "refits", as_itself
    return ranker


@pytest.mark.parametrize(
    ("scoring", "as_itself", "is_known"),
    [
        (None, False, True),
        ("f1", False, True),
        ("roc_auc", False, False),
        ("roc_auc", True, True),
        (len, True, False),
    ],
)
def test_models_that_only_predict_serve_scores_of_predictions(scoring, as_itself, is_known, monkeypatch):
    ranker = known_ranker(as_itself)
    monkeypatch.setattr(RFECV, "_ranker", lambda self, X, y, fit_params: ranker)
    found = RFECV(LogisticRegression(), scoring=scoring)._scored_ranker(None, None, {})
    assert found is (ranker if is_known else "refits")


@pytest.mark.parametrize(
    ("estimator", "cv", "groups", "kind", "n_folds"),
    [
        (LogisticRegression(), None, None, StratifiedKFold, 5),
        (LogisticRegression(), 3, None, StratifiedKFold, 3),
        (LinearRegression(), 3, None, KFold, 3),
        (LogisticRegression(), None, True, StratifiedGroupKFold, 5),
        (LogisticRegression(), 3, True, StratifiedGroupKFold, 3),
        (LinearRegression(), None, True, GroupKFold, 5),
        (LinearRegression(), 4, True, GroupKFold, 4),
        (LinearRegression(), KFold(3), True, KFold, 3),
        (None, 2, None, StratifiedKFold, 2),
    ],
)
def test_folds_keep_groups_together_where_a_number_is_given(estimator, cv, groups, kind, n_folds):
    y = np.arange(20) % 2
    folds = RFECV(estimator, cv=cv)._folds(y, None if groups is None else np.arange(20) // 2)
    assert type(folds) is kind
    assert folds.get_n_splits() == n_folds


@pytest.mark.parametrize(
    ("estimator", "task", "scoring", "found"),
    [
        (None, "classification", None, "_accuracy_of_columns"),
        (None, "classification", "accuracy", "_accuracy_of_columns"),
        (None, "classification", "f1", None),
        (None, "classification", "r2", None),
        (None, "regression", None, "_r2_of_columns"),
        (None, "regression", "r2", "_r2_of_columns"),
        (None, "regression", "accuracy", None),
        (LinearRegression(), "classification", None, "_r2_of_columns"),
        (LogisticRegression(), "classification", None, "_accuracy_of_columns"),
    ],
)
def test_scores_of_all_sizes_at_once_are_accuracies_or_shares_of_variance(estimator, task, scoring, found):
    selector = RFECV(estimator, task=task, scoring=scoring)
    score = selector._score_of_predictions()
    assert getattr(score, "__name__", None) == found
    wanted = scoring or ("r2" if found == "_r2_of_columns" else "accuracy")
    assert selector._scorer()._score_func.__name__ in (f"{wanted}_score", f"{wanted}")


def test_shares_of_variance_by_column():
    y, predicted = noise(7, 1)[:, 0], noise(7, 3, 1)
    np.testing.assert_allclose(
        rfecv._r2_of_columns(y, predicted), [r2_score(y, column) for column in predicted.T]
    )
    flat = np.array([2.0, 2.0])
    np.testing.assert_array_equal(rfecv._r2_of_columns(flat, np.array([[2.0, 1.0], [2.0, 2.0]])), [1.0, 0.0])
    np.testing.assert_array_equal(
        rfecv._accuracy_of_columns([0, 1, 1], np.array([[0, 1], [1, 1], [0, 1]])), [2 / 3, 2 / 3]
    )


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_machine_that_eliminates_when_none_is_given(task):
    selector = RFECV(task=task)
    model = selector._working_estimator()
    assert type(model).__name__ == ("SVR" if task == "regression" else "SVC")
    assert model.kernel == "linear"
    given = LinearSVC()
    assert RFECV(given)._working_estimator() is given


def data(n=24, p=5, seed=0):
    y = np.arange(n) % 2
    return np.random.default_rng(seed).normal(size=(n, p)) + y[:, None] * np.eye(p)[1], y


def test_columns_of_the_machine_inside_are_standardised_by_the_training_part():
    X, _ = data()
    train, test = RFECV()._on_our_scale(X[:16], X[16:])
    np.testing.assert_allclose(train, (X[:16] - X[:16].mean(axis=0)) / X[:16].std(axis=0))
    np.testing.assert_allclose(test, (X[16:] - X[:16].mean(axis=0)) / X[:16].std(axis=0))
    same = RFECV(SVC(kernel="linear"))._on_our_scale(X[:16], X[16:])
    np.testing.assert_array_equal(same[0], X[:16])
    np.testing.assert_array_equal(same[1], X[16:])
