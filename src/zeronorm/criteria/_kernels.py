"""Kernels of scaled features, as functions of the Gram matrix of the scaled features.

``gram`` below is X diag(σ²) X'. Every kernel here is a function of it, so the scaling factors enter only there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.design import Design


class ScaledKernel(ABC):
    """A kernel matrix K as a function of the Gram matrix, with the chain rule for gradients."""

    @abstractmethod
    def matrix(self, gram: FloatArray) -> FloatArray:
        """The kernel matrix of the samples."""

    @abstractmethod
    def cross(self, gram: FloatArray, left_sq: FloatArray, right_sq: FloatArray) -> FloatArray:
        """The kernel matrix between two sets of samples with the given squared norms."""

    @abstractmethod
    def pullback(self, gram: FloatArray, K: FloatArray, gradient: FloatArray) -> FloatArray:
        """Turn a symmetric gradient with respect to K into one with respect to the Gram matrix."""


@dataclass(frozen=True)
class LinearKernel(ScaledKernel):
    """k(x, z) = x·z."""

    def matrix(self, gram: FloatArray) -> FloatArray:
        return gram

    def cross(self, gram: FloatArray, left_sq: FloatArray, right_sq: FloatArray) -> FloatArray:
        return gram

    def pullback(self, gram: FloatArray, K: FloatArray, gradient: FloatArray) -> FloatArray:
        return gradient


@dataclass(frozen=True)
class PolynomialKernel(ScaledKernel):
    """k(x, z) = (γ x·z + c)^d."""

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 1.0

    def matrix(self, gram: FloatArray) -> FloatArray:
        return np.asarray((self.gamma * gram + self.coef0) ** self.degree)

    def cross(self, gram: FloatArray, left_sq: FloatArray, right_sq: FloatArray) -> FloatArray:
        return self.matrix(gram)

    def pullback(self, gram: FloatArray, K: FloatArray, gradient: FloatArray) -> FloatArray:
        inner = (self.gamma * gram + self.coef0) ** (self.degree - 1)
        return np.asarray(gradient * (self.degree * self.gamma) * inner)


@dataclass(frozen=True)
class RBFKernel(ScaledKernel):
    """k(x, z) = exp(-γ‖x - z‖²)."""

    gamma: float = 1.0

    def matrix(self, gram: FloatArray) -> FloatArray:
        square = np.diagonal(gram)
        return self.cross(gram, square, square)

    def cross(self, gram: FloatArray, left_sq: FloatArray, right_sq: FloatArray) -> FloatArray:
        distance_sq = left_sq[:, None] + right_sq[None, :] - 2.0 * gram
        np.maximum(distance_sq, 0.0, out=distance_sq)
        distance_sq *= -self.gamma
        return np.exp(distance_sq, out=distance_sq)

    def pullback(self, gram: FloatArray, K: FloatArray, gradient: FloatArray) -> FloatArray:
        # K_ij depends on G_ij and, through the squared distance, on G_ii and G_jj.
        weighted = gradient * K
        result = (2.0 * self.gamma) * weighted
        result.flat[:: K.shape[0] + 1] -= 2.0 * self.gamma * weighted.sum(axis=1)
        return result


def make_kernel(
    name: str, *, gamma: float | str = "auto", degree: int = 2, coef0: float = 1.0, design: Design
) -> ScaledKernel:
    """The kernel with this name and these parameters."""
    if name == "linear":
        return LinearKernel()
    width = kernel_width(gamma, design)
    return RBFKernel(width) if name == "rbf" else PolynomialKernel(degree, width, coef0)


def kernel_width(gamma: float | str, design: Design) -> float:
    """γ as a number: "scale" is 1 / (n_features * variance of all values), any other text is 1 / n_features."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma != "scale":
        return 1.0 / design.n_features
    stats = design.column_stats()
    variance = float(stats.variance.mean() + stats.mean.var())
    return 1.0 / (design.n_features * variance) if variance > 0.0 else 1.0
