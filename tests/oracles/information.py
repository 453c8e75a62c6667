"""Entropies, symmetrical uncertainty, supervised cuts and FCBF by plain loops."""

from __future__ import annotations

import math
from collections import Counter


def entropy(values):
    values = list(values)
    return -sum(c / len(values) * math.log2(c / len(values)) for c in Counter(values).values())


def symmetrical_uncertainty(u, v):
    total = entropy(u) + entropy(v)
    if total == 0:
        return 0.0
    return 2.0 * (total - entropy(zip(u, v, strict=True))) / total


def supervised_cuts(pairs):
    """Thresholds for a list of (value, label), by recursion (Fayyad & Irani 1993)."""
    pairs = sorted(pairs)
    n, labels = len(pairs), [label for _, label in pairs]
    best = None
    for i in range(1, n):
        if pairs[i][0] != pairs[i - 1][0]:
            left, right = labels[:i], labels[i:]
            bits = (i * entropy(left) + (n - i) * entropy(right)) / n
            if best is None or bits < best[0] - 1e-12:
                best = (bits, i)
    if best is None:
        return []
    bits, i = best
    left, right = labels[:i], labels[i:]
    k, k1, k2 = len(set(labels)), len(set(left)), len(set(right))
    delta = math.log2(3**k - 2) - (k * entropy(labels) - k1 * entropy(left) - k2 * entropy(right))
    if entropy(labels) - bits <= (math.log2(n - 1) + delta) / n:
        return []
    return [*supervised_cuts(pairs[:i]), (pairs[i - 1][0] + pairs[i][0]) / 2, *supervised_cuts(pairs[i:])]


def cut(values, thresholds):
    return [sum(v > t for t in thresholds) for v in values]


def fcbf(columns, y, threshold=0.0):
    """Relevance of discrete columns and the ones that are kept, best first; ties by index."""
    relevance = [symmetrical_uncertainty(column, y) for column in columns]
    ranked = sorted((f for f in range(len(columns)) if relevance[f] > threshold), key=lambda f: -relevance[f])
    kept = []
    while ranked:
        first = ranked.pop(0)
        kept.append(first)
        ranked = [
            f for f in ranked if symmetrical_uncertainty(columns[first], columns[f]) < relevance[f] - 1e-12
        ]
    return relevance, kept
