"""Reference solutions of support vector machines by a general convex solver (Clarabel through cvxpy)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

PRECISE = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


def primal_svm(X, y, C, loss="hinge", *, bias_penalty=0.0):
    """Minimise the primal objective of an SVM; returns weights, bias and objective."""
    n, p = X.shape
    C = np.broadcast_to(np.asarray(C, dtype=float), n)
    w, b = cp.Variable(p), cp.Variable()
    margin = cp.multiply(y, X @ w + b)
    hard = np.isinf(C)
    constraints = [margin[hard] >= 1] if hard.any() else []
    cost = np.where(hard, 0.0, C)
    excess = cp.pos(1 - margin)
    errors = cost @ excess if loss == "hinge" else 0.5 * (cost @ cp.square(excess))
    return _minimise(w, b, 0.5 * cp.sum_squares(w) + 0.5 * bias_penalty * cp.square(b) + errors, constraints)


def primal_svr(X, y, C, epsilon, loss="epsilon_insensitive"):
    """Support vector regression by the same solver."""
    n, p = X.shape
    C = np.broadcast_to(np.asarray(C, dtype=float), n)
    w, b = cp.Variable(p), cp.Variable()
    excess = cp.pos(cp.abs(y - X @ w - b) - epsilon)
    errors = C @ excess if loss == "epsilon_insensitive" else 0.5 * (C @ cp.square(excess))
    return _minimise(w, b, 0.5 * cp.sum_squares(w) + errors, [])


def _minimise(w, b, objective, constraints):
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=cp.CLARABEL, **PRECISE)
    return w.value, (float(b.value) if b.value is not None else None), float(problem.value)
