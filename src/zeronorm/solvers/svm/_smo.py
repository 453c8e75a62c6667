"""Sequential minimal optimisation, one kernel for classification and regression.

Solves the problem of :mod:`zeronorm.solvers.svm._box_dual`. Two variables move at a time, chosen by second-order
information (Fan, Chen and Lin 2005). Variables settled at a bound are set aside for a while (shrinking). Once the set
of free variables is stable, Newton steps finish the work. Now and then all variables are scaled by a common factor,
which would take many pair steps.
"""

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel, shared
from zeronorm._types import FloatArray, Int64Array
from zeronorm.solvers.svm._free_set import free_direction, free_step

# -- Scale all variables together, and detect when the problem is unbounded --
#
# With a large cost C the solution is many pair steps away, but often a multiple of the variables found
# early on: a line search along them saves the pair steps. Without upper bounds there may be no solution.
# When two classes cannot be separated, the hard-margin dual grows without limit along some
# :math:`d \ge 0` with :math:`\mathrm{sign}^\top d = 0` and :math:`Kd = 0`. Pairwise steps grow
# :math:`\alpha` along such a direction, so :math:`\alpha` itself, balanced between the signs, is the
# direction tried. For any such d, the best multiple :math:`\theta d` has
# :math:`\theta = -\mathrm{linear}^\top d / d^\top K d`: a lower bound on the size of the solution.
# Rounding errors in :math:`f` are about :math:`\epsilon\,\theta \sum d\,\max K_{ii}`; when that
# exceeds the tolerance, no solution can be verified in double precision, whether it exists or not


EPSILON = 2.0**-52


@kernel
def growth_direction(
    ridge: FloatArray,
    diagonal: FloatArray,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    unbounded: bool,
) -> tuple[Int64Array, FloatArray, float]:
    """The free variables and the direction in v of scaling them, balanced between the signs; empty if one-sided.

    With ``unbounded``, only variables without an upper bound. The third result is then the expected rounding error
    times the curvature along the direction.
    """
    sums = np.zeros(2)
    free = np.empty(alpha.shape[0], np.int64)
    n_free = 0
    largest = 0.0
    for i in range(alpha.shape[0]):
        largest = max(largest, diagonal[sample[i]])
        endless = upper[i] == np.inf and ridge[sample[i]] == 0.0
        if 0.0 < alpha[i] < upper[i] and (endless or not unbounded):
            free[n_free] = i
            n_free += 1
            sums[int(sign[i] > 0.0)] += alpha[i]
    if sums[0] == 0.0 or sums[1] == 0.0:
        n_free = 0
    step = np.empty(n_free)
    gain = 0.0
    for a in range(n_free):
        i = free[a]
        share = alpha[i] / sums[int(sign[i] > 0.0)]
        step[a] = sign[i] * share
        gain -= share * linear[i]
    # The shares add up to one for each sign, to two in all.
    return free[:n_free], step, 2.0 * EPSILON * largest * gain if unbounded else 0.0


# Values of Status, as plain integers for the kernels.
CONVERGED = 0
STALLED = 1
ITERATION_LIMIT = 2
UNBOUNDED = 3

# After so many intervals in which the violation did not halve, rounding is checked as the cause.
PATIENCE = 20
# A pair of vectors closer than this, relative to their length, cannot be told apart from rounding.
FLAT = 1e-12
# Shrinking pays only when a pass over all variables costs more than the bookkeeping.
SHRINK_FROM = 256
# A warm start with up to this many free variables begins with a Newton step ...
FEW_FREE = 1024
# ... and with more than this there are no Newton steps: they need a square array of this size.
MOST_FREE = 2048


@shared
@kernel
def smo(
    K: FloatArray,
    ridge: FloatArray,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    tol: float,
    max_iter: int,
) -> tuple[int, float, int]:
    """Improve a feasible alpha and its f = Qv in place until no pair gains more than tol.

    Returns the number of iterations, the remaining violation and the number of a Status. Takes a few
    passes over the variables when alpha is already optimal. f is not checked on entry: callers that
    update K and f over many calls use :func:`refresh` from time to time.
    """
    m, n = alpha.shape[0], f.shape[0]
    diagonal, active = diagonal_of(K, ridge), all_variables(m)
    n_free, growing = _survey(ridge, sample, upper, alpha)
    # Work is counted in visited variables; stable work is the work since the free set changed.
    stable_work, newton_work = np.inf if n_free <= FEW_FREE else 0.0, 0.0
    interval = max(min(m, 1000), 100)
    newton, blocked = False, False
    smallest, smallest_before = np.inf, np.inf
    status, n_iter = ITERATION_LIMIT, 0
    while True:
        i, top = first_of_pair(active, sample, sign, linear, upper, alpha, f)
        j, bottom = second_of_pair(K, diagonal, active, sample, sign, linear, upper, alpha, f, i, top)
        if top - bottom < tol or n_iter >= max_iter or status != ITERATION_LIMIT:
            if active.shape[0] == m:
                break
            active = all_variables(m)
            continue
        n_iter += 1
        smallest = min(smallest, top - bottom)
        if n_iter % (PATIENCE * interval) == 0:
            # A bound on the rounding error of f; the search ends when violations of this size remain.
            rounding = EPSILON * _largest_f(alpha, diagonal)
            if rounding > tol and smallest > 0.5 * smallest_before:
                status = STALLED
                continue
            smallest_before = smallest
        cost = n_free * (n_free * n_free / 200.0 + n / 30.0)
        growth = (growing and newton) or n_iter % interval == 0
        newton = stable_work >= cost or (blocked and newton_work + cost <= m * n_iter)
        newton = newton and 1 < n_free <= MOST_FREE
        if newton or growth:
            free, step, rounding = growth_direction(
                ridge, diagonal, sample, sign, linear, upper, alpha, growing
            )
            if newton:
                free, step = free_direction(K, ridge, sample, sign, linear, upper, alpha, f, n_free)
            curvature = free_step(K, ridge, sample, sign, linear, upper, alpha, f, free, step)
            if not newton and rounding > max(tol * curvature, 0.0):
                status = UNBOUNDED
            before, (n_free, growing) = n_free, _survey(ridge, sample, upper, alpha)
            blocked = newton and n_free < before
            newton_work += cost if newton else 0.0
            stable_work = stable_work if n_free == before and not newton else 0.0
        else:
            status, freed, bound = _pair_step(K, ridge, diagonal, sample, sign, linear, upper, alpha, f, i, j)
            n_free, blocked = n_free + freed - bound, False
            stable_work = stable_work + m if freed + bound == 0 else 0.0
        if n_iter % interval == 0 and m >= SHRINK_FROM:
            active = _unsettled(active, sample, sign, linear, upper, alpha, f, top, bottom)
    return n_iter, top - bottom, CONVERGED if top - bottom < tol else status


@kernel
def refresh(
    K: FloatArray, ridge: FloatArray, sample: Int64Array, sign: FloatArray, alpha: FloatArray, f: FloatArray
) -> None:
    """Recompute f = Qv from alpha, removing the rounding errors that updates accumulate."""
    n = f.shape[0]
    v = np.zeros(n)
    for i in range(alpha.shape[0]):
        v[sample[i]] += sign[i] * alpha[i]
    for k in range(n):
        f[k] = ridge[k] * v[k]
    for s in range(n):
        if v[s] != 0.0:
            row = K[s]
            for k in range(n):
                f[k] += v[s] * row[k]


@kernel
def diagonal_of(K: FloatArray, ridge: FloatArray) -> FloatArray:
    diagonal = np.empty(ridge.shape[0])
    for k in range(ridge.shape[0]):
        diagonal[k] = K[k, k] + ridge[k]
    return diagonal


@kernel
def all_variables(m: int) -> Int64Array:
    active = np.empty(m, np.int64)
    for i in range(m):
        active[i] = i
    return active


@kernel
def _largest_f(alpha: FloatArray, diagonal: FloatArray) -> float:
    """A bound on the terms of f. Written as loops, because NumPy's functions take a second to compile."""
    total, largest = 0.0, 0.0
    for i in range(alpha.shape[0]):
        total += alpha[i]
    for k in range(diagonal.shape[0]):
        largest = max(largest, diagonal[k])
    return total * largest


@kernel
def _survey(ridge: FloatArray, sample: Int64Array, upper: FloatArray, alpha: FloatArray) -> tuple[int, bool]:
    """The number of free variables, and whether any has neither an upper bound nor a ridge to stop it."""
    n_free = 0
    growing = False
    for i in range(alpha.shape[0]):
        if 0.0 < alpha[i] < upper[i]:
            n_free += 1
        growing = growing or (upper[i] == np.inf and ridge[sample[i]] == 0.0)
    return n_free, growing


@kernel
def first_of_pair(
    active: Int64Array,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
) -> tuple[int, float]:
    """The variable with the steepest decrease of the objective along its sign (-1 if none can move)."""
    top = -np.inf
    first = -1
    for k in active:
        if (alpha[k] < upper[k]) if sign[k] > 0.0 else (alpha[k] > 0.0):
            score = -(f[sample[k]] + sign[k] * linear[k])
            if score > top:
                top = score
                first = k
    return first, top


@kernel
def second_of_pair(
    K: FloatArray,
    diagonal: FloatArray,
    active: Int64Array,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    i: int,
    top: float,
) -> tuple[int, float]:
    """The partner of variable i with which the objective decreases most when both move to their joint optimum."""
    bottom = np.inf
    best = 0.0
    second = -1
    if i < 0:
        return second, bottom
    s = sample[i]
    row = K[s]
    for k in active:
        if (alpha[k] > 0.0) if sign[k] > 0.0 else (alpha[k] < upper[k]):
            t = sample[k]
            score = -(f[t] + sign[k] * linear[k])
            if score < bottom:
                bottom = score
            slope = top - score
            if slope > 0.0:
                gain = slope * slope / _pair_curvature(diagonal[s] + diagonal[t], row[t], s == t)
                if gain > best:
                    best = gain
                    second = k
    return second, bottom


@kernel
def _pair_curvature(squares: float, product: float, same_sample: bool) -> float:
    """Squared distance of two vectors, kept away from zero; exactly zero for two variables of one sample."""
    smallest = FLAT * squares + 1e-150
    distance_sq = squares - 2.0 * product
    return smallest if same_sample or distance_sq < smallest else distance_sq


@kernel
def _pair_step(
    K: FloatArray,
    ridge: FloatArray,
    diagonal: FloatArray,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    i: int,
    j: int,
) -> tuple[int, int, int]:
    """Move variable i along and j against their signs to the optimum or the first bound.

    Returns a status, how many of the two left a bound, and how many reached one.
    """
    s, t = sample[i], sample[j]
    curvature = _pair_curvature(diagonal[s] + diagonal[t], K[s, t], s == t)
    step = (f[t] + sign[j] * linear[j] - f[s] - sign[i] * linear[i]) / curvature
    room_i = upper[i] - alpha[i] if sign[i] > 0.0 else alpha[i]
    room_j = alpha[j] if sign[j] > 0.0 else upper[j] - alpha[j]
    room = min(room_i, room_j)
    if room == np.inf and diagonal[s] + diagonal[t] - 2.0 * K[s, t] < curvature:
        return UNBOUNDED, 0, 0
    if step < room and alpha[i] + step == alpha[i] and alpha[j] + step == alpha[j]:
        return STALLED, 0, 0
    freed = (alpha[i] <= 0.0 or alpha[i] >= upper[i]) + (alpha[j] <= 0.0 or alpha[j] >= upper[j])
    step = min(step, room)
    # Exactly at the bound, free of rounding.
    alpha[i] = alpha[i] + sign[i] * step if step < room_i else (upper[i] if sign[i] > 0.0 else 0.0)
    alpha[j] = alpha[j] - sign[j] * step if step < room_j else (0.0 if sign[j] > 0.0 else upper[j])
    bound = (alpha[i] <= 0.0 or alpha[i] >= upper[i]) + (alpha[j] <= 0.0 or alpha[j] >= upper[j])
    if s != t:
        row_i, row_j = K[s], K[t]
        for k in range(f.shape[0]):
            f[k] += step * (row_i[k] - row_j[k])
        f[s] += step * ridge[s]
        f[t] -= step * ridge[t]
    return ITERATION_LIMIT, freed, bound


@kernel
def _unsettled(
    active: Int64Array,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    f: FloatArray,
    top: float,
    bottom: float,
) -> Int64Array:
    """The active variables that are free or may yet leave their bound."""
    kept = np.empty(active.shape[0], np.int64)
    n_kept = 0
    for k in active:
        score = -(f[sample[k]] + sign[k] * linear[k])
        moves_along = (alpha[k] < upper[k]) if sign[k] > 0.0 else (alpha[k] > 0.0)
        moves_against = (alpha[k] > 0.0) if sign[k] > 0.0 else (alpha[k] < upper[k])
        if (moves_along and (moves_against or score >= bottom)) or (moves_against and score <= top):
            kept[n_kept] = k
            n_kept += 1
    return kept[:n_kept]
