"""Random small problems, and the best subset by trying all of them with minimisers of other libraries."""

from __future__ import annotations

from itertools import combinations

import cvxpy as cp
import numpy as np
from scipy.optimize import minimize

from zeronorm import as_design
from zeronorm.engines.certificates._bounds import Objective
from zeronorm.engines.certificates._conjugates import DUAL_LOSSES

LOSSES = tuple(DUAL_LOSSES)


def value(X, y, cost, loss, coef):
    """½‖w‖² + Σ C L, written out."""
    f = X @ coef[:-1] + coef[-1]
    short = np.maximum(0.0, 1.0 - y * f)
    losses = {
        "squared_error": 0.5 * (f - y) ** 2,
        "logistic": np.logaddexp(0.0, -y * f),
        "hinge": short,
        "squared_hinge": 0.5 * short**2,
    }
    return 0.5 * coef[:-1] @ coef[:-1] + cost @ losses[loss]


def gradient(X, y, cost, loss, coef):
    """The derivative of a smooth objective in the weights and the bias."""
    f = X @ coef[:-1] + coef[-1]
    slope = {
        "squared_error": lambda: f - y,
        "logistic": lambda: -y / (1.0 + np.exp(y * f)),
        "squared_hinge": lambda: -y * np.maximum(0.0, 1.0 - y * f),
    }[loss]()
    return np.append(X.T @ (cost * slope) + coef[:-1], cost @ slope)


def trained(X, y, cost, loss, max_weight=np.inf):
    """The smallest objective on these columns: BFGS, and an interior-point method for the hinge loss."""
    k = X.shape[1]
    if loss != "hinge" and np.isfinite(max_weight):
        found = minimize(
            lambda c: value(X, y, cost, loss, c),
            np.zeros(k + 1),
            jac=lambda c: gradient(X, y, cost, loss, c),
            method="L-BFGS-B",
            bounds=[(-max_weight, max_weight)] * k + [(None, None)],
            options={"gtol": 1e-10, "ftol": 1e-15},
        )
        return float(found.fun)
    if loss != "hinge":
        options = {"gtol": 1e-10}
        found = minimize(
            lambda c: value(X, y, cost, loss, c),
            np.zeros(k + 1),
            jac=lambda c: gradient(X, y, cost, loss, c),
            method="BFGS",
            options=options,
        )
        return float(found.fun)
    if k == 0:
        return min(value(X, y, cost, loss, np.array([b])) for b in (-1.0, 1.0))
    w, b = cp.Variable(k), cp.Variable()
    slack = cp.pos(1 - cp.multiply(y, X @ w + b))
    limits = [cp.abs(w) <= max_weight] if np.isfinite(max_weight) else []
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + cost @ slack), limits)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def best_by_trying_all(X, targets, cost, loss, size, groups=None, forced=(), max_weight=np.inf):
    """The smallest objective of all subsets of at most ``size`` features, whole groups, with the forced ones.

    ``max_weight`` bounds the weights of single features with one model.
    """
    groups = np.arange(X.shape[1]) if groups is None else groups
    units = np.unique(groups)
    needed = set(groups[list(forced)])
    best, chosen = np.inf, None
    for m in range(len(units) + 1):
        for some in combinations(units, m):
            columns = np.flatnonzero(np.isin(groups, some))
            if columns.size > size or not needed <= set(some):
                continue
            found = sum(trained(X[:, columns], y, cost, loss, max_weight) for y in targets.T)
            if found < best:
                best, chosen = found, columns
    return best, chosen


def best_in_closed_form(X, y, cost, size, forced=()):
    """The same for the squared error and single features: P(S) = ½ y'Cy - ½ r'(G + I)⁻¹ r, columns and y centred."""
    centre = cost / cost.sum()
    X, y = X - centre @ X, y - centre @ y
    gram, product = (X.T * cost) @ X, X.T @ (cost * y)
    total, best, chosen = 0.5 * float(cost @ y**2), np.inf, None
    for m in range(len(forced), size + 1):
        some = np.array([c for c in combinations(range(X.shape[1]), m) if set(forced) <= set(c)], dtype=int)
        ridged = gram[some[:, :, None], some[:, None, :]] + np.eye(m)
        gains = np.sum(product[some] * np.linalg.solve(ridged, product[some][..., None])[..., 0], axis=1)
        found = total - 0.5 * gains
        if found.min() < best:
            best, chosen = float(found.min()), some[int(found.argmin())]
    return best, chosen


def random_problem(rng, loss, *, n=None, p=None, classes=2):
    """Correlated columns, targets of one or more models, costs."""
    n, p = n or int(rng.integers(6, 25)), p or int(rng.integers(2, 7))
    X = rng.normal(size=(n, p)) + rng.uniform(0, 2) * rng.normal(size=(n, 1))
    if rng.random() < 0.3:
        X[:, -1] = X[:, 0]
    signal = X[:, 0] - X[:, p // 2] + rng.uniform(0.1, 2) * rng.normal(size=n)
    if loss == "squared_error":
        targets = signal[:, None]
    else:
        codes = np.argsort(np.argsort(signal)) * classes // n
        targets = np.where(codes[:, None] == np.arange(classes), 1.0, -1.0)
        targets = targets[:, 1:] if classes == 2 else targets
    cost = rng.choice([0.01, 0.1, 1.0]) * (np.ones(n) if rng.random() < 0.5 else rng.uniform(0.1, 3, size=n))
    return X, targets, cost


def objective_of(X, targets, cost, loss, max_weight=np.inf):
    return Objective(as_design(X), targets, cost, DUAL_LOSSES[loss], max_weight)
