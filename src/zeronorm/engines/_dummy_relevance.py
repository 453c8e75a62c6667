r"""The probability that a feature that beats the dummies, and not one that is correlated with it, is relevant.

Dummies show that something near a feature is relevant, but not which of several correlated columns it is, and a column
that is correlated a little with many relevant ones enters every path. :mod:`zeronorm.engines._inclusion` weighs all
models of the candidates, those columns that come nearest to what one of the entered columns explains.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._inclusion import inclusion_probabilities

MOST_CANDIDATES = 500  # their Gram matrix is stored, and each step of the sampler goes through all of them


def relevance_probabilities(
    columns: FloatArray,
    target: FloatArray,
    n_independent: float,
    n_features: int,
    entered: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """The probability of each column that it is relevant, 0 for columns that are no candidates.

    Parameters
    ----------
    columns : all columns that can enter, of unit length or zero.
    target : the values to explain.
    n_independent : number of independent samples, less the removed directions.
    n_features : number of all features.
    entered : the columns that beat the dummies.
    """
    probabilities = np.zeros(columns.shape[1])
    if n_independent < 2.0:
        return probabilities
    target = target / np.linalg.norm(target)
    entered = entered[: int(n_independent) // 2]
    chosen = _candidates(columns, target, entered)
    start = np.flatnonzero(np.isin(chosen, entered))
    block = np.ascontiguousarray(columns[:, chosen])
    probabilities[chosen] = inclusion_probabilities(block, target, n_independent, n_features, start, rng)
    return probabilities


def _candidates(columns: FloatArray, target: FloatArray, entered: IntArray) -> IntArray:
    """The entered columns, and those with the largest products with what all but one of them leave unexplained."""
    if columns.shape[1] <= MOST_CANDIDATES:
        return np.arange(columns.shape[1])
    kept = [entered, *(np.delete(entered, position) for position in range(entered.size)), entered[:0]]
    left = np.stack([_unexplained(columns[:, one], target) for one in kept], axis=1)
    left /= np.maximum(np.linalg.norm(left, axis=0), np.finfo(float).tiny)
    largest = np.abs(columns.T @ left).max(axis=1)
    largest[entered] = np.inf
    return np.sort(np.argpartition(-largest, MOST_CANDIDATES)[:MOST_CANDIDATES])


def _unexplained(columns: FloatArray, target: FloatArray) -> FloatArray:
    basis = linalg.qr(columns, mode="economic")[0]
    return np.asarray(target - basis @ (basis.T @ target))
