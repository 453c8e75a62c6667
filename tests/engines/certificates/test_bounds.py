"""No subset is below the bound, whatever the dual point."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from oracles.exhaustive_subsets import (
    LOSSES,
    best_by_trying_all,
    best_in_closed_form,
    objective_of,
    random_problem,
)
from zeronorm.engines.certificates._bounds import CompetingUnits, DualBound, Units, on_exact_grid
from zeronorm.engines.certificates._conjugates import DUAL_LOSSES
from zeronorm.engines.certificates._refit import refit


def candidates_of(units, size, forced=()):
    inside = np.zeros(units.sizes.size, dtype=bool)
    inside[units.code[list(forced)]] = True
    return CompetingUnits(units, size, inside, ~inside).fitting()


def random_alpha(rng, targets, cost):
    """Any vector, feasible or not."""
    scale = cost[:, None] * rng.choice([0.01, 0.3, 1.0, 3.0])
    return scale * (rng.normal(size=targets.shape) + targets * rng.uniform(0, 1))


def violations(n_problems, seed, losses=LOSSES):
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n_problems):
        loss = losses[number % len(losses)]
        classes = 3 if number % 5 == 0 else 2
        X, targets, cost = random_problem(rng, loss, classes=classes, p=int(rng.integers(2, 6)))
        groups = (
            None if number % 3 else np.unique(rng.integers(0, 3, size=X.shape[1]), return_inverse=True)[1]
        )
        forced = () if number % 4 else (int(rng.integers(X.shape[1])),)
        size = int(rng.integers(1, X.shape[1] + 1))
        units = Units.of(X.shape[1], groups)
        if forced:
            size = max(size, int(units.sizes[units.code[forced[0]]]))
        best, chosen = best_by_trying_all(X, targets, cost, loss, size, groups, forced)
        objective = objective_of(X, targets, cost, loss)
        family = candidates_of(units, size, forced)
        for _ in range(4):
            dual = DualBound.at(objective, units, random_alpha(rng, targets, cost))
            within, without = dual.with_and_without(family)
            held = np.isin(np.arange(units.sizes.size), units.code[chosen])
            bounds = [dual.over(family), *within[held], *without[~held & family.free]]
            if max(bounds) > best * (1 + 1e-7) + 1e-9:
                found.append((number, loss, best, bounds))
    return found


def test_no_subset_is_below_a_bound():
    assert violations(40, seed=0) == []


@pytest.mark.slow
def test_no_subset_is_below_a_bound_in_500_problems():
    assert violations(500, seed=2) == []


def violations_of_squared_error(n_problems, seed):
    """The same with 12 to 20 features, where the best subset is known in closed form."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(n_problems):
        p = int(rng.integers(12, 21))
        X, targets, cost = random_problem(rng, "squared_error", p=p)
        size = int(rng.integers(1, 5 if p < 17 else 4))
        best, chosen = best_in_closed_form(X, targets[:, 0], cost, size)
        objective, units = objective_of(X, targets, cost, "squared_error"), Units.of(p, None)
        at_best = objective.dual_at(X[:, chosen] @ refit(objective, chosen).weights)
        for alpha in (random_alpha(rng, targets, cost), at_best):
            dual, family = DualBound.at(objective, units, alpha), candidates_of(units, size)
            within, without = dual.with_and_without(family)
            held = np.isin(np.arange(p), chosen)
            bounds = [dual.over(family), *within[held], *without[~held & family.free]]
            if max(bounds) > best * (1 + 1e-12) + 1e-14:
                found.append((number, best, bounds))
    return found


def test_no_subset_of_up_to_twenty_features_is_below_a_bound():
    assert violations_of_squared_error(60, seed=9) == []


@pytest.mark.slow
def test_no_subset_of_up_to_twenty_features_is_below_a_bound_in_1000_problems():
    assert violations_of_squared_error(1000, seed=10) == []


def test_no_subset_is_below_a_bound_when_the_weights_are_bounded():
    rng = np.random.default_rng(11)
    for number in range(40):
        loss = LOSSES[number % len(LOSSES)]
        X, targets, cost = random_problem(rng, loss, p=int(rng.integers(2, 5)))
        largest, size = rng.choice([0.05, 0.2, 0.5]), int(rng.integers(1, 3))
        best, chosen = best_by_trying_all(X, targets, cost, loss, size, max_weight=largest)
        units, objective = Units.of(X.shape[1], None), objective_of(X, targets, cost, loss, largest)
        family = candidates_of(units, size)
        for _ in range(4):
            alpha = random_alpha(rng, targets, cost)
            dual = DualBound.at(objective, units, alpha)
            within, without = dual.with_and_without(family)
            held = np.isin(np.arange(X.shape[1]), chosen)
            bounds = [dual.over(family), *within[held], *without[~held & family.free]]
            assert max(bounds) <= best * (1 + 1e-6) + 1e-9
            free = DualBound.at(objective_of(X, targets, cost, loss), units, alpha).over(family)
            assert dual.over(family) >= free * (1 - 1e-12)


def exact_bound(X, alpha, targets, cost, loss, size):
    """The bound at rational dual variables, in rational arithmetic; the loss has a rational dual function."""
    a = [Fraction(float(v)) for v in alpha[:, 0]]
    assert sum(a) == 0
    y, C = [Fraction(float(v)) for v in targets[:, 0]], [Fraction(float(v)) for v in cost]
    dual = {
        "squared_error": lambda v, t, c: v * t - v * v / (2 * c),
        "hinge": lambda v, t, c: v * t,
        "squared_hinge": lambda v, t, c: v * t - v * v / (2 * c),
    }[loss]
    D = sum(dual(v, t, c) for v, t, c in zip(a, y, C, strict=True))
    if loss != "squared_error":
        assert all(v * t >= 0 for v, t in zip(a, y, strict=True))
    if loss == "hinge":
        assert all(v * t <= c for v, t, c in zip(a, y, C, strict=True))
    q = sorted(sum(Fraction(float(x)) * v for x, v in zip(column, a, strict=True)) ** 2 for column in X.T)
    return D - sum(q[-size:]) / 2


@pytest.mark.parametrize("loss", ["squared_error", "hinge", "squared_hinge"])
def test_rounding_never_raises_a_bound(loss):
    rng = np.random.default_rng(3)
    for _ in range(60):
        X, targets, cost = random_problem(rng, loss)
        X = X * 10.0 ** rng.integers(-6, 7) + rng.choice([0.0, 1e3])
        size = int(rng.integers(1, X.shape[1] + 1))
        units = Units.of(X.shape[1], None)
        dual = DualBound.at(objective_of(X, targets, cost, loss), units, random_alpha(rng, targets, cost))
        exact = exact_bound(X, dual.alpha, targets, cost, loss, size)
        found = dual.over(candidates_of(units, size))
        assert Fraction(found) <= max(exact, 0)
        magnitude = abs(dual.dual) + float(dual.q.sum())
        assert found >= float(exact) - 1e-9 * magnitude


def test_dual_variables_on_the_grid_sum_to_zero_and_do_not_grow():
    rng = np.random.default_rng(4)
    for n in (2, 3, 50, 100_000):
        alpha = rng.normal(size=n) * 10.0 ** rng.integers(-8, 9)
        alpha -= alpha.mean()
        found = on_exact_grid(alpha)
        assert (
            sum(Fraction(float(v)) for v in found[:3000]) + sum(Fraction(float(v)) for v in found[3000:]) == 0
        )
        assert np.all(np.abs(found) <= np.abs(alpha))
        assert np.abs(found - alpha).max() <= 1e-9 * np.abs(alpha).max()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_dual_function_is_the_conjugate_of_the_loss(loss):
    """L(f) is the largest value of d(v) - v f, attained at minus the slope."""
    known = DUAL_LOSSES[loss]
    for y in (-1.0, 1.0):
        f = np.linspace(-3, 3, 41)
        grid = known.feasible(np.linspace(-6, 6, 24_001), np.full(24_001, y))
        values = known.dual(grid, np.full(grid.size, y))[:, None] - grid[:, None] * f
        np.testing.assert_allclose(values.max(axis=0), known.value(f, np.full(f.size, y)), atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_rounded_loss_is_below_the_loss_and_has_the_right_derivatives(loss):
    known, rng = DUAL_LOSSES[loss], np.random.default_rng(5)
    y = rng.choice([-1.0, 1.0], size=200)
    f = rng.normal(size=200) * 2
    smooth = known.smoothed(0.5, y * rng.uniform(0, 1, size=200))
    assert np.all(smooth.value(f, y) <= known.value(f, y) + 1e-12)
    step = 1e-6
    slope = (smooth.value(f + step, y) - smooth.value(f - step, y)) / (2 * step)
    np.testing.assert_allclose(smooth.slope(f, y), slope, atol=1e-5)
    curvature = (smooth.slope(f + step, y) - smooth.slope(f - step, y)) / (2 * step)
    assert np.mean(np.abs(smooth.curvature(f, y) - curvature) < 1e-4) > 0.97  # where it does not jump
    assert np.all(smooth.curvature(f, y) <= smooth.largest_curvature + 1e-12)


def test_the_largest_sum_is_that_of_all_allowed_subsets():
    """For single features it is exact; for groups it is at least the best union of whole groups."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        p = int(rng.integers(2, 8))
        groups = None if rng.random() < 0.5 else np.unique(rng.integers(0, 4, size=p), return_inverse=True)[1]
        units = Units.of(p, groups)
        q = rng.exponential(size=units.sizes.size)
        size = int(rng.integers(1, p + 1))
        family = candidates_of(units, size)
        exact = max(
            sum(q[u] for u in range(q.size) if mask >> u & 1)
            for mask in range(2**q.size)
            if sum(units.sizes[u] for u in range(q.size) if mask >> u & 1) <= size
        )
        found = family.largest_sum(q)
        assert found >= exact
        if groups is None:
            assert found <= exact * (1 + 1e-12)
