"""Compiled estimates of the mutual information between columns and classes."""

# mypy: allow-untyped-defs

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel
from zeronorm.selectors.filters.discretize_kernels import total_bits


@kernel
def neighbour_information(columns, codes, counts, k, digamma, result, first, last):
    """Ross's estimate for rows ``first`` to ``last`` of ``columns``, each a continuous feature.

    Every class has two samples or more; ``counts`` are their sizes and ``digamma[m]`` is ψ(m).
    """
    n = codes.shape[0]
    members = np.empty((counts.shape[0], counts.max()), dtype=np.intp)
    found = np.empty(counts.shape[0], dtype=np.intp)
    for f in range(first, last):
        order = np.argsort(columns[f])
        x, labels = columns[f][order], codes[order]
        found[:] = 0
        for i in range(n):
            members[labels[i], found[labels[i]]] = i
            found[labels[i]] += 1
        total = 0.0
        for c in range(counts.shape[0]):
            near = min(k, counts[c] - 1)
            own = members[c, : counts[c]]
            for place in range(counts[c]):
                radius = _distance_to_neighbour(x, own, place, near)
                total += digamma[near] - digamma[counts[c]] - digamma[_count_within(x, own[place], radius)]
        result[f] = max(0.0, digamma[n] + total / n)


@kernel
def _distance_to_neighbour(x, own, place, k):
    """Distance of a sample to the k-th nearest of its class, whose members ``own`` are in ascending order."""
    nearest = np.inf
    for start in range(max(0, place - k), min(place, own.shape[0] - 1 - k) + 1):
        below, above = x[own[place]] - x[own[start]], x[own[start + k]] - x[own[place]]
        nearest = min(nearest, max(below, above))
    return nearest


@kernel
def _count_within(x, i, radius):
    """Number of samples nearer than ``radius`` to sample i of the sorted x, itself included."""
    low, high = 0, i  # the first that is near enough lies in between
    while low < high:
        middle = (low + high) // 2
        if x[i] - x[middle] < radius:
            high = middle
        else:
            low = middle + 1
    first, low, high = low, i, x.shape[0] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if x[middle] - x[i] < radius:
            low = middle
        else:
            high = middle - 1
    return low - first + 1


@kernel
def table_information(columns, n_values, codes, n_classes, result, first, last):
    """Mutual information in nats of discrete columns, given as codes, with the classes."""
    n = codes.shape[0]
    class_bits = total_bits(np.bincount(codes, minlength=n_classes).astype(np.float64))
    for f in range(first, last):
        table = np.zeros(n_values[f] * n_classes)
        margin = np.zeros(n_values[f])
        for i in range(n):
            table[columns[f, i] * n_classes + codes[i]] += 1.0
            margin[columns[f, i]] += 1.0
        shared = class_bits + total_bits(margin) - total_bits(table)
        result[f] = max(0.0, shared * np.log(2.0) / n)
