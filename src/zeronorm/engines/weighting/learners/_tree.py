"""A classification tree in compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, Int64Array
from zeronorm.engines.weighting._sampling import Draws, Pool, labels_of, model_cost, subset_data
from zeronorm.engines.weighting.learners._base import CompiledLearner, check_number

# -- Growing a small classification tree, and its predictions --


class Tree(NamedTuple):
    """Nodes in the order they were made; ``left`` is -1 at a leaf, the right child follows the left one."""

    feature: Int64Array
    threshold: FloatArray
    left: Int64Array
    label: Int64Array


@kernel
def grow_tree(train: FloatArray, labels: Int64Array, n_labels: int, max_depth: int, min_leaf: int) -> Tree:
    """Split every impure node at the threshold with the smallest Gini impurity."""
    n = labels.shape[0]
    tree = Tree(np.zeros(2 * n, np.int64), np.zeros(2 * n), np.full(2 * n, -1), np.zeros(2 * n, np.int64))
    samples = np.arange(n)  # the samples of a node are contiguous
    start, stop, depth = np.zeros(2 * n, np.int64), np.zeros(2 * n, np.int64), np.zeros(2 * n, np.int64)
    stop[0] = n
    n_nodes = 1
    node = 0
    while node < n_nodes:
        inside = samples[start[node] : stop[node]]
        counts = count_labels(labels, inside, n_labels)
        tree.label[node] = np.argmax(counts)
        if counts.max() < inside.shape[0] and depth[node] < max_depth:
            feature, threshold = best_split(train, labels, inside, counts, min_leaf)
            if feature >= 0:
                tree.feature[node] = feature
                tree.threshold[node] = threshold
                tree.left[node] = n_nodes
                boundary = start[node] + partition(train[feature], threshold, inside)
                start[n_nodes], stop[n_nodes] = start[node], boundary
                start[n_nodes + 1], stop[n_nodes + 1] = boundary, stop[node]
                depth[n_nodes] = depth[node] + 1
                depth[n_nodes + 1] = depth[node] + 1
                n_nodes += 2
        node += 1
    return tree


@kernel
def count_labels(labels: Int64Array, inside: Int64Array, n_labels: int) -> Int64Array:
    counts = np.zeros(n_labels, np.int64)
    for i in inside:
        counts[labels[i]] += 1
    return counts


@kernel
def best_split(
    train: FloatArray, labels: Int64Array, inside: Int64Array, counts: Int64Array, min_leaf: int
) -> tuple[int, float]:
    """Feature and threshold of the purest split, or feature -1 when no two values differ.

    The weighted Gini impurity decreases as Σ_c l_c²/l + Σ_c r_c²/r increases (l and r: counts left and right).
    """
    size = inside.shape[0]
    feature, threshold = -1, 0.0
    best = -np.inf
    for f in range(train.shape[0]):
        values = train[f][inside]
        order = np.argsort(values)
        left = np.zeros_like(counts)
        left_sq, right_sq = 0, (counts * counts).sum()
        for i in range(size - 1):
            label = labels[inside[order[i]]]
            right = counts[label] - left[label]
            left_sq += 2 * left[label] + 1
            right_sq -= 2 * right - 1
            left[label] += 1
            below, above = values[order[i]], values[order[i + 1]]
            if below == above or i + 1 < min_leaf or size - i - 1 < min_leaf:
                continue
            purity = left_sq / (i + 1) + right_sq / (size - i - 1)
            # Equal purities may differ by rounding: the first split is kept.
            if purity > best * (1.0 + 1e-12):
                best = purity
                feature, threshold = f, 0.5 * (below + above)
                if threshold >= above:  # neighbouring numbers: their mean may round up
                    threshold = below
    return feature, threshold


@kernel
def partition(values: FloatArray, threshold: float, inside: Int64Array) -> int:
    """Put the samples at or below the threshold first, in place; return their number."""
    boundary = 0
    for i in range(inside.shape[0]):
        sample = inside[i]
        if values[sample] <= threshold:
            inside[i] = inside[boundary]
            inside[boundary] = sample
            boundary += 1
    return boundary


@kernel
def tree_predict(tree: Tree, test: FloatArray) -> Int64Array:
    """Predicted labels of the test samples (columns of ``test``)."""
    predicted = np.empty(test.shape[1], np.int64)
    for j in range(test.shape[1]):
        node = 0
        while tree.left[node] >= 0:
            goes_right = test[tree.feature[node], j] > tree.threshold[node]
            node = tree.left[node] + goes_right
        predicted[j] = tree.label[node]
    return predicted


UNLIMITED_DEPTH = 1 << 30


class SubsetCART(CompiledLearner):
    """Binary tree grown with the Gini index and not pruned.

    Among equally good splits the lower feature, then the lower threshold wins.

    Parameters
    ----------
    max_depth : largest depth of the tree, or None for no limit.
    min_samples_leaf : least number of samples on each side of a split.
    """

    def __init__(self, max_depth: int | None = None, *, min_samples_leaf: int = 1) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf

    def check(self, bootstrap_size: int) -> None:
        if self.max_depth is not None:
            check_number(self, "max_depth", 1)
        check_number(self, "min_samples_leaf", 1)

    def errors(self, pool: Pool, draws: Draws, first: int, last: int, out: FloatArray) -> None:
        depth = UNLIMITED_DEPTH if self.max_depth is None else int(self.max_depth)
        cart_errors(pool, draws, (depth, int(self.min_samples_leaf)), first, last, out)

    def as_estimator(self) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf)


@kernel
def cart_errors(
    pool: Pool, draws: Draws, settings: tuple[int, int], first: int, last: int, out: FloatArray
) -> None:
    """Errors of a range of subsets."""
    max_depth, min_leaf = settings
    for b in range(first, last):
        train, test = subset_data(pool, draws, b)
        total = 0.0
        for m in range(pool.coding.shape[0]):
            labels = labels_of(pool.coding[m], pool.codes, draws.train[b])
            tree = grow_tree(train, labels, pool.n_labels, max_depth, min_leaf)
            total += model_cost(pool, m, draws.test[b], tree_predict(tree, test))
        out[b] = total / pool.coding.shape[0]
