"""Exact one-at-a-time elimination inside a block of candidate features.

The features with the smallest weights at a reference dual are loaded as a block. While the machines change
little, a feature outside the block provably cannot be the next to leave:

    | |w_j(v)| - |w_j(v_ref)| |  <=  ||x_j|| * ||v - v_ref||.

So the loop trains, scans a prefix of the block, removes the smallest, and leaves the block only when that
bound no longer decides. Every step is exact; nothing is approximated.
"""

from __future__ import annotations

import math

import numpy as np

from zeronorm._jit import kernel
from zeronorm.solvers.arrays import BoolArray, FloatArray, IntArray
from zeronorm.solvers.smo import UNBOUNDED, smo

RERANK_AFTER = 2  # sweeps over what is left of the block: about the cost of new keys


@kernel
def combine_duals(alpha: FloatArray, sample: IntArray, sign: FloatArray, v: FloatArray) -> None:
    """v = sum of sign * alpha over the variables of each sample."""
    v[:] = 0.0
    for i in range(alpha.shape[0]):
        v[sample[i]] += sign[i] * alpha[i]


@kernel
def train_machines(
    K: FloatArray,
    ridge: FloatArray,
    sample: IntArray,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    v: FloatArray,
    tol: float,
    max_iter: int,
) -> tuple[int, int]:
    """Train every machine from its last solution; returns the worst status and the iterations."""
    worst, n_iter = 0, 0
    for c in range(alpha.shape[0]):
        steps, _, status = smo(K, ridge, sample, sign[c], linear[c], upper[c], alpha[c], f[c], tol, max_iter)
        worst = max(worst, status)
        n_iter += steps
        combine_duals(alpha[c], sample, sign[c], v[c])
    return worst, n_iter


@kernel
def remove_column(K: FloatArray, f: FloatArray, v: FloatArray, x: FloatArray) -> None:
    """Take the column x out of the Gram matrix and out of f = K v of every machine."""
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


@kernel
def squared_weight(x: FloatArray, v: FloatArray) -> float:
    """Sum over machines of (x'v)²."""
    total = 0.0
    for c in range(v.shape[0]):
        inner = 0.0
        for i in range(x.shape[0]):
            inner += x[i] * v[c, i]
        total += inner * inner
    return total


@kernel
def rank_block(columns: FloatArray, alive: BoolArray, v: FloatArray) -> tuple[IntArray, FloatArray]:
    """Positions of the columns that are left by ascending weight, and these weights."""
    left = np.flatnonzero(alive)
    weight = np.empty(left.shape[0])
    for b in range(left.shape[0]):
        weight[b] = math.sqrt(squared_weight(columns[left[b]], v))
    ascending = np.argsort(weight)
    return left[ascending], weight[ascending]


@kernel
def distance(v: FloatArray, reference: FloatArray) -> float:
    """Frobenius distance of two sets of duals."""
    total = 0.0
    for c in range(v.shape[0]):
        for i in range(v.shape[1]):
            total += (v[c, i] - reference[c, i]) ** 2
    return math.sqrt(total)


@kernel
def smallest_in_block(
    columns: FloatArray,
    alive: BoolArray,
    feature: IntArray,
    ranked: IntArray,
    key: FloatArray,
    reach: float,
    v: FloatArray,
    tie: float,
) -> tuple[int, float, int]:
    """Position and value of the smallest squared weight in the block, and how many columns were read.

    ``key`` ascends along ``ranked`` and no weight is further than ``reach`` from its key, so the scan ends
    where even the bound exceeds the best value found. On ties the higher feature index is taken: the lower
    one stays.
    """
    best, best_value, scanned = -1, math.inf, 0
    for r in range(ranked.shape[0]):
        b = ranked[r]
        if not alive[b]:
            continue
        lower = key[r] - reach
        if lower > 0.0 and lower * lower > best_value + tie:
            break
        value = squared_weight(columns[b], v)
        scanned += 1
        tied = abs(value - best_value) <= tie and feature[b] > feature[best]
        if value < best_value - tie or tied:
            best, best_value = b, value
    return best, best_value, scanned


@kernel
def eliminate_in_block(
    K: FloatArray,
    ridge: FloatArray,
    sample: IntArray,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    v: FloatArray,
    tol: float,
    max_iter: int,
    columns: FloatArray,
    feature: IntArray,
    outside_key: float,
    max_norm: float,
    tie: float,
    removed: IntArray,
    values: FloatArray,
) -> tuple[int, int, int]:
    """Train and remove until the bound on the features outside fails or ``removed`` is full.

    The keys inside the block are taken anew whenever scanning has cost as much as that. Returns how many
    left (listed in ``removed`` by position in the block, with their squared weights in ``values``), the worst
    solver status and the number of solver iterations.
    """
    alive = np.ones(columns.shape[0], np.bool_)
    v_outside, v_inside = v.copy(), v.copy()
    ranked, key = rank_block(columns, alive, v)
    n_removed, scanned, worst, n_iter = 0, 0, 0, 0
    while n_removed < removed.shape[0]:
        status, steps = train_machines(K, ridge, sample, sign, linear, upper, alpha, f, v, tol, max_iter)
        worst = max(worst, status)
        n_iter += steps
        if status == UNBOUNDED:
            break
        if scanned > RERANK_AFTER * (columns.shape[0] - n_removed):
            ranked, key = rank_block(columns, alive, v)
            v_inside[:] = v
            scanned = 0
        reach = max_norm * distance(v, v_inside)
        best, best_value, read = smallest_in_block(columns, alive, feature, ranked, key, reach, v, tie)
        scanned += read
        outside = outside_key - max_norm * distance(v, v_outside)
        if best < 0 or outside <= 0.0 or best_value + tie >= outside * outside:
            break
        alive[best] = False
        removed[n_removed] = best
        values[n_removed] = best_value
        n_removed += 1
        remove_column(K, f, v, columns[best])
    return n_removed, worst, n_iter
