"""Masked likelihood ratios: exact posterior probabilities, exchanged pairs, pure noise."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from zeronorm.engines.knockoffs import _likelihood_ratio
from zeronorm.engines.knockoffs._filter import knockoff_threshold
from zeronorm.engines.knockoffs._likelihood_ratio import Pairs, masked_likelihood_ratios, sample_pairs


def exact_odds(pairs, y, share, slab_sq, noise_sq):
    """Log odds of the first column of each pair by summing over all models: none, first or second of every pair."""
    p, n = pairs.first.shape
    weight = np.zeros((p, 2))
    for model in product(range(3), repeat=p):
        columns = [(pairs.first, pairs.second)[side - 1][j] for j, side in enumerate(model) if side]
        covariance = noise_sq * np.eye(n) + sum((slab_sq * np.outer(x, x) for x in columns), np.zeros((n, n)))
        prior = np.prod([share / 2 if side else 1 - share for side in model])
        density = np.exp(-0.5 * (y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(covariance)[1]))
        for j, side in enumerate(model):
            for column in (0, 1):
                weight[j, column] += prior * density * (0.5 if side == 0 else float(side == column + 1))
    return np.log(weight[:, 0] / weight[:, 1])


def test_the_sampler_has_the_exact_posterior_probabilities():
    rng = np.random.default_rng(0)
    n, p, share, slab_sq, noise_sq = 15, 3, 0.4, 0.5, 0.8
    X, copies = rng.normal(size=(2, n, p))
    y = 1.2 * X[:, 0] - 0.8 * copies[:, 1] + rng.normal(size=n)
    pairs = Pairs.of(X, copies)
    residual, weights, side = y.copy(), np.zeros(p), np.zeros(p, dtype=np.int8)
    sides, total = np.empty((p, 2)), np.zeros((p, 2))
    for _ in range(30_000):
        sample_pairs(
            pairs.first, pairs.second, pairs.norms, residual, weights, side, sides,
            rng.random(p), rng.standard_normal(p), share, slab_sq, noise_sq,
        )  # fmt: skip
        total += sides
    exact = exact_odds(pairs, y, share, slab_sq, noise_sq)
    assert np.abs(exact).max() > 0.5
    np.testing.assert_allclose(np.log(total[:, 0] / total[:, 1]), exact, atol=0.03)
    chosen = np.where(side == 1, 1.0, 0.0)[:, None] * pairs.first + (side == 2)[:, None] * pairs.second
    np.testing.assert_allclose(residual, y - weights @ chosen, atol=1e-8)


@pytest.mark.parametrize("is_class", [False, True], ids=["real", "classes"])
def test_exchanging_a_feature_and_its_knockoff_changes_the_sign_alone(is_class):
    rng = np.random.default_rng(1)
    X, copies = rng.normal(size=(2, 200, 8))
    y = X[:, :3].sum(axis=1) + rng.normal(size=200)
    y = np.where(y > 0, 1.0, -1.0) if is_class else y
    swap = np.array([True, False, False, True, True, False, False, True])
    one = masked_likelihood_ratios(X, copies, y, is_class, np.random.default_rng(2))
    other = masked_likelihood_ratios(
        np.where(swap, copies, X), np.where(swap, X, copies), y, is_class, np.random.default_rng(2)
    )
    np.testing.assert_array_equal(other, np.where(swap, -one, one))
    assert np.all(one[:3] > 1)


def test_signs_of_pure_noise_are_symmetric():
    rng = np.random.default_rng(4)
    signs, passed = [], []
    for _ in range(200):
        X, copies = rng.normal(size=(2, 40, 20))
        W = masked_likelihood_ratios(X, copies, rng.normal(size=40), False, rng, n_passes=80)
        signs.append(np.mean(W > 0))
        passed.append(np.any(knockoff_threshold(W, 0.5, 1) <= W))
    assert abs(np.mean(signs) - 0.5) < 3 * np.std(signs) / np.sqrt(200)
    assert np.mean(passed) <= 0.5 + 3 * 0.5 / np.sqrt(200)


def test_latent_variables_have_the_signs_of_the_classes_and_truncated_means():
    rng = np.random.default_rng(4)
    y = np.repeat([1.0, -1.0], 50_000)
    latent = _likelihood_ratio._latent(np.full(y.size, 0.7), y, rng)
    assert np.all(latent * y > 0)
    density, below = np.exp(-0.5 * 0.49) / np.sqrt(2 * np.pi), 0.2419636522
    assert latent[y > 0].mean() == pytest.approx(0.7 + density / (1 - below), abs=0.01)
    assert latent[y < 0].mean() == pytest.approx(0.7 - density / below, abs=0.01)
    far = _likelihood_ratio._latent(np.array([-60.0, 60.0]), np.array([1.0, -1.0]), rng)
    assert np.all(np.isfinite(far))


def test_several_classes_add_their_log_odds():
    rng = np.random.default_rng(5)
    X, copies = rng.normal(size=(2, 150, 6))
    y = np.argmax(X[:, :3] + 0.3 * rng.normal(size=(150, 3)), axis=1)
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    W = masked_likelihood_ratios(X, copies, Y, True, rng)
    assert np.all(W[:3] > 3)
    assert np.all(np.abs(W[3:]) < W[:3].min())
