r"""Masked likelihood ratios: statistics of features against their knockoffs (Spector & Fithian 2022).

The sampler sees each pair :math:`\{x_j, \tilde x_j\}` without knowing which column is the feature. The model is

.. math:: y = \sum_j \beta_j x^*_j + \varepsilon, \quad x^*_j \in \{x_j, \tilde x_j\}, \quad
    \beta_j \sim (1 - \pi)\, \delta_0 + \pi\, N(0, \tau^2), \quad \varepsilon \sim N(0, \sigma^2),

and the statistic is the log odds, after seeing y, that the feature is the first column of its pair,

.. math:: W_j = \log \frac{P(x^*_j = x_j \mid y, \{x, \tilde x\})}{P(x^*_j = \tilde x_j \mid y, \{x, \tilde x\})}.

Exchanging the two columns changes the sign of :math:`W_j` and nothing else, whatever the distribution of y, so a wrong
model costs power and not validity. Classes are coded by a latent normal variable (probit; Albert & Chib 1993), one
class against the rest for more than two; the log odds are then added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from zeronorm._jit import kernel
from zeronorm._types import FloatArray

# Passes of the sampler over all pairs. 800 instead of 200 raised the power of one draw from 0.64 to 0.70 and from 0.46
# to 0.54 with classes (200 x 60 and 181 x 100), from 0.45 to 0.46 with a real target.
N_PASSES = 500
N_WARM_UP = 50  # passes at the start that are not counted
# Inverse gamma priors of the variances of weights and noise, in units of the variance of y: shape and scale.
VARIANCE_PRIOR = (2.0, 0.01)
START = (0.1, 1.0)  # variances of weights and noise in the first pass
EXPECTED_ACTIVE = 10  # features with a weight in the first pass


@dataclass
class Pairs:
    """Columns of features and knockoffs as rows, each pair in an order that does not tell which is which."""

    first: FloatArray
    second: FloatArray
    sign: FloatArray  # 1 where the feature is the first, -1 where it is the second
    norms: FloatArray

    @classmethod
    def of(cls, X: FloatArray, copies: FloatArray) -> Pairs:
        """Standardised columns and their knockoffs."""
        direction = np.sin(
            np.arange(1.0, len(X) + 1)
        )  # no two different columns have the same product with it
        swapped = direction @ copies > direction @ X
        first = np.ascontiguousarray(np.where(swapped, copies, X).T)
        second = np.ascontiguousarray(np.where(swapped, X, copies).T)
        norms = np.stack([np.einsum("ij,ij->i", side, side) for side in (first, second)], axis=1)
        return cls(first, second, np.where(swapped, -1.0, 1.0), norms)


def masked_likelihood_ratios(
    X: FloatArray,
    copies: FloatArray,
    Y: FloatArray,
    is_class: bool,
    rng: np.random.Generator,
    n_passes: int = N_PASSES,
) -> FloatArray:
    """The statistics :math:`W_j` for the columns of ``Y``: real targets, or classes coded ±1 (``is_class``)."""
    pairs = Pairs.of(X, copies)
    columns = Y.reshape(len(Y), -1).T
    return np.asarray(sum(_log_odds(pairs, y, is_class, rng, n_passes) for y in columns) * pairs.sign)


def _log_odds(
    pairs: Pairs, y: FloatArray, is_class: bool, rng: np.random.Generator, n_passes: int
) -> FloatArray:
    """Log odds that the first column of each pair is the feature."""
    p = len(pairs.first)
    weights, side = np.zeros(p), np.zeros(p, dtype=np.int8)
    sides, total = np.empty((p, 2)), np.zeros((p, 2))
    slab_sq, noise_sq, share = *START, min(0.5, EXPECTED_ACTIVE / p)
    mean = 0.0
    scale = 1.0 if is_class else max(float(y.std()), np.finfo(float).tiny)
    residual = (y - y.mean()) / scale
    fitted = np.zeros_like(residual)
    for number in range(n_passes):
        if is_class:
            latent = _latent(fitted + mean, y, rng)
            mean = float(np.mean(latent - fitted) + rng.standard_normal() / np.sqrt(y.size))
            residual = latent - fitted - mean
        before = residual.copy()
        sample_pairs(
            pairs.first, pairs.second, pairs.norms, residual, weights, side, sides,
            rng.random(p), rng.standard_normal(p), share, slab_sq, noise_sq,
        )  # fmt: skip
        fitted += before - residual
        if number >= N_WARM_UP:
            total += sides
        active = side > 0
        n_active = int(active.sum())
        share = float(np.clip(rng.beta(1.0 + n_active, 1.0 + p - n_active), 0.1 / p, 0.9))
        slab_sq = _variance(weights[active], rng)
        if not is_class:
            noise_sq = _variance(residual, rng)
    return np.asarray(np.log(total[:, 0]) - np.log(total[:, 1]))


def _variance(values: FloatArray, rng: np.random.Generator) -> float:
    """A draw from the posterior of a variance given normal values of mean 0."""
    shape, scale = VARIANCE_PRIOR
    return float((scale + 0.5 * values @ values) / rng.standard_gamma(shape + 0.5 * values.size))


def _latent(mean: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Normal variables with these means and variance 1, of the signs of y."""
    share = ndtr(y * mean) * (1.0 - rng.random(y.size))  # of the mass on the right side of zero
    tail = np.maximum(share, np.finfo(float).tiny)
    return np.asarray(mean - y * ndtri(tail))


@kernel
def sample_pairs(
    first: FloatArray,
    second: FloatArray,
    norms: FloatArray,
    residual: FloatArray,
    weights: FloatArray,
    side: NDArray[np.int8],
    sides: FloatArray,
    uniform: FloatArray,
    normal: FloatArray,
    share: float,
    slab_sq: float,
    noise_sq: float,
) -> None:
    """One Gibbs pass: draw weight and side (0: no weight) of every pair; ``sides`` gets the probabilities of each side.

    A pair without a weight says nothing about which column is the feature: half of its probability goes to each.
    """
    n = residual.size
    prior = np.log(share / (1.0 - share)) - np.log(2.0)
    for j in range(weights.size):
        a, b = first[j], second[j]
        if side[j] == 1:
            for i in range(n):
                residual[i] += weights[j] * a[i]
        elif side[j] == 2:
            for i in range(n):
                residual[i] += weights[j] * b[i]
        dot_a, dot_b = 0.0, 0.0
        for i in range(n):
            dot_a += a[i] * residual[i]
            dot_b += b[i] * residual[i]
        precision_a = norms[j, 0] / noise_sq + 1.0 / slab_sq
        precision_b = norms[j, 1] / noise_sq + 1.0 / slab_sq
        mean_a = dot_a / noise_sq / precision_a
        mean_b = dot_b / noise_sq / precision_b
        log_a = prior + 0.5 * (mean_a * mean_a * precision_a - np.log(slab_sq * precision_a))
        log_b = prior + 0.5 * (mean_b * mean_b * precision_b - np.log(slab_sq * precision_b))
        top = max(0.0, log_a, log_b)
        none, odds_a, odds_b = np.exp(-top), np.exp(log_a - top), np.exp(log_b - top)
        total = none + odds_a + odds_b
        sides[j, 0] = (0.5 * none + odds_a) / total
        sides[j, 1] = (0.5 * none + odds_b) / total
        u = uniform[j] * total
        if u < none:
            side[j], weights[j] = 0, 0.0
        elif u < none + odds_a:
            side[j], weights[j] = 1, mean_a + normal[j] / np.sqrt(precision_a)
            for i in range(n):
                residual[i] -= weights[j] * a[i]
        else:
            side[j], weights[j] = 2, mean_b + normal[j] / np.sqrt(precision_b)
            for i in range(n):
                residual[i] -= weights[j] * b[i]
