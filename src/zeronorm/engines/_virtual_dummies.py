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

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

from zeronorm._types import FloatArray

ALL_DRAWN = 500  # up to this number of dummies all are drawn at once: L'/L then needs no justification
N_CELLS = 64  # intervals of the cosine between groups in which the probability of a zone is bounded
SMALLEST_SHAPE = 1e-6  # of a beta distribution; a sphere of one dimension is two points


class DummyDistribution(ABC):
    """The distribution of a dummy: a random direction of the space orthogonal to ``removed``.

    ``removed`` is an orthonormal basis that contains the constant vector; ``dimension`` is that of the space, and
    ``labels`` are the groups of dependent samples, if there are any.
    """

    def __init__(self, removed: FloatArray, labels: NDArray[np.intp] | None = None) -> None:
        self.removed, self.labels = removed, labels
        self.n_samples = removed.shape[0]
        self.dimension = self.n_samples - removed.shape[1]

    def noise(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Independent normal numbers in the space, one column for each dummy."""
        drawn = rng.standard_normal((count, self.n_samples)).T
        return np.asarray(drawn - self.removed @ (self.removed.T @ drawn))

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return dummies, one per column."""

    @abstractmethod
    def draw_zone(
        self, residual: FloatArray, bound: float, n_hidden: int, factor: float, rng: np.random.Generator
    ) -> FloatArray:
        """Return dummies with an absolute product of at least ``bound`` with the residual, one per column.

        Their number is that of ``n_hidden`` dummies, each in the zone with ``factor`` times its probability.
        """


class UniformDummies(DummyDistribution):
    """Dummies uniform on the sphere: standardised independent normal numbers."""

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        return _unit(self.noise(count, rng))

    def draw_zone(
        self, residual: FloatArray, bound: float, n_hidden: int, factor: float, rng: np.random.Generator
    ) -> FloatArray:
        length = float(np.linalg.norm(residual))
        cosine = bound / length if length > 0.0 else 1.0
        tail = float(sphere_tail(np.asarray(cosine), self.dimension))
        count = int(rng.binomial(n_hidden, min(1.0, factor * tail)))
        if count == 0:
            return np.empty((self.n_samples, 0))
        along = sphere_above(np.full(count, cosine), self.dimension, rng) * rng.choice([-1.0, 1.0], count)
        across = _unit(_without(residual / length, self.noise(count, rng)))
        return np.asarray(np.outer(residual / length, along) + np.sqrt(1.0 - along**2) * across)


class GroupedDummies(DummyDistribution):
    r"""Dummies that vary between and within groups of samples as the features do.

    .. math:: d = \sqrt{\lambda}\, b + \sqrt{1 - \lambda}\, w

    with :math:`b` and :math:`w` uniform on the spheres of vectors that are constant in the groups, and of vectors that
    sum to zero in each group. The share :math:`\lambda` between the groups is one of ``shares``, each as likely.
    """

    def __init__(self, labels: NDArray[np.intp], shares: FloatArray) -> None:
        super().__init__(np.full((labels.size, 1), labels.size**-0.5), labels)
        self.groups, self.shares = labels, shares
        self.sizes = np.bincount(labels)
        self.between = self.sizes.size - 1
        self.within = self.n_samples - self.sizes.size

    def group_means(self, columns: FloatArray) -> FloatArray:
        """Each column with its values replaced by the means of the groups, centred."""
        sums = np.zeros((self.sizes.size, columns.shape[1]))
        np.add.at(sums, self.groups, columns)
        means = (sums / self.sizes[:, None])[self.groups]
        return np.asarray(means - means.mean(axis=0))

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        share = rng.choice(self.shares, count)
        between, within = self._noise(count, rng)
        return np.asarray(np.sqrt(share) * _unit(between) + np.sqrt(1.0 - share) * _unit(within))

    def _noise(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        noise = self.noise(count, rng)
        between = self.group_means(noise)
        return between, noise - between

    def draw_zone(
        self, residual: FloatArray, bound: float, n_hidden: int, factor: float, rng: np.random.Generator
    ) -> FloatArray:
        part = self.group_means(residual[:, None])[:, 0]
        rest = residual - part
        lengths = float(np.linalg.norm(part)), float(np.linalg.norm(rest))
        edges = np.linspace(0.0, 1.0, N_CELLS + 1)
        mass = -np.diff(sphere_tail(edges, self.between))
        # The probability of the zone rises with the cosine between groups: that at the upper edge bounds its cell.
        limits = self._given(edges[1:], self.shares[:, None], lengths, bound)
        bounds = mass * limits / self.shares.size
        count = int(rng.binomial(n_hidden, min(1.0, factor * float(bounds.sum()))))
        if count == 0:
            return np.empty((self.n_samples, 0))
        chosen = rng.choice(bounds.size, count, p=bounds.ravel() / bounds.sum())
        row, cell = np.divmod(chosen, N_CELLS)
        share = self.shares[row]
        cosine = _sphere_between(edges[cell], edges[cell + 1], self.between, rng)
        kept = rng.random(count) * limits[row, cell] < self._given(cosine, share, lengths, bound)
        return self._completed(share[kept], cosine[kept], (part, rest), bound, rng)

    def _given(
        self, cosine: FloatArray, share: FloatArray, lengths: tuple[float, float], bound: float
    ) -> FloatArray:
        """The probability of the zone given the cosine (not negative) between the groups."""
        upper, lower = self._needed(cosine, share, lengths, bound)
        return 0.5 * (_one_sided(upper, self.within) + _one_sided(lower, self.within))

    def _needed(
        self, cosine: FloatArray, share: FloatArray, lengths: tuple[float, float], bound: float
    ) -> tuple[FloatArray, FloatArray]:
        """The cosine within the groups from which the product exceeds the bound, and its negative the negative one."""
        along = np.sqrt(share) * lengths[0] * cosine
        scale = np.maximum(np.sqrt(1.0 - share) * lengths[1], np.finfo(float).tiny)
        return (bound - along) / scale, (bound + along) / scale

    def _completed(
        self,
        share: FloatArray,
        cosine: FloatArray,
        parts: tuple[FloatArray, FloatArray],
        bound: float,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Dummies with these shares and cosines between groups that lie in the zone."""
        lengths = float(np.linalg.norm(parts[0])), float(np.linalg.norm(parts[1]))
        upper, lower = self._needed(cosine, share, lengths, bound)
        chances = _one_sided(upper, self.within), _one_sided(lower, self.within)
        is_upper = rng.random(share.size) * (chances[0] + chances[1]) < chances[0]
        inner = np.where(
            is_upper,
            _signed_above(upper, self.within, rng),
            -_signed_above(lower, self.within, rng),
        )
        sign = rng.choice([-1.0, 1.0], share.size)
        result = np.zeros((self.n_samples, share.size))
        noises = self._noise(share.size, rng)
        for part, noise, along, weight in zip(
            parts, noises, (cosine, inner), (share, 1.0 - share), strict=True
        ):
            length = float(np.linalg.norm(part))
            direction = part / length if length > 0.0 else part
            across = _unit(_without(direction, noise))
            result += np.sqrt(weight) * (np.outer(direction, along) + np.sqrt(1.0 - along**2) * across)
        return np.asarray(result * sign)


class DummyPool:
    """The dummies of one experiment: those drawn so far, and the number of hidden ones."""

    def __init__(self, distribution: DummyDistribution, n_dummies: int, rng: np.random.Generator) -> None:
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


def _sphere_between(
    low: FloatArray, high: FloatArray, dimension: int, rng: np.random.Generator
) -> FloatArray:
    first, last = sphere_tail(high, dimension), sphere_tail(low, dimension)
    return np.clip(_sphere_quantile(first + rng.random(low.size) * (last - first), dimension), low, high)


def _sphere_quantile(tail: FloatArray, dimension: int) -> FloatArray:
    """The absolute cosine that a random direction exceeds with probability ``tail``."""
    return np.asarray(np.sqrt(np.clip(1.0 - betaincinv(_shape(dimension), 0.5, tail), 0.0, 1.0)))


def _one_sided(cosine: FloatArray, dimension: int) -> FloatArray:
    """Twice the probability that a random direction has a signed cosine of at least ``cosine``."""
    tail = sphere_tail(np.abs(cosine), dimension)
    return np.where(cosine >= 0.0, tail, 2.0 - tail)


def _signed_above(cosine: FloatArray, dimension: int, rng: np.random.Generator) -> FloatArray:
    """Signed cosines of random directions, given that they are at least ``cosine``."""
    twice = rng.random(cosine.size) * _one_sided(cosine, dimension)
    found = _sphere_quantile(np.where(twice > 1.0, 2.0 - twice, twice), dimension)
    return np.asarray(np.where(twice > 1.0, -found, found))


def _shape(dimension: int) -> float:
    return max((dimension - 1) / 2.0, SMALLEST_SHAPE)


def _without(direction: FloatArray, columns: FloatArray) -> FloatArray:
    """The columns without their component along a direction of unit length."""
    return np.asarray(columns - np.outer(direction, direction @ columns))


def _unit(columns: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    return np.asarray(columns / np.where(lengths > 0.0, lengths, 1.0))
