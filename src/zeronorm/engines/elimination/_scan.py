"""Exact one-at-a-time elimination inside a block of candidate features.

The features with the smallest weights at a reference dual solution are loaded as a block. While the models change
little, a feature outside the block provably cannot be the next to be removed:

    | |w_j(v)| - s |w_j(v_ref)| |  <=  ||x_j|| * ||v - s v_ref||     for every s >= 0.

So the loop trains, scans a prefix of the block, removes the smallest, and leaves the block only when that
bound no longer rules out the other features. Every step is exact; nothing is approximated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from zeronorm._jit import kernel, reduction, shared
from zeronorm._types import BoolArray, FloatArray, Int64Array
from zeronorm.engines.elimination._loop import DOWNDATED_ENERGY
from zeronorm.solvers.svm._smo import UNBOUNDED, smo
from zeronorm.solvers.svm._tracked_set import TrackedSets, follow, forget_column, start_tracking

RERANK_AFTER = 6  # passes over the rest of the block that take about as long as a new order
RANKED_SHARE = 12  # one in this many of the columns is sorted; the others are rarely needed
FEWEST_RANKED = 256


@kernel
def combine_duals(alpha: FloatArray, sample: Int64Array, sign: FloatArray, v: FloatArray) -> None:
    """v = sum of sign * alpha over the variables of each sample."""
    v[:] = 0.0
    for i in range(alpha.shape[0]):
        v[sample[i]] += sign[i] * alpha[i]


@shared
@kernel
def train_models(
    K: FloatArray,
    ridge: FloatArray,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    v: FloatArray,
    sets: TrackedSets,
    tol: float,
    max_iter: int,
) -> tuple[int, int]:
    """Train every model from its last solution; returns the worst status and the iterations."""
    worst, n_iter = 0, 0
    for c in range(alpha.shape[0]):
        reached = False
        y, costs, most, a, g = sign[c], linear[c], upper[c], alpha[c], f[c]
        if sets.size[c] > 0:
            reached, steps = follow(sets, c, K, ridge, sample, y, costs, most, a, g, tol)
            n_iter += steps
        if not reached:
            steps, _, status = smo(K, ridge, sample, y, costs, most, a, g, tol, max_iter)
            worst = max(worst, status)
            n_iter += steps
            if sets.order.shape[1] > 0 and sets.size[c] == 0:
                start_tracking(sets, c, K, ridge, sample, most, a)
        combine_duals(a, sample, y, v[c])
    return worst, n_iter


@kernel
def remove_column(K: FloatArray, f: FloatArray, v: FloatArray, x: FloatArray) -> None:
    """Subtract the column x from the Gram matrix and from f = K v of every model."""
    n = x.shape[0]
    for i in range(n):
        xi = x[i]
        for j in range(n):
            K[i, j] -= xi * x[j]
    for c in range(f.shape[0]):
        inner = 0.0
        for i in range(n):
            inner += x[i] * v[c, i]
        for i in range(n):
            f[c, i] -= inner * x[i]


@reduction
def squared_weight(x: FloatArray, v: FloatArray) -> float:
    """Sum over models of (x'v)²."""
    total = 0.0
    for c in range(v.shape[0]):
        inner = 0.0
        for i in range(x.shape[0]):
            inner += x[i] * v[c, i]
        total += inner * inner
    return total


class Order(NamedTuple):
    """The columns with the smallest weights at the coefficients ``v``, in ascending order.

    Holds positions, weights and copies of the columns, and a lower bound on the weights of all others.
    """

    ranked: Int64Array
    key: FloatArray
    front: FloatArray
    beyond: float
    v: FloatArray


@kernel
def nth_smallest(values: FloatArray, size: int, n: int) -> float:
    """The value at position ``n`` of the first ``size`` in ascending order (Hoare 1961); changes their order.

    ``np.partition`` returns the same, but takes numba nine seconds to compile.
    """
    low, high = 0, size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i, j = i + 1, j - 1
        if n <= j:
            high = j
        elif n >= i:
            low = i
        else:
            break
    return float(values[n])


@kernel
def ascending_order(values: FloatArray, n: int) -> Int64Array:
    """The positions of the first ``n`` values from the smallest to the largest, by merging sorted runs.

    ``np.argsort`` returns the same, but takes numba two seconds to compile.
    """
    width = 16
    order, merged = np.empty(n, np.int64), np.empty(n, np.int64)
    for start in range(0, n, width):
        for i in range(start, min(start + width, n)):
            k = i
            while k > start and values[order[k - 1]] > values[i]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = i
    while width < n:
        for start in range(0, n, 2 * width):
            i, j = start, min(start + width, n)
            boundary, stop = j, min(j + width, n)
            for k in range(start, stop):
                if i < boundary and (j >= stop or values[order[i]] <= values[order[j]]):
                    merged[k] = order[i]
                    i += 1
                else:
                    merged[k] = order[j]
                    j += 1
        order, merged = merged, order
        width *= 2
    return order


@kernel
def rank_block(columns: FloatArray, active: BoolArray, v: FloatArray, n_ranked: int) -> Order:
    """The order of the ``n_ranked`` remaining columns with the smallest weights.

    Sorting all of them would take longer than computing the weights; columns copied in the order of access are read
    several times faster. Written as loops, because assignments and choices of rows take numba seconds to compile.
    """
    n = columns.shape[0]
    left, weight, spare, m = np.empty(n, np.int64), np.empty(n), np.empty(n), 0
    for b in range(n):
        if active[b]:
            left[m] = b
            weight[m] = spare[m] = math.sqrt(squared_weight(columns[b], v))
            m += 1
    beyond = math.inf
    if n_ranked < m:
        beyond = nth_smallest(spare, m, n_ranked)
        m, n_left = 0, m
        for b in range(n_left):
            if weight[b] < beyond:
                left[m], weight[m] = left[b], weight[b]
                m += 1
    ascending = ascending_order(weight, m)
    ranked, key, front = np.empty(m, np.int64), np.empty(m), np.empty((m, columns.shape[1]))
    for r in range(m):
        ranked[r], key[r] = left[ascending[r]], weight[ascending[r]]
        for i in range(columns.shape[1]):
            front[r, i] = columns[ranked[r], i]
    return Order(ranked, key, front, beyond, v.copy())


@reduction
def drift(v: FloatArray, reference: FloatArray) -> tuple[float, float]:
    """Return the factor s for which s times the reference is nearest to v, and the Frobenius distance to it.

    As features are removed, the margin shrinks and the dual variables mostly grow together: a bound around the multiple
    is much tighter than one around the reference.
    """
    inner, square, whole = 0.0, 0.0, 0.0
    for c in range(v.shape[0]):
        for i in range(v.shape[1]):
            inner += v[c, i] * reference[c, i]
            square += reference[c, i] * reference[c, i]
    scale = max(inner / square, 0.0) if square > 0.0 else 0.0
    for c in range(v.shape[0]):
        for i in range(v.shape[1]):
            whole += (v[c, i] - scale * reference[c, i]) ** 2
    return scale, math.sqrt(whole)


@kernel
def smallest_in_block(
    order: Order,
    active: BoolArray,
    feature: Int64Array,
    scale: float,
    reach: float,
    v: FloatArray,
    tie: float,
) -> tuple[int, float, int, bool]:
    """Position and value of the smallest squared weight in the block, and how many columns were read.

    No weight is further than ``reach`` from ``scale`` times its weight in the order: the scan ends where even the lower
    bound exceeds the best value found. The last value returned states whether it ended so, that is, nothing was missed.
    On ties the higher feature index is taken.
    """
    best, best_value, scanned = -1, math.inf, 0
    for r in range(order.ranked.shape[0]):
        b = order.ranked[r]
        if not active[b]:
            continue
        lower = scale * order.key[r] - reach
        if lower > 0.0 and lower * lower > best_value + tie:
            return best, best_value, scanned, True
        value = squared_weight(order.front[r], v)
        scanned += 1
        tied = abs(value - best_value) <= tie and feature[b] > feature[best]
        if value < best_value - tie or tied:
            best, best_value = b, value
    lower = scale * order.beyond - reach if order.beyond < math.inf else math.inf
    return best, best_value, scanned, lower > 0.0 and lower * lower > best_value + tie


@kernel
def find_smallest(
    columns: FloatArray,
    active: BoolArray,
    feature: Int64Array,
    n_left: int,
    order: Order,
    scanned: int,
    max_norm: float,
    v: FloatArray,
    tie: float,
) -> tuple[int, float, int, Order]:
    """Position and squared weight of the column to remove, columns scanned since the order was made, the order.

    The order is made anew when scanning has taken as long as that.
    """
    scale, far = drift(v, order.v)
    best, best_value, read, decided = smallest_in_block(order, active, feature, scale, max_norm * far, v, tie)
    scanned += read
    n_ranked = max(FEWEST_RANKED, n_left // RANKED_SHARE)
    while not decided or scanned > RERANK_AFTER * n_left:
        order = rank_block(columns, active, v, n_ranked)
        best, best_value, scanned, decided = smallest_in_block(order, active, feature, 1.0, 0.0, v, tie)
        if n_ranked >= n_left:
            break
        # Columns tied with the boundary can be ordered only when all columns are sorted.
        n_ranked = n_left
    return best, best_value, scanned, order


@kernel
def eliminate_in_block(
    K: FloatArray,
    ridge: FloatArray,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    v: FloatArray,
    sets: TrackedSets,
    tol: float,
    max_iter: int,
    columns: FloatArray,
    feature: Int64Array,
    outside_key: float,
    max_norm: float,
    norm_sq: FloatArray,
    energy_gone: float,
    energy_left: float,
    tie: float,
    removed: Int64Array,
    values: FloatArray,
) -> tuple[int, int, int]:
    """Train and remove until the bound on the features outside the block fails or ``removed`` is full.

    It also ends when the squared norms of the removed columns are so large that rounding errors in K matter.
    Returns how many were removed (listed in ``removed`` by position in the block, with their squared weights in
    ``values``), the worst solver status and the number of solver iterations.
    """
    active = np.ones(columns.shape[0], np.bool_)
    v_outside = v.copy()
    n_left = columns.shape[0]
    order = rank_block(columns, active, v, max(FEWEST_RANKED, n_left // RANKED_SHARE))
    n_removed, scanned, worst, n_iter = 0, 0, 0, 0
    while n_removed < removed.shape[0]:
        status, steps = train_models(K, ridge, sample, sign, linear, upper, alpha, f, v, sets, tol, max_iter)
        worst = max(worst, status)
        n_iter += steps
        if status == UNBOUNDED:
            break
        best, best_value, scanned, order = find_smallest(
            columns, active, feature, n_left, order, scanned, max_norm, v, tie
        )
        scale, far = drift(v, v_outside)
        outside = scale * outside_key - max_norm * far if outside_key < math.inf else math.inf
        if best < 0 or outside <= 0.0 or best_value + tie >= outside * outside:
            break
        active[best] = False
        removed[n_removed] = best
        values[n_removed] = best_value
        n_removed += 1
        n_left -= 1
        remove_column(K, f, v, columns[best])
        forget_column(sets, sample, columns[best])
        energy_gone += norm_sq[best]
        energy_left -= norm_sq[best]
        if energy_gone > DOWNDATED_ENERGY * energy_left:
            break
    return n_removed, worst, n_iter
