r"""Detect that a dual problem without upper bounds has no solution.

When two classes cannot be separated, the hard-margin dual grows without limit along some
:math:`d \ge 0` with :math:`\mathrm{sign}^\top d = 0` and :math:`Kd = 0`. Pairwise steps grow
:math:`\alpha` along such a direction, so :math:`\alpha` itself, balanced between the signs, is the
direction tried. For any such d, the best multiple :math:`\theta d` has
:math:`\theta = -\mathrm{linear}^\top d / d^\top K d`: a lower bound on the size of the solution.
Rounding errors in :math:`f` are about :math:`\epsilon\,\theta \sum d\,\max K_{ii}`; when that
exceeds the tolerance, no solution can be verified in double precision, whether it exists or not.
"""

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel
from zeronorm.solvers.arrays import FloatArray, IntArray

ROUNDING = 2.0**-52


@kernel
def may_grow(ridge: FloatArray, sample: IntArray, upper: FloatArray) -> bool:
    """Whether some variable has neither an upper bound nor a ridge to stop it."""
    found = False
    for i in range(upper.shape[0]):
        found = found or (upper[i] == np.inf and ridge[sample[i]] == 0.0)
    return found


@kernel
def growth_direction(
    ridge: FloatArray, sample: IntArray, sign: FloatArray, upper: FloatArray, alpha: FloatArray
) -> tuple[IntArray, FloatArray]:
    """The positive variables without a bound, and their balanced direction in v (empty if one-sided)."""
    plus = 0.0
    minus = 0.0
    free = np.empty(alpha.shape[0], np.int64)
    n_free = 0
    for i in range(alpha.shape[0]):
        if alpha[i] > 0.0 and upper[i] == np.inf and ridge[sample[i]] == 0.0:
            free[n_free] = i
            n_free += 1
            if sign[i] > 0.0:
                plus += alpha[i]
            else:
                minus += alpha[i]
    if plus == 0.0 or minus == 0.0:
        n_free = 0
    step = np.empty(n_free)
    for a in range(n_free):
        step[a] = alpha[free[a]] / plus if sign[free[a]] > 0.0 else -alpha[free[a]] / minus
    return free[:n_free], step


@kernel
def outgrows(
    diagonal: FloatArray,
    sign: FloatArray,
    linear: FloatArray,
    free: IntArray,
    step: FloatArray,
    curvature: float,
    tol: float,
) -> bool:
    """Whether the best multiple of a direction is too large for its rounding errors to stay below tol."""
    largest = 0.0
    for s in range(diagonal.shape[0]):
        largest = max(largest, diagonal[s])
    gain = 0.0
    for a in range(free.shape[0]):
        gain -= sign[free[a]] * step[a] * linear[free[a]]
    # The direction sums to one for each sign, to two in all.
    return 2.0 * ROUNDING * largest * gain > tol * curvature
