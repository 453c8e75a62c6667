"""The dual of SVMs with an unpenalised bias by its definition, and the dual with box constraints only."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from solvers.problems import classification, plain
from zeronorm.solvers.svm import _box_dual as box_dual
from zeronorm.solvers.svm._box_dual import BoxDual, add_free, drop_free, solve_box


def dual_of(kind, squared, n=9, seed=0):
    rng = np.random.default_rng(seed)
    cost = rng.uniform(0.5, 2.0, n)
    cost[2] = 0.0
    if kind == "classes":
        return BoxDual.classification(np.where(np.arange(n) % 3, 1.0, -1.0), cost, squared)
    return BoxDual.regression(rng.normal(size=n), cost, 0.3, squared)


KINDS = [(kind, squared) for kind in ("classes", "target") for squared in (False, True)]


@pytest.mark.parametrize(("kind", "squared"), KINDS)
def test_losses_and_the_gap_by_their_definitions(kind, squared):
    """The gap is the primal minus the dual objective, at any balanced multipliers."""
    rng = np.random.default_rng(1)
    problem = dual_of(kind, squared)
    X, cost = rng.normal(size=(9, 4)), dual_of(kind, False).upper[:9]
    alpha = problem.feasible(rng.uniform(0.0, 1.0, problem.sign.size) * np.minimum(problem.upper, 1.0))
    v = np.zeros(9)
    np.add.at(v, problem.sample, problem.sign * alpha)
    np.testing.assert_allclose(problem.signed_sum(alpha), v)
    assert v.sum() == pytest.approx(0.0, abs=1e-12)
    decision = X @ X.T @ v + 0.2
    if kind == "classes":
        excess = np.maximum(0.0, 1.0 - problem.sign * decision)
    else:
        y = 0.3 - problem.linear[:9]
        excess = np.maximum(0.0, np.abs(y - decision) - 0.3)
    loss = cost @ (0.5 * excess**2 if squared else excess)
    assert problem.loss(decision) == pytest.approx(loss)
    f = X @ X.T @ v + problem.ridge * v
    dual = -problem.linear @ alpha - 0.5 * v @ f
    assert problem.objective(alpha, f) == pytest.approx(dual)
    if kind == "classes" or not squared:  # the two variables of a target share their square
        assert problem.gap(alpha, f, 0.2) == pytest.approx(0.5 * v @ X @ X.T @ v + loss - dual)


def test_a_start_is_made_to_fit():
    problem = dual_of("classes", False)
    plus, minus = problem.sign > 0, problem.sign < 0
    for scale in (0.1, 10.0):
        given = scale * np.random.default_rng(2).uniform(0.0, 1.0, 9)
        found = problem.feasible(given)
        inside = np.clip(given, 0.0, problem.upper)
        assert found[plus].sum() == pytest.approx(found[minus].sum())
        total = min(inside[plus].sum(), inside[minus].sum())
        np.testing.assert_allclose(found[plus], inside[plus] * total / inside[plus].sum())
        np.testing.assert_allclose(found[minus], inside[minus] * total / inside[minus].sum())


def test_of_two_multipliers_of_a_target_one_is_zero():
    problem = dual_of("target", False)
    alpha = np.random.default_rng(3).uniform(0.0, 1.0, 18)
    found = problem.without_overlap(alpha)
    np.testing.assert_allclose(problem.signed_sum(found), problem.signed_sum(alpha))
    np.testing.assert_array_equal(np.minimum(found[:9], found[9:]), np.zeros(9))
    classes = dual_of("classes", False)
    np.testing.assert_array_equal(classes.without_overlap(alpha[:9]), alpha[:9])


def test_the_bias_is_that_of_the_free_or_the_midpoint_of_its_interval():
    """A sample at a bound only bounds the bias from one side."""
    y = np.array([1.0, 1.0, -1.0, -1.0])
    problem = BoxDual.classification(y, np.ones(4), False)
    f = np.array([0.4, -0.2, 0.3, -0.5])
    own = y - f  # the bias that puts a sample on its margin
    free = np.array([0.5, 0.0, 0.5, 1.0])
    assert problem.bias(free, f) == pytest.approx(np.mean(own[[0, 2]]))
    alpha = np.array([0.0, 1.0, 1.0, 0.0])  # at zero beyond the margin, at C within it
    lower, upper = [own[0], own[2]], [own[1], own[3]]
    assert problem.bias(alpha, f) == pytest.approx((max(lower) + min(upper)) / 2)
    one_class = BoxDual.classification(np.ones(2), np.ones(2), False)
    assert one_class.bias(np.zeros(2), np.array([0.4, -0.2])) == pytest.approx(
        1.2
    )  # all that is known is a limit


def test_only_infinite_costs_without_squares_are_hard():
    cost = np.array([1.0, np.inf, 0.0])
    y = np.array([1.0, -1.0, 1.0])
    assert BoxDual.classification(y, cost, False).hard.tolist() == [False, True, False]
    assert BoxDual.classification(y, np.array([1.0, 2.0, 0.0]), True).hard.tolist() == [False] * 3
    part = BoxDual.classification(y, cost, False).restricted(np.array([True, False, True]))
    assert (part.sign.tolist(), part.upper.tolist(), part.n_samples) == ([1.0, 1.0], [1.0, 0.0], 3)


def test_the_steps_of_an_exact_solution_in_a_box():
    rng = np.random.default_rng(4)
    signed, C = rng.normal(size=(7, 5)), np.full(7, 2.0)
    free = np.array([4, 1, 6, 0, 0, 0, 0, 0, 0])
    H = signed[free[:3]] @ signed[free[:3]].T
    inverse, along, across = np.zeros((9, 9)), np.zeros(9), np.zeros(9)
    inverse[:3, :3] = np.linalg.inv(H)
    x = signed[2]
    curvature = plain(box_dual.set_direction)(signed, free, inverse, 3, x, across, along)
    cross = signed[free[:3]] @ x
    np.testing.assert_allclose(along[:3], -np.linalg.solve(H, cross))
    assert curvature == pytest.approx(x @ x - cross @ np.linalg.solve(H, cross))
    grown, kept = inverse.copy(), free.copy()
    assert plain(box_dual.add_free)(kept, grown, 3, 2, along, curvature) == 4
    larger = signed[kept[:4]] @ signed[kept[:4]].T
    assert kept[:4].tolist() == [4, 1, 6, 2]
    np.testing.assert_allclose(grown[:4, :4], np.linalg.inv(larger))
    for k in range(4):
        smaller, rest = grown.copy(), kept.copy()
        assert plain(box_dual.drop_free)(rest, smaller, 4, k) == 3
        assert set(rest[:3].tolist()) == set(kept[:4].tolist()) - {int(kept[k])}
        np.testing.assert_allclose(smaller[:3, :3], np.linalg.inv(signed[rest[:3]] @ signed[rest[:3]].T))
    alpha = np.array([0.0, 1.0, 0.5, 0.0, 0.2, 0.0, 1.5])
    w = signed.T @ alpha
    moved = alpha.copy()
    plain(box_dual.move)(signed, moved, w, free, 3, 2, 0.1, along)
    wanted = alpha.copy()
    wanted[2] += 0.1
    wanted[free[:3]] += 0.1 * along[:3]
    np.testing.assert_allclose(moved, wanted)
    np.testing.assert_allclose(w, signed.T @ wanted)
    for direction in (1.0, -1.0):
        length, blocking = plain(box_dual.first_bound)(C, alpha, free, 3, 2, direction, along)
        speed = direction * along[:3]
        room = np.where(speed > 0, C[free[:3]] - alpha[free[:3]], alpha[free[:3]]) / np.abs(speed)
        own = 1.5 if direction > 0 else 0.5
        assert length == pytest.approx(min(own, room.min()))
        assert blocking == (-1 if own <= room.min() else np.argmin(room))


def test_a_pass_in_the_box_minimises_over_each_variable():
    rng = np.random.default_rng(5)
    signed, C = rng.normal(size=(6, 3)), np.array([0.2, 1.0, 1.0, 0.05, 1.0, 0.7])
    signed[5] = 0.0  # a sample of zeros: its variable goes to C
    alpha = np.array([0.1, 0.0, 0.5, 0.0, 1.0, 0.0])
    w = signed.T @ alpha
    mirror = alpha.copy()
    plain(box_dual.pass_over)(np.arange(6), signed, C, alpha, w)
    for i in range(5):
        slope = signed[i] @ (signed.T @ mirror) - 1.0
        mirror[i] = np.clip(mirror[i] - slope / (signed[i] @ signed[i]), 0.0, C[i])
    mirror[5] = 0.7
    np.testing.assert_allclose(alpha, mirror)
    np.testing.assert_allclose(w, signed.T @ mirror)


def test_without_any_limit_the_bias_is_zero():
    problem = BoxDual.classification(np.array([1.0, -1.0]), np.zeros(2), False)
    assert problem.bias(np.zeros(2), np.array([0.3, 0.1])) == 0.0


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("case", ["tall", "wide", "copies", "empty rows"])
def test_the_dual_in_a_box_matches_a_general_solver(case, C):
    X, y = classification(*((20, 30) if case == "wide" else (30, 4)))
    if case == "copies":
        X[15:], y[15:] = X[:15], y[:15]
    if case == "empty rows":
        X[::7] = 0.0
    cost, alpha = np.full(len(y), C), np.zeros(len(y))
    assert solve_box(X, y, cost, alpha)
    signed = X * y[:, None]

    def value(a):
        return 0.5 * np.sum((signed.T @ a) ** 2) - a.sum(), signed @ (signed.T @ a) - 1.0

    found = minimize(value, alpha * 0.0, jac=True, bounds=[(0.0, C)] * len(y), method="L-BFGS-B",
                     options={"maxiter": 10**4, "ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
    gradient = value(alpha)[1]
    assert alpha.min() >= 0.0
    assert alpha.max() <= C
    assert value(alpha)[0] <= found.fun + 1e-9 * abs(found.fun)
    assert gradient[alpha < C].min(initial=0.0) >= -1e-9
    assert gradient[alpha > 0.0].max(initial=0.0) <= 1e-9


def test_a_warm_start_in_the_box_ends_where_a_cold_one_does():
    X, y = classification(60, 6)
    cost, cold, warm = np.ones(60), np.zeros(60), np.zeros(60)
    assert solve_box(X, y, cost, warm)
    assert solve_box(X[:, :5], y, cost, warm)
    assert solve_box(X[:, :5], y, cost, cold)
    np.testing.assert_allclose((y * warm) @ X[:, :5], (y * cold) @ X[:, :5], atol=1e-8)


def test_the_inverse_of_the_free_samples_follows_those_that_come_and_go():
    """Samples 3, 1, 4, 0, 2 become free, then the second and the last of them are removed."""
    rng = np.random.default_rng(0)
    H = rng.normal(size=(5, 7))
    H = H @ H.T
    free, inverse, m = np.full(5, -1, dtype=np.int64), np.zeros((5, 5)), 0

    def is_inverse():
        among = free[:m]
        np.testing.assert_allclose(inverse[:m, :m], np.linalg.inv(H[np.ix_(among, among)]), rtol=1e-8)

    for i in (3, 1, 4, 0, 2):
        along = -inverse[:m, :m] @ H[free[:m], i]
        m = add_free(free, inverse, m, i, along, H[i, i] + H[i, free[:m]] @ along)
        is_inverse()
    for k, left in ((1, [3, 2, 4, 0]), (3, [3, 2, 4])):
        m = drop_free(free, inverse, m, k)
        assert free[:m].tolist() == left
        is_inverse()


def test_free_samples_that_depend_on_each_other(monkeypatch):
    """A singular inverse is not used, and a failure to find the solution is reported."""
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.normal(size=(12, 2)), np.ones(12)])
    y = np.where(Z[:, 0] + 0.5 * rng.normal(size=12) > 0, 1.0, -1.0)
    C = np.full(12, 0.7)
    signed = Z * y[:, None]

    def gradient(alpha):
        return signed @ (signed.T @ alpha) - 1.0

    alpha = np.zeros(12)
    assert box_dual.solve_box(Z, y, C, alpha)
    g = gradient(alpha)
    assert np.all(np.where(alpha <= 0, g >= -1e-9, np.where(alpha >= C, g <= 1e-9, np.abs(g) <= 1e-9)))
    exact = alpha.copy()

    def singular(matrix):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "inv", singular)
    again = np.zeros(12)
    assert box_dual.solve_box(Z, y, C, again)
    np.testing.assert_allclose(signed.T @ again, signed.T @ exact, atol=1e-8)
    monkeypatch.undo()
    monkeypatch.setattr(box_dual, "ROUNDS", 1)
    monkeypatch.setattr(box_dual, "PASSES_FROM_ZERO", 0)
    assert not box_dual.solve_box(Z, y, C, np.zeros(12))
    monkeypatch.undo()
    # One Newton step corrects the rounding errors of the free variables.
    wrong = box_dual.settle

    def inexact(signed, C, alpha, w, free, inverse, tol):
        found = wrong(signed, C, alpha, w, free, inverse, tol)
        alpha[found] += 1e-7
        return found

    monkeypatch.setattr(box_dual, "settle", inexact)
    monkeypatch.setattr(box_dual, "PASSES_FROM_ZERO", 1)
    repaired = np.zeros(12)
    assert box_dual.solve_box(Z, y, C, repaired)
    np.testing.assert_allclose(signed.T @ repaired, signed.T @ exact, atol=1e-8)


def test_coordinate_descent_comes_first_and_is_shorter_near_the_solution(monkeypatch):
    Z, y = classification(12, 3)
    seen, own = [], box_dual.descend
    monkeypatch.setattr(box_dual, "descend", lambda *a: seen.append((a[2].copy(), a[4])) or own(*a))
    for start in (0.0, 0.1):
        assert box_dual.solve_box(Z, y, np.full(12, 0.7), np.full(12, start))
        np.testing.assert_array_equal(seen[-1][0], start)
    assert 0 < seen[1][1] < seen[0][1]


def test_a_start_balanced_up_to_rounding_keeps_its_variables_at_their_bounds():
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    problem = BoxDual.classification(y, np.full(30, 0.1), squared=False)
    alpha = np.full(30, 0.1)
    alpha[0] -= 1e-16
    assert np.count_nonzero(problem.feasible(alpha) == 0.1) == 29
    alpha[0] = 0.05
    assert (problem.feasible(alpha) * y).sum() == pytest.approx(0.0, abs=1e-15)
