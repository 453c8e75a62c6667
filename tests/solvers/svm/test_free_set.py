"""Newton steps on the free variables and block pivoting, against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.problems import plain
from solvers.svm.duals import constrained_optimum, gains, problem_of, state_of
from zeronorm.solvers.svm import _free_set as free_set
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._dual import solve_svm_dual
from zeronorm.solvers.svm._free_set import pivot_free_set


@pytest.mark.parametrize("kind", ["hinge", "squared"])
@pytest.mark.parametrize("seed", range(3))
def test_a_newton_step_leads_to_the_optimum_of_the_free_variables(kind, seed):
    dual, K, Q, alpha, f = problem_of(kind, seed, n=11)
    free, change = constrained_optimum(dual, Q, alpha)
    found, step = plain(free_set.free_direction)(K, dual.ridge, *state_of(dual), alpha, f, free.size)
    assert found.tolist() == free.tolist()
    np.testing.assert_allclose(step, dual.sign[free] * change, atol=1e-9)
    length = 1.0
    for k, move in zip(free, change, strict=True):
        room = dual.upper[k] - alpha[k] if move > 0 else alpha[k]
        length = min(length, room / abs(move))
    wanted = alpha.copy()
    wanted[free] += length * change
    curvature = plain(free_set.free_step)(K, dual.ridge, *state_of(dual), alpha, f, free, step)
    d = np.zeros(dual.n_samples)
    np.add.at(d, dual.sample[free], step)
    assert curvature == pytest.approx(d @ Q @ d)
    np.testing.assert_allclose(alpha, wanted, atol=1e-9)
    np.testing.assert_allclose(f, Q @ dual.signed_sum(alpha), atol=1e-9)
    if length < 1.0:
        ends = (alpha[free] == 0.0) | (alpha[free] == dual.upper[free])
        assert ends.sum() == 1


def test_a_step_without_gain_or_without_end_is_not_taken():
    dual, K, Q, alpha, f = problem_of("squared", n=9)
    free = np.flatnonzero(alpha > 0.0)[:2]
    uphill = np.array([1.0, -1.0]) * -np.sign(gains(dual, f)[free[0]] - gains(dual, f)[free[1]])
    before = alpha.copy()
    d = np.zeros(9)
    d[free] = uphill
    found = plain(free_set.free_step)(K, dual.ridge, *state_of(dual), alpha, f, free, uphill)
    assert found == pytest.approx(d @ Q @ d)
    np.testing.assert_array_equal(alpha, before)
    flat = np.zeros((9, 9))
    grown = np.where(dual.sign > 0, 1.0, -1.0)[free]
    grown[0] = -grown[1] if grown[0] == grown[1] else grown[0]
    hard = BoxDual.classification(dual.sign, np.full(9, np.inf), False)
    opposite = np.array([np.flatnonzero(dual.sign > 0)[0], np.flatnonzero(dual.sign < 0)[0]])
    alpha = np.zeros(9)
    alpha[opposite] = 1.0
    step = np.array([1.0, -1.0])
    found = plain(free_set.free_step)(flat, hard.ridge, *state_of(hard), alpha, np.zeros(9), opposite, step)
    assert found == 0.0
    assert alpha[opposite].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("n", [1, 2, 4, 5, 6, 9])
def test_elimination_solves_a_symmetric_system(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n + 2))
    H, right = A @ A.T, rng.normal(size=n)
    triangle = np.column_stack([np.triu(H), right])
    step = np.zeros(n + 1)
    plain(free_set._solve_symmetric)(triangle, 0.0, step)
    np.testing.assert_allclose(step[1:], np.linalg.solve(H, right), rtol=1e-8)
    assert step[0] == pytest.approx(-step[1:].sum())
    raised = np.column_stack([np.triu(H), right])
    plain(free_set.eliminate)(raised, n, n + 1, 0.5)
    L = np.linalg.cholesky(H + 0.5 * np.eye(n))
    np.testing.assert_allclose(np.diagonal(raised), np.diagonal(L) ** 2, rtol=1e-9)
    np.testing.assert_allclose(
        raised[:, n], np.diagonal(L) * np.linalg.solve(L, right), rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize(
    ("C", "loss"), [(0.002, "hinge"), (0.005, "hinge"), (np.inf, "hinge"), (0.002, "squared_hinge")]
)
@pytest.mark.parametrize("shift", [0.0, 0.3])
@pytest.mark.parametrize("by_products", [False, True])
def test_block_pivoting_finds_the_same_optimum(C, loss, shift, by_products, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 1200)), np.where(np.arange(400) % 3, 1.0, -1.0)
    X = X - X.mean(axis=0) + shift
    K = X @ X.T
    problem = BoxDual.classification(y, np.full(400, C), loss == "squared_hinge")
    solved = solve_svm_dual(K, y, C=C, loss=loss, tol=1e-10)
    for guess, all_free in ((solved.alpha, False), (np.zeros(400), True)):
        if by_products:
            monkeypatch.setattr(free_set, "cho_factor", None)
        product = (lambda v: X @ (X.T @ v)) if by_products else None
        found = pivot_free_set(K, problem, guess, all_free, product)
        assert found is not None
        np.testing.assert_allclose(found, solved.alpha, atol=1e-8 * solved.alpha.max())
        assert abs(y @ found) <= 1e-10 * found.sum()


def test_block_pivoting_leaves_few_free_variables_to_pair_steps():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 900)), np.where(np.arange(300) % 3, 1.0, -1.0)
    solved = solve_svm_dual(X @ X.T, y, C=5e-4)
    assert 0 < np.count_nonzero((solved.alpha > 0.0) & (solved.alpha < 5e-4)) < 256
    problem = BoxDual.classification(y, np.full(300, 5e-4), False)
    assert pivot_free_set(X @ X.T, problem, solved.alpha) is None
    few = BoxDual.classification(y[:255], np.full(255, np.inf), False)
    assert pivot_free_set(X[:255] @ X[:255].T, few, np.zeros(255), all_free=True) is None


@pytest.mark.parametrize(
    ("p", "C", "loss"), [(900, 0.002, "squared_hinge"), (900, 1.0, "hinge"), (20, 1.0, "hinge")]
)
def test_a_guess_that_all_samples_are_free_changes_no_solution(p, C, loss):
    """A right guess needs no pair step; with fewer features than samples, the samples are linearly dependent."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, p)), np.where(np.arange(300) % 3, 1.0, -1.0)
    expected = solve_svm_dual(X @ X.T, y, C=C, loss=loss, tol=1e-9)
    found = solve_svm_dual(X @ X.T, y, C=C, loss=loss, tol=1e-9, all_free=True)
    np.testing.assert_allclose(found.alpha, expected.alpha, atol=1e-7 * expected.alpha.max())
    assert expected.n_iter > 0
    assert found.n_iter == (0 if p == 900 else expected.n_iter)


def test_block_pivoting_gives_up_where_samples_depend_on_each_other():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 20)), np.where(np.arange(300) % 2, 1.0, -1.0)
    problem = BoxDual.classification(y, np.full(300, 1.0), False)
    for product in (None, lambda v: X @ (X.T @ v)):
        assert pivot_free_set(X @ X.T, problem, np.zeros(300), all_free=True, product=product) is None


def test_the_optimum_for_given_sets_has_no_gain_left():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(9, 20)) + 3.0
    K = X @ X.T
    for squared in (False, True):
        problem = BoxDual.classification(
            np.where(np.arange(9) % 2, 1.0, -1.0), rng.uniform(0.5, 1.0, 9), squared
        )
        free, at_upper = np.arange(9) < 6, (np.arange(9) == 7) & (not squared)
        for product in (None, lambda V: K @ V):
            v, gain = free_set._optimum_of(K, problem, free, at_upper, product)
            assert v.sum() == pytest.approx(0.0, abs=1e-8)
            np.testing.assert_allclose(gain[free], 0.0, atol=1e-6)
            assert v[8] == 0.0
            if not squared:
                assert v[7] == problem.sign[7] * problem.upper[7]
            f = K @ v + problem.ridge * v
            bias = np.mean((problem.sign - f)[free])
            np.testing.assert_allclose(gain, problem.sign * (problem.sign - f - bias), atol=1e-6)
    assert free_set._optimum_of(K, problem, np.zeros(9, dtype=bool), at_upper) is None


def test_systems_by_a_factor_and_by_gradients():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(8, 12))
    K, chosen = A @ A.T, np.array([0, 2, 3, 7])
    ridge, right = rng.uniform(0.1, 1.0, 4), rng.normal(size=(4, 2))
    system = K[np.ix_(chosen, chosen)] + 0.7 + np.diag(ridge)
    exact = np.linalg.solve(system, right)
    np.testing.assert_allclose(free_set._solve_by_factor(K, chosen, ridge, 0.7, right), exact, rtol=1e-9)
    found = free_set._solve_by_gradients(lambda V: K @ V, 8, chosen, ridge, 0.7, right)
    np.testing.assert_allclose(found, exact, rtol=1e-7)
    every = np.arange(8)
    whole = free_set._solve_by_factor(K, every, np.zeros(8), 0.7, np.eye(8))
    np.testing.assert_allclose(whole, np.linalg.inv(K + 0.7), rtol=1e-7)
    assert np.array_equal(K, A @ A.T)  # which it has not changed
    assert free_set._solve_by_factor(np.ones((3, 3)), every[:3], np.zeros(3), 0.0, np.eye(3)) is None
    assert free_set._solve_by_factor(-np.eye(3), every[:3], np.zeros(3), 0.0, np.eye(3)) is None
    zero = free_set._solve_by_gradients(lambda V: K @ V, 8, chosen, ridge, 0.7, np.zeros((4, 2)))
    assert zero.tolist() == np.zeros((4, 2)).tolist()
