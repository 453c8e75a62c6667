"""The smallest enclosing sphere against a QP solver and in closed form."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from solvers.problems import at_most, classification
from zeronorm.solvers._geometry import solve_enclosing_sphere
from zeronorm.solvers._status import Status


def problem(seed=0, n=25, p=30):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, p))
    X[:, 0] += y
    return X, y, rng.uniform(0.4, 1.2, size=p)


@pytest.mark.parametrize("seed", range(3))
def test_sphere_matches_a_qp_solver(seed):
    X, _, _ = problem(seed, n=20, p=3)
    K = X @ X.T
    sphere = solve_enclosing_sphere(K)
    beta = cp.Variable(20, nonneg=True)
    objective = cp.Maximize(np.diag(K) @ beta - cp.sum_squares(X.T @ beta))
    expected = cp.Problem(objective, [cp.sum(beta) == 1]).solve(solver=cp.CLARABEL)
    assert sphere.radius_sq == pytest.approx(expected, rel=1e-6)
    assert sphere.gap <= 1e-6 * sphere.radius_sq
    distance = np.linalg.norm(X - sphere.beta @ X, axis=1)
    assert distance.max() ** 2 == pytest.approx(sphere.radius_sq, rel=1e-6)


def test_sphere_of_one_point_and_of_identical_points():
    assert solve_enclosing_sphere(np.array([[3.0]])).radius_sq == 0.0
    same = solve_enclosing_sphere(np.full((4, 4), 2.0))
    assert same.radius_sq == 0.0
    assert same.converged
    assert solve_enclosing_sphere(np.diag([1.0, 1.0])).radius_sq == pytest.approx(0.5)


def test_the_smallest_sphere_of_points_that_coincide_and_of_two():
    same = solve_enclosing_sphere(np.ones((3, 3)))
    assert (same.radius_sq, same.gap, same.n_iter, same.status) == (0.0, 0.0, 0, Status.CONVERGED)
    np.testing.assert_allclose(same.beta, 1 / 3)
    X = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 0.5]])
    two = solve_enclosing_sphere(X @ X.T)
    assert two.radius_sq == pytest.approx(4.0)
    np.testing.assert_allclose(two.beta, [0.5, 0.5, 0.0], atol=1e-8)
    assert two.gap <= 1e-6


def test_the_smallest_sphere():
    X, _ = classification(60, 20)
    sphere = solve_enclosing_sphere(X @ X.T)
    assert sphere.n_iter <= at_most(54)
    assert sphere.gap <= 1e-10


def test_a_solution_is_a_start_that_needs_no_step():
    X, _ = classification(200, 10, noise=2.0)
    K = X @ X.T
    sphere = solve_enclosing_sphere(K)
    assert sphere.n_iter <= at_most(194)
    assert solve_enclosing_sphere(K, warm_start=sphere).n_iter <= 2
