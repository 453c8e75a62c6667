"""Compiled loops behind the nearest-neighbour filters.

Distances run over samples in the inner loop (no sum along the vector registers, which a compiler may not
reorder), differences of single features run over features.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel

# What one column adds to the distance of two samples.
ABSOLUTE, SQUARED, MISMATCH = 0, 1, 2

SAMPLES_AT_A_TIME = 8
COLUMNS_AT_A_TIME = 4
_TILE_COLUMNS = 64


@kernel
def scale_rows(block, n, shift, factor):
    """(x - shift) * factor for the first ``n`` values of each row, in place."""
    for f in range(shift.shape[0]):
        row, row_shift, row_factor = block[f], shift[f], factor[f]
        for j in range(n):
            row[j] = (row[j] - row_shift) * row_factor


@kernel
def scale_columns(block, shift, factor):
    """(x - shift) * factor for the first columns, in place."""
    for i in range(block.shape[0]):
        row = block[i]
        for j in range(shift.shape[0]):
            row[j] = (row[j] - shift[j]) * factor[j]


@kernel
def add_distances(left, right, distance, same, kind, missing, first, last):
    """Add columns to the distances between rows ``first`` to ``last`` (even) of one tile and all of another.

    ``left`` and ``right`` hold one column of the data per row, padded to multiples of the constants above.
    When both are the ``same`` tile only entries right of the diagonal are complete.
    """
    for top in range(0, left.shape[0], _TILE_COLUMNS):
        bottom = min(top + _TILE_COLUMNS, left.shape[0])
        for a in range(first, last, 2):
            start = a // SAMPLES_AT_A_TIME * SAMPLES_AT_A_TIME if same else 0
            out, next_out = distance[a, start:], distance[a + 1, start:]
            for f in range(top, bottom, COLUMNS_AT_A_TIME):
                if kind == ABSOLUTE and not missing:
                    _add_absolute(left, right, f, a, start, out, next_out)
                elif kind == SQUARED and not missing:
                    _add_squared(left, right, f, a, start, out, next_out)
                else:
                    for g in range(f, f + COLUMNS_AT_A_TIME):
                        _add_general(left[g, a], right[g, start:], kind, out)
                        _add_general(left[g, a + 1], right[g, start:], kind, next_out)


@kernel
def _add_absolute(left, right, f, a, start, out, next_out):
    """Four columns from ``f``, two samples from ``a`` against many."""
    a0, a1, a2, a3 = left[f, a], left[f + 1, a], left[f + 2, a], left[f + 3, a]
    b0, b1, b2, b3 = left[f, a + 1], left[f + 1, a + 1], left[f + 2, a + 1], left[f + 3, a + 1]
    z0, z1, z2, z3 = right[f, start:], right[f + 1, start:], right[f + 2, start:], right[f + 3, start:]
    for j in range(out.shape[0]):
        out[j] += (abs(z0[j] - a0) + abs(z1[j] - a1)) + (abs(z2[j] - a2) + abs(z3[j] - a3))
        next_out[j] += (abs(z0[j] - b0) + abs(z1[j] - b1)) + (abs(z2[j] - b2) + abs(z3[j] - b3))


@kernel
def _add_squared(left, right, f, a, start, out, next_out):
    a0, a1, a2, a3 = left[f, a], left[f + 1, a], left[f + 2, a], left[f + 3, a]
    b0, b1, b2, b3 = left[f, a + 1], left[f + 1, a + 1], left[f + 2, a + 1], left[f + 3, a + 1]
    z0, z1, z2, z3 = right[f, start:], right[f + 1, start:], right[f + 2, start:], right[f + 3, start:]
    for j in range(out.shape[0]):
        out[j] += ((z0[j] - a0) ** 2 + (z1[j] - a1) ** 2) + ((z2[j] - a2) ** 2 + (z3[j] - a3) ** 2)
        next_out[j] += ((z0[j] - b0) ** 2 + (z1[j] - b1) ** 2) + ((z2[j] - b2) ** 2 + (z3[j] - b3) ** 2)


@kernel
def _add_general(x, z, kind, out):
    """One column, any kind; pairs with a missing value add nothing."""
    for b in range(out.shape[0]):
        difference = abs(z[b] - x)
        if kind == SQUARED:
            difference = difference * difference
        elif kind == MISMATCH and difference > 0.0:
            difference = 1.0
        out[b] += difference if difference == difference else 0.0


@kernel
def offer_neighbours(
    distance, first_left, first_right, n_left, n_right, codes, worst, nearest_distance, nearest
):
    """Enter all pairs of two tiles into the lists of nearest samples, one list per class and sample.

    ``worst`` holds the last distance of each list. Tiles must come in ascending order: then every list is
    offered samples in the order of their index, and of equally distant ones the first stay.
    """
    same = first_left == first_right
    for a in range(n_left):
        i = first_left + a
        own_worst = worst[codes[i]]
        for b in range(a + 1 if same else 0, n_right):
            j = first_right + b
            d = distance[a, b]
            if d < worst[codes[j], i]:
                worst[codes[j], i] = _enter(nearest_distance, nearest, codes[j], i, d, j)
            if d < own_worst[j]:
                own_worst[j] = _enter(nearest_distance, nearest, codes[i], j, d, i)


@kernel
def _enter(nearest_distance, nearest, c, i, distance, candidate):
    """Insert a candidate into a sorted list; returns the new last distance."""
    distances, members = nearest_distance[c, i], nearest[c, i]
    place = distances.shape[0] - 1
    while place > 0 and distance < distances[place - 1]:
        distances[place] = distances[place - 1]
        members[place] = members[place - 1]
        place -= 1
    distances[place] = distance
    members[place] = candidate
    return distances[-1]


@kernel
def fill_class_pairs(members, codes, prior, hits, hit_weights, misses, miss_weights):
    """Write hits and misses of each sample and their weights; samples without a hit are left out.

    ``members`` has the shape (classes, n, k); its lists end with -1 where there are fewer than k samples.
    """
    n_references = 0
    for i in range(codes.shape[0]):
        n_references += members[codes[i], i, 0] >= 0
    for i in range(codes.shape[0]):
        own, n_misses = codes[i], 0
        if members[own, i, 0] < 0:
            continue
        for c in range(members.shape[0]):
            nearest = members[c, i]
            found = np.sum(nearest >= 0)
            for place in range(found):
                if c == own:
                    hits[i, place] = nearest[place]
                    hit_weights[i, place] = 1.0 / (found * n_references)
                else:
                    misses[i, n_misses] = nearest[place]
                    miss_weights[i, n_misses] = prior[c] / (1.0 - prior[own]) / (found * n_references)
                    n_misses += 1


@kernel
def merge_mutual(neighbours, weights):
    """Give a pair that is listed from both ends to the lower index, and put the rest of each row first.

    Returns the number of pairs left in each row; the places after them have weight zero.
    """
    n, m = neighbours.shape
    for i in range(n):
        for place in range(m):
            j = neighbours[i, place]
            if weights[i, place] > 0.0 and j > i:
                for back in range(m):
                    if neighbours[j, back] == i:
                        weights[i, place] += weights[j, back]
                        weights[j, back] = 0.0
    counts = np.zeros(n, dtype=np.intp)
    for i in range(n):
        for place in range(m):
            weight = weights[i, place]
            if weight > 0.0:
                weights[i, place] = 0.0
                weights[i, counts[i]] = weight
                neighbours[i, counts[i]] = neighbours[i, place]
                counts[i] += 1
    return counts


@kernel
def add_differences(rows, neighbours, weights, counts, mismatch, missing, total, present):
    """Add weight times |difference| between each sample and its ``counts`` neighbours, for each column.

    ``neighbours`` and ``weights`` have a multiple of four columns; a weight of zero fills up. ``present``
    collects the weights of the pairs in which no value is missing.
    """
    for i in range(rows.shape[0]):
        x = rows[i]
        for place in range(0, counts[i], 4):
            w0, w1, w2, w3 = (
                weights[i, place],
                weights[i, place + 1],
                weights[i, place + 2],
                weights[i, place + 3],
            )
            z0 = rows[neighbours[i, place]]
            z1 = rows[neighbours[i, place + 1]]
            z2 = rows[neighbours[i, place + 2]]
            z3 = rows[neighbours[i, place + 3]]
            if missing or mismatch:
                _add_general_difference(x, z0, w0, mismatch, total, present)
                _add_general_difference(x, z1, w1, mismatch, total, present)
                _add_general_difference(x, z2, w2, mismatch, total, present)
                _add_general_difference(x, z3, w3, mismatch, total, present)
            elif counts[i] - place == 1:
                for f in range(total.shape[0]):
                    total[f] += w0 * abs(x[f] - z0[f])
            elif counts[i] - place == 2:
                for f in range(total.shape[0]):
                    total[f] += w0 * abs(x[f] - z0[f]) + w1 * abs(x[f] - z1[f])
            else:
                for f in range(total.shape[0]):
                    total[f] += (w0 * abs(x[f] - z0[f]) + w1 * abs(x[f] - z1[f])) + (
                        w2 * abs(x[f] - z2[f]) + w3 * abs(x[f] - z3[f])
                    )


@kernel
def _add_general_difference(x, z, weight, mismatch, total, present):
    for f in range(total.shape[0]):
        difference = abs(x[f] - z[f])
        if not np.isnan(difference):
            total[f] += weight * (1.0 if mismatch and difference > 0.0 else difference)
            present[f] += weight
