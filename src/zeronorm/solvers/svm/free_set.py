"""A Newton step on the variables strictly inside their bounds.

Pairwise steps converge linearly; once they have found which variables are free, the rest of the
work is one linear system. After a small change of the kernel matrix the free variables mostly
stay the same, so a warm start usually costs this one system.
"""

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, Int64Array

# Relative to the largest diagonal entry: keeps the factor finite when free vectors are dependent.
JITTER = 1e-12
# A slope smaller than this part of its terms is rounding.
NOISE = 1e-12


@kernel
def free_direction(
    K: FloatArray,
    ridge: FloatArray,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    n_free: int,
) -> tuple[Int64Array, FloatArray]:
    """The free variables, and the change of v that takes them to their joint optimum.

    The balance sign'alpha = 0 is kept by expressing the first free variable through the others. The
    last column of the triangle holds the right-hand side.
    """
    free = np.empty(n_free, np.int64)
    step = np.zeros(n_free)
    triangle = np.empty((n_free - 1, n_free))
    a = -1
    first = 0
    largest = 0.0
    for i in range(alpha.shape[0]):
        if 0.0 < alpha[i] < upper[i]:
            free[a + 1] = i
            a += 1
    first = sample[free[0]]
    row0 = K[first]
    target = f[first] + sign[free[0]] * linear[free[0]]
    for a in range(n_free - 1):
        i = free[a + 1]
        row = K[sample[i]]
        base = row0[first] + ridge[first] - row0[sample[i]]
        for b in range(a, n_free - 1):
            t = sample[free[b + 1]]
            triangle[a, b] = row[t] - row0[t] + base
        triangle[a, a] += ridge[sample[i]]
        triangle[a, n_free - 1] = target - f[sample[i]] - sign[i] * linear[i]
        largest = max(largest, triangle[a, a])
    if largest > 0.0:
        _solve_symmetric(triangle, JITTER * largest, step)
    return free, step


@kernel
def _solve_symmetric(triangle: FloatArray, jitter: float, step: FloatArray) -> None:
    """Gaussian elimination and back substitution; step[0] balances the sum."""
    q = triangle.shape[0]
    eliminate(triangle, q, q + 1, jitter)
    for a in range(q - 1, -1, -1):
        value = triangle[a, q]
        for b in range(a + 1, q):
            value -= triangle[a, b] * step[b + 1]
        step[a + 1] = value / triangle[a, a]
        step[0] -= step[a + 1]


@kernel
def eliminate(triangle: FloatArray, n_rows: int, width: int, jitter: float) -> None:
    """Gaussian elimination in the upper triangle; further columns, up to ``width``, are right-hand sides.

    Four finished rows are subtracted at a time: the inner loop then is long enough to be vectorised.
    """
    for i in range(n_rows):
        row = triangle[i]
        row[i] += jitter
        k = 0
        while k + 3 < i:
            r0, r1, r2, r3 = triangle[k], triangle[k + 1], triangle[k + 2], triangle[k + 3]
            c0, c1 = r0[i] / r0[k], r1[i] / r1[k + 1]
            c2, c3 = r2[i] / r2[k + 2], r3[i] / r3[k + 3]
            for j in range(i, width):
                row[j] -= (c0 * r0[j] + c1 * r1[j]) + (c2 * r2[j] + c3 * r3[j])
            k += 4
        while k < i:
            r0 = triangle[k]
            c0 = r0[i] / r0[k]
            for j in range(i, width):
                row[j] -= c0 * r0[j]
            k += 1
        row[i] = max(row[i], jitter)


@kernel
def free_step(
    K: FloatArray,
    ridge: FloatArray,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    free: Int64Array,
    step: FloatArray,
) -> float:
    """Move the free variables along a direction in v, to the optimum on it or to the first bound.

    Returns the curvature along the direction.
    """
    change = np.zeros(f.shape[0])
    slope, size = 0.0, 0.0
    for a in range(free.shape[0]):
        s = sample[free[a]]
        gain = -step[a] * (f[s] + sign[free[a]] * linear[free[a]])
        slope += gain
        size += abs(gain)
        row = K[s]
        for k in range(f.shape[0]):
            change[k] += step[a] * row[k]
        change[s] += ridge[s] * step[a]
    curvature = 0.0
    for a in range(free.shape[0]):
        curvature += step[a] * change[sample[free[a]]]
    # A nearly singular system is solved inexactly, so the step is measured along its true slope and curvature.
    if not NOISE * size < slope < np.inf:
        return curvature
    length = slope / curvature if curvature > 0.0 else np.inf
    blocking = -1
    for a in range(free.shape[0]):
        i = free[a]
        room = upper[i] - alpha[i] if sign[i] * step[a] > 0.0 else alpha[i]
        if length * abs(step[a]) >= room and step[a] != 0.0:
            length = room / abs(step[a])
            blocking = i
    if length == np.inf:
        return curvature
    for a in range(free.shape[0]):
        i = free[a]
        alpha[i] = min(max(alpha[i] + length * sign[i] * step[a], 0.0), upper[i])
    if blocking >= 0:
        alpha[blocking] = 0.0 if alpha[blocking] < 0.5 * upper[blocking] else upper[blocking]
    for k in range(f.shape[0]):
        f[k] += length * change[k]
    return curvature
