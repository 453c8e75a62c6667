"""Mutual information between columns and classes: Ross's estimate for values, counts for categories."""

# mypy: allow-untyped-defs

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel
from zeronorm.engines._column_information import sorted_entries, total_bits
from zeronorm.engines.information._sorted_columns import NOISE, column_size, mean_on_edge, reach, sums_before


@kernel
def neighbour_information(data, rows, starts, elsewhere, codes, chosen, k, digamma, result, first, last):
    """Ross's estimate for the ``chosen`` columns among ``first`` to ``last``, which hold continuous features.

    ``codes`` are those of classes with two samples or more; samples with negative codes are ignored. ``digamma[m]`` is
    ψ(m).
    """
    counts = np.bincount(codes[codes >= 0])
    n = counts.sum()
    for f in range(first, last):
        if not chosen[f]:
            continue
        x, classes, numbers = sorted_entries(data, rows, starts, elsewhere, f, codes, counts)
        near = NOISE * column_size(x, numbers)
        below = sums_before(numbers)
        total = 0.0
        for c in range(counts.shape[0]):
            own = np.flatnonzero(classes == c)
            own_x, own_below = x[own], sums_before(numbers[own])
            wanted = min(k, counts[c] - 1)
            for position in range(own.shape[0]):
                expected = _expected_digamma(x, below, own, own_x, own_below, position, wanted, near, digamma)
                total += numbers[own[position]] * (digamma[wanted] - digamma[counts[c]] - expected)
        result[f] = max(0.0, digamma[n] + total / n)


@kernel
def _expected_digamma(x, below, own, own_x, own_below, position, k, near, digamma):
    """Expected ψ of the number of samples up to the k-th nearest of the class, the sample itself included.

    Distances that differ by less than ``near`` are tied; the result is the mean over all orders of the ties. ``own``
    holds the entries of the class, and ``position`` that of the sample among them.
    """
    i, value = own[position], own_x[position]
    low, high = reach(own_x, position, position, value, near, True)
    own_equal = own_below[high + 1] - own_below[low] - 1
    if own_equal >= k:
        # The k-th of them has the position J, and the mean of ψ(J) is ψ(all) + ψ(k) - ψ(own).
        low, high = reach(x, i, i, value, near, True)
        return digamma[below[high + 1] - below[low]] + digamma[k] - digamma[own_equal + 1]
    radius = _distance_to_neighbour(own_x, own_below, position, k)
    low, high = reach(x, i, i, value, radius - near, False)
    inside = below[high + 1] - below[low]
    low, high = reach(x, low, high, value, radius + near, True)
    on_edge = below[high + 1] - below[low] - inside
    if on_edge == 1:  # no ties
        return digamma[inside]
    low, high = reach(own_x, position, position, value, radius - near, False)
    own_inside = own_below[high + 1] - own_below[low]
    low, high = reach(own_x, low, high, value, radius + near, True)
    own_on_edge = own_below[high + 1] - own_below[low] - own_inside
    return mean_on_edge(inside, on_edge, own_on_edge, k - own_inside + 1, digamma)


@kernel
def _distance_to_neighbour(own_x, own_below, position, k):
    """Distance of a sample to the k-th nearest of its class."""
    low, high = position - 1, position + 1
    found, distance = own_below[position + 1] - own_below[position] - 1, 0.0
    while found < k:
        left = own_x[position] - own_x[low] if low >= 0 else np.inf
        right = own_x[high] - own_x[position] if high < own_x.shape[0] else np.inf
        if left <= right:
            found += own_below[low + 1] - own_below[low]
            distance = left
            low -= 1
        else:
            found += own_below[high + 1] - own_below[high]
            distance = right
            high += 1
    return distance


@kernel
def table_information(data, rows, starts, elsewhere, codes, chosen, result, first, last):
    """Mutual information, in nats, of the ``chosen`` discrete columns with the classes."""
    counts = np.bincount(codes)
    class_bits = total_bits(counts.astype(np.float64))
    for f in range(first, last):
        if not chosen[f]:
            continue
        x, _, numbers = sorted_entries(data, rows, starts, elsewhere, f, codes, counts)
        margin = np.zeros(x.shape[0])
        value = 0
        for i in range(x.shape[0]):
            value += i > 0 and x[i] != x[i - 1]
            margin[value] += numbers[i]
        shared = class_bits + total_bits(margin) - total_bits(numbers.astype(np.float64))
        result[f] = max(0.0, shared * np.log(2.0) / codes.shape[0])
