"""Forward selection: speed of ForwardLeastSquares, GramSchmidt and Grafting."""

from __future__ import annotations

import numpy as np
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, lasso_path
from threadpoolctl import threadpool_limits

from harness import Measurement, against, job, timed, under, wide_problem
from zeronorm import ForwardLeastSquares, Grafting, GramSchmidt


def _correlated_regression(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.3 * rng.normal(size=(n, 1))
    return X, X[:, :30] @ rng.normal(size=30) + rng.normal(size=n)


class _TrainingError:
    """One split whose training and validation samples are all samples."""

    def split(self, X, y=None, groups=None):
        everything = np.arange(len(X))
        yield everything, everything

    def get_n_splits(self, X=None, y=None, groups=None):
        return 1


@job("forward least squares to 50, 200x500")
def forward_least_squares() -> Measurement:
    X, y = _correlated_regression(200, 500)
    chosen = {}

    def ours():
        s = ForwardLeastSquares(50, gain="joint", task="regression").fit(X, y)
        chosen["ours"] = s.support_

    def peer():
        search = SequentialFeatureSelector(
            LinearRegression(), n_features_to_select=50, scoring="neg_mean_squared_error", cv=_TrainingError()
        )
        chosen["peer"] = search.fit(X, y).support_

    with threadpool_limits(1):  # the peer's many small fits are faster so
        measured = against(20.0, ours, peer, "SequentialFeatureSelector(LinearRegression)", repeat=5)
    same = int((chosen["ours"] & chosen["peer"]).sum())
    return Measurement(**{**measured.__dict__, "note": f"{same} of 50 features in common"})


@job("gram-schmidt to 100, 300x100000")
def gram_schmidt() -> Measurement:
    X, y = wide_problem(300, 100_000)
    GramSchmidt(1).fit(X[:, :200], y)  # compile the statistics
    return under(5.0, lambda: GramSchmidt(100).fit(X, y), note="float64, standardised, labels ±1")


@job("grafting to the full l1 solution, 100x20000")
def grafting() -> Measurement:
    X, y = wide_problem(100, 20_000)
    penalty = 0.15
    standard = np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))
    signs = np.where(y == 1, 1.0, -1.0)
    centred = signs - signs.mean()

    def ours():
        return Grafting(loss="squared_error", penalty_l1=penalty).fit(X, y)

    def peer():
        return lasso_path(standard, centred, alphas=[penalty], tol=1e-12, max_iter=100_000)[1][:, 0]

    ours()
    ours_s, fitted = timed(ours, 3)
    peer_s, weights = timed(peer)
    gap = float(np.abs(fitted.coef_ - weights).max())
    note = f"{fitted.n_features_} features, largest difference of a weight {gap:.1e}"
    return Measurement(ours_s, "the same weights to 1e-6", gap < 1e-6, "lasso_path", peer_s, note)
