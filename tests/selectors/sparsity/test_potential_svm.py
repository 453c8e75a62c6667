"""PotentialSVM against a quadratic program and, without a bound, against the LASSO."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.preprocessing import StandardScaler

import zeronorm
from oracles.qp import PRECISE
from zeronorm import PotentialSVM
from zeronorm.selectors.sparsity import _potential_svm as potential_svm
from zeronorm.solvers._lasso import BoxLassoSolution


def regression(seed, n=50, p=80):
    rng = np.random.default_rng(seed)
    X = StandardScaler().fit_transform(rng.normal(size=(n, p)))
    return X, X[:, 0] * 3 - X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n) + 7.0


def quadratic_program(X, y, epsilon, C):
    """The dual on columns of unit length, by a convex solver."""
    X = X / np.sqrt(len(X))
    a = cp.Variable(X.shape[1])
    value = 0.5 * cp.sum_squares(X @ a) - y @ X @ a + epsilon * cp.norm1(a)
    problem = cp.Problem(cp.Minimize(value), [cp.abs(a) <= C])
    problem.solve(solver=cp.CLARABEL, **PRECISE)
    return a.value, float(problem.value)


def dual_value(X, y, epsilon, a):
    image = X @ a / np.sqrt(len(X))
    return 0.5 * image @ image - y @ image + epsilon * np.abs(a).sum()


@pytest.mark.parametrize("C", [0.5, 3.0, 100.0])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_matches_a_quadratic_program(epsilon, C):
    X, y = regression(0)
    selector = PotentialSVM(epsilon=epsilon, C=C, task="regression", n_steps=5).fit(X, y)
    a, value = quadratic_program(X, y, epsilon, C)
    assert selector.converged_
    assert np.abs(selector.dual_coef_).max() <= C + 1e-12
    assert dual_value(X, y, epsilon, selector.dual_coef_) == pytest.approx(value, rel=1e-6)
    assert np.array_equal(np.flatnonzero(selector.support_), np.flatnonzero(np.abs(a) > 1e-4))


def test_without_a_bound_it_is_the_lasso():
    X, y = regression(1)
    selector = PotentialSVM(epsilon=1.5, task="regression").fit(X, y)
    lasso = Lasso(alpha=1.5 / len(y) * np.sqrt(len(y)), tol=1e-12, max_iter=10**6).fit(X, y)
    assert np.allclose(selector.dual_coef_ / np.sqrt(len(y)), lasso.coef_, atol=1e-6)


def test_correlations_of_the_error_are_bounded():
    X, y = regression(2)
    selector = PotentialSVM(epsilon=1.0, C=2.0, task="regression").fit(X, y)
    unit, a = X / np.sqrt(len(y)), selector.dual_coef_
    gradient = unit.T @ (y - y.mean() - unit @ a)
    inside = np.abs(a) < 2.0
    assert np.all(np.abs(gradient[inside]) <= 1.0 + 1e-6)
    assert np.any(~inside)
    assert np.all(np.abs(gradient[~inside]) >= 1.0 - 1e-6)


def test_a_smaller_bound_gives_weights_to_more_features():
    X, y = regression(3)
    tight = PotentialSVM(epsilon=1.0, C=1.0, task="regression").fit(X, y)
    loose = PotentialSVM(epsilon=1.0, task="regression").fit(X, y)
    assert tight.support_.sum() > loose.support_.sum()


def test_two_classes_are_coded_plus_and_minus_one():
    X, y = regression(4)
    labels = (y > np.median(y)).astype(int)
    a = PotentialSVM(epsilon=0.8).fit(X, labels).dual_coef_
    b = PotentialSVM(epsilon=0.8, task="regression").fit(X, 2.0 * labels - 1.0).dual_coef_
    assert np.array_equal(a, b)


def test_no_feature_at_a_large_epsilon():
    X, y = regression(0)
    selector = PotentialSVM(epsilon=1e4, task="regression").fit(X, y)
    assert not selector.dual_coef_.any()
    assert selector.support_.tolist() == (np.arange(80) == 0).tolist()  # the most correlated


def test_two_samples():
    assert PotentialSVM(n_steps=3).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1]).support_.tolist() == [True, False]


@pytest.mark.parametrize(
    ("params", "name"), [({"C": 0.0}, "C"), ({"epsilon": 0.0}, "epsilon"), ({"n_steps": 0}, "n_steps")]
)
def test_bad_parameters(params, name):
    X, y = regression(0)
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        PotentialSVM(task="regression", **params).fit(X, y)


@pytest.mark.parametrize("seed", range(6))
def test_the_first_of_several_copies_has_the_largest_possible_weight(seed):
    """The objective does not depend on how copies share a weight, and rounding must not decide it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 8))
    X[:, 5], X[:, 7] = 1.0 - X[:, 2], -3.0 - X[:, 2]
    y = 2.0 * X[:, 2] + X[:, 0] + 0.3 * rng.normal(size=40)
    for C in (2.0, 20.0):
        found = PotentialSVM(C=C, n_steps=8, task="regression").fit(X, y)
        first, second, third = np.abs(found.dual_coef_[[2, 5, 7]])
        assert second == 0.0 or first == pytest.approx(C)
        assert third == 0.0 or second == pytest.approx(C)
        position = found.path_.position()
        assert position[2] < position[5] < position[7]


def test_epsilons_descend_from_the_entry_of_the_first_feature():
    grid = zeronorm.PotentialSVM(n_steps=2)._grid
    np.testing.assert_allclose(grid(5.0), [0.5, 0.05])
    given = zeronorm.PotentialSVM(epsilon=0.2, n_steps=2)._grid
    np.testing.assert_allclose(given(5.0), [1.0, 0.2])
    np.testing.assert_allclose(given(0.1), [0.2, 0.2])


def test_copies_fill_up_in_order():
    solution = BoxLassoSolution(
        np.array([0, 1, 2, 4]), np.array([1.0, -0.7, 2.0, -0.5]), None, np.array([1.0, -1, 1, 1, -1]), True
    )
    same = potential_svm._filled_in_order(solution, [], 2.0)
    assert (same.columns.tolist(), same.weights.tolist()) == ([0, 1, 2, 4], [1.0, -0.7, 2.0, -0.5])
    found = potential_svm._filled_in_order(solution, [np.array([1, 3, 4]), np.array([0, 2])], 1.0)
    assert found.columns.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(found.weights, [1.0, -1.0, 1.0, 0.2])
    exact = potential_svm._filled_in_order(
        BoxLassoSolution(np.array([1]), np.array([1.0]), None, np.ones(3), True), [np.arange(3)], 1.0
    )
    assert (exact.columns.tolist(), exact.weights.tolist()) == ([0], [1.0])
