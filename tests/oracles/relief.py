"""Relief by plain loops, straight from the definition."""

from __future__ import annotations

import math

import numpy as np


def column_difference(a, b, discrete):
    if math.isnan(a) or math.isnan(b):
        return None
    if discrete:
        return float(a != b)
    return abs(a - b)


def scaled(X, discrete, column_scaling):
    """Continuous columns divided by their range (or not); constant ones become zero."""
    X = np.array(X, dtype=float)
    for f in range(X.shape[1]):
        present = X[~np.isnan(X[:, f]), f]
        scale = present.max() - present.min() if present.size else 0.0
        if scale == 0.0:
            X[~np.isnan(X[:, f]), f] = 0.0
        elif column_scaling == "range" and not discrete[f]:
            X[:, f] = (X[:, f] - present.min()) / scale
    return X


def distance(x, z, discrete, metric):
    """Mean over the columns in which both samples have a value; None if there are none."""
    terms = [column_difference(a, b, d) for a, b, d in zip(x, z, discrete, strict=True)]
    terms = [t if metric == "manhattan" else t * t for t in terms if t is not None]
    return sum(terms) / len(terms) if terms else None


def nearest(X, i, candidates, k, discrete, metric):
    distances = [(distance(X[i], X[j], discrete, metric), j) for j in candidates if j != i]
    return [j for _, j in sorted((d, j) for d, j in distances if d is not None)[:k]]


def weighted_mean(X, f, pairs, discrete):
    total = weight = 0.0
    for i, j, w in pairs:
        difference = column_difference(X[i, f], X[j, f], discrete[f])
        if difference is not None:
            total, weight = total + w * difference, weight + w
    return total / weight if weight else 0.0


def class_pairs(X, y, k, discrete, metric):
    hits, misses = [], []
    n, labels = len(y), sorted(set(y))
    members = {c: [j for j in range(n) if y[j] == c] for c in labels}
    prior = {c: len(members[c]) / n for c in labels}
    for i in range(n):
        own = nearest(X, i, members[y[i]], k, discrete, metric)
        if not own:
            continue
        hits += [(i, j, 1.0 / len(own)) for j in own]
        for c in labels:
            if c != y[i]:
                other = nearest(X, i, members[c], k, discrete, metric)
                misses += [(i, j, prior[c] / (1.0 - prior[y[i]]) / len(other)) for j in other]
    return hits, misses


def regression_pairs(X, y, k, discrete, metric):
    similar, different = [], []
    scale = max(y) - min(y)
    for i in range(len(y)):
        for j in nearest(X, i, range(len(y)), k, discrete, metric):
            gap = abs(y[i] - y[j]) / scale
            similar.append((i, j, 1.0 - gap))
            different.append((i, j, gap))
    return similar, different


def mean_hit_and_miss(
    X, y, k, *, discrete=None, metric="manhattan", column_scaling="range", task="classification"
):
    discrete = np.zeros(X.shape[1], dtype=bool) if discrete is None else discrete
    X = scaled(X, discrete, column_scaling)
    pairs = (regression_pairs if task == "regression" else class_pairs)(X, y, k, discrete, metric)
    return [np.array([weighted_mean(X, f, p, discrete) for f in range(X.shape[1])]) for p in pairs]
