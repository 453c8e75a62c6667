"""Normal scores of columns, on which knockoffs with the distributions of the columns are drawn (a Gaussian copula)."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from zeronorm._types import FloatArray


def normal_scores(X: FloatArray) -> FloatArray:
    """Each column replaced by the normal quantiles of its ranks, standardised."""
    n = X.shape[0]
    scores = ndtri(rankdata(X, axis=0) / (n + 1))
    scale = scores.std(axis=0)
    return np.asarray((scores - scores.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0))


def with_margins_of(X: FloatArray, scores: FloatArray) -> FloatArray:
    """Transform normal scores to values with the marginal distributions of the columns of ``X``."""
    n = X.shape[0]
    levels = np.arange(1, n + 1) / (n + 1)
    share = ndtr(scores)
    columns = [np.interp(share[:, j], levels, np.sort(X[:, j])) for j in range(X.shape[1])]
    return np.stack(columns, axis=1)
