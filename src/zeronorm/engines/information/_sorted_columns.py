"""Neighbourhoods in a sorted column, and the mean of ψ where samples are at the same distance."""

# mypy: allow-untyped-defs

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel

NOISE = 1e-10  # relative to the size of a column: distances that differ by less are equal
NEGLIGIBLE = 1e-12  # probability of the orders that are left out of a mean


@kernel
def column_size(x, numbers):
    """The larger of standard deviation and mean absolute value."""
    n, mean, absolute, square = numbers.sum(), 0.0, 0.0, 0.0
    for i in range(x.shape[0]):
        mean += numbers[i] * x[i] / n
        absolute += numbers[i] * abs(x[i]) / n
    for i in range(x.shape[0]):
        square += numbers[i] * (x[i] - mean) ** 2 / n
    return max(np.sqrt(square), absolute)


@kernel
def sums_before(numbers):
    """Sums of the entries before each entry, and of all entries."""
    sums = np.zeros(numbers.shape[0] + 1, dtype=np.int64)
    for i in range(numbers.shape[0]):
        sums[i + 1] = sums[i] + numbers[i]
    return sums


@kernel
def mean_on_edge(inside, size, own, wanted, digamma):
    """Mean of ψ(inside + J - 1), J the position of the ``wanted``-th of ``own`` among ``size`` in random order."""
    if own == size:
        return digamma[inside + wanted - 1]
    log_chance = 0.0
    for j in range(wanted):
        log_chance += np.log((own - j) / (size - j))
    total, covered = 0.0, 0.0
    for j in range(wanted, size - own + wanted + 1):
        chance = np.exp(log_chance)
        total += chance * digamma[inside + j - 1]
        covered += chance
        if 1.0 - covered < NEGLIGIBLE or j == size - own + wanted:
            break
        log_chance += np.log(j / (j - wanted + 1.0)) + np.log((size - j - own + wanted) / (size - j))
    return total / covered


@kernel
def reach(x, low, high, value, radius, closed):
    """First and last of the ascending x within ``radius`` of ``value``, the boundary included if ``closed``.

    Those from ``low`` to ``high`` are known to be. The step is doubled, then halved, since most neighbours are close.
    """
    step = 1
    while step > 0:
        ahead = low - step
        inside = ahead >= 0
        if inside:
            distance = value - x[ahead]
            inside = distance < radius or (closed and distance == radius)
        if inside:
            low = ahead
            step *= 2
        else:
            step //= 2
    step = 1
    while step > 0:
        ahead = high + step
        inside = ahead < x.shape[0]
        if inside:
            distance = x[ahead] - value
            inside = distance < radius or (closed and distance == radius)
        if inside:
            high = ahead
            step *= 2
        else:
            step //= 2
    return low, high
