# mypy: allow-untyped-defs
"""Compiled loops of the logistic methods."""

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel

ARMIJO = 1e-4
SMALLEST_STEP = 1e-8


@kernel
def logistic_loss(margins, weight):
    """Sum of weight · log(1 + exp(-margin)), without overflow."""
    total = 0.0
    for i in range(margins.shape[0]):
        m = margins[i]
        if m > 0.0:
            total += weight[i] * np.log1p(np.exp(-m))
        else:
            total += weight[i] * (np.log1p(np.exp(m)) - m)
    return total


@kernel
def solve_in_place(H, step):
    """Replace ``step`` by the solution of H x = step; the lower triangle of H becomes its Cholesky factor."""
    size = H.shape[0]
    for j in range(size):
        pivot = H[j, j]
        floor = 1e-14 * pivot
        for m in range(j):
            pivot -= H[j, m] * H[j, m]
        # A dependent column: a tiny pivot would send its weight anywhere, a huge one keeps it where it is.
        H[j, j] = np.sqrt(pivot) if pivot > floor and pivot > 0.0 else 1e150
        for i in range(j + 1, size):
            value = H[i, j]
            for m in range(j):
                value -= H[i, m] * H[j, m]
            H[i, j] = value / H[j, j]
    for j in range(size):
        for m in range(j):
            step[j] -= H[j, m] * step[m]
        step[j] /= H[j, j]
    for j in range(size - 1, -1, -1):
        for m in range(j + 1, size):
            step[j] -= H[m, j] * step[m]
        step[j] /= H[j, j]


@kernel
def fit_logistic(rows, signs, weight, ridge, coef, tol, max_iter, hopeless):
    """Fit one logistic machine per row of ``signs`` by Newton's method; ``coef`` is the start and the result.

    ``rows`` holds one feature per row and ones in the last row, the bias, which is not penalised. Returns
    the sum of the objectives, and the steps taken, negative when a machine did not converge. Gives up
    with infinity as soon as the sum will surely stay above ``hopeless``.
    """
    size, n = rows.shape
    total = 0.0
    steps = 0
    failed = False
    gradient = np.empty(size)
    residual = np.empty(n)
    curvature = np.empty(n)
    for c in range(signs.shape[0]):
        sign = signs[c]
        w = coef[c]
        margins = np.dot(w, rows) * sign
        objective = logistic_loss(margins, weight) + 0.5 * ridge * np.sum(w[:-1] ** 2)
        converged = False
        for _ in range(max_iter):
            steps += 1
            for i in range(n):
                p = 1.0 / (1.0 + np.exp(margins[i]))
                residual[i] = weight[i] * sign[i] * p
                curvature[i] = weight[i] * p * (1.0 - p)
            gradient[:] = np.dot(rows, residual)
            gradient[:-1] -= ridge * w[:-1]
            H = np.dot(rows * curvature, rows.T)
            for j in range(size - 1):
                H[j, j] += ridge
            step = gradient.copy()
            solve_in_place(H, step)
            decrement = np.sum(gradient * step)
            # Half the decrement is what Newton's model still expects to gain.
            if total + objective - 2.0 * decrement > hopeless and decrement < 0.5 * objective:
                return np.inf, steps
            direction = np.dot(step, rows) * sign
            t = 1.0
            while True:
                trial = margins + t * direction
                value = logistic_loss(trial, weight) + 0.5 * ridge * np.sum((w[:-1] + t * step[:-1]) ** 2)
                if value <= objective - ARMIJO * t * decrement or t < SMALLEST_STEP:
                    break
                t *= 0.5
            if value < objective:
                w += t * step
                margins = trial
                objective = value
            if decrement <= tol * objective or t < SMALLEST_STEP:
                converged = decrement <= max(tol, 1e-9) * objective
                break
        failed = failed or not converged
        total += objective
    return total, -steps if failed else steps
