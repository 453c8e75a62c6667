"""ALMA_p: the margin against the largest one, the bound on corrections, the compiled loop against plain Python."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from zeronorm.selectors.greedy import _perceptron_rfe as module
from zeronorm.selectors.greedy._perceptron_rfe import SparseRows, solve_alma


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


def sparse_rows(seed, n=400, p=60, density=0.05, largest_shift=1.0):
    """Rows s - shift with a constant, rare columns, columns without a shift, and classes that overlap a little."""
    rng = np.random.default_rng(seed)
    share = density * rng.uniform(0.02, 2.0, size=p)
    S = rng.exponential(4.0, size=(n, p)) * (rng.random((n, p)) < share)
    y = np.where(S[:, :5].sum(axis=1) + rng.normal(scale=0.5, size=n) > 1.0, 1.0, -1.0)
    shift = np.where(rng.random(p) < 0.2, 0.0, largest_shift * rng.normal(size=p))
    S[:, -1], shift[-1] = 0.0, -1.0
    return SparseRows(sparse.csr_array(S), shift), S - shift, y


@pytest.mark.parametrize("power", [2.0, 2.3, 4.0, 6.5, 9.2, 40.0])
@pytest.mark.parametrize(
    ("seed", "density", "largest_shift"), [(0, 0.05, 0.3), (1, 0.4, 2.0), (2, 0.05, 50.0)]
)
def test_sparse_rows_make_the_corrections_of_dense_ones(power, seed, density, largest_shift):
    stored, dense, y = sparse_rows(seed, density=density, largest_shift=largest_shift)
    found, wanted = (solve_alma(X, y, power=power, accuracy=0.5, max_epochs=20) for X in (stored, dense))
    assert found.n_corrections == wanted.n_corrections > 500
    assert (found.n_epochs, found.is_clean) == (wanted.n_epochs, wanted.is_clean)
    np.testing.assert_allclose(found.weights, wanted.weights, rtol=1e-9, atol=1e-12)
    assert found.margin == pytest.approx(wanted.margin, abs=1e-11)


@pytest.mark.parametrize("power", [2.0, 3.1, 9.2])
def test_sums_over_features_follow_each_correction(power):
    """The norm and the slope that all features share, against their definition, between two fresh starts too."""
    stored, _, y = sparse_rows(3, p=300)
    S, n_between = stored.matrix, 0
    theta, inverse, k = module.lazy_theta(stored.shift, power), 1.0 / stored.norms(power), 1
    for i in range(y.size):
        k = module.alma_sparse_rows(S.data, S.indices, S.indptr, y, inverse, theta, power, 0.5, k, i, i + 1)
        v = theta.u - theta.number[module._B] * stored.shift
        size = np.abs(v) ** (power - 1.0)
        assert theta.number[module._TOTAL] == pytest.approx(np.sum(size * np.abs(v)), rel=1e-11)
        slope = np.sum(stored.shift * np.sign(v) * size)
        most = np.sum(np.abs(stored.shift) * size)
        assert theta.number[module._SLOPE] == pytest.approx(slope, abs=1e-11 * most)
        n_between += theta.number[module._N_SINCE] > 0
    assert np.linalg.norm(theta.dense(), power) <= 1.0 + 1e-12
    assert n_between > y.size / 2
    assert theta.number[module._N_VISITED] < np.count_nonzero(theta.u)
