"""Mutual information: scikit-learn's estimate, by blocks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from zeronorm import MutualInformation
from zeronorm.selectors.filters import mutual_information as module


def problem(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 9))
    X[:, 7] = rng.integers(0, 3, 80)
    y = (np.abs(X[:, 2]) > 1.0) | (X[:, 7] == 1)
    return X, y.astype(int)


def test_agrees_with_scikit_learn():
    X, y = problem()
    s = MutualInformation(discrete_features=[7], random_state=0).fit(X, y)
    expected = mutual_info_classif(X, y, discrete_features=[7], random_state=1)
    # Only the noise of relative size 1e-10 that separates equal values differs.
    np.testing.assert_allclose(s.scores_, expected, atol=1e-6)
    assert set(s.path_.support(2)) == {2, 7}


def test_regression_agrees_with_scikit_learn():
    X, _ = problem()
    y = X[:, 4] ** 2
    s = MutualInformation(1, task="regression", n_neighbors=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(
        s.scores_, mutual_info_regression(X, y, n_neighbors=5, random_state=1), atol=1e-6
    )
    assert s.support_[4]


def test_blocks_do_not_change_the_scores(monkeypatch):
    X, y = problem()
    selector = MutualInformation(discrete_features=[7], random_state=0)
    whole = selector.fit(X, y).scores_
    monkeypatch.setattr(module, "COLUMNS_AT_A_TIME", 2)
    np.testing.assert_allclose(selector.fit(X, y).scores_, whole, atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "'n_neighbors'"),
        ({"n_neighbors": 80}, "between 1 and the number of samples minus one, 79"),
        ({"n_neighbors": 2.5}, "'n_neighbors'"),
        ({"discrete_features": "some"}, "'discrete_features' parameter must be None"),
        ({"discrete_features": [9]}, "column 9, but X has 9 columns"),
        ({"discrete_features": np.ones(4, dtype=bool)}, "one entry per column"),
        ({"discrete_features": ["dose"]}, "X has no column names"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        MutualInformation(**parameters).fit(X, y)


def test_classes_of_one_sample_only():
    X, _ = problem()
    with pytest.raises(ValueError, match="class with two samples"):
        MutualInformation().fit(X[:20], np.arange(20))
