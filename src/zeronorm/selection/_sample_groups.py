r"""Groups of dependent samples (patients, batches, plates), and how labels may be exchanged between their samples.

A permutation test is exact if, without any relation between features and target, the data are as likely as those with
exchanged labels (Hemerik & Goeman 2018). Samples of one patient are dependent, so single labels may not be exchanged
between patients. Exchangeable are

- the label patterns of whole groups of the same size, where labels vary between groups (one diagnosis per patient),
- the labels within each group, where every group has the same labels (tumour and normal tissue of each patient).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import IntArray

ENOUGH_EXCHANGES = 100  # as many as "auto" permutations and the observed target need
NEARLY_ALL = 0.8  # share of the groups with the same mix of labels from which on the design is paired
MOSTLY_BETWEEN = 0.5  # share of the variance of the labels between groups from which on they describe groups
GROUPS_ALIKE = 4  # least number of groups of similar size that exchange labels where sizes differ
MOST_RENAMED = 4  # classes up to which equal targets with other names of the classes are counted
COUNTABLE = 1e15  # numbers of exchanges above are taken as infinite


def group_codes(groups: NDArray[Any]) -> IntArray:
    """The code 0, 1, … of the group of each sample; labels are compared as text."""
    return np.asarray(np.unique(np.asarray(groups).astype(str), return_inverse=True)[1], dtype=np.intp)


def group_means(
    groups: NDArray[Any], y: NDArray[Any], has_classes: bool
) -> tuple[Callable[[NDArray[np.float64]], NDArray[np.float64]], NDArray[Any]]:
    """The function from columns to their means by group (and class), and the target of these means."""
    codes = group_codes(groups)
    if has_classes:
        classes, labels = np.unique(y, return_inverse=True)
        codes = np.unique(codes * len(classes) + labels, return_inverse=True)[1]
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts = np.cumsum(sizes) - sizes

    def means(columns: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.add.reduceat(columns[order], starts, axis=0) / sizes[:, None])

    return means, y[order][starts] if has_classes else means(np.asarray(y, dtype=np.float64)[:, None])[:, 0]


def members_of(codes: IntArray) -> list[IntArray]:
    """The rows of each group, ascending."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes))[:-1])


def sizes_alike(sizes: IntArray) -> IntArray:
    """A class for each group, so that classes hold neighbouring sizes and at least ``GROUPS_ALIKE`` groups each."""
    found, counts = np.unique(sizes, return_counts=True)
    labels, label, inside = np.empty(len(found), dtype=np.intp), 0, 0
    for i, count in enumerate(counts):
        left_over = counts[i:].sum()
        if inside >= GROUPS_ALIKE and left_over >= GROUPS_ALIKE:
            label, inside = label + 1, 0
        labels[i] = label
        inside += count
    return labels[np.searchsorted(found, sizes)]


@dataclass(frozen=True)
class Exchange:
    """A set of permutations of the samples under which a target without relation to the features does not change.

    Parameters
    ----------
    text : what is exchanged, for messages.
    pools : each has one row per unit and one column per sample of the unit; the units of a pool are exchanged.
    count : number of different targets that result, the observed one included; infinite if it is huge.
    n_equal : how many of them equal the observed one up to the names of the classes, and so have the same error.
    leaders : the sample whose label each sample takes; None: its own.
    """

    text: str
    pools: tuple[IntArray, ...]
    count: float
    n_equal: int
    n_samples: int
    leaders: IntArray | None = None

    def draw(self, rng: np.random.Generator) -> IntArray:
        """The rows of the target in random order."""
        rows = np.arange(self.n_samples)
        for pool in self.pools:
            rows[pool] = pool[rng.permutation(len(pool))]
        return rows if self.leaders is None else rows[self.leaders]

    @property
    def smallest_p_value(self) -> float:
        """The p-value if the observed target is better than all others that result, except for names of classes."""
        return self.n_equal / self.count


def exchange_of(values: NDArray[Any], groups: NDArray[Any] | None = None, design: str = "auto") -> Exchange:
    """How the labels in ``values`` are exchanged.

    ``design="block"`` exchanges within groups, "between" between whole groups. "auto": within groups if nearly all of
    them have the same mix of labels, otherwise between groups; labels that vary mostly within groups are exchanged
    within them if there are too few exchanges between groups.
    """
    labels = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1).astype(np.intp)
    if groups is None:
        return _exchange("the labels of all samples", (np.arange(len(labels))[:, None],), labels)
    codes = group_codes(groups)
    members = members_of(codes)
    within = _exchange(
        "the labels within each sample group", tuple(rows[:, None] for rows in members), labels
    )
    if design == "block" or (design == "auto" and is_paired(labels, members)):
        return within
    choices = [_between_same_size(labels, members), _between_alike(labels, codes, members)]
    if design == "auto" and _share_between(values, codes) < MOSTLY_BETWEEN:
        choices.append(within)
    best = next(
        (one for one in choices if one.count >= ENOUGH_EXCHANGES), max(choices, key=lambda one: one.count)
    )
    return within if design == "auto" and best.count < 2 else best


def _exchange(
    text: str, pools: tuple[IntArray, ...], labels: IntArray, leaders: IntArray | None = None
) -> Exchange:
    log_count = 0.0
    patterns: list[Counter[tuple[int, ...]]] = []
    for pool in pools:
        found, repeats = np.unique(labels[pool], axis=0, return_counts=True)
        patterns.append(Counter(dict(zip(map(tuple, found.tolist()), repeats.tolist(), strict=True))))
        log_count += math.lgamma(len(pool) + 1) - sum(math.lgamma(k + 1) for k in repeats.tolist())
    count = float(np.rint(np.exp(log_count))) if log_count < np.log(COUNTABLE) else np.inf
    return Exchange(text, pools, count, _renamings(patterns, int(labels.max()) + 1), len(labels), leaders)


def _renamings(patterns: list[Counter[tuple[int, ...]]], n_classes: int) -> int:
    """How many ways to rename the classes leave the patterns of every pool as they are."""
    if n_classes > MOST_RENAMED:
        return 1
    return sum(
        all(
            Counter({tuple(names[k] for k in one): n for one, n in pool.items()}) == pool for pool in patterns
        )
        for names in permutations(range(n_classes))
    )


def _between_same_size(labels: IntArray, members: list[IntArray]) -> Exchange:
    sizes = np.array([rows.size for rows in members])
    pools = tuple(np.stack([rows for rows in members if rows.size == size]) for size in np.unique(sizes))
    return _exchange("the label patterns of whole sample groups of the same size", pools, labels)


def _between_alike(labels: IntArray, codes: IntArray, members: list[IntArray]) -> Exchange:
    """Labels of groups with one label each are exchanged among groups of similar size; other groups keep theirs."""
    pure = [rows for rows in members if np.all(labels[rows] == labels[rows[0]])]
    leaders = np.arange(len(labels))
    for rows in pure:
        leaders[rows] = rows[0]
    classes = sizes_alike(np.array([rows.size for rows in pure], dtype=np.intp))
    firsts = np.array([rows[0] for rows in pure], dtype=np.intp)
    pools = tuple(firsts[classes == one][:, None] for one in np.unique(classes))
    return _exchange("the labels of whole sample groups of similar size", pools, labels, leaders)


def is_paired(labels: IntArray, members: list[IntArray]) -> bool:
    """Whether nearly all groups have the same shares of two labels or more."""
    mixes: Counter[tuple[tuple[int, int], ...]] = Counter()
    for rows in members:
        found, counts = np.unique(labels[rows], return_counts=True)
        if found.size > 1:
            counts = counts // np.gcd.reduce(counts)
            mixes[tuple(zip(found.tolist(), counts.tolist(), strict=True))] += 1
    return bool(mixes) and max(mixes.values()) >= NEARLY_ALL * len(members)


def _share_between(values: NDArray[Any], codes: IntArray) -> float:
    """The share of the variance of the labels that is between groups, corrected for the number of groups."""
    columns = values.reshape(len(values), -1)
    if columns.dtype.kind != "f" and columns.shape[1] == 1:
        columns = columns == np.unique(columns)
    columns = columns.astype(np.float64)
    n, n_groups = len(columns), int(codes.max()) + 1
    total = float(np.sum((columns - columns.mean(axis=0)) ** 2))
    if n == n_groups or total == 0.0:
        return 1.0
    sums = np.zeros((n_groups, columns.shape[1]))
    np.add.at(sums, codes, columns)
    within = float(np.sum(columns**2) - np.sum(sums**2 / np.bincount(codes)[:, None]))
    return 1.0 - (within / (n - n_groups)) / (total / (n - 1))
