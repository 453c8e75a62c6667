"""Sparse Bayesian learning: speed and evidence of ARD."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import ARDRegression
from threadpoolctl import threadpool_limits

from harness import Measurement, job, load, timed, under
from zeronorm import ARD


def _regression(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, :10] @ rng.normal(size=10) + 0.5 * rng.normal(size=n)


def _log_evidence(X: np.ndarray, y: np.ndarray, precision: np.ndarray, noise_variance: float) -> float:
    """Log density of the centred target under the marginal covariance."""
    inside = np.isfinite(precision)
    C = noise_variance * np.eye(len(y)) + (X[:, inside] / precision[inside]) @ X[:, inside].T
    centred = y - y.mean()
    return -0.5 * float(
        centred @ np.linalg.solve(C, centred) + np.linalg.slogdet(C)[1] + len(y) * np.log(2 * np.pi)
    )


@job("ard against scikit-learn, 200x2000")
def ard_regression() -> Measurement:
    X, y = _regression(200, 2000)
    X = (X - X.mean(axis=0)) / X.std(axis=0)

    def ours():
        return ARD(task="regression").fit(X, y)

    with threadpool_limits(1):  # many small products, for both
        ours()
        ours_s, fitted = timed(ours, 3)
        peer_s, peer = timed(lambda: ARDRegression().fit(X, y), 3)
    kept = np.where(peer.lambda_ < peer.threshold_lambda, peer.lambda_, np.inf)
    our_evidence = _log_evidence(X, y, fitted.precision_, fitted.noise_variance_)
    peer_evidence = _log_evidence(X, y, kept, 1.0 / peer.alpha_)
    return Measurement(
        ours_s,
        "at least 5 × faster than ARDRegression at no worse evidence",
        peer_s / ours_s >= 5.0 and our_evidence >= peer_evidence,
        "ARDRegression",
        peer_s,
        f"log evidence {our_evidence:.1f} against {peer_evidence:.1f}; "
        f"{fitted.n_features_} features against {np.isfinite(kept).sum()}",
    )


@job("ard regression, 200x20000")
def ard_wide() -> Measurement:
    X, y = _regression(200, 20_000)
    return under(30.0, lambda: ARD(task="regression").fit(X, y), note="with compilation")


@job("ard with labels, 72x7129")
def ard_labels() -> Measurement:
    X, y = load("leukemia")
    fitted = {}

    def run():
        fitted["ard"] = ARD().fit(X, y)

    measured = under(30.0, run)
    note = f"{X.shape[0]}x{X.shape[1]}, {fitted['ard'].n_features_} features, converged {fitted['ard'].converged_}"
    return Measurement(**{**measured.__dict__, "note": note})
