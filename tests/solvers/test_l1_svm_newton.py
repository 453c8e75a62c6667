"""The two reductions of a Newton step of the ℓ1 machine against the whole system."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm.solvers.l1_svm import newton
from zeronorm.solvers.l1_svm.newton import (
    FeatureSystem,
    NotPositiveDefinite,
    SampleSystem,
    SignedProblem,
    balanced_multipliers,
    newton_system,
)


def draw(n, p, seed=0):
    rng = np.random.default_rng(seed)
    sign = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    rows = np.column_stack([rng.normal(size=(n, p)), np.ones(n)]) * sign[:, None]
    theta, stiffness = rng.lognormal(0.0, 2.0, n), rng.lognormal(0.0, 2.0, p)
    return rows, theta, stiffness, (rng.normal(size=n), rng.normal(size=p), 0.7)


def whole_system(rows, theta, stiffness, right, drift, off):
    """Z d + a/Θ = r, D (d_f - e) = Z_f' a, z_b' a = o, without eliminating anything."""
    width = rows.shape[1]
    matrix = np.block(
        [
            [rows, np.diag(1.0 / theta)],
            [np.diag(np.append(stiffness, 0.0)), -rows.T],
        ]
    )
    solution = np.linalg.solve(matrix, np.concatenate([right, stiffness * drift, [-off]]))
    return solution[:width], solution[width:]


@pytest.mark.parametrize("kind", [FeatureSystem, SampleSystem])
@pytest.mark.parametrize("shape", [(30, 8), (12, 40), (5, 300)])
def test_both_reductions_solve_the_whole_system(kind, shape, monkeypatch):
    monkeypatch.setattr(newton, "BLOCK", 256)
    rows, theta, stiffness, sides = draw(*shape)
    change, alpha = kind(rows, theta, stiffness, rows).solve(*sides)
    expected_change, expected_alpha = whole_system(rows, theta, stiffness, *sides)
    np.testing.assert_allclose(change, expected_change, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(alpha, expected_alpha, rtol=1e-7, atol=1e-9)


def test_multipliers_at_the_start_balance_the_two_sides():
    rows, price, *_ = draw(30, 4)
    alpha = balanced_multipliers(SignedProblem(rows, np.ones(30), price, np.ones(4), np.zeros(5)))
    positive = rows[:, -1] > 0.0
    assert alpha[positive].sum() == pytest.approx(alpha[~positive].sum())
    np.testing.assert_allclose((alpha / price).max(), 1.0)
    assert np.ptp((alpha / price)[positive]) < 1e-12


def test_more_rows_than_one_block():
    rows, theta, stiffness, sides = draw(5000, 3)
    change, alpha = FeatureSystem(rows, theta, stiffness, rows).solve(*sides)
    np.testing.assert_allclose(rows @ change + alpha / theta, sides[0], atol=1e-8)
    assert rows[:, -1] @ alpha == pytest.approx(sides[2])


def test_the_smaller_system_is_taken():
    for shape, kind in (((30, 8), FeatureSystem), ((8, 30), SampleSystem)):
        rows, theta, stiffness, _ = draw(*shape)
        assert isinstance(newton_system(rows, theta, stiffness, rows), kind)


@pytest.mark.parametrize("kind", [FeatureSystem, SampleSystem])
def test_a_spoilt_matrix_is_reported(kind):
    rows, _, stiffness, _ = draw(10, 10)
    with pytest.raises(NotPositiveDefinite):
        kind(rows, np.full(10, np.nan), stiffness, rows)


def test_what_was_left_out_wrongly_is_found():
    """A row stays at its price while it falls short of its target, at zero while it does not; a feature by its pull."""
    rng = np.random.default_rng(3)
    n, p = 12, 6
    rows = np.column_stack([rng.normal(size=(n, p)), rng.choice([-1.0, 1.0], n)])
    whole = newton.SignedProblem(rows, np.ones(n), np.full(n, 0.4), np.full(p, 0.5), np.zeros(p + 1), 0.0)
    stay, at_price, kept = np.arange(n) < 3, np.arange(n) > 7, np.arange(p) < 4
    left = newton.Reduction.none_of(whole).restricted(stay, at_price, kept)
    weights, alpha = left.lifted(0.3 * rng.normal(size=5), np.full(3, 0.1))
    np.testing.assert_array_equal(alpha, [0.1] * 3 + [0.0] * 5 + [0.4] * 4)
    found_rows, found_features = left.contradicted(weights, alpha)
    short = 1.0 - rows @ weights
    wrong = [i for i in range(3, n) if (short[i] < 0 if at_price[i] else short[i] > 0)]
    assert found_rows.tolist() == wrong
    assert {i for i in range(3, n) if at_price[i]} - set(wrong)
    pull = np.abs(rows[:, :p].T @ alpha)
    assert found_features.tolist() == np.flatnonzero(pull > 0.5).tolist()
    assert 0 < len(found_features) < p
