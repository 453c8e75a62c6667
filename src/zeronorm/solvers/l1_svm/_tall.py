"""The ℓ1 SVM for many samples: equal samples are merged, and those far from the kink of their loss are fixed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from zeronorm._types import BoolArray, FloatArray, Int64Array
from zeronorm.design._base import Design
from zeronorm.solvers._linear_program import LinearProgram
from zeronorm.solvers._status import Ended, Status
from zeronorm.solvers.l1_svm._program import COST_TOL, L1Svm
from zeronorm.solvers.svm._dual import per_sample


class Sides:
    r"""Signs s and targets h of the rows with which the loss is :math:`\max(0, h - s\,(w \cdot x + b))`.

    A sample with a class label has one row; a sample with a real target has two, for errors above and below.
    """

    def __init__(self, y: ArrayLike, epsilon: float | None) -> None:
        self.y = np.asarray(y, dtype=np.float64)
        self.epsilon = epsilon
        if epsilon is None:
            self.sides = self.y[None, :]
            self.targets = np.ones(self.y.size)
        else:
            self.sides = np.vstack([np.ones(self.y.size), -np.ones(self.y.size)])
            self.targets = np.concatenate([self.y - epsilon, -self.y - epsilon])

    def per_row(self, cost: FloatArray) -> FloatArray:
        """The cost of its sample for each row."""
        return np.tile(cost, len(self.sides))

    def dual_coef(self, alpha: FloatArray) -> FloatArray:
        """Multipliers of the samples from those of their rows."""
        return np.asarray((self.sides * alpha.reshape(self.sides.shape)).sum(axis=0))

    def slacks(self, f: FloatArray) -> FloatArray:
        """Losses of the samples from their decision values."""
        if self.epsilon is None:
            return np.asarray(np.maximum(0.0, 1.0 - self.y * f))
        return np.asarray(np.maximum(0.0, np.abs(self.y - f) - self.epsilon))


WINDOW = 20_000  # rows in a program; more where the side of the kink is still unknown
ROWS_OF_A_FEATURE = 500  # smallest number of rows of a feature in a program
SMALLER = 8  # a first program on this many times fewer rows gives approximate weights
ON_ITS_SIDE = 1e-9  # distance from the kink, relative to the largest target, that is rounding
TALL_BATCH = 50  # features added at a time, or half the number of features with a weight
STILL_GRADIENTS = (
    0.9  # of its penalty: a feature without a weight but with this gradient is kept for the next program
)
NO_GAIN = 1e-10  # relative decrease of the objective below which the added features were useless
LARGEST_GAP = 1e-6  # relative difference of the two objectives
ROOM = 0.02  # of its penalty, by which a gradient is to stay below it when multipliers are redistributed
MOST_SHARING_STEPS = 30
HOPELESS = 0.02  # relative decrease of the worst gradient in ten steps below which redistribution ends


@dataclass(frozen=True, eq=False)
class _Rows:
    """Signed rows with the sign last, dense or in CSR format, with targets and costs."""

    matrix: Any
    target: FloatArray
    cost: FloatArray

    def take(self, chosen: Int64Array) -> _Rows:
        return _Rows(self.matrix[chosen], self.target[chosen], self.cost[chosen])

    def short(self, weights: FloatArray) -> FloatArray:
        """Target minus decision value of each row."""
        return np.asarray(self.target - self.matrix @ weights)

    def merged(self) -> tuple[_Rows, Int64Array]:
        """The distinct rows with the sums of their costs, and for each row the index of its distinct row.

        Rows count as equal when their products with two random vectors are equal.
        """
        probes = np.random.default_rng(0).uniform(0.5, 1.0, size=(self.matrix.shape[1] + 1, 2))
        key = self.matrix @ probes[:-1] + np.multiply.outer(self.target, probes[-1])
        order = np.argsort(key[:, 0], kind="stable")
        is_new = np.append(True, (np.diff(key[order], axis=0) != 0.0).any(axis=1))
        group = np.empty(order.size, dtype=np.int64)
        group[order] = np.cumsum(is_new) - 1
        first = order[is_new]
        return _Rows(self.matrix[first], self.target[first], _sums(group, self.cost)), group

    def sampled(self, size: int) -> _Rows:
        """About ``size`` rows: those of large cost, and a sample of the others with increased costs."""
        is_heavy = self.cost * size > self.cost.sum()
        light = np.flatnonzero(~is_heavy)
        n_light = max(size - int(is_heavy.sum()), size // 2)
        part = np.random.default_rng(0).choice(light, n_light, replace=False)
        chosen = np.sort(np.concatenate([np.flatnonzero(is_heavy), part]))
        found = self.take(chosen)
        stands_for = float(self.cost[light].sum()) / max(float(self.cost[part].sum()), np.finfo(float).tiny)
        return replace(found, cost=np.where(is_heavy[chosen], 1.0, stands_for) * found.cost)


@dataclass(frozen=True, eq=False)
class _Vertex(Ended):
    """Weights (the bias last) and multipliers of the rows."""

    weights: FloatArray
    alpha: FloatArray
    n_iter: int
    status: Status


def _solve_rows(rows: _Rows, penalty: FloatArray) -> _Vertex:
    """Solve for all rows; with many rows, a sample of them first shows which are near the kink."""
    n = rows.target.size
    if n <= 2 * WINDOW:
        return _solve_program(rows, penalty, np.zeros(penalty.size + 1))
    start = _solve_rows(rows.sampled(max(WINDOW, n // SMALLER)), penalty)
    found = _solve_near(rows, penalty, start.weights)
    return replace(found, n_iter=found.n_iter + start.n_iter)


def _solve_near(rows: _Rows, penalty: FloatArray, weights: FloatArray) -> _Vertex:
    """Solve with the rows far from the kink at these weights fixed, as long as the solution leaves them far from it."""
    n, n_iter = rows.target.size, 0
    rounding = ON_ITS_SIDE * float(np.abs(rows.target).max())
    short, size = rows.short(weights), WINDOW
    is_inside, at_cost = _window(rows, np.abs(short), size), short > 0.0
    while True:
        inside = np.flatnonzero(is_inside)
        alpha = np.where(at_cost & ~is_inside, rows.cost, 0.0)
        found = _solve_program(rows.take(inside), penalty, np.asarray(rows.matrix.T @ alpha))
        n_iter += found.n_iter
        if not found.converged:
            if inside.size == n:
                return replace(found, n_iter=n_iter)
            size *= 2
            is_inside |= _window(rows, np.abs(short), size)
            continue
        alpha[inside] = found.alpha
        new_short = rows.short(found.weights)
        crossed = ~is_inside & np.where(at_cost, new_short < -rounding, new_short > rounding)
        n_crossed = int(crossed.sum())
        if n_crossed == 0:
            return _Vertex(found.weights, alpha, n_iter, found.status)
        if n_crossed <= WINDOW:
            is_inside |= crossed
            continue
        # Far from the solution: start again from the best point on the way, with more rows.
        weights = _best_between(rows, penalty, weights, found.weights)
        short, size = rows.short(weights), 2 * size
        is_inside, at_cost = _window(rows, np.abs(short), size), short > 0.0


def _best_between(rows: _Rows, penalty: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
    """The best of some points between ``start`` and ``end``."""
    points = [start + t * (end - start) for t in (0.0, 0.0625, 0.125, 0.25, 0.5, 1.0)]
    return min(points, key=lambda weights: _objective(rows, penalty, weights))


def _objective(rows: _Rows, penalty: FloatArray, weights: FloatArray) -> float:
    return float(penalty @ np.abs(weights[:-1]) + rows.cost @ np.maximum(rows.short(weights), 0.0))


def _sums(group: Int64Array, values: FloatArray) -> FloatArray:
    """The sum of the values of each group."""
    return np.asarray(np.bincount(group, values), dtype=np.float64)


def _nearest(distance: FloatArray, size: int) -> BoolArray:
    """Mask of the ``size`` smallest distances, ties included."""
    position = min(size, distance.size - 1)
    return np.asarray(distance <= np.partition(distance, position)[position])


def _window(rows: _Rows, distance: FloatArray, size: int) -> BoolArray:
    """The rows nearest to the kink, and for each feature the nearest of those in which it is not zero.

    The weight of a rare feature is known only roughly; with its rows fixed on a wrong side, no multipliers of the
    others would keep its gradient within its penalty.
    """
    inside = _nearest(distance, size)
    if sparse.issparse(rows.matrix):
        columns = sparse.csc_array(rows.matrix)
        quota = max(ROWS_OF_A_FEATURE, size // columns.shape[1])
        for j in range(columns.shape[1] - 1):
            own = columns.indices[columns.indptr[j] : columns.indptr[j + 1]]
            inside[own[_nearest(distance[own], quota)] if own.size > quota else own] = True
    return inside


def _solve_program(rows: _Rows, penalty: FloatArray, gradient: FloatArray) -> _Vertex:
    """Solve the dual program of these rows; ``gradient`` is that of further rows whose multipliers are fixed."""
    unit = max(float(rows.cost.mean()), np.finfo(float).tiny)  # the solver's tolerances are absolute
    most = np.append(penalty, 0.0)
    lower, upper = (-most - gradient) / unit, (most - gradient) / unit
    program = LinearProgram(-rows.target, rows.matrix.T, lower, upper, 0.0, rows.cost / unit, presolve=False)
    found = program.solve()
    weights = -found.row_duals
    weights[:-1][np.abs(weights[:-1]) <= np.finfo(float).eps * np.abs(weights[:-1]).max(initial=0.0)] = 0.0
    alpha = np.clip(unit * found.x, 0.0, rows.cost)
    return _Vertex(weights, alpha, found.n_iter, found.status)


class L1SvmTallProgram:
    r"""The same SVM for many samples, where few features have a weight.

    It solves the dual program, with a row for each feature in it. Features are added as in :class:`L1SvmProgram`.
    Samples that agree in these features are merged, as most do in sparse data. Only samples near the kink of their
    loss are in the program: the multipliers of the others stay at zero or at the cost as long as the solution leaves
    them on their side of the kink.

    How merged samples share their multiplier is not unique. They share it in proportion to their costs. Where features
    that violate the optimality conditions then prove useless, they share it such that as few features as possible
    violate them. Otherwise hundreds of features would have to be added before the solution, which stays the same, is
    proved optimal.
    """

    def __init__(
        self, design: Design, y: ArrayLike, *, C: float | ArrayLike, epsilon: float | None = None
    ) -> None:
        self.design = design
        self.sides = Sides(y, epsilon)
        self.y = self.sides.y
        self.cost = per_sample(C, self.y.size)
        self.pool: Int64Array = np.empty(0, dtype=np.int64)
        self.n_iter = 0
        self._is_useful: BoolArray = np.empty(0, dtype=bool)
        self._gradient = np.zeros(design.n_features)

    def set_cost(self, C: ArrayLike) -> None:
        """Change the cost C of the loss."""
        self.cost = per_sample(C, self.y.size)

    def solve(self, penalty: ArrayLike = 1.0) -> L1Svm:
        """Solve with this penalty of each feature."""
        penalties = np.array(np.broadcast_to(penalty, self.design.n_features), dtype=np.float64)
        cost = self.sides.per_row(self.cost)
        self.pool = self.pool[
            self._is_useful | (np.abs(self._gradient[self.pool]) >= STILL_GRADIENTS * penalties[self.pool])
        ]
        before = np.inf
        while True:
            matrix, shift = self._signed_rows()
            rows, group = _Rows(matrix, self.sides.targets, cost).merged()
            found = _solve_rows(rows, penalties[self.pool])
            self.n_iter += found.n_iter
            objective = _objective(rows, penalties[self.pool], found.weights)
            share = np.divide(found.alpha, rows.cost, out=np.zeros(rows.cost.size), where=rows.cost > 0.0)
            alpha = share[group] * cost
            self._is_useful = found.weights[:-1] != 0.0
            joining = self._violators(alpha, penalties)
            if joining.size and objective >= (1.0 - NO_GAIN) * before:
                is_between = (share > 0.0) & (share < 1.0)
                alpha = self._shared_anew(alpha, cost, np.where(is_between[group], group, -1), penalties)
                joining = self._violators(alpha, penalties)
            if not (joining.size and found.converged):
                return self._model(found, alpha, shift, objective)
            self.pool, before = np.concatenate([self.pool, joining]), objective

    def _signed_rows(self) -> tuple[Any, FloatArray]:
        """Signed rows of the features in the program, and the shift that centres these features."""
        stored, ones = self.design.stored_columns(self.pool), np.ones((self.y.size, 1))
        sides = self.sides.sides
        if stored is None:
            rows = np.column_stack([self.design.block(self.pool), ones])
            return np.vstack([side[:, None] * rows for side in sides]), np.zeros(self.pool.size)
        columns, shift = stored
        by_row = sparse.hstack([columns, ones], format="csr")
        per_value = np.diff(by_row.indptr)
        signed = [
            sparse.csr_array(
                (by_row.data * np.repeat(side, per_value), by_row.indices, by_row.indptr), by_row.shape
            )
            for side in sides
        ]
        return (signed[0] if len(signed) == 1 else sparse.vstack(signed, format="csr")), shift

    def _violators(self, alpha: FloatArray, penalties: FloatArray) -> Int64Array:
        """Features outside the program that could lower the objective, the largest violation first."""
        self._gradient = self.design.transpose_dot(self.sides.dual_coef(alpha))
        excess = np.abs(self._gradient) - penalties
        excess[self.pool] = -np.inf
        beyond = np.flatnonzero(excess > COST_TOL * np.where(penalties > 0.0, penalties, 1.0))
        most = max(TALL_BATCH, int(self._is_useful.sum()) // 2)
        return beyond[np.argsort(-excess[beyond], kind="stable")[:most]]

    def _shared_anew(
        self, alpha: FloatArray, cost: FloatArray, group: Int64Array, penalties: FloatArray
    ) -> FloatArray:
        """Multipliers with the same sums over equal rows and fewer violations; rows of group -1 keep theirs."""
        outside = np.ones(penalties.size, dtype=bool)
        outside[self.pool] = False
        size = np.bincount(group + 1)
        rows = np.flatnonzero((group >= 0) & (size[group + 1] > 1))
        if not (rows.size and outside.any()):
            return alpha
        shared = _Sharing(
            self.design.take_rows(rows % self.y.size),
            self.sides.sides.ravel()[rows],
            cost[rows],
            np.unique(group[rows], return_inverse=True)[1],
        )
        result = alpha.copy()
        result[rows] = shared.calling_for_fewer(alpha[rows], self._gradient, penalties, outside)
        return result

    def _model(self, found: _Vertex, alpha: FloatArray, shift: FloatArray, objective: float) -> L1Svm:
        weights = np.zeros(self.design.n_features)
        weights[self.pool] = found.weights[:-1]
        bias = float(found.weights[-1] + found.weights[:-1] @ shift)
        gap = objective - float(alpha @ self.sides.targets)
        proved = gap <= LARGEST_GAP * max(objective, np.finfo(float).tiny)
        return L1Svm(
            weights=weights,
            bias=bias,
            slack=self.sides.slacks(self.design.dot(weights) + bias),
            dual_coef=self.sides.dual_coef(alpha),
            design=self.design,
            objective=objective,
            n_iter=self.n_iter,
            status=found.status if proved or not found.converged else Status.FAILED,
        )


class _Sharing:
    """Multipliers of rows between zero and their costs, with a fixed sum over each group."""

    def __init__(self, design: Design, sign: FloatArray, cost: FloatArray, group: Int64Array) -> None:
        self.design, self.sign, self.cost, self.group = design, sign, cost, group
        self.size = np.bincount(group)

    def calling_for_fewer(
        self, alpha: FloatArray, gradient: FloatArray, penalty: FloatArray, outside: BoolArray
    ) -> FloatArray:
        """Multipliers for which no feature outside, or fewer of them, have a gradient above the penalty.

        Accelerated projected gradient descent on the sum of squares by which the gradients exceed a little less than
        the penalties.
        """
        unit = np.where(outside & (penalty > 0.0), penalty, np.inf)
        total = _sums(self.group, alpha)
        rest = gradient - self._gradient(alpha)
        step = 1.0 / self._curvature(unit)
        x = ahead = alpha
        momentum, worst = 1.0, []
        for n_steps in range(MOST_SHARING_STEPS):
            relative = (rest + self._gradient(ahead)) / unit
            worst.append(float(np.abs(relative).max()))
            if worst[-1] <= 1.0 and float(np.abs((rest + self._gradient(x)) / unit).max()) <= 1.0:
                break
            if n_steps >= 10 and worst[-1] > (1.0 - HOPELESS) * worst[-11]:
                break
            excess = np.sign(relative) * np.maximum(np.abs(relative) - (1.0 - ROOM), 0.0)
            slope = self.sign * self.design.dot(excess / unit)
            new = self._projected(ahead - step * slope, total)
            next_momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = new + (momentum - 1.0) / next_momentum * (new - x)
            x, momentum = new, next_momentum
        return x

    def _gradient(self, alpha: FloatArray) -> FloatArray:
        return self.design.transpose_dot(self.sign * alpha)

    def _curvature(self, unit: FloatArray) -> float:
        """The largest curvature of these squares along changes that keep the sums, by the power method."""
        direction, found = np.random.default_rng(0).normal(size=self.sign.size), 1.0
        for _ in range(8):
            direction -= (np.bincount(self.group, direction) / self.size)[self.group]
            direction /= max(float(np.linalg.norm(direction)), np.finfo(float).tiny)
            direction = self.sign * self.design.dot(self._gradient(direction) / unit**2)
            found = float(np.linalg.norm(direction))
        return 1.2 * max(found, np.finfo(float).tiny)

    def _projected(self, x: FloatArray, total: FloatArray) -> FloatArray:
        """The nearest multipliers with these sums: all of a group move by the same amount, up to their bounds."""
        low = np.full(total.size, float((x - self.cost).min()))
        high = np.full(total.size, float(x.max()))
        for _ in range(50):
            midpoint = 0.5 * (low + high)
            too_much = np.bincount(self.group, np.clip(x - midpoint[self.group], 0.0, self.cost)) > total
            low, high = np.where(too_much, midpoint, low), np.where(too_much, high, midpoint)
        return np.asarray(np.clip(x - (0.5 * (low + high))[self.group], 0.0, self.cost))
