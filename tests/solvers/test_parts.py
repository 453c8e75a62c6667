"""Parts of the solvers by their definitions: the dual of machines, losses of classes, a small working set."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from solvers.problems import classification, regression
from zeronorm.solvers.losses import LOSSES, PenalizedLoss, Softmax, solve_working_set
from zeronorm.solvers.svm.box_dual import BoxDual

# -- The dual of machines with a bias --


def dual_of(kind, squared, n=9, seed=0):
    rng = np.random.default_rng(seed)
    price = rng.uniform(0.5, 2.0, n)
    price[2] = 0.0
    if kind == "classes":
        return BoxDual.classification(np.where(np.arange(n) % 3, 1.0, -1.0), price, squared)
    return BoxDual.regression(rng.normal(size=n), price, 0.3, squared)


KINDS = [(kind, squared) for kind in ("classes", "target") for squared in (False, True)]


@pytest.mark.parametrize(("kind", "squared"), KINDS)
def test_losses_and_the_gap_by_their_definitions(kind, squared):
    """The gap is what weak duality says: primal less dual objective, at any multipliers that balance."""
    rng = np.random.default_rng(1)
    problem = dual_of(kind, squared)
    X, price = rng.normal(size=(9, 4)), dual_of(kind, False).upper[:9]
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
    loss = price @ (0.5 * excess**2 if squared else excess)
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


def test_the_bias_is_that_of_the_free_or_the_middle_of_what_is_possible():
    """At a bound the optimum only says on which side of a sample's own value the bias lies."""
    y = np.array([1.0, 1.0, -1.0, -1.0])
    problem = BoxDual.classification(y, np.ones(4), False)
    f = np.array([0.4, -0.2, 0.3, -0.5])
    own = y - f  # the bias that puts a sample on its margin
    free = np.array([0.5, 0.0, 0.5, 1.0])
    assert problem.bias(free, f) == pytest.approx(np.mean(own[[0, 2]]))
    alpha = np.array([0.0, 1.0, 1.0, 0.0])  # at zero beyond the margin, at the price within
    lower, upper = [own[0], own[2]], [own[1], own[3]]
    assert problem.bias(alpha, f) == pytest.approx((max(lower) + min(upper)) / 2)
    one_class = BoxDual.classification(np.ones(2), np.ones(2), False)
    assert one_class.bias(np.zeros(2), np.array([0.4, -0.2])) == pytest.approx(
        1.2
    )  # all that is known is a limit


def test_only_infinite_prices_without_squares_are_hard():
    price = np.array([1.0, np.inf, 0.0])
    y = np.array([1.0, -1.0, 1.0])
    assert BoxDual.classification(y, price, False).hard.tolist() == [False, True, False]
    assert BoxDual.classification(y, np.array([1.0, 2.0, 0.0]), True).hard.tolist() == [False] * 3
    part = BoxDual.classification(y, price, False).restricted(np.array([True, False, True]))
    assert (part.sign.tolist(), part.upper.tolist(), part.n_samples) == ([1.0, 1.0], [1.0, 0.0], 3)


# -- Losses --


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
    """Weights split into their two signs, by a general method; the gradient at the end is below the tolerance."""
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
    assert found.value <= exact.fun * (1 + 1e-9) or penalties[0] > 0.0
    used = found.w != 0.0
    slope = objective.slope(found.f)
    gradient = X.T @ slope + 2.0 * penalties[1] * found.w + penalties[0] * np.sign(found.w)
    assert np.abs(gradient[used]).max() <= 1e-9
    assert abs(slope.sum()) <= 1e-9
