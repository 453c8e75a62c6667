r"""Columns of noise (dummies) that are drawn only when they matter.

A dummy is a random direction :math:`d` of the space of centred samples. A path of residuals :math:`r_1, r_2, \dots`
asks only which dummies have :math:`|d^\top r_s| \ge b_s`: usually a few of millions. They are drawn from their
distribution given that inequality, and all others are never drawn. With :math:`L` dummies, :math:`L'` of which are
still hidden, and the probability :math:`\pi` of the zone :math:`|d^\top r| \ge b`,

.. math:: N \sim \operatorname{Bin}(L', \pi L / L')

dummies are drawn in the zone, and those that lie in an earlier zone are dropped: no hidden dummy is there. The share
:math:`L'/L` stands for the probability of lying in no earlier zone; with few dummies all are drawn at once instead.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, betaincinv

from zeronorm._types import FloatArray

ALL_DRAWN = 500  # up to this number of dummies all are drawn at once: L'/L then needs no justification
SMALLEST_SHAPE = 1e-6  # of a beta distribution; a sphere of one dimension is two points


class UniformDummies:
    """Dummies uniform on the sphere of the space orthogonal to ``removed``: standardised normal numbers.

    ``removed`` is an orthonormal basis that contains the constant vector; ``dimension`` is that of the space.
    """

    def __init__(self, removed: FloatArray) -> None:
        self.removed = removed
        self.n_samples = removed.shape[0]
        self.dimension = self.n_samples - removed.shape[1]

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return dummies, one per column."""
        return _unit(self._noise(count, rng))

    def draw_zone(
        self, residual: FloatArray, bound: float, n_hidden: int, factor: float, rng: np.random.Generator
    ) -> FloatArray:
        """Return dummies with an absolute product of at least ``bound`` with the residual, one per column.

        Their number is that of ``n_hidden`` dummies, each in the zone with ``factor`` times its probability.
        """
        length = float(np.linalg.norm(residual))
        cosine = bound / length if length > 0.0 else 1.0
        tail = float(sphere_tail(np.asarray(cosine), self.dimension))
        count = int(rng.binomial(n_hidden, min(1.0, factor * tail)))
        if count == 0:
            return np.empty((self.n_samples, 0))
        along = sphere_above(np.full(count, cosine), self.dimension, rng) * rng.choice([-1.0, 1.0], count)
        across = _unit(_without(residual / length, self._noise(count, rng)))
        return np.asarray(np.outer(residual / length, along) + np.sqrt(1.0 - along**2) * across)

    def _noise(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Independent normal numbers in the space, one column for each dummy."""
        drawn = rng.standard_normal((count, self.n_samples)).T
        return np.asarray(drawn - self.removed @ (self.removed.T @ drawn))


class DummyPool:
    """The dummies of one experiment: those drawn so far, and the number of hidden ones."""

    def __init__(self, distribution: UniformDummies, n_dummies: int, rng: np.random.Generator) -> None:
        self.distribution, self.n_dummies, self.rng = distribution, n_dummies, rng
        self.n_hidden = 0 if n_dummies <= ALL_DRAWN else n_dummies
        self.first = distribution.draw(n_dummies - self.n_hidden, rng)
        self._residuals: list[FloatArray] = []
        self._bounds: list[float] = []

    def reveal(self, residual: FloatArray, bound: float) -> FloatArray:
        """Draw the hidden dummies with an absolute product of at least ``bound`` with the residual, one per column."""
        if self.n_hidden == 0:
            return np.empty((residual.size, 0))
        factor = self.n_dummies / self.n_hidden
        drawn = self.distribution.draw_zone(residual, bound, self.n_hidden, factor, self.rng)
        if drawn.shape[1] and self._residuals:
            earlier = np.abs(np.stack(self._residuals) @ drawn) >= np.asarray(self._bounds)[:, None]
            drawn = drawn[:, ~earlier.any(axis=0)]
        self._residuals.append(residual)
        self._bounds.append(bound)
        self.n_hidden -= drawn.shape[1]
        return drawn


# -- Cosines of a random direction --


def sphere_tail(cosine: FloatArray, dimension: int) -> FloatArray:
    """Probability that a random direction has an absolute cosine of at least ``cosine`` with a fixed one."""
    inside = np.clip(1.0 - np.minimum(cosine, 1.0) ** 2, 0.0, 1.0)
    return np.asarray(betainc(_shape(dimension), 0.5, inside))


def sphere_above(cosine: FloatArray, dimension: int, rng: np.random.Generator) -> FloatArray:
    """Absolute cosines of random directions, given that they are at least ``cosine``."""
    return _sphere_quantile(rng.random(cosine.size) * sphere_tail(cosine, dimension), dimension)


def _sphere_quantile(tail: FloatArray, dimension: int) -> FloatArray:
    """The absolute cosine that a random direction exceeds with probability ``tail``."""
    return np.asarray(np.sqrt(np.clip(1.0 - betaincinv(_shape(dimension), 0.5, tail), 0.0, 1.0)))


def _shape(dimension: int) -> float:
    return max((dimension - 1) / 2.0, SMALLEST_SHAPE)


def _without(direction: FloatArray, columns: FloatArray) -> FloatArray:
    """The columns without their component along a direction of unit length."""
    return np.asarray(columns - np.outer(direction, direction @ columns))


def _unit(columns: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    return np.asarray(columns / np.where(lengths > 0.0, lengths, 1.0))
