r"""A convex quadratic with an ℓ1 norm in a box, on a growing set of features.

.. math:: \min_a\ \tfrac12 \|F a\|^2 - q \cdot a + \lambda \|a\|_1, \qquad |a_k| \le C

With :math:`q = F^\top y` and no box this is the LASSO. Only the columns of features that have a weight or violate the
optimality conditions are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.linalg.lapack import dpotrs, dtrtrs
from scipy.optimize import brentq

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray
from zeronorm.design._base import SMALL_COPY_BYTES, Design

MAX_ROUNDS = 100  # enlargements of the working set
BATCH = 50  # violating features added at a time
LARGEST_DENSE_COPY = 1 << 21  # entries of data up to which a dense copy is made
ROUNDING = 1e-13  # of a weight, relative to the largest
GRADIENT_ROUNDING = 1e-13  # of the largest gradient: a smaller violation cannot be told from rounding


class Factor(Protocol):
    """The matrix F, one column per feature."""

    def block(self, columns: IntArray | slice, /) -> FloatArray:
        """These columns of F as an array."""

    def transpose_dot(self, v: FloatArray, /) -> FloatArray:
        """F'v."""


@dataclass(frozen=True, eq=False)
class BoxLassoSolution:
    """Weights of the features in ``columns``, F a, and the negative gradient q - F'Fa of every feature."""

    columns: IntArray
    weights: FloatArray
    image: FloatArray
    gradient: FloatArray
    converged: bool


@kernel
def descend_coordinates(Q, q, penalty, box, a, tol, max_iter):  # type: ignore[no-untyped-def]
    """Minimise a'Qa/2 - q'a + penalty |a|, |a| <= box, one coordinate at a time; ``a`` is start and result.

    Returns the number of epochs, negative when the last one still changed a derivative by more than ``tol``.
    """
    slope = q - np.dot(Q, a)
    for epoch in range(max_iter):
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
            return epoch + 1
    return -max_iter


@kernel
def descend_sparse_columns(data, rows, starts, weight, mean, response, penalty, a, tol, max_iter):  # type: ignore[no-untyped-def]
    """Coordinate descent for errors weighted by ``weight`` and centred sparse columns, without their Gram matrix.

    ``mean`` holds the weighted means of the columns; the response has mean zero. Each epoch is one pass over the stored
    values.
    """
    p, total = a.shape[0], 0.0
    for i in range(weight.shape[0]):
        total += weight[i]
    bend, left, offset = np.zeros(p), response.copy(), 0.0
    for k in range(p):
        for entry in range(starts[k], starts[k + 1]):
            bend[k] += weight[rows[entry]] * data[entry] ** 2
            left[rows[entry]] -= a[k] * data[entry]
        bend[k] -= total * mean[k] ** 2
        offset += mean[k] * a[k]
    for epoch in range(max_iter):
        largest = 0.0
        for k in range(p):
            if bend[k] <= 0.0:
                continue
            gradient = offset * total * mean[k] + bend[k] * a[k]
            for entry in range(starts[k], starts[k + 1]):
                gradient += weight[rows[entry]] * data[entry] * left[rows[entry]]
            value = max(abs(gradient) - penalty[k], 0.0) / bend[k]
            change = (value if gradient > 0.0 else -value) - a[k]
            if change != 0.0:
                a[k] += change
                offset += change * mean[k]
                for entry in range(starts[k], starts[k + 1]):
                    left[rows[entry]] -= change * data[entry]
                largest = max(largest, abs(change) * bend[k])
        if largest <= tol:
            return epoch + 1
    return -max_iter


def empty_solution(q: FloatArray, n_rows: int) -> BoxLassoSolution:
    """The solution in which no feature has a weight."""
    return BoxLassoSolution(np.empty(0, dtype=np.intp), np.empty(0), np.zeros(n_rows), q, True)


def most_violating(solution: BoxLassoSolution, penalty: float, tol: float) -> IntArray:
    """At most ``BATCH`` features without a weight whose absolute gradient exceeds the penalty, the largest first."""
    excess = np.abs(solution.gradient) - penalty
    excess[solution.columns] = 0.0
    worst = np.argsort(-excess, kind="stable")[: BATCH + solution.columns.size]
    return np.asarray(worst[excess[worst] > tol])


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
    """Solve the problem from ``start``; ``tol`` bounds the violation of the optimality conditions."""
    tol = max(tol, GRADIENT_ROUNDING * float(np.max(np.abs(q), initial=0.0)))
    found = replace(start, gradient=q - factor.transpose_dot(start.image) if start.columns.size else q)
    for n_rounds in range(MAX_ROUNDS):
        joining = most_violating(found, penalty, tol)
        if n_rounds and joining.size == 0:
            return found
        columns = np.concatenate([found.columns, joining])
        weights = np.append(found.weights, np.zeros(joining.size))
        F = factor.block(columns)
        n_epochs = descend_coordinates(F.T @ F, q[columns], penalty, box, weights, 0.1 * tol, max_iter)
        kept = weights != 0.0
        image = F[:, kept] @ weights[kept]
        gradient = q - factor.transpose_dot(image)
        found = BoxLassoSolution(columns[kept], weights[kept], image, gradient, n_epochs > 0)
    return replace(found, converged=False)


# -- From the penalty to the constraint: the penalty at which the norm of the weights meets a bound --


BOUND_TOL = 1e-12  # relative accuracy of the penalty


def penalty_at_bound(norm: Callable[[float], float], high: float, low: float, bound: float) -> float:
    """The penalty between ``low`` and ``high`` at which the norm is ``bound``; the norm decreases in the penalty."""
    if norm(low) <= bound:
        return low
    return float(
        np.exp(
            brentq(lambda log: norm(float(np.exp(log))) - bound, np.log(low), np.log(high), xtol=BOUND_TOL)
        )
    )


# -- The exact path: between its breakpoints the weights are linear in the penalty --
#
# With g the negative gradient, the active features A and the signs s of g on A (Osborne, Presnell and Turlach 2000;
# Efron et al. 2004)
#
# .. math:: w_A(\lambda) = (F_A^\top F_A)^{-1} (q_A - \lambda s), \qquad
#     g(\lambda) = q - F^\top F_A w_A(\lambda).
#
# Each linear piece of the path takes one pass over the data, for the derivative of g in the penalty. Now and then g
# itself is recomputed, so that rounding errors do not accumulate.

PIECES_UNTIL_FRESH = 16
TIED = 1e-12  # difference of two penalties, relative, that is rounding
PATH_END = 1e-11  # of the largest penalty: below this, a feature that enters cannot be told from rounding
DEPENDENT = (
    1e-10  # of the squared norm of a column: a smaller part outside the span of the active ones is rounding
)
NEARLY_DEPENDENT = 1e-2  # the same, for a part so small that the solution needs a correction
FREE, BARRED, NOT_UPWARDS, NOT_DOWNWARDS = 0, 1, 2, 3  # the signs with which a feature may enter


class LassoFactor(Factor, Protocol):
    """The matrix F with products in both directions, such as a `Design`."""

    @property
    def is_sparse(self) -> bool:
        """Whether the columns are stored sparse, so that products should use the stored values."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    def dot(self, w: FloatArray, /) -> FloatArray:
        """F w."""

    def take(self, columns: IntArray, /) -> LassoFactor:
        """F restricted to these columns."""


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """A design with each row multiplied by a number."""

    design: Design
    factor: FloatArray

    @property
    def is_sparse(self) -> bool:
        return self.design.is_sparse

    @property
    def shape(self) -> tuple[int, int]:
        return self.design.shape

    def take(self, columns: IntArray) -> WeightedRows:
        return WeightedRows(self.design.take(columns), self.factor)

    def block(self, columns: IntArray | slice) -> FloatArray:
        return np.asarray(self.design.block(columns) * self.factor[:, None])

    def dot(self, w: FloatArray) -> FloatArray:
        return np.asarray((self.design.dot(w).T * self.factor).T)

    def transpose_dot(self, v: FloatArray) -> FloatArray:
        return self.design.transpose_dot((v.T * self.factor).T)


@dataclass(frozen=True, eq=False)
class LassoStep:
    """The solution at one penalty: the features with a weight, in order, and their weights."""

    penalty: float
    columns: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, penalty: float, columns: IntArray, weights: FloatArray, rounding: float = 0.0) -> LassoStep:
        kept = np.flatnonzero(np.abs(weights) > rounding * np.abs(weights).max(initial=0.0))
        kept = kept[np.argsort(columns[kept])]
        return cls(penalty, columns[kept], weights[kept])


class ActiveFeatures:
    """The features with a weight, with a triangular factor of their Gram matrix."""

    def __init__(self, factor: LassoFactor, q: FloatArray) -> None:
        self.factor, self.q = factor, q
        self.columns: IntArray = np.empty(0, dtype=np.intp)
        self.signs = np.empty(0)
        self._lower = np.empty((0, 0))
        self._products = np.empty((0, 0))
        # A copy of the active columns, one per row, while it is small.
        self._kept: FloatArray | None = None if factor.is_sparse else np.empty((0, factor.shape[0]))

    def enter(self, feature: int, sign: float) -> bool:
        """Add a feature; returns False where it depends linearly on the others."""
        m = self.columns.size
        column = self.factor.block(np.asarray([feature]))[:, 0]
        products = np.append(self._gradient_on(column), column @ column)
        # Here and below LAPACK is called directly: SciPy's checks would take longer than the work.
        side = dtrtrs(self._lower.T, products[:m], lower=0, trans=1)[0] if m else np.empty(0)
        rest = products[m] - side @ side
        if m + 1 > self.factor.shape[0] or rest <= DEPENDENT * products[m]:
            return False
        self._lower = _bordered(self._lower, np.append(side, np.sqrt(rest)))
        self._products = _bordered(self._products, products)
        self._products[:m, m] = products[:m]
        if self._kept is not None:
            small = 8 * column.size * (m + 1) <= SMALL_COPY_BYTES
            self._kept = np.vstack([self._kept, column]) if small else None
        self.columns, self.signs = np.append(self.columns, feature), np.append(self.signs, sign)
        return True

    def leave(self, position: int) -> None:
        """Remove the feature at this position; the rows of the factor above it stay the same."""
        stay = np.arange(self.columns.size) != position
        self.columns, self.signs = self.columns[stay], self.signs[stay]
        self._products = self._products[np.ix_(stay, stay)]
        self._kept = None if self._kept is None else self._kept[stay]
        lower = np.zeros(self._products.shape)
        lower[:position, :position] = self._lower[:position, :position]
        side = lower[position:, :position] = self._lower[position + 1 :, :position]
        if len(side):
            lower[position:, position:] = cholesky(
                self._products[position:, position:] - side @ side.T, lower=True
            )
        self._lower = lower

    def lines(self) -> tuple[FloatArray, FloatArray]:
        """Intercept and slope of the weights as a function of the penalty, in two columns, and F times both."""
        right = np.column_stack([self.q[self.columns], self.signs])
        found = dpotrs(self._lower, right, lower=1)[0]
        images = self._image_of(found)
        if np.any(np.diagonal(self._lower) ** 2 < NEARLY_DEPENDENT * np.diagonal(self._products)):
            # The Gram matrix loses half of the digits; one step of refinement restores them.
            missing = right - self._gradient_on(images)
            found = found + dpotrs(self._lower, missing, lower=1)[0]
            images = self._image_of(found)
        return found, images

    def _gradient_on(self, vectors: FloatArray) -> FloatArray:
        """Products of the active features with these vectors."""
        kept = self._kept
        return self.factor.take(self.columns).transpose_dot(vectors) if kept is None else kept @ vectors

    def _image_of(self, weights: FloatArray) -> FloatArray:
        """The active features times these weights."""
        kept = self._kept
        return self.factor.take(self.columns).dot(weights) if kept is None else kept.T @ weights


def _bordered(matrix: FloatArray, row: FloatArray) -> FloatArray:
    """The matrix with one more row, and a column of zeros above its last entry."""
    m = len(matrix)
    grown = np.zeros((m + 1, m + 1))
    grown[:m, :m] = matrix
    grown[m] = row
    return grown


def follow_lasso_path(
    factor: LassoFactor, q: FloatArray, *, removes: bool = True, most_steps: int, most_norm: float = np.inf
) -> list[LassoStep]:
    """The solution at every breakpoint, from the penalty at which the first feature enters down to zero.

    Without ``removes``, features stay once they have entered: least angle regression. The path ends early after
    ``most_steps`` or where the sum of absolute weights is at least ``most_norm``. A feature that depends linearly on
    the active ones does not enter while they are active.
    """
    largest = float(np.abs(q).max(initial=0.0))
    steps = [LassoStep(largest, np.empty(0, dtype=np.intp), np.empty(0))]
    if largest == 0.0:
        return steps
    path = _Following(factor, q, largest)
    while path.penalty > 0.0 and path.active.columns.size and len(steps) <= most_steps:
        before = path.penalty
        step = path.follow_piece(removes)
        if path.penalty < before:
            steps.append(step)
        if np.abs(step.weights).sum() >= most_norm:
            break
    return steps


class _Following:
    """The current point of the path: a penalty, the features with a weight, and the gradients of all features."""

    def __init__(self, factor: LassoFactor, q: FloatArray, largest: float) -> None:
        self.factor, self.q, self.penalty = factor, q, largest
        self.end = PATH_END * largest
        self.active, self.gradient, self.n_pieces = ActiveFeatures(factor, q), q.copy(), 0
        self.state = np.zeros(q.size, dtype=np.int8)
        first = int(np.argmax(np.abs(q)))
        self.state[first] = BARRED
        self.active.enter(first, float(np.sign(q[first])))

    def follow_piece(self, removes: bool) -> LassoStep:
        """Go to the next penalty at which a feature enters or leaves; returns the solution there."""
        columns, signs = self.active.columns, self.active.signs
        lines, images = self.active.lines()
        slope = self.factor.transpose_dot(np.ascontiguousarray(images[:, 1]))
        self.n_pieces += 1
        if self.n_pieces % PIECES_UNTIL_FRESH == 0:
            self.gradient = self.q - self.factor.transpose_dot(images[:, 0] - self.penalty * images[:, 1])
        constant = self.gradient - self.penalty * slope
        at, position = _next_exit(lines, signs, self.penalty) if removes else (0.0, -1)
        entry = self._enter_next(constant, slope, max(at, self.end))
        leaves = entry is None and at > self.end
        lower = entry if entry is not None else at if leaves else 0.0
        weights = lines[:, 0] - lower * lines[:, 1]
        if lower < self.penalty * (1.0 - TIED):
            self.state[self.state >= NOT_UPWARDS] = FREE
            self.penalty = lower
        self.gradient = constant + self.penalty * slope
        if leaves:
            weights[position] = 0.0
            self._let_go(position)
        return LassoStep.of(self.penalty, columns, weights, ROUNDING)

    def _enter_next(self, constant: FloatArray, slope: FloatArray, above: float) -> float | None:
        """Add the feature whose gradient reaches the penalty next; returns that penalty, None if not above a limit."""
        while True:
            at, feature, sign = next_entry(constant, slope, self.penalty, self.state)
            if feature < 0 or at <= above:
                return None
            self.state[feature] = BARRED
            if self.active.enter(feature, sign):
                return float(at)

    def _let_go(self, position: int) -> None:
        """Remove a feature; those that depended on it may enter again, and it may not return with the same sign."""
        feature, sign = self.active.columns[position], self.active.signs[position]
        self.active.leave(position)
        self.state[self.state == BARRED] = FREE
        self.state[self.active.columns] = BARRED
        self.state[feature] = NOT_UPWARDS if sign > 0 else NOT_DOWNWARDS


def _next_exit(lines: FloatArray, signs: FloatArray, penalty: float) -> tuple[float, int]:
    """The penalty at which the next weight reaches zero, and the position of this weight."""
    shrinks = np.flatnonzero(signs * lines[:, 1] < 0.0)
    if not shrinks.size:
        return 0.0, -1
    at = np.minimum(lines[shrinks, 0] / lines[shrinks, 1], penalty)
    return float(at.max()), int(shrinks[np.argmax(at)])


@kernel
def next_entry(constant: FloatArray, slope: FloatArray, penalty: float, state: NDArray[np.int8]) -> Any:
    """The next penalty at which constant + penalty * slope equals ± the penalty, with the feature and the sign."""
    best, feature, sign = 0.0, -1, 0.0
    for k in range(constant.shape[0]):
        if state[k] == BARRED:
            continue
        if slope[k] < 1.0 and state[k] != NOT_UPWARDS:
            at = min(constant[k] / (1.0 - slope[k]), penalty)
            if at > best:
                best, feature, sign = at, k, 1.0
        if slope[k] > -1.0 and state[k] != NOT_DOWNWARDS:
            at = min(-constant[k] / (1.0 + slope[k]), penalty)
            if at > best:
                best, feature, sign = at, k, -1.0
    return best, feature, sign
