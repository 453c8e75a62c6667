"""The Weston-Watkins machine against a QP solver, the two-class machine and its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.multiclass_qp import primal_weston_watkins
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.dual import solve_svm_dual
from zeronorm.solvers.svm.joint_multiclass import ascend, solve_weston_watkins

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
def test_two_classes_are_the_two_class_machine(loss):
    """w1 = -w2 = w/2 turns ½Σ|w_k|² into ¼|w|²: the machine of two classes at 2C."""
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


def test_price_for_each_sample_and_warm_start():
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


def test_sweeps_end_when_nothing_is_left_to_gain():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(15, 4)), np.arange(15) % 3
    alpha, f, balance = np.zeros((15, 3)), np.zeros((3, 15)), np.zeros(3)
    fixed = (X @ X.T + np.eye(15), codes, np.zeros(15), np.full(15, 0.5), alpha, f, balance, np.zeros(3), 1.0)
    assert 1 < ascend(*fixed, 1e-9, 10_000) < 1_000
    assert ascend(*fixed, 1e-8, 10_000) == 1
