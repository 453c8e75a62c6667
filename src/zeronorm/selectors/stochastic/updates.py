"""The stochastic schemes behind one interface: a law over features that learns from tested subsets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from zeronorm.selectors.stochastic.pool import FloatArray, IntArray
from zeronorm.selectors.stochastic.update_kernels import (
    cumulate,
    diffusion_step,
    euclidean_step,
    exponential_step,
)


class UpdateRule(ABC):
    """The weights P of the features, their cumulative sums for drawing, and one step of learning."""

    failure: ClassVar[str] = ""

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights
        self.cumulative = np.empty_like(weights)
        self._gradient = np.zeros_like(weights)
        cumulate(self.weights, self.cumulative)

    def learn(self, features: IntArray, errors: FloatArray, step_size: float, seed: int, step: int) -> bool:
        """Move the weights; False, with the weights as they were, when the scheme cannot go on."""
        is_valid = self._move(features, errors, step_size, seed, step)
        if is_valid:
            cumulate(self.weights, self.cumulative)
        return is_valid

    @abstractmethod
    def _move(self, features: IntArray, errors: FloatArray, step_size: float, seed: int, step: int) -> bool:
        """One step in place."""


class ExponentialRule(UpdateRule):
    """Gradient descent for log P: weights stay positive by construction (eq. 12)."""

    def _move(self, features: IntArray, errors: FloatArray, step_size: float, seed: int, step: int) -> bool:
        exponential_step(self.weights, self._gradient, features, errors, step_size)
        return True


class EuclideanRule(UpdateRule):
    """Gradient descent for P in the hyperplane of sum one (eq. 15), as long as it stays positive."""

    failure = (
        "a weight would become non-positive. The last valid weights are kept; use a smaller step_size, or "
        "method='exponential' or 'diffusion', which cannot leave the simplex."
    )

    def _move(self, features: IntArray, errors: FloatArray, step_size: float, seed: int, step: int) -> bool:
        return bool(euclidean_step(self.weights, self._gradient, features, errors, step_size))


class DiffusionRule(UpdateRule):
    """Gradient descent with noise, projected on the simplex (Fig. 5)."""

    def __init__(self, weights: FloatArray, sigma: float) -> None:
        super().__init__(weights)
        self.sigma = sigma

    def _move(self, features: IntArray, errors: FloatArray, step_size: float, seed: int, step: int) -> bool:
        noise_sd = float(np.sqrt(step_size * self.sigma))
        word = np.uint64(seed)
        diffusion_step(self.weights, self._gradient, features, errors, step_size, noise_sd, word, step)
        return True


def make_rule(method: str, weights: FloatArray, *, noise: float, first_step: float) -> UpdateRule:
    """The rule of a method; ``noise`` is the first standard deviation of the diffusion in units of 1/p."""
    if method == "exponential":
        return ExponentialRule(weights)
    if method == "euclidean":
        return EuclideanRule(weights)
    return DiffusionRule(weights, (noise / weights.size) ** 2 / first_step)
