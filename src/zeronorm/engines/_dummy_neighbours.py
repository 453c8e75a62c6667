r"""The probability that a kept feature, and not one that is correlated with it, is the relevant one.

Dummies show that something near a kept feature j is relevant, but not which of several correlated columns it is. With
the other kept features in the model, let j or exactly one of its neighbours i be relevant, each as likely before seeing
the target. For a linear model with normal noise of unknown variance and weights without a preferred size, the
probability of j is

.. math:: w_j = \frac{S_j^{-\nu/2}}{S_j^{-\nu/2} + \sum_i S_i^{-\nu/2}},
          \qquad S_i = \|y\|^2 - \frac{(v_i^\top y)^2}{\|v_i\|^2},

where y and :math:`v_i` are the target and the column without the span of the other kept features, and :math:`\nu` is
the number of samples that are left for the variance: the posterior of a single effect (Wang, Sarkar, Carbonetto &
Stephens 2020, with an unknown variance).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from zeronorm._types import FloatArray, IntArray

# Absolute correlation from which a column counts as a neighbour: with 0.5 the rate exceeded the level in real
# expression columns (181 x 300), and 0.3 took away up to 0.07 of the power where columns are independent (50 x 100).
NEIGHBOUR = 0.4
LARGEST_LOG_ODDS = 500.0  # keeps the exponential finite
DEPENDENT = 1e-8  # squared length below which a projected column is in the span of the others


class NeighbourWeights:
    """The probabilities :math:`w_j` of sets of kept columns.

    Parameters
    ----------
    columns : all columns that can enter, of unit length.
    target : the values to explain.
    dimension : number of independent samples, less the removed directions.
    """

    def __init__(self, columns: FloatArray, target: FloatArray, dimension: float) -> None:
        self.columns, self.target, self.dimension = columns, target, dimension
        self._found: dict[bytes, FloatArray] = {}
        self._near: dict[int, IntArray] = {}

    def __call__(self, kept: IntArray) -> FloatArray:
        """The probability of each of the columns at these positions."""
        key = np.asarray(kept, dtype=np.int64).tobytes()
        if key not in self._found:
            self._found[key] = self._weights(kept)
        return self._found[key]

    def _weights(self, kept: IntArray) -> FloatArray:
        left = self.dimension - kept.size
        own = self.columns[:, kept]
        gram = own.T @ own
        if kept.size == 0 or left < 1 or np.linalg.eigvalsh(gram)[0] < DEPENDENT:
            return np.zeros(kept.size)
        neighbours = [np.setdiff1d(self._neighbours(int(one)), kept) for one in kept]
        near = np.unique(np.concatenate(neighbours))
        is_near = np.stack([np.isin(near, one) for one in neighbours])
        gains = _gains(own, linalg.inv(gram), self.columns[:, near], self.target)
        unexplained = np.maximum(gains[2] - np.column_stack([gains[0], gains[1]]), np.finfo(float).tiny)
        log_odds = -0.5 * left * (np.log(unexplained) - np.log(unexplained[:, :1]))
        odds = np.exp(np.minimum(log_odds[:, 1:], LARGEST_LOG_ODDS))
        return np.asarray(1.0 / (1.0 + np.sum(odds, axis=1, where=is_near)))

    def _neighbours(self, column: int) -> IntArray:
        if column not in self._near:
            correlations = np.abs(self.columns[:, column] @ self.columns)
            self._near[column] = np.flatnonzero(correlations >= NEIGHBOUR)
        return self._near[column]


def _gains(
    own: FloatArray, inverse: FloatArray, near: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each kept column: its gain given the others, that of each neighbour in its stead, and the rest of ‖y‖².

    The residual of a kept column given the others is the column of ``own @ inverse`` scaled by the diagonal.
    """
    scale = np.diag(inverse)
    residual = own @ inverse / scale  # squared lengths 1 / scale
    with_y = residual.T @ y
    gain = with_y**2 * scale
    basis = linalg.qr(own, mode="economic")[0]
    y_rest = y - basis @ (basis.T @ y)
    rest = near - basis @ (basis.T @ near)
    along = residual.T @ near
    length = np.einsum("ij,ij->j", rest, rest) + along**2 * scale[:, None]
    product = y_rest @ near + along * with_y[:, None] * scale[:, None]
    in_stead = np.zeros_like(length)
    np.divide(product**2, length, out=in_stead, where=length > DEPENDENT)
    return gain[:, None], in_stead, (float(y_rest @ y_rest) + gain)[:, None]


def effective_samples(target: FloatArray, groups: NDArray[np.intp] | None) -> float:
    """Number of independent samples, with groups of samples after the intraclass correlation of the target.

    .. math:: n / (1 + (m - 1) \\rho)

    with the mean group size m, weighted as in an analysis of variance. Features are taken as constant within groups.
    """
    n = target.size
    if groups is None:
        return float(n)
    sizes = np.bincount(groups)
    count = sizes.size
    if count in (1, n):
        return float(n)
    means = np.bincount(groups, target) / sizes
    between = float(sizes @ (means - target.mean()) ** 2) / (count - 1)
    within = float(np.sum((target - means[groups]) ** 2)) / (n - count)
    size = (n - float(np.sum(sizes**2)) / n) / (count - 1)
    total = between + (size - 1.0) * within
    correlation = max(0.0, (between - within) / total) if total > 0.0 else 0.0
    return n / (1.0 + (size - 1.0) * correlation)
