"""A binary tree as arrays, and cost-complexity pruning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from zeronorm._types import FloatArray, IntArray
from zeronorm.selection.target import Target

N_FOLDS = 5  # of the cross-validation that chooses the cost of a leaf


@dataclass(frozen=True, eq=False)
class Nodes:
    """A tree as arrays over its nodes, the root first; leaves have -1 for feature and children.

    ``cost`` is the impurity of a node times its share of the samples, ``value`` its prediction (a class code or a
    mean).
    """

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    cost: FloatArray
    value: FloatArray

    @classmethod
    def of(cls, fitted: Any) -> Nodes:
        """The arrays of a tree of scikit-learn."""
        tree = fitted.tree_
        value = tree.value[:, 0]
        return cls(
            feature=np.where(tree.children_left < 0, -1, tree.feature),
            threshold=tree.threshold,
            left=tree.children_left,
            right=tree.children_right,
            cost=tree.impurity * tree.weighted_n_node_samples / tree.weighted_n_node_samples[0],
            value=value.argmax(axis=1).astype(np.float64) if hasattr(fitted, "classes_") else value[:, 0],
        )

    def collapse_costs(self) -> FloatArray:
        """The cost per leaf from which each node becomes a leaf: weakest-link pruning (CART, section 3.3)."""
        at = np.where(self.left < 0, 0.0, np.inf)
        reached = 0.0
        while np.isinf(at[0]):
            branch, leaves = self.cost.copy(), np.ones(at.size)
            for t in range(at.size - 1, -1, -1):  # children come after their parent
                if np.isinf(at[t]):
                    branch[t] = branch[self.left[t]] + branch[self.right[t]]
                    leaves[t] = leaves[self.left[t]] + leaves[self.right[t]]
            whole = np.isinf(at)
            link = np.full(at.size, np.inf)
            link[whole] = (self.cost[whole] - branch[whole]) / (leaves[whole] - 1.0)
            reached = max(reached, float(link.min()))
            at[whole & (link <= reached * (1.0 + 1e-12))] = reached
            for parent in np.flatnonzero(self.left >= 0):  # its descendants are removed with it
                for child in (self.left[parent], self.right[parent]):
                    at[child] = min(at[child], at[parent])
        return at

    def pruned(self, alpha: float) -> Nodes:
        """The subtree of least cost when a leaf costs ``alpha``; nodes keep their indices."""
        ends = self.collapse_costs() <= alpha if alpha > 0.0 else self.left < 0
        return replace(
            self,
            feature=np.where(ends, -1, self.feature),
            left=np.where(ends, -1, self.left),
            right=np.where(ends, -1, self.right),
        )

    def used(self, n_features: int) -> NDArray[np.bool_]:
        """The features that are split on."""
        return np.isin(np.arange(n_features), self.feature[self.feature >= 0])

    def importance(self, n_features: int) -> FloatArray:
        """Decrease of the cost by the splits on each feature, scaled to sum to one."""
        split = np.flatnonzero(self.feature >= 0)
        gain = self.cost[split] - self.cost[self.left[split]] - self.cost[self.right[split]]
        total = np.bincount(self.feature[split], np.maximum(gain, 0.0), n_features)
        return np.asarray(total / max(float(total.sum()), np.finfo(float).tiny))

    def paths(self, data: NDArray[np.float32]) -> Iterator[IntArray]:
        """The node of each sample, level by level from the root."""
        node = np.zeros(len(data), dtype=np.intp)
        while True:
            yield node
            inner = self.left[node] >= 0
            if not inner.any():
                return
            goes_left = data[np.arange(len(data)), np.maximum(self.feature[node], 0)] <= self.threshold[node]
            node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)

    def predictions(self, data: NDArray[np.float32], alphas: FloatArray) -> FloatArray:
        """What the trees pruned at each cost of a leaf predict, one row each."""
        ends_at = self.collapse_costs()
        found = np.empty((alphas.size, len(data)))
        is_open = np.ones(found.shape, dtype=bool)
        for node in self.paths(data):
            ends = is_open & (ends_at[node] <= alphas[:, None])
            found = np.where(ends, self.value[node], found)
            is_open &= ~ends
        return found


Grower = Callable[[NDArray[np.float32], NDArray[Any]], Nodes]


def chosen_cost(grow: Grower, data: NDArray[np.float32], target: Target, seed: int) -> float:
    """The largest cost of a leaf within one standard error of the smallest error (Breiman et al. 1984, section 3.4)."""
    y = target.values
    levels = np.unique(grow(data, y).collapse_costs())
    alphas = np.append(np.sqrt(levels[:-1] * levels[1:]), levels[-1])  # a typical cost for each subtree
    least = int(target.strata_sizes().min())
    if least < 2:
        return 0.0  # nothing to test on
    folds = (StratifiedKFold if target.is_stratified else KFold)(
        min(N_FOLDS, least), shuffle=True, random_state=seed
    )
    loss = np.empty((alphas.size, len(y)))
    for train, test in folds.split(data, y):
        missed = grow(data[train], y[train]).predictions(data[test], alphas) - y[test]
        loss[:, test] = missed != 0.0 if target.has_classes else missed**2
    mean = loss.mean(axis=1)
    best = int(np.argmin(mean))
    within = mean <= mean[best] + loss[best].std(ddof=1) / np.sqrt(len(y))
    return float(alphas[np.flatnonzero(within)[-1]])
