"""A Newton step on the variables strictly inside their bounds.

Pairwise steps converge linearly. Once they have found which variables are free, one linear system gives
the solution. After a small change of the kernel matrix the free variables mostly stay the same, so a warm
start usually takes only this system.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from zeronorm._jit import kernel
from zeronorm._types import BoolArray, FloatArray, Int64Array, IntArray
from zeronorm.execution import one_thread_for_factors
from zeronorm.solvers.svm._box_dual import BoxDual

# Relative to the largest diagonal entry: keeps the factor finite when free vectors are linearly dependent.
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

    The balance sign'alpha = 0 is kept by eliminating the first free variable. The last column of the
    triangle holds the right-hand side.
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
    """Gaussian elimination and back substitution; step[0] makes the sum zero."""
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


# -- Block pivoting: all variables in the wrong set change sets at once --

# With fewer free variables pair steps are as fast.
PIVOT_FROM = 256
MOST_PIVOTS = 15
# The free vectors are linearly dependent where a diagonal entry of the factor is below this share of the largest.
DEPENDENT = 1e-6
WRONG_SIDE = 1e-9


Product = Callable[[FloatArray], FloatArray]

# Where products with the data are cheap, conjugate gradients are tried before a factorisation.
GRADIENTS = 500
GRADIENT_TOL = 1e-11


def pivot_free_set(
    K: FloatArray,
    problem: BoxDual,
    alpha: FloatArray,
    all_free: bool = False,
    product: Product | None = None,
) -> FloatArray | None:
    r"""The optimum of a box dual from a guess of its free variables, by block pivoting; None if that fails.

    Solves :math:`Q_{FF} v_F + b = t_F - Q_{FU} v_U` with :math:`1^\top v = 0` for the free variables F, with those at
    the upper bound U fixed. Then all free variables beyond a bound are fixed at it, all variables at a bound that
    would gain by moving become free, and so on until nothing changes. With a good guess that takes a few Cholesky
    factors; it may also cycle, and is then given up. ``all_free`` is the guess for wide data, otherwise the guess is
    taken from ``alpha``. For classification only, where each sample has one variable. ``product`` gives K times two
    columns where that is much cheaper than n² operations, as for sparse data.
    """
    n = problem.n_samples
    if n < PIVOT_FROM or problem.sign.size != n:  # regression has two variables for each sample
        return None
    in_play = problem.upper > 0.0
    free = in_play.copy() if all_free else (alpha > 0.0) & (alpha < problem.upper)
    at_upper = np.zeros(n, dtype=bool) if all_free else (alpha >= problem.upper) & in_play
    if np.count_nonzero(free) < PIVOT_FROM:
        return None
    # One thread is faster for factors and products of this size; products with the data keep their threads.
    with one_thread_for_factors(n) if product is None else nullcontext():
        return _pivoted(K, problem, in_play, free, at_upper, product)


def _pivoted(
    K: FloatArray,
    problem: BoxDual,
    in_play: BoolArray,
    free: BoolArray,
    at_upper: BoolArray,
    product: Product | None,
) -> FloatArray | None:
    """The optimum from a guess of the free variables and those at the upper bound."""
    fewest = problem.n_samples + 1
    for pivot in range(MOST_PIVOTS):
        found = _optimum_of(K, problem, free, at_upper, product)
        if found is None:
            return None
        v, gain = found
        alpha = problem.sign * v
        to_zero, to_upper = free & (alpha < 0.0), free & (alpha > problem.upper)
        freed = in_play & ((~free & ~at_upper & (gain > WRONG_SIDE)) | (at_upper & (gain < -WRONG_SIDE)))
        n_changes = int(to_zero.sum() + to_upper.sum() + freed.sum())
        if n_changes == 0:
            return np.where(free, alpha, np.where(at_upper, problem.upper, 0.0))
        if n_changes >= fewest and pivot > 2:
            return None
        fewest = min(fewest, n_changes)
        free = (free & ~to_zero & ~to_upper) | freed
        at_upper = (at_upper & ~freed) | to_upper
    return None


def _optimum_of(
    K: FloatArray, problem: BoxDual, free: BoolArray, at_upper: BoolArray, product: Product | None = None
) -> tuple[FloatArray, FloatArray] | None:
    """The coefficients of the samples for these sets, and minus the derivative of the objective in each variable."""
    chosen, fixed = np.flatnonzero(free), np.flatnonzero(at_upper)
    if chosen.size == 0:
        return None
    v = np.zeros(problem.n_samples)
    v[fixed] = problem.sign[fixed] * problem.upper[fixed]
    target = -problem.sign * problem.linear
    # Adding a constant to all entries changes only the bias, and keeps the system regular for centred data.
    shift = float(np.diagonal(K)[chosen].sum()) / chosen.size
    missing = target - K @ v if fixed.size else target
    right = np.column_stack([missing[chosen], np.ones(chosen.size)])
    ridge = problem.ridge[chosen]
    solved = None if product is None else _solve_by_gradients(product, len(K), chosen, ridge, shift, right)
    if solved is None:
        solved = _solve_by_factor(K, chosen, ridge, shift, right)
    if solved is None:
        return None
    bias = float((solved[:, 0].sum() + v.sum()) / solved[:, 1].sum())
    v[chosen] = solved[:, 0] - bias * solved[:, 1]
    f = K @ v + problem.ridge * v
    return v, problem.sign * (target - f - (bias + shift * float(v[chosen].sum())))


def _solve_by_factor(
    K: FloatArray, chosen: IntArray, ridge: FloatArray, shift: float, right: FloatArray
) -> FloatArray | None:
    """The solution of (K + shift + ridge) x = right on the chosen samples; None where they are linearly dependent."""
    system = np.empty((chosen.size, chosen.size))
    _fill_upper_triangle(K, chosen, ridge, shift, system)
    try:
        with one_thread_for_factors(chosen.size):
            factor = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    diagonal = np.diagonal(factor[0])
    if not diagonal.min() > DEPENDENT * diagonal.max():
        return None
    return np.asarray(cho_solve(factor, right, check_finite=False))


@kernel
def _fill_upper_triangle(
    K: FloatArray, chosen: IntArray, ridge: FloatArray, shift: float, system: FloatArray
) -> None:
    """Fill in K + shift + ridge on the chosen samples; a Cholesky factor needs one triangle only."""
    for a in range(chosen.size):
        row = K[chosen[a]]
        for b in range(a, chosen.size):
            system[a, b] = row[chosen[b]] + shift
        system[a, a] += ridge[a]


def _solve_by_gradients(
    product: Product, n: int, chosen: IntArray, ridge: FloatArray, shift: float, right: FloatArray
) -> FloatArray | None:
    """The same by conjugate gradients, one sequence for each column; None where they take too long."""
    solved, residual, direction = np.zeros(right.shape), right.copy(), right.copy()
    square = (residual**2).sum(axis=0)
    goal = GRADIENT_TOL**2 * square
    whole = np.zeros((n, right.shape[1]))
    for _ in range(GRADIENTS):
        if np.all(square <= goal):
            return solved
        whole[chosen] = direction
        image = product(whole)[chosen] + ridge[:, None] * direction + shift * direction.sum(axis=0)
        bend = (direction * image).sum(axis=0)
        moves = (square > goal) & (bend > 0.0)
        length = np.divide(square, bend, out=np.zeros(square.size), where=moves)
        solved += length * direction
        residual -= length * image
        before, square = square, (residual**2).sum(axis=0)
        direction = residual + np.divide(square, before, out=np.zeros(square.size), where=moves) * direction
    return None
