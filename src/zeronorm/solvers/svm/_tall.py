"""Linear support vector machines on tall data, without the n by n kernel matrix.

Squared losses are solved in the primal by Newton's method, the others by an interior-point method; both
need only products with the data and one p by p system in each iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.sparse.linalg import LinearOperator, cg

from zeronorm._jit import dividing_kernel, reduction
from zeronorm._types import BoolArray, FloatArray, Int64Array
from zeronorm.design._base import Design
from zeronorm.execution import one_thread_for_factors, one_thread_for_little_work
from zeronorm.solvers._status import Certified, Status
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._smo import EPSILON


@dataclass(frozen=True, eq=False)
class TallSolution(Certified):
    """Weights and bias of a linear SVM, with dual variables that certify them."""

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


def certified(
    design: Design,
    problem: BoxDual,
    weights: FloatArray,
    bias: float,
    alpha: FloatArray,
    n_iter: int,
    status: Status,
) -> TallSolution:
    """The solution with both objectives, after the dual variables are made exactly feasible."""
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
    search the method ends after a finite number of steps. Where the dual has an upper bound, that is the largest slope
    of the loss, which is linear beyond it.
    """
    cost = np.divide(1.0, problem.ridge, out=np.zeros(problem.n_samples), where=problem.ridge > 0.0)
    cost = cost[problem.sample]
    if start is None and np.isfinite(problem.upper).any():
        quadratic = replace(problem, upper=np.where(problem.upper > 0.0, np.inf, 0.0))
        if not np.array_equal(quadratic.upper, problem.upper):
            first = solve_squared_loss(design, quadratic, tol=tol, max_iter=max_iter)
            start = first.weights, first.bias
    weights, bias = (np.zeros(design.shape[1]), 0.0) if start is None else start
    decision = design.dot(weights) + bias
    status = Status.ITERATION_LIMIT
    n_iter = 0
    with one_thread_for_little_work(*design.shape):
        while n_iter < max_iter and status is Status.ITERATION_LIMIT:
            n_iter += 1
            slope = cost * np.maximum(problem.residual(decision), 0.0)
            dual_coef = problem.signed_sum(np.minimum(slope, problem.upper))
            piece = _piece(slope, problem.upper)
            curvature = problem.sum_by_sample(cost * (piece == 1))
            gradient = np.append(weights - design.transpose_dot(dual_coef), -dual_coef.sum())
            step = hessian_step(design, curvature, gradient)
            change = design.dot(step[:-1]) + step[-1]
            # If the full step leaves all residuals on the same pieces, the quadratic model was exact: it ends the
            # search.
            slope = cost * np.maximum(problem.residual(decision + change), 0.0)
            exact = np.array_equal(_piece(slope, problem.upper), piece)
            length = 1.0 if exact else _exact_line_search(problem, cost, weights, step[:-1], decision, change)
            weights = weights + length * step[:-1]
            bias += length * step[-1]
            decision = decision + length * change
            objective = 0.5 * weights @ weights + problem.loss(decision)
            if exact or -gradient @ step <= (0.1 * tol) ** 2 * objective or length == 0.0:
                status = Status.CONVERGED
    alpha = np.minimum(cost * np.maximum(problem.residual(decision), 0.0), problem.upper)
    return certified(design, problem, weights, float(bias), alpha, n_iter, status)


def _piece(slope: FloatArray, upper: FloatArray) -> Int64Array:
    """The piece of each loss: 0 where it is zero, 1 where it is quadratic, 2 where it is linear."""
    return np.add(slope > 0.0, slope > upper, dtype=np.int64)


MANY_SPARSE = 1000  # features; with more, conjugate gradients are faster than a factor of a p by p matrix


def hessian_step(design: Design, curvature: FloatArray, gradient: FloatArray) -> FloatArray:
    """Minus the inverse of `bordered` times the gradient."""
    if design.is_sparse and design.n_features >= MANY_SPARSE:
        return newton_step(design, curvature, gradient, tol=1e-8)
    return _solve(_factor(bordered(design, curvature)), -gradient)


def newton_step(
    design: Design, curvature: FloatArray, gradient: FloatArray, *, tol: float = 1e-3, max_iter: int = 500
) -> FloatArray:
    """Minus the inverse of `bordered` times the gradient, by conjugate gradients on the samples with curvature.

    The bias is eliminated, which centres the columns by their weighted means; their variances precondition.
    """
    rows = np.flatnonzero(curvature)
    if rows.size == 0:
        return np.append(-gradient[:-1], 0.0)
    part, weight = design.take_rows(rows), curvature[rows]
    total, border = float(weight.sum()), part.transpose_dot(weight)
    diagonal = 1.0 + total * part.column_stats(sample_weight=weight).variance

    def product(direction: FloatArray) -> FloatArray:
        image = weight * part.dot(direction)
        image -= weight * (image.sum() / total)
        return np.asarray(direction + part.transpose_dot(image))

    shape = (diagonal.size, diagonal.size)
    system, inverse = (
        LinearOperator(shape, matvec=multiply, dtype=np.float64)
        for multiply in (product, lambda v: v / diagonal)
    )
    right = border * (gradient[-1] / total) - gradient[:-1]
    solution, _ = cg(system, right, rtol=tol, maxiter=max_iter, M=inverse)
    return np.append(solution, (-gradient[-1] - border @ solution) / total)


def bordered(design: Design, curvature: FloatArray) -> FloatArray:
    """The Hessian in weights and bias: [[I + X'DX, X'd], [d'X, sum d]]."""
    p = design.shape[1]
    hessian = np.empty((p + 1, p + 1))
    hessian[:p, :p] = design.sandwich(curvature)
    hessian[np.arange(p), np.arange(p)] += 1.0
    hessian[p, :p] = hessian[:p, p] = design.transpose_dot(curvature)
    # Where no sample has curvature the bias does not matter; keep the system regular.
    hessian[p, p] = curvature.sum() or 1.0
    return hessian


def _exact_line_search(
    problem: BoxDual,
    cost: FloatArray,
    weights: FloatArray,
    step: FloatArray,
    decision: FloatArray,
    change: FloatArray,
) -> float:
    """The zero of the slope along the step, which increases piecewise linearly, by a safeguarded Newton method."""
    straight, quadratic = float(weights @ step), float(step @ step)
    change_of = problem.sign * change[problem.sample]
    residual = problem.residual(decision)
    low, high = 0.0, np.inf
    length = 1.0
    for _ in range(100):
        steepness = cost * np.maximum(residual - length * change_of, 0.0)
        slope = straight + length * quadratic - float(np.minimum(steepness, problem.upper) @ change_of)
        bent = (steepness > 0.0) & (steepness <= problem.upper)
        rise = quadratic + float(np.sum(cost * change_of**2 * bent))
        if abs(slope) <= 1e-13 * length * rise or rise == 0.0:
            break
        low, high = (length, high) if slope < 0.0 else (low, length)
        length -= slope / rise
        if not low < length < high:
            length = 0.5 * (low + high) if high < np.inf else 2.0 * low
    return length


# -- A primal-dual interior-point method for linear SVMs with piecewise linear loss --
#
# With slacks the primal of :mod:`zeronorm.solvers.svm._box_dual` reads
#
# .. math:: \min\ \tfrac12\|w\|^2 + u^\top\xi, \qquad
#     \mathrm{sign}_i (w^\top x_{s_i} + b) + \xi_i - t_i = -\mathrm{linear}_i, \qquad \xi, t \ge 0,
#
# with multipliers :math:`\alpha` (complementary to t) and :math:`u - \alpha` (complementary to
# :math:`\xi`). Eliminating everything but w and b from a Newton step leaves the matrix
# :math:`I + X^\top \Theta X` with :math:`\Theta_i = 1/(t_i/\alpha_i + \xi_i/(u_i - \alpha_i))`, of size p


# A step stops this fraction of the way to the nearest bound.
TO_THE_BOUND = 0.995
# A start from another solution keeps this distance from the bounds, and this slack relative to the mean residual.
LEAST_SHARE, LEAST_SLACK = 0.1, 0.01
# The method closes the gap below tol times the objective, and continues to this multiple of it while steps help.
EXTRA_PRECISION = 1e-6


# The rows of an iterate, and of a step between iterates. The second is u - alpha, stored because computing the
# difference would lose it to rounding.
ALPHA, SPARE, XI, T = 0, 1, 2, 3


@dataclass
class _Point:
    """An iterate: weights and bias, and one row for each of the four kinds of variables."""

    weights: FloatArray
    bias: float
    variables: FloatArray  # (4, m)


def solve_linear_loss(
    design: Design,
    problem: BoxDual,
    start: tuple[FloatArray, float, FloatArray] | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    beyond: bool = True,
) -> TallSolution:
    """Solve for weights and bias; the result carries dual variables and the duality gap.

    ``start`` holds weights, bias and dual variables of a similar problem, which save about a third of the iterations.
    ``beyond``: continue below ``tol`` while each step still helps, for callers that compare weights with each other.
    """
    in_play = problem.upper > 0.0
    method = _InteriorPoint(design, problem.restricted(in_play), EXTRA_PRECISION if beyond else 1.0)
    status, n_iter = Status.ITERATION_LIMIT, 0
    # A step may overflow; this is noticed where the system is factored.
    with np.errstate(over="ignore", invalid="ignore"), one_thread_for_little_work(*design.shape):
        if start is None or not method.soft.all():
            point = method.start()
        else:
            point = method.start_near(start[0], start[1], start[2][in_play])
        while n_iter < max_iter and status is Status.ITERATION_LIMIT:
            n_iter += 1
            try:
                status = method.advance(point, tol)
            except LinAlgError:
                status = Status.STALLED
        alpha = np.zeros(problem.sign.size)
        alpha[in_play] = method.at_bounds(point)
        solution = certified(design, problem, point.weights, point.bias, alpha, n_iter, status)
    if solution.gap <= tol * max(solution.objective, tol):
        return replace(solution, status=Status.CONVERGED)
    if start is None or status is Status.UNBOUNDED:
        return solution
    # The start was too close to a bound.
    return solve_linear_loss(design, problem, tol=tol, max_iter=max_iter, beyond=beyond)


class _InteriorPoint:
    """Mehrotra's predictor-corrector steps for one problem."""

    def __init__(self, design: Design, problem: BoxDual, extra_precision: float = EXTRA_PRECISION) -> None:
        self.design = design
        self.problem = problem
        self.extra_precision = extra_precision
        self.soft = np.isfinite(problem.upper)
        self.cost = np.where(self.soft, problem.upper, 0.0)
        self.n_products = problem.sign.size + int(self.soft.sum())
        self.of_samples = (problem.sample, problem.sign)
        self.theta, self.missing, self.right = np.empty((3, problem.sign.size))
        self.step = np.empty((4, problem.sign.size))
        self.error = np.inf  # of the last point

    def start(self) -> _Point:
        """A first point with all slacks at least one and all multipliers at half of their upper bound."""
        residual = self.problem.residual(np.zeros(self.problem.n_samples))
        variables = np.empty((4, residual.size))
        variables[ALPHA] = 0.5 * np.where(self.soft, self.problem.upper, 1.0)
        variables[SPARE] = np.where(self.soft, variables[ALPHA], 1.0)
        # A hard constraint has no slack xi.
        variables[XI] = np.where(self.soft, np.maximum(residual, 0.0) + 1.0, 0.0)
        variables[T] = np.maximum(-residual, 0.0) + 1.0
        return _Point(np.zeros(self.design.shape[1]), 0.0, variables)

    def start_near(self, weights: FloatArray, bias: float, alpha: FloatArray) -> _Point:
        """The solution of a similar problem, moved away from all bounds."""
        upper = self.problem.upper
        residual = self.problem.residual(self.design.dot(weights) + bias)
        slack = LEAST_SLACK * float(np.abs(residual).mean())
        variables = np.empty((4, residual.size))
        variables[ALPHA] = np.clip(alpha, LEAST_SHARE * upper, (1.0 - LEAST_SHARE) * upper)
        variables[SPARE] = upper - variables[ALPHA]
        variables[XI] = np.maximum(residual, 0.0) + slack
        variables[T] = np.maximum(-residual, 0.0) + slack
        return _Point(weights, bias, variables)

    def advance(self, point: _Point, tol: float) -> Status:
        """Move by one predictor and one corrector step with the same factor; returns the status of the new point."""
        variables, step = point.variables, self.step
        curvature = np.zeros(self.problem.n_samples)
        add_curvature(variables, self.problem.sample, self.theta, curvature)
        factor = _factor(bordered(self.design, curvature))
        decision = self.design.dot(point.weights) + point.bias
        furthest = find_missing(variables, *self.of_samples, self.problem.linear, decision, self.missing)
        step[:] = 0.0
        _, longest = self._find_step(point, factor, 0.0)
        gap = complementarity(variables, step, 0.0)
        ahead = complementarity(variables, step, min(1.0, longest))
        change, longest = self._find_step(point, factor, (ahead / gap) ** 3 * gap / self.n_products)
        length = min(1.0, TO_THE_BOUND * longest)
        point.weights = point.weights + length * change[:-1]
        point.bias += length * float(change[-1])
        step *= length
        variables += step
        return self._status(point, (1.0 - length) * furthest, gap, tol)

    def _find_step(self, point: _Point, factor: FloatArray, target: float) -> tuple[FloatArray, float]:
        """Solve the linearised optimality conditions for all products to become ``target``.

        ``self.step`` is zero, or the step for another target, which gives the terms of second order. It is overwritten
        by the new step. Returns the change of weights and bias, and the largest multiple of the step that keeps all
        variables positive.
        """
        dual_coef = np.zeros(self.problem.n_samples)
        conditions = (point.variables, self.step, target, self.soft, self.theta)
        set_right_side(*conditions, self.missing, *self.of_samples, self.right, dual_coef)
        wanted = np.append(self.design.transpose_dot(dual_coef) - point.weights, dual_coef.sum())
        if not np.all(np.isfinite(wanted)):
            raise LinAlgError("no finite step: variables have reached the smallest numbers")
        change = _solve(factor, wanted)
        along = self.design.dot(change[:-1]) + change[-1]
        return change, set_step(*conditions, self.right, *self.of_samples, along)

    def _status(self, point: _Point, missing: float, previous_gap: float, tol: float) -> Status:
        v = self.problem.signed_sum(point.variables[ALPHA])
        dual_weights = self.design.transpose_dot(v)
        off_balance = abs(v.sum()) * (1.0 + abs(point.bias)) + np.sum((dual_weights - point.weights) ** 2)
        gap = complementarity(point.variables, point.variables, 0.0)
        scale = 0.5 * point.weights @ point.weights + self.cost @ point.variables[XI]
        error = max(gap, off_balance, missing * scale) / max(scale, tol)
        # Rounding limits the accuracy of the balance while the gap still closes; further steps would lead away.
        gains = gap <= 0.5 * previous_gap and error <= 0.5 * self.error
        self.error = error
        if error <= tol * self.extra_precision or (error <= tol and not gains):
            return Status.CONVERGED
        if not self.soft.all() and self._outgrows(point, tol):
            return Status.UNBOUNDED
        return Status.ITERATION_LIMIT

    def _outgrows(self, point: _Point, tol: float) -> bool:
        """Whether the problem is unbounded, by the rounding test of :mod:`zeronorm.solvers.svm._smo`.

        The mean squared norm of the samples stands for the largest one.
        """
        problem = self.problem
        hard = np.where(self.soft, 0.0, point.variables[ALPHA])
        sums = np.array([hard[problem.sign < 0.0].sum(), hard[problem.sign > 0.0].sum()])
        if not sums.all():
            return False
        direction = hard / sums[(problem.sign > 0.0).astype(int)]
        image = self.design.transpose_dot(problem.signed_sum(direction))
        square = np.trace(self.design.sandwich(np.full(problem.n_samples, 1.0 / problem.n_samples)))
        return bool(2.0 * EPSILON * square * -(problem.linear @ direction) > tol * (image @ image))

    def at_bounds(self, point: _Point) -> FloatArray:
        """The multipliers, set exactly to the bound that complementarity indicates."""
        found, spare, xi, t = point.variables
        largest = np.where(self.soft, self.problem.upper, found.max(initial=1.0))
        share, spare_share = found / largest, spare / largest
        alpha = np.where((share < t) & (share < 1e-3), 0.0, found)
        return np.where(self.soft & (spare_share < xi) & (spare_share < 1e-3), largest, alpha)


# Compiled loops, each one pass over the variables.


@dividing_kernel
def add_curvature(
    variables: FloatArray, sample: Int64Array, theta: FloatArray, curvature: FloatArray
) -> None:
    """The diagonal of a Newton step for each variable, and its sum for each sample."""
    alpha, spare, xi, t = variables[ALPHA], variables[SPARE], variables[XI], variables[T]
    for i in range(theta.shape[0]):
        theta[i] = 1.0 / (t[i] / alpha[i] + xi[i] / spare[i])
    for i in range(theta.shape[0]):
        curvature[sample[i]] += theta[i]


@dividing_kernel
def find_missing(
    variables: FloatArray,
    sample: Int64Array,
    sign: FloatArray,
    linear: FloatArray,
    decision: FloatArray,
    missing: FloatArray,
) -> float:
    """Fill in the residual of each constraint; returns the largest."""
    xi, t = variables[XI], variables[T]
    furthest = 0.0
    for i in range(missing.shape[0]):
        missing[i] = t[i] - xi[i] - linear[i] - sign[i] * decision[sample[i]]
        furthest = max(furthest, abs(missing[i]))
    return furthest


@dividing_kernel
def set_right_side(
    variables: FloatArray,
    step: FloatArray,
    target: float,
    soft: BoolArray,
    theta: FloatArray,
    missing: FloatArray,
    sample: Int64Array,
    sign: FloatArray,
    right: FloatArray,
    dual_coef: FloatArray,
) -> None:
    """Set the right-hand side of the step for each variable, and its contribution to the equations of w and b."""
    alpha, spare, xi, t = variables[ALPHA], variables[SPARE], variables[XI], variables[T]
    step_alpha, step_xi, step_t = step[ALPHA], step[XI], step[T]
    for i in range(right.shape[0]):
        for_t = target - alpha[i] * t[i] - step_alpha[i] * step_t[i]
        for_xi = target - spare[i] * xi[i] + step_alpha[i] * step_xi[i] if soft[i] else 0.0
        right[i] = missing[i] - for_xi / spare[i] + for_t / alpha[i]
    for i in range(right.shape[0]):
        dual_coef[sample[i]] += sign[i] * (alpha[i] + theta[i] * right[i])


@dividing_kernel
def set_step(
    variables: FloatArray,
    step: FloatArray,
    target: float,
    soft: BoolArray,
    theta: FloatArray,
    right: FloatArray,
    sample: Int64Array,
    sign: FloatArray,
    along: FloatArray,
) -> float:
    """Set the step of all variables from the change of the decision values; returns its largest feasible multiple."""
    alpha, spare, xi, t = variables[ALPHA], variables[SPARE], variables[XI], variables[T]
    step_alpha, step_spare, step_xi, step_t = step[ALPHA], step[SPARE], step[XI], step[T]
    most = 0.0  # the largest share of a variable that the step takes away
    for i in range(right.shape[0]):
        for_t = target - alpha[i] * t[i] - step_alpha[i] * step_t[i]
        for_xi = target - spare[i] * xi[i] + step_alpha[i] * step_xi[i] if soft[i] else 0.0
        moved = theta[i] * (right[i] - sign[i] * along[sample[i]])
        step_alpha[i] = moved
        step_spare[i] = -moved if soft[i] else 0.0
        step_xi[i] = (for_xi + xi[i] * moved) / spare[i] if soft[i] else 0.0
        step_t[i] = (for_t - t[i] * moved) / alpha[i]
        most = max(most, -step_alpha[i] / alpha[i], -step_spare[i] / spare[i], -step_t[i] / t[i])
        if soft[i]:
            most = max(most, -step_xi[i] / xi[i])
    return 1.0 / most if most > 0.0 else np.inf


@reduction
def complementarity(variables: FloatArray, step: FloatArray, length: float) -> float:
    """The sum of complementary products after a step, which is the duality gap of a feasible point."""
    alpha, spare, xi, t = variables[ALPHA], variables[SPARE], variables[XI], variables[T]
    step_alpha, step_spare, step_xi, step_t = step[ALPHA], step[SPARE], step[XI], step[T]
    total = 0.0
    for i in range(alpha.shape[0]):
        total += (alpha[i] + length * step_alpha[i]) * (t[i] + length * step_t[i])
        total += (spare[i] + length * step_spare[i]) * (xi[i] + length * step_xi[i])
    return total


def _factor(hessian: FloatArray) -> FloatArray:
    """Cholesky factor; near the optimum rounding may require a slightly larger diagonal."""
    largest = float(np.diag(hessian).max())
    if not np.isfinite(hessian.sum()):
        raise LinAlgError("not finite: variables have reached the smallest numbers")
    for jitter in (0.0, 1e-15, 1e-13, 1e-11):
        hessian.flat[:: hessian.shape[0] + 1] += jitter * largest
        with one_thread_for_factors(hessian.shape[0]):
            # LAPACK is called directly: for few features SciPy's checks take longer than the work.
            factor, not_definite = dpotrf(hessian.T, clean=False)
        if not not_definite:
            return np.asarray(factor)
    raise LinAlgError("not positive definite")


def _solve(factor: FloatArray, right: FloatArray) -> FloatArray:
    """The solution of the system that has this factor."""
    return np.asarray(dpotrs(factor, right)[0])
