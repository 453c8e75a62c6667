"""The Weston-Watkins SVM against a QP solver, the two-class SVM and its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.multiclass_qp import primal_weston_watkins
from solvers.problems import at_most, classification, plain
from zeronorm.solvers._status import Status
from zeronorm.solvers.svm import _joint_multiclass as joint_multiclass
from zeronorm.solvers.svm._dual import solve_svm_dual
from zeronorm.solvers.svm._joint_multiclass import ascend, solve_weston_watkins

LOSSES = ("hinge", "squared_hinge")


def classes(n=30, p=6, q=3, *, shift=1.5, seed=0):
    """q overlapping classes, shifted in two features."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % q
    X = rng.normal(size=(n, p))
    X[:, 0] += shift * codes
    X[:, 1] += shift * (codes == 1)
    return X, codes


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("shape", [(24, 40, 3), (32, 4, 4)])
def test_matches_a_qp_solver(shape, C, loss):
    X, codes = classes(*shape)
    q = shape[2]
    found = solve_weston_watkins(X @ X.T, codes, q, C=C, loss=loss)
    weights, objective = primal_weston_watkins(X, codes, q, C, loss)
    assert found.converged
    assert found.objective == pytest.approx(objective, rel=1e-6)
    assert found.gap <= 1e-6 * objective
    np.testing.assert_allclose(X.T @ found.dual_coef, weights, atol=1e-4 * np.abs(weights).max())


@pytest.mark.parametrize("loss", LOSSES)
def test_two_classes_are_the_two_class_model(loss):
    """w1 = -w2 = w/2 turns ½Σ|w_k|² into ¼|w|²: the two-class SVM with cost 2C."""
    X, codes = classes(50, 8, 2, shift=0.8)
    K = X @ X.T
    joint = solve_weston_watkins(K, codes, 2, C=0.5, loss=loss, tol=1e-9)
    single = solve_svm_dual(K, np.where(codes == 1, 1.0, -1.0), C=1.0, loss=loss, tol=1e-9)
    np.testing.assert_allclose(
        X.T @ (joint.dual_coef[:, 1] - joint.dual_coef[:, 0]), X.T @ single.dual_coef, atol=1e-7
    )
    assert joint.bias[1] - joint.bias[0] == pytest.approx(single.bias, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_optimality_conditions(loss):
    X, codes = classes(60, 5, 4)
    C = 2.0
    found = solve_weston_watkins(X @ X.T, codes, 4, C=C, loss=loss)
    decision = X @ (X.T @ found.dual_coef) + found.bias
    own = codes[:, None] == np.arange(4)
    short = 1.0 - (decision[own][:, None] - decision)
    if loss == "squared_hinge":
        short -= found.alpha / C
        assert np.all(found.alpha[~own] >= 0.0)
    else:
        assert found.alpha.max() <= C
        assert np.all(short[(found.alpha == C) & ~own] >= -1e-6)
    inside = (found.alpha > 0.0) & ((found.alpha < C) | (loss == "squared_hinge")) & ~own
    assert inside.any()
    assert np.abs(short[inside]).max() <= 1e-6
    assert short[(found.alpha == 0.0) & ~own].max() <= 1e-6
    np.testing.assert_allclose(found.dual_coef.sum(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(found.dual_coef.sum(axis=1), 0.0, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_hard_margin(loss):
    X, codes = classes(24, 40, 3)
    found = solve_weston_watkins(X @ X.T, codes, 3, C=np.inf, loss=loss)
    weights, objective = primal_weston_watkins(X, codes, 3, np.inf)
    assert found.converged
    assert found.objective == pytest.approx(objective, rel=1e-6)
    assert 0.0 <= found.gap < 1e-6
    np.testing.assert_allclose(X.T @ found.dual_coef, weights, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [(40, 4, 4), (90, 6, 3), (200, 10, 5)])
def test_hard_margin_reports_inseparable_classes(shape, loss):
    X, codes = classes(*shape)
    found = solve_weston_watkins(X @ X.T, codes, shape[2], C=np.inf, loss=loss)
    assert found.status is Status.UNBOUNDED
    with pytest.raises(ValueError, match="use a finite C"):
        found.status.check("AROM")


def test_cost_for_each_sample_and_warm_start():
    X, codes = classes(30, 5, 3)
    C = np.random.default_rng(1).uniform(0.1, 3.0, 30)
    K = X @ X.T
    cold = solve_weston_watkins(K, codes, 3, C=C, tol=1e-9)
    _, objective = primal_weston_watkins(X, codes, 3, C)
    assert cold.objective == pytest.approx(objective, rel=1e-6)
    again = solve_weston_watkins(K, codes, 3, C=C, tol=1e-9, warm_start=cold)
    assert again.n_iter == 1
    near = solve_weston_watkins(K + np.outer(X[:, 0], X[:, 0]), codes, 3, C=C, tol=1e-9, warm_start=cold)
    fresh = solve_weston_watkins(K + np.outer(X[:, 0], X[:, 0]), codes, 3, C=C, tol=1e-9)
    assert near.objective == pytest.approx(fresh.objective, rel=1e-8)


def test_a_duplicated_sample_equals_a_doubled_weight():
    X, codes = classes(30, 5, 3)
    twice = np.concatenate([np.arange(30), [4, 11]])
    C = np.ones(30)
    C[[4, 11]] = 2.0
    copies = solve_weston_watkins(X[twice] @ X[twice].T, codes[twice], 3, C=1.0, tol=1e-9)
    weights = solve_weston_watkins(X @ X.T, codes, 3, C=C, tol=1e-9)
    np.testing.assert_allclose(X[twice].T @ copies.dual_coef, X.T @ weights.dual_coef, atol=1e-6)


def test_a_sample_of_zero_weight_is_ignored():
    X, codes = classes(30, 5, 3)
    C = np.ones(30)
    C[:6] = 0.0
    found = solve_weston_watkins(X @ X.T, codes, 3, C=C, tol=1e-9)
    alone = solve_weston_watkins(X[6:] @ X[6:].T, codes[6:], 3, C=1.0, tol=1e-9)
    assert not found.alpha[:6].any()
    np.testing.assert_allclose(X.T @ found.dual_coef, X[6:].T @ alone.dual_coef, atol=1e-7)


def test_the_iteration_limit_is_reported():
    X, codes = classes(60, 5, 4, shift=0.3)
    found = solve_weston_watkins(X @ X.T, codes, 4, C=100.0, max_iter=1)
    assert found.status is Status.ITERATION_LIMIT
    assert found.violation > 1e-6
    assert found.gap > 0.0


def test_features_without_information_give_a_finite_answer():
    found = solve_weston_watkins(np.zeros((6, 6)), [0, 1, 2, 0, 1, 2], 3, C=1.0)
    assert np.isfinite(found.bias).all()
    assert found.objective == pytest.approx(12.0)


def test_passes_end_when_nothing_is_left_to_gain():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(15, 4)), np.arange(15) % 3
    alpha, f, balance = np.zeros((15, 3)), np.zeros((3, 15)), np.zeros(3)
    fixed = (X @ X.T + np.eye(15), codes, np.zeros(15), np.full(15, 0.5), alpha, f, balance, np.zeros(3), 1.0)
    assert 1 < ascend(*fixed, 1e-9, 10_000) < 1_000
    assert ascend(*fixed, 1e-8, 10_000) == 1


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_all_classes_at_once(C):
    X, _ = classification()
    model = solve_weston_watkins(X @ X.T, np.arange(40) % 3, 3, C=C)
    assert model.n_iter <= 5
    assert model.violation <= 1e-12
    assert model.primal_objective - model.objective <= 1e-10


N, Q = 10, 3


def joint(loss="hinge", seed=0, C=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    cost = rng.uniform(0.5, 2.0, N) if C is None else C
    state = joint_multiclass._State(X @ X.T, np.arange(N) % Q, Q, cost, loss)
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
    """The dual objective, with the biases as multipliers of the balance."""
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
    # The full step solves for the free variables.
    whole = joint(loss)[1]
    whole.alpha[free] += step
    whole.bias = whole.bias + bias_step
    whole._refresh()
    if loss == "squared_hinge":
        np.testing.assert_allclose(whole.slope()[free], 0.0, atol=1e-8)
        np.testing.assert_allclose(whole.balance, 0.0, atol=1e-8)


def tuned_dual(state, i, m, a):
    """The dual objective minus the squared imbalance, with another value of one variable."""
    trial = state.alpha.copy()
    trial[i, m] = a
    scale = np.where(state.own, trial.sum(axis=1, keepdims=True), -trial).sum(axis=0)
    return dual_with_biases(state, trial) - 0.5 * state.stiffness * scale @ scale


def test_a_pass_goes_to_the_optimum_of_one_variable_after_the_other():
    _, state = joint("squared_hinge")
    n_moved = 0
    for everywhere in (True, False):
        alpha, f, balance = state.alpha.copy(), state.f.copy(), state.balance.copy()
        arguments = (state.K, state.codes, state.ridge, state.upper)
        worst = plain(joint_multiclass._one_pass)(
            *arguments, alpha, f, balance, state.bias, state.stiffness, everywhere
        )
        mirror = joint("squared_hinge")[1]
        largest = 0.0
        for i in range(N):
            for m in range(Q):
                if m == mirror.codes[i] or not (everywhere or mirror.alpha[i, m] > 0.0):
                    continue

                old, h = mirror.alpha[i, m], 1e-3
                below, here, above = (tuned_dual(mirror, i, m, a) for a in (old - h, old, old + h))
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


def test_ascent_penalises_the_imbalance_and_keeps_the_sum_of_the_biases_at_zero():
    _, state = joint()
    bias = state.bias.copy()
    state.ascend(1e-3)
    moved = bias + state.stiffness * state.balance
    np.testing.assert_allclose(state.bias, moved - moved.mean(), atol=1e-12)
    np.testing.assert_allclose(state.f.T, state.K @ state.coefficients(), atol=1e-12)


def test_a_joint_start_is_cut_to_the_costs():
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
    paid = state.cost[:, None] * (excess if loss == "hinge" else 0.5 * excess**2)
    assert found.primal_objective == pytest.approx(0.5 * np.sum(W**2) + paid.sum())
    dual = found.alpha.sum() - 0.5 * np.sum(W**2)
    dual -= 0.5 * np.sum(found.alpha**2 / state.cost[:, None]) if loss == "squared_hinge" else 0.0
    assert found.objective == pytest.approx(dual)
    assert found.violation == state.violation()


def test_a_joint_model_with_hard_margins_is_enlarged():
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


def test_a_solution_is_a_start_that_needs_no_round():
    X, _ = classification(200, 10, noise=2.0)
    K, codes = X[:100] @ X[:100].T, np.arange(100) % 4
    joint_model = solve_weston_watkins(K, codes, 4, C=1.0)
    assert joint_model.n_iter <= at_most(10)
    assert solve_weston_watkins(K, codes, 4, C=1.0, warm_start=joint_model).n_iter == 1
