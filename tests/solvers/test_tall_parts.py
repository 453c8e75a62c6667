"""Parts of the solvers for tall data by what they are to achieve: Newton steps, starts, line searches, certificates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from solvers.problems import compiled
from zeronorm.design import as_design
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm import tall
from zeronorm.solvers.svm.box_dual import BoxDual
from zeronorm.solvers.svm.tall import ALPHA, SPARE, XI, T

N, P = 12, 3


def problem_of(kind):
    rng = np.random.default_rng(0)
    X, price = rng.normal(size=(N, P)), rng.uniform(0.5, 2.0, N)
    if kind == "partly hard":
        price[[1, 5, 6]] = np.inf
    y = np.where(np.arange(N) % 2, 1.0, -1.0)
    if kind.endswith("regression"):
        return X, BoxDual.regression(rng.normal(size=N), price, 0.3, kind.startswith("squared"))
    return X, BoxDual.classification(y, price, kind.startswith("squared"))


def point_of(method, seed=1):
    """A point inside all bounds that meets no condition of the optimum."""
    rng = np.random.default_rng(seed)
    m = method.problem.sign.size
    variables = rng.uniform(0.2, 1.5, size=(4, m))
    variables[ALPHA] = np.where(method.soft, rng.uniform(0.1, 0.9, m) * method.price, variables[ALPHA])
    variables[SPARE] = np.where(method.soft, method.price - variables[ALPHA], 1.0)
    variables[XI] = np.where(method.soft, variables[XI], 0.0)
    return tall._Point(rng.normal(size=P), 0.4, variables)


# -- The interior-point method --


@pytest.mark.parametrize("kind", ["hinge", "partly hard", "regression"])
@pytest.mark.parametrize("target", [0.0, 0.3])
@pytest.mark.parametrize("second_order", [False, True])
def test_a_step_solves_the_linearised_conditions(kind, target, second_order):
    X, dual = problem_of(kind)
    method = tall._InteriorPoint(as_design(X), dual)
    point = point_of(method)
    start, soft = point.variables.copy(), method.soft
    assert method.n_products == dual.sign.size + np.count_nonzero(np.isfinite(dual.upper))
    curvature = np.zeros(N)
    tall.add_curvature(start, dual.sample, method.theta, curvature)
    theta = 1.0 / (start[T] / start[ALPHA] + start[XI] / start[SPARE])
    np.testing.assert_allclose(method.theta, theta)
    np.testing.assert_allclose(curvature, dual.sum_by_sample(theta))
    decision = X @ point.weights + point.bias
    furthest = tall.find_missing(start, dual.sample, dual.sign, dual.linear, decision, method.missing)
    lacks = start[T] - start[XI] - dual.linear - dual.sign * decision[dual.sample]
    np.testing.assert_allclose(method.missing, lacks)
    assert furthest == pytest.approx(np.abs(lacks).max())
    method.step[:] = 0.2 if second_order else 0.0
    if second_order:
        method.step[SPARE] = np.where(soft, -0.2, 0.0)
        method.step[XI] = np.where(soft, 0.2, 0.0)
    before = method.step.copy()
    factor = tall._factor(tall.bordered(as_design(X), curvature))
    change, longest = method._find_step(point, factor, target)
    step = method.step
    # Afterwards the constraints hold, the multipliers balance, and the weights are those of the multipliers.
    after = start + step
    new = X @ (point.weights + change[:-1]) + point.bias + change[-1]
    np.testing.assert_allclose(dual.sign * new[dual.sample] + after[XI] - after[T], -dual.linear, atol=1e-9)
    v = dual.signed_sum(after[ALPHA])
    assert v.sum() == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(X.T @ v, point.weights + change[:-1], atol=1e-9)
    # The products come to the target, up to what is of second order.
    products = start[ALPHA] * start[T] + start[ALPHA] * step[T] + start[T] * step[ALPHA]
    np.testing.assert_allclose(products + before[ALPHA] * before[T], target, atol=1e-9)
    products = start[SPARE] * start[XI] + start[SPARE] * step[XI] + start[XI] * step[SPARE]
    np.testing.assert_allclose((products + before[SPARE] * before[XI])[soft], target, atol=1e-9)
    np.testing.assert_array_equal(step[SPARE], np.where(soft, -step[ALPHA], 0.0))
    np.testing.assert_array_equal(step[XI][~soft], 0.0)
    shrinking = step < 0.0
    assert longest == pytest.approx((start[shrinking] / -step[shrinking]).min())
    wanted = np.sum((start[ALPHA] + 0.5 * step[ALPHA]) * (start[T] + 0.5 * step[T]))
    wanted += np.sum((start[SPARE] + 0.5 * step[SPARE]) * (start[XI] + 0.5 * step[XI]))
    assert compiled(tall.complementarity)(start, step, 0.5) == pytest.approx(wanted)


def test_a_step_that_takes_nothing_away_may_be_of_any_length():
    one = np.ones(1)
    variables, step = np.ones((4, 1)), np.zeros((4, 1))
    rest = (np.array([True]), np.full(1, 0.5), np.zeros(1), np.zeros(1, np.int64), one, np.zeros(1))
    assert tall.set_step(variables, step, 1.0, *rest) == np.inf


def test_the_step_of_an_iteration_is_mehrotras():
    """The predictor has the target zero; the corrector the mean product times the cube of what is left."""
    X, dual = problem_of("hinge")
    method, twin = (tall._InteriorPoint(as_design(X), dual) for _ in range(2))
    point, copy = point_of(method), point_of(twin)
    start = point.variables.copy()
    told = []
    own = method._status
    method._status = lambda *arguments: told.append(arguments) or own(*arguments)
    status = method.advance(point, 1e-6)
    assert status is Status.ITERATION_LIMIT
    curvature = np.zeros(N)
    tall.add_curvature(start, dual.sample, twin.theta, curvature)
    factor = tall._factor(tall.bordered(as_design(X), curvature))
    decision = X @ copy.weights + copy.bias
    furthest = tall.find_missing(start, dual.sample, dual.sign, dual.linear, decision, twin.missing)
    twin.step[:] = 0.0
    _, longest = twin._find_step(copy, factor, 0.0)

    def products(length):
        a, s, x, t = start + length * twin.step
        return a @ t + s @ x

    ahead, gap = products(min(1.0, longest)), products(0.0)
    change, longest = twin._find_step(copy, factor, (ahead / gap) ** 3 * gap / (2 * N))
    length = min(1.0, 0.995 * longest)
    np.testing.assert_allclose(point.variables, start + length * twin.step, rtol=1e-9)
    np.testing.assert_allclose(point.weights, copy.weights + length * change[:-1], rtol=1e-9)
    assert point.bias == pytest.approx(copy.bias + length * change[-1])
    assert (point.variables > 0.0).all()
    # Of what was missing, that much is left; both are told with the gap before and the tolerance.
    assert told[0][1:] == (pytest.approx((1.0 - length) * furthest), pytest.approx(gap), 1e-6)


def test_where_the_iterations_begin():
    X, dual = problem_of("partly hard")
    method = tall._InteriorPoint(as_design(X), dual)
    soft = np.isfinite(dual.upper)
    point = method.start()
    assert (point.weights.tolist(), point.bias) == ([0.0] * P, 0.0)
    np.testing.assert_allclose(point.variables[ALPHA], np.where(soft, dual.upper / 2, 0.5))
    np.testing.assert_allclose(point.variables[SPARE], np.where(soft, dual.upper / 2, 1.0))
    np.testing.assert_allclose(point.variables[XI], np.where(soft, 2.0, 0.0))  # all lack a margin of one
    np.testing.assert_allclose(point.variables[T], 1.0)
    X, dual = problem_of("regression")
    method = tall._InteriorPoint(as_design(X), dual)
    lacks = -dual.linear
    start = method.start().variables
    np.testing.assert_allclose(start[XI], np.where(lacks > 0, lacks, 0.0) + 1.0)
    np.testing.assert_allclose(start[T], np.where(lacks < 0, -lacks, 0.0) + 1.0)
    w, alpha = np.array([0.3, -0.1, 0.2]), np.linspace(0.0, 1.0, 2 * N) * dual.upper
    near = method.start_near(w, 0.1, alpha)
    assert (near.weights is w, near.bias) == (True, 0.1)
    lacks = -dual.linear - dual.sign * (X @ w + 0.1)[dual.sample]
    slack = 0.01 * np.abs(lacks).mean()
    np.testing.assert_allclose(near.variables[ALPHA], np.clip(alpha, 0.1 * dual.upper, 0.9 * dual.upper))
    np.testing.assert_allclose(near.variables[SPARE], dual.upper - near.variables[ALPHA])
    np.testing.assert_allclose(near.variables[XI], np.where(lacks > 0, lacks, 0.0) + slack)
    np.testing.assert_allclose(near.variables[T], np.where(lacks < 0, -lacks, 0.0) + slack)


def test_multipliers_at_the_end_lie_on_the_bound_that_their_slack_tells():
    dual = BoxDual.classification(np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), np.full(6, 2.0), False)
    method = tall._InteriorPoint(as_design(np.eye(6, 2)), dual)
    alpha = np.array([1e-5, 2.0 - 1e-5, 1.0, 1e-5, 0.5, 2.0 - 1e-5])
    variables = np.array(
        [alpha, 2.0 - alpha, [1e-9, 0.3, 1e-9, 1e-9, 0.6, 1e-9], [0.3, 1e-9, 1e-9, 1e-9, 0.6, 1e-9]]
    )
    found = method.at_bounds(tall._Point(np.zeros(2), 0.0, variables))
    assert found.tolist() == [0.0, 2.0, 1.0, 1e-5, 0.5, alpha[5]]
    hard = BoxDual.classification(np.array([1.0, -1.0]), np.full(2, np.inf), False)
    method = tall._InteriorPoint(as_design(np.eye(2)), hard)
    variables = np.array([[1e-6, 40.0], [1.0, 1.0], [0.0, 0.0], [0.5, 1e-9]])
    assert method.at_bounds(tall._Point(np.zeros(2), 0.0, variables)).tolist() == [0.0, 40.0]


def test_when_the_iterations_end():
    X, dual = problem_of("hinge")
    method = tall._InteriorPoint(as_design(X), dual)
    solved = tall.solve_linear_loss(as_design(X), dual)
    variables = np.empty((4, N))
    variables[ALPHA], variables[SPARE] = solved.alpha, dual.upper - solved.alpha
    lacks = dual.residual(X @ solved.weights + solved.bias)
    variables[XI], variables[T] = np.maximum(lacks, 0.0), np.maximum(-lacks, 0.0)
    point = tall._Point(solved.weights, solved.bias, variables)
    assert method._status(point, 0.0, 1.0, 1e-6) is Status.CONVERGED
    assert method._status(point, 1e-3, 1.0, 1e-6) is Status.ITERATION_LIMIT  # a constraint is missed
    assert method.error == pytest.approx(1e-3)
    point.bias, point.weights = solved.bias, 1.01 * solved.weights  # not the weights of the multipliers
    assert method._status(point, 0.0, 1.0, 1e-6) is Status.ITERATION_LIMIT
    off = np.sum((0.01 * solved.weights) ** 2)
    scale = 0.5 * 1.01**2 * solved.weights @ solved.weights + dual.upper @ variables[XI]
    assert method.error == pytest.approx(off / scale, rel=1e-3)
    # Good enough, and a gap or an error that no longer halves: the end; else once more.
    for gap_before, error_before, ends in ((1.0, 1.0, False), (1e-12, 1.0, True), (1.0, 1e-12, True)):
        method.error = error_before
        found = method._status(point, 0.0, gap_before, 0.1)
        assert (found is Status.CONVERGED) == ends


def test_hard_constraints_that_cannot_hold_are_seen():
    y = np.array([1.0, -1.0, 1.0, -1.0])
    X = np.array([[1.0], [1.0], [2.0], [0.0]])
    hard = BoxDual.classification(y, np.array([np.inf, np.inf, np.inf, 1.0]), False)
    method = tall._InteriorPoint(as_design(X), hard)
    variables = np.ones((4, 4))
    variables[ALPHA] = [1.0, 1.0, 1e-12, 1.0]  # along which nothing changes but the dual objective
    point = tall._Point(np.zeros(1), 0.0, variables)
    assert method._outgrows(point, 1e-6)
    variables[ALPHA] = [1.0, 1.0, 1.0, 1.0]
    assert not method._outgrows(point, 1e-6)
    variables[ALPHA] = [1.0, 0.0, 1.0, 1.0]  # no hard one of the other class
    assert not method._outgrows(point, 1e-6)
    # The limit itself: rounding of the mean square of the samples times the gain, against the change of the image.
    variables[ALPHA] = [0.5, 1.0, 0.5, 7.0]
    image = 0.5 * 1.0 + 0.5 * 2.0 - 1.0
    limit = 2.0 * np.finfo(float).eps * np.mean(X**2) * 2.0 / image**2
    assert method._outgrows(point, 0.99 * limit)
    assert not method._outgrows(point, 1.01 * limit)


# -- Newton's method for squared losses --


@pytest.mark.parametrize("kind", ["squared hinge", "squared regression"])
def test_the_line_search_finds_the_minimum(kind):
    X, dual = problem_of(kind)
    rng = np.random.default_rng(3)
    price = (1.0 / dual.ridge)[dual.sample]
    for scale in (1e-2, 1.0, 30.0):
        w, step = rng.normal(size=P), scale * rng.normal(size=P)
        decision, change = X @ w + 0.2, X @ step + 0.5 * scale

        def value(t, w=w, step=step, decision=decision, change=change):
            excess = np.maximum(dual.residual(decision + t * change), 0.0)
            return 0.5 * np.sum((w + t * step) ** 2) + 0.5 * price @ excess**2

        if (value(1e-7) - value(0.0)) > 0.0:
            step, change = -step, -change
            value.__defaults__ = (w, step, decision, change)
        exact = minimize_scalar(value, bounds=(0.0, 1e3 / scale), method="bounded", options={"xatol": 1e-10})
        found = tall._exact_line_search(dual, price, w, step, decision, change)
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
    np.testing.assert_allclose(tall._step(design, curvature, gradient), exact, rtol=1e-10)
    nothing = np.zeros(N)
    assert tall.bordered(design, nothing)[P, P] == 1.0
    np.testing.assert_array_equal(
        tall.newton_step(design, nothing, gradient), [*(-gradient[:-1]).tolist(), 0.0]
    )


def test_many_sparse_features_take_conjugate_gradients(monkeypatch):
    X, _ = problem_of("hinge")
    monkeypatch.setattr(tall, "newton_step", lambda *arguments, **settings: "gradients")
    for data, most, way in ((csr_array(X), P, str), (csr_array(X), P + 1, np.ndarray), (X, P, np.ndarray)):
        monkeypatch.setattr(tall, "MANY_SPARSE", most)
        assert isinstance(tall._step(as_design(data), np.ones(N), np.ones(P + 1)), way)


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
    """Nothing more is to be gained then; a whole step that leaves other residuals positive is none of that."""
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
        raise AssertionError("a search along a step that is known to be exact")

    monkeypatch.setattr(tall, "_exact_line_search", refuse)
    again = tall.solve_squared_loss(as_design(X), dual, (found.weights, found.bias))
    assert (again.n_iter, again.status) == (1, Status.CONVERGED)
    np.testing.assert_allclose(again.weights, found.weights, atol=1e-10)
