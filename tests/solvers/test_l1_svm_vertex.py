"""The exact end of the interior-point method: what proves a solution, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm.design import as_design
from zeronorm.solvers.l1_svm.newton import Guess, SignedProblem, vertex
from zeronorm.solvers.l1_svm.program import L1SvmProgram

C = 0.2


@pytest.fixture
def solved():
    """A problem, and its weights and multipliers by the simplex method."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=80) > 0.3, 1.0, -1.0)
    rows = np.column_stack([X, np.ones(80)]) * y[:, None]
    machine = L1SvmProgram(as_design(X), y, C=C).solve()
    problem = SignedProblem(rows, np.ones(80), np.full(80, C), np.ones(6), np.zeros(7))
    return problem, np.append(machine.weights, machine.bias), y * machine.dual_coef, machine.objective


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


def test_fixed_rows_count_by_their_pull_and_loss(solved):
    problem, weights, alpha, objective = solved
    fixed = alpha == C
    left = SignedProblem(
        problem.rows[~fixed],
        problem.target[~fixed],
        problem.price[~fixed],
        problem.cost,
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
    wrong_signs = Guess(right.kink, right.at_price, right.active, -right.signs)
    assert vertex(problem, wrong_signs, alpha) is None
    others = Guess(right.kink, ~right.at_price, right.active, right.signs)
    assert vertex(problem, others, alpha) is None
    twice = Guess(np.repeat(right.kink[:1], right.kink.size), right.at_price, right.active, right.signs)
    assert vertex(problem, twice, alpha) is None
