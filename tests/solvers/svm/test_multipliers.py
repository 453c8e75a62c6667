"""The method of multipliers for tall sparse data against the interior-point method and its definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from solvers.svm.tall_problems import tall_sparse
from zeronorm.design import as_design
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear._solve import solve_piecewise_linear
from zeronorm.solvers.svm import _multipliers as multipliers_method
from zeronorm.solvers.svm import _tall as tall
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._dual import solve_svr_dual
from zeronorm.solvers.svm._multipliers import _Multipliers, solve_by_multipliers


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 30.0])
def test_multipliers_find_the_model_of_the_interior_point_method(C):
    design, decision = tall_sparse()
    cost = C * np.random.default_rng(1).uniform(0.0, 2.0, decision.size)
    cost[::7] = 0.0  # samples of zero weight
    problem = BoxDual.classification(np.where(decision > 0.1, 1.0, -1.0), cost, False)
    ours, oracle = solve_by_multipliers(design, problem), tall.solve_linear_loss(design, problem, tol=1e-10)
    assert ours.status is Status.CONVERGED
    assert ours.gap <= 2e-10 * ours.objective  # tol = 1e-6 is only an upper bound
    np.testing.assert_allclose(ours.weights, oracle.weights, atol=1e-5 * np.abs(oracle.weights).max())
    assert np.all(ours.alpha[::7] == 0.0)


def test_multipliers_go_beyond_the_tolerance():
    """One more step costs little near the end: the gap is closed to 1e-4 times the tolerance."""
    design, decision = tall_sparse(2)
    problem = BoxDual.classification(np.where(decision > 0.1, 1.0, -1.0), np.full(decision.size, 0.5), False)
    for tol in (1e-2, 1e-3, 1e-4):
        ours = solve_by_multipliers(design, problem, tol=tol)
        assert ours.gap <= 1.5e-4 * tol * ours.objective


def test_multipliers_find_the_regression_of_many_sparse_features():
    design, target = tall_sparse(2, n=150, p=1500)
    problem = BoxDual.regression(target, np.full(target.size, 0.2), 0.1, False)
    ours = solve_piecewise_linear(design, problem, None, 1e-6)
    assert ours.n_iter == solve_by_multipliers(design, problem).n_iter
    oracle = solve_svr_dual(design.gram(), target, C=0.2, epsilon=0.1, tol=1e-10)
    weights = design.transpose_dot(oracle.dual_coef)
    np.testing.assert_allclose(ours.weights, weights, atol=1e-5 * np.abs(weights).max())
    assert ours.bias == pytest.approx(oracle.bias, abs=1e-5)


@pytest.fixture(scope="module")
def many_samples():
    """A problem of 50,000 sparse samples, and its solution by multipliers."""
    design, decision = tall_sparse(7, n=50_000)
    problem = BoxDual.classification(np.where(decision > 0.0, 1.0, -1.0), np.full(decision.size, 0.01), False)
    return design, problem, solve_by_multipliers(design, problem)


def test_a_start_is_used_by_multipliers_where_there_are_many_samples(many_samples):
    design, problem, first = many_samples
    start = (first.weights, first.bias, first.alpha)
    again = solve_piecewise_linear(design, problem, start, 1e-6)
    assert again.n_iter <= 2 < solve_piecewise_linear(design, problem, None, 1e-6).n_iter
    np.testing.assert_allclose(again.weights, first.weights, atol=1e-6)


def test_multipliers_start_from_a_similar_problem():
    design, decision = tall_sparse(3)
    y = np.where(decision > 0.0, 1.0, -1.0)
    first = solve_by_multipliers(design, BoxDual.classification(y, np.full(y.size, 0.10), False))
    problem = BoxDual.classification(y, np.full(y.size, 0.11), False)
    cold = solve_by_multipliers(design, problem)
    warm = solve_by_multipliers(design, problem, (first.weights, first.bias, first.alpha))
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-5)
    assert warm.n_iter <= cold.n_iter


def test_what_multipliers_do_not_solve_goes_to_the_interior_point_method(many_samples, monkeypatch):
    design, problem, first = many_samples
    monkeypatch.setattr(multipliers_method, "MOST_ROUNDS", 1)
    assert not solve_by_multipliers(design, problem).status.converged
    start = (0.0 * first.weights, 0.0, 0.5 * problem.upper)
    found = solve_piecewise_linear(design, problem, start, 1e-6)
    assert found.status.converged
    np.testing.assert_allclose(found.weights, first.weights, atol=1e-5)


def multipliers(kind="classes"):
    rng = np.random.default_rng(1)
    X, cost = rng.normal(size=(12, 3)), rng.uniform(0.5, 2.0, 12)
    if kind == "classes":
        problem = BoxDual.classification(np.where(np.arange(12) % 2, 1.0, -1.0), cost, False)
    else:
        problem = BoxDual.regression(rng.normal(size=12), cost, 0.2, False)
    method = _Multipliers(as_design(X), problem)
    method.sigma = 0.7
    return X, problem, method


def envelope(X, problem, method, weights, bias):
    """The smooth envelope of the loss u max(0, r): a maximum over slopes in [0, u] near the multiplier."""
    r = problem.residual(X @ weights + bias)
    slope = np.clip(method.alpha + method.sigma * r, 0.0, problem.upper)
    smooth = slope * r - (slope - method.alpha) ** 2 / (2 * method.sigma)
    return 0.5 * weights @ weights + smooth.sum()


@pytest.mark.parametrize("kind", ["classes", "target"])
def test_multipliers_begin_at_half_of_their_bound(kind):
    X, problem, method = multipliers(kind)
    half = 0.5 * problem.upper
    np.testing.assert_allclose(method.alpha, problem.feasible(half))
    assert _Multipliers(as_design(X), problem).sigma == pytest.approx(problem.upper.mean())
    assert method.primal == pytest.approx(problem.loss(np.zeros(12)))
    w = np.array([0.2, -0.4, 0.1])
    method.begin(w, 0.3, 0.2 * problem.upper)
    np.testing.assert_allclose(method.decision, X @ w + 0.3)
    assert method.primal == pytest.approx(0.5 * w @ w + problem.loss(X @ w + 0.3))


@pytest.mark.parametrize("kind", ["classes", "target"])
def test_the_envelope_is_minimised(kind):
    X, problem, method = multipliers(kind)
    n_steps = method.minimize(1e-12)
    assert 0 < n_steps < 20
    np.testing.assert_allclose(method.decision, X @ method.weights + method.bias, atol=1e-12)
    h = 1e-6
    for k in range(4):
        d = np.zeros(4)
        d[k] = h
        up = envelope(X, problem, method, method.weights + d[:3], method.bias + d[3])
        down = envelope(X, problem, method, method.weights - d[:3], method.bias - d[3])
        assert (up - down) / (2 * h) == pytest.approx(0.0, abs=1e-5)
    assert method.minimize(1e-12) == 0
    before, sigma = method.alpha.copy(), method.sigma
    gap = method.renew()
    r = problem.residual(method.decision)
    np.testing.assert_allclose(method.alpha, np.clip(before + sigma * r, 0.0, problem.upper))
    assert method.sigma == 3.0 * sigma
    v = problem.signed_sum(method.alpha)
    dual = -problem.linear @ method.alpha - 0.5 * np.sum((X.T @ v) ** 2)
    primal = 0.5 * method.weights @ method.weights + problem.loss(method.decision)
    assert method.primal == pytest.approx(primal)
    assert gap == pytest.approx(abs(primal - dual) + abs(v.sum()) * (1 + abs(method.bias)), rel=1e-6)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kind", ["classes", "target"])
def test_a_step_on_the_envelope_goes_almost_to_its_end(kind, scale):
    X, problem, method = multipliers(kind)
    rng = np.random.default_rng(5)
    method.begin(rng.normal(size=3), 0.2, method.alpha)
    step = scale * rng.normal(size=4)

    def value(t):
        return envelope(X, problem, method, method.weights + t * step[:3], method.bias + t * step[3])

    if value(1e-6 / scale) > value(0.0):
        step = -step
    slope = method.alpha + method.sigma * problem.residual(method.decision)
    length = method._length(slope, step, X @ step[:3] + step[3])
    h = 1e-6 / scale
    at_start, at_end = ((value(t + h) - value(t - h)) / (2 * h) for t in (0.0, length))
    assert abs(at_end) <= 0.0101 * abs(at_start)
    exact = minimize_scalar(value, bounds=(0.0, 100.0 / scale), method="bounded", options={"xatol": 1e-12})
    assert value(0.0) - value(length) >= 0.999 * (value(0.0) - exact.fun)


def test_the_steps_of_all_minima_are_counted(monkeypatch):
    X, problem, _ = multipliers()
    gaps = iter([1.0, 1e-3, 0.0])
    monkeypatch.setattr(_Multipliers, "minimize", lambda self, enough: 3)
    monkeypatch.setattr(_Multipliers, "renew", lambda self: next(gaps))
    assert solve_by_multipliers(as_design(X), problem).n_iter == 9
