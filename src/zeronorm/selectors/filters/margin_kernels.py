"""Compiled margins of nearest neighbours under flips of single features."""

# mypy: allow-untyped-defs

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel

LINEAR, SIGMOID, ZERO_ONE = 0, 1, 2


@kernel
def flip_features(columns, member, bounds, distance_sq, utility, slope, tolerance, value, after, change):
    """Visit features in turn; flip each whose flip raises the total utility of the margins.

    Samples are sorted by class: class c owns ``bounds[c]:bounds[c + 1]``. ``value`` holds the total at the
    current subset, ``after`` receives the total with the feature flipped. Returns the number of flips.
    """
    flips = 0
    for f in range(columns.shape[0]):
        sign = -1.0 if member[f] else 1.0
        after[f] = total_utility(columns[f], sign, bounds, distance_sq, utility, slope)
        if change and after[f] > value[0] + tolerance * max(1.0, abs(value[0])):
            add_column(columns[f], sign, distance_sq)
            member[f] = not member[f]
            value[0] = after[f]
            flips += 1
    return flips


@kernel
def add_column(x, sign, distance_sq):
    """Add or subtract one column to the squared distances of all samples."""
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            distance_sq[i, j] += sign * (x[i] - x[j]) ** 2


@kernel
def total_utility(x, sign, bounds, distance_sq, utility, slope):
    """Sum over samples of the utility of (distance to the nearest miss - to the nearest hit) / 2.

    Distances include or exclude the column x, by ``sign``. Samples alone in their class do not count.
    """
    n, total = x.shape[0], 0.0
    for c in range(bounds.shape[0] - 1):
        first, last = bounds[c], bounds[c + 1]
        if last - first < 2:
            continue
        for i in range(first, last):
            row = distance_sq[i]
            miss = min(_nearest(x, i, sign, row, 0, first), _nearest(x, i, sign, row, last, n))
            hit = min(_nearest(x, i, sign, row, first, i), _nearest(x, i, sign, row, i + 1, last))
            margin = 0.5 * (np.sqrt(max(miss, 0.0)) - np.sqrt(max(hit, 0.0)))
            if utility == LINEAR:
                total += margin
            elif utility == SIGMOID:
                total += 1.0 / (1.0 + np.exp(-slope * margin))
            elif margin > 0.0:
                total += 1.0
    return total


@kernel
def _nearest(x, i, sign, row, first, last):
    nearest = np.inf
    for j in range(first, last):
        distance_sq = row[j] + sign * (x[i] - x[j]) ** 2
        if distance_sq < nearest:
            nearest = distance_sq
    return nearest
