"""The stochastic schemes behind one interface: updates of a distribution over features from tested subsets."""

# mypy: allow-untyped-defs

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from zeronorm._jit import kernel, reduction
from zeronorm._types import FloatArray, Int64Array
from zeronorm.engines.weighting._sampling import fill_normal, open_stream
from zeronorm.solvers._geometry import project_in_place

# -- One step of the three stochastic schemes, in place on the weights of the features --
#
# ``features`` holds the drawn features of a batch, one subset per row, ``errors`` the error q of the subset for each
# of them, or a signal, which may be negative. ``gradient`` is a work array: all zeros before and after.
# ``smallest`` is the smallest divisor of the Euclidean gradient: zero gives the gradient itself; a positive value
# avoids large jumps when a feature of tiny weight is drawn


# Below this exponent the first five terms of the exponential series are exact in double precision.
TINY_EXPONENT = 1e-3
# Products with factors down to exp(-100) do not underflow for any weight that matters.
SAFE_EXPONENT = 100.0


@kernel
def exponential_step(P, gradient, features, errors, step_size):
    """P(δ) ∝ P(δ) exp(-ε (mean of C(ω,δ) q - κ P(δ))), with κ such that the exponents keep Σ P at first order."""
    n_subsets, subset_size = features.shape
    inner = 0.0
    total_size = 0.0
    for b in range(n_subsets):
        for i in range(subset_size):
            share = errors[b, i] / n_subsets
            total_size += abs(share)
            inner += share * P[features[b, i]]
    square, largest = square_and_largest(P)
    rate = step_size * inner / square
    if abs(rate) * largest < TINY_EXPONENT and step_size * total_size < SAFE_EXPONENT:
        for f in range(P.shape[0]):
            x = rate * P[f]
            P[f] *= 1.0 + x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0)))
        # The exponential of a sum over draws is a product with one factor for each draw.
        for b in range(n_subsets):
            for i in range(subset_size):
                P[features[b, i]] *= np.exp(-step_size * errors[b, i] / n_subsets)
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
def euclidean_step(P, gradient, features, errors, step_size, smallest):
    """P -= ε (g - mean of g), g(δ) = mean of C(ω,δ) q / P(δ); False, and no change, if a weight would vanish."""
    add_counts(gradient, features, errors)
    total = 0.0
    for b in range(features.shape[0]):
        for i in range(features.shape[1]):
            total += errors[b, i] / features.shape[0] / max(P[features[b, i]], smallest)
    shift = step_size * total / P.shape[0]
    is_valid = P.min() + min(shift, 0.0) > 0.0
    for b in range(features.shape[0]):
        for f in features[b]:
            is_valid = is_valid and P[f] + shift - step_size * gradient[f] / max(P[f], smallest) > 0.0
    for b in range(features.shape[0]):
        for f in features[b]:
            if is_valid and gradient[f] != 0.0:
                P[f] -= step_size * gradient[f] / max(P[f], smallest)
            gradient[f] = 0.0
    if is_valid:
        for f in range(P.shape[0]):
            P[f] += shift
        normalise(P)
    return is_valid


@kernel
def diffusion_step(P, gradient, features, errors, step_size, smallest, noise_sd, seed, step):
    """P - ε (mean of C(ω,δ) q / P(δ)) + Gaussian noise, projected on the simplex."""
    add_counts(gradient, features, errors)
    noise = np.empty(P.shape[0])
    # Subsets have the indices 0, 1, …; the noise has a separate stream.
    fill_normal(open_stream(seed, step, features.shape[0]), noise)
    for f in range(P.shape[0]):
        noise[f] *= noise_sd
    for b in range(features.shape[0]):
        for f in features[b]:
            if gradient[f] != 0.0:
                noise[f] -= step_size * gradient[f] / max(P[f], smallest)
                gradient[f] = 0.0
    for f in range(P.shape[0]):
        P[f] += noise[f]
    project_in_place(P)


@kernel
def add_counts(gradient, features, errors):
    """Add the mean over the batch of C(ω, δ) q."""
    for b in range(features.shape[0]):
        for i in range(features.shape[1]):
            gradient[features[b, i]] += errors[b, i] / features.shape[0]


@reduction
def normalise(P):
    """Normalise the weights to sum one."""
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


# -- Signals for the drawn features from the errors of a batch --


@kernel
def centre_errors(features, errors, mean, common, effects, level, out):
    """Signal for each drawn feature: the error minus its prediction without the feature.

    The prediction is the sum of the running mean, the effects of the other features of the subset (``effects`` minus
    their mean ``level``), and ``common`` times the mean residual of the other subsets. Returns the mean product of the
    residuals of two subsets.
    """
    n_subsets, subset_size = features.shape
    total = 0.0
    squares = 0.0
    for b in range(n_subsets):
        rest = errors[b] - mean
        for f in features[b]:
            rest -= effects[f] - level
        out[b, 0] = rest
        total += rest
        squares += rest * rest
    n_others = max(n_subsets - 1, 1)
    for b in range(n_subsets):
        rest = out[b, 0] - common * (total - out[b, 0]) / n_others
        for i in range(subset_size):
            out[b, i] = rest + effects[features[b, i]] - level
    return (total * total - squares) / (n_subsets * n_others)


def common_share(correlation: float, n_subsets: int) -> float:
    """The best factor to predict one of several equally correlated numbers by the mean of the others."""
    n_others = n_subsets - 1
    return n_others * correlation / (1.0 + (n_others - 1) * correlation) if n_others > 0 else 0.0


@kernel
def learn_effects(features, centred, level, rate, effects):
    """Move the effects of the drawn features towards least squares; returns the mean squared residual."""
    squares = 0.0
    before = effects.copy()
    for b in range(features.shape[0]):
        rest = centred[b, 0] - (before[features[b, 0]] - level)
        squares += rest * rest
        for f in features[b]:
            effects[f] += rate * rest
    return squares / features.shape[0]


class UpdateRule(ABC):
    """The weights P of the features, their cumulative sums for drawing, and one update step."""

    failure: ClassVar[str] = ""

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights
        self.cumulative = np.empty_like(weights)
        self._gradient = np.zeros_like(weights)
        self.refresh()

    def refresh(self) -> None:
        """Recompute the cumulative sums of the weights."""
        cumulate(self.weights, self.cumulative)

    @property
    def typical_weight(self) -> float:
        """The mean weight of a drawn feature, between 1/p and 1."""
        return float(self.weights @ self.weights)

    def learn(self, features: Int64Array, errors: FloatArray, step_size: float, seed: int, step: int) -> bool:
        """Update the weights by the paper's formula; False, with the weights unchanged, if that is impossible."""
        return self._learn(Batch.of(features, errors, seed, step), step_size, step_size, 0.0)

    def learn_relative(
        self, features: Int64Array, signals: FloatArray, length: float, seed: int, step: int
    ) -> bool:
        """Update with a step that changes a typical weight by ``length`` for each draw with a signal of one."""
        batch = Batch.of(features, signals, seed, step)
        return self._learn(batch, self._in_absolute_units(length) * len(signals), length, self.typical_weight)

    def _learn(self, batch: Batch, step_size: float, noise_size: float, smallest: float) -> bool:
        is_valid = self._move(batch, step_size, noise_size, smallest)
        if is_valid:
            self.refresh()
        return is_valid

    def _in_absolute_units(self, length: float) -> float:
        """Step size for a relative length, in units of P²: the Euclidean gradient of a typical weight is 1/P."""
        return length * self.typical_weight**2

    @abstractmethod
    def _move(self, batch: Batch, step_size: float, noise_size: float, smallest: float) -> bool:
        """One step in place."""


class Batch(NamedTuple):
    """The subsets of one step with an error or a signal for each of their features."""

    features: Int64Array
    errors: FloatArray
    seed: int
    step: int

    @classmethod
    def of(cls, features: Int64Array, errors: FloatArray, seed: int, step: int) -> Batch:
        """Create from the ``errors`` of the subsets, or from one value for each of their features."""
        if errors.ndim == 1:
            errors = np.repeat(errors, features.shape[1]).reshape(features.shape)
        return cls(features, errors, seed, step)


class ExponentialRule(UpdateRule):
    """Gradient descent with respect to log P (eq. 12); weights stay positive by construction."""

    def _in_absolute_units(self, length: float) -> float:
        return length

    def _move(self, batch: Batch, step_size: float, noise_size: float, smallest: float) -> bool:
        exponential_step(self.weights, self._gradient, batch.features, batch.errors, step_size)
        return True


class EuclideanRule(UpdateRule):
    """Gradient descent with respect to P in the hyperplane of sum one (eq. 15), while all weights are positive."""

    failure = (
        "a weight would become non-positive. The last valid weights are kept; use method='diffusion' or "
        "'exponential', which cannot leave the simplex."
    )

    def _move(self, batch: Batch, step_size: float, noise_size: float, smallest: float) -> bool:
        arrays = (self.weights, self._gradient, batch.features, batch.errors)
        return bool(euclidean_step(*arrays, step_size, smallest))


class DiffusionRule(UpdateRule):
    """Gradient descent with noise, projected on the simplex (Fig. 5).

    ``noise`` is the standard deviation of the noise in a step of the size ``first_step``, in units of 1/p.
    """

    def __init__(self, weights: FloatArray, noise: float, first_step: float) -> None:
        super().__init__(weights)
        self.noise = noise
        self.first_step = first_step

    def _move(self, batch: Batch, step_size: float, noise_size: float, smallest: float) -> bool:
        noise_sd = self.noise / self.weights.size * float(np.sqrt(noise_size / self.first_step))
        arrays = (self.weights, self._gradient, batch.features, batch.errors)
        diffusion_step(*arrays, step_size, smallest, noise_sd, np.uint64(batch.seed), batch.step)
        return True


def make_rule(method: str, weights: FloatArray, *, noise: float, first_step: float) -> UpdateRule:
    """Create the rule of a method; ``noise`` is the first standard deviation of the diffusion in units of 1/p."""
    if method == "exponential":
        return ExponentialRule(weights)
    if method == "euclidean":
        return EuclideanRule(weights)
    return DiffusionRule(weights, noise, first_step)
