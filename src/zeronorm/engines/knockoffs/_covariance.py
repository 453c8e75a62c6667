r"""Estimates of the column model: the common factors, the blocks, and the shrunk correlations within them.

The largest eigenvalues of the correlation matrix, beyond the edge :math:`(1 + \sqrt{p/n})^2` of pure noise, become
factors. What the factors leave is clustered into blocks of limited size, the strongest correlations first, and each
block has its own correlation matrix, shrunk towards the identity. No correlation matrix of all columns is stored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.knockoffs._gaps import SAFETY, Gaps
from zeronorm.engines.knockoffs._model import Block, ColumnModel, Factors, knockoff_factors

MOST_TOGETHER = 300  # columns in a block: the gaps take a few times b^3 operations
SAMPLES_PER_FACTOR = 10
MOST_FACTORS = 30
BEYOND_NOISE = (
    1.5  # eigenvalue of a factor, in units of the edge of pure noise with the variance that is left
)
LEAST_OWN_SHARE = 0.02  # of the variance of a column that factors leave to it
CHUNK = 256  # columns whose correlations with all others are in memory at a time
MOST_EDGES = 16  # strongest correlations that are used for clustering, per column
# Lower bound on the eigenvalues of the shrunk correlation matrix. Knockoffs drawn from a matrix shrunk by a share
# lambda have correlations that are too weak by that share, and irrelevant features beside relevant ones then beat
# their knockoffs too often. Shrinking just enough for this eigenvalue keeps the false discovery rate (see the page
# on trust); a smaller one costs power, because knockoffs come closer to their originals: at level 0.2, rate and power
# were 0.16 and 0.61 with 0.15, 0.18 and 0.68 with 0.2, 0.23 and 0.79 with 0.35 (autoregressive columns, 200 x 60).
SMALLEST_EIGENVALUE = 0.2


def estimated_model(X: FloatArray, gaps: Gaps) -> ColumnModel:
    """The model of standardised columns: one block if they are few, else factors and blocks."""
    p = X.shape[1]
    if p <= MOST_TOGETHER:
        return given_model(conditioned_correlation(X), gaps)
    scores, loadings = leading_factors(X)
    rest = X - scores @ loadings
    scale = rest.std(axis=0)
    rest /= np.where(scale > 0.0, scale, 1.0)
    own = np.maximum(1.0 - np.einsum("kj,kj->j", loadings, loadings), LEAST_OWN_SHARE)
    blocks, weighted = [], loadings.T / own[:, None]
    for columns in correlated_blocks(rest, MOST_TOGETHER):
        if columns.size == 1:
            continue
        correlation = conditioned_correlation(rest[:, columns])
        root = np.sqrt(own[columns])
        covariance = correlation * root * root[:, None]
        s = gaps(correlation) * own[columns] * (1 - SAFETY)
        blocks.append(Block(columns, *knockoff_factors(covariance, s)))
        weighted[columns] = linalg.solve(covariance, loadings[:, columns].T, assume_a="pos")
    return ColumnModel(np.sqrt(own), blocks, _factors(loadings, weighted) if len(loadings) else None)


def given_model(correlation: FloatArray, gaps: Gaps) -> ColumnModel:
    """The model of one block with this correlation matrix."""
    s = gaps(correlation) * (1 - SAFETY)
    return ColumnModel(
        np.ones(len(s)), [Block(np.arange(len(correlation)), *knockoff_factors(correlation, s))]
    )


def _factors(loadings: FloatArray, weighted: FloatArray) -> Factors:
    r"""The posterior of f: precision :math:`Q = I + L^\top \Psi^{-1} L`, mean :math:`Q^{-1} L^\top \Psi^{-1} x`."""
    precision = np.eye(len(loadings)) + loadings @ weighted
    covariance = linalg.inv(precision)
    return Factors(loadings, weighted @ covariance, linalg.cholesky((covariance + covariance.T) / 2))


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


def leading_factors(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scores (n, k) and loadings (k, p) of the factors beyond noise; the loadings are freed of the share of noise."""
    n, p = X.shape
    smaller = min(n, p)
    most = min(MOST_FACTORS, -(-smaller // SAMPLES_PER_FACTOR))
    gram = (X @ X.T if n <= p else X.T @ X) / n
    values, vectors = linalg.eigh(gram, subset_by_index=[smaller - most, smaller - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    edge = (1.0 + np.sqrt(p / n)) ** 2
    left = (p - np.concatenate([[0.0], np.cumsum(values)])) / p  # variance per column that is left for noise
    k = 0
    while k < values.size and values[k] > BEYOND_NOISE * edge * left[k]:
        k += 1
    scores = vectors[:, :k] * np.sqrt(n) if n <= p else X @ vectors[:, :k] / np.sqrt(values[:k])
    shares = np.maximum(0.0, 1.0 - left[k] * p / n / values[:k]) if k else np.empty(0)
    return scores, np.sqrt(shares)[:, None] * (scores.T @ X / n)


def correlated_blocks(X: FloatArray, most: int) -> list[IntArray]:
    """Clusters of at most ``most`` columns: the strongest correlations join first (single linkage of limited size)."""
    p = X.shape[1]
    absolute, one, other = _strong_pairs(X)
    order = np.argsort(-absolute, kind="stable")
    parent, size = np.arange(p), np.ones(p, dtype=np.intp)

    def root(j: int) -> int:
        while parent[j] != j:
            parent[j] = parent[parent[j]]
            j = parent[j]
        return j

    for a, b in zip(one[order].tolist(), other[order].tolist(), strict=True):
        i, j = root(a), root(b)
        if i != j and size[i] + size[j] <= most:
            parent[j], size[i] = i, size[i] + size[j]
    roots = np.asarray([root(j) for j in range(p)])
    by_root = np.argsort(roots, kind="stable")
    return np.split(by_root, np.flatnonzero(np.diff(roots[by_root])) + 1)


def _strong_pairs(X: FloatArray) -> tuple[FloatArray, NDArray[np.intp], NDArray[np.intp]]:
    """Absolute correlations that exceed those of most pure noise, with their columns; a limited number per chunk."""
    n, p = X.shape
    narrow = X.astype(np.float32)
    least = np.sqrt(2 * np.log(p) / n)
    found = []
    for start in range(0, p, CHUNK):
        absolute = np.abs(narrow[:, start : start + CHUNK].T @ narrow[:, start:]) / n
        one, other = np.nonzero(absolute > least)
        later = other > one
        one, other = one[later], other[later]
        values = absolute[one, other]
        if values.size > MOST_EDGES * CHUNK:
            top = np.argpartition(-values, MOST_EDGES * CHUNK)[: MOST_EDGES * CHUNK]
            one, other, values = one[top], other[top], values[top]
        found.append((values.astype(np.float64), one + start, other + start))
    values, one, other = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return values, one, other
