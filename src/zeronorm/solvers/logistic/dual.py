"""Logistic regression with a quadratic penalty, on a kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from zeronorm._types import FloatArray
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.dual import per_sample

# Probabilities are kept this far from 0 and 1, so that Newton's weights stay positive.
SATURATION = 1e-12
SHORTEST_STEP = 2.0**-30


@dataclass(frozen=True, eq=False)
class LogisticDual:
    """Decision values are K @ dual_coef + bias."""

    dual_coef: FloatArray
    bias: float
    objective: float
    n_iter: int
    status: Status

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.status.converged


def solve_logistic_dual(
    K: FloatArray,
    y: ArrayLike,
    *,
    C: float | ArrayLike = 1.0,
    warm_start: LogisticDual | None = None,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> LogisticDual:
    r"""Fit a penalised logistic regression with an unpenalised bias by Newton's method.

    .. math:: \min_{a, b}\ \tfrac12 a^\top K a + \sum_i C_i \log\bigl(1 + e^{-y_i f_i}\bigr), \qquad f = Ka + b

    For the linear kernel the weights are :math:`w = X^\top a`. At the optimum
    :math:`a_i = C_i y_i (1 - p_i)` with :math:`p_i` the probability of the right class; ``tol`` bounds the largest
    violation of that equation, relative to C.
    """
    labels = np.asarray(y, dtype=np.float64)
    price = per_sample(C, labels.size)
    a = np.zeros(labels.size) if warm_start is None else warm_start.dual_coef.copy()
    bias = 0.0 if warm_start is None else warm_start.bias
    inner = K @ a
    objective = _objective(a, inner, bias, labels, price)
    status, n_iter = Status.ITERATION_LIMIT, 0
    while n_iter < max_iter:
        n_iter += 1
        right = np.clip(expit(labels * (inner + bias)), SATURATION, 1.0 - SATURATION)
        pull = price * labels * (1.0 - right)
        if max(np.abs(a - pull).max(), abs(pull.sum())) <= tol * price.max():
            status = Status.CONVERGED
            break
        a_new, bias_new = _newton_point(K, price * right * (1.0 - right), inner + bias, pull)
        a, bias, inner, objective, moved = _line_search(
            K, labels, price, (a, bias, inner, objective), a_new - a, bias_new - bias
        )
        if not moved:
            status = Status.STALLED
            break
    return LogisticDual(a, float(bias), objective, n_iter, status)


def _newton_point(
    K: FloatArray, weight: FloatArray, f: FloatArray, pull: FloatArray
) -> tuple[FloatArray, float]:
    """Minimiser of the quadratic model: (K + 1/weight) a + b = f + pull/weight with sum a = 0."""
    root = np.sqrt(weight)
    system = root[:, None] * K * root
    system.flat[:: len(K) + 1] += 1.0
    factor = cho_factor(system, overwrite_a=True, check_finite=False)
    right_sides = np.column_stack([root * f + pull / root, root])
    solved = root[:, None] * cho_solve(factor, right_sides, check_finite=False)
    bias = float(solved[:, 0].sum() / solved[:, 1].sum())
    return solved[:, 0] - bias * solved[:, 1], bias


def _line_search(
    K: FloatArray,
    labels: FloatArray,
    price: FloatArray,
    start: tuple[FloatArray, float, FloatArray, float],
    step: FloatArray,
    bias_step: float,
) -> tuple[FloatArray, float, FloatArray, float, bool]:
    """Halve the Newton step until the objective does not rise."""
    a, bias, inner, objective = start
    inner_step = K @ step
    length = 1.0
    while length > SHORTEST_STEP:
        candidate = a + length * step, bias + length * bias_step, inner + length * inner_step
        value = _objective(candidate[0], candidate[2], candidate[1], labels, price)
        if value <= objective + 1e-14 * abs(objective):
            return (*candidate, value, True)
        length *= 0.5
    return a, bias, inner, objective, False


def _objective(a: FloatArray, inner: FloatArray, bias: float, labels: FloatArray, price: FloatArray) -> float:
    return float(0.5 * a @ inner + price @ np.logaddexp(0.0, -labels * (inner + bias)))
