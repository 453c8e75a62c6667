r"""A convex quadratic with an ℓ1 norm in a box, on a growing set of features.

.. math:: \min_a\ \tfrac12 \|F a\|^2 - q \cdot a + \lambda \|a\|_1, \qquad |a_k| \le C

With :math:`q = F^\top y` and no box this is the LASSO. Only features that violate the optimality conditions, and
those with a weight, are read as columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray
from zeronorm.design.base import Design

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


# -- Which features a vector pulls most, known from few readings of the data --
#
# A method with a sparse solution asks again and again for the features with a large :math:`|x_k \cdot v|`, each
# time for another v that is close to the last ones. With orthonormal vectors q whose products with all features are
# known,
#
# .. math:: v = \sum_j a_j q_j + d, \qquad
#     \Bigl| x_k \cdot v - \sum_j a_j\, x_k \cdot q_j \Bigr| \le \|x_k\|\,\|d\|,
#
# which leaves few features in doubt. Their columns are read and the answer is exact. Only when too many are in
# doubt all data are read, for the direction of d, which then joins the q.

SMALL_DATA = 1 << 21  # entries: all of them are read at once
MOST_DIRECTIONS = 12  # kept, each as one float32 for every feature
MOST_IN_DOUBT = 1 / 256  # of the features: to read more of them one by one takes longer than to read all
NORM_ROUNDING = 1.0 + 1e-6
TILE = 2048


class PullBounds:
    """Products of the features of one design with a sequence of vectors."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.n_readings = 0
        self._norms = np.empty(0)
        self._directions = np.empty((0, design.n_samples))
        self._cosines = np.empty((0, design.n_features), dtype=np.float32)

    def beyond(self, v: FloatArray, limit: FloatArray, most: int) -> IntArray:
        """Features with |x·v| above their limit, the largest excess first; no more than ``most`` of them."""
        if self._is_small:
            return _worst(np.arange(limit.size), self._all(v) - limit, most)
        doubtful = self._in_doubt(v, limit)
        if doubtful.size > self._most_in_doubt:
            self._read(v)
            doubtful = self._in_doubt(v, limit)
        if doubtful.size > max(most, self._most_in_doubt):
            excess = self._estimate(v)[doubtful] * self.norms[doubtful] - limit[doubtful]
            doubtful = np.sort(doubtful[np.argpartition(-excess, most)[:most]])
        return _worst(doubtful, self._exact(v, doubtful) - limit[doubtful], most)

    @property
    def norms(self) -> FloatArray:
        """Euclidean norm of each feature."""
        if self._norms.size == 0:
            self._norms = np.sqrt(self.design.squared_norms())
        return self._norms

    @property
    def _is_small(self) -> bool:
        return self.design.n_samples * self.design.n_features <= SMALL_DATA

    @property
    def _most_in_doubt(self) -> int:
        return 64 + int(MOST_IN_DOUBT * self.design.n_features)

    # -- what is known without reading the data --

    def _split(self, v: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Shares of the known directions, what is left, and its length."""
        shares = self._directions @ v
        rest = v - shares @ self._directions
        again = self._directions @ rest  # what rounding left of them
        rest -= again @ self._directions
        return shares + again, rest, float(np.linalg.norm(rest))

    def _estimate(self, v: FloatArray) -> FloatArray:
        """|x·v| / |x| of all features as far as the known directions go."""
        cosine: FloatArray = np.abs(self._split(v)[0].astype(np.float32) @ self._cosines)
        return cosine

    def _in_doubt(self, v: FloatArray, limit: FloatArray) -> IntArray:
        """Features whose |x·v| may be above their limit."""
        shares, _, distance = self._split(v)
        m = len(shares)
        rounding = float(np.finfo(np.float32).eps) * (m + 2) * np.sqrt(m) * float(np.linalg.norm(shares))
        doubt = NORM_ROUNDING * (distance + rounding)
        found = np.empty(limit.size, dtype=np.intp)
        count = may_be_beyond(shares.astype(np.float32), self._cosines, self.norms, doubt, limit, found)
        return found[:count]

    # -- readings --

    def _all(self, v: FloatArray) -> FloatArray:
        self.n_readings += 1
        return np.abs(self.design.transpose_dot(v))

    def _exact(self, v: FloatArray, columns: IntArray) -> FloatArray:
        return np.abs(v @ self.design.block(columns))

    def _read(self, v: FloatArray) -> None:
        """Read all data for what is new in v; the direction of which v has least makes room."""
        shares, rest, distance = self._split(v)
        if len(shares) >= MOST_DIRECTIONS:
            kept = np.arange(len(shares)) != np.argmin(np.abs(shares))
            self._directions, self._cosines = self._directions[kept], self._cosines[kept]
            _, rest, distance = self._split(v)
        if distance > 0.0:
            direction = rest / distance
            products = self.design.transpose_dot(direction)
            self.n_readings += 1
            cosines = np.divide(products, self.norms, out=np.zeros_like(products), where=self.norms > 0.0)
            self._directions = np.vstack([self._directions, direction])
            self._cosines = np.vstack([self._cosines, cosines.astype(np.float32)])


@kernel
def may_be_beyond(
    shares: NDArray[Any],
    cosines: NDArray[Any],
    norms: FloatArray,
    doubt: float,
    limit: FloatArray,
    found: IntArray,
) -> int:
    """Write the features whose product may be above their limit to ``found``; returns how many there are."""
    count = 0
    estimate = np.empty(TILE, dtype=np.float32)
    for start in range(0, norms.shape[0], TILE):
        width = min(TILE, norms.shape[0] - start)
        estimate[:] = 0.0
        for m in range(shares.shape[0]):
            share, row = shares[m], cosines[m, start : start + width]
            for j in range(width):
                estimate[j] += share * row[j]
        for j in range(width):
            if (abs(np.float64(estimate[j])) + doubt) * norms[start + j] > limit[start + j]:
                found[count] = start + j
                count += 1
    return count


def _worst(columns: IntArray, excess: FloatArray, most: int) -> IntArray:
    above = np.flatnonzero(excess > 0.0)
    return columns[above[np.lexsort((above, -excess[above]))[:most]]]
