"""Reference solutions of logistic regression: exhaustive search over subsets, and a general convex solver."""

from __future__ import annotations

from itertools import combinations

import cvxpy as cp
import numpy as np


def logistic_objective(X, signs, ridge=1e-6, weight=None):
    """Minimum of the loss plus ridge, by Newton's method with halved steps."""
    n, k = X.shape
    weight = np.ones(n) if weight is None else weight
    Z = np.column_stack([X, np.ones(n)])
    ridges = np.append(np.full(k, ridge), 0.0)

    def value(w):
        return weight @ np.logaddexp(0.0, -signs * (Z @ w)) + 0.5 * ridges @ w**2

    w = np.zeros(k + 1)
    for _ in range(500):
        wrong = 1.0 / (1.0 + np.exp(np.clip(signs * (Z @ w), -700, 700)))
        gradient = -Z.T @ (weight * signs * wrong) + ridges * w
        hessian = (Z.T * (weight * wrong * (1 - wrong))) @ Z + np.diag(ridges)
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        t = 1.0
        while value(w - t * step) > value(w) and t > 1e-12:
            t /= 2
        w = w - t * step
        if gradient @ step <= 1e-13 * value(w):
            break
    return value(w)


def best_subset(X, signs, size, ridge=1e-6):
    """The subset of this size with the smallest objective, and the objective, by trying all subsets."""
    found = min(
        (logistic_objective(X[:, list(s)], signs, ridge), s) for s in combinations(range(X.shape[1]), size)
    )
    return found[1], found[0]


def l1_logistic(X, signs, *, bound=None, penalty=None):
    """Minimise the mean logistic loss with bounded or penalised absolute weights; weights, bias, objective."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = cp.sum(cp.logistic(-cp.multiply(signs, X @ w + b))) / len(X)
    if bound is not None:
        problem = cp.Problem(cp.Minimize(loss), [cp.norm1(w) <= bound])
    else:
        problem = cp.Problem(cp.Minimize(loss + penalty @ cp.abs(w)))
    problem.solve(solver=cp.CLARABEL)
    return w.value, float(b.value), float(problem.value)
