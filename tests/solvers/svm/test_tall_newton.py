"""Newton's method for squared losses of tall data: line searches, steps and certificates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from solvers.svm.tall_problems import N, P, problem_of
from zeronorm.design import as_design
from zeronorm.solvers._status import Status
from zeronorm.solvers.svm import _tall as tall
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._dual import solve_svm_dual


@pytest.mark.parametrize("kind", ["squared hinge", "squared regression"])
def test_the_line_search_finds_the_minimum(kind):
    X, dual = problem_of(kind)
    rng = np.random.default_rng(3)
    cost = (1.0 / dual.ridge)[dual.sample]
    for scale in (1e-2, 1.0, 30.0):
        w, step = rng.normal(size=P), scale * rng.normal(size=P)
        decision, change = X @ w + 0.2, X @ step + 0.5 * scale

        def value(t, w=w, step=step, decision=decision, change=change):
            excess = np.maximum(dual.residual(decision + t * change), 0.0)
            return 0.5 * np.sum((w + t * step) ** 2) + 0.5 * cost @ excess**2

        if (value(1e-7) - value(0.0)) > 0.0:
            step, change = -step, -change
            value.__defaults__ = (w, step, decision, change)
        exact = minimize_scalar(value, bounds=(0.0, 1e3 / scale), method="bounded", options={"xatol": 1e-10})
        found = tall._exact_line_search(dual, cost, w, step, decision, change)
        assert found == pytest.approx(exact.x, rel=1e-4)
        assert value(found) <= exact.fun * (1 + 1e-14)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_newton_step_by_conjugate_gradients_is_that_of_the_factor(sparse):
    X, _ = problem_of("hinge")
    rng = np.random.default_rng(4)
    design = as_design(csr_array(X) if sparse else X)
    curvature, gradient = rng.uniform(0.0, 2.0, N), rng.normal(size=P + 1)
    curvature[::3] = 0.0
    hessian = tall.bordered(design, curvature)
    Z = np.column_stack([X, np.ones(N)])
    np.testing.assert_allclose(hessian, (Z.T * curvature) @ Z + np.diag([1.0] * P + [0.0]), atol=1e-12)
    exact = np.linalg.solve(hessian, -gradient)
    np.testing.assert_allclose(tall.newton_step(design, curvature, gradient, tol=1e-12), exact, rtol=1e-8)
    np.testing.assert_allclose(tall.hessian_step(design, curvature, gradient), exact, rtol=1e-10)
    nothing = np.zeros(N)
    assert tall.bordered(design, nothing)[P, P] == 1.0
    np.testing.assert_array_equal(
        tall.newton_step(design, nothing, gradient), [*(-gradient[:-1]).tolist(), 0.0]
    )


def test_a_factor_of_what_is_nearly_singular():
    rng = np.random.default_rng(5)
    A = rng.normal(size=(4, 4))
    H, right = A @ A.T + np.eye(4), rng.normal(size=4)
    found = tall._solve(tall._factor(H.copy()), right)
    np.testing.assert_allclose(found, np.linalg.solve(H, right))
    np.testing.assert_array_equal(found, cho_solve(cho_factor(H), right))
    flat = np.diag([1.0, -1e-14])  # rounding below zero
    factor = tall._factor(flat)
    assert np.all(np.diagonal(factor) > 0.0)
    with pytest.raises(LinAlgError, match="positive definite"):
        tall._factor(np.diag([1.0, -1.0]))
    with pytest.raises(LinAlgError, match="finite"):
        tall._factor(np.diag([1.0, np.inf]))


@pytest.mark.parametrize("kind", ["hinge", "squared hinge", "regression", "squared regression"])
def test_a_certificate_holds_both_objectives(kind):
    X, dual = problem_of(kind)
    rng = np.random.default_rng(6)
    w, alpha = rng.normal(size=P), rng.uniform(0.0, 1.0, dual.sign.size)
    found = tall.certified(as_design(X), dual, w, 0.2, alpha, 5, Status.CONVERGED)
    assert (found.n_iter, found.bias, found.status) == (5, 0.2, Status.CONVERGED)
    v = found.dual_coef
    assert v.sum() == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(v, dual.signed_sum(found.alpha))
    assert np.all((found.alpha >= 0.0) & (found.alpha <= dual.upper))
    assert found.primal_objective == pytest.approx(0.5 * w @ w + dual.loss(X @ w + 0.2))
    value = -dual.linear @ found.alpha - 0.5 * np.sum((X.T @ v) ** 2)
    if kind.startswith("squared"):
        value -= 0.5 * dual.ridge[dual.sample] @ found.alpha**2
    assert found.objective == pytest.approx(value)


def test_a_certificate_enlarges_what_breaks_hard_constraints_by_a_little():
    y, X = np.array([1.0, -1.0, 1.0]), np.array([[2.0], [-1.0], [0.1]])
    dual = BoxDual.classification(y, np.array([np.inf, np.inf, 3.0]), False)
    for w, factor in ((0.5, 2.0), (2.0, 1.0), (-1.0, 1.0)):
        found = tall.certified(as_design(X), dual, np.array([w]), 0.0, np.zeros(3), 1, Status.CONVERGED)
        assert found.weights[0] == pytest.approx(factor * w)
        soft = 3.0 * max(0.0, 1.0 - 0.1 * factor * w)
        wanted = 0.5 * (factor * w) ** 2 + soft if w > 0 else np.inf
        assert found.primal_objective == pytest.approx(wanted)
    shifted = tall.certified(as_design(X), dual, np.array([0.5]), 0.1, np.zeros(3), 1, Status.CONVERGED)
    assert (shifted.weights[0], shifted.bias) == pytest.approx((0.5 / 0.4, 0.1 / 0.4))


@pytest.mark.parametrize(
    ("length", "n_iter", "status"), [(0.0, 1, Status.CONVERGED), (1.0, 3, Status.ITERATION_LIMIT)]
)
def test_a_step_without_length_ends_the_search(length, n_iter, status, monkeypatch):
    """A step of length zero ends the search; a full step that changes which residuals are positive does not."""
    X, dual = problem_of("squared hinge")
    monkeypatch.setattr(tall, "_exact_line_search", lambda *_: length)
    monkeypatch.setattr(np, "array_equal", lambda *_: False)  # no step is exact
    found = tall.solve_squared_loss(as_design(X), dual, tol=1e-300, max_iter=3)
    assert (found.n_iter, found.status) == (n_iter, status)


def test_a_start_at_the_solution_needs_one_exact_step(monkeypatch):
    X, dual = problem_of("squared hinge")
    found = tall.solve_squared_loss(as_design(X), dual)
    assert 0.0 < (dual.residual(X @ found.weights + found.bias) > 0.0).mean() < 1.0

    def refuse(*_):
        raise AssertionError("a line search along a step that is known to be exact")

    monkeypatch.setattr(tall, "_exact_line_search", refuse)
    again = tall.solve_squared_loss(as_design(X), dual, (found.weights, found.bias))
    assert (again.n_iter, again.status) == (1, Status.CONVERGED)
    np.testing.assert_allclose(again.weights, found.weights, atol=1e-10)


@pytest.mark.parametrize(
    ("p", "make", "by_products"),
    [(1000, csr_array, True), (999, csr_array, False), (1000, np.asarray, False)],
)
def test_many_sparse_features_need_no_factor(p, make, by_products, monkeypatch):
    """The model is the same as for dense data."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, p)) * (rng.random((400, p)) < 0.02)
    y = np.where(X[:, :20].sum(axis=1) + 0.3 * rng.normal(size=400) > 0.0, 1.0, -1.0)
    steps, own = [], tall.newton_step
    monkeypatch.setattr(tall, "newton_step", lambda *a, **settings: steps.append(1) or own(*a, **settings))
    found = tall.solve_squared_loss(as_design(make(X)), BoxDual.classification(y, np.full(400, 0.5), True))
    assert found.status is Status.CONVERGED
    assert bool(steps) == by_products
    exact = X.T @ solve_svm_dual(X @ X.T, y, C=0.5, loss="squared_hinge", tol=1e-10).dual_coef
    np.testing.assert_allclose(found.weights, exact, atol=1e-6)


@pytest.mark.parametrize("seed", [1, 29, 43, 61, 134])
def test_the_line_search_ends_at_the_lowest_point_of_a_line(seed):
    """In these problems Newton's steps leave the interval that holds the minimum."""
    rng = np.random.default_rng(seed)
    y, C = rng.choice([-1.0, 1.0], 6), 10.0 ** rng.uniform(-3, 3, 6)
    problem = BoxDual.classification(y, C, True)
    weights, decision = rng.normal(size=2), 5 * rng.normal(size=6)
    step, change = -0.01 * weights, rng.normal(size=6) * 10 ** rng.uniform(-2, 2, 6)

    def height(length):
        w, excess = weights + length * step, np.maximum(1.0 - y * (decision + length * change), 0.0)
        return 0.5 * w @ w + 0.5 * np.sum(C * excess**2)

    found = tall._exact_line_search(problem, C, weights, step, decision, change)
    lowest = minimize_scalar(height, bounds=(0.0, 10.0), method="bounded", options={"xatol": 1e-12})
    assert height(found) <= lowest.fun * (1.0 + 1e-12)
