"""Times to an event: speed of CoxLasso and CoxScore."""

from __future__ import annotations

import numpy as np

from harness import Measurement, against, job, under
from zeronorm import CoxLasso, CoxScore


def survival(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ten features with an effect, 200 correlated ones, and about a third of the samples censored."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(size=(n, p), dtype=np.float32)
    X[:, :200] += 0.7 * rng.normal(size=(n, 1))
    time = rng.exponential(np.exp(-X[:, :10] @ np.linspace(1.0, -1.0, 10)))
    end = rng.exponential(2.0 * np.median(time), n)
    y = np.empty(n, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = time <= end, np.minimum(time, end)
    return X, y


@job("cox lasso path, 200x20000")
def cox_lasso() -> Measurement:
    """Largest violation of the optimality conditions: 1.8e-3 of the largest penalty (peer) and 1e-3 (ours)."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    X, y = survival(200, 20_000)
    Z = np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0), dtype=np.float64)
    CoxLasso(3, n_alphas=3).fit(Z[:, :300], y)  # compile
    return against(
        5.0,
        lambda: CoxLasso(ties="breslow", tol=1e-3, standardize=False).fit(Z, y),
        lambda: CoxnetSurvivalAnalysis(l1_ratio=1.0, n_alphas=100, alpha_min_ratio=0.01, tol=1e-7).fit(Z, y),
        "CoxnetSurvivalAnalysis",
        repeat=3,
    )


@job("cox lasso path, 500x1000000")
def cox_lasso_of_a_million() -> Measurement:
    X, y = survival(500, 1_000_000)
    CoxLasso(3, n_alphas=3).fit(X[:, :300], y)
    return under(300.0, lambda: CoxLasso(50).fit(X, y), note="float32, 50 features asked for")


@job("cox score, 500x1000000")
def cox_score() -> Measurement:
    X, y = survival(500, 1_000_000)
    CoxScore(3).fit(X[:, :300], y)
    return under(20.0, lambda: CoxScore(50).fit(X, y), note="float32")
