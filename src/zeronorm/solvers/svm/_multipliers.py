r"""Linear models with a piecewise linear loss on tall sparse data, by an augmented Lagrangian (Rockafellar 1976).

With multipliers alpha and a number sigma, the loss u max(0, r) is replaced by its smooth envelope, whose slope is
clip(alpha + sigma r, 0, u). Its minimum over weights and bias gives the next multipliers, these slopes. Only samples
strictly between the bounds have curvature; in the end these are the few on the margin. A Newton step by conjugate
gradients therefore reads little of the data, and its main cost is two products with all data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.design._base import Design
from zeronorm.solvers._status import Status
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._tall import TallSolution, certified, newton_step

Start = tuple[FloatArray, float, FloatArray]

MOST_ROUNDS, MOST_STEPS = 40, 50
GROWTH = 3.0  # of sigma from one minimum to the next
EXTRA_PRECISION, ROUNDING = 1e-4, 1e-12  # the gap is closed to this multiple of tol, or to rounding


def solve_by_multipliers(
    design: Design, problem: BoxDual, start: Start | None = None, *, tol: float = 1e-6
) -> TallSolution:
    """Solve for weights and bias by products with the data only; all costs are finite."""
    in_play = problem.upper > 0.0
    method = _Multipliers(design, problem.restricted(in_play))
    if start is not None:
        method.begin(start[0], start[1], start[2][in_play])
    goal = max(EXTRA_PRECISION * tol, ROUNDING)
    n_iter, gap = 0, np.inf
    for _ in range(MOST_ROUNDS):
        n_steps = method.minimize(0.1 * max(goal * method.primal, min(gap, method.primal)))
        before, gap, n_iter = gap, method.renew(), n_iter + n_steps
        # Rounding prevents further progress when sigma has become very large.
        stalls = n_steps > 0 and gap > 0.5 * before
        if gap <= goal * method.primal or (stalls and (gap <= tol * method.primal or n_steps == MOST_STEPS)):
            break
    alpha = np.zeros(problem.sign.size)
    alpha[in_play] = method.alpha
    found = certified(design, problem, method.weights, method.bias, alpha, n_iter, Status.ITERATION_LIMIT)
    return replace(found, status=Status.CONVERGED) if found.gap <= tol * max(found.objective, tol) else found


class _Multipliers:
    """The iterate of the augmented Lagrangian method: weights, bias and multipliers of one problem."""

    def __init__(self, design: Design, problem: BoxDual) -> None:
        self.design, self.problem = design, problem
        self.weights, self.bias = np.zeros(design.n_features), 0.0
        self.decision = np.zeros(problem.n_samples)
        self.alpha = problem.feasible(0.5 * problem.upper)
        self.sigma = float(problem.upper.mean())
        self.primal = problem.loss(self.decision)

    def begin(self, weights: FloatArray, bias: float, alpha: FloatArray) -> None:
        """Start from the solution of a similar problem."""
        self.weights, self.bias, self.alpha = weights, bias, alpha
        self.decision = self.design.dot(weights) + bias
        self.primal = 0.5 * float(weights @ weights) + self.problem.loss(self.decision)

    def minimize(self, enough: float) -> int:
        """Newton steps on the envelope until the remaining gradient can change the objective by at most ``enough``."""
        problem, upper = self.problem, self.problem.upper
        for n_steps in range(MOST_STEPS):
            slope = self.alpha + self.sigma * problem.residual(self.decision)
            dual_coef = problem.signed_sum(np.clip(slope, 0.0, upper))
            gradient = np.append(self.weights - self.design.transpose_dot(dual_coef), -dual_coef.sum())
            left = 0.5 * gradient[:-1] @ gradient[:-1] + abs(gradient[-1]) * (1.0 + abs(self.bias))
            if left <= enough:
                return n_steps
            on_the_ramp = (slope > 0.0) & (slope < upper)
            curvature = problem.sum_by_sample(np.where(on_the_ramp, self.sigma, 0.0))
            step = newton_step(self.design, curvature, gradient)
            change = self.design.dot(step[:-1]) + step[-1]
            length = self._length(slope, step, change)
            self.weights = self.weights + length * step[:-1]
            self.bias += length * float(step[-1])
            self.decision = self.decision + length * change
        return MOST_STEPS

    def _length(self, slope: FloatArray, step: FloatArray, change: FloatArray) -> float:
        """The length of a step at which the envelope is smallest, by a safeguarded Newton method."""
        problem, upper = self.problem, self.problem.upper
        along = -self.sigma * problem.sign * change[problem.sample]
        straight, quadratic = float(self.weights @ step[:-1]), float(step[:-1] @ step[:-1])
        at_start = straight + float(np.clip(slope, 0.0, upper) @ along) / self.sigma
        low, high, length = 0.0, np.inf, 1.0
        for _ in range(50):
            moved = slope + length * along
            derivative = (
                straight + length * quadratic + float(np.clip(moved, 0.0, upper) @ along) / self.sigma
            )
            if abs(derivative) <= 1e-2 * abs(at_start):
                break
            between = (moved > 0.0) & (moved < upper)
            rise = quadratic + float(np.sum(along[between] ** 2)) / self.sigma
            low, high = (length, high) if derivative < 0.0 else (low, length)
            length -= derivative / max(rise, np.finfo(float).tiny)
            if not low < length < high:
                length = 0.5 * (low + high) if high < np.inf else 2.0 * low
        return length

    def renew(self) -> float:
        """Update the multipliers and increase sigma; returns the duality gap, including the imbalance."""
        problem = self.problem
        slope = self.alpha + self.sigma * problem.residual(self.decision)
        self.alpha = np.clip(slope, 0.0, problem.upper)
        dual_coef = problem.signed_sum(self.alpha)
        dual_weights = self.design.transpose_dot(dual_coef)
        self.primal = 0.5 * float(self.weights @ self.weights) + problem.loss(self.decision)
        self.sigma *= GROWTH
        dual = -float(problem.linear @ self.alpha + 0.5 * dual_weights @ dual_weights)
        return abs(self.primal - dual) + abs(float(dual_coef.sum())) * (1.0 + abs(self.bias))
