"""ALMA_p: the margin against the largest one, the bound on corrections, the compiled loop against plain Python."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from zeronorm.selectors.greedy.perceptron_rfe import solve_alma


def separable(seed=0, n=25, p=6):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=p) * (np.arange(p) < 3)
    X = rng.normal(size=(n, p))
    y = np.where(X @ direction > 0, 1.0, -1.0)
    return X + 0.3 * y[:, None] * direction, y


def largest_margin(X, y, power):
    scaled = X / np.linalg.norm(X, power, axis=1)[:, None]
    u, margin = cp.Variable(X.shape[1]), cp.Variable()
    constraints = [cp.multiply(y, scaled @ u) >= margin, cp.pnorm(u, power / (power - 1.0)) <= 1]
    return float(cp.Problem(cp.Maximize(margin), constraints).solve(solver="CLARABEL"))


@pytest.mark.parametrize("power", [2.0, 3.5])
@pytest.mark.parametrize("accuracy", [0.2, 0.6])
def test_margin_and_corrections_meet_the_theory(power, accuracy):
    X, y = separable()
    best = largest_margin(X, y, power)
    found = solve_alma(X, y, power=power, accuracy=accuracy, max_epochs=100_000)
    assert found.is_clean
    assert np.linalg.norm(found.weights, power / (power - 1.0)) == pytest.approx(1.0)
    assert (1.0 - accuracy) * best <= found.margin <= best * (1 + 1e-6)
    slack = 2.0 / accuracy - 1.0
    assert found.n_corrections <= 2.0 * (power - 1.0) / best**2 * slack**2 + 8.0 / accuracy - 4.0


def test_compiled_passes_equal_the_textbook_algorithm():
    X, y = separable(1)
    power, accuracy = 2.7, 0.4
    q = power / (power - 1.0)

    def link(v, r):
        length = np.linalg.norm(v, r)
        return np.sign(v) * np.abs(v) ** (r - 1.0) / length ** (r - 2.0) if length > 0 else v

    w, k = np.zeros(X.shape[1]), 1
    for _ in range(3):
        for x, label in zip(X, y, strict=True):
            unit = x / np.linalg.norm(x, power)
            if label * (w @ unit) <= (1 - accuracy) * np.sqrt(8) / accuracy * np.sqrt((power - 1) / k):
                w = link(link(w, q) + np.sqrt(2 / ((power - 1) * k)) * label * unit, power)
                w /= max(1.0, np.linalg.norm(w, q))
                k += 1
    found = solve_alma(X, y, power=power, accuracy=accuracy, max_epochs=3)
    assert found.n_corrections == k - 1
    np.testing.assert_allclose(found.weights, w / np.linalg.norm(w, q), rtol=1e-9, atol=1e-12)


def test_zero_rows_and_contradicting_samples_stay_finite():
    X = np.array([[0.0, 0.0], [1.0, 2.0], [1.0, 2.0]])
    found = solve_alma(X, np.array([1.0, 1.0, -1.0]), power=2.0, accuracy=0.5, max_epochs=10)
    assert np.all(np.isfinite(found.weights))
    assert found.margin <= 0.0
    assert not found.is_clean
