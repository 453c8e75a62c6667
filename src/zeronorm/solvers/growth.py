r"""Let all variables grow together, and detect when nothing stops them.

With a large price C the solution is many pair steps away, but mostly a multiple of the variables found
early on: a line search along them saves the pair steps. Without upper bounds there may be no solution.
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
def growth_direction(
    ridge: FloatArray,
    diagonal: FloatArray,
    sample: IntArray,
    sign: FloatArray,
    linear: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    unbounded: bool,
) -> tuple[IntArray, FloatArray, float]:
    """The free variables and their own direction in v, balanced between the signs; empty if one-sided.

    Where some are unbounded, only those. The third result then is the rounding error to expect times the
    curvature along the direction.
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
    return free[:n_free], step, 2.0 * ROUNDING * largest * gain if unbounded else 0.0
