"""Logistic regression on a kernel matrix: optimality conditions, Newton steps and convergence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from solvers.problems import classification
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import LOGISTIC
from zeronorm.solvers.linear._smooth import solve_on_gram


def on_gram(K, y, *, C=1.0, start=None, **settings):
    """Logistic regression on a kernel matrix, from another solution."""
    near = None if start is None else (start.dual_coef, start.bias)
    return solve_on_gram(K, LOGISTIC, y, np.broadcast_to(np.asarray(C, float), y.shape), near, **settings)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_the_solution_meets_its_conditions(scale):
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + 0.5 * scale * rng.normal(size=40) > 0.3 * scale, 1.0, -1.0)
    K, C = X @ X.T, rng.uniform(0.5, 2.0, 40)
    found = on_gram(K, y, C=C, tol=1e-9)
    f = K @ found.dual_coef + found.bias
    np.testing.assert_allclose(found.dual_coef, C * y * expit(-y * f), atol=1e-8)
    assert found.dual_coef.sum() == pytest.approx(0.0, abs=1e-8)
    value = 0.5 * found.dual_coef @ K @ found.dual_coef + C @ np.logaddexp(0.0, -y * f)
    assert found.objective == pytest.approx(value)


@pytest.mark.parametrize("scale", [1e8, 1e10])
def test_a_column_beside_which_the_others_are_rounding_is_fitted(scale):
    """The 1 on the diagonal of Newton's system is lost to rounding, and so are digits of the objective."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = np.where(X[:, 0] + rng.normal(size=20) > 0, 1.0, -1.0)
    X[:, 0] *= scale
    without_features = 20 * np.log(2.0)
    assert on_gram(X @ X.T, y).objective < 0.5 * without_features


def test_the_dual_of_logistic_regression_ends_where_its_equation_holds():
    X, y = classification(25, 4, noise=2.0)
    K, cost = X @ X.T, np.linspace(0.2, 2.0, 25)
    found = on_gram(K, y, C=cost)
    f = K @ found.dual_coef + found.bias
    np.testing.assert_allclose(found.dual_coef, cost * y * expit(-y * f), atol=1e-7)
    value = 0.5 * found.dual_coef @ K @ found.dual_coef + cost @ np.logaddexp(0.0, -y * f)
    assert found.objective == pytest.approx(value, rel=1e-12)
    assert found.status is Status.CONVERGED
    assert on_gram(K, y, C=cost, start=found).n_iter == 1
    cut = on_gram(K, y, C=cost, max_iter=2)
    assert (cut.n_iter, cut.status) == (2, Status.ITERATION_LIMIT)
    rough = on_gram(K, y, C=cost, tol=1e-2)
    off = np.abs(rough.dual_coef - cost * y * expit(-y * (K @ rough.dual_coef + rough.bias))).max()
    assert 1e-8 < off <= 1e-2 * 2.0 * 1.01


def newton_point(K, y, C, a, bias):
    """Minimiser of the quadratic model, (K + 1/weight) a + b = f + slope/weight with sum a = 0, by a dense system."""
    f, n = K @ a + bias, len(y)
    right = expit(y * f)
    slope, weight = C * y * (1.0 - right), C * right * (1.0 - right)
    system = np.block([[K + np.diag(1.0 / weight), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.append(f + slope / weight, 0.0))
    return solved[:-1], solved[-1]


@pytest.mark.parametrize("scale", [0.05, 0.8])
def test_an_iteration_goes_to_the_newton_point_or_halves_the_step(scale):
    """The step is the first of 1, 1/2, 1/4 ... that does not increase the objective."""
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(20):
        X = rng.normal(size=(12, 3))
        K, y, C = X @ X.T, np.where(np.arange(12) % 2, 1.0, -1.0), rng.uniform(0.5, 2.0, 12)
        a = scale * rng.normal(size=12)
        a, bias = a - a.mean(), scale * rng.normal()

        def value(a, bias, K=K, y=y, C=C):
            return 0.5 * a @ K @ a + C @ np.logaddexp(0.0, -y * (K @ a + bias))

        found = solve_on_gram(K, LOGISTIC, y, C, (a, bias), max_iter=1)
        aim, aim_bias = newton_point(K, y, C, a, bias)
        k = 0
        while value(a + 0.5**k * (aim - a), bias + 0.5**k * (aim_bias - bias)) > value(a, bias):
            k += 1
        seen.add(k)
        np.testing.assert_allclose(found.dual_coef, a + 0.5**k * (aim - a), atol=1e-6)
        assert found.bias == pytest.approx(bias + 0.5**k * (aim_bias - bias), abs=1e-6)
        assert found.objective == pytest.approx(value(found.dual_coef, found.bias))
    assert min(seen) == 0
    assert (max(seen) > 0) == (scale > 0.1)


@pytest.mark.parametrize(("C", "taken"), [(0.1, 6), (1.0, 7), (10.0, 9)])
def test_the_logistic_dual(C, taken):
    X, y = classification()
    assert on_gram(X @ X.T, y, C=C).n_iter <= taken + 2


def test_a_solution_is_a_start_that_needs_no_step():
    X, y = classification(200, 10, noise=2.0)
    K = X @ X.T
    found = on_gram(K, y, C=1.0)
    assert found.n_iter <= 8
    assert on_gram(K, y, C=1.0, start=found).n_iter <= 1
