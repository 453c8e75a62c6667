r"""Second derivatives of the radius/margin bound in every scaling factor, without a loop over features.

Write s for the squared factor of one feature and K', K'' for the derivatives of the kernel matrix in s. On its
support vectors the machine is :math:`v = P y` with P the bordered inverse of the kernel matrix, so

.. math:: W^2 = y^\top P y, \qquad (W^2)' = -v^\top K' v, \qquad (W^2)'' = 2 (K'v)^\top P (K'v) - v^\top K'' v .

For the enclosing sphere with centre β and Q the bordered inverse on its support,

.. math:: (R^2)' = \beta^\top \mathrm{diag} K' - \beta^\top K' \beta, \qquad
    (R^2)'' = \beta^\top \mathrm{diag} K'' - \beta^\top K'' \beta + \tfrac12 g^\top Q g, \qquad
    g = \mathrm{diag} K' - 2 K' \beta .

Both hold as long as the sets of support vectors stay the same. What a kernel must tell is how K' and K'' act on
given vectors, for a block of features at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.criteria import LinearKernel, PolynomialKernel, RBFKernel, ScaledKernel
from zeronorm.criteria.base import with_ridge
from zeronorm.criteria.span import bordered_inverse, support_of
from zeronorm.solvers.enclosing_sphere import EnclosingSphere
from zeronorm.solvers.svm.dual import SvmDual


class KernelChange(Protocol):
    """Derivatives of the kernel matrix in the squared factor of each feature of a block."""

    def times(self, v: FloatArray) -> FloatArray:
        """K' v, one column per feature."""

    def second_form(self, v: FloatArray) -> FloatArray:
        """v' K'' v for each feature."""

    def diagonals(self) -> tuple[FloatArray, FloatArray]:
        """The diagonals of K' and K'', one column per feature."""


class PolynomialChange:
    r"""(γ G + c)^d with G' = x x'; the linear kernel is d = 1."""

    def __init__(self, kernel: PolynomialKernel, gram: FloatArray, block: FloatArray) -> None:
        base, d = kernel.gamma * gram + kernel.coef0, kernel.degree
        self.block = block
        self.first = d * kernel.gamma * base ** (d - 1)
        self.second = np.zeros_like(base) if d == 1 else d * (d - 1) * kernel.gamma**2 * base ** (d - 2)

    def times(self, v: FloatArray) -> FloatArray:
        return np.asarray(self.block * (self.first @ (v[:, None] * self.block)))

    def second_form(self, v: FloatArray) -> FloatArray:
        squares = v[:, None] * self.block**2
        return np.asarray(np.einsum("ik,ik->k", squares, self.second @ squares))

    def diagonals(self) -> tuple[FloatArray, FloatArray]:
        return (
            np.diagonal(self.first)[:, None] * self.block**2,
            np.diagonal(self.second)[:, None] * self.block**4,
        )


class RBFChange:
    r"""exp(-γ D) with D' the squared differences of one feature, multiplied out into powers of the feature."""

    def __init__(self, kernel: RBFKernel, K: FloatArray, block: FloatArray) -> None:
        self.gamma, self.K = kernel.gamma, K
        self.block = block - block.mean(axis=0)  # only differences count; small numbers cancel less

    def _moments(self, v: FloatArray, power: int) -> FloatArray:
        return np.asarray(self.K @ (v[:, None] * self.block**power))

    def times(self, v: FloatArray) -> FloatArray:
        x = self.block
        total = x**2 * (self.K @ v)[:, None] - 2.0 * x * self._moments(v, 1) + self._moments(v, 2)
        return np.asarray(-self.gamma * total)

    def second_form(self, v: FloatArray) -> FloatArray:
        weighted = [v[:, None] * self.block**power for power in range(5)]
        fourth = (
            2.0 * weighted[4] * (self.K @ v)[:, None]
            - 8.0 * weighted[3] * self._moments(v, 1)
            + 6.0 * weighted[2] * self._moments(v, 2)
        )
        return np.asarray(self.gamma**2 * fourth.sum(axis=0))

    def diagonals(self) -> tuple[FloatArray, FloatArray]:
        nothing = np.zeros_like(self.block)
        return nothing, nothing


def kernel_change(kernel: ScaledKernel, gram: FloatArray, K: FloatArray, block: FloatArray) -> KernelChange:
    """How the kernel matrix changes with the features of a block."""
    if isinstance(kernel, RBFKernel):
        return RBFChange(kernel, K, block)
    if isinstance(kernel, LinearKernel):
        kernel = PolynomialKernel(degree=1, gamma=1.0, coef0=0.0)
    assert isinstance(kernel, PolynomialKernel)
    return PolynomialChange(kernel, gram, block)


@dataclass(frozen=True, eq=False)
class Derivatives:
    """A quantity with its first and second derivatives in each squared factor."""

    value: float
    first: FloatArray
    second: FloatArray

    def __mul__(self, other: Derivatives) -> Derivatives:
        return Derivatives(
            self.value * other.value,
            self.first * other.value + self.value * other.first,
            self.second * other.value + 2.0 * self.first * other.first + self.value * other.second,
        )


def margin_derivatives(dual: SvmDual, K: FloatArray, C: float, change: KernelChange) -> Derivatives:
    """Those of the inverse squared margin."""
    v = dual.dual_coef
    support = support_of(dual.alpha)
    P = bordered_inverse(with_ridge(K[np.ix_(support, support)], C))[:-1, :-1]
    moved = change.times(v)
    turned = moved[support]
    second = 2.0 * np.einsum("ik,ik->k", turned, P @ turned) - change.second_form(v)
    return Derivatives(2.0 * dual.objective, -v @ moved, second)


def variance_derivatives(value: float, change: KernelChange, n_samples: int) -> Derivatives:
    """Those of the variance in feature space."""
    mean = np.full(n_samples, 1.0 / n_samples)
    first, second = change.diagonals()
    return Derivatives(
        value, mean @ first - mean @ change.times(mean), mean @ second - change.second_form(mean)
    )


def radius_derivatives(sphere: EnclosingSphere, K: FloatArray, C: float, change: KernelChange) -> Derivatives:
    """Those of the squared radius of the enclosing sphere."""
    beta = sphere.beta
    support = support_of(beta)
    Q = bordered_inverse(with_ridge(K[np.ix_(support, support)], C))[:-1, :-1]
    first, second = change.diagonals()
    moved = change.times(beta)
    pull = (first - 2.0 * moved)[support]
    bent = 0.5 * np.einsum("ik,ik->k", pull, Q @ pull)
    return Derivatives(
        sphere.radius_sq,
        beta @ first - beta @ moved,
        beta @ second - change.second_form(beta) + bent,
    )
