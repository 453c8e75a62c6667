"""Linear support vector machines on tall data, without the n by n kernel matrix.

Squared losses are solved in the primal by Newton's method, the others by the interior-point method
of :mod:`zeronorm.solvers.svm.interior_point`; both need only products with the data and one p by p
system an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from zeronorm._types import FloatArray
from zeronorm.design.base import Design
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.box_dual import BoxDual


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
