r"""Newton's method for a smooth loss with the ℓ2 norm, in coefficients of the samples or in the weights.

With predictions :math:`f = Ka + b` the weights are :math:`w = X^\top a`, and at the optimum
:math:`a = -\nabla L(f)`. A step solves :math:`a + H(Ka + b) = Hf - \nabla L(f)` with :math:`1^\top a = 0`, where
H holds the second derivatives of the loss: on its diagonal for a sum over samples, anywhere for another loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from zeronorm._types import FloatArray
from zeronorm.design import Design
from zeronorm.execution import one_thread_for_little_work
from zeronorm.solvers._status import Ended, Status
from zeronorm.solvers.linear._losses import Loss, SeparableLoss
from zeronorm.solvers.svm._tall import hessian_step

LEAST_CURVATURE = 1e-12  # relative to the cost: keeps Newton's weights positive where a sample is certain
MOST_IDLE = 5  # Newton steps in a row that change the objective by no more than rounding
SHORTEST_STEP = 2.0**-30
ROUNDING = 1e-14  # of an objective, relative
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class SmoothSolution(Ended):
    """A model with a smooth loss; ``weights`` is None if it was found in the coefficients of the samples.

    ``gap`` is half of the squared gradient in the weights. For the best bias, the objective exceeds its minimum by no
    more, because the norm makes it strongly convex.
    """

    dual_coef: FloatArray
    bias: float
    objective: float
    gap: float
    n_iter: int
    status: Status
    weights: FloatArray | None = None


def solve_on_gram(
    K: FloatArray,
    loss: Loss,
    y: FloatArray,
    cost: FloatArray,
    start: tuple[FloatArray, float] | None = None,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> SmoothSolution:
    r"""Minimise :math:`\tfrac12 a^\top K a + L(Ka + b)`; all costs are positive.

    ``tol`` bounds the largest violation of :math:`a = -\nabla L`, relative to the gradient at zero.
    """
    loss = loss.prepared(y, cost)
    a, bias = (np.zeros(y.size), 0.0) if start is None else start
    inner = K @ a
    unit = float(np.abs(loss.gradient(np.zeros(y.size), y, cost)).max(initial=0.0))

    def objective_at(a: FloatArray, bias: float, inner: FloatArray) -> float:
        return float(0.5 * a @ inner + loss.total(inner + bias, y, cost))

    objective = objective_at(a, bias, inner)
    status, n_iter, n_idle = Status.ITERATION_LIMIT, 0, 0
    while n_iter < max_iter:
        n_iter += 1
        f = inner + bias
        negative = -loss.gradient(f, y, cost)
        if max(np.abs(a - negative).max(), abs(negative.sum())) <= tol * unit:
            status = Status.CONVERGED
            break
        a_new, bias_new = _newton_point(K, loss.hessian(f, y, cost), f, negative, cost, loss.has_bias)
        step, bias_step = a_new - a, bias_new - bias
        inner_step = K @ step
        before, moves = objective, (step, bias_step, inner_step)
        found = _shortened((a, bias, inner), moves, objective_at, objective)
        if found is not None:
            (a, bias, inner), objective = found
        n_idle = 0 if objective < before - ROUNDING * abs(before) else n_idle + 1
        if found is None or n_idle > MOST_IDLE:
            status = Status.STALLED
            break
    missing = a + loss.gradient(inner + bias, y, cost)
    return SmoothSolution(a, float(bias), objective, 0.5 * float(missing @ (K @ missing)), n_iter, status)


Point = tuple[
    FloatArray, float, FloatArray
]  # coefficients or weights, bias, and their products with the data


def _shortened(
    here: Point, step: Point, objective_at: Callable[[FloatArray, float, FloatArray], float], objective: float
) -> tuple[Point, float] | None:
    """The point after the longest step, halved as often as needed, at which the objective does not rise."""
    length = 1.0
    while length > SHORTEST_STEP:
        point = here[0] + length * step[0], here[1] + length * step[1], here[2] + length * step[2]
        value = objective_at(*point)
        if value <= objective + ROUNDING * abs(objective):
            return point, value
        length *= 0.5
    return None


def _newton_point(
    K: FloatArray,
    hessian: FloatArray,
    f: FloatArray,
    negative: FloatArray,
    cost: FloatArray,
    has_bias: bool,
) -> tuple[FloatArray, float]:
    """Coefficients and bias that minimise the quadratic model of the loss."""
    if hessian.ndim == 2:
        return _coupled_point(K, hessian, f, negative, has_bias)
    root = np.sqrt(np.maximum(hessian, LEAST_CURVATURE * cost))
    system = root[:, None] * K * root
    system.flat[:: len(K) + 1] += 1.0
    try:
        factor = cho_factor(system, check_finite=False)
    except LinAlgError:  # a column so large that the 1 on the diagonal is lost to rounding
        system.flat[:: len(K) + 1] += len(K) * np.finfo(float).eps * np.diagonal(system).max()
        factor = cho_factor(system, overwrite_a=True, check_finite=False)
    right_sides = np.column_stack([root * f + negative / root, root])
    solved = root[:, None] * cho_solve(factor, right_sides, check_finite=False)
    bias = float(solved[:, 0].sum() / solved[:, 1].sum()) if has_bias else 0.0
    return solved[:, 0] - bias * solved[:, 1], bias


def _coupled_point(
    K: FloatArray, hessian: FloatArray, f: FloatArray, negative: FloatArray, has_bias: bool
) -> tuple[FloatArray, float]:
    """The same for a loss whose second derivatives are a whole matrix."""
    system = hessian @ K
    system.flat[:: len(K) + 1] += 1.0
    right_sides = np.column_stack([hessian @ f + negative, hessian.sum(axis=1)])
    solved = np.linalg.solve(system, right_sides)
    bias = float(solved[:, 0].sum() / solved[:, 1].sum()) if has_bias else 0.0
    return solved[:, 0] - bias * solved[:, 1], bias


def solve_in_weights(
    design: Design,
    loss: Loss,
    y: FloatArray,
    cost: FloatArray,
    start: tuple[FloatArray, float] | None = None,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> SmoothSolution:
    r"""Minimise :math:`\tfrac12 \|w\|^2 + L(Xw + b)` with a system of the size of the features in each step."""
    loss = loss.prepared(y, cost)
    weights, bias = (np.zeros(design.n_features), 0.0) if start is None else start
    decision = design.dot(weights) + bias

    def objective_at(weights: FloatArray, bias: float, decision: FloatArray) -> float:
        return float(0.5 * weights @ weights + loss.total(decision, y, cost))

    objective = objective_at(weights, bias, decision)
    status, n_iter = Status.ITERATION_LIMIT, 0
    with one_thread_for_little_work(*design.shape):
        while True:
            slope = loss.gradient(decision, y, cost)
            gradient = np.append(weights + design.transpose_dot(slope), slope.sum() if loss.has_bias else 0.0)
            if n_iter >= max_iter:
                break
            n_iter += 1
            goal = (0.1 * tol) ** 2 * max(objective, TINY)
            is_sum = isinstance(loss, SeparableLoss)
            bend = loss.hessian(decision, y, cost) if is_sum else partial(loss.sandwich, decision, y, cost)
            step, decrement = None, _largest_decrement(gradient, bend, y.size)
            if decrement > goal:
                step = _step_in_weights(design, bend, gradient, loss.has_bias)
                decrement = -float(gradient @ step)
            if step is None or decrement <= goal:
                status = Status.CONVERGED
                break
            change = design.dot(step[:-1]) + step[-1]
            here, moves = (weights, bias, decision), (step[:-1], float(step[-1]), change)
            found = _shortened(here, moves, objective_at, objective)
            if found is None:
                status = Status.STALLED
                break
            (weights, bias, decision), objective = found
    gap = 0.5 * float(gradient[:-1] @ gradient[:-1])
    return SmoothSolution(-slope, float(bias), objective, gap, n_iter, status, weights)


# Second derivatives of a loss: the diagonal of a sum over samples, or the function that multiplies columns from both
# sides, which for many samples needs no matrix of them.
Bend = FloatArray | Callable[[FloatArray], FloatArray]


def _largest_decrement(gradient: FloatArray, bend: Bend, n_samples: int) -> float:
    """The squared gradient in units of the curvature, which is at least one in the weights: it needs no system."""
    in_weights, in_bias = float(gradient[:-1] @ gradient[:-1]), float(gradient[-1]) ** 2
    if not in_bias:
        return in_weights
    along_bias = bend(np.ones((n_samples, 1))) if callable(bend) else bend
    return in_weights + in_bias / max(float(along_bias.sum()), TINY)


def _step_in_weights(design: Design, bend: Bend, gradient: FloatArray, has_bias: bool) -> FloatArray:
    """Newton's step for the weights, then for the bias."""
    if not callable(bend):
        return hessian_step(design, bend, gradient)
    X = design.block(slice(None))
    system = bend(np.column_stack([X, np.ones(len(X))]))
    system[np.arange(design.n_features), np.arange(design.n_features)] += 1.0
    if not has_bias:
        system[-1], system[:, -1], system[-1, -1] = 0.0, 0.0, 1.0
    return np.asarray(-cho_solve(cho_factor(system), gradient))
