"""Quadratic forms of the RBF kernel of one feature alone, for many features."""

from __future__ import annotations

import math

import numpy as np

from zeronorm._jit import kernel
from zeronorm.solvers.arrays import FloatArray

NEGLIGIBLE = 1e-17  # of the sum so far: terms of the series that cannot change it


@kernel
def rbf_forms(columns: FloatArray, width: FloatArray, v: FloatArray) -> FloatArray:
    r"""For each row x of ``columns`` the form :math:`\sum_{ij} v_i v_j e^{-a (x_i - x_j)^2}` with a its ``width``.

    Around the middle of the feature,

    .. math:: e^{-a (x_i - x_j)^2} = e^{-a x_i^2} e^{-a x_j^2} \sum_m \frac{(2a)^m}{m!} x_i^m x_j^m,

    so the form is a sum of squares that needs a few terms when a is small, as it is for all but the last
    features: much cheaper than n² exponentials, and without cancellation. Where it would need more terms than the
    direct sum is worth, the direct sum is taken.
    """
    n = columns.shape[1]
    forms = np.zeros(columns.shape[0])
    term = np.empty(n)
    for k in range(columns.shape[0]):
        x = columns[k]
        a = width[k]
        middle = 0.5 * (x.min() + x.max())
        half_range = 0.5 * (x.max() - x.min())
        growth = 2.0 * a * half_range * half_range
        if growth <= 0.125 * n:
            for i in range(n):
                shifted = x[i] - middle
                term[i] = v[i] * math.exp(-a * shifted * shifted)
            forms[k] = series_form(x, middle, a, growth, term)
        else:
            forms[k] = direct_form(x, a, v)
    return forms


@kernel
def series_form(x: FloatArray, middle: float, a: float, growth: float, term: FloatArray) -> float:
    """The sum of squares; ``term`` holds the first factors and is changed."""
    total = 0.0
    m = 0
    while True:
        plain = 0.0
        absolute = 0.0
        for i in range(x.shape[0]):
            plain += term[i]
            absolute += abs(term[i])
        total += plain * plain
        # From here on the terms fall by a factor below one half.
        if m > 2.0 * growth and absolute * absolute <= NEGLIGIBLE * total + 1e-300:
            return total
        m += 1
        step = math.sqrt(2.0 * a / m)
        for i in range(x.shape[0]):
            term[i] *= step * (x[i] - middle)


@kernel
def direct_form(x: FloatArray, a: float, v: FloatArray) -> float:
    """The double sum, over pairs of samples with a coefficient."""
    total = 0.0
    for i in range(x.shape[0]):
        if v[i] == 0.0:
            continue
        partial = 0.5 * v[i]
        for j in range(i):
            if v[j] != 0.0:
                difference = x[i] - x[j]
                partial += v[j] * math.exp(-a * difference * difference)
        total += 2.0 * v[i] * partial
    return max(total, 0.0)
