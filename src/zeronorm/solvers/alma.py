"""The approximate large margin perceptron with p-norms (ALMA_p, Gentile 2001)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zeronorm._jit import kernel
from zeronorm.solvers.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class AlmaSolution:
    """Weights of unit q-norm and their margin: the smallest y_i w·x_i over samples scaled to unit p-norm.

    ``is_clean`` tells whether the last pass needed no correction; the margin is then at least ``1 - accuracy``
    times the largest possible.
    """

    weights: FloatArray
    margin: float
    n_corrections: int
    n_epochs: int
    is_clean: bool


def solve_alma(
    X: FloatArray, y: FloatArray, *, power: float, accuracy: float, max_epochs: int
) -> AlmaSolution:
    r"""Pass over the rows of ``X`` and correct the weights wherever the margin is too small.

    With :math:`p` = ``power`` and :math:`a` = ``accuracy``, sample i is corrected after k - 1 corrections if

    .. math:: y_i\, w \cdot x_i / \|x_i\|_p \le (1 - a) \frac{\sqrt 8}{a} \sqrt{\frac{p - 1}{k}},

    by a step :math:`\sqrt{2 / ((p-1) k)}\; y_i x_i / \|x_i\|_p` in the dual of the weights,
    :math:`w_j = \mathrm{sign}(\theta_j)|\theta_j|^{p-1} / \|\theta\|_p^{p-2}`, which is brought back to norm at
    most 1. Since :math:`\|w\|_q = \|\theta\|_p` for :math:`1/p + 1/q = 1`, only θ is kept.

    Parameters
    ----------
    X : (n, p) array in C order; y : labels -1 and +1.
    """
    lengths = row_norms(X, power)
    inverse = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    theta = np.zeros(X.shape[1])
    k, n_epochs, is_clean = alma_epochs(X, y, inverse, theta, power, accuracy, max_epochs)
    weights = np.sign(theta) * np.abs(theta) ** (power - 1.0)
    length = float(np.linalg.norm(theta, power))
    if length > 0.0:
        weights /= length ** (power - 1.0)
    margin = float(np.min(y * (X @ weights) * inverse))
    return AlmaSolution(weights, margin, k - 1, n_epochs, is_clean)


def row_norms(X: FloatArray, power: float) -> FloatArray:
    """The p-norm of each row, row by row so that no copy of the data is made."""
    return np.array([np.linalg.norm(row, power) for row in X])


@kernel
def alma_epochs(
    X: FloatArray,
    y: FloatArray,
    inverse_norm: FloatArray,
    theta: FloatArray,
    power: float,
    accuracy: float,
    max_epochs: int,
) -> tuple[int, int, bool]:
    """Change θ in place; returns the number of the next correction, the passes made, and if the last was clean."""
    n, p = X.shape
    weights = np.zeros(p)
    k = 1
    for epoch in range(max_epochs):
        is_clean = True
        for i in range(n):
            value = 0.0
            for j in range(p):
                value += weights[j] * X[i, j]
            value *= y[i] * inverse_norm[i]
            if value > (1.0 - accuracy) * math.sqrt(8.0 * (power - 1.0) / k) / accuracy:
                continue
            is_clean = False
            step = math.sqrt(2.0 / ((power - 1.0) * k)) * y[i] * inverse_norm[i]
            total = 0.0
            for j in range(p):
                theta[j] += step * X[i, j]
                weights[j] = abs(theta[j]) ** (power - 1.0)
                total += abs(theta[j]) * weights[j]
            length = total ** (1.0 / power)
            shrink = 1.0 / max(1.0, length)
            # Below length 1 the weights need the factor length^(2-p); at length 1 it is one.
            factor = shrink ** (power - 1.0) * max(length * shrink, 1e-300) ** (2.0 - power)
            for j in range(p):
                theta[j] *= shrink
                weights[j] = math.copysign(weights[j] * factor, theta[j])
            k += 1
        if is_clean:
            return k, epoch + 1, True
    return k, max_epochs, False
