"""One step of each scheme against the formulas of the paper, written in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm.engines.weighting._updates import DiffusionRule, EuclideanRule, ExponentialRule
from zeronorm.solvers._geometry import project_on_simplex


def batch(p=12, batch_size=3, subset_size=5, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(p, 5.0))
    features = np.sort(rng.integers(0, p, size=(batch_size, subset_size)), axis=1)
    return P, features, rng.uniform(0.1, 0.6, size=batch_size)


def counts_of(features, p):
    return np.array([np.bincount(row, minlength=p) for row in features], dtype=float)


@pytest.mark.parametrize("step_size", [1e-4, 0.05, 2.0, 50.0])
def test_exponential_step_is_equation_12(step_size):
    P, features, q = batch()
    gradient = (q[:, None] * counts_of(features, P.size)).mean(axis=0)
    kappa = gradient @ P / (P @ P)
    expected = P * np.exp(-step_size * (gradient - kappa * P))
    rule = ExponentialRule(P.copy())
    assert rule.learn(features, q, step_size, 1, 0)
    np.testing.assert_allclose(rule.weights, expected / expected.sum(), rtol=1e-12)
    np.testing.assert_allclose(rule.cumulative, np.cumsum(rule.weights))


@pytest.mark.parametrize("length", [1e-4, 0.05, 2.0])
def test_exponential_step_on_signals_of_both_signs(length):
    P, features, _ = batch()
    signals = np.array([-1.5, 0.2, 2.0])
    gradient = (signals[:, None] * counts_of(features, P.size)).sum(axis=0)
    expected = P * np.exp(-length * (gradient - gradient @ P / (P @ P) * P))
    rule = ExponentialRule(P.copy())
    assert rule.learn_relative(features, signals, length, 1, 0)
    np.testing.assert_allclose(rule.weights, expected / expected.sum(), rtol=1e-12)


def test_relative_steps_move_a_typical_weight_by_their_length():
    p = 50
    features, signals = np.array([[7]]), np.array([1.0])
    for rule in (ExponentialRule(np.full(p, 1 / p)), DiffusionRule(np.full(p, 1 / p), 0.0, 1.0)):
        rule.learn_relative(features, signals, 0.01, 1, 0)
        assert rule.weights[7] / rule.weights[8] == pytest.approx(0.99, abs=1e-3)


def test_a_tiny_weight_does_not_jump_when_it_is_drawn():
    P = np.r_[1e-9, np.full(4, (1 - 1e-9) / 4)]
    rule = DiffusionRule(P.copy(), 0.0, 1.0)
    rule.learn_relative(np.array([[0]]), np.array([-1.0]), 0.05, 1, 0)
    assert 0.0 < rule.weights[0] < 0.06 * rule.typical_weight


def test_exponential_step_never_overflows():
    P, features, q = batch()
    rule = ExponentialRule(P)
    rule.learn(features, q, 1e6, 1, 0)
    assert np.all(np.isfinite(rule.weights))
    assert rule.weights.sum() == pytest.approx(1.0)


def test_euclidean_step_is_equation_15():
    P, features, q = batch()
    ratio = (q[:, None] * counts_of(features, P.size) / P).mean(axis=0)
    step_size = 1e-5
    rule = EuclideanRule(P.copy())
    assert rule.learn(features, q, step_size, 1, 0)
    np.testing.assert_allclose(rule.weights, P - step_size * (ratio - ratio.mean()), rtol=1e-12)


def test_euclidean_step_keeps_the_last_valid_weights():
    P, features, q = batch()
    rule = EuclideanRule(P.copy())
    cumulative = rule.cumulative.copy()
    assert not rule.learn(features, q, 10.0, 1, 0)
    assert np.array_equal(rule.weights, P)
    assert np.array_equal(rule.cumulative, cumulative)
    assert "non-positive" in rule.failure
    # The work array is zero again: the refused step does not affect a smaller one.
    fresh = EuclideanRule(P.copy())
    assert rule.learn(features, q, 1e-5, 1, 0)
    assert fresh.learn(features, q, 1e-5, 1, 0)
    assert np.array_equal(rule.weights, fresh.weights)


def test_diffusion_without_noise_is_a_projected_gradient_step():
    P, features, q = batch()
    ratio = (q[:, None] * counts_of(features, P.size) / P).mean(axis=0)
    rule = DiffusionRule(P.copy(), noise=0.0, first_step=1.0)
    rule.learn(features, q, 0.01, 1, 0)
    np.testing.assert_allclose(rule.weights, project_on_simplex(P - 0.01 * ratio), atol=1e-14)


def test_diffusion_noise_has_the_asked_variance():
    p, noise, first_step, step_size = 400, 0.05, 0.02, 0.01
    P = np.full(p, 1.0 / p)
    moves = []
    for step in range(50):
        rule = DiffusionRule(P.copy(), noise, first_step)
        rule.learn(np.zeros((1, 1), np.int64), np.zeros(1), step_size, 9, step)
        moves.append(rule.weights - P)
    # The projection only subtracts the mean, as no weight reaches zero.
    scale = np.std(moves) / (noise / p * np.sqrt(step_size / first_step * (1 - 1 / p)))
    assert abs(scale - 1.0) < 4 / np.sqrt(2 * 50 * p)


@pytest.mark.parametrize(
    "rule_class", [ExponentialRule, EuclideanRule, lambda P: DiffusionRule(P, 0.001, 1e-6)]
)
def test_weights_stay_a_probability_distribution(rule_class):
    P, _, _ = batch(p=30)
    rule = rule_class(P)
    rng = np.random.default_rng(1)
    for step in range(300):
        features = np.sort(rng.choice(30, size=(2, 4), p=rule.weights / rule.weights.sum()), axis=1)
        rule.learn(features, rng.uniform(size=2), 1e-6, 3, step)
    assert rule.weights.min() >= 0.0
    assert rule.weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_perfect_subsets_change_nothing():
    P, features, _ = batch()
    for rule in (ExponentialRule(P.copy()), EuclideanRule(P.copy())):
        rule.learn(features, np.zeros(3), 0.1, 1, 0)
        np.testing.assert_allclose(rule.weights, P, rtol=1e-15)
