"""The l1 SVM: Newton steps against the whole system, starts, reductions, and proofs of optimality."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.l1_svm.signed_problems import problem_of
from zeronorm.design import as_design
from zeronorm.solvers.l1_svm import _newton as newton
from zeronorm.solvers.l1_svm._interior_point import _InteriorPoint
from zeronorm.solvers.l1_svm._newton import (
    FeatureSystem,
    Guess,
    NotPositiveDefinite,
    Reduction,
    SampleSystem,
    SignedProblem,
    balanced_multipliers,
    newton_system,
    start_point,
    vertex,
)
from zeronorm.solvers.l1_svm._program import L1SvmProgram


def draw(n, p, seed=0):
    rng = np.random.default_rng(seed)
    sign = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    rows = np.column_stack([rng.normal(size=(n, p)), np.ones(n)]) * sign[:, None]
    theta, stiffness = rng.lognormal(0.0, 2.0, n), rng.lognormal(0.0, 2.0, p)
    return rows, theta, stiffness, (rng.normal(size=n), rng.normal(size=p), 0.7)


def whole_system(rows, theta, stiffness, right, drift, off):
    """Z d + a/Θ = r, D (d_f - e) = Z_f' a, z_b' a = o, without eliminating anything."""
    width = rows.shape[1]
    matrix = np.block(
        [
            [rows, np.diag(1.0 / theta)],
            [np.diag(np.append(stiffness, 0.0)), -rows.T],
        ]
    )
    solution = np.linalg.solve(matrix, np.concatenate([right, stiffness * drift, [-off]]))
    return solution[:width], solution[width:]


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        *((kind, shape) for kind in (FeatureSystem, SampleSystem) for shape in ((30, 8), (12, 40), (5, 300))),
        (SampleSystem, (5, 2500)),  # more than are scaled at a time
        (FeatureSystem, (2500, 5)),
    ],
)
def test_both_reductions_solve_the_whole_system(kind, shape):
    rows, theta, stiffness, sides = draw(*shape)
    change, alpha = kind(rows, theta, stiffness, rows).solve(*sides)
    expected_change, expected_alpha = whole_system(rows, theta, stiffness, *sides)
    np.testing.assert_allclose(change, expected_change, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(alpha, expected_alpha, rtol=1e-7, atol=1e-9)


def test_multipliers_at_the_start_balance_the_two_sides():
    rows, cost, *_ = draw(30, 4)
    alpha = balanced_multipliers(SignedProblem(rows, np.ones(30), cost, np.ones(4), np.zeros(5)))
    positive = rows[:, -1] > 0.0
    assert alpha[positive].sum() == pytest.approx(alpha[~positive].sum())
    np.testing.assert_allclose((alpha / cost).max(), 1.0)
    assert np.ptp((alpha / cost)[positive]) < 1e-12


def test_the_smaller_system_is_taken():
    for shape, kind in (((30, 8), FeatureSystem), ((8, 30), SampleSystem)):
        rows, theta, stiffness, _ = draw(*shape)
        assert isinstance(newton_system(rows, theta, stiffness, rows), kind)


@pytest.mark.parametrize("kind", [FeatureSystem, SampleSystem])
def test_a_matrix_that_is_not_positive_definite_is_reported(kind):
    rows, _, stiffness, _ = draw(10, 10)
    with pytest.raises(NotPositiveDefinite):
        kind(rows, np.full(10, np.nan), stiffness, rows)


def test_what_was_left_out_wrongly_is_found():
    """Rows fixed at the wrong bound and features whose gradient exceeds the penalty are found."""
    rng = np.random.default_rng(3)
    n, p = 12, 6
    rows = np.column_stack([rng.normal(size=(n, p)), rng.choice([-1.0, 1.0], n)])
    whole = newton.SignedProblem(rows, np.ones(n), np.full(n, 0.4), np.full(p, 0.5), np.zeros(p + 1), 0.0)
    stay, at_cost, kept = np.arange(n) < 3, np.arange(n) > 7, np.arange(p) < 4
    left = newton.Reduction.none_of(whole).restricted(stay, at_cost, kept)
    weights, alpha = left.lifted(0.3 * rng.normal(size=5), np.full(3, 0.1))
    np.testing.assert_array_equal(alpha, [0.1] * 3 + [0.0] * 5 + [0.4] * 4)
    found_rows, found_features = left.contradicted(weights, alpha)
    short = 1.0 - rows @ weights
    wrong = [i for i in range(3, n) if (short[i] < 0 if at_cost[i] else short[i] > 0)]
    assert found_rows.tolist() == wrong
    assert {i for i in range(3, n) if at_cost[i]} - set(wrong)
    gradient = np.abs(rows[:, :p].T @ alpha)
    assert found_features.tolist() == np.flatnonzero(gradient > 0.5).tolist()
    assert 0 < len(found_features) < p


C = 0.2


@pytest.fixture
def solved():
    """A problem, and its weights and multipliers by the simplex method."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=80) > 0.3, 1.0, -1.0)
    rows = np.column_stack([X, np.ones(80)]) * y[:, None]
    model = L1SvmProgram(as_design(X), y, C=C).solve()
    problem = SignedProblem(rows, np.ones(80), np.full(80, C), np.ones(6), np.zeros(7))
    return problem, np.append(model.weights, model.bias), y * model.dual_coef, model.objective


def guess_from(problem, weights, alpha):
    short = problem.target - problem.rows @ weights
    active = np.flatnonzero(weights[:-1])
    return Guess(np.flatnonzero(np.abs(short) < 1e-9), short > 1e-9, active, np.sign(weights[active]))


def test_a_solution_is_proven(solved):
    problem, weights, alpha, objective = solved
    assert problem.proven_objective(weights, alpha) == pytest.approx(objective, rel=1e-9)


def test_nothing_else_is_proven(solved):
    problem, weights, alpha, _ = solved
    nearly = weights.copy()
    nearly[np.argmax(np.abs(weights[:-1]))] *= 1.0 + 1e-4
    assert problem.proven_objective(nearly, alpha) is None
    assert problem.proven_objective(weights, 0.99 * alpha) is None
    assert problem.proven_objective(weights, alpha + 1e-3 * C * (problem.rows[:, -1] > 0)) is None


def test_fixed_rows_count_by_their_gradient_and_loss(solved):
    problem, weights, alpha, objective = solved
    fixed = alpha == C
    left = SignedProblem(
        problem.rows[~fixed],
        problem.target[~fixed],
        problem.cost[~fixed],
        problem.penalty,
        C * problem.rows[fixed].sum(axis=0),
        C * float(problem.target[fixed].sum()),
    )
    assert fixed.any()
    assert left.proven_objective(weights, alpha[~fixed]) == pytest.approx(objective, rel=1e-9)


def test_the_right_guess_gives_the_solution(solved):
    problem, weights, alpha, _ = solved
    found = vertex(problem, guess_from(problem, weights, alpha), np.full(80, 0.5 * C))
    assert found is not None
    np.testing.assert_allclose(found[0], weights, atol=1e-9)
    np.testing.assert_allclose(found[1], alpha, atol=1e-9)


def test_wrong_guesses_are_seen(solved):
    problem, weights, alpha, _ = solved
    right = guess_from(problem, weights, alpha)
    wrong_signs = Guess(right.kink, right.at_cost, right.active, -right.signs)
    assert vertex(problem, wrong_signs, alpha) is None
    others = Guess(right.kink, ~right.at_cost, right.active, right.signs)
    assert vertex(problem, others, alpha) is None
    twice = Guess(np.repeat(right.kink[:1], right.kink.size), right.at_cost, right.active, right.signs)
    assert vertex(problem, twice, alpha) is None


def test_the_start_of_balanced_multipliers():
    problem = problem_of()
    balanced = balanced_multipliers(problem)
    sign = problem.rows[:, -1]
    assert sign @ balanced == pytest.approx(0.0, abs=1e-12)
    side = sign == np.sign(-(problem.cost @ sign))
    np.testing.assert_allclose(balanced[side], problem.cost[side])  # the lighter side is at its cost
    assert np.all(balanced <= problem.cost * (1 + 1e-12))
    one_sided = SignedProblem(
        np.abs(problem.rows), problem.target, problem.cost, problem.penalty, problem.gradient
    )
    np.testing.assert_array_equal(balanced_multipliers(one_sided), problem.cost)
    x, s = start_point(problem, balanced)
    n, p = problem.target.size, problem.penalty.size
    gradient = 0.5 * (balanced @ problem.rows)[:-1]
    share = max(0.3, 1.0 / max(np.max(np.abs(gradient) / problem.penalty), 1.0))
    np.testing.assert_allclose(s[:n], 0.5 * share * balanced)
    np.testing.assert_allclose(s[:n] + s[n : 2 * n], problem.cost)
    c, g = problem.penalty, share * gradient
    np.testing.assert_allclose(s[2 * n :], np.concatenate([np.maximum(c - g, c), np.maximum(c + g, c)]))
    direction = (balanced * problem.target) @ problem.rows[:, :-1] / c
    value = problem.rows[:, :-1] @ direction
    # 0.8 times the multiple of the direction that fits the targets best by weighted least squares.
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


def test_fewer_rows_and_features_and_back():
    problem = problem_of()
    whole = Reduction.none_of(problem)
    assert whole.coarse.dtype == np.float32
    stay, cost = np.arange(11) % 3 != 0, np.arange(11) % 6 == 0
    features = np.array([True, False, True, True])
    left = whole.restricted(stay, cost, features)
    np.testing.assert_array_equal(left.problem.rows, problem.rows[stay][:, [0, 2, 3, 4]])
    np.testing.assert_array_equal(left.coarse, left.problem.rows.astype(np.float32))
    np.testing.assert_allclose(left.problem.gradient, (problem.cost[cost] @ problem.rows[cost])[[0, 2, 3, 4]])
    assert left.problem.loss == pytest.approx(problem.cost[cost] @ problem.target[cost])
    assert (left.problem.penalty.tolist(), left.problem.cost.tolist()) == (
        problem.penalty[features].tolist(),
        problem.cost[stay].tolist(),
    )
    again = left.restricted(np.arange(7) > 1, np.arange(7) == 1, np.array([True, True, False]))
    assert again.features.tolist() == [0, 2]
    assert again.samples.tolist() == np.flatnonzero(stay)[2:].tolist()
    second = np.flatnonzero(stay)[1]
    wanted = np.where(cost | (np.arange(11) == second), problem.cost, 0.0)
    np.testing.assert_array_equal(again.fixed_alpha, wanted)
    assert again.problem.loss == pytest.approx(
        left.problem.loss + problem.cost[second] * problem.target[second]
    )
    weights, alpha = again.lifted(np.array([1.0, 2.0, 3.0]), np.full(5, 0.25))
    assert weights.tolist() == [1.0, 0.0, 2.0, 0.0, 3.0]
    wanted[again.samples] = 0.25
    np.testing.assert_array_equal(alpha, wanted)
    assert again.has(again.samples[:2], np.array([2]))
    assert not again.has(np.array([0]), np.array([2]))
    assert not again.has(again.samples[:2], np.array([1]))
    # A model has the same objective in both problems as long as the fixed rows are on their side of the kink.
    same = left.problem.objective(
        np.append(weights[[0, 2, 3]], 0.0),
        left.problem.target - left.problem.rows @ np.append(weights[[0, 2, 3]], 0.0),
    )
    w = np.append(weights[:-1], 0.0)
    short = problem.target - problem.rows @ w
    own = problem.penalty @ np.abs(w[:-1]) + problem.cost[stay] @ np.maximum(short[stay], 0.0)
    assert same == pytest.approx(own + problem.cost[cost] @ short[cost])


def test_a_vertex_meets_its_equations():
    problem = problem_of(12, 3, seed=5)
    method = _InteriorPoint(problem)
    model = method.run()
    assert model is not None
    weights, alpha = model.weights, model.alpha
    short = problem.target - problem.rows @ weights
    kink = np.flatnonzero(np.abs(short) < 1e-9)
    active = np.flatnonzero(weights[:-1])
    guess = Guess(kink, short > 1e-9, active, np.sign(weights[active]))
    found = vertex(problem, guess, alpha)
    np.testing.assert_allclose(found[0], weights, atol=1e-9)
    np.testing.assert_allclose(found[1], alpha, atol=1e-8)
    assert np.all((found[1] >= 0.0) & (found[1] <= problem.cost))
    other = Guess(kink, short > 1e-9, active, -np.sign(weights[active]))
    assert vertex(problem, other, alpha) is None
    assert problem.proven_objective(weights, alpha) == pytest.approx(model.objective)
    assert problem.proven_objective(1.01 * weights, alpha) is None
    assert problem.proven_objective(weights, 0.99 * alpha) is None
    unbalanced = alpha.copy()
    unbalanced[kink[0]] *= 1.01
    assert problem.proven_objective(weights, unbalanced) is None
