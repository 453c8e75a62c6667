"""Newton's method for a smooth loss with sparse penalties, on few columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from zeronorm._types import FloatArray
from zeronorm.solvers.linear._losses import Loss

# The problem is
#
# .. math:: \min_{w, b} \sum_i \omega_i L(w \cdot x_i + b, y_i) + \lambda_2 \|w\|^2 + \lambda_1 \|w\|_1
#
# for few columns (a working set) and a good start. Weights that reach zero leave the working set. The caller, who
# knows the gradients of all columns, decides which of them return.


MAX_NEWTON_STEPS = 200
SUFFICIENT = 1e-4  # share of the decrease predicted by the slope (Armijo)
DECREASE_ROUNDING = 1e-12  # predicted decrease, relative to the objective, that may be lost to rounding
RIDGE = 1e-12  # relative, for linearly dependent columns


@dataclass(frozen=True)
class PenalizedLoss:
    """The objective: a weighted sum of losses with penalties; ``share`` sums to one."""

    loss: Loss
    y: FloatArray
    share: FloatArray
    penalty_l1: float
    penalty_l2: float

    def value(self, f: FloatArray, w: FloatArray) -> float:
        """Loss of the predictions ``f`` plus the penalties of ``w``."""
        penalty = self.penalty_l2 * float(w @ w) + self.penalty_l1 * float(np.abs(w).sum())
        return self.loss.total(f, self.y, self.share) + penalty

    def slope(self, f: FloatArray) -> FloatArray:
        """Derivative of the loss in each prediction."""
        return self.loss.gradient(f, self.y, self.share)

    def sandwich(self, f: FloatArray, columns: FloatArray) -> FloatArray:
        """Second derivatives of the loss in the weights of the columns."""
        return self.loss.sandwich(f, self.y, self.share, columns)


@dataclass(frozen=True)
class WorkingSetSolution:
    """The solution: weights (exactly zero for columns that left), bias, predictions, objective."""

    w: FloatArray
    bias: float
    f: FloatArray
    value: float
    converged: bool


def solve_working_set(
    X: FloatArray,
    objective: PenalizedLoss,
    w: FloatArray,
    bias: float,
    signs: FloatArray,
    tol: float,
) -> WorkingSetSolution:
    """Minimise over the columns of ``X`` from ``w`` and ``bias``.

    ``signs`` gives the direction in which a weight that starts at zero moves. Converged when no derivative exceeds
    ``tol``, or when rounding allows no further decrease.
    """
    w, signs = w.copy(), np.where(w != 0.0, np.sign(w), signs)
    active = signs != 0.0
    f = X @ w + bias
    value = objective.value(f, w)
    for _ in range(MAX_NEWTON_STEPS):
        gradient = _gradient(X[:, active], objective, f, w[active], signs[active])
        if np.abs(gradient).max() <= tol:
            return WorkingSetSolution(w, bias, f, value, True)
        step = _newton_step(X[:, active], objective, f, gradient)
        direction = np.zeros_like(w)
        direction[active] = step[:-1]
        misled = (w == 0.0) & (direction * signs < 0.0)
        if misled.any():
            active &= ~misled
            continue
        slope = float(gradient @ step)
        state = (w, bias, f, value)
        hidden = -slope <= DECREASE_ROUNDING * abs(
            value
        )  # rounding of the objective hides a decrease this small
        if hidden:
            moved = _full_step(X, objective, state, direction, float(step[-1]), signs, active, gradient)
        else:
            moved = _line_search(X, objective, state, direction, float(step[-1]), slope)
        if moved is None:
            return WorkingSetSolution(w, bias, f, value, hidden)
        w, bias, f, value = moved
        active &= w != 0.0
        signs = np.where(active, np.sign(w), 0.0)
    return WorkingSetSolution(w, bias, f, value, False)


def _gradient(
    X: FloatArray, objective: PenalizedLoss, f: FloatArray, w: FloatArray, signs: FloatArray
) -> FloatArray:
    slope = objective.slope(f)
    in_w = X.T @ slope + 2.0 * objective.penalty_l2 * w + objective.penalty_l1 * signs
    return np.append(in_w, slope.sum() if objective.loss.has_bias else 0.0)


def _newton_step(X: FloatArray, objective: PenalizedLoss, f: FloatArray, gradient: FloatArray) -> FloatArray:
    """The step for the weights, then for the bias."""
    hessian = objective.sandwich(f, np.column_stack([X, np.ones(len(X))]))
    diagonal = np.einsum("ii->i", hessian)
    diagonal[:-1] += 2.0 * objective.penalty_l2
    if not objective.loss.has_bias:
        hessian[-1], hessian[:, -1], hessian[-1, -1] = 0.0, 0.0, 1.0
    ridge = RIDGE * max(float(diagonal.max()), 1e-300)
    while True:
        try:
            factor = cho_factor(hessian + ridge * np.eye(len(gradient)))
            return np.asarray(-cho_solve(factor, gradient))
        except LinAlgError:
            ridge *= 100.0


def _full_step(
    X: FloatArray,
    objective: PenalizedLoss,
    start: tuple[FloatArray, float, FloatArray, float],
    direction: FloatArray,
    bias_step: float,
    signs: FloatArray,
    active: NDArray[np.bool_],
    gradient: FloatArray,
) -> tuple[FloatArray, float, FloatArray, float] | None:
    """Newton's step, taken if it halves the gradient and no weight changes its sign."""
    w, bias, f, _ = start
    moved = w + direction
    if objective.penalty_l1 > 0.0 and np.any(moved[active] * signs[active] <= 0.0):
        return None
    predictions = f + X @ direction + bias_step
    after = _gradient(X[:, active], objective, predictions, moved[active], signs[active])
    if np.abs(after).max() > 0.5 * np.abs(gradient).max():
        return None
    return moved, bias + bias_step, predictions, objective.value(predictions, moved)


def _line_search(
    X: FloatArray,
    objective: PenalizedLoss,
    start: tuple[FloatArray, float, FloatArray, float],
    direction: FloatArray,
    bias_step: float,
    slope: float,
) -> tuple[FloatArray, float, FloatArray, float] | None:
    """The best of the full step and the points where a weight reaches zero; if none is better, a shorter step."""
    w, bias, f, value = start
    change = X @ direction + bias_step

    def at(t: float, crossing: FloatArray) -> tuple[FloatArray, float, FloatArray, float]:
        moved = np.where(crossing == t, 0.0, w + t * direction)
        predictions = f + t * change
        return moved, bias + t * bias_step, predictions, objective.value(predictions, moved)

    # Without an absolute-value penalty there is no kink at zero and no reason to stop there.
    stops = (w * direction < 0.0) & (objective.penalty_l1 > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(stops, -w / direction, np.inf)
    best = min((at(t, crossing) for t in {1.0, *crossing[crossing < 1.0].tolist()}), key=lambda m: m[3])
    t = 1.0
    while best[3] > value + SUFFICIENT * t * slope:
        t *= 0.5
        if t < 1e-12:
            return None
        best = at(t, crossing)
    return best
