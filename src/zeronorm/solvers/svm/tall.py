"""Linear support vector machines on tall data, without the n by n kernel matrix.

Squared losses are solved in the primal by Newton's method, the others by the interior-point method
of :mod:`zeronorm.solvers.svm.tall`; both need only products with the data and one p by p
system an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from zeronorm._types import FloatArray
from zeronorm.design.base import Design
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.box_dual import BoxDual
from zeronorm.solvers.svm.smo import EPSILON


@dataclass(frozen=True, eq=False)
class TallSolution:
    """Weights and bias of a linear machine, with dual variables that certify them."""

    problem: BoxDual
    weights: FloatArray
    bias: float
    alpha: FloatArray
    primal_objective: float
    objective: float
    n_iter: int
    status: Status

    @cached_property
    def dual_coef(self) -> FloatArray:
        """The coefficients v of the samples; the weights are X'v up to the gap."""
        return self.problem.signed_sum(self.alpha)

    @property
    def gap(self) -> float:
        """Primal minus dual objective, never negative."""
        return max(self.primal_objective - self.objective, 0.0)

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.status.converged


def certified(
    design: Design,
    problem: BoxDual,
    weights: FloatArray,
    bias: float,
    alpha: FloatArray,
    n_iter: int,
    status: Status,
) -> TallSolution:
    """A solution with both objectives, after making it feasible to the last digit."""
    alpha = problem.feasible(problem.without_overlap(alpha))
    dual_weights = design.transpose_dot(problem.signed_sum(alpha))
    ridge_part = problem.ridge[problem.sample] @ alpha**2
    dual = -problem.linear @ alpha - 0.5 * (dual_weights @ dual_weights + ridge_part)
    decision = design.dot(weights) + bias
    if problem.hard.any():
        reached = (problem.sign * decision[problem.sample])[problem.hard].min()
        scale = (1.0 + 4.0 * np.finfo(float).eps) / reached if 0.0 < reached < 1.0 else 1.0
        weights, bias, decision = scale * weights, scale * bias, scale * decision
    primal = 0.5 * weights @ weights + problem.loss(decision)
    return TallSolution(problem, weights, bias, alpha, float(primal), float(dual), n_iter, status)


def solve_squared_loss(
    design: Design,
    problem: BoxDual,
    start: tuple[FloatArray, float] | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> TallSolution:
    r"""Minimise :math:`\tfrac12\|w\|^2 + \tfrac12\sum_i C_i \max(0, r_i)^2` by a semismooth Newton method.

    The loss is quadratic as long as the same residuals r are positive, so that with an exact line
    search the method ends after a finite number of steps.
    """
    price = np.divide(1.0, problem.ridge, out=np.zeros(problem.n_samples), where=problem.ridge > 0.0)
    price = price[problem.sample]
    weights, bias = (np.zeros(design.shape[1]), 0.0) if start is None else start
    decision = design.dot(weights) + bias
    status = Status.ITERATION_LIMIT
    n_iter = 0
    while n_iter < max_iter and status is Status.ITERATION_LIMIT:
        n_iter += 1
        excess = np.maximum(problem.residual(decision), 0.0)
        pull = problem.signed_sum(price * excess)
        curvature = problem.sum_by_sample(price * (excess > 0.0))
        gradient = np.append(weights - design.transpose_dot(pull), -pull.sum())
        step = cho_solve(cho_factor(bordered(design, curvature)), -gradient)
        change = design.dot(step[:-1]) + step[-1]
        # If the full step leaves the same residuals positive, the quadratic model was exact: it ends the search.
        exact = np.array_equal(problem.residual(decision + change) > 0.0, excess > 0.0)
        length = 1.0 if exact else _exact_line_search(problem, price, weights, step[:-1], decision, change)
        weights = weights + length * step[:-1]
        bias += length * step[-1]
        decision = decision + length * change
        objective = 0.5 * weights @ weights + problem.loss(decision)
        if exact or -gradient @ step <= (0.1 * tol) ** 2 * objective or length == 0.0:
            status = Status.CONVERGED
    alpha = price * np.maximum(problem.residual(decision), 0.0)
    return certified(design, problem, weights, float(bias), alpha, n_iter, status)


def bordered(design: Design, curvature: FloatArray) -> FloatArray:
    """The Hessian in weights and bias: [[I + X'DX, X'd], [d'X, sum d]]."""
    p = design.shape[1]
    hessian = np.empty((p + 1, p + 1))
    hessian[:p, :p] = design.sandwich(curvature)
    hessian[np.arange(p), np.arange(p)] += 1.0
    hessian[p, :p] = hessian[:p, p] = design.transpose_dot(curvature)
    # Without any sample in play the bias does not matter; keep the system regular.
    hessian[p, p] = curvature.sum() or 1.0
    return hessian


def _exact_line_search(
    problem: BoxDual,
    price: FloatArray,
    weights: FloatArray,
    step: FloatArray,
    decision: FloatArray,
    change: FloatArray,
) -> float:
    """The zero of the slope along the step, which rises piecewise linearly, by a safeguarded Newton method."""
    straight, quadratic = float(weights @ step), float(step @ step)
    change_of = problem.sign * change[problem.sample]
    residual = problem.residual(decision)
    low, high = 0.0, np.inf
    length = 1.0
    for _ in range(100):
        excess = np.maximum(residual - length * change_of, 0.0)
        slope = straight + length * quadratic - float((price * excess) @ change_of)
        rise = quadratic + float(np.sum(price * change_of**2 * (excess > 0.0)))
        if abs(slope) <= 1e-13 * length * rise or rise == 0.0:
            break
        low, high = (length, high) if slope < 0.0 else (low, length)
        length -= slope / rise
        if not low < length < high:
            length = 0.5 * (low + high) if high < np.inf else 2.0 * low
    return length


# -- A primal-dual interior-point method for linear machines with piecewise linear loss --
#
# With slacks the primal of :mod:`zeronorm.solvers.svm.box_dual` reads
#
# .. math:: \min\ \tfrac12\|w\|^2 + u^\top\xi, \qquad
#     \mathrm{sign}_i (w^\top x_{s_i} + b) + \xi_i - t_i = -\mathrm{linear}_i, \qquad \xi, t \ge 0,
#
# with multipliers :math:`\alpha` (complementary to t) and :math:`u - \alpha` (complementary to
# :math:`\xi`). Eliminating everything but w and b from a Newton step leaves the matrix
# :math:`I + X^\top \Theta X` with :math:`\Theta_i = 1/(t_i/\alpha_i + \xi_i/(u_i - \alpha_i))`, of size p


# A step stops this fraction of the way to the nearest bound.
TO_THE_BOUND = 0.995
# The method closes the gap below tol times the objective, and goes on to this multiple while it still gains.
EXTRA_PRECISION = 1e-6


@dataclass
class _Point:
    """An iterate, or a step between iterates."""

    weights: FloatArray
    bias: float
    alpha: FloatArray
    spare: FloatArray  # u - alpha, kept apart because the subtraction would lose it to rounding
    xi: FloatArray
    t: FloatArray

    def plus(self, step: _Point, length: float) -> _Point:
        return _Point(
            self.weights + length * step.weights,
            self.bias + length * step.bias,
            self.alpha + length * step.alpha,
            self.spare + length * step.spare,
            self.xi + length * step.xi,
            self.t + length * step.t,
        )


def solve_linear_loss(
    design: Design, problem: BoxDual, *, tol: float = 1e-6, max_iter: int = 100
) -> TallSolution:
    """Solve for weights and bias; the result carries dual variables and the duality gap."""
    in_play = problem.upper > 0.0
    method = _InteriorPoint(design, problem.restricted(in_play))
    status = Status.ITERATION_LIMIT
    point = method.start()
    n_iter = 0
    while n_iter < max_iter and status is Status.ITERATION_LIMIT:
        n_iter += 1
        try:
            point, status = method.advance(point, tol)
        except LinAlgError:
            status = Status.STALLED
    alpha = np.zeros(problem.sign.size)
    alpha[in_play] = method.at_bounds(point)
    solution = certified(design, problem, point.weights, point.bias, alpha, n_iter, status)
    if solution.gap <= tol * max(solution.objective, tol):
        return replace(solution, status=Status.CONVERGED)
    return solution


class _InteriorPoint:
    """Mehrotra's predictor-corrector steps for one problem."""

    def __init__(self, design: Design, problem: BoxDual) -> None:
        self.design = design
        self.problem = problem
        self.soft = np.isfinite(problem.upper)
        self.n_products = problem.sign.size + int(self.soft.sum())

    def start(self) -> _Point:
        """All slacks at least one, all multipliers in the middle of their range."""
        residual = self.problem.residual(np.zeros(self.problem.n_samples))
        alpha = 0.5 * np.where(self.soft, self.problem.upper, 1.0)
        spare = np.where(self.soft, alpha, 1.0)
        xi = np.where(self.soft, np.maximum(residual, 0.0) + 1.0, 0.0)  # hard constraints have no use of it
        t = np.maximum(-residual, 0.0) + 1.0
        return _Point(np.zeros(self.design.shape[1]), 0.0, alpha, spare, xi, t)

    def complementarity(self, point: _Point) -> float:
        """The sum of products that vanish at the optimum: the duality gap of a feasible point."""
        return float(point.alpha @ point.t + point.spare @ point.xi)

    def advance(self, point: _Point, tol: float) -> tuple[_Point, Status]:
        """One predictor and one corrector step with the same factor, and where that leads."""
        problem, spare = self.problem, point.spare
        theta = 1.0 / (point.t / point.alpha + point.xi / spare)
        factor = _factor(bordered(self.design, problem.sum_by_sample(theta)))
        decision = self.design.dot(point.weights) + point.bias
        missing = problem.residual(decision) - point.xi + point.t
        step = self._step(point, theta, factor, missing, -point.alpha * point.t, -spare * point.xi)
        gap = self.complementarity(point)
        ahead = self.complementarity(point.plus(step, min(1.0, self._longest(point, step))))
        target = (ahead / gap) ** 3 * gap / self.n_products
        for_t = target - point.alpha * point.t - step.alpha * step.t
        for_xi = np.where(self.soft, target - spare * point.xi + step.alpha * step.xi, 0.0)
        step = self._step(point, theta, factor, missing, for_t, for_xi)
        length = min(1.0, TO_THE_BOUND * self._longest(point, step))
        reached = point.plus(step, length)
        return reached, self._status(reached, (1.0 - length) * np.abs(missing).max(), gap, tol)

    def _step(
        self,
        point: _Point,
        theta: FloatArray,
        factor: Any,
        missing: FloatArray,
        for_t: FloatArray,
        for_xi: FloatArray,
    ) -> _Point:
        """Solve the linearised optimality conditions with the given changes of the products."""
        problem, spare = self.problem, point.spare
        right = missing - for_xi / spare + for_t / point.alpha
        pull = problem.signed_sum(point.alpha + theta * right)
        solution = cho_solve(factor, np.append(self.design.transpose_dot(pull) - point.weights, pull.sum()))
        change = self.design.dot(solution[:-1]) + solution[-1]
        alpha = theta * (right - problem.sign * change[problem.sample])
        xi = np.where(self.soft, (for_xi + point.xi * alpha) / spare, 0.0)
        t = (for_t - point.t * alpha) / point.alpha
        return _Point(solution[:-1], float(solution[-1]), alpha, np.where(self.soft, -alpha, 0.0), xi, t)

    def _longest(self, point: _Point, step: _Point) -> float:
        """The largest multiple of a step that keeps all signs."""
        longest = np.inf
        for value, change in (
            (point.alpha, step.alpha),
            (point.spare, step.spare),
            (point.xi, step.xi),
            (point.t, step.t),
        ):
            shrinking = change < 0.0
            longest = min(longest, np.min(value[shrinking] / -change[shrinking], initial=np.inf))
        return float(longest)

    def _status(self, point: _Point, missing: float, previous_gap: float, tol: float) -> Status:
        v = self.problem.signed_sum(point.alpha)
        dual_weights = self.design.transpose_dot(v)
        off_balance = abs(v.sum()) * (1.0 + abs(point.bias)) + np.sum((dual_weights - point.weights) ** 2)
        gap = self.complementarity(point)
        scale = 0.5 * point.weights @ point.weights + self.problem.upper[self.soft] @ point.xi[self.soft]
        error = max(gap, off_balance, missing * scale) / max(scale, tol)
        if error <= tol * EXTRA_PRECISION or (error <= tol and gap > 0.5 * previous_gap):
            return Status.CONVERGED
        if not self.soft.all() and self._outgrows(point, tol):
            return Status.UNBOUNDED
        return Status.ITERATION_LIMIT

    def _outgrows(self, point: _Point, tol: float) -> bool:
        """As :func:`zeronorm.solvers.svm.smo.outgrows`, with the mean square of the samples for the largest."""
        problem = self.problem
        hard = np.where(self.soft, 0.0, point.alpha)
        sums = np.array([hard[problem.sign < 0.0].sum(), hard[problem.sign > 0.0].sum()])
        if not sums.all():
            return False
        direction = hard / sums[(problem.sign > 0.0).astype(int)]
        image = self.design.transpose_dot(problem.signed_sum(direction))
        square = np.trace(self.design.sandwich(np.full(problem.n_samples, 1.0 / problem.n_samples)))
        return bool(2.0 * EPSILON * square * -(problem.linear @ direction) > tol * (image @ image))

    def at_bounds(self, point: _Point) -> FloatArray:
        """The multipliers, put exactly on the bound to which complementarity says they belong."""
        largest = np.where(self.soft, self.problem.upper, point.alpha.max(initial=1.0))
        share = point.alpha / largest
        spare_share = point.spare / largest
        alpha = np.where((share < point.t) & (share < 1e-3), 0.0, point.alpha)
        return np.where(self.soft & (spare_share < point.xi) & (spare_share < 1e-3), largest, alpha)


def _factor(hessian: FloatArray) -> Any:
    """Cholesky factor; near the optimum rounding may ask for a slightly larger diagonal."""
    largest = float(np.diag(hessian).max())
    for jitter in (0.0, 1e-15, 1e-13, 1e-11):
        hessian.flat[:: hessian.shape[0] + 1] += jitter * largest
        try:
            return cho_factor(hessian, check_finite=False)
        except LinAlgError:
            continue
    raise LinAlgError("not positive definite")
