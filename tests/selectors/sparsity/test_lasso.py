"""LassoSelector against the optimality conditions and against coordinate descent."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_regression
from sklearn.linear_model import Lasso, MultiTaskLasso
from sklearn.preprocessing import StandardScaler

from zeronorm import LassoSelector


def regression(seed, n=40, p=60):
    X, y = make_regression(n, p, n_informative=8, noise=20.0, random_state=seed)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("seed", range(3))
def test_visited_subsets_are_lasso_solutions(seed):
    """Every visited subset is the support of a LASSO solution computed by another algorithm."""
    X, y = regression(seed)
    path = LassoSelector(5, task="regression").fit(X, y).path_
    alpha_max = np.abs(X.T @ (y - y.mean())).max() / len(y)
    visited = {tuple(s.tolist()) for s in path.subsets}
    for alpha in alpha_max * np.geomspace(0.98, 0.1, 15):
        w = Lasso(alpha=alpha, tol=1e-12, max_iter=10**6).fit(X, y).coef_
        assert tuple(np.flatnonzero(np.abs(w) > 1e-9).tolist()) in visited


def test_path_is_not_nested_when_a_feature_leaves():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(60, 2))
    X = np.column_stack([z[:, 0] + z[:, 1] + 0.1 * rng.normal(size=60), z[:, 0], z[:, 1]])
    y = z[:, 0] + z[:, 1] + 0.01 * rng.normal(size=60)
    path = LassoSelector(2, task="regression").fit(X, y).path_
    assert path.support(1).tolist() == [0]
    assert path.support(2).tolist() == [1, 2]
    assert not path.is_nested


def test_two_classes_equal_regression_on_signs():
    X, y = regression(1)
    labels = (y > 0).astype(int)
    a = LassoSelector(5).fit(X, labels).path_
    b = LassoSelector(5, task="regression").fit(X, 2.0 * labels - 1.0).path_
    assert np.array_equal(a.order, b.order)


def test_multiclass_is_the_multitask_lasso():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = StandardScaler().fit_transform(rng.normal(size=(60, 20)) + 1.5 * (y[:, None] == np.arange(20)))
    path = LassoSelector(3, n_alphas=30).fit(X, y).path_
    Y = (y[:, None] == np.arange(3)) - 1 / 3
    largest = np.sqrt(((X.T @ Y) ** 2).sum(axis=1)).max() / 60
    visited = {tuple(s.tolist()) for s in path.subsets}
    for alpha in largest * np.geomspace(1.0, 1e-3, 30)[3:12]:
        w = MultiTaskLasso(alpha=alpha, tol=1e-8, max_iter=10**5).fit(X, Y).coef_
        assert tuple(np.flatnonzero(np.abs(w).max(axis=0) > 1e-7).tolist()) in visited


def test_own_size_is_the_largest_visited():
    X, y = regression(2, n=15, p=40)
    s = LassoSelector(task="regression").fit(X, y)
    assert s.support_.sum() == max(len(v) for v in s.path_.subsets) <= 14
