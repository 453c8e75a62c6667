# mypy: allow-untyped-defs
r"""The loss of survival support vector machines: a squared hinge for each pair of samples that can be compared.

.. math:: L(f) = \frac{1}{2 \sum_i v_i} \sum_{i: \text{event}} \sum_{t_j > t_i} v_i v_j \max(0, 1 - f_i + f_j)^2

The sample with the earlier event shall have the greater predicted risk, by a margin of one (Van Belle et al. 2007; with
squares: Pölsterl et al. 2015). For each event the samples that were observed for longer are counted by their
predictions in a tree of partial sums (Fenwick 1994), so that value, gradient and products with the second derivatives
take O(n log n) for the n² pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel
from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.solvers.linear._survival import SurvivalLoss


@dataclass(frozen=True, eq=False)
class RankingLoss(SurvivalLoss):
    """The squared ranking hinge.

    The sum over pairs is divided by the sum of the weights: each sample is compared with the mean of the others.
    """

    strata: NDArray[Any] | None = None

    def comparisons(self, time: FloatArray, event: BoolArray, weight: FloatArray) -> LaterPartners:
        return LaterPartners(time, event, weight)


@dataclass(frozen=True, eq=False)
class LaterPartners:
    """Pairs of an event and a sample that was observed for longer; arrays are in the order of the samples."""

    time: FloatArray
    event: BoolArray
    weight: FloatArray

    def at(self, f: FloatArray) -> PairsAt:
        """The pairs with the predictions f."""
        return PairsAt(self, f - f.mean())

    @cached_property
    def order(self) -> IntArray:
        """The samples by ascending time."""
        return np.argsort(self.time, kind="stable")

    @cached_property
    def bounds(self) -> IntArray:
        """Ranks at which the distinct times begin, and the number of samples."""
        ranked = self.time[self.order]
        return np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1], [True]]))


class PairsAt:
    """Pairs with predictions: the loss and its derivatives."""

    def __init__(self, pairs: LaterPartners, f: FloatArray) -> None:
        self.pairs, self.f = pairs, f
        self.share = pairs.weight / pairs.weight.sum()

    def total(self) -> float:
        f, weight = self.f, self.pairs.weight
        later = self._sums_of_later(weight[:, None] * np.column_stack([np.ones(f.size), f, f * f]))
        gap = 1.0 - f
        return float(0.5 * self.share @ (gap * gap * later[:, 0] + 2.0 * gap * later[:, 1] + later[:, 2]))

    def gradient(self) -> FloatArray:
        f = self.f
        values = self.pairs.weight[:, None] * np.column_stack([np.ones(f.size), f])
        later, earlier = self._sums_of_later(values), self._sums_of_earlier(values)
        pull = (1.0 - f) * later[:, 0] + later[:, 1]
        return np.asarray(self.share * ((1.0 + f) * earlier[:, 0] - earlier[:, 1] - pull))

    def curvature(self) -> FloatArray:
        """The diagonal of the second derivatives."""
        ones = self.pairs.weight[:, None]
        return np.asarray(self.share * (self._sums_of_later(ones) + self._sums_of_earlier(ones))[:, 0])

    def hessian(self) -> FloatArray:
        """The second derivatives: the Laplacian of the graph of the pairs closer than the margin."""
        pairs, f = self.pairs, self.f
        is_later = (pairs.time > pairs.time[:, None]) & pairs.event[:, None]
        found = np.where(is_later & (f > f[:, None] - 1.0), -self.share[:, None] * pairs.weight, 0.0)
        found = found + found.T
        found.flat[:: f.size + 1] -= found.sum(axis=1)
        return found

    def product(self, columns: FloatArray) -> FloatArray:
        """The product of the second derivatives with columns, without the matrix of samples."""
        values = self.pairs.weight[:, None] * np.column_stack([np.ones(self.f.size), columns])
        sums = self._sums_of_later(values) + self._sums_of_earlier(values)
        return np.asarray(self.share[:, None] * (sums[:, :1] * columns - sums[:, 1:]))

    def sandwich(self, columns: FloatArray) -> FloatArray:
        """The product of the second derivatives with columns from both sides."""
        return np.asarray(columns.T @ self.product(columns))

    def _sums_of_later(self, values: FloatArray) -> FloatArray:
        """For each event the sums over samples observed for longer with predictions above its own minus one."""
        reach = self.f.size - np.searchsorted(self._ascending, self.f - 1.0, side="right")
        order = self.pairs.order[::-1]
        bounds = self.f.size - self.pairs.bounds[::-1]
        position = self.f.size - 1 - self._position
        everybody = np.ones(self.f.size, dtype=bool)
        return self._sums(order, bounds, position, reach, everybody, self.pairs.event, values)

    def _sums_of_earlier(self, values: FloatArray) -> FloatArray:
        """For each sample the sums over earlier events with predictions below its own plus one."""
        reach = np.searchsorted(self._ascending, self.f + 1.0, side="left")
        everybody = np.ones(self.f.size, dtype=bool)
        return self._sums(
            self.pairs.order, self.pairs.bounds, self._position, reach, self.pairs.event, everybody, values
        )

    def _sums(
        self,
        order: IntArray,
        bounds: IntArray,
        position: IntArray,
        reach: IntArray,
        enters: BoolArray,
        asks: BoolArray,
        values: FloatArray,
    ) -> FloatArray:
        found = np.zeros(values.shape)
        tree = np.zeros((order.size + 1, values.shape[1]))
        sum_over_partners(
            np.ascontiguousarray(order), bounds, position, reach, enters, asks, values, tree, found
        )
        return found

    @cached_property
    def _ascending(self) -> FloatArray:
        return np.sort(self.f)

    @cached_property
    def _position(self) -> IntArray:
        """The rank of each prediction."""
        position = np.empty(self.f.size, dtype=np.intp)
        position[np.argsort(self.f, kind="stable")] = np.arange(self.f.size)
        return position


@kernel
def sum_over_partners(order, bounds, position, reach, enters, asks, values, tree, found):
    """Add to ``found`` the values of samples of groups before the own one whose position is below the reach.

    ``order`` lists the samples by groups, which begin at ``bounds``; ``tree`` holds zeros.
    """
    for group in range(bounds.shape[0] - 1):
        members = order[bounds[group] : bounds[group + 1]]
        for i in members:
            node = reach[i] if asks[i] else 0
            while node > 0:
                for column in range(values.shape[1]):
                    found[i, column] += tree[node, column]
                node -= node & -node
        for i in members:
            node = position[i] + 1 if enters[i] else tree.shape[0]
            while node < tree.shape[0]:
                for column in range(values.shape[1]):
                    tree[node, column] += values[i, column]
                node += node & -node
