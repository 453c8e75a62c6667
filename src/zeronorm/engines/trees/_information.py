r"""ID3 and C4.5: trees that split on the feature with the most information about the classes (Quinlan 1986, 1993).

The gain of a split of a node into branches is the mutual information between branch and class,

.. math:: \mathrm{gain} = H(Y) - \sum_b \frac{n_b}{n} H(Y \mid b), \qquad
    H(Y) = -\sum_c \frac{n_c}{n} \log_2 \frac{n_c}{n}.

A column of categories has a branch for each of its values, any other column two branches on both sides of the threshold
with the largest gain. ID3 takes the split with the largest gain. C4.5 takes, among the splits whose gain is at least
the mean of all, the one with the largest ratio of the gain to the information in the branches themselves,
:math:`-\sum_b (n_b/n) \log_2 (n_b/n)`, which is large for many branches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.engines.trees._cuts import between, cuts

TIED = 1e-10  # gains in bits and their ratios that differ by less are equal; smaller gains are none


@dataclass(frozen=True, eq=False)
class InformationTree:
    """A tree with any number of branches as arrays over its nodes, the root first.

    ``feature`` is the column that a node splits on, -1 in leaves, and ``threshold`` the largest value of the first of
    two branches, NaN where each category has a branch. ``value`` is the category or the side (0 and 1) of the parent's
    split that leads to the node. ``errors`` are the samples outside the majority of a node, ``gain`` is that of its
    split, in bits.
    """

    feature: IntArray
    threshold: FloatArray
    parent: IntArray
    value: FloatArray
    n_samples: IntArray
    errors: IntArray
    gain: FloatArray

    def used(self, n_features: int) -> BoolArray:
        """The features that are split on."""
        return np.isin(np.arange(n_features), self.feature[self.feature >= 0])

    def importance(self, n_features: int) -> FloatArray:
        """The information gained by the splits on each feature, weighted by their samples, scaled to sum to one."""
        split = self.feature >= 0
        share = self.n_samples[split] / self.n_samples[0]
        total = np.bincount(self.feature[split], share * self.gain[split], n_features)
        return np.asarray(total / max(float(total.sum()), np.finfo(float).tiny))

    def pruned(self, confidence: float) -> InformationTree:
        """Replace branches by a leaf where that has at most their expected errors (C4.5's error-based pruning).

        A leaf with E errors in N samples is expected to have N U errors, U being the upper limit of its error rate at
        this confidence.
        """
        as_leaf = self.n_samples * largest_error_rate(self.errors, self.n_samples, confidence)
        below = np.zeros(as_leaf.size)  # expected errors of all leaves below a node
        ends = self.feature < 0
        for node in range(as_leaf.size - 1, -1, -1):  # children come after their parent
            ends[node] = ends[node] or as_leaf[node] <= below[node]
            if node > 0:
                below[self.parent[node]] += as_leaf[node] if ends[node] else below[node]
        kept = np.ones(as_leaf.size, dtype=bool)
        for node in range(1, as_leaf.size):
            kept[node] = kept[self.parent[node]] and not ends[self.parent[node]]
        index = np.cumsum(kept) - 1
        arrays = {name: getattr(self, name)[kept] for name in self.__dataclass_fields__}
        arrays["feature"] = np.where(ends[kept], -1, arrays["feature"])
        arrays["parent"] = np.where(arrays["parent"] < 0, -1, index[arrays["parent"]])
        return InformationTree(**arrays)


def largest_error_rate(errors: IntArray, n_samples: IntArray, confidence: float) -> FloatArray:
    """The error rate at which so few errors in so many samples have this probability."""
    return np.asarray(beta.ppf(1.0 - confidence, errors + 1.0, np.maximum(n_samples - errors, 1e-12)))


class ColumnSplit(NamedTuple):
    """The best split of one column: its gain, the information in the branches, and the threshold if it has one."""

    column: int
    gain: float
    own: float
    threshold: float


@dataclass
class _Growth:
    """The rows of the tree so far, and the nodes that wait: samples, depth, parent and value of the parent's split."""

    rows: list[tuple[int, float, int, float, int, int, float]] = field(default_factory=list)
    waiting: list[tuple[IntArray, int, int, float]] = field(default_factory=list)

    def tree(self) -> InformationTree:
        """The rows as arrays."""
        columns = list(zip(*self.rows, strict=True))
        feature, parent, n_samples, errors = (np.asarray(columns[i], dtype=np.intp) for i in (0, 2, 4, 5))
        threshold, value, gain = (np.asarray(columns[i], dtype=np.float64) for i in (1, 3, 6))
        return InformationTree(feature, threshold, parent, value, n_samples, errors, gain)


def grow_by_information(
    data: NDArray[Any],
    y: NDArray[Any],
    n_classes: int,
    *,
    is_discrete: BoolArray,
    by_ratio: bool,
    max_depth: int | None,
    min_leaf: int,
) -> InformationTree:
    """ColumnSplit until the nodes are pure or nothing is gained: by gain (ID3) or by the ratio of gains (C4.5)."""
    indicator = np.eye(n_classes)[y]
    growth = _Growth(waiting=[(np.arange(len(y)), 0, -1, 0.0)])
    while growth.waiting:
        samples, depth, parent, value = growth.waiting.pop()
        counts = indicator[samples].sum(axis=0)
        split = None
        if counts.max() < samples.size and (max_depth is None or depth < max_depth):
            split = best_split(data[samples], indicator[samples], is_discrete, by_ratio, min_leaf)
        end = (parent, value, samples.size, int(samples.size - counts.max()))
        if split is None:
            growth.rows.append((-1, np.nan, *end, 0.0))
            continue
        growth.rows.append((split.column, split.threshold, *end, split.gain))
        column = data[samples, split.column]
        branch = column.astype(np.float64) if np.isnan(split.threshold) else 1.0 * (column > split.threshold)
        here = len(growth.rows) - 1
        growth.waiting += [(samples[branch == v], depth + 1, here, float(v)) for v in np.unique(branch)[::-1]]
    return growth.tree()


def best_split(
    data: NDArray[Any], indicator: FloatArray, is_discrete: BoolArray, by_ratio: bool, min_leaf: int
) -> ColumnSplit | None:
    """The split of a node with the largest gain, or ratio of gains; ties: the lowest column."""
    continuous = np.flatnonzero(~is_discrete)
    splits = [
        split._replace(column=int(continuous[split.column]))
        for split in best_cuts(data[:, continuous], indicator, min_leaf)
    ]
    for column in np.flatnonzero(is_discrete):
        split = categories_apart(data[:, column], indicator, min_leaf)
        splits += [] if split is None else [split._replace(column=int(column))]
    splits = sorted(split for split in splits if split.gain > TIED)
    if not splits:
        return None
    worth = np.array([split.gain / split.own if by_ratio else split.gain for split in splits])
    if by_ratio:
        gains = np.array([split.gain for split in splits])
        worth[gains < gains.mean() - TIED] = -np.inf
    return splits[int(np.argmax(worth >= worth.max() - TIED))]


def best_cuts(data: NDArray[Any], indicator: FloatArray, min_leaf: int) -> list[ColumnSplit]:
    """For each column that can be cut, the threshold with the largest gain."""
    n = len(data)
    whole = float(entropy(indicator.sum(axis=0)))
    size = np.arange(1, n)
    own = entropy(np.column_stack([size, n - size]))
    found = []
    for part in cuts(data, indicator, min_leaf):
        rest = (size[:, None] * entropy(part.inside) + (n - size)[:, None] * entropy(part.outside)) / n
        gain = np.where(part.allowed, whole - rest, -np.inf)
        for column in np.flatnonzero(part.allowed.any(axis=0)):
            row = int(np.argmax(gain[:, column] >= gain[:, column].max() - TIED))
            threshold = between(part.values[row, column], part.values[row + 1, column])
            found.append(
                ColumnSplit(
                    part.first_column + int(column), float(gain[row, column]), float(own[row]), threshold
                )
            )
    return found


def categories_apart(column: NDArray[Any], indicator: FloatArray, min_leaf: int) -> ColumnSplit | None:
    """The split with a branch for each category; None unless two of the branches are large enough."""
    _, code = np.unique(column, return_inverse=True)
    counts = np.zeros((int(code.max()) + 1, indicator.shape[1]))
    np.add.at(counts, code, indicator)
    size = counts.sum(axis=1)
    if np.sum(size >= min_leaf) < 2:
        return None
    rest = float(size @ entropy(counts)) / len(column)
    return ColumnSplit(0, float(entropy(counts.sum(axis=0))) - rest, float(entropy(size)), np.nan)


def entropy(counts: FloatArray) -> FloatArray:
    """Entropy in bits of the distributions along the last axis."""
    share = counts / np.maximum(counts.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
    return np.asarray(-np.sum(share * np.log2(np.where(share > 0.0, share, 1.0)), axis=-1))
