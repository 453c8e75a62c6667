r"""Lower bounds on the objective of all subsets of at most k features.

For a subset S the dual of the linear model with an unpenalised bias is

.. math:: P(S) = \min_{w, b}\ \tfrac12 \|w\|^2 + \sum_i C_i L(w \cdot x_i + b, y_i)
               = \max_{\alpha:\ \sum_i \alpha_i = 0}\ D(\alpha) - \tfrac12 \sum_{j \in S} (x_j^\top \alpha)^2,

so every balanced α gives a bound for all subsets at once (Bertsimas, Pauphilet & Van Parys 2021):

.. math:: \min_{|S| \le k} P(S) \ \ge\ D(\alpha) - \tfrac12 \max_{|S| \le k} \sum_{j \in S} q_j, \qquad
          q_j = (x_j^\top \alpha)^2.

Several classes, one against the rest with the same features, have one α each; the objectives and the D are summed, and
:math:`q_j` is the sum over the classes, because each of them is trained on the same S. The maximum over S is the sum
of the k largest :math:`q_j`; with feature groups, the linear relaxation of the knapsack of whole groups.

If no weight may exceed M, the maximum over the weight is smaller (Hazimeh, Mazumder & Saab 2022):

.. math:: q_j = \max_{|w| \le M} 2 w\, x_j^\top \alpha - w^2 = M (2 |x_j^\top \alpha| - M)
          \quad \text{where } |x_j^\top \alpha| > M.

Rounding cannot raise a bound: the dual variables are multiples of a power of two whose sum is exactly zero,
products with the columns are enlarged by the largest possible rounding error, and the last operations round outwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines.certificates._conjugates import DualLoss
from zeronorm.engines.certificates._kernels import largest_of, sums_of_squares

UNIT_ROUNDOFF = 2.0**-53
GRID_BITS = 45  # dual variables have so many bits, fewer for very many samples
EXACT_BITS = 62  # a sum of integers up to this size does not overflow
# A product with a centred column may be computed from the raw column and its mean. Its rounding error is that of the
# raw column, whose mean is at most this many standard deviations; designs with larger means centre the values first.
LARGEST_MEAN_DENSE, LARGEST_MEAN_SPARSE = 10.0, 1e4
ERROR_OF_DUAL = 64.0  # units of roundoff in one term of D, of magnitude one
ERROR_OF_NORM = 1.0 + 1e-6  # a computed norm may be too small by this factor


@dataclass(frozen=True, eq=False)
class Objective:
    """The regularised loss of one linear model per column of ``targets``, trained on the same features.

    ``cost`` holds C times the weight of each sample. ``max_weight`` bounds the weight of a feature; with several
    models or feature groups, the root of the sum of squares over models, and of its mean over the group.
    """

    design: Design
    targets: FloatArray
    cost: FloatArray
    loss: DualLoss
    max_weight: float = math.inf

    @cached_property
    def norms(self) -> FloatArray:
        """Upper bounds on the Euclidean norms of the columns."""
        return np.asarray(np.sqrt(self.design.squared_norms()) * ERROR_OF_NORM)

    def value(self, decisions: FloatArray, weights: FloatArray) -> float:
        """The objective at decision values, samples × models, and weights."""
        losses = self.cost @ self.loss.value(decisions, self.targets)
        return 0.5 * float(np.sum(weights**2)) + float(losses.sum())

    def dual_at(self, decisions: FloatArray, loss: DualLoss | None = None) -> FloatArray:
        """The dual variables that belong to decision values, samples × models; not balanced."""
        loss = self.loss if loss is None else loss
        return np.asarray(-self.cost[:, None] * loss.slope(decisions, self.targets))

    def smoothed(self, width: float, alpha: FloatArray) -> DualLoss:
        """The loss with its kink, if it has one, rounded near these dual variables."""
        return self.loss.smoothed(width, self.loss.feasible(alpha / self.cost[:, None], self.targets))

    def balanced(self, alpha: FloatArray) -> FloatArray:
        """A dual feasible point near ``alpha``: inside its limits, and each column sums to exactly zero."""
        return np.stack([self._balanced(a, y) for a, y in zip(alpha.T, self.targets.T, strict=True)], axis=1)

    def _balanced(self, alpha: FloatArray, y: FloatArray) -> FloatArray:
        if self.loss.is_free:
            alpha = alpha - self.cost * (alpha.sum() / self.cost.sum())
        else:
            alpha = self.cost * self.loss.feasible(alpha / self.cost, y)
            positive, negative = alpha[alpha > 0.0].sum(), -alpha[alpha < 0.0].sum()
            smaller = min(positive, negative)
            alpha = np.where(alpha > 0.0, alpha * (smaller / (positive or 1.0)), alpha)
            alpha = np.where(alpha < 0.0, alpha * (smaller / (negative or 1.0)), alpha)
        return on_exact_grid(alpha)

    def dual_value(self, alpha: FloatArray) -> float:
        """A lower bound of D at a balanced point, not more than rounding below it."""
        v = alpha / self.cost[:, None]
        terms = self.cost[:, None] * self.loss.dual(v, self.targets)
        size = np.abs(v * self.targets) + v**2 + (0.0 if self.loss.is_free else 1.0)
        error = ERROR_OF_DUAL * UNIT_ROUNDOFF * float((self.cost @ size).sum())
        return math.nextafter(math.fsum(terms.ravel()) - 1.001 * error, -math.inf)

    def squared_products(
        self, alpha: FloatArray, columns: IntArray | None = None, design: Design | None = None
    ) -> FloatArray:
        """Upper bounds of :math:`q_j`, all or for some ``columns``, whose ``design`` is given."""
        products = (self.design if design is None else design).transpose_dot(alpha)
        norms = self.norms if columns is None else self.norms[columns]
        mean = LARGEST_MEAN_SPARSE if self.design.is_sparse else LARGEST_MEAN_DENSE
        error = 2.0 * (len(alpha) + 32) * UNIT_ROUNDOFF * (1.0 + mean)
        q = sums_of_squares(products, error * np.sqrt(np.sum(alpha**2, axis=0)), norms)
        q *= 1.0 + (8 + alpha.shape[1]) * UNIT_ROUNDOFF
        return q


def on_exact_grid(alpha: FloatArray) -> FloatArray:
    """Dual variables as multiples of one power of two that sum to exactly zero, none of them larger than before."""
    largest = float(np.abs(alpha).max(initial=0.0))
    if largest == 0.0:
        return np.zeros_like(alpha)
    bits = min(GRID_BITS, EXACT_BITS - math.ceil(math.log2(alpha.size + 1)))
    exponent = bits - math.frexp(largest)[1]
    units = np.trunc(np.ldexp(alpha, exponent)).astype(np.int64)
    excess = int(units.sum())
    for i in np.argsort(-units * np.sign(excess), kind="stable"):
        if excess == 0:
            break
        change = min(abs(excess), abs(int(units[i]))) * (1 if excess > 0 else -1)
        units[i] -= change
        excess -= change
    return np.ldexp(units.astype(np.float64), -exponent)


@dataclass(frozen=True, eq=False)
class Units:
    """Features that enter a subset together: single features, or feature groups.

    ``code`` is the unit of each feature, ``sizes`` the number of features of each unit.
    """

    code: IntArray
    sizes: IntArray

    @classmethod
    def of(cls, n_features: int, groups: IntArray | None) -> Units:
        """Single features, or the groups of these codes."""
        code = np.arange(n_features) if groups is None else np.unique(groups, return_inverse=True)[1]
        return cls(code, np.bincount(code))

    @property
    def are_single(self) -> bool:
        """Whether each unit is one feature, in the order of the features."""
        return self.sizes.size == self.code.size

    def sums(self, q: FloatArray) -> FloatArray:
        """The sum of a value over the features of each unit."""
        if self.are_single:
            return q
        sums = np.zeros(self.sizes.size)
        np.add.at(sums, self.code, q)
        return sums

    def gains(self, q: FloatArray, max_weight: float) -> FloatArray:
        """Upper bounds of the value of each unit, from squared products of its features and the largest weight."""
        q = self.sums(q)
        if math.isinf(max_weight):
            return q
        reach = max_weight * np.sqrt(self.sizes)
        over = q > reach**2
        if over.any():
            q[over] = reach[over] * (2.0 * np.sqrt(q[over]) - reach[over]) * (1.0 + 8.0 * UNIT_ROUNDOFF)
        return q

    def columns(self, units: IntArray) -> IntArray:
        """The features of some units, sorted."""
        return np.sort(units) if self.are_single else np.flatnonzero(np.isin(self.code, units))


@dataclass(frozen=True, eq=False)
class CompetingUnits:
    """The subsets under consideration: those that hold all ``inside`` units and others of the ``free`` ones.

    Both are masks over the units; at most ``size`` features are chosen in all.
    """

    units: Units
    size: int
    inside: BoolArray
    free: BoolArray

    @property
    def room(self) -> int:
        """The number of features that may be chosen from the free units."""
        return self.size - self._n_features(self.inside)

    def _n_features(self, units: BoolArray) -> int:
        return int(np.count_nonzero(units) if self.units.are_single else self.units.sizes[units].sum())

    def fitting(self) -> CompetingUnits:
        """The same subsets, without free units that are too large."""
        if self.units.are_single and self.room > 0:
            return self
        free = self.free & (self.units.sizes <= self.room)
        return CompetingUnits(self.units, self.size, self.inside, free)

    def including(self, unit: int) -> CompetingUnits:
        """The subsets that hold this unit as well."""
        inside, free = self.inside.copy(), self.free.copy()
        inside[unit], free[unit] = True, False
        return CompetingUnits(self.units, self.size, inside, free).fitting()

    def excluding(self, unit: int) -> CompetingUnits:
        """The subsets that do not hold this unit."""
        free = self.free.copy()
        free[unit] = False
        return CompetingUnits(self.units, self.size, self.inside, free)

    def is_decided(self) -> bool:
        """Whether all free units fit, so that the best subset takes all of them."""
        return self._n_features(self.free) <= self.room

    def thresholds(self, q: FloatArray) -> tuple[float, float]:
        """Per feature, the smallest value among the largest that fit, and the largest of those that do not."""
        if self.is_decided():
            return 0.0, 0.0
        if self.units.are_single:
            ends = np.sort(largest_of(q, self.free, self.room + 1))[:2]
            return float(ends[1]) if self.room else math.inf, float(ends[0])
        free = np.flatnonzero(self.free)
        sizes = self.units.sizes[free]
        density = q[free] / sizes
        order = np.argsort(-density, kind="stable")
        first = int(np.searchsorted(np.cumsum(sizes[order]), self.room, side="right"))
        return float(density[order[first]]), float(density[order[first]])

    def largest_sum(self, q: FloatArray) -> float:
        """An upper bound of the sum of q over any of the subsets; q is a value per unit.

        For single features it is the sum of the largest. For groups and every t ≥ 0 it is at most the sum over the
        units inside, plus t times the room, plus what the free values exceed t times their size by. The best t is a
        threshold, for which it is the sum of the largest.
        """
        if self.units.are_single and not self.is_decided():
            largest = np.sort(largest_of(q, self.free, self.room)) if self.room else ()
            return _up(math.fsum([*q[self.inside], *largest]))
        threshold, _ = self.thresholds(q)
        if math.isinf(threshold):
            return _up(math.fsum(q[self.inside]))
        sizes = self.units.sizes[self.free]
        over = np.maximum(q[self.free] - threshold * sizes, 0.0)
        # Each difference is rounded to its nearest: at most one unit of roundoff of its larger term too small.
        error = UNIT_ROUNDOFF * 4.0 * float(q[self.free][over > 0.0].sum() + threshold * self.room)
        return _up(math.fsum([*q[self.inside], *over[over > 0.0], threshold * self.room, error]))


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)


@dataclass(frozen=True, eq=False)
class DualBound:
    """A balanced dual point with its products: one bound for each family of subsets."""

    alpha: FloatArray
    dual: float
    q: FloatArray  # one value per unit

    @classmethod
    def at(cls, objective: Objective, units: Units, alpha: FloatArray) -> DualBound:
        """Evaluate the feasible point near ``alpha``; one pass over the data."""
        return cls.from_products(
            objective, alpha, lambda a: units.gains(objective.squared_products(a), objective.max_weight)
        )

    @classmethod
    def from_products(
        cls, objective: Objective, alpha: FloatArray, products: Callable[[FloatArray], FloatArray]
    ) -> DualBound:
        """Evaluate the feasible point near ``alpha`` with the function that computes q."""
        alpha = objective.balanced(alpha)
        return cls(alpha, objective.dual_value(alpha), products(alpha))

    def over(self, candidates: CompetingUnits) -> float:
        """The bound that holds for all these subsets, rounded down; objectives are never negative."""
        return max(self._signed(candidates), 0.0)

    def _signed(self, candidates: CompetingUnits) -> float:
        return math.nextafter(self.dual - 0.5 * candidates.largest_sum(self.q), -math.inf)

    def with_and_without(self, candidates: CompetingUnits) -> tuple[FloatArray, FloatArray]:
        """Bounds for the subsets with each unit, and for those without it; infinite if there are none.

        Moving a unit of value q and size m into a subset raises the bound by (m t - q) / 2 where that is positive,
        since it displaces others of the value t per feature; removing one raises it by (q - m t) / 2.
        """
        last, next_one = candidates.thresholds(self.q)
        bound, sizes = self._signed(candidates), candidates.units.sizes
        within = np.full(sizes.size, math.inf)
        without = np.full(sizes.size, math.inf)
        free = candidates.free
        safely = 1.0 - 1e-12
        if not math.isinf(last):
            within[free] = bound + 0.5 * np.maximum(safely * last * sizes[free] - self.q[free], 0.0)
        without[free] = bound + 0.5 * np.maximum(safely * self.q[free] - next_one * sizes[free], 0.0)
        within[candidates.inside] = bound
        return within, without
