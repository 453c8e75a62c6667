"""Losses and their derivatives, and the minimum of a penalised loss on a working set."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from solvers.problems import classification, regression
from zeronorm.solvers.linear import _softmax as softmax
from zeronorm.solvers.linear import _working_set as working_set
from zeronorm.solvers.linear._losses import LOSSES, find_loss
from zeronorm.solvers.linear._softmax import Softmax
from zeronorm.solvers.linear._working_set import PenalizedLoss, solve_working_set


@pytest.mark.parametrize("name", ["squared_error", "logistic", "squared_hinge"])
def test_slopes_and_curvatures_are_derivatives(name):
    loss = find_loss(name)
    f, h = np.array([-2.0, -0.5, 0.3, 0.9, 2.5]), 1e-5
    for y in (np.ones(5), -np.ones(5)):
        np.testing.assert_allclose(
            loss.slope(f, y), (loss.value(f + h, y) - loss.value(f - h, y)) / (2 * h), atol=1e-9
        )
        np.testing.assert_allclose(
            loss.curvature(f, y), (loss.slope(f + h, y) - loss.slope(f - h, y)) / (2 * h), atol=1e-9
        )
    assert loss.value(np.zeros(1), np.ones(1))[0] == pytest.approx(
        {"squared_error": 0.5, "logistic": np.log(2.0), "squared_hinge": 0.5}[name]
    )
    assert loss.for_classes_only == (name != "squared_error")
    assert find_loss("no such loss") is None


def objective_of(name="logistic", l1=0.05, l2=0.1, n=30):
    X, y = classification(n, 3, noise=2.0)
    share = np.linspace(0.5, 1.5, n)
    return X, PenalizedLoss(LOSSES[name], y, share / share.sum(), l1, l2)


def test_the_gradient_and_the_step_of_a_working_set():
    X, objective = objective_of()
    w, bias, h = np.array([0.5, -0.3, 0.2]), 0.1, 1e-6
    f = X @ w + bias
    gradient = working_set._gradient(X, objective, f, w, np.sign(w))

    def value(change):
        moved = w + change[:3]
        return objective.value(X @ moved + bias + change[3], moved)

    steps = h * np.eye(4)
    np.testing.assert_allclose(gradient, [(value(d) - value(-d)) / (2 * h) for d in steps], atol=1e-8)
    step = working_set._newton_step(X, objective, f, gradient)
    columns = np.column_stack([X, np.ones(30)])
    hessian = objective.sandwich(f, columns) + np.diag([0.2] * 3 + [0.0])
    np.testing.assert_allclose(hessian @ step, -gradient, atol=1e-9)
    copies = working_set._newton_step(
        X[:, [0, 0]],
        PenalizedLoss(objective.loss, objective.y, objective.share, 0.0, 0.0),
        f,
        gradient[[0, 0, 3]],
    )
    assert np.all(np.isfinite(copies))


def test_a_line_search_stops_where_a_weight_reaches_zero():
    X, objective = objective_of(l1=0.5)
    w, bias = np.array([0.2, 0.01, 0.0]), 0.0
    f = X @ w
    start = (w, bias, f, objective.value(f, w))
    direction = np.array([-0.25, -0.02, 0.0])
    moved, new_bias, predictions, value = working_set._line_search(X, objective, start, direction, 0.05, -0.1)
    points = []
    for t in (1.0, 0.8, 0.5):
        at = w + t * direction
        at[np.isclose(at, 0.0)] = 0.0
        points.append((objective.value(X @ at + 0.05 * t, at), t, at))
    best = min(points, key=lambda point: point[0])
    np.testing.assert_allclose(moved, best[2], atol=1e-15)
    assert (value, new_bias) == (pytest.approx(best[0]), pytest.approx(0.05 * best[1]))
    np.testing.assert_allclose(predictions, X @ moved + new_bias, atol=1e-12)
    assert working_set._line_search(X, objective, start, -direction, 0.0, -0.1) is None  # uphill
    smooth = PenalizedLoss(objective.loss, objective.y, objective.share, 0.0, 0.1)
    start = (w, bias, f, smooth.value(f, w))
    slope = smooth.slope(f) @ (X @ direction) + 0.2 * w @ direction
    ahead = direction if slope < 0 else -direction
    moved = working_set._line_search(X, smooth, start, ahead, 0.0, -abs(slope))[0]
    np.testing.assert_allclose(moved, w + ahead)  # without an l1 penalty it does not stop at zero


def test_a_full_step_is_taken_where_it_halves_the_gradient():
    X, objective = objective_of(l1=0.01)
    every, signs = np.ones(3, dtype=bool), np.array([1.0, 1.0, 1.0])
    w = np.array([0.3, 0.4, 0.2])
    f = X @ w
    gradient = working_set._gradient(X, objective, f, w, signs)
    step = working_set._newton_step(X, objective, f, gradient)
    start = (w, 0.0, f, objective.value(f, w))
    for factor, taken in ((1.0, True), (0.4, False), (0.6, True), (-1.0, False)):
        d = factor * step
        found = working_set._full_step(X, objective, start, d[:3], d[3], signs, every, gradient)
        assert (found is not None) == taken, factor
        if taken:
            np.testing.assert_allclose(found[0], w + d[:3])
            assert found[1] == pytest.approx(d[3])
            np.testing.assert_allclose(found[2], X @ found[0] + found[1], atol=1e-12)
            assert found[3] == pytest.approx(objective.value(found[2], found[0]))
    across = np.array([-0.3, 0.0, 0.0])
    assert working_set._full_step(X, objective, start, across, 0.0, signs, every, 1e9 * gradient) is None
    smooth = PenalizedLoss(objective.loss, objective.y, objective.share, 0.0, 0.1)
    assert working_set._full_step(X, smooth, start, across, 0.0, signs, every, 1e9 * gradient) is not None


def test_probabilities_of_classes():
    rng = np.random.default_rng(4)
    cost = rng.uniform(0.5, 2.0, 5)
    two, four = Softmax(np.arange(5) % 2, 2, cost), Softmax(np.arange(5) % 4, 4, cost)
    f = rng.normal(size=(1, 5))
    _, probability = two.slope(f.copy())
    np.testing.assert_allclose(probability, expit(f))
    f = rng.normal(size=(3, 5))
    np.testing.assert_allclose(four.contrast.T @ four.contrast, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(four.contrast.sum(axis=0), 0.0, atol=1e-12)
    scores = four.contrast @ f
    _, probability = four.slope(f.copy())
    np.testing.assert_allclose(probability, np.exp(scores) / np.exp(scores).sum(axis=0))
    np.testing.assert_allclose(four.all_classes(f), scores)
    assert two.all_classes(f[:1]).shape == (1, 5)
    total = softmax.sum_of_curvatures(probability, cost)
    assert total == pytest.approx(np.sum(cost * probability * (1 - probability)))
    assert (two.n_outputs, four.n_outputs) == (1, 3)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_the_loss_of_classes_has_these_derivatives(n_classes):
    rng = np.random.default_rng(n_classes)
    codes, cost = np.arange(6) % n_classes, rng.uniform(0.5, 2.0, 6)
    loss = Softmax(codes, n_classes, cost)
    f = rng.normal(size=(n_classes - 1, 6))

    def value(f):
        scores = np.vstack([np.zeros(6), f[0]]) if n_classes == 2 else loss.contrast @ f
        return cost * (logsumexp(scores, axis=0) - scores[codes, np.arange(6)])

    slope, probability = loss.slope(f.copy())
    curvature = loss.curvature(probability)
    for k in range(n_classes - 1):
        h = np.zeros_like(f)
        h[k] = 1e-5
        np.testing.assert_allclose(slope[k], (value(f + h) - value(f - h)) / 2e-5, atol=1e-8)
        changed = (loss.slope(f + h)[0] - loss.slope(f - h)[0]) / 2e-5
        np.testing.assert_allclose(curvature.reshape(n_classes - 1, -1, 6)[k], changed, atol=1e-8)
    far = loss.slope(1e5 * f)[0]
    assert np.all(np.isfinite(far))


@pytest.mark.parametrize("penalties", [(0.0, 0.1), (0.05, 0.0), (0.05, 0.1)])
@pytest.mark.parametrize("name", ["squared_error", "logistic", "squared_hinge"])
def test_a_working_set_ends_at_the_minimum(name, penalties):
    """A general optimiser, on weights split by sign, finds the same minimum; the final gradient is below ``tol``."""
    X, y = (regression if name == "squared_error" else classification)(50, 4, noise=2.0)
    share = np.random.default_rng(0).uniform(0.5, 1.5, 50)
    objective = PenalizedLoss(LOSSES[name], y, share / share.sum(), *penalties)

    def value(parts):
        w = parts[:4] - parts[4:8]
        smooth = objective.share @ objective.loss.value(X @ w + parts[8], y) + penalties[1] * w @ w
        return smooth + penalties[0] * parts[:8].sum()

    bounds = [(0.0, None)] * 8 + [(None, None)]
    exact = minimize(
        value, np.full(9, 0.1), bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10, "maxfun": 10**5}
    )
    start = np.array([0.3, -0.2, 0.0, 0.0])
    found = solve_working_set(X, objective, start, 0.1, np.array([1.0, -1.0, 1.0, 1.0]), 1e-10)
    assert found.converged
    assert found.value == pytest.approx(objective.value(found.f, found.w))
    np.testing.assert_allclose(found.f, X @ found.w + found.bias, atol=1e-12)
    assert found.value >= exact.fun * (1 - 1e-9)
    if penalties[0] == 0.0:  # otherwise a weight that has reached zero stays there
        assert found.value == pytest.approx(exact.fun, rel=1e-9)
    used = found.w != 0.0
    slope = objective.slope(found.f)
    gradient = X.T @ slope + 2.0 * penalties[1] * found.w + penalties[0] * np.sign(found.w)
    assert np.abs(gradient[used]).max() <= 1e-9
    assert abs(slope.sum()) <= 1e-9


def test_working_sets_that_do_not_end(monkeypatch):
    X, y = classification(30, 3, noise=2.0)
    share = np.full(30, 1 / 30)
    objective = PenalizedLoss(LOSSES["logistic"], y, share, 0.01, 0.0)
    monkeypatch.setattr(working_set, "MAX_NEWTON_STEPS", 1)
    found = solve_working_set(X, objective, np.zeros(3), 0.0, np.ones(3), 1e-12)
    assert not found.converged
    assert found.value == pytest.approx(objective.value(X @ found.w + found.bias, found.w))
    monkeypatch.undo()
    # A weight that starts in the wrong direction is removed at once.
    gradient = X.T @ (share * y * 0.5)
    wrong = np.where(np.arange(3) == np.argmax(np.abs(gradient)), -np.sign(gradient), np.sign(gradient))
    found = solve_working_set(X, objective, np.zeros(3), 0.0, wrong, 1e-10)
    assert found.converged
    assert found.w[np.argmax(np.abs(gradient))] == 0.0
    assert np.count_nonzero(found.w) > 0


def test_a_long_step_is_halved_until_it_gains():
    X = np.array([[1.0], [-1.0]])
    objective = PenalizedLoss(LOSSES["squared_error"], np.array([1.0, -1.0]), np.full(2, 0.5), 0.0, 0.0)
    w = np.zeros(1)
    start = (w, 0.0, np.zeros(2), objective.value(np.zeros(2), w))
    moved, _, f, value = working_set._line_search(X, objective, start, np.array([5.0]), 0.0, -5.0)
    assert moved.tolist() == [1.25]  # 5 and 2.5 increase the objective, 1.25 decreases it
    np.testing.assert_allclose(f, [1.25, -1.25])
    assert value == pytest.approx(0.5 * 0.25**2)
