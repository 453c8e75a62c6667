"""Nested training sets of growing size: every smaller one is part of the larger ones, with the same mix of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.resampling._splits import Split, make_splits
from zeronorm.selection._sample_groups import group_codes, members_of
from zeronorm.selection.target import Target

SMALLEST_SHARE = 0.2  # of the training samples of a fold
FEWEST_UNITS = 3  # samples (or sample groups) of the smallest class in the smallest training set
FEWEST_SAMPLES = 10  # of a real target in the smallest training set
LARGEST_START = 0.6  # the smallest training set must be clearly smaller than the whole, to show a trend


@dataclass(frozen=True)
class GrowingSplits:
    """Splits with training sets of growing size.

    Parameters
    ----------
    splits : all of them; those of one draw and size have disjoint test samples that make up all samples.
    draw, step : for each split, the draw, and the position of its size.
    n_steps : number of sizes.
    """

    splits: list[Split]
    draw: IntArray
    step: IntArray
    n_steps: int

    def of_first_draw(self) -> list[Split]:
        """The splits of the first draw with all training samples."""
        pairs = zip(self.splits, self.draw, self.step, strict=True)
        found = [split for split, draw, step in pairs if draw == 0 and step == self.n_steps - 1]
        return [replace(split, index=number) for number, split in enumerate(found)]


def growing_splits(
    y: NDArray[Any],
    groups: NDArray[Any] | None,
    target: type[Target],
    *,
    cv: Any,
    draws: int,
    n_sizes: int,
    seed: int,
) -> GrowingSplits:
    """Folds with nested subsets of their training samples, for each draw with other folds and other subsets."""
    shares = shares_for(y, groups, target, n_sizes)
    splits: list[Split] = []
    where: list[tuple[int, int]] = []
    for draw in range(draws):
        for fold in make_splits(cv, y, groups, target=target, seed=seed + draw, least_per_fold=1):
            rng = np.random.default_rng([seed, draw, fold.index])
            order, ends = nested_order(fold.train, y, groups, target, rng)
            for step, share in enumerate(shares):
                count = ends[np.searchsorted(ends, share * len(order) - 1e-9)]
                splits.append(Split(len(splits), np.sort(order[:count]), fold.test))
                where.append((draw, step))
    found = np.array(where, dtype=np.intp)
    return GrowingSplits(splits, found[:, 0], found[:, 1], len(shares))


def shares_for(
    y: NDArray[Any], groups: NDArray[Any] | None, target: type[Target], n_sizes: int
) -> FloatArray:
    """Shares of the training samples, in equal ratios up to 1; an error where the samples are too few for a curve."""
    strata = target.strata_of(y)
    if strata is None:
        count, needed = (len(y) if groups is None else len(np.unique(groups.astype(str)))), FEWEST_SAMPLES
    else:
        units = strata if groups is None else _strata_of_groups(strata, group_codes(groups))
        count, needed = int(np.unique(units, return_counts=True)[1].min()), FEWEST_UNITS
    # About four fifths of the samples are in the training set of a fold.
    start = max(SMALLEST_SHARE, needed / (0.8 * count))
    if start > LARGEST_START:
        kind = "sample groups" if groups is not None else "samples"
        of_class = "the smallest class has" if strata is not None else "there are"
        fewest = int(np.ceil(needed / (0.8 * LARGEST_START)))
        raise ValueError(
            f"There are too few samples for a learning curve: {of_class} {count} {kind}, and {fewest} are needed, so "
            "that training sets of several sizes can be compared. Leave the learning curve out, or leave out classes "
            "with fewer samples."
        )
    return np.geomspace(start, 1.0, n_sizes)


def nested_order(
    rows: IntArray,
    y: NDArray[Any],
    groups: NDArray[Any] | None,
    target: type[Target],
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """The rows in an order whose beginnings have the same mix of classes, and the lengths that divide no group."""
    codes = np.arange(len(rows)) if groups is None else group_codes(groups[rows])
    members = members_of(codes)
    strata = target.strata_of(y[rows])
    labels = np.zeros(len(members)) if strata is None else _strata_of_groups(strata, codes)
    position = np.empty(len(members))
    for label in np.unique(labels):
        inside = rng.permutation(np.flatnonzero(labels == label))
        position[inside] = (np.arange(len(inside)) + rng.random()) / len(inside)
    ordered = [members[unit] for unit in np.argsort(position, kind="stable")]
    return rows[np.concatenate(ordered)], np.cumsum([len(unit) for unit in ordered])


def _strata_of_groups(strata: NDArray[Any], codes: IntArray) -> IntArray:
    """The most frequent stratum of each group."""
    labels = np.unique(strata, return_inverse=True)[1]
    counts = np.zeros((codes.max() + 1, labels.max() + 1), dtype=np.intp)
    np.add.at(counts, (codes, labels), 1)
    return np.asarray(counts.argmax(axis=1), dtype=np.intp)
