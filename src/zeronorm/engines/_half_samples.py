"""Random halves of the samples in complementary pairs, of whole sample groups where there are any.

Used by StabilitySelection and Consensus. The bounds of Meinshausen & Bühlmann (2010) and Shah & Samworth (2013) need
two halves that are independent, which holds for samples of different patients and not for those of one patient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._error_control import draw_halves
from zeronorm.selection._sample_groups import group_codes
from zeronorm.selection.target import Target

MOST_DRAWS = 100  # of one pair, until both halves hold every class that is in two groups or more


def half_samples(
    target: Target,
    groups: NDArray[Any] | None,
    rng: np.random.Generator,
    *,
    count: int,
    in_pairs: bool = True,
) -> list[IntArray]:
    """``count`` random halves of the rows, ascending, balanced over the classes.

    With ``in_pairs`` the halves 0 and 1, 2 and 3, … are disjoint; otherwise every half is drawn anew. With ``groups``
    no group is divided: groups with the same majority of labels and of about the same size are paired, and each half
    takes one group of each pair. With an odd number of groups a random one is left out.
    """
    if groups is None:
        return draw_halves(target.n_samples, target.strata(), count, in_pairs, rng)
    codes = group_codes(groups)
    strata = target.strata()
    labels = (
        np.zeros(len(codes), dtype=np.intp) if strata is None else np.unique(strata, return_inverse=True)[1]
    )
    table = np.zeros((codes.max() + 1, labels.max() + 1))
    np.add.at(table, (codes, labels), 1.0)
    _require_two_groups(table)
    halves: list[IntArray] = []
    while len(halves) < count:
        sides = _two_sides(table, rng)
        pair = [np.flatnonzero(sides[codes] == side) for side in (1, -1)]
        halves += pair if in_pairs else pair[:1]
    return halves[:count]


def _require_two_groups(table: FloatArray) -> None:
    n_groups = np.count_nonzero(table, axis=0)
    if n_groups.min() < 2:
        what = "a class" if table.shape[1] > 1 else "the samples"
        raise ValueError(
            f"Random halves of whole sample groups need at least two groups of each class. Got {what} in one group "
            "only. Leave that class out, or use a method without halves."
        )


def _two_sides(table: FloatArray, rng: np.random.Generator) -> IntArray:
    """A side +1 or -1 for each group, 0 if it is left out; ``table`` holds the number of samples by group and class."""
    for _ in range(MOST_DRAWS):
        sides = _balanced_sides(table, rng)
        if all(np.all(table[sides == side].sum(axis=0) > 0) for side in (1, -1)):
            return sides
    raise ValueError(
        f"In {MOST_DRAWS} draws no two halves of whole sample groups both held every class: a class is in too few "
        "groups. Leave that class out, or use a method without halves."
    )


def _balanced_sides(table: FloatArray, rng: np.random.Generator) -> IntArray:
    """Sides of pairs of similar groups; each pair is placed to reduce the difference of the halves, or at random."""
    n_groups = len(table)
    order = rng.permutation(n_groups)[: n_groups // 2 * 2]
    order = order[np.lexsort((table[order].sum(axis=1), table[order].argmax(axis=1)))]
    pairs = rng.permutation(order.reshape(-1, 2), axis=0)
    sides, imbalance = np.zeros(n_groups, dtype=np.intp), np.zeros(table.shape[1])
    coins = rng.choice((-1, 1), len(pairs))
    for (a, b), coin in zip(pairs, coins, strict=True):
        difference = table[a] - table[b]
        side = int(-np.sign(imbalance @ difference)) or coin
        sides[a], sides[b] = side, -side
        imbalance += side * difference
    return sides
