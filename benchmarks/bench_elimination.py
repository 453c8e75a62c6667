"""Backward elimination with kernels, bounds and networks."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from harness import Measurement, against, job, under, wide_problem
from zeronorm import RFE, BoundElimination, OptimalBrainDamage
from zeronorm.solvers.svm._dual import solve_svm_dual


def _naive_rbf_elimination(X: np.ndarray, y: np.ndarray, gamma: float) -> list[int]:
    """Algorithm 2 of Lal et al. as printed: a fresh kernel for every feature; returns the order of elimination."""
    signs = np.where(y == 1, 1.0, -1.0)
    active = np.arange(X.shape[1])
    gone: list[int] = []
    while active.size > 1:
        K = rbf_kernel(X[:, active], gamma=gamma)
        v = solve_svm_dual(K, signs, C=1.0, tol=1e-6).dual_coef
        full = v @ K @ v
        value = [
            abs(full - v @ rbf_kernel(X[:, np.delete(active, j)], gamma=gamma) @ v)
            for j in range(active.size)
        ]
        worst = np.argsort(value)[: active.size // 2]
        gone.extend(active[worst].tolist())
        active = np.delete(active, worst)
    return gone


@job("rfe with an rbf kernel, halving, 300x2000")
def rfe_rbf() -> Measurement:
    X, y = wide_problem(300, 2000)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    orders = {}

    def ours() -> None:
        s = RFE(kernel="rbf", step=0.5, standardize=False).fit(X, y)
        orders["ours"] = s.path_.order

    def peer() -> None:
        orders["peer"] = np.array(_naive_rbf_elimination(X, y, 1.0 / X.shape[1])[::-1])

    measured = against(20.0, ours, peer, "the naive loop of Algorithm 2")
    same = all(set(orders["ours"][1:k]) == set(orders["peer"][: k - 1]) for k in (2, 4, 8, 16, 63, 125, 500))
    note = "the same features leave" if same else "the features that leave differ"
    return Measurement(**{**measured.__dict__, "note": note})


def _bound_elimination(kernel: str) -> Measurement:
    X, y = wide_problem(100, 2000)
    BoundElimination(5, kernel=kernel).fit(X[:, :20], y)  # compile
    return under(10.0, lambda: BoundElimination(5, kernel=kernel).fit(X, y), note="derivative, one at a time")


@job("bound elimination, linear, 100x2000")
def bound_linear() -> Measurement:
    return _bound_elimination("linear")


@job("bound elimination, rbf, 100x2000")
def bound_rbf() -> Measurement:
    return _bound_elimination("rbf")


@job("optimal brain damage, 1000x50 to 5")
def optimal_brain_damage() -> Measurement:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 50))
    y = (X[:, 0] * X[:, 1] + X[:, 2] ** 2 - 1.0 + X[:, 3] + 0.5 * X[:, 4] > 0).astype(int)
    found = {}

    def ours() -> None:
        found["support"] = OptimalBrainDamage(5, n_hidden=20, random_state=0).fit(X, y).support_

    measured = under(10.0, ours)
    note = f"20 hidden units; {int(found['support'][:5].sum())} of the 5 relevant features"
    return Measurement(**{**measured.__dict__, "note": note})
