"""Steps, start and end of the interior-point method for the l1 SVM, by their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.l1_svm.signed_problems import problem_of
from zeronorm.solvers.l1_svm import _interior_point as interior_point
from zeronorm.solvers.l1_svm import _newton as newton
from zeronorm.solvers.l1_svm._interior_point import _InteriorPoint, _longest, _Step
from zeronorm.solvers.l1_svm._newton import SignedProblem, balanced_multipliers


def method_of(problem, seed=1):
    """The method at a point inside the bounds that satisfies none of the optimality conditions."""
    method = _InteriorPoint(problem)
    rng = np.random.default_rng(seed)
    n = problem.target.size
    method.x, method.s = rng.uniform(0.2, 1.5, method.x.size), rng.uniform(0.2, 1.5, method.s.size)
    alpha = rng.uniform(0.1, 0.9, n) * problem.cost
    method.s[:n], method.s[n : 2 * n] = alpha, problem.cost - alpha
    method.bias = 0.3
    return method


@pytest.mark.parametrize("shape", [(11, 4), (5, 9)])
@pytest.mark.parametrize(("product", "second"), [(0.0, False), (0.2, True)])
def test_a_step_solves_the_linearised_conditions(shape, product, second):
    problem = problem_of(*shape, gradient=0.2, loss=0.7)
    method = method_of(problem)
    n, p = shape
    x, s = method.x.copy(), method.s.copy()
    gap, objective = method._residuals()
    assert gap == pytest.approx(x @ s)
    weights = np.append(x[2 * n : 2 * n + p] - x[2 * n + p :], 0.3)
    short = problem.target - problem.rows @ weights
    wanted = problem.penalty @ np.abs(weights[:-1]) + problem.cost @ np.maximum(short, 0.0) + 0.7
    assert objective == pytest.approx(wanted - problem.gradient @ weights)
    method._factorise(precise=True)
    earlier = _Step(0.1 * np.ones(x.size), -0.1 * np.ones(x.size), 0.0) if second else None
    step = method._step(product, earlier)
    after_x, after_s = x + step.x, s + step.s
    t, xi, up, down = after_x[:n], after_x[n : 2 * n], after_x[2 * n : 2 * n + p], after_x[2 * n + p :]
    weights = np.append(up - down, 0.3 + step.bias)
    np.testing.assert_allclose(problem.rows @ weights + xi - t, problem.target, atol=1e-9)
    alpha, spare = after_s[:n], after_s[n : 2 * n]
    np.testing.assert_allclose(alpha + spare, problem.cost, atol=1e-9)
    gradient = alpha @ problem.rows + problem.gradient
    np.testing.assert_allclose(after_s[2 * n : 2 * n + p], problem.penalty - gradient[:-1], atol=1e-9)
    np.testing.assert_allclose(after_s[2 * n + p :], problem.penalty + gradient[:-1], atol=1e-9)
    assert gradient[-1] == pytest.approx(0.0, abs=1e-9)
    products = x * s + x * step.s + s * step.x + (0.0 if earlier is None else earlier.x * earlier.s)
    np.testing.assert_allclose(products, product, atol=1e-9)
    primal, dual = method._lengths(step, 0.9)
    for value, change, length in ((x, step.x, primal), (s, step.s, dual)):
        descending = change < 0
        assert length == pytest.approx(min(1.0, 0.9 * (value[descending] / -change[descending]).min()))
    found = method._products_after(step, 0.3, 0.4)
    assert found == pytest.approx((x + 0.3 * step.x) @ (s + 0.4 * step.s))


def test_the_length_of_a_step():
    one = np.ones(3)
    assert _longest(one, np.array([1.0, -0.5, -2.0]), 1.0) == 0.5
    assert _longest(one, np.array([1.0, -0.5, -0.9]), 1.0) == 1.0
    assert _longest(one, np.array([1.0, -0.5, -0.99]), 0.9) == pytest.approx(0.9 / 0.99)
    assert _longest(one, np.array([1.0, 0.5, 0.1]), 0.9) == 1.0


def test_the_bias_alone_is_a_solution_where_no_feature_has_a_weight():
    problem = problem_of()
    dear = SignedProblem(problem.rows, np.ones(11), problem.cost, np.full(4, 1e3), problem.gradient)
    found = _InteriorPoint(dear).without_features()
    heavier = 1.0 if dear.cost @ dear.rows[:, -1] >= 0.0 else -1.0
    assert found.weights.tolist() == [0.0] * 4 + [heavier]
    lighter = dear.cost[dear.rows[:, -1] == -heavier].sum()
    assert found.objective == pytest.approx(2.0 * lighter)
    assert found.n_iter == 0
    assert (
        _InteriorPoint(
            SignedProblem(problem.rows, np.ones(11), problem.cost, np.full(4, 1e-3), problem.gradient)
        ).without_features()
        is None
    )


def test_what_a_step_shrinks_by_more_than_half_is_zero():
    problem = problem_of(3, 2)
    method = method_of(problem)
    method.x[:], method.s[:] = 1.0, 1.0
    x, s = np.zeros(10), np.zeros(10)
    s[[0, 4]] = -0.6  # the multiplier of the first row goes to zero, that of the second to its cost
    s[2] = -0.5
    x[[6, 8]] = -0.6  # both parts of the first weight
    x[7] = -0.6  # the positive part of the second
    guess = method._guess(_Step(x, s, 0.0))
    assert (guess.kink.tolist(), guess.at_cost.tolist()) == ([2], [False, True, False])
    assert (guess.active.tolist(), guess.signs.tolist()) == ([1], [-1.0])
    x[7], x[9] = 0.0, -0.6
    assert method._guess(_Step(x, s, 0.0)).signs.tolist() == [1.0]


def test_features_in_play():
    problem = problem_of(3, 4)
    method = method_of(problem)
    n, p, penalty = 3, 4, problem.penalty
    method.x[2 * n :] = 1e-9
    method.s[2 * n : 2 * n + p], method.s[2 * n + p :] = (
        penalty * [1.0, 0.1, 1.0, 0.5],
        penalty * [0.5, 1.0, 1.0, 1.0],
    )
    method.x[2 * n + p + 2] = 0.3  # the third has a share by its negative part
    gap, objective = 0.01, 1.0  # slopes whose square is below 4 times the gap, relative: below 0.2
    assert method._features_in_play(gap, objective).tolist() == [False, True, True, False]
    assert method._features_in_play(0.1, objective).tolist() == [True, True, True, True]
    method.x[2 * n] = 0.011 / penalty[0]
    assert method._features_in_play(gap, objective).tolist() == [True, True, True, False]
    assert method._features_in_play(gap, 1.2 * objective).tolist() == [False, True, True, False]


def large_problem(relative_gradient):
    """A problem large enough to leave features out, with these gradients at balanced multipliers."""
    p = relative_gradient.size
    problem = problem_of(20_001 // (p + 1) + 1, p)
    gradient = np.abs(balanced_multipliers(problem) @ problem.rows)[:-1]
    return SignedProblem(
        problem.rows, problem.target, problem.cost, gradient / relative_gradient, problem.gradient
    )


def test_few_features_to_start_with():
    """The start keeps features with a gradient of at least 0.6 of the penalty, unless these are more than half."""
    gradient = np.where(np.arange(60) % 3 == 0, 0.61, 0.59)
    method = _InteriorPoint(large_problem(gradient))
    n, stay = method.left.samples.size, np.flatnonzero(gradient > 0.6)
    x, s = method.x.copy(), method.s.copy()
    method.start_with_few_features()
    assert method.left.features.tolist() == stay.tolist()
    assert method.left.samples.size == n
    pairs = np.concatenate([np.arange(2 * n), 2 * n + stay, 2 * n + 60 + stay])
    np.testing.assert_array_equal(method.x, x[pairs])
    np.testing.assert_array_equal(method.s, s[pairs])
    assert len(method.earlier) == 1
    whole = _InteriorPoint(large_problem(np.full(60, 0.61)))
    whole.start_with_few_features()
    assert whole.left.features.size == 60


def test_going_back_keeps_what_was_left_out_by_mistake():
    problem = large_problem(np.ones(6))
    method = _InteriorPoint(problem)
    assert not method.go_back()  # nothing was left out
    n = problem.target.size
    every = np.ones(n, dtype=bool)
    start = method.x
    method._restrict(every, ~every, np.arange(6) > 0)
    method._restrict(np.arange(n) > 2, ~every, np.ones(5, dtype=bool))
    method.wrong = (np.array([1]), np.array([], dtype=int))
    assert method.go_back()  # to the point before the row was left out
    assert (method.left.samples.size, method.left.features.size) == (n, 5)
    assert not method.may_fix[1]
    assert method.may_fix.sum() == n - 1
    assert method.may_drop.all()
    assert method.wrong is None
    method.wrong = (np.array([], dtype=int), np.array([0]))
    assert method.go_back()
    assert method.left.features.size == 6
    assert not method.may_drop[0]
    np.testing.assert_array_equal(method.x, start)
    assert not method.go_back()
    # Where it is not known what was left out wrongly, nothing is left out any more.
    method._restrict(every, ~every, np.arange(6) > 2)
    method.missing_slopes, method.closed = np.full(6, 9.0), True
    assert method.go_back()
    assert (method.far, method.left.features.size) == (0.0, 6)
    assert not method.go_back()


def test_rows_and_features_that_were_both_wrong_come_back_together():
    method = _InteriorPoint(large_problem(np.ones(6)))
    n = method.left.samples.size
    method._restrict(np.arange(n) > 2, np.zeros(n, dtype=bool), np.arange(6) > 0)
    method.wrong = (np.array([1]), np.array([0]))
    assert method.go_back()
    assert (method.may_fix[1], method.may_drop[0], method.far > 0.0) == (False, False, True)


def test_an_iteration_takes_mehrotras_step(monkeypatch):
    monkeypatch.setattr(interior_point, "MAX_ITER", 1)
    problem = problem_of(30, 4)
    method, twin = method_of(problem), method_of(problem)
    x, s = method.x.copy(), method.s.copy()
    assert method.run() is None
    assert method.n_iter == 1
    gap, _ = twin._residuals()
    twin._factorise(precise=False)
    predicted = twin._step(0.0, None)
    ahead = twin._products_after(predicted, *twin._lengths(predicted, 1.0))
    step = twin._step((ahead / gap) ** 3 * gap / x.size, predicted)
    primal, dual = twin._lengths(step, 0.995)
    np.testing.assert_allclose(method.x, x + primal * step.x, rtol=1e-6)
    np.testing.assert_allclose(method.s, s + dual * step.s, rtol=1e-6)
    assert method.bias == pytest.approx(0.3 + primal * step.bias, rel=1e-6)
    assert abs(step.bias) > 1e-3


def test_a_solution_that_is_not_unique_is_given_up():
    problem = large_problem(np.ones(6))
    for closed, missing, goes in ((True, 0.0, False), (False, 0.0, True), (True, 1.0, True)):
        method = _InteriorPoint(problem)
        n = problem.target.size
        method._restrict(np.ones(n, dtype=bool), np.zeros(n, dtype=bool), np.arange(6) > 2)
        method.missing_slopes, method.closed = np.full(6, missing), closed
        assert method.go_back() == goes


def test_the_smaller_system_and_its_precision():
    problem = problem_of(40, 5)
    method = method_of(problem)
    method._residuals()
    method._factorise(precise=True)
    exact = method._step(0.1, None)
    assert isinstance(method.system, newton.FeatureSystem)
    method._factorise(precise=False)
    rough = method._step(0.1, None)
    off = np.abs(rough.x - exact.x).max() / np.abs(exact.x).max()
    assert 0.0 < off < 1e-4
    ratio = method.x / method.s
    np.testing.assert_allclose(method.stiffness, 1.0 / (ratio[80:85] + ratio[85:]))
