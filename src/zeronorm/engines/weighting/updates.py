"""The stochastic schemes behind one interface: a law over features that learns from tested subsets."""

# mypy: allow-untyped-defs

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from zeronorm._jit import kernel, reduction
from zeronorm._types import FloatArray, Int64Array
from zeronorm.engines.weighting.sampling import fill_normal, open_stream
from zeronorm.solvers.simplex_projection import project_in_place

# -- One step of the three stochastic schemes, in place on the weights of the features --
#
# ``features`` holds the drawn features of a batch, one subset per row, ``errors`` the error of each subset.
# ``gradient`` is scratch memory: all zeros before and after


# Below this the first five terms of the exponential series are exact in double precision.
TINY_EXPONENT = 1e-3
# Factors down to exp(-100) multiply without underflow of any weight that matters.
SAFE_EXPONENT = 100.0


@kernel
def exponential_step(P, gradient, features, errors, step_size):
    """P(δ) ∝ P(δ) exp(-ε (mean of C(ω,δ) q - κ P(δ))), with κ such that the exponents keep Σ P at first order."""
    n_subsets, subset_size = features.shape
    inner = 0.0
    mean_error = 0.0
    for b in range(n_subsets):
        share = errors[b] / n_subsets
        mean_error += share
        for f in features[b]:
            inner += share * P[f]
    square, largest = square_and_largest(P)
    rate = step_size * inner / square
    if rate * largest < TINY_EXPONENT and step_size * mean_error * subset_size < SAFE_EXPONENT:
        for f in range(P.shape[0]):
            x = rate * P[f]
            P[f] *= 1.0 + x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0)))
        # The exponential of a sum over subsets is a product with one factor for each.
        for b in range(n_subsets):
            factor = np.exp(-step_size * errors[b] / n_subsets)
            for f in features[b]:
                P[f] *= factor
    else:
        add_counts(gradient, features, errors)
        multiply_by_exponentials(P, gradient, rate, step_size)
        gradient[:] = 0.0
    normalise(P)


@reduction
def square_and_largest(P):
    """Sum of the squared weights, and the largest weight."""
    square = 0.0
    for f in range(P.shape[0]):
        square += P[f] * P[f]
    return square, P.max()


@kernel
def multiply_by_exponentials(P, gradient, rate, step_size):
    """P exp(rate P - ε gradient), divided by the largest exponential so that nothing overflows."""
    top = -np.inf
    for f in range(P.shape[0]):
        if P[f] > 0.0:
            top = max(top, rate * P[f] - step_size * gradient[f])
    for f in range(P.shape[0]):
        P[f] *= np.exp(min(0.0, rate * P[f] - step_size * gradient[f] - top))


@kernel
def euclidean_step(P, gradient, features, errors, step_size):
    """P -= ε (g - mean of g), g(δ) = mean of C(ω,δ) q / P(δ); False, and no change, if a weight would vanish."""
    add_counts(gradient, features, errors)
    total = 0.0
    for b in range(features.shape[0]):
        for f in features[b]:
            total += errors[b] / features.shape[0] / P[f]
    shift = step_size * total / P.shape[0]
    is_valid = True
    for b in range(features.shape[0]):
        for f in features[b]:
            is_valid = is_valid and P[f] + shift - step_size * gradient[f] / P[f] > 0.0
    for b in range(features.shape[0]):
        for f in features[b]:
            if is_valid and gradient[f] != 0.0:
                P[f] -= step_size * gradient[f] / P[f]
            gradient[f] = 0.0
    if is_valid:
        for f in range(P.shape[0]):
            P[f] += shift
        normalise(P)
    return is_valid


@kernel
def diffusion_step(P, gradient, features, errors, step_size, noise_sd, seed, step):
    """P - ε (mean of C(ω,δ) q / P(δ)) + Gaussian noise, projected on the simplex."""
    add_counts(gradient, features, errors)
    noise = np.empty(P.shape[0])
    # Subsets have the indices 0, 1, …; the noise has a stream of its own.
    fill_normal(open_stream(seed, step, features.shape[0]), noise)
    for f in range(P.shape[0]):
        noise[f] *= noise_sd
    for b in range(features.shape[0]):
        for f in features[b]:
            if gradient[f] != 0.0:
                noise[f] -= step_size * gradient[f] / P[f]
                gradient[f] = 0.0
    for f in range(P.shape[0]):
        P[f] += noise[f]
    project_in_place(P)


@kernel
def add_counts(gradient, features, errors):
    """Add the mean over the batch of C(ω, δ) q."""
    for b in range(features.shape[0]):
        share = errors[b] / features.shape[0]
        for f in features[b]:
            gradient[f] += share


@reduction
def normalise(P):
    """Make the weights sum to one."""
    total = 0.0
    for f in range(P.shape[0]):
        total += P[f]
    for f in range(P.shape[0]):
        P[f] /= total


@kernel
def cumulate(P, out):
    """Cumulative sums of the weights."""
    total = 0.0
    for f in range(P.shape[0]):
        total += P[f]
        out[f] = total


class UpdateRule(ABC):
    """The weights P of the features, their cumulative sums for drawing, and one step of learning."""

    failure: ClassVar[str] = ""

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights
        self.cumulative = np.empty_like(weights)
        self._gradient = np.zeros_like(weights)
        cumulate(self.weights, self.cumulative)

    def learn(self, features: Int64Array, errors: FloatArray, step_size: float, seed: int, step: int) -> bool:
        """Move the weights; False, with the weights as they were, when the scheme cannot go on."""
        is_valid = self._move(features, errors, step_size, seed, step)
        if is_valid:
            cumulate(self.weights, self.cumulative)
        return is_valid

    @abstractmethod
    def _move(self, features: Int64Array, errors: FloatArray, step_size: float, seed: int, step: int) -> bool:
        """One step in place."""


class ExponentialRule(UpdateRule):
    """Gradient descent for log P: weights stay positive by construction (eq. 12)."""

    def _move(self, features: Int64Array, errors: FloatArray, step_size: float, seed: int, step: int) -> bool:
        exponential_step(self.weights, self._gradient, features, errors, step_size)
        return True


class EuclideanRule(UpdateRule):
    """Gradient descent for P in the hyperplane of sum one (eq. 15), as long as it stays positive."""

    failure = (
        "a weight would become non-positive. The last valid weights are kept; use a smaller step_size, or "
        "method='exponential' or 'diffusion', which cannot leave the simplex."
    )

    def _move(self, features: Int64Array, errors: FloatArray, step_size: float, seed: int, step: int) -> bool:
        return bool(euclidean_step(self.weights, self._gradient, features, errors, step_size))


class DiffusionRule(UpdateRule):
    """Gradient descent with noise, projected on the simplex (Fig. 5)."""

    def __init__(self, weights: FloatArray, sigma: float) -> None:
        super().__init__(weights)
        self.sigma = sigma

    def _move(self, features: Int64Array, errors: FloatArray, step_size: float, seed: int, step: int) -> bool:
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
