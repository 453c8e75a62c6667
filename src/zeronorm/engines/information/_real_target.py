"""Mutual information between columns and a real target: the estimate of Kraskov et al."""

# mypy: allow-untyped-defs

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel
from zeronorm._types import FloatArray
from zeronorm.engines.information._sorted_columns import NOISE, mean_on_edge, reach, sums_before

APART = 4096  # equal targets are separated by up to this multiple of the rounding error


class OrderedTarget(NamedTuple):
    """A real target of variance one in ascending order, with equal values separated, and its own neighbourhoods.

    ``rank`` is the position of each sample, ``radius`` the distance to the k-th nearest target, ``psi`` the ψ of the
    number of nearer targets, and ``widest`` holds the positions in descending order of the radius.
    """

    rank: NDArray[np.intp]
    y: FloatArray
    radius: FloatArray
    psi: FloatArray
    widest: NDArray[np.intp]

    @classmethod
    def of(cls, y: FloatArray, k: int, digamma: FloatArray, rng: np.random.Generator) -> OrderedTarget:
        """The target from y; equal values are put in random order and separated by more than the rounding error."""
        order = rng.permutation(y.size)
        order = order[np.argsort(y[order], kind="stable")]
        scale = float(y.std())
        ordered = np.ascontiguousarray(y[order] / (scale if scale > 0.0 else 1.0))
        apart = APART * np.finfo(float).eps * max(1.0, float(np.abs(ordered).max()))
        ordered += np.cumsum(rng.uniform(0.0, apart, y.size))  # equal steps would make distances equal again
        rank = np.empty(y.size, dtype=np.intp)
        rank[order] = np.arange(y.size)
        radius, psi_nearer = np.empty((2, y.size))
        target_alone(ordered, k, digamma, radius, psi_nearer)
        return cls(rank, ordered, radius, psi_nearer, np.argsort(-radius, kind="stable"))


@kernel
def target_alone(y, k, digamma, radius, psi_nearer):
    nearest = np.empty(k)
    nobody = np.full(y.shape[0], -1, dtype=np.int32)
    for i in range(y.shape[0]):
        nearest[:] = np.inf
        _walk_ranks(y, nobody, i, 0.0, nearest)
        radius[i] = nearest[k - 1]
        low, high = reach(y, i, i, y[i], radius[i], False)
        psi_nearer[i] = digamma[high - low + 1]


@kernel
def kraskov_information(
    data,
    rows,
    starts,
    elsewhere,
    rank,
    y,
    radius,
    psi_nearer,
    widest,
    chosen,
    k,
    digamma,
    result,
    first,
    last,
):
    """The estimate of Kraskov et al. for the ``chosen`` columns among ``first`` to ``last``.

    A sample whose value is not stored has the radius of a constant column, unless a stored value is near.
    """
    n, all_psi = y.shape[0], psi_nearer.sum()
    group_of = np.full(n, -1, dtype=np.int32)  # group of each rank; -1 for values that are not stored
    best, nearest = np.empty(k), np.empty(k)
    for f in range(first, last):
        if not chosen[f]:
            continue
        x, ranks, own = _stored_values(data, rows, starts, elsewhere, f, rank, group_of)
        if x.shape[0] == 0:
            result[f] = 0.0
            continue
        values, ends, usual = _groups(x, ranks, own, n)
        below, n_usual, total, base = sums_before(_group_sizes(ends, usual, n)), n - x.shape[0], 0.0, all_psi
        for g in range(values.shape[0]):
            for e in range(ends[g], ends[g + 1]):
                group_of[ranks[e]] = g
        strip_of, firsts = _strips(ends, usual, np.sqrt(k * x.shape[0]))
        column = (values, ends, ranks, np.sort(ranks), below, usual, y, group_of)
        strips = (strip_of, firsts, _sorted_between(ranks, ends[firsts]))
        for e in range(x.shape[0]):
            base -= psi_nearer[ranks[e]]
            total += _sample_psi(column, strips, ranks[e], k, digamma, best, nearest)
        seen = _near_stored(column, radius, widest, k) if n_usual > 0 else ranks[:0]
        for i in seen:
            base -= psi_nearer[i]
            total += _sample_psi(column, strips, i, k, digamma, best, nearest)
        if n_usual > 0:
            total += base + (n_usual - seen.shape[0]) * digamma[n_usual]
        for e in range(x.shape[0]):
            group_of[ranks[e]] = -1
        result[f] = max(0.0, digamma[n] + digamma[k] - total / n)


@kernel
def _stored_values(data, rows, starts, elsewhere, f, rank, group_of):
    """Ascending stored values of column f in units of its standard deviation, their ranks, and the value of all others.

    Where most values are stored, all are returned. A constant column has none.
    """
    n, usual = rank.shape[0], elsewhere[f]
    x, ranks, size = np.empty(n), np.empty(n, dtype=np.intp), 0
    for position in range(starts[f], starts[f + 1]):
        if data[position] != usual:
            x[size], ranks[size] = data[position], rank[rows[position]]
            size += 1
    mean = usual + (x[:size] - usual).sum() / n
    square = ((x[:size] - mean) ** 2).sum() + (n - size) * (usual - mean) ** 2
    scale = np.sqrt(square / n)
    if not scale > 0.0:
        return x[:0], ranks[:0], usual
    if 2 * size >= n and size < n:
        for stored in ranks[:size]:
            group_of[stored] = 0
        for i in range(n):
            if group_of[i] < 0:
                x[size], ranks[size] = usual, i
                size += 1
        group_of[:] = -1
    x, ranks = x[:size] / scale, ranks[:size]
    order = np.argsort(x)
    return x[order], ranks[order], usual / scale


@kernel
def _groups(x, ranks, usual, n):
    """Groups of equal values: value of each group, bounds of its sorted ranks, and the group of values not stored."""
    size, n_stored, position = 0, x.shape[0], -1
    values, ends = np.empty(n_stored + 1), np.zeros(n_stored + 2, dtype=np.int64)
    e = 0
    while e < n_stored or (position < 0 and n_stored < n):
        if position < 0 and n_stored < n and (e == n_stored or usual < x[e]):
            position, values[size] = size, usual
        else:
            values[size] = x[e]
            begin = e
            while e < n_stored and x[e] - x[begin] <= NOISE and not (x[begin] < usual <= x[e]):
                e += 1
            ranks[begin:e].sort()
        size += 1
        ends[size] = e
    return values[:size], ends[: size + 1], position


@kernel
def _group_sizes(ends, usual, n):
    sizes = ends[1:] - ends[:-1]
    if usual >= 0:
        sizes[usual] = n - ends[-1]
    return sizes


@kernel
def _strips(ends, usual, size):
    """Strips of neighbouring groups with up to ``size`` stored values: strip of each group, first group of each strip.

    The group of values that are not stored is a strip of its own.
    """
    n_groups, n_strips = ends.shape[0] - 1, 0
    strip_of, firsts = np.empty(n_groups, dtype=np.int64), np.empty(n_groups + 1, dtype=np.int64)
    for g in range(n_groups):
        begins = g == 0 or g == usual or g - 1 == usual
        if begins or ends[g + 1] - ends[firsts[n_strips - 1]] > size:
            firsts[n_strips] = g
            n_strips += 1
        strip_of[g] = n_strips - 1
    firsts[n_strips] = n_groups
    return strip_of, firsts[: n_strips + 1]


@kernel
def _sorted_between(ranks, bounds):
    """A copy of ``ranks`` that is sorted between each two ``bounds``."""
    parts = ranks.copy()
    for s in range(bounds.shape[0] - 1):
        parts[bounds[s] : bounds[s + 1]].sort()
    return parts


@kernel
def _near_stored(column, radius, widest, k):
    """Ranks that are not stored but have a stored one among their nearest targets, or near the value of the others."""
    values, _, _, by_rank, _, usual, _, group_of = column
    n, size = group_of.shape[0], 0
    found = np.empty(min(n, 2 * k * by_rank.shape[0] + n), dtype=np.intp)
    behind = 0
    for stored in by_rank:
        for i in range(max(stored - k, behind), min(stored + k + 1, n)):
            if group_of[i] < 0:
                found[size] = i
                size += 1
        behind = max(behind, min(stored + k + 1, n))
    least = np.inf
    if usual > 0:
        least = values[usual] - values[usual - 1]
    if usual + 1 < values.shape[0]:
        least = min(least, values[usual + 1] - values[usual])
    for i in widest:
        if radius[i] < least - NOISE:
            break
        position = np.searchsorted(by_rank, i)
        before = position > 0 and i - by_rank[position - 1] <= k
        after = position < by_rank.shape[0] and by_rank[position] - i <= k
        if not (before or after):
            found[size] = i
            size += 1
    return found[:size]


@kernel
def _sample_psi(column, strips, i, k, digamma, best, nearest):
    """Sum of ψ of the numbers of samples nearer than the k-th neighbour in the column and in the target.

    Neighbours are searched by value and by target in turn, until one of the two searches has passed all candidates.
    """
    values, ends, _, _, _, usual, y, group_of = column
    strip_of, firsts, by_strip = strips
    own = usual if group_of[i] < 0 else group_of[i]
    value, left = values[own], strip_of[own]
    right, low, high = left + 1, i - 1, i + 1
    best[:], nearest[:] = np.inf, np.inf
    while True:
        limit = min(best[k - 1], nearest[k - 1])
        to_left = max(0.0, value - values[firsts[left + 1] - 1]) if left >= 0 else np.inf
        to_right = values[firsts[right]] - value if right + 1 < firsts.shape[0] else np.inf
        if min(to_left, to_right) >= limit:
            inside = _number_below(best, limit - NOISE)
            break
        s, distance = (left, to_left) if to_left <= to_right else (right, to_right)
        left, right = (left - 1, right) if to_left <= to_right else (left, right + 1)
        if firsts[s] == usual:
            _walk_ranks(y, group_of, i, distance, best)
        else:
            members = by_strip[ends[firsts[s]] : ends[firsts[s + 1]]]
            _walk_strip(y, members, values, group_of, i, value, distance, best)
        limit = min(best[k - 1], nearest[k - 1])
        below_y = y[i] - y[low] if low >= 0 else np.inf
        above_y = y[high] - y[i] if high < y.shape[0] else np.inf
        if min(below_y, above_y) >= limit:
            inside = _number_below(nearest, limit - NOISE)
            break
        j, distance = (low, below_y) if below_y <= above_y else (high, above_y)
        low, high = (low - 1, high) if below_y <= above_y else (low, high + 1)
        g = usual if group_of[j] < 0 else group_of[j]
        _insert(nearest, max(distance, abs(values[g] - value)))
    low, high = reach(y, i, i, y[i], limit, False)
    return digamma[high - low + 1] + _psi_of_values(column, own, low, high, limit, k - inside, digamma)


@kernel
def _psi_of_values(column, own, low, high, radius, wanted, digamma):
    """Expected ψ of the number of values nearer than the radius.

    Values exactly at this distance are tied, and the result is the mean over their orders. The radius belongs to the
    ``wanted``-th of those among them whose targets, with ranks ``low`` to ``high``, are nearer.
    """
    values, ends, ranks, by_rank, below, usual, _, _ = column
    value = values[own]
    left, right = reach(values, own, own, value, radius - NOISE, False)
    inside = below[right + 1] - below[left]
    far_left, far_right = reach(values, left, right, value, radius + NOISE, True)
    on_edge = below[far_right + 1] - below[far_left] - inside
    if on_edge <= 1:
        return digamma[inside]
    near = 0
    for g in range(far_left, far_right + 1):
        if left <= g <= right:
            continue
        members = by_rank if g == usual else ranks[ends[g] : ends[g + 1]]
        count = np.searchsorted(members, high + 1) - np.searchsorted(members, low)
        near += high - low + 1 - count if g == usual else count
    if near == 0:
        return digamma[inside]
    return mean_on_edge(inside, on_edge, near, min(wanted, near), digamma)


@kernel
def _number_below(ascending, bound):
    count = 0
    while count < ascending.shape[0] and ascending[count] < bound:
        count += 1
    return count


@kernel
def _insert(ascending, distance):
    """Insert a distance into the ascending list of the smallest."""
    position = ascending.shape[0] - 1
    if distance >= ascending[position]:
        return
    while position > 0 and ascending[position - 1] > distance:
        ascending[position] = ascending[position - 1]
        position -= 1
    ascending[position] = distance


@kernel
def _walk_ranks(y, group_of, i, least, best):
    """Collect distances, at least ``least``, to the samples with the nearest targets that belong to no group."""
    n, last = y.shape[0], best.shape[0] - 1
    low, high = i - 1, i + 1
    while True:
        while low >= 0 and group_of[low] >= 0:
            low -= 1
        while high < n and group_of[high] >= 0:
            high += 1
        below, above = y[i] - y[low] if low >= 0 else np.inf, y[high] - y[i] if high < n else np.inf
        distance = max(least, min(below, above))
        if distance >= best[last]:
            break
        _insert(best, distance)
        low, high = (low - 1, high) if below <= above else (low, high + 1)


@kernel
def _walk_strip(y, members, values, group_of, i, value, least, best):
    """Collect distances to the samples of a strip, given by their sorted ranks; none of them is below ``least``."""
    last = best.shape[0] - 1
    high = np.searchsorted(members, i)
    low = high - 1
    if high < members.shape[0] and members[high] == i:
        high += 1
    while True:
        below = y[i] - y[members[low]] if low >= 0 else np.inf
        above = y[members[high]] - y[i] if high < members.shape[0] else np.inf
        distance = max(least, min(below, above))
        if distance >= best[last]:
            break
        j = members[low] if below <= above else members[high]
        _insert(best, max(distance, abs(values[group_of[j]] - value)))
        low, high = (low - 1, high) if below <= above else (low, high + 1)
