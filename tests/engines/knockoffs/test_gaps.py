"""How far knockoffs are from their features: against an SDP solver and a general optimiser."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

from zeronorm.engines.knockoffs import _gaps


def toeplitz(p, rho=0.5):
    return rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


@pytest.mark.parametrize("rho", [0.2, 0.5, 0.75])
def test_semidefinite_gaps_match_an_sdp_solver(rho):
    correlation = toeplitz(12, rho)
    s = cp.Variable(12)
    feasible = [s >= 0, s <= 1, 2 * correlation - cp.diag(s) >> 0]
    # The last digits that Clarabel asks for by default are out of its reach with some versions of BLAS.
    accuracy = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-7)
    best = cp.Problem(cp.Maximize(cp.sum(s)), feasible).solve(solver=cp.CLARABEL, **accuracy)
    ours = _gaps.semidefinite_gaps(correlation)
    assert ours.sum() == pytest.approx(best, rel=2e-3)
    assert ours.sum() <= best * (1 + 1e-6)
    assert ours.min() >= 0
    assert ours.max() <= 1
    assert np.linalg.eigvalsh(2 * correlation - np.diag(ours)).min() > -1e-9
    assert ours.sum() >= _gaps.equicorrelated_gaps(correlation).sum() - 1e-6


def test_equicorrelated_gaps():
    correlation = np.full((4, 4), 0.7) + 0.3 * np.eye(4)  # smallest eigenvalue 0.3
    np.testing.assert_allclose(_gaps.equicorrelated_gaps(correlation), 0.6)
    np.testing.assert_allclose(_gaps.equicorrelated_gaps(np.eye(4)), 1.0)


@pytest.mark.parametrize("rho", [0.3, 0.7])
def test_minimum_variance_gaps_match_a_general_optimiser(rho):
    """The trace of the inverse covariance of [X, X~], from its definition."""
    correlation = toeplitz(6, rho)

    def trace(s):
        mixed = correlation - np.diag(s)
        joint = np.block([[correlation, mixed], [mixed, correlation]])
        smallest = np.linalg.eigvalsh(joint)[0]
        return np.trace(np.linalg.inv(joint)) if smallest > 1e-6 else 1e6

    start = np.full(6, 0.5 * np.linalg.eigvalsh(correlation)[0])
    best = minimize(
        trace, start, method="Nelder-Mead", options={"maxiter": 20_000, "fatol": 1e-9, "xatol": 1e-7}
    )
    ours = _gaps.minimum_variance_gaps(correlation)
    assert trace(ours) == pytest.approx(best.fun, rel=1e-4)
    np.testing.assert_allclose(ours, best.x, atol=5e-3)
    np.testing.assert_allclose(_gaps.minimum_variance_gaps(np.eye(4)), 1.0, atol=1e-3)
