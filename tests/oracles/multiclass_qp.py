"""The multi-class SVM of Weston and Watkins by a general convex solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np

from oracles.qp import PRECISE


def primal_weston_watkins(X, codes, n_classes, C, loss="hinge"):
    """Weights (p, q) and objective; None and inf when a hard margin does not exist."""
    n, p = X.shape
    W, b = cp.Variable((p, n_classes)), cp.Variable((1, n_classes))
    pairs = [(i, m) for i in range(n) for m in range(n_classes) if m != codes[i]]
    sample, other = np.array(pairs).T
    signs = np.eye(n_classes)[codes[sample]] - np.eye(n_classes)[other]
    decision = X[sample] @ W + np.ones((sample.size, 1)) @ b
    margin = cp.sum(cp.multiply(signs, decision), axis=1)
    cost = np.broadcast_to(np.asarray(C, dtype=float), n)[sample]
    hard = np.isinf(cost)
    constraints = [margin[hard] >= 1] if hard.any() else []
    excess = cp.pos(1 - margin)
    errors = np.where(hard, 0.0, cost) @ (excess if loss == "hinge" else 0.5 * cp.square(excess))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + errors), constraints)
    problem.solve(solver=cp.CLARABEL, **PRECISE)
    return W.value, float(problem.value)
