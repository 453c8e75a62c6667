"""Dual problems at a given point, and their optimum by dense linear algebra."""

from __future__ import annotations

import numpy as np

from zeronorm.solvers.svm._box_dual import BoxDual


def problem_of(kind, seed=0, n=7):
    """A problem at a point with some variables at each bound and some between, with f = Qv."""
    rng = np.random.default_rng(seed)
    cost = rng.uniform(0.5, 2.0, n)
    if kind == "regression":
        dual = BoxDual.regression(rng.normal(size=n), cost, 0.2, False)
    elif kind == "squared regression":
        dual = BoxDual.regression(rng.normal(size=n), cost, 0.2, True)
    else:
        dual = BoxDual.classification(np.where(np.arange(n) % 3 == 1, -1.0, 1.0), cost, kind == "squared")
    m = dual.sign.size
    alpha = rng.uniform(0.1, 0.9, m) * np.minimum(dual.upper, 1.0)
    alpha[rng.permutation(m)[: m // 3]] = 0.0
    full = rng.permutation(m)[: m // 3]
    alpha[full] = np.where(np.isfinite(dual.upper[full]), dual.upper[full], alpha[full])
    X = rng.normal(size=(n, 4))
    K = X @ X.T + 0.3 * np.eye(n)
    Q = K + np.diag(dual.ridge)
    return dual, K, Q, alpha, Q @ dual.signed_sum(alpha)


def state_of(dual):
    return dual.sample, dual.sign, dual.linear, dual.upper


def movable(dual, alpha):
    """Which variables may move with their sign, and which against it."""
    up, down = alpha < dual.upper, alpha > 0.0
    return np.where(dual.sign > 0, up, down), np.where(dual.sign > 0, down, up)


def gains(dual, f):
    """The decrease of the objective per unit step of a variable along its sign."""
    return -(f[dual.sample] + dual.sign * dual.linear)


def constrained_optimum(dual, Q, alpha):
    """The optimum over the free variables with the others fixed and the balance kept, by a linear system."""
    free = np.flatnonzero((alpha > 0.0) & (alpha < dual.upper))
    s, sign = dual.sample[free], dual.sign[free]
    H = sign[:, None] * Q[np.ix_(s, s)] * sign
    gradient = sign * (Q @ dual.signed_sum(alpha))[s] + dual.linear[free]
    system = np.block([[H, sign[:, None]], [sign[None], np.zeros((1, 1))]])
    return free, np.linalg.solve(system, np.append(-gradient, 0.0))[:-1]
