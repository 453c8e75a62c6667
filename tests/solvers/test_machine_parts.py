"""Parts of linear, joint and boxed machines by their definitions: slopes, lengths, steps and certificates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from solvers.problems import plain
from zeronorm.design import as_design
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm import box_dual, free_set, joint_multiclass, linear
from zeronorm.solvers.svm.box_dual import BoxDual
from zeronorm.solvers.svm.linear import LinearSvm, OneVsRest, _Multipliers, prefers_gram

# -- The joint machine of several classes --

N, Q = 10, 3


def joint(loss="hinge", seed=0, C=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    price = rng.uniform(0.5, 2.0, N) if C is None else C
    state = joint_multiclass._State(X @ X.T, np.arange(N) % Q, Q, price, loss)
    state.alpha = np.where(
        state.own, 0.0, rng.uniform(0.1, 0.9, (N, Q)) * np.minimum(state.upper, 1.0)[:, None]
    )
    state.alpha[0, 1] = 0.0
    if np.isfinite(state.upper[1]):
        state.alpha[1, 2] = state.upper[1]
    state.bias = rng.normal(size=Q)
    state._refresh()
    return X, state


def dual_with_biases(state, alpha):
    """The dual objective, with the biases as prices of the balance."""
    coefficients = np.where(state.own, alpha.sum(axis=1, keepdims=True), -alpha)
    value = alpha.sum() - 0.5 * np.sum(coefficients * (state.K @ coefficients))
    return value - 0.5 * np.sum(state.ridge[:, None] * alpha**2) - state.bias @ coefficients.sum(axis=0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_slope_is_that_of_the_dual(loss):
    X, state = joint(loss)
    h, slope = 1e-6, state.slope()
    for i, m in zip(*np.nonzero(~state.own), strict=True):
        up, down = state.alpha.copy(), state.alpha.copy()
        up[i, m] += h
        down[i, m] -= h
        wanted = (dual_with_biases(state, up) - dual_with_biases(state, down)) / (2 * h)
        assert slope[i, m] == pytest.approx(wanted, abs=1e-7)
    np.testing.assert_allclose(state.f, (X @ X.T @ state.coefficients()).T)
    np.testing.assert_allclose(state.balance, state.coefficients().sum(axis=0))
    violations = [state.stiffness * np.abs(state.balance).max()]
    for i, m in zip(*np.nonzero(~state.own), strict=True):
        violations.append(slope[i, m] if state.alpha[i, m] < state.upper[i] else 0.0)
        violations.append(-slope[i, m] if state.alpha[i, m] > 0.0 else 0.0)
    assert state.violation() == pytest.approx(max(violations))
    state.balance[:] = 0.0
    assert state.violation() == pytest.approx(max(violations[1:]))
    assert state.stiffness == pytest.approx(np.trace(X @ X.T) / N)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_joint_newton_step_balances_the_classes_and_zeroes_the_slopes(loss):
    _, state = joint(loss)
    free = ~state.own & (state.alpha > 0.0) & (state.alpha < state.upper[:, None])
    step, bias_step = state._newton_direction(free, int(free.sum()))
    before, bias = state.alpha.copy(), state.bias.copy()
    ceiling = np.broadcast_to(state.upper[:, None], free.shape)[free]
    room = np.where(step > 0, ceiling - before[free], before[free]) / np.abs(step)
    length = min(1.0, room.min())
    state.newton_step()
    np.testing.assert_allclose(state.alpha[free], before[free] + length * step, atol=1e-10)
    np.testing.assert_array_equal(state.alpha[~free], before[~free])
    moved = bias + length * bias_step
    np.testing.assert_allclose(state.bias, moved - moved.mean(), atol=1e-12)
    # The whole step solves for the free ones.
    whole = joint(loss)[1]
    whole.alpha[free] += step
    whole.bias = whole.bias + bias_step
    whole._refresh()
    if loss == "squared_hinge":
        np.testing.assert_allclose(whole.slope()[free], 0.0, atol=1e-8)
        np.testing.assert_allclose(whole.balance, 0.0, atol=1e-8)


def priced_dual(state, i, m, a):
    """The dual with another value of one variable and the square of the imbalance taken off."""
    trial = state.alpha.copy()
    trial[i, m] = a
    spread = np.where(state.own, trial.sum(axis=1, keepdims=True), -trial).sum(axis=0)
    return dual_with_biases(state, trial) - 0.5 * state.stiffness * spread @ spread


def test_a_sweep_goes_to_the_optimum_of_one_variable_after_the_other():
    _, state = joint("squared_hinge")
    n_moved = 0
    for everywhere in (True, False):
        alpha, f, balance = state.alpha.copy(), state.f.copy(), state.balance.copy()
        arguments = (state.K, state.codes, state.ridge, state.upper)
        worst = plain(joint_multiclass._sweep)(
            *arguments, alpha, f, balance, state.bias, state.stiffness, everywhere
        )
        mirror = joint("squared_hinge")[1]
        largest = 0.0
        for i in range(N):
            for m in range(Q):
                if m == mirror.codes[i] or not (everywhere or mirror.alpha[i, m] > 0.0):
                    continue

                old, h = mirror.alpha[i, m], 1e-3
                below, here, above = (priced_dual(mirror, i, m, a) for a in (old - h, old, old + h))
                slope, bend = (above - below) / (2 * h), (above - 2 * here + below) / h**2
                new = max(old - slope / bend, 0.0)
                if new != old:
                    largest, n_moved = max(largest, abs(slope)), n_moved + 1
                mirror.alpha[i, m] = new
        np.testing.assert_allclose(alpha, mirror.alpha, atol=1e-6)
        assert worst == pytest.approx(largest, rel=1e-5)
        mirror._refresh()
        np.testing.assert_allclose(f, mirror.f, atol=1e-5)
        np.testing.assert_allclose(balance, mirror.balance, atol=1e-5)
    assert n_moved > N


def test_ascent_prices_the_balance_and_keeps_the_sum_of_the_biases_at_zero():
    _, state = joint()
    bias = state.bias.copy()
    state.ascend(1e-3)
    moved = bias + state.stiffness * state.balance
    np.testing.assert_allclose(state.bias, moved - moved.mean(), atol=1e-12)
    np.testing.assert_allclose(state.f.T, state.K @ state.coefficients(), atol=1e-12)


def test_a_joint_start_is_cut_to_the_prices():
    _, state = joint()
    found = state.result(4, Status.CONVERGED)
    assert (found.n_iter, found.status) == (4, Status.CONVERGED)
    other = joint(C=np.full(N, 0.3))[1]
    other.start_from(found)
    np.testing.assert_array_equal(other.alpha, np.minimum(found.alpha, 0.3))
    np.testing.assert_array_equal(other.bias, found.bias)
    assert other.bias is not found.bias
    np.testing.assert_allclose(other.f.T, other.K @ other.coefficients())


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_joint_objectives_by_their_definitions(loss):
    X, state = joint(loss)
    found = state.result(1, Status.CONVERGED)
    W = X.T @ found.dual_coef
    decision = X @ W + state.bias
    own = decision[np.arange(N), state.codes]
    excess = np.where(state.own, 0.0, np.maximum(0.0, 1.0 - (own[:, None] - decision)))
    paid = state.price[:, None] * (excess if loss == "hinge" else 0.5 * excess**2)
    assert found.primal_objective == pytest.approx(0.5 * np.sum(W**2) + paid.sum())
    dual = found.alpha.sum() - 0.5 * np.sum(W**2)
    dual -= 0.5 * np.sum(found.alpha**2 / state.price[:, None]) if loss == "squared_hinge" else 0.0
    assert found.objective == pytest.approx(dual)
    assert found.violation == state.violation()


def test_a_joint_machine_with_hard_margins_is_enlarged():
    X = np.array([[2.0, 0.0], [0.0, 2.0], [-2.0, -2.0]])
    state = joint_multiclass._State(X @ X.T, np.arange(3), 3, np.full(3, np.inf), "hinge")
    assert state.hard.all()
    state.alpha = np.where(state.own, 0.0, 0.05)
    state._refresh()
    too_large = state.alpha.copy()
    assert not state.grows_without_limit(1e-6)
    np.testing.assert_array_equal(state.alpha, too_large)  # they do not shrink
    state.alpha = np.where(state.own, 0.0, 0.02)
    state._refresh()
    W = X.T @ state.coefficients()
    decision = X @ W
    margins = (np.diagonal(decision)[:, None] - decision)[~state.own]
    assert 0.0 < margins.min() < 1.0
    found = state._primal(np.sum(W**2))
    assert found == pytest.approx(0.5 * np.sum(W**2) / margins.min() ** 2)
    state.bias = np.array([50.0, 0.0, 0.0])
    assert state._primal(1.0) == np.inf
    state.bias = np.zeros(3)
    # All multipliers grow to the best multiple: gain over curvature.
    total, norm = state.alpha.sum(), np.sum(W**2)
    wanted = state.alpha * (total / norm)
    assert not state.grows_without_limit(1e-6)
    np.testing.assert_allclose(state.alpha, wanted)
    np.testing.assert_allclose(state.f.T, state.K @ state.coefficients())
    assert state.grows_without_limit(1e-18)
    state.alpha[:] = 0.0
    assert not state.grows_without_limit(1e-18)


# -- Multipliers of tall sparse machines --


def multipliers(kind="classes"):
    rng = np.random.default_rng(1)
    X, price = rng.normal(size=(12, 3)), rng.uniform(0.5, 2.0, 12)
    if kind == "classes":
        problem = BoxDual.classification(np.where(np.arange(12) % 2, 1.0, -1.0), price, False)
    else:
        problem = BoxDual.regression(rng.normal(size=12), price, 0.2, False)
    method = _Multipliers(as_design(X), problem)
    method.sigma = 0.7
    return X, problem, method


def envelope(X, problem, method, weights, bias):
    """The loss u max(0, r), smoothed: the best of a slope between 0 and u and its distance from the multiplier."""
    r = problem.residual(X @ weights + bias)
    slope = np.clip(method.alpha + method.sigma * r, 0.0, problem.upper)
    smooth = slope * r - (slope - method.alpha) ** 2 / (2 * method.sigma)
    return 0.5 * weights @ weights + smooth.sum()


@pytest.mark.parametrize("kind", ["classes", "target"])
def test_multipliers_begin_in_the_middle(kind):
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
    assert 0 < n_steps < linear.MOST_STEPS
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
    assert method.sigma == linear.GROWTH * sigma
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
    assert linear.solve_by_multipliers(as_design(X), problem).n_iter == 9


def test_where_the_gram_matrix_is_the_cheaper_way():
    assert prefers_gram((100, 100))
    n = 20 * 100 * 100 // 200
    assert prefers_gram((n, 100))
    assert not prefers_gram((n + 1, 100))
    n = 4 * 100 * 100 // 200
    assert prefers_gram((n, 100), regression=True)
    assert not prefers_gram((n + 1, 100), regression=True)
    assert not prefers_gram((50, 2), 8 * 50 * 50 - 1)  # by memory first
    assert prefers_gram((50, 200), 8 * 50 * 50)
    assert prefers_gram((3, 50), 16 * 51**2 - 1)
    with pytest.raises(ValueError, match="memory_budget"):
        prefers_gram((50, 50), 8 * 50 * 50 - 1)


def test_machines_of_all_classes_together():
    def machine(k, status):
        return LinearSvm(np.full(2, k), float(k), np.zeros(3), np.full(3, k), 0.0, 0.1 * k, 10 + k, status)

    all_of_them = OneVsRest(tuple(machine(k, s) for k, s in ((2, Status.CONVERGED), (1, Status.STALLED))))
    assert all_of_them.weights.tolist() == [[2, 2], [1, 1]]
    assert all_of_them.biases.tolist() == [2.0, 1.0]
    assert all_of_them.dual_coef.tolist() == [[2, 1]] * 3
    assert all_of_them.gap == pytest.approx(0.3)
    assert (all_of_them.n_iter, all_of_them.status, all_of_them.converged) == (12, Status.STALLED, False)


# -- Block pivoting --


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


# -- The box without a balance --


def test_the_parts_of_an_exact_solution_in_a_box():
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


def test_a_sweep_in_the_box_minimises_over_each_variable():
    rng = np.random.default_rng(5)
    signed, C = rng.normal(size=(6, 3)), np.array([0.2, 1.0, 1.0, 0.05, 1.0, 0.7])
    signed[5] = 0.0  # a sample of zeros: nothing stops it below its price
    alpha = np.array([0.1, 0.0, 0.5, 0.0, 1.0, 0.0])
    w = signed.T @ alpha
    mirror = alpha.copy()
    plain(box_dual.sweep_over)(np.arange(6), signed, C, alpha, w)
    for i in range(5):
        slope = signed[i] @ (signed.T @ mirror) - 1.0
        mirror[i] = np.clip(mirror[i] - slope / (signed[i] @ signed[i]), 0.0, C[i])
    mirror[5] = 0.7
    np.testing.assert_allclose(alpha, mirror)
    np.testing.assert_allclose(w, signed.T @ mirror)


def test_without_any_limit_the_bias_is_zero():
    problem = BoxDual.classification(np.array([1.0, -1.0]), np.zeros(2), False)
    assert problem.bias(np.zeros(2), np.array([0.3, 0.1])) == 0.0
