"""The interior-point method for tall data: steps, start and end against their conditions."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.linear.fits import fit
from solvers.problems import classification
from solvers.svm.tall_problems import N, P, problem_of
from zeronorm.design import as_design
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import Way
from zeronorm.solvers.svm import _tall as tall
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._tall import ALPHA, SPARE, XI, T


def point_of(method, seed=1):
    """A point inside all bounds that satisfies no optimality condition."""
    rng = np.random.default_rng(seed)
    m = method.problem.sign.size
    variables = rng.uniform(0.2, 1.5, size=(4, m))
    variables[ALPHA] = np.where(method.soft, rng.uniform(0.1, 0.9, m) * method.cost, variables[ALPHA])
    variables[SPARE] = np.where(method.soft, method.cost - variables[ALPHA], 1.0)
    variables[XI] = np.where(method.soft, variables[XI], 0.0)
    return tall._Point(rng.normal(size=P), 0.4, variables)


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
    # The products equal the target up to terms of second order.
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
    assert tall.complementarity(start, step, 0.5) == pytest.approx(wanted)


def test_a_step_that_takes_nothing_away_may_be_of_any_length():
    one = np.ones(1)
    variables, step = np.ones((4, 1)), np.zeros((4, 1))
    rest = (np.array([True]), np.full(1, 0.5), np.zeros(1), np.zeros(1, np.int64), one, np.zeros(1))
    assert tall.set_step(variables, step, 1.0, *rest) == np.inf


def test_the_step_of_an_iteration_is_mehrotras():
    """The predictor has target zero; the corrector the mean product times the cube of the share that remains."""
    X, dual = problem_of("hinge")
    method, twin = (tall._InteriorPoint(as_design(X), dual) for _ in range(2))
    point, copy = point_of(method), point_of(twin)
    start = point.variables.copy()
    seen = []
    own = method._status
    method._status = lambda *arguments: seen.append(arguments) or own(*arguments)
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
    # The status is computed from the remaining residual, the gap before the step and the tolerance.
    assert seen[0][1:] == (pytest.approx((1.0 - length) * furthest), pytest.approx(gap), 1e-6)


def test_where_the_iterations_begin():
    X, dual = problem_of("partly hard")
    method = tall._InteriorPoint(as_design(X), dual)
    soft = np.isfinite(dual.upper)
    point = method.start()
    assert (point.weights.tolist(), point.bias) == ([0.0] * P, 0.0)
    np.testing.assert_allclose(point.variables[ALPHA], np.where(soft, dual.upper / 2, 0.5))
    np.testing.assert_allclose(point.variables[SPARE], np.where(soft, dual.upper / 2, 1.0))
    np.testing.assert_allclose(point.variables[XI], np.where(soft, 2.0, 0.0))  # all margins are one too small
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


def test_multipliers_at_the_end_lie_on_the_bound_that_their_slack_indicates():
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
    assert method._status(point, 1e-3, 1.0, 1e-6) is Status.ITERATION_LIMIT  # a constraint is violated
    assert method.error == pytest.approx(1e-3)
    point.bias, point.weights = solved.bias, 1.01 * solved.weights  # not the weights of the multipliers
    assert method._status(point, 0.0, 1.0, 1e-6) is Status.ITERATION_LIMIT
    off = np.sum((0.01 * solved.weights) ** 2)
    scale = 0.5 * 1.01**2 * solved.weights @ solved.weights + dual.upper @ variables[XI]
    assert method.error == pytest.approx(off / scale, rel=1e-3)
    # It ends where the tolerance is met and the gap or the error no longer halves.
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
    variables[ALPHA] = [1.0, 1.0, 1e-12, 1.0]  # along which only the dual objective changes
    point = tall._Point(np.zeros(1), 0.0, variables)
    assert method._outgrows(point, 1e-6)
    variables[ALPHA] = [1.0, 1.0, 1.0, 1.0]
    assert not method._outgrows(point, 1e-6)
    variables[ALPHA] = [1.0, 0.0, 1.0, 1.0]  # no hard constraint of the other class
    assert not method._outgrows(point, 1e-6)
    # The limit itself: rounding of the mean squared norm of the samples times the gain, against the curvature.
    variables[ALPHA] = [0.5, 1.0, 0.5, 7.0]
    image = 0.5 * 1.0 + 0.5 * 2.0 - 1.0
    limit = 2.0 * np.finfo(float).eps * np.mean(X**2) * 2.0 / image**2
    assert method._outgrows(point, 0.99 * limit)
    assert not method._outgrows(point, 1.01 * limit)


def test_an_interior_point_method_near_a_solution_takes_fewer_iterations():
    X, y = classification(2000, 30, seed=4)
    whole = fit(X, y, C=0.5, way=Way.PRIMAL)
    fewer = as_design(np.ascontiguousarray(X[:, :25]))
    cold, warm = (fit(fewer, y, C=0.5, start=start, way=Way.PRIMAL) for start in (None, whole))
    assert warm.converged
    assert warm.n_iter < cold.n_iter
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-7)


def test_variables_that_reach_zero_end_the_search_without_an_error(monkeypatch):
    """Rounding may make a variable exactly zero, and the quotient is then not a number."""
    from zeronorm.solvers.svm import _tall as tall

    started = tall._InteriorPoint.start

    def start_at_the_bound(self):
        point = started(self)
        point.variables[:, 0] = 0.0
        return point

    monkeypatch.setattr(tall._InteriorPoint, "start", start_at_the_bound)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    with np.errstate(all="ignore"):
        solution = fit(X, y, C=1.0, loss="hinge", way=Way.PRIMAL)
    assert np.all(np.isfinite(solution.weights))
    assert not solution.converged
