"""The linear program of an l1 SVM with all features at once, by scipy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog


def full_program(X, y, C, penalty, epsilon=None):
    """Solve the program with all features at once, one inequality per side of the loss."""
    n, p = X.shape
    C = np.broadcast_to(C, n)
    hard = np.isinf(C)
    soft = np.where(hard, 0.0, C)
    if epsilon is None:
        signed, right, slack = y[:, None] * np.column_stack([X, np.ones(n)]), np.ones(n), np.eye(n)
        upper = np.where(hard, 0.0, np.inf)
    else:
        extended = np.column_stack([X, np.ones(n)])
        signed = np.vstack([extended, -extended])
        right = np.concatenate([y - epsilon, -y - epsilon])
        slack, upper, soft = np.eye(2 * n), np.full(2 * n, np.inf), np.tile(soft, 2)
    A = -np.column_stack([signed[:, :p], -signed[:, :p], signed[:, p], slack])
    bounds = [(0, None)] * (2 * p) + [(None, None)] + [(0, u) for u in upper]
    c = np.concatenate([penalty, penalty, [0.0], soft])
    found = linprog(c, A_ub=A, b_ub=-right, bounds=bounds)
    return found.fun if found.status == 0 else None
