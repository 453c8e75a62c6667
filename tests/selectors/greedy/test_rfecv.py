"""RFECV: folds, scores of all sizes at once, and the estimator that eliminates."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer, r2_score
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.svm import SVC, SVR

from small_problems import noise
from zeronorm import RFECV
from zeronorm.engines.elimination._known_models import KnownRanker
from zeronorm.selectors.greedy import _rfecv as rfecv


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
    ("estimator", "task"),
    [
        (None, "classification"),
        (None, "regression"),
        (LogisticRegression(), "classification"),
        (LinearRegression(), "regression"),
    ],
)
@pytest.mark.parametrize("scoring", [None, "accuracy", "f1", "r2", "neg_mean_absolute_error"])
def test_scores_are_those_of_the_estimator_on_the_test_fold(estimator, task, scoring):
    """Without an estimator: a linear SVM, on columns standardised by the training fold."""
    X, y = data(40)
    if task == "regression":
        y = X[:, 1] + 0.5 * X[:, 3]
        scoring = None if scoring in ("accuracy", "f1") else scoring
    train, test = np.arange(28), np.arange(28, 40)
    found = RFECV(estimator, task=task, scoring=scoring, cv=[(train, test)]).fit(X, y)
    model = SVR(kernel="linear") if task == "regression" else SVC(kernel="linear")
    if estimator is None:
        X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    model = clone(estimator or model).fit(X[train], y[train])
    scorer = get_scorer(scoring or ("r2" if task == "regression" else "accuracy"))
    wanted = scorer(model, X[test], y[test])
    assert found.cv_results_["split0_test_score"][-1] == pytest.approx(wanted, abs=2e-3)


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


def data(n=24, p=5, seed=0):
    y = np.arange(n) % 2
    return np.random.default_rng(seed).normal(size=(n, p)) + y[:, None] * np.eye(p)[1], y
