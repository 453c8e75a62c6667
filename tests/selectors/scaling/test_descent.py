"""Projected descent: quadratic problems against a QP solver, and honest reports of how it ended."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from zeronorm.engines.factor_descent.criterion import ConstantSum, UnitBox, descend


def quadratic(seed=0, p=25):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(p, p))
    H, c = A @ A.T / p + 0.05 * np.eye(p), rng.normal(size=p)
    return H, c, lambda x: (0.5 * float(x @ H @ x) + float(c @ x) + 50.0, H @ x + c)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("region", [ConstantSum(25.0), ConstantSum(3.0), UnitBox()], ids=repr)
def test_quadratic_problems_match_a_qp_solver(region, seed):
    H, c, evaluate = quadratic(seed)
    found = descend(evaluate, np.ones(25), region, tol=1e-8, max_iter=2000)
    x = cp.Variable(25, nonneg=True)
    limits = [x <= 1] if isinstance(region, UnitBox) else [cp.sum(x) == region.total]
    best = cp.Problem(cp.Minimize(0.5 * cp.quad_form(x, cp.psd_wrap(H)) + c @ x), limits).solve(
        solver=cp.CLARABEL
    )
    assert found.converged
    assert found.value == pytest.approx(best + 50.0, rel=1e-7)
    assert np.allclose(found.point, x.value, atol=2e-3)


def test_gap_bounds_the_distance_from_the_optimum():
    _, _, evaluate = quadratic(4)
    best = descend(evaluate, np.ones(25), ConstantSum(25.0), tol=1e-10, max_iter=5000).value
    for n_iter in (1, 3, 10):
        early = descend(evaluate, np.ones(25), ConstantSum(25.0), tol=1e-10, max_iter=n_iter)
        assert early.n_iter == n_iter
        assert not early.converged
        assert "max_iter" in early.remedy
        assert early.value - best <= early.gap * early.value * (1 + 1e-9)


def test_points_of_infinite_value_are_kept_away_from():
    def evaluate(x):
        if x[0] < 0.5:
            return np.inf, np.zeros(2)
        return float((x[0] - 0.6) ** 2) + 1.0, np.array([2.0 * (x[0] - 0.6), 0.0])

    found = descend(evaluate, np.array([1.0, 1.0]), ConstantSum(2.0), tol=1e-9, max_iter=200)
    assert found.point == pytest.approx([0.6, 1.4], abs=1e-3)


def test_wrong_slopes_end_the_search_with_a_warning_text():
    found = descend(
        lambda x: (float(x.sum()), -np.ones(3)), np.full(3, 0.2), UnitBox(), tol=1e-6, max_iter=100
    )
    assert not found.converged
    assert "no decrease" in found.remedy


def test_kinks_come_to_rest():
    def evaluate(x):  # the largest entry: its slope never becomes small
        slope = np.zeros(5)
        slope[int(np.argmax(x))] = 1.0
        return 1.0 + float(x.max()), slope

    found = descend(evaluate, np.array([5.0, 0.0, 0.0, 0.0, 0.0]), ConstantSum(5.0), tol=1e-3, max_iter=3000)
    assert found.value == pytest.approx(2.0, abs=0.05)
