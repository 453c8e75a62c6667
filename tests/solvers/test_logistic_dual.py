"""Logistic regression by its kernel matrix: its optimality conditions, steps and ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from solvers.problems import at_most, classification
from zeronorm.solvers import logistic
from zeronorm.solvers.geometry import solve_enclosing_sphere
from zeronorm.solvers.logistic import solve_logistic_dual
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.joint_multiclass import solve_weston_watkins


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_the_solution_meets_its_conditions(scale):
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + 0.5 * scale * rng.normal(size=40) > 0.3 * scale, 1.0, -1.0)
    K, C = X @ X.T, rng.uniform(0.5, 2.0, 40)
    found = solve_logistic_dual(K, y, C=C, tol=1e-9)
    f = K @ found.dual_coef + found.bias
    np.testing.assert_allclose(found.dual_coef, C * y * expit(-y * f), atol=1e-8)
    assert found.dual_coef.sum() == pytest.approx(0.0, abs=1e-8)
    value = 0.5 * found.dual_coef @ K @ found.dual_coef + C @ np.logaddexp(0.0, -y * f)
    assert found.objective == pytest.approx(value)


@pytest.mark.parametrize("scale", [1e8, 1e10])
def test_a_column_beside_which_the_others_are_rounding_is_fitted(scale):
    """The one on the diagonal of Newton's system is lost there, and the digits of the objective with it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = np.where(X[:, 0] + rng.normal(size=20) > 0, 1.0, -1.0)
    X[:, 0] *= scale
    without_features = 20 * np.log(2.0)
    assert solve_logistic_dual(X @ X.T, y).objective < 0.5 * without_features


def test_a_newton_point_minimises_the_quadratic_model():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(7, 3))
    K, weight = A @ A.T, rng.uniform(0.1, 1.0, 7)
    f, pull = rng.normal(size=7), rng.normal(size=7)
    a, bias = logistic._newton_point(K, weight, f, pull)
    assert a.sum() == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(K @ a + a / weight + bias, f + pull / weight, atol=1e-10)


def test_the_dual_of_logistic_regression_ends_where_its_equation_holds():
    X, y = classification(25, 4, noise=2.0)
    K, price = X @ X.T, np.linspace(0.2, 2.0, 25)
    found = solve_logistic_dual(K, y, C=price)
    f = K @ found.dual_coef + found.bias
    np.testing.assert_allclose(found.dual_coef, price * y * expit(-y * f), atol=1e-7)
    value = 0.5 * found.dual_coef @ K @ found.dual_coef + price @ np.logaddexp(0.0, -y * f)
    assert found.objective == pytest.approx(value, rel=1e-12)
    assert found.status is Status.CONVERGED
    assert solve_logistic_dual(K, y, C=price, warm_start=found).n_iter == 1
    cut = solve_logistic_dual(K, y, C=price, max_iter=2)
    assert (cut.n_iter, cut.status) == (2, Status.ITERATION_LIMIT)
    rough = solve_logistic_dual(K, y, C=price, tol=1e-2)
    off = np.abs(rough.dual_coef - price * y * expit(-y * (K @ rough.dual_coef + rough.bias))).max()
    assert 1e-8 < off <= 1e-2 * 2.0 * 1.01


def test_a_step_that_goes_up_is_halved_and_one_that_only_goes_up_is_refused():
    K, y, price = np.eye(2), np.array([1.0, -1.0]), np.ones(2)
    start = np.zeros(2)
    value = logistic._objective(start, K @ start, 0.0, y, price)
    assert value == pytest.approx(2.0 * np.log(2.0))
    state = (start, 0.0, K @ start, value)
    step = np.array([16.0, -16.0])
    a, bias, inner, objective, moved = logistic._line_search(K, y, price, state, step, 0.0)
    assert moved
    assert a.tolist() == [0.5, -0.5]  # 16, 8, 4, 2 and 1 cost more than nothing
    assert (bias, inner.tolist()) == (0.0, a.tolist())
    assert objective == pytest.approx(logistic._objective(a, a, 0.0, y, price))
    a, _, _, objective, moved = logistic._line_search(K, y, price, state, -step, 0.0)
    assert (moved, a.tolist(), objective) == (False, [0.0, 0.0], value)


@pytest.mark.parametrize(("C", "taken"), [(0.1, 6), (1.0, 7), (10.0, 9)])
def test_the_logistic_dual(C, taken):
    X, y = classification()
    assert solve_logistic_dual(X @ X.T, y, C=C).n_iter <= taken + 2


def test_others_from_their_solution():
    X, y = classification(200, 10, noise=2.0)
    K = X @ X.T
    logistic = solve_logistic_dual(K, y, C=1.0)
    assert logistic.n_iter <= 8
    assert solve_logistic_dual(K, y, C=1.0, warm_start=logistic).n_iter <= 1
    sphere = solve_enclosing_sphere(K)
    assert sphere.n_iter <= at_most(194)
    assert solve_enclosing_sphere(K, warm_start=sphere).n_iter <= 2
    codes, K = np.arange(100) % 4, K[:100, :100]
    joint = solve_weston_watkins(K, codes, 4, C=1.0)
    assert joint.n_iter <= at_most(10)
    assert solve_weston_watkins(K, codes, 4, C=1.0, warm_start=joint).n_iter == 1
