"""Coordinate descent for a quadratic loss with the relaxed penalty on the number of features."""

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import BoolArray, FloatArray, Int64Array

MOST_PASSES = 500  # over the weights, for one value of the multiplier
MOST_MULTIPLIERS = 60
BRACKET = 4.0  # factor between two multipliers until the size asked for lies between theirs
NO_MULTIPLIER = 1e-13  # relative to the largest one


@kernel
def descend(
    H: FloatArray,
    W: FloatArray,
    gradient: FloatArray,
    starts: Int64Array,
    curvature: FloatArray,
    sizes: FloatArray,
    inside: BoolArray,
    reach: FloatArray,
    multiplier: float,
    tol: float,
) -> int:
    r"""Minimise the quadratic plus :math:`\sum_u \min_z \|w_u\|^2 / (2z) + \lambda n_u z` over the weights.

    For units ``inside`` z is one; for others :math:`\|w_u\| / r_u \le z \le 1` with the largest norm r, ``reach``.
    Their penalty is :math:`\theta\|w\|` up to :math:`\|w\| = \theta = \sqrt{2\lambda n}`, then
    :math:`\|w\|^2/2 + \theta^2/2`; where r is smaller than θ, :math:`(r / 2 + \lambda n / r) \|w\|`.
    ``H`` has one matrix per model, ``W`` and ``gradient`` (of the quadratic) one row; the features of unit u are
    ``starts[u]`` to ``starts[u + 1]``.
    Returns the number of passes.
    """
    n_models, n_units = W.shape[0], sizes.size
    for n_passes in range(1, MOST_PASSES + 1):
        largest = 0.0
        for u in range(n_units):
            first, last = starts[u], starts[u + 1]
            steepness = curvature[u]
            norm_sq = 0.0
            for c in range(n_models):
                for j in range(first, last):
                    norm_sq += (W[c, j] - gradient[c, j] / steepness) ** 2
            norm = np.sqrt(norm_sq)
            theta = 0.0 if inside[u] else np.sqrt(2.0 * multiplier * sizes[u])
            rise = theta if theta <= reach[u] else 0.5 * (reach[u] + theta * theta / reach[u])
            if norm <= rise / steepness:
                factor = 0.0
            elif theta > reach[u] or norm <= theta * (1.0 + 1.0 / steepness):
                factor = 1.0 - rise / (steepness * norm)
            else:
                factor = steepness / (steepness + 1.0)
            if factor * norm > reach[u]:
                factor = reach[u] / norm
            for c in range(n_models):
                for j in range(first, last):
                    target = factor * (W[c, j] - gradient[c, j] / steepness)
                    change = target - W[c, j]
                    if change != 0.0:
                        W[c, j] = target
                        largest = max(largest, steepness * change * change)
                        for i in range(gradient.shape[1]):
                            gradient[c, i] += change * H[c, j, i]
        if largest <= tol:
            return n_passes
    return MOST_PASSES


@kernel
def largest_of(values: FloatArray, allowed: BoolArray, count: int) -> FloatArray:
    """The largest ``count`` of the allowed values, in a heap whose first value is the smallest."""
    heap = np.full(count, -np.inf)
    for i in range(values.size):
        if values[i] > heap[0] and allowed[i]:
            at, child = 0, 1
            while child < count:
                if child + 1 < count and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= values[i]:
                    break
                heap[at] = heap[child]
                at, child = child, 2 * child + 1
            heap[at] = values[i]
    return heap


@kernel
def sums_of_squares(products: FloatArray, error: FloatArray, norms: FloatArray) -> FloatArray:
    """For each row, the sum of the squares of what its products may be, with an error per column and unit of norm."""
    total = np.zeros(products.shape[0])
    for j in range(products.shape[0]):
        for c in range(products.shape[1]):
            total[j] += (abs(products[j, c]) + error[c] * norms[j]) ** 2
    return total


@kernel
def shares(
    W: FloatArray,
    starts: Int64Array,
    sizes: FloatArray,
    inside: BoolArray,
    reach: FloatArray,
    multiplier: float,
) -> FloatArray:
    """The relaxed indicators z of the units at these weights."""
    z = np.ones(sizes.size)
    for u in range(sizes.size):
        if not inside[u]:
            norm_sq = 0.0
            for c in range(W.shape[0]):
                for j in range(starts[u], starts[u + 1]):
                    norm_sq += W[c, j] ** 2
            whole = min(np.sqrt(2.0 * multiplier * sizes[u]), reach[u])  # the norm at which z is one
            if whole > 0.0:
                z[u] = min(1.0, np.sqrt(norm_sq) / whole)
    return z


@kernel
def descend_at_size(
    H: FloatArray,
    W: FloatArray,
    gradient: FloatArray,
    starts: Int64Array,
    curvature: FloatArray,
    sizes: FloatArray,
    inside: BoolArray,
    reach: FloatArray,
    room: float,
    multiplier: float,
    tol: float,
    slack: float,
) -> float:
    """Minimise with the multiplier at which the free units have ``room`` features in all; returns the multiplier.

    The number of features decreases with the multiplier: false position on its logarithm, with a bracket. Features
    may number up to ``slack`` more or less. A multiplier of zero means that all fit.
    """
    low, high, at_low, at_high = 0.0, np.inf, 0.0, 0.0
    start = multiplier
    for _ in range(MOST_MULTIPLIERS):
        descend(H, W, gradient, starts, curvature, sizes, inside, reach, multiplier, tol)
        z = shares(W, starts, sizes, inside, reach, multiplier)
        used = 0.0
        for u in range(sizes.size):
            if not inside[u]:
                used += sizes[u] * z[u]
        if abs(used - room) <= slack:
            return multiplier
        if used > room:
            low, at_low = multiplier, used - room
        else:
            high, at_high = multiplier, room - used
        if high <= NO_MULTIPLIER * start:
            return 0.0
        if low == 0.0:
            multiplier = high * max((used / room) ** 2, 1.0 / BRACKET)
        elif high == np.inf:
            multiplier = low * min((used / room) ** 2, BRACKET)
        else:
            share = min(max(at_low / (at_low + at_high), 0.1), 0.9)
            multiplier = low * (high / low) ** share
            if high <= low * (1.0 + 1e-12):
                return multiplier
    return multiplier
