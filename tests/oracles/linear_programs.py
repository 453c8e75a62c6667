"""ℓ1 SVMs of two and of several classes as one full linear program, solved by scipy."""

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


def joint_l1_model(X, y, cost, penalty):
    """The objective Σ penalty·|w_c| + Σ cost·ξ of Weston and Watkins' constraints; infinite if it has no solution."""
    (n, p), n_classes = X.shape, int(y.max()) + 1
    pairs = [(i, c) for i in range(n) for c in range(n_classes) if c != y[i]]
    cost = np.array([cost[i] for i, _ in pairs])
    rows = np.zeros((len(pairs), 2 * p * n_classes + n_classes + len(pairs)))
    for row, (i, other) in zip(rows, pairs, strict=True):
        for c, side in ((y[i], -1.0), (other, 1.0)):
            row[2 * p * c : 2 * p * (c + 1)] = side * np.concatenate([X[i], -X[i]])
            row[2 * p * n_classes + c] = side
    rows[:, 2 * p * n_classes + n_classes :] = -np.diag(np.isfinite(cost).astype(float))
    penalties = np.concatenate(
        [np.tile(penalty, 2 * n_classes), np.zeros(n_classes), np.where(np.isinf(cost), 0.0, cost)]
    )
    bounds = [(0, None)] * (2 * p * n_classes) + [(None, None)] * n_classes + [(0, None)] * len(pairs)
    found = linprog(penalties, A_ub=rows, b_ub=-np.ones(len(pairs)), bounds=bounds, method="highs")
    return float(found.fun) if found.status == 0 else np.inf
