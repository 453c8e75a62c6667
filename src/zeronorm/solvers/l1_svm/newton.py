r"""The linear system of a Newton step of the ℓ1 machine, reduced to features or to samples.

A step with change d of the weights (the bias last) and change a of the multipliers satisfies

.. math:: Z d + \Theta^{-1} a = r, \qquad D (d_f - e) = Z_f^\top a, \qquad z_b^\top a = o,

with :math:`Z_f` the features' part of the rows Z and :math:`z_b` their signs. Eliminating a leaves a positive definite
matrix with one row for each feature, :math:`Z^\top \Theta Z + D`; eliminating d leaves one with a row for each
sample, :math:`\Theta^{-1} + Z_f D^{-1} Z_f^\top`. The smaller one is factorised.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from zeronorm._types import FloatArray

BLOCK = 2048  # rows or columns scaled at a time


class NotPositiveDefinite(ArithmeticError):
    """Rounding has spoilt the matrix."""


class NewtonSystem(Protocol):
    """A factorised system, for several right sides."""

    def solve(self, right: FloatArray, drift: FloatArray, off: float) -> tuple[FloatArray, FloatArray]:
        """Changes d of weights and bias and a of the multipliers for r, e and o."""


def newton_system(rows: FloatArray, theta: FloatArray, stiffness: FloatArray, coarse: Any) -> NewtonSystem:
    """The smaller system; ``coarse`` are the rows in the precision that the matrix needs."""
    kind = FeatureSystem if stiffness.size < theta.size else SampleSystem
    return kind(rows, theta, stiffness, coarse)


class FeatureSystem:
    """One equation for each feature and one for the bias."""

    def __init__(self, rows: FloatArray, theta: FloatArray, stiffness: FloatArray, coarse: Any) -> None:
        self.rows, self.theta, self.stiffness = rows, theta, stiffness
        matrix = _gram_of_columns(coarse, np.sqrt(theta))
        np.einsum("ii->i", matrix)[:-1] += stiffness
        self._factor = _Factor(matrix)

    def solve(self, right: FloatArray, drift: FloatArray, off: float) -> tuple[FloatArray, FloatArray]:
        weighted = self.theta * right
        system = weighted @ self.rows
        system[:-1] += self.stiffness * drift
        system[-1] -= off
        change = self._factor.solve(system)
        return change, weighted - self.theta * (self.rows @ change)


class SampleSystem:
    r"""One equation for each sample.

    Along :math:`z_b` the matrix may be singular. As :math:`z_b^\top a` is known, a multiple of
    :math:`z_b z_b^\top` can be added to both sides.
    """

    def __init__(self, rows: FloatArray, theta: FloatArray, stiffness: FloatArray, coarse: Any) -> None:
        self.rows, self.softness = rows, 1.0 / stiffness
        matrix = _gram_of_rows(coarse, np.sqrt(self.softness))
        diagonal = np.einsum("ii->i", matrix)
        diagonal += 1.0 / theta
        self.sign = rows[:, -1]
        self.added = float(diagonal.mean())
        matrix += self.added * np.multiply.outer(self.sign, self.sign)
        self._factor = _Factor(matrix)
        self._per_bias = self._factor.solve(self.sign)

    def solve(self, right: FloatArray, drift: FloatArray, off: float) -> tuple[FloatArray, FloatArray]:
        without_bias = np.append(drift, -self.added * off)
        alpha = self._factor.solve(right - self.rows @ without_bias)
        bias = (self.sign @ alpha - off) / (self.sign @ self._per_bias)
        alpha -= bias * self._per_bias
        change = alpha @ self.rows
        change[:-1] *= self.softness
        change[:-1] += drift
        change[-1] = bias
        return change, alpha


class _Factor:
    """Cholesky factor of a matrix given by its lower triangle, which it overwrites.

    The entries span many orders of magnitude; a unit diagonal keeps the digits.
    """

    def __init__(self, matrix: FloatArray) -> None:
        diagonal = np.diagonal(matrix)
        if not diagonal.min() > 0.0:
            raise NotPositiveDefinite
        self.unit = 1.0 / np.sqrt(diagonal)
        matrix *= self.unit
        matrix *= self.unit[:, None]
        self.lower, failed = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        if failed:
            raise NotPositiveDefinite

    def solve(self, right: FloatArray) -> FloatArray:
        solution, _ = dpotrs(self.lower, self.unit * right, lower=1, overwrite_b=1)
        return np.asarray(self.unit * solution)


def _gram_of_columns(rows: Any, root: FloatArray) -> FloatArray:
    """Lower triangle of Z'R²Z, in the precision of the rows."""
    n, width = rows.shape
    syrk, scale = _syrk(rows), root[:, None].astype(rows.dtype)
    product = np.zeros((width, width), dtype=rows.dtype, order="F")
    buffer = np.empty((min(BLOCK, n), width), dtype=rows.dtype)
    for start in range(0, n, BLOCK):
        part = rows[start : start + BLOCK]
        scaled = np.multiply(part, scale[start : start + BLOCK], out=buffer[: len(part)])
        product = syrk(1.0, scaled.T, beta=1.0, c=product, lower=1, overwrite_c=1)
    return product.astype(np.float64, copy=False)


def _gram_of_rows(rows: Any, root: FloatArray) -> FloatArray:
    """Lower triangle of ZR²Z' over the features, in the precision of the rows."""
    n = len(rows)
    syrk, scale = _syrk(rows), root.astype(rows.dtype)
    product = np.zeros((n, n), dtype=rows.dtype, order="F")
    for start in range(0, root.size, BLOCK):
        stop = min(start + BLOCK, root.size)
        scaled = rows[:, start:stop] * scale[start:stop]
        product = syrk(1.0, scaled.T, trans=1, beta=1.0, c=product, lower=1, overwrite_c=1)
    return product.astype(np.float64, copy=False)


def _syrk(rows: Any) -> Any:
    return dsyrk if rows.dtype == np.float64 else ssyrk
