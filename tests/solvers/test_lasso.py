"""The LASSO's solver and path: coordinates, breakpoints and the factor of the active features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import lars_path

from solvers.problems import plain
from zeronorm.design import as_design
from zeronorm.solvers import _lasso as lasso
from zeronorm.solvers._lasso import (
    BARRED,
    FREE,
    NOT_DOWNWARDS,
    NOT_UPWARDS,
    ActiveFeatures,
    LassoStep,
    WeightedRows,
    empty_solution,
    follow_lasso_path,
    penalty_at_bound,
    solve_box_lasso,
)


def problem(n=20, p=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.3 * rng.normal(size=(n, 1))
    return X, X @ np.where(np.arange(p) < 3, 2.0, 0.0) + rng.normal(size=n)


def violation(gradient, a, penalty, box=np.inf):
    """Violation of the optimality conditions of ½|Fa|² - q·a + λ|a| in a box, given q - F'Fa."""
    worst = np.where(
        a == 0.0, np.maximum(np.abs(gradient) - penalty, 0.0), np.abs(gradient - penalty * np.sign(a))
    )
    at_box = np.abs(a) >= box * (1 - 1e-12)
    return np.where(at_box, np.maximum(penalty - gradient * np.sign(a), 0.0), worst).max()


@pytest.mark.parametrize(("penalty", "box"), [(0.5, np.inf), (5.0, np.inf), (0.5, 1.0), (3.0, 0.4)])
def test_coordinates_end_at_the_optimum(penalty, box):
    X, y = problem()
    Q, q = X.T @ X, X.T @ y
    a = np.linspace(-0.3, 0.3, 8)
    n_epochs = plain(lasso.descend_coordinates)(Q, q, penalty, box, a, 1e-10, 1000)
    assert 1 < n_epochs < 1000
    assert violation(q - Q @ a, a, penalty, box) < 1e-8
    assert np.abs(a).max() <= box
    again = a.copy()
    assert plain(lasso.descend_coordinates)(Q, q, penalty, box, again, 1e-8, 1000) == 1
    b = np.linspace(-0.3, 0.3, 8)
    assert plain(lasso.descend_coordinates)(Q, q, penalty, box, b, 0.0, 1) == -1
    one = np.linspace(-0.3, 0.3, 8)
    plain(lasso.descend_coordinates)(Q, q, penalty, box, one, 0.0, 1)
    by_hand = np.linspace(-0.3, 0.3, 8)
    for k in range(8):
        target = q[k] - Q[k] @ by_hand + Q[k, k] * by_hand[k]
        by_hand[k] = np.sign(target) * min(max(abs(target) - penalty, 0.0) / Q[k, k], box)
    np.testing.assert_allclose(one, by_hand, atol=1e-12)


def test_a_column_of_zeros_keeps_its_weight():
    Q = np.diag([0.0, 2.0])
    a = np.array([0.7, 0.0])
    plain(lasso.descend_coordinates)(Q, np.array([5.0, 3.0]), 1.0, np.inf, a, 1e-12, 10)
    assert a.tolist() == [0.7, 1.0]


def test_sparse_columns_are_centred_without_being_changed():
    rng = np.random.default_rng(1)
    X = rng.poisson(0.5, size=(30, 5)).astype(float)
    X[:, 4] = 2.0  # constant: centred it is zero
    weight = rng.uniform(0.5, 2.0, 30)
    mean = weight @ X / weight.sum()
    y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=30)
    y -= weight @ y / weight.sum()
    columns = sparse.csc_array(X)
    penalty = np.array([1.0, 2.0, 0.5, 1.0, 0.1])
    a = np.array([0.1, 0.0, -0.2, 0.0, 0.0])
    arguments = (columns.data, columns.indices, columns.indptr, weight, mean, y, penalty)
    n_epochs = plain(lasso.descend_sparse_columns)(*arguments, a, 1e-11, 500)
    assert 1 < n_epochs < 500
    Z = X - mean
    gradient = Z.T @ (weight * (y - Z @ a))
    assert violation(gradient[:4], a[:4], penalty[:4]) < 1e-8
    assert a[4] == 0.0
    assert plain(lasso.descend_sparse_columns)(*arguments, a, 1e-6, 500) == 1
    b = np.array([0.1, 0.0, -0.2, 0.0, 0.0])
    assert plain(lasso.descend_sparse_columns)(*arguments, b, 0.0, 2) == -2
    by_hand, bend = np.array([0.1, 0.0, -0.2, 0.0, 0.0]), weight @ Z**2
    for k in np.tile(np.arange(4), 2):
        target = (weight * Z[:, k]) @ (y - Z @ by_hand) + bend[k] * by_hand[k]
        by_hand[k] = np.sign(target) * max(abs(target) - penalty[k], 0.0) / bend[k]
    np.testing.assert_allclose(b, by_hand, atol=1e-12)


@pytest.mark.parametrize("box", [np.inf, 0.8])
def test_the_working_set_grows_until_no_feature_violates(box, monkeypatch):
    X, y = problem(30, 400)  # more features violate at the start than are added at a time
    q = X.T @ y
    start = empty_solution(q, 30)
    assert (start.columns.size, start.image.size, start.converged) == (0, 30, True)
    for penalty in (20.0, 4.0):
        found = solve_box_lasso(as_design(X), q, penalty, box, start, tol=1e-9, max_iter=5000)
        assert found.converged
        a = np.zeros(400)
        a[found.columns] = found.weights
        np.testing.assert_allclose(found.image, X @ a, atol=1e-10)
        np.testing.assert_allclose(found.gradient, q - X.T @ (X @ a), atol=1e-9)
        assert violation(found.gradient, a, penalty, box) < 1e-7
        assert np.all(found.weights != 0.0)
        start = found
    assert not solve_box_lasso(
        as_design(X), q, 4.0, box, empty_solution(q, 30), tol=1e-9, max_iter=1
    ).converged
    monkeypatch.setattr(lasso, "MAX_ROUNDS", 1)
    assert not solve_box_lasso(
        as_design(X), q, 4.0, box, empty_solution(q, 30), tol=1e-9, max_iter=5000
    ).converged


def test_the_penalty_of_a_norm():
    def norm(penalty):
        return 10.0 - penalty

    assert penalty_at_bound(norm, 10.0, 0.1, 4.0) == pytest.approx(6.0)
    assert penalty_at_bound(norm, 10.0, 0.1, 9.9) == 0.1
    assert penalty_at_bound(norm, 10.0, 0.1, 50.0) == 0.1


@pytest.mark.parametrize("removes", [True, False])
@pytest.mark.parametrize("shape", [(20, 8), (8, 20), (15, 15)])
def test_the_path_is_that_of_least_angles(removes, shape):
    X, y = problem(*shape)
    y = y - 4.0 * X[:, 1] + X[:, 2]
    q = X.T @ y
    steps = follow_lasso_path(as_design(X), q, removes=removes, most_steps=1000)
    most = 500 if removes else 6  # scikit-learn ends its least angle path early
    alphas, _, weights = lars_path(X, y, method="lasso" if removes else "lar", eps=1e-15, max_iter=most)
    penalties = alphas * shape[0]
    assert len(steps) >= 8
    for step in steps[: min(len(steps) - 1, most)]:
        nearest = int(np.argmin(np.abs(penalties - step.penalty)))
        assert penalties[nearest] == pytest.approx(step.penalty, rel=1e-6, abs=1e-8)
        found = np.zeros(shape[1])
        found[step.columns] = step.weights
        np.testing.assert_allclose(found, weights[:, nearest], atol=1e-6)
        assert np.all(np.diff(step.columns) > 0)
    assert [step.penalty for step in steps] == sorted((step.penalty for step in steps), reverse=True)
    assert steps[0].penalty == pytest.approx(np.abs(q).max())
    assert steps[0].columns.size == 0
    if shape[0] > shape[1]:
        assert steps[-1].penalty == 0.0
        exact = np.linalg.lstsq(X, y, rcond=None)[0]
        np.testing.assert_allclose(steps[-1].weights, exact[steps[-1].columns], atol=1e-8)
    for n in (1, 4):
        assert len(follow_lasso_path(as_design(X), q, removes=removes, most_steps=n)) == n + 1
    norms = [np.abs(step.weights).sum() for step in steps]
    short = follow_lasso_path(as_design(X), q, removes=removes, most_steps=99, most_norm=norms[3])
    assert len(short) == next(k for k, norm in enumerate(norms) if norm >= norms[3]) + 1


def test_a_path_without_any_gradient():
    steps = follow_lasso_path(as_design(np.eye(3)), np.zeros(3), most_steps=9)
    assert [(step.penalty, step.columns.size) for step in steps] == [(0.0, 0)]


def test_the_next_entry_is_the_first_on_either_side():
    rng = np.random.default_rng(2)
    for trial in range(20):
        constant, slope = rng.normal(size=6), rng.uniform(-1.5, 1.5, 6)
        state = rng.choice([FREE, FREE, BARRED, NOT_UPWARDS, NOT_DOWNWARDS], 6).astype(np.int8)
        penalty = rng.uniform(0.3, 1.5)
        best = (0.0, -1, 0.0)
        for k in range(6):
            for sign, closed in ((1.0, NOT_UPWARDS), (-1.0, NOT_DOWNWARDS)):
                # constant + at · slope = sign · at, with the gradient below the penalty until there
                if state[k] in (BARRED, closed) or sign * slope[k] >= 1.0:
                    continue
                at = min(constant[k] / (sign - slope[k]), penalty)
                if at > best[0]:
                    best = (at, k, sign)
        found = plain(lasso.next_entry)(constant, slope, penalty, state)
        assert found == pytest.approx(best), trial


def test_the_next_exit_is_the_first_weight_that_reaches_zero():
    # weights are first - penalty · second; only those that shrink towards zero as the penalty decreases leave
    lines = np.array([[1.0, 0.5], [-0.6, -2.0], [2.0, -1.0], [0.5, 1.0]])
    signs = np.array([1.0, 1.0, 1.0, -1.0])
    at, position = lasso._next_exit(lines, signs, 0.9)
    assert (at, position) == (0.5, 3)
    at, position = lasso._next_exit(lines[:3], signs[:3], 0.9)
    assert (at, position) == (pytest.approx(0.3), 1)
    assert lasso._next_exit(lines[:3], signs[:3], 0.2) == (0.2, 1)
    assert lasso._next_exit(lines[:1], signs[:1], 0.9) == (0.0, -1)


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_the_factor_of_the_active_features(make):
    X, y = problem()
    q = X.T @ y
    active = ActiveFeatures(as_design(make(X)), q)
    for feature, sign in ((3, 1.0), (0, -1.0), (6, 1.0), (1, 1.0)):
        assert active.enter(feature, sign)
    assert not active.enter(6, 1.0)  # a copy of an active one

    def check(columns, signs):
        assert (active.columns.tolist(), active.signs.tolist()) == (columns, signs)
        part = X[:, columns]
        found, images = active.lines()
        right = np.column_stack([q[columns], signs])
        np.testing.assert_allclose(found, np.linalg.solve(part.T @ part, right), atol=1e-9)
        np.testing.assert_allclose(images, part @ found, atol=1e-9)

    check([3, 0, 6, 1], [1.0, -1.0, 1.0, 1.0])
    active.leave(1)
    check([3, 6, 1], [1.0, 1.0, 1.0])
    active.leave(2)
    check([3, 6], [1.0, 1.0])
    active.leave(0)
    check([6], [1.0])
    assert active.enter(0, 1.0)
    check([6, 0], [1.0, 1.0])


def test_no_more_features_enter_than_there_are_samples():
    rng = np.random.default_rng(3)
    active = ActiveFeatures(as_design(rng.normal(size=(2, 4))), np.ones(4))
    assert [active.enter(k, 1.0) for k in range(3)] == [True, True, False]


def test_nearly_dependent_features_keep_their_digits():
    rng = np.random.default_rng(4)
    a = rng.normal(size=40)
    X = np.column_stack([a, a + 1e-4 * rng.normal(size=40)])
    weights = np.array([1.0, -2.0])
    active = ActiveFeatures(as_design(X), X.T @ (X @ weights))
    assert active.enter(0, 1.0)
    assert active.enter(1, 1.0)
    np.testing.assert_allclose(active.lines()[0][:, 0], weights, atol=1e-11 * 1e4)


def test_weighted_rows_are_a_matrix():
    X, _ = problem()
    factor = np.linspace(0.5, 2.0, 20)
    rows = WeightedRows(as_design(X), factor)
    F = X * factor[:, None]
    assert (rows.shape, rows.is_sparse) == ((20, 8), False)
    np.testing.assert_allclose(rows.block(np.array([5, 2])), F[:, [5, 2]])
    for shape in ((), (2,)):
        w, v = np.ones((8, *shape)) * 0.3, np.linspace(0.0, 1.0, 20 * (2 if shape else 1)).reshape(20, *shape)
        np.testing.assert_allclose(rows.dot(w), F @ w)
        np.testing.assert_allclose(rows.transpose_dot(v), F.T @ v)
    np.testing.assert_allclose(rows.take(np.array([1])).block(np.array([0])), F[:, [1]])


def test_a_step_holds_the_features_with_a_weight_in_order():
    step = LassoStep.of(0.5, np.array([7, 2, 4]), np.array([1.0, -2.0, 1e-15]), 1e-13)
    assert (step.penalty, step.columns.tolist(), step.weights.tolist()) == (0.5, [2, 7], [-2.0, 1.0])
    assert LassoStep.of(0.5, np.array([7, 2]), np.array([1.0, 0.0])).columns.tolist() == [7]
