r"""The inverse power law of learning curves,

.. math:: e(m) = a + b\,m^{-c}, \qquad b \ge 0, \quad 0 < c \le 2,

fitted by least squares with the weights 1/Var (Cortes, Jackel, Solla, Vapnik & Denker 1993; Mukherjee et al. 2003, for
gene expression). For a given c, a and b solve a linear problem; c is found on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zeronorm._types import FloatArray

EXPONENTS = np.concatenate([np.arange(0.05, 0.5, 0.05), np.arange(0.5, 2.01, 0.1)])


@dataclass(frozen=True, eq=False)
class PowerLaws:
    """Fitted curves, one per row of the values: ``a``, ``b`` and ``c`` are arrays, ``unit`` is the largest m."""

    a: FloatArray
    b: FloatArray
    c: FloatArray
    unit: float

    def at(self, m: float) -> FloatArray:
        """The value of every curve at m samples."""
        return np.asarray(self.a + self.b * (m / self.unit) ** -self.c)


def fit_power_laws(m: FloatArray, values: FloatArray, weights: FloatArray, least: float) -> PowerLaws:
    """Fit one curve to each row of ``values``, with a ≥ ``least``.

    The sizes m are divided by the largest, so that b is what the error at the largest size is above a.
    """
    unit = float(m.max())
    w = weights / weights.sum()
    best = np.full(len(values), np.inf)
    a, b, c = (np.zeros(len(values)) for _ in range(3))
    for exponent in EXPONENTS:
        x = (m / unit) ** -exponent
        mean_x, mean_y = float(w @ x), values @ w
        slope = np.maximum(
            0.0, ((values - mean_y[:, None]) * (x - mean_x)) @ w / float(w @ (x - mean_x) ** 2)
        )
        level = mean_y - slope * mean_x
        is_below = level < least
        through = np.maximum(0.0, ((values - least) * x) @ w / float(w @ x**2))
        slope, level = np.where(is_below, through, slope), np.where(is_below, least, level)
        loss = (values - level[:, None] - slope[:, None] * x) ** 2 @ w
        is_better = loss < best * (1.0 - 1e-9)
        best = np.where(is_better, loss, best)
        a, b = np.where(is_better, level, a), np.where(is_better, slope, b)
        c = np.where(is_better, exponent, c)
    return PowerLaws(a, b, c, unit)
