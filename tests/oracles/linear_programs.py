"""ℓ1 SVMs as one full linear program, solved by scipy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def l1_model(X, y, cost, penalty=1.0, epsilon=None):
    """Weights and objective of Σ penalty·|w| + Σ cost·ξ; with an infinite cost there are no slacks."""
    n, p = X.shape
    cost, penalty = np.broadcast_to(cost, n), np.broadcast_to(penalty, p)
    penalties = np.concatenate([penalty, penalty, [0.0], np.where(np.isinf(cost), 0.0, cost)])
    slack = -np.diag(np.where(np.isinf(cost), 0.0, 1.0))
    plane = np.column_stack([X, -X, np.ones(n)])
    if epsilon is None:
        rows, right = np.column_stack([-y[:, None] * plane, slack]), -np.ones(n)
    else:
        rows = np.vstack([np.column_stack([plane, slack]), np.column_stack([-plane, slack])])
        right = np.concatenate([y + epsilon, epsilon - y])
    bounds = [(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * n
    found = linprog(penalties, A_ub=rows, b_ub=right, bounds=bounds, method="highs")
    if found.status != 0:
        return None, np.inf
    return found.x[:p] - found.x[p : 2 * p], float(found.fun)
