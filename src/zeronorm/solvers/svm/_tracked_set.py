"""Updates of the optimum of a box dual while features are removed one at a time.

The triangular factor of the kernel matrix on the free variables is kept from one problem to the next. Removing a
feature changes it by rank one, a variable that reaches or leaves a bound changes it by one row. Each costs O(n²),
whereas a Newton step from scratch costs O(n³). See :mod:`zeronorm.solvers.svm._box_dual` for the problem.

The factor is of :math:`H = K_{FF} + \\mathrm{diag}(\\mathrm{ridge}) + \\tau 1 1^\\top = U^\\top U`. The last term
changes nothing where :math:`1^\\top d = 0`, and keeps H regular for centred data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zeronorm._jit import kernel, reduction
from zeronorm._types import FloatArray, Int64Array
from zeronorm.solvers.svm._free_set import JITTER, eliminate, free_step
from zeronorm.solvers.svm._smo import all_variables, diagonal_of, first_of_pair, second_of_pair

# Below this size a new factor costs less than the bookkeeping.
TRACK_FROM = 32
# The factors of all models together, each a square matrix, may take this many bytes.
MOST_BYTES = 2**27
# With more changes of the free set than this, solving from scratch is faster.
MOST_CHANGES = 40
# A pivot below this part of the diagonal is rounding.
SMALLEST_PIVOT = 1e-9
OFF = -1


class TrackedSets(NamedTuple):
    """The factors of several SVMs: U, the variables in its order, their number (-1: given up), and τ."""

    factor: FloatArray
    order: Int64Array
    size: Int64Array
    shift: FloatArray

    @classmethod
    def room_for(cls, n_models: int, n_samples: int) -> TrackedSets:
        """Empty factors; of size zero where updates do not pay."""
        fits = n_samples >= TRACK_FROM and 8 * n_models * n_samples**2 <= MOST_BYTES
        side = n_samples if fits else 0
        return cls(
            np.empty((n_models, side, side)),
            np.empty((n_models, side), np.int64),
            np.zeros(n_models, np.int64),
            np.zeros(n_models),
        )


@kernel
def start_tracking(
    sets: TrackedSets,
    c: int,
    K: FloatArray,
    ridge: FloatArray,
    sample: Int64Array,
    upper: FloatArray,
    alpha: FloatArray,
) -> None:
    """Factor the matrix of the free variables; give up for good where it is singular."""
    U, order = sets.factor[c], sets.order[c]
    m = 0
    for i in range(alpha.shape[0]):
        if 0.0 < alpha[i] < upper[i]:
            if m == order.shape[0]:
                return
            order[m] = i
            m += 1
    shift = 0.0
    for a in range(m):
        shift += K[sample[order[a]], sample[order[a]]] / m
    if not shift > 0.0:
        return
    for a in range(m):
        s = sample[order[a]]
        for b in range(a, m):
            U[a, b] = K[s, sample[order[b]]] + shift
        U[a, a] += ridge[s]
    eliminate(U, m, m, JITTER * shift)
    for a in range(m):
        if U[a, a] <= SMALLEST_PIVOT * shift:
            sets.size[c] = OFF
            return
        root = np.sqrt(U[a, a])
        for b in range(a, m):
            U[a, b] /= root
    sets.size[c], sets.shift[c] = m, shift


@kernel
def forget_column(sets: TrackedSets, sample: Int64Array, x: FloatArray) -> None:
    """Remove the column x from all factors: K becomes K - x x'."""
    for c in range(sets.size.shape[0]):
        m = sets.size[c]
        if m <= 0:
            continue
        part = np.empty(m)
        for a in range(m):
            part[a] = x[sample[sets.order[c, a]]]
        if not change_by_square(sets.factor[c], 0, m, part, -1.0):
            sets.size[c] = 0


@kernel
def change_by_square(U: FloatArray, first: int, m: int, x: FloatArray, side: float) -> bool:
    """Update U to the factor of U'U + side x x' from row ``first`` on; False when that is not positive definite.

    Overwrites x.
    """
    for k in range(first, m):
        pivot = U[k, k]
        value = x[k - first]
        square = pivot * pivot + side * value * value
        if square <= SMALLEST_PIVOT * pivot * pivot:
            return False
        root = np.sqrt(square)
        c, s = root / pivot, value / pivot
        U[k, k] = root
        row, rest = U[k, k + 1 : m], x[k + 1 - first : m - first]
        for j in range(row.shape[0]):
            row[j] = (row[j] + side * s * rest[j]) / c
            rest[j] = c * rest[j] - s * row[j]
    return True


@kernel
def follow(
    sets: TrackedSets,
    c: int,
    K: FloatArray,
    ridge: FloatArray,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    tol: float,
) -> tuple[bool, int]:
    """Go to the optimum from a nearby one by the active-set method; returns whether it was reached, and the steps."""
    m = sets.size[c]
    U, order = sets.factor[c], sets.order[c]
    diagonal, active = diagonal_of(K, ridge), all_variables(alpha.shape[0])
    for n_iter in range(MOST_CHANGES):
        if m < 2:
            break
        i, top = first_of_pair(active, sample, sign, linear, upper, alpha, f)
        j, bottom = second_of_pair(K, diagonal, active, sample, sign, linear, upper, alpha, f, i, top)
        if top - bottom < tol:
            sets.size[c] = m
            return True, n_iter
        if n_iter > 0:
            m = _release(U, order, m, sets.shift[c], K, ridge, sample, upper, alpha, i)
            m = _release(U, order, m, sets.shift[c], K, ridge, sample, upper, alpha, j)
            if m == 0:
                break
        step = _direction(U, order, m, sample, sign, linear, f)
        free_step(K, ridge, sample, sign, linear, upper, alpha, f, order[:m], step)
        m = _drop_bound(U, order, m, upper, alpha)
    sets.size[c] = 0
    return False, MOST_CHANGES


@kernel
def _direction(
    U: FloatArray,
    order: Int64Array,
    m: int,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    f: FloatArray,
) -> FloatArray:
    """The change d of v on the free variables to their joint optimum, with Σ d = 0: H d = -g + λ 1."""
    step, ones = np.empty(m), np.empty(m)
    for a in range(m):
        i = order[a]
        step[a], ones[a] = -(f[sample[i]] + sign[i] * linear[i]), 1.0
    solve_factored(U, m, step)
    solve_factored(U, m, ones)
    total, total_ones = 0.0, 0.0
    for a in range(m):
        total += step[a]
        total_ones += ones[a]
    share = total / total_ones
    for a in range(m):
        step[a] -= share * ones[a]
    return step


@reduction
def solve_factored(U: FloatArray, m: int, x: FloatArray) -> None:
    """Solve U'U z = x in place."""
    _solve_transposed(U, m, x)
    for k in range(m - 1, -1, -1):
        row, rest = U[k, k + 1 : m], x[k + 1 : m]
        value = 0.0
        for j in range(row.shape[0]):
            value += row[j] * rest[j]
        x[k] = (x[k] - value) / U[k, k]


@kernel
def _solve_transposed(U: FloatArray, m: int, x: FloatArray) -> None:
    """Solve U'z = x in place."""
    for k in range(m):
        x[k] /= U[k, k]
        row, rest = U[k, k + 1 : m], x[k + 1 : m]
        value = x[k]
        for j in range(row.shape[0]):
            rest[j] -= value * row[j]


@kernel
def _release(
    U: FloatArray,
    order: Int64Array,
    m: int,
    shift: float,
    K: FloatArray,
    ridge: FloatArray,
    sample: Int64Array,
    upper: FloatArray,
    alpha: FloatArray,
    i: int,
) -> int:
    """Let variable i leave its bound: one more column of U. Returns the new size, 0 when H would be singular."""
    if m == 0 or i < 0 or 0.0 < alpha[i] < upper[i]:
        return m
    if m == order.shape[0]:
        return 0
    s = sample[i]
    column = np.empty(m)
    for a in range(m):
        column[a] = K[s, sample[order[a]]] + shift
        if order[a] == i:
            return m
    _solve_transposed(U, m, column)
    whole = K[s, s] + ridge[s] + shift
    pivot = whole
    for a in range(m):
        pivot -= column[a] * column[a]
        U[a, m] = column[a]
    if pivot <= SMALLEST_PIVOT * whole:
        return 0
    U[m, m] = np.sqrt(pivot)
    order[m] = i
    return m + 1


@kernel
def _drop_bound(U: FloatArray, order: Int64Array, m: int, upper: FloatArray, alpha: FloatArray) -> int:
    """Remove the variables that reached a bound from the factor; returns the new size."""
    for q in range(m - 1, -1, -1):
        i = order[q]
        if 0.0 < alpha[i] < upper[i]:
            continue
        lost = np.empty(m - q - 1)
        for j in range(m - q - 1):
            lost[j] = U[q, q + 1 + j]
        for k in range(m - 1):
            source = k
            if k >= q:
                source = k + 1
                order[k] = order[source]
            for j in range(max(k, q), m - 1):
                U[k, j] = U[source, j + 1]
        m -= 1
        change_by_square(U, q, m, lost, 1.0)
    return m
