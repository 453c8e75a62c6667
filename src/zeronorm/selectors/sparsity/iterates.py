"""The path of a method whose iterates have fewer and fewer features, each with weights of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zeronorm.selectors.path import SelectionPath, order_by_score

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class IteratePath(SelectionPath):
    """Nested supports of iterates, each of which ranks its own features.

    A size between two iterates is read off the last iterate with more features: its largest weights
    (Weston et al. 2003). A size that an iterate has exactly is that iterate's support.
    """

    rankings: tuple[IntArray, ...] = ()

    @classmethod
    def from_iterates(
        cls,
        iterates: Sequence[tuple[IntArray, FloatArray]],
        fallback: FloatArray,
        **fields: object,
    ) -> IteratePath:
        """``iterates`` are pairs of features and their weights, each inside the one before.

        The order is that of falling: the longer a feature survives the better, then the larger its last
        weight. ``fallback`` orders the features that were in no iterate.
        """
        distinct: list[tuple[IntArray, FloatArray]] = []
        for features, weight in iterates:
            if distinct and distinct[-1][0].size == features.size:
                distinct.pop()
            distinct.append((features, weight))
        # Scores of features in no iterate lie in [0, 1/2], of those in t iterates in [t, t + 1/2].
        scores = 0.5 * _relative(fallback)
        for level, (features, weight) in enumerate(distinct, start=1):
            scores[features] = level + 0.5 * _relative(weight)
        return cls(
            order=order_by_score(scores),
            subsets=tuple(np.sort(features) for features, _ in distinct),
            rankings=tuple(features[order_by_score(weight)] for features, weight in distinct),
            scores=scores,
            **fields,  # type: ignore[arg-type]
        )

    def _ordered(self, subset: IntArray) -> IntArray:
        """By the weights of the iterate with this support; forced features and whole groups stay in front."""
        assert self.subsets is not None
        matching = [i for i, s in enumerate(self.subsets) if np.array_equal(s, subset)]
        if not matching:
            return super()._ordered(subset)
        place = self.n_features + self.position()  # behind all ranked features, in the total order
        ranking = self.rankings[matching[-1]]
        place[ranking] = np.arange(ranking.size)
        place[self.always_keep] = -1
        if self.groups is not None:
            best = np.full(int(self.groups.max()) + 1, 2 * self.n_features, dtype=np.intp)
            np.minimum.at(best, self.groups, place)
            # Groups that share a place are the forced ones: kept apart by their code.
            return subset[np.lexsort((place[subset], self.groups[subset], best[self.groups[subset]]))]
        return subset[np.argsort(place[subset], kind="stable")]


def _relative(weight: FloatArray) -> FloatArray:
    """Weights as a fraction of the largest."""
    largest = float(weight.max(initial=0.0))
    return weight / largest if largest > 0.0 else np.zeros_like(weight)
