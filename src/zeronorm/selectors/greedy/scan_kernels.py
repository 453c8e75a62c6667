"""Exact one-at-a-time elimination inside a block of candidate features.

The features with the smallest weights at a reference dual are loaded as a block. While the machines change
little, a feature outside the block provably cannot be the next to leave:

    | |w_j(v)| - |w_j(v_ref)| |  <=  ||x_j|| * ||v - v_ref||.

So the loop trains, scans a prefix of the block, removes the smallest, and leaves the block only when that
bound no longer decides. Every step is exact; nothing is approximated.
"""

from __future__ import annotations

import math

from zeronorm._jit import kernel
from zeronorm.solvers.smo import smo

BLOCK_EXHAUSTED, SCANNED_ENOUGH = 0, 1


@kernel
def combine_duals(alpha, sample, sign, v):  # type: ignore[no-untyped-def]
    """v = sum of sign * alpha over the variables of each sample."""
    v[:] = 0.0
    for i in range(alpha.shape[0]):
        v[sample[i]] += sign[i] * alpha[i]


@kernel
def remove_column(K, f, v, x):  # type: ignore[no-untyped-def]
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
def squared_weight(x, v):  # type: ignore[no-untyped-def]
    """Sum over machines of (x'v)²."""
    total = 0.0
    for c in range(v.shape[0]):
        inner = 0.0
        for i in range(x.shape[0]):
            inner += x[i] * v[c, i]
        total += inner * inner
    return total


@kernel
def smallest_in_block(columns, alive, feature, key, max_norm, drift, v, tie):  # type: ignore[no-untyped-def]
    """Position and value of the smallest squared weight in the block, and how many columns were read.

    ``key`` ascends, so the scan ends where even the bound exceeds the best value found.
    """
    best, best_value, scanned = -1, math.inf, 0
    for b in range(columns.shape[0]):
        if not alive[b]:
            continue
        lower = key[b] - max_norm * drift
        if lower > 0.0 and lower * lower > best_value + tie:
            break
        value = squared_weight(columns[b], v)
        scanned += 1
        if value < best_value - tie or (
            value <= best_value + tie and (best < 0 or feature[b] > feature[best])
        ):
            best, best_value = b, value
    return best, best_value, scanned


@kernel
def eliminate_in_block(  # type: ignore[no-untyped-def]
    K, ridge, sample, sign, linear, upper, alpha, f, v, tol, max_iter,
    columns, alive, feature, key, outside_key, max_norm, v_ref, tie, scan_budget, n_stop, removed, values,
):  # fmt: skip
    """Train and remove until the bound fails, the budget is spent or ``n_stop`` features have left.

    Returns how many left (listed in ``removed`` by position in the block, with their squared weights in
    ``values``), the reason, and whether all trainings converged.
    """
    n_removed, scanned, converged = 0, 0, True
    while n_removed < n_stop:
        drift = 0.0
        for c in range(alpha.shape[0]):
            _, _, status = smo(K, ridge, sample, sign[c], linear[c], upper[c], alpha[c], f[c], tol, max_iter)
            converged = converged and status == 0
            combine_duals(alpha[c], sample, sign[c], v[c])
            for i in range(v.shape[1]):
                drift += (v[c, i] - v_ref[c, i]) ** 2
        drift = math.sqrt(drift)
        best, best_value, read = smallest_in_block(columns, alive, feature, key, max_norm, drift, v, tie)
        scanned += read
        reach = outside_key - max_norm * drift
        if best < 0 or reach <= 0.0 or best_value + tie >= reach * reach:
            return n_removed, BLOCK_EXHAUSTED, converged
        alive[best] = False
        removed[n_removed] = best
        values[n_removed] = best_value
        n_removed += 1
        remove_column(K, f, v, columns[best])
        if scanned > scan_budget:
            return n_removed, SCANNED_ENOUGH, converged
    return n_removed, BLOCK_EXHAUSTED, converged
