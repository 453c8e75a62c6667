"""How much a quadratic form of an RBF kernel changes when one feature is taken out."""

from __future__ import annotations

import math

import numpy as np

from zeronorm._jit import kernel
from zeronorm.solvers.arrays import FloatArray


@kernel
def rbf_removal(M: FloatArray, columns: FloatArray, gamma: float) -> FloatArray:
    r"""For each row x of ``columns`` the sum over pairs of :math:`M_{ij}\,(e^{\gamma (x_i - x_j)^2} - 1)`.

    Dividing one feature's factor out of an RBF kernel multiplies K_ij by that exponential, so no kernel is
    computed afresh. M is symmetric: each pair is visited once.
    """
    result = np.zeros(columns.shape[0])
    n = columns.shape[1]
    for k in range(columns.shape[0]):
        x = columns[k]
        total = 0.0
        for i in range(n):
            for j in range(i):
                difference = x[i] - x[j]
                total += M[i, j] * math.expm1(gamma * difference * difference)
        result[k] = 2.0 * total
    return result
