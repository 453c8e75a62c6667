"""Maximum entropy discrimination: its terms, Newton steps, step lengths and convergence, by their definitions."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import cho_solve
from scipy.optimize import minimize

from zeronorm.design import as_design
from zeronorm.solvers import _max_entropy as max_entropy
from zeronorm.solvers._max_entropy import (
    MarginTerms,
    _exponential_mean,
    _search,
    inclusion_probability,
    solve_max_entropy,
)
from zeronorm.solvers._status import Status


def problem_of(kind, seed=0, n=9, p=4):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(n, p)), rng.uniform(0.5, 2.0, n)
    if kind == "labels":
        return X, MarginTerms.labels(np.where(np.arange(n) < 4, 1.0, -1.0), weight, 2.5)
    return X, MarginTerms.targets(rng.normal(size=n), weight, 2.5, 0.4)


def test_the_terms_of_labels_and_targets():
    y, weight = np.array([1.5, -0.5]), np.array([1.0, 3.0])
    labels = MarginTerms.labels(np.array([1.0, -1.0]), weight, 2.0)
    assert (labels.sample.tolist(), labels.linear.tolist()) == ([0, 1], [0.0, 0.0])
    targets = MarginTerms.targets(y, weight, 2.0, 0.1)
    assert targets.sample.tolist() == [0, 1, 0, 1]
    assert targets.sign.tolist() == [1.0, 1.0, -1.0, -1.0]
    assert targets.linear.tolist() == [1.5, -0.5, -1.5, 0.5]
    assert targets.weight.tolist() == [1.0, 3.0, 1.0, 3.0]
    assert targets.sums(np.array([1.0, 2.0, 3.0, 5.0])).tolist() == [4.0, 7.0]


@pytest.mark.parametrize(("c", "most"), [(0.5, 0.05), (4.0, 0.1)])
def test_the_start_balances_within_the_interval(c, most):
    weight = np.array([1.0, 2.0, 5.0])
    terms = MarginTerms.labels(np.array([1.0, -1.0, 1.0]), weight, c)
    start = terms.start()
    assert weight * terms.sign @ start == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(start, most * np.array([2.0, 6.0, 2.0]) / 8.0)


@pytest.mark.parametrize("multiplier", [1e-3, 0.4, 1.9])
def test_the_potential_is_the_logarithm_of_an_integral(multiplier):
    """The potential is minus the log of the mean of exp(-λγ), for targets exp(λγ), under the prior of the margin γ."""
    c, width = 2.5, 0.4
    labels = MarginTerms.labels(np.ones(1), np.ones(1), c)
    inside = quad(lambda g: c * np.exp(-c * (1.0 - g)) * np.exp(-multiplier * g), -40.0, 1.0)[0]
    assert labels.potential(np.array([multiplier]))[0][0] == pytest.approx(-np.log(inside))
    targets = MarginTerms.targets(np.ones(1), np.ones(1), c, width)
    flat = quad(lambda g: np.exp(multiplier * g), 0.0, width)[0]
    tail = quad(lambda g: np.exp(-c * (g - width) + multiplier * g), width, width + 60.0)[0]
    wanted = np.log(width + 1.0 / c) - np.log(flat + tail)
    np.testing.assert_allclose(targets.potential(np.full(2, multiplier))[0], wanted, rtol=1e-8)


@pytest.mark.parametrize("kind", ["labels", "targets"])
def test_the_derivatives_of_the_potential(kind):
    _, terms = problem_of(kind)
    at, h = np.linspace(0.1, 2.2, terms.sign.size), 1e-5
    _, slope, bend = terms.potential(at)
    above, below = terms.potential(at + h), terms.potential(at - h)
    np.testing.assert_allclose(slope, (above[0] - below[0]) / (2 * h), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(bend, (above[1] - below[1]) / (2 * h), rtol=1e-7, atol=1e-8)


def objective(X, terms, prior, multiplier):
    """The objective by its definition, and the fields of the features."""
    u = np.zeros(len(X))
    np.add.at(u, terms.sample, terms.sign * terms.weight * multiplier)
    field = X.T @ u
    value = terms.weight @ (terms.linear * multiplier + terms.potential(multiplier)[0])
    return float(value - np.log(1.0 - prior + prior * np.exp(field**2 / 2)).sum()), field


def test_the_probability_of_a_feature_is_its_share_of_the_partition_function():
    field = np.linspace(-3.0, 3.0, 9)
    on = 0.3 * np.exp(field**2 / 2)
    np.testing.assert_allclose(inclusion_probability(field, 0.3), on / (0.7 + on))


@pytest.mark.parametrize("kind", ["labels", "targets"])
def test_a_newton_step_is_that_of_the_balanced_quadratic(kind):
    """The Hessian and gradient by differences, the balance by a Lagrange multiplier, which is the bias."""
    X, terms = problem_of(kind)
    m, prior, barrier = terms.sign.size, 0.3, 0.05
    at = np.linspace(0.3, 1.2, m)

    def value(multiplier):
        own = objective(X, terms, prior, multiplier)[0]
        return own + barrier * terms.weight @ np.log(multiplier)

    h = 1e-4
    shifts = h * np.eye(m)
    gradient = np.array([(value(at + d) - value(at - d)) / (2 * h) for d in shifts])
    hessian = np.array(
        [
            [
                (value(at + a + b) - value(at + a - b) - value(at - a + b) + value(at - a - b)) / (4 * h * h)
                for b in shifts
            ]
            for a in shifts
        ]
    )
    border = terms.weight * terms.sign
    system = np.block([[-hessian, border[:, None]], [border[None], np.zeros((1, 1))]])
    exact = np.linalg.solve(system, np.append(gradient, 0.0))
    field = objective(X, terms, prior, at)[1]
    step, decrement, bias, is_exact = max_entropy._newton_step(as_design(X), terms, prior, at, field, barrier)
    assert is_exact
    np.testing.assert_allclose(step, exact[:-1], rtol=1e-4, atol=1e-6)
    assert bias == pytest.approx(exact[-1], rel=1e-4)
    assert decrement == pytest.approx(gradient @ step, rel=1e-5)


@pytest.mark.parametrize("kind", ["labels", "targets"])
def test_the_end_is_the_maximum(kind):
    X, terms = problem_of(kind)
    design = as_design(X)
    found = solve_max_entropy(design, terms, 0.3, tol=1e-9)
    assert found.status is Status.CONVERGED
    border = terms.weight * terms.sign
    exact = minimize(
        lambda a: -objective(X, terms, 0.3, a)[0],
        terms.start(),
        method="SLSQP",
        bounds=[(1e-12, 2.499)] * terms.sign.size,
        constraints={"type": "eq", "fun": lambda a: border @ a},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert found.objective == pytest.approx(objective(X, terms, 0.3, found.multiplier)[0], rel=1e-12)
    assert found.objective == pytest.approx(-exact.fun, abs=1e-6)
    assert found.objective >= -exact.fun - 1e-8
    np.testing.assert_allclose(found.multiplier, exact.x, atol=1e-3)
    np.testing.assert_allclose(found.field, X.T @ terms.sums(border * found.multiplier))
    assert border @ found.multiplier == pytest.approx(0.0, abs=1e-9)
    # Constraints with a multiplier between its ends hold as equalities, with this bias.
    decision = X @ (inclusion_probability(found.field, 0.3) * found.field) + found.bias
    inside = found.multiplier > 1e-3
    slope = terms.linear + terms.potential(found.multiplier)[1] - terms.sign * decision[terms.sample]
    np.testing.assert_allclose(slope[inside], 0.0, atol=1e-4)
    rough = solve_max_entropy(design, terms, 0.3, tol=1e-2)
    assert rough.n_iter < found.n_iter
    assert abs(rough.objective - found.objective) <= 1e-2 * (1 + abs(found.objective))
    cut = solve_max_entropy(design, terms, 0.3, max_iter=2)
    assert (cut.n_iter, cut.status) == (2, Status.ITERATION_LIMIT)


def test_a_factor_where_the_identity_is_lost_to_rounding():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    system = A @ A.T + np.eye(4)
    factor, is_exact = max_entropy._factor(system)
    assert is_exact
    np.testing.assert_allclose(cho_solve(factor, np.eye(4)) @ system, np.eye(4), atol=1e-9)
    rank_one = 1e20 * np.ones((3, 3)) + np.eye(3)
    assert not max_entropy._factor(rank_one)[1]
    with pytest.raises(ValueError, match="smaller C"):
        max_entropy._factor(np.diag([1.0, -1.0]))


def test_the_mean_of_an_exponential_and_its_derivatives_are_continuous():
    """(1 - e⁻ˣ)/x = Σ (-x)^k / (k + 1)!, by the full series, and by quotients above the threshold."""
    x = np.array([0.0, 1e-9, 1e-4, 5e-3, 9.9e-3, 1.01e-2, 0.1, 1.0])
    powers = [(-1.0) ** k / factorial(k + 1) for k in range(25)]
    exact = [
        sum(c * x**k for k, c in enumerate(powers)),
        sum(c * k * x ** (k - 1) for k, c in enumerate(powers) if k > 0),
        sum(c * k * (k - 1) * x ** (k - 2) for k, c in enumerate(powers) if k > 1),
    ]
    for found, wanted, rounding in zip(_exponential_mean(x), exact, (1e-15, 1e-11, 1e-9), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=rounding)
    # At the threshold the series is accurate up to the order at which it is truncated.
    seam = np.array([9.999e-3])
    wanted = [sum(c * k * (k - 1) * seam ** (k - 2) for k, c in enumerate(powers) if k > 1)]
    np.testing.assert_allclose(_exponential_mean(seam)[2], wanted[0], rtol=1e-13)


@pytest.mark.parametrize("stretch", [0.5, 4.0, 100.0])
def test_a_step_is_halved_until_it_gains_its_share(stretch):
    """The length is the first of s, s/2, ... that gains 1e-4 of the predicted gain; s stays within the bounds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 5))
    terms = MarginTerms.labels(np.where(np.arange(12) < 6, 1.0, -1.0), rng.uniform(0.5, 2.0, 12), 3.0)
    multiplier, barrier = rng.uniform(0.2, 0.8, 12), 0.05

    def value(at):
        return objective(X, terms, 0.5, at)[0] + barrier * float(terms.weight @ np.log(at))

    slope = np.array([(value(multiplier + h) - value(multiplier - h)) / 2e-6 for h in 1e-6 * np.eye(12)])
    step, size = stretch * slope, 1.0
    decrement = float(slope @ step)
    below, above = step < 0, step > 0
    size = min(1.0, 0.99 * np.min(-multiplier[below] / step[below], initial=np.inf))
    size = min(size, 0.99 * np.min((3.0 - multiplier[above]) / step[above], initial=np.inf))
    while value(multiplier + size * step) < value(multiplier) + 1e-4 * size * decrement:
        size /= 2
    current = objective(X, terms, 0.5, multiplier)
    trial, reached, field = _search(as_design(X), terms, 0.5, multiplier, step, decrement, barrier, current)
    np.testing.assert_allclose(trial, multiplier + size * step)
    wanted, wanted_field = objective(X, terms, 0.5, trial)
    assert reached == pytest.approx(wanted)
    np.testing.assert_allclose(field, wanted_field)
