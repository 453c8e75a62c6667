"""Growing and reading a small classification tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zeronorm._jit import kernel
from zeronorm.selectors.stochastic.pool import FloatArray, IntArray


class Tree(NamedTuple):
    """Nodes in the order they were made; ``left`` is -1 at a leaf, the right child follows the left one."""

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    label: IntArray


@kernel
def grow_tree(train: FloatArray, labels: IntArray, n_labels: int, max_depth: int, min_leaf: int) -> Tree:
    """Split every impure node at the threshold with the smallest Gini impurity."""
    n = labels.shape[0]
    tree = Tree(np.zeros(2 * n, np.int64), np.zeros(2 * n), np.full(2 * n, -1), np.zeros(2 * n, np.int64))
    samples = np.arange(n)  # the samples of a node stand together
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
                middle = start[node] + partition(train[feature], threshold, inside)
                start[n_nodes], stop[n_nodes] = start[node], middle
                start[n_nodes + 1], stop[n_nodes + 1] = middle, stop[node]
                depth[n_nodes] = depth[node] + 1
                depth[n_nodes + 1] = depth[node] + 1
                n_nodes += 2
        node += 1
    return tree


@kernel
def count_labels(labels: IntArray, inside: IntArray, n_labels: int) -> IntArray:
    counts = np.zeros(n_labels, np.int64)
    for i in inside:
        counts[labels[i]] += 1
    return counts


@kernel
def best_split(
    train: FloatArray, labels: IntArray, inside: IntArray, counts: IntArray, min_leaf: int
) -> tuple[int, float]:
    """Feature and threshold of the purest split, or feature -1 when no two values differ.

    The weighted Gini impurity falls as Σ_c l_c²/l + Σ_c r_c²/r rises (l and r: counts left and right).
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
            # Equal purities computed in another order differ by rounding: the first one stays.
            if purity > best * (1.0 + 1e-12):
                best = purity
                feature, threshold = f, 0.5 * (below + above)
                if threshold >= above:  # neighbouring numbers: their mean may round up
                    threshold = below
    return feature, threshold


@kernel
def partition(values: FloatArray, threshold: float, inside: IntArray) -> int:
    """Put the samples at or below the threshold first, in place; return their number."""
    middle = 0
    for i in range(inside.shape[0]):
        sample = inside[i]
        if values[sample] <= threshold:
            inside[i] = inside[middle]
            inside[middle] = sample
            middle += 1
    return middle


@kernel
def tree_predict(tree: Tree, test: FloatArray) -> IntArray:
    """Labels of the test samples (columns of ``test``)."""
    predicted = np.empty(test.shape[1], np.int64)
    for j in range(test.shape[1]):
        node = 0
        while tree.left[node] >= 0:
            goes_right = test[tree.feature[node], j] > tree.threshold[node]
            node = tree.left[node] + goes_right
        predicted[j] = tree.label[node]
    return predicted
