r"""A convex quadratic with an ℓ1 norm in a box, on a growing set of features.

.. math:: \min_a\ \tfrac12 \|F a\|^2 - q \cdot a + \lambda \|a\|_1, \qquad |a_k| \le C

With :math:`q = F^\top y` and no box this is the LASSO. Only features that violate the optimality conditions, and
those with a weight, are read as columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import brentq

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray

MAX_ROUNDS = 100  # growths of the working set
BATCH = 50  # violating features that join at a time
PULL_ROUNDING = 1e-13  # of the largest pull: a violation below this cannot be told from rounding


class Factor(Protocol):
    """The matrix F, one column per feature."""

    def block(self, columns: IntArray) -> FloatArray:
        """Columns of F."""

    def transpose_dot(self, v: FloatArray) -> FloatArray:
        """F'v."""


@dataclass(frozen=True, eq=False)
class BoxLassoSolution:
    """Weights of the features in ``columns``, F a, and the pull q - F'Fa of every feature."""

    columns: IntArray
    weights: FloatArray
    image: FloatArray
    pull: FloatArray
    converged: bool


@kernel
def descend_coordinates(Q, q, penalty, box, a, tol, max_iter):  # type: ignore[no-untyped-def]
    """Minimise a'Qa/2 - q'a + penalty |a|, |a| <= box, one coordinate at a time; ``a`` is start and result.

    Returns the number of sweeps, negative when the last still moved the slopes by more than ``tol``.
    """
    slope = q - np.dot(Q, a)
    for sweep in range(max_iter):
        largest = 0.0
        for k in range(a.shape[0]):
            bend = Q[k, k]
            if bend <= 0.0:
                continue
            target = slope[k] + bend * a[k]
            value = max(abs(target) - penalty, 0.0) / bend
            value = min(value, box)
            if target < 0.0:
                value = -value
            change = value - a[k]
            if change != 0.0:
                a[k] = value
                for j in range(a.shape[0]):
                    slope[j] -= change * Q[k, j]
                largest = max(largest, abs(change) * bend)
        if largest <= tol:
            return sweep + 1
    return -max_iter


def empty_solution(q: FloatArray, n_rows: int) -> BoxLassoSolution:
    """No feature has a weight."""
    return BoxLassoSolution(np.empty(0, dtype=np.intp), np.empty(0), np.zeros(n_rows), q, True)


def solve_box_lasso(
    factor: Factor,
    q: FloatArray,
    penalty: float,
    box: float,
    start: BoxLassoSolution,
    *,
    tol: float,
    max_iter: int,
) -> BoxLassoSolution:
    """The solution from ``start``; ``tol`` bounds the violation of the optimality conditions."""
    tol = max(tol, PULL_ROUNDING * float(np.max(np.abs(q), initial=0.0)))
    columns, weights = start.columns, start.weights
    pull = q - factor.transpose_dot(start.image) if columns.size else q
    converged, first = True, True
    for _ in range(MAX_ROUNDS):
        excess = np.abs(pull) - penalty
        excess[columns] = 0.0
        worst = np.argsort(-excess, kind="stable")[: BATCH + columns.size]
        joining = worst[excess[worst] > tol]
        if joining.size == 0 and not first:
            break
        first = False
        columns = np.concatenate([columns, joining])
        weights = np.append(weights, np.zeros(joining.size))
        F = factor.block(columns)
        sweeps = descend_coordinates(F.T @ F, q[columns], penalty, box, weights, 0.1 * tol, max_iter)
        converged = sweeps > 0
        kept = weights != 0.0
        columns, weights = columns[kept], weights[kept]
        image = F[:, kept] @ weights
        pull = q - factor.transpose_dot(image)
    else:
        converged = False
    return BoxLassoSolution(columns, weights, image, pull, converged)


# -- From the penalty to the constraint: the penalty at which the norm of the weights meets a bound --


BOUND_TOL = 1e-12  # relative accuracy of the penalty


def penalty_at_bound(norm: Callable[[float], float], high: float, low: float, bound: float) -> float:
    """The penalty between ``low`` and ``high`` with this norm; the norm falls as the penalty grows."""
    if norm(low) <= bound:
        return low
    return float(
        np.exp(
            brentq(lambda log: norm(float(np.exp(log))) - bound, np.log(low), np.log(high), xtol=BOUND_TOL)
        )
    )
