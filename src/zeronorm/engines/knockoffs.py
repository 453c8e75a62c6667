"""Knockoff copies: noise columns with the correlations of the real ones.

Serves KnockoffSelector.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from zeronorm._types import FloatArray

# A little inside the boundary, so that the covariance of the knockoffs stays positive definite.
SAFETY = 1e-3


# Smallest eigenvalue that the correlation matrix gets at least. Knockoffs drawn from a matrix shrunk by a share
# lambda have correlations that are too weak by that share, and irrelevant features beside relevant ones then beat
# their knockoffs too often. Shrinking just enough for this eigenvalue keeps the false discovery rate (see the page
# on trust); a smaller one costs power, because knockoffs come closer to their originals.
SMALLEST_EIGENVALUE = 0.15


def conditioned_correlation(X: FloatArray, smallest: float = SMALLEST_EIGENVALUE) -> FloatArray:
    r"""Correlation of standardised columns, shrunk towards the identity as little as possible.

    The share :math:`\lambda` of the identity is the least with which the smallest eigenvalue of
    :math:`(1 - \lambda) S + \lambda I` reaches ``smallest``.
    """
    correlation = X.T @ X / X.shape[0]
    lowest = float(linalg.eigvalsh(correlation, subset_by_index=[0, 0])[0])
    share = max(0.0, (smallest - lowest) / (1.0 - lowest)) if lowest < 1.0 else 0.0
    correlation *= 1.0 - share
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)


def normal_scores(X: FloatArray) -> FloatArray:
    """Each column replaced by the normal quantiles of its ranks, standardised."""
    n = X.shape[0]
    scores = ndtri(rankdata(X, axis=0) / (n + 1))
    spread = scores.std(axis=0)
    return np.asarray((scores - scores.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))


def with_margins_of(X: FloatArray, scores: FloatArray) -> FloatArray:
    """Normal scores turned into values that are distributed as the columns of ``X``."""
    n = X.shape[0]
    levels = np.arange(1, n + 1) / (n + 1)
    share = ndtr(scores)
    columns = [np.interp(share[:, j], levels, np.sort(X[:, j])) for j in range(X.shape[1])]
    return np.stack(columns, axis=1)


def equicorrelated_gaps(correlation: FloatArray) -> FloatArray:
    r"""The same :math:`s_j = \min(2 \lambda_{\min}(\Sigma), 1)` for every feature."""
    smallest = float(linalg.eigvalsh(correlation, subset_by_index=[0, 0])[0])
    return np.full(len(correlation), min(1.0, 2.0 * max(smallest, 0.0)))


def semidefinite_gaps(correlation: FloatArray, *, tol: float = 1e-2, max_sweeps: int = 500) -> FloatArray:
    r"""The largest :math:`\sum_j s_j` with :math:`0 \le s_j \le 1` and :math:`2\Sigma - \operatorname{diag}(s)
    \succeq 0`.

    Coordinate ascent on :math:`\sum_j s_j + \mu \log\det(2\Sigma - \operatorname{diag}(s))` for falling
    :math:`\mu`. With :math:`m = [(2\Sigma - \operatorname{diag}(s))^{-1}]_{jj}` the best step along s_j is
    :math:`1/m - \mu`, and the inverse follows by a rank-one update.
    """
    p = len(correlation)
    s = 0.5 * equicorrelated_gaps(correlation)
    barrier = 0.1
    inverse = linalg.inv(2 * correlation - np.diag(s))
    for _ in range(max_sweeps):
        moved = 0.0
        for j in range(p):
            m = inverse[j, j]
            step = min(max(s[j] + 1 / m - barrier, 0.0), 1.0) - s[j]
            if step != 0.0:
                inverse += np.outer(inverse[j] * (step / (1 - step * m)), inverse[j])
                s[j] += step
                moved = max(moved, abs(step))
        if moved < 0.1 * barrier:
            if barrier < tol / p:  # the optimum is then about ``tol`` away at most
                break
            barrier *= 0.5
            inverse = linalg.inv(2 * correlation - np.diag(s))  # the updates gather rounding
    return s


def knockoff_factors(correlation: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""The maps of :math:`\tilde X = X (I - \Sigma^{-1} D) + N C`, :math:`C^\top C = 2D - D \Sigma^{-1} D`.

    C is the symmetric root, which unlike a triangular or spectral one does not jump with rounding.
    """
    inverse_gaps = linalg.solve(correlation, np.diag(s), assume_a="pos")
    spread = 2 * np.diag(s) - s[:, None] * inverse_gaps
    values, vectors = linalg.eigh((spread + spread.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.eye(len(s)) - inverse_gaps, root


def model_x_knockoffs(
    X: FloatArray, keep: FloatArray, root: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Knockoffs of standardised Gaussian columns, drawn given X."""
    return np.asarray(X @ keep + rng.standard_normal(X.shape) @ root)


def fixed_x_knockoffs(
    X: FloatArray, keep: FloatArray, root: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Knockoffs whose sample correlations with centred X are exact; needs n > 2p."""
    n, p = X.shape
    spanned = np.column_stack([np.ones(n), X])
    basis, _ = linalg.qr(spanned, mode="economic")
    free = rng.standard_normal((n, p))
    free -= basis @ (basis.T @ free)
    free -= basis @ (basis.T @ free)  # once more, for orthogonality to the last digit
    directions, _ = linalg.qr(free, mode="economic")
    return np.asarray(X @ keep + np.sqrt(n) * directions @ root)
