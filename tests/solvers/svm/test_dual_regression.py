"""Support vector regression against LIBSVM and a general QP solver."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVR

from oracles.qp import primal_svr
from solvers.problems import at_most, regression
from zeronorm.solvers.svm._dual import solve_svr_dual

LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
@pytest.mark.parametrize("shape", [(40, 60), (60, 5)])
def test_matches_a_qp_solver(shape, C, loss):
    X, y = regression(*shape)
    solution = solve_svr_dual(X @ X.T, y, C=C, epsilon=0.2, loss=loss)
    w, _, objective = primal_svr(X, y, C, 0.2, loss)
    assert solution.converged
    assert solution.objective == pytest.approx(objective, rel=1e-7)
    np.testing.assert_allclose(X.T @ solution.dual_coef, w, atol=2e-5 * np.abs(w).max())
    assert 0.0 <= solution.gap < 1e-4 * objective


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_matches_libsvm(epsilon):
    X, y = regression(300, 20)
    X, y = np.round(4.0 * X) / 4.0, np.round(4.0 * y) / 4.0  # exact in LIBSVM's single precision
    K = X @ X.T
    reference = SVR(kernel="precomputed", C=0.5, epsilon=epsilon, tol=1e-8).fit(K, y)
    solution = solve_svr_dual(K, y, C=0.5, epsilon=epsilon, tol=1e-8)
    np.testing.assert_allclose(K @ solution.dual_coef + solution.bias, reference.predict(K), atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_cost_for_each_sample(loss):
    X, y = regression(50, 10)
    C = np.random.default_rng(1).uniform(0.0, 2.0, y.size)
    C[:3] = 0.0
    solution = solve_svr_dual(X @ X.T, y, C=C, epsilon=0.1, loss=loss)
    w, _, objective = primal_svr(X, y, C, 0.1, loss)
    np.testing.assert_allclose(X.T @ solution.dual_coef, w, atol=1e-5)
    assert solution.objective == pytest.approx(objective, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_gap_is_primal_minus_dual(loss, epsilon):
    X, y = regression(80, 10)
    solution = solve_svr_dual(X @ X.T, y, epsilon=epsilon, loss=loss, max_iter=30)
    w = X.T @ solution.dual_coef
    excess = np.maximum(np.abs(y - X @ w - solution.bias) - epsilon, 0.0)
    primal = 0.5 * w @ w + (excess.sum() if loss == "epsilon_insensitive" else 0.5 * np.sum(excess**2))
    assert solution.gap > 0.0
    assert solution.gap == pytest.approx(primal - solution.objective, rel=1e-6, abs=1e-9)


def test_warm_start_after_a_feature_left():
    X, y = regression(60, 100)
    K = X @ X.T
    before = solve_svr_dual(K, y, tol=1e-9)
    K = K - np.outer(X[:, 7], X[:, 7])
    warm = solve_svr_dual(K, y, warm_start=before, tol=1e-9)
    cold = solve_svr_dual(K, y, tol=1e-9)
    np.testing.assert_allclose(K @ warm.dual_coef, K @ cold.dual_coef, atol=1e-8)
    assert warm.n_iter < cold.n_iter


def test_a_sample_never_has_errors_above_and_below_epsilon():
    X, y = regression(80, 10)
    above, below = solve_svr_dual(X @ X.T, y, epsilon=0.0, max_iter=40).alpha.reshape(2, 80)
    assert not np.any((above > 0.0) & (below > 0.0))


def test_an_infinite_cost_is_refused():
    X, y = regression(10, 5)
    with pytest.raises(ValueError, match="must be finite"):
        solve_svr_dual(X @ X.T, y, C=np.inf)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_constant_in_the_targets_changes_only_the_bias(loss):
    """With 1e9 added to all targets, rounding errors kept the solver running to its iteration limit."""
    X, y = regression(80, 10)
    y = np.round(y * 64.0) / 64.0  # exact with the offset too
    plain, moved = (solve_svr_dual(X @ X.T, y + offset, C=5.0, loss=loss) for offset in (0.0, 2.0**30))
    np.testing.assert_array_equal(moved.alpha, plain.alpha)
    assert moved.n_iter == plain.n_iter
    assert moved.bias == pytest.approx(2.0**30 + plain.bias, rel=1e-15)
    assert moved.gap == pytest.approx(plain.gap, abs=1e-5)


@pytest.mark.parametrize(
    ("loss", "C", "taken"),
    [
        ("epsilon_insensitive", 0.1, 55),
        ("epsilon_insensitive", 1.0, 80),
        ("squared_epsilon_insensitive", 1.0, 52),
    ],
)
def test_the_dual_of_a_regression(loss, C, taken):
    X, y = regression()
    model = solve_svr_dual(X @ X.T, y, C=C, loss=loss)
    assert model.n_iter <= at_most(taken)
    assert model.gap <= 1e-9 * model.objective


@pytest.mark.parametrize(
    ("loss", "taken", "warm"), [("epsilon_insensitive", 398, 62), ("squared_epsilon_insensitive", 394, 0)]
)
def test_a_regression_from_its_solution(loss, taken, warm):
    X, y = regression(200, 10)
    settings = {"C": 1.0, "epsilon": 0.2, "loss": loss}
    first = solve_svr_dual(X @ X.T, y, **settings)
    assert first.n_iter <= at_most(taken)
    assert first.gap <= 1e-12 * first.objective
    assert solve_svr_dual(X @ X.T, y, **settings, warm_start=first).n_iter <= at_most(warm)
