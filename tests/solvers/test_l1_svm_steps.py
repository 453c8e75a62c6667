"""Steps, starts and ends of the interior-point method for the ℓ1 machine (interior_point, newton) by definition."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm.solvers.l1_svm import interior_point, newton
from zeronorm.solvers.l1_svm.interior_point import _InteriorPoint, _longest, _Step
from zeronorm.solvers.l1_svm.newton import (
    Guess,
    Reduction,
    SignedProblem,
    balanced_multipliers,
    start_point,
    vertex,
)


def problem_of(n=11, p=4, seed=0, pull=0.0, loss=0.0):
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    rows = np.column_stack([sign[:, None] * rng.normal(size=(n, p)), sign])
    target = rng.uniform(0.5, 1.5, n)
    return SignedProblem(
        rows, target, rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 1.5, p), pull * rng.normal(size=p + 1), loss
    )


def method_of(problem, seed=1):
    """At a point inside the bounds that meets none of the conditions."""
    method = _InteriorPoint(problem)
    rng = np.random.default_rng(seed)
    n = problem.target.size
    method.x, method.s = rng.uniform(0.2, 1.5, method.x.size), rng.uniform(0.2, 1.5, method.s.size)
    alpha = rng.uniform(0.1, 0.9, n) * problem.price
    method.s[:n], method.s[n : 2 * n] = alpha, problem.price - alpha
    method.bias = 0.3
    return method


@pytest.mark.parametrize("shape", [(11, 4), (5, 9)])
@pytest.mark.parametrize(("product", "second"), [(0.0, False), (0.2, True)])
def test_a_step_solves_the_linearised_conditions(shape, product, second):
    problem = problem_of(*shape, pull=0.2, loss=0.7)
    method = method_of(problem)
    n, p = shape
    x, s = method.x.copy(), method.s.copy()
    gap, objective = method._residuals()
    assert gap == pytest.approx(x @ s)
    weights = np.append(x[2 * n : 2 * n + p] - x[2 * n + p :], 0.3)
    short = problem.target - problem.rows @ weights
    wanted = problem.cost @ np.abs(weights[:-1]) + problem.price @ np.maximum(short, 0.0) + 0.7
    assert objective == pytest.approx(wanted - problem.pull @ weights)
    method._factorise(precise=True)
    earlier = _Step(0.1 * np.ones(x.size), -0.1 * np.ones(x.size), 0.0) if second else None
    step = method._step(product, earlier)
    after_x, after_s = x + step.x, s + step.s
    t, xi, up, down = after_x[:n], after_x[n : 2 * n], after_x[2 * n : 2 * n + p], after_x[2 * n + p :]
    weights = np.append(up - down, 0.3 + step.bias)
    np.testing.assert_allclose(problem.rows @ weights + xi - t, problem.target, atol=1e-9)
    alpha, spare = after_s[:n], after_s[n : 2 * n]
    np.testing.assert_allclose(alpha + spare, problem.price, atol=1e-9)
    pull = alpha @ problem.rows + problem.pull
    np.testing.assert_allclose(after_s[2 * n : 2 * n + p], problem.cost - pull[:-1], atol=1e-9)
    np.testing.assert_allclose(after_s[2 * n + p :], problem.cost + pull[:-1], atol=1e-9)
    assert pull[-1] == pytest.approx(0.0, abs=1e-9)
    products = x * s + x * step.s + s * step.x + (0.0 if earlier is None else earlier.x * earlier.s)
    np.testing.assert_allclose(products, product, atol=1e-9)
    primal, dual = method._lengths(step, 0.9)
    for value, change, length in ((x, step.x, primal), (s, step.s, dual)):
        falling = change < 0
        assert length == pytest.approx(min(1.0, 0.9 * (value[falling] / -change[falling]).min()))
    found = method._products_after(step, 0.3, 0.4)
    assert found == pytest.approx((x + 0.3 * step.x) @ (s + 0.4 * step.s))


def test_the_length_of_a_step():
    one = np.ones(3)
    assert _longest(one, np.array([1.0, -0.5, -2.0]), 1.0) == 0.5
    assert _longest(one, np.array([1.0, -0.5, -0.9]), 1.0) == 1.0
    assert _longest(one, np.array([1.0, -0.5, -0.99]), 0.9) == pytest.approx(0.9 / 0.99)
    assert _longest(one, np.array([1.0, 0.5, 0.1]), 0.9) == 1.0


def test_the_start_of_balanced_multipliers():
    problem = problem_of()
    balanced = balanced_multipliers(problem)
    sign = problem.rows[:, -1]
    assert sign @ balanced == pytest.approx(0.0, abs=1e-12)
    side = sign == np.sign(-(problem.price @ sign))
    np.testing.assert_allclose(balanced[side], problem.price[side])  # the lighter side at its price
    assert np.all(balanced <= problem.price * (1 + 1e-12))
    one_sided = SignedProblem(np.abs(problem.rows), problem.target, problem.price, problem.cost, problem.pull)
    np.testing.assert_array_equal(balanced_multipliers(one_sided), problem.price)
    x, s = start_point(problem, balanced)
    n, p = problem.target.size, problem.cost.size
    pull = 0.5 * (balanced @ problem.rows)[:-1]
    share = max(0.3, 1.0 / max(np.max(np.abs(pull) / problem.cost), 1.0))
    np.testing.assert_allclose(s[:n], 0.5 * share * balanced)
    np.testing.assert_allclose(s[:n] + s[n : 2 * n], problem.price)
    c, g = problem.cost, share * pull
    np.testing.assert_allclose(s[2 * n :], np.concatenate([np.maximum(c - g, c), np.maximum(c + g, c)]))
    direction = (balanced * problem.target) @ problem.rows[:, :-1] / c
    value = problem.rows[:, :-1] @ direction
    # The multiple of the direction that is nearest to the targets, by weighted least squares; eight tenths of it.
    root = np.sqrt(balanced)
    nearest = np.linalg.lstsq((root * value)[:, None], root * problem.target, rcond=None)[0][0]
    weights = 0.8 * nearest * direction
    short = problem.target - problem.rows[:, :-1] @ weights
    room = 0.5 * np.abs(short).mean()
    np.testing.assert_allclose(x[:n], np.maximum(-short, 0.0) + room)
    np.testing.assert_allclose(x[n : 2 * n], np.maximum(short, 0.0) + room)
    product = np.mean(s[:n] * x[:n])
    np.testing.assert_allclose(
        x[2 * n : 2 * n + p], np.maximum(weights, 0.0) + product / s[2 * n : 2 * n + p]
    )
    np.testing.assert_allclose(x[2 * n + p :], np.maximum(-weights, 0.0) + product / s[2 * n + p :])


def test_the_bias_alone_is_a_solution_where_no_feature_pays():
    problem = problem_of()
    dear = SignedProblem(problem.rows, np.ones(11), problem.price, np.full(4, 1e3), problem.pull)
    found = _InteriorPoint(dear).without_features()
    heavier = 1.0 if dear.price @ dear.rows[:, -1] >= 0.0 else -1.0
    assert found.weights.tolist() == [0.0] * 4 + [heavier]
    lighter = dear.price[dear.rows[:, -1] == -heavier].sum()
    assert found.objective == pytest.approx(2.0 * lighter)
    assert found.n_iter == 0
    assert (
        _InteriorPoint(
            SignedProblem(problem.rows, np.ones(11), problem.price, np.full(4, 1e-3), problem.pull)
        ).without_features()
        is None
    )


def test_fewer_rows_and_features_and_back():
    problem = problem_of()
    whole = Reduction.none_of(problem)
    assert whole.coarse.dtype == np.float32
    stay, price = np.arange(11) % 3 != 0, np.arange(11) % 6 == 0
    features = np.array([True, False, True, True])
    left = whole.restricted(stay, price, features)
    np.testing.assert_array_equal(left.problem.rows, problem.rows[stay][:, [0, 2, 3, 4]])
    np.testing.assert_array_equal(left.coarse, left.problem.rows.astype(np.float32))
    np.testing.assert_allclose(left.problem.pull, (problem.price[price] @ problem.rows[price])[[0, 2, 3, 4]])
    assert left.problem.loss == pytest.approx(problem.price[price] @ problem.target[price])
    assert (left.problem.cost.tolist(), left.problem.price.tolist()) == (
        problem.cost[features].tolist(),
        problem.price[stay].tolist(),
    )
    again = left.restricted(np.arange(7) > 1, np.arange(7) == 1, np.array([True, True, False]))
    assert again.features.tolist() == [0, 2]
    assert again.samples.tolist() == np.flatnonzero(stay)[2:].tolist()
    second = np.flatnonzero(stay)[1]
    wanted = np.where(price | (np.arange(11) == second), problem.price, 0.0)
    np.testing.assert_array_equal(again.fixed_alpha, wanted)
    assert again.problem.loss == pytest.approx(
        left.problem.loss + problem.price[second] * problem.target[second]
    )
    weights, alpha = again.lifted(np.array([1.0, 2.0, 3.0]), np.full(5, 0.25))
    assert weights.tolist() == [1.0, 0.0, 2.0, 0.0, 3.0]
    wanted[again.samples] = 0.25
    np.testing.assert_array_equal(alpha, wanted)
    assert again.has(again.samples[:2], np.array([2]))
    assert not again.has(np.array([0]), np.array([2]))
    assert not again.has(again.samples[:2], np.array([1]))
    # The same machine costs the same in both problems, as long as the fixed rows are where they were put.
    same = left.problem.objective(
        np.append(weights[[0, 2, 3]], 0.0),
        left.problem.target - left.problem.rows @ np.append(weights[[0, 2, 3]], 0.0),
    )
    w = np.append(weights[:-1], 0.0)
    short = problem.target - problem.rows @ w
    own = problem.cost @ np.abs(w[:-1]) + problem.price[stay] @ np.maximum(short[stay], 0.0)
    assert same == pytest.approx(own + problem.price[price] @ short[price])


def test_a_vertex_meets_its_equations():
    problem = problem_of(12, 3, seed=5)
    method = _InteriorPoint(problem)
    machine = method.run()
    assert machine is not None
    weights, alpha = machine.weights, machine.alpha
    short = problem.target - problem.rows @ weights
    kink = np.flatnonzero(np.abs(short) < 1e-9)
    active = np.flatnonzero(weights[:-1])
    guess = Guess(kink, short > 1e-9, active, np.sign(weights[active]))
    found = vertex(problem, guess, alpha)
    np.testing.assert_allclose(found[0], weights, atol=1e-9)
    np.testing.assert_allclose(found[1], alpha, atol=1e-8)
    assert np.all((found[1] >= 0.0) & (found[1] <= problem.price))
    other = Guess(kink, short > 1e-9, active, -np.sign(weights[active]))
    assert vertex(problem, other, alpha) is None
    assert problem.proven_objective(weights, alpha) == pytest.approx(machine.objective)
    assert problem.proven_objective(1.01 * weights, alpha) is None
    assert problem.proven_objective(weights, 0.99 * alpha) is None
    unbalanced = alpha.copy()
    unbalanced[kink[0]] *= 1.01
    assert problem.proven_objective(weights, unbalanced) is None


def test_what_a_step_shrinks_by_more_than_half_is_zero():
    problem = problem_of(3, 2)
    method = method_of(problem)
    method.x[:], method.s[:] = 1.0, 1.0
    x, s = np.zeros(10), np.zeros(10)
    s[[0, 4]] = -0.6  # the multiplier of the first row vanishes, and what the second lacks of its price
    s[2] = -0.5
    x[[6, 8]] = -0.6  # both parts of the first weight
    x[7] = -0.6  # the positive part of the second
    guess = method._guess(_Step(x, s, 0.0))
    assert (guess.kink.tolist(), guess.at_price.tolist()) == ([2], [False, True, False])
    assert (guess.active.tolist(), guess.signs.tolist()) == ([1], [-1.0])
    x[7], x[9] = 0.0, -0.6
    assert method._guess(_Step(x, s, 0.0)).signs.tolist() == [1.0]


def test_features_in_play():
    problem = problem_of(3, 4)
    method = method_of(problem)
    n, p, cost = 3, 4, problem.cost
    method.x[2 * n :] = 1e-9
    method.s[2 * n : 2 * n + p], method.s[2 * n + p :] = (
        cost * [1.0, 0.1, 1.0, 0.5],
        cost * [0.5, 1.0, 1.0, 1.0],
    )
    method.x[2 * n + p + 2] = 0.3  # the third has a share by its negative part
    gap, objective = 0.01, 1.0  # slopes whose square is below 4 times the gap, relative: below 0.2
    assert method._features_in_play(gap, objective).tolist() == [False, True, True, False]
    assert method._features_in_play(0.1, objective).tolist() == [True, True, True, True]
    method.x[2 * n] = 0.011 / cost[0]
    assert method._features_in_play(gap, objective).tolist() == [True, True, True, False]
    assert method._features_in_play(gap, 1.2 * objective).tolist() == [False, True, True, False]


def test_few_features_to_start_with(monkeypatch):
    monkeypatch.setattr(interior_point, "FEW_DATA", 0)
    problem = problem_of(11, 6)
    method = _InteriorPoint(problem)
    assert method.far == interior_point.FAR
    pull = np.abs(method.balanced @ problem.rows)[:-1] / problem.cost
    middle = float(np.median(pull))
    monkeypatch.setattr(interior_point, "PULLS", middle)
    x, s = method.x.copy(), method.s.copy()
    method.start_with_few_features()
    stay = np.flatnonzero(pull >= middle)
    assert method.left.features.tolist() == stay.tolist()
    assert method.left.samples.size == 11
    pairs = np.concatenate([np.arange(22), 22 + stay, 28 + stay])
    np.testing.assert_array_equal(method.x, x[pairs])
    np.testing.assert_array_equal(method.s, s[pairs])
    assert len(method.earlier) == 1
    monkeypatch.setattr(interior_point, "PULLS", 0.0)
    whole = _InteriorPoint(problem)
    whole.start_with_few_features()
    assert whole.left.features.size == 6


def test_going_back_keeps_what_was_left_out_by_mistake(monkeypatch):
    monkeypatch.setattr(interior_point, "FEW_DATA", 0)
    monkeypatch.setattr(interior_point, "PULLS", 0.0)
    problem = problem_of(11, 6)
    method = _InteriorPoint(problem)
    assert not method.go_back()  # nothing was left out
    every = np.ones(11, dtype=bool)
    start = method.x
    method._restrict(every, ~every, np.arange(6) > 0)
    method._restrict(np.arange(11) > 2, ~every, np.ones(5, dtype=bool))
    method.wrong = (np.array([1]), np.array([], dtype=int))
    assert method.go_back()  # to where the row was there
    assert (method.left.samples.size, method.left.features.size) == (11, 5)
    assert not method.may_fix[1]
    assert method.may_fix.sum() == 10
    assert method.may_drop.all()
    assert method.wrong is None
    method.wrong = (np.array([], dtype=int), np.array([0]))
    assert method.go_back()
    assert method.left.features.size == 6
    assert not method.may_drop[0]
    np.testing.assert_array_equal(method.x, start)
    assert not method.go_back()
    # Where it is not known what was wrong, nothing is left out any more.
    method._restrict(every, ~every, np.arange(6) > 2)
    method.missing_slopes, method.closed = np.full(6, 9.0), True
    assert method.go_back()
    assert (method.far, method.left.features.size) == (0.0, 6)
    assert not method.go_back()


def test_rows_and_features_that_were_both_wrong_come_back_together(monkeypatch):
    monkeypatch.setattr(interior_point, "FEW_DATA", 0)
    monkeypatch.setattr(interior_point, "PULLS", 0.0)
    method = _InteriorPoint(problem_of(11, 6))
    method._restrict(np.arange(11) > 2, np.zeros(11, dtype=bool), np.arange(6) > 0)
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


def test_a_solution_that_is_not_unique_is_given_up(monkeypatch):
    monkeypatch.setattr(interior_point, "FEW_DATA", 0)
    monkeypatch.setattr(interior_point, "PULLS", 0.0)
    problem = problem_of(11, 6)
    for closed, missing, goes in ((True, 0.0, False), (False, 0.0, True), (True, 1.0, True)):
        method = _InteriorPoint(problem)
        method._restrict(np.ones(11, dtype=bool), np.zeros(11, dtype=bool), np.arange(6) > 2)
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
