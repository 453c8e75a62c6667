# mypy: allow-untyped-defs
"""Compiled loops of the logistic methods."""

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel, reduction

ARMIJO = 1e-4
SMALLEST_STEP = 1e-8
GAIN_ROUNDING = 1e-9  # relative gain that may drown in rounding


@kernel
def penalised_loss(margins, weight, w, ridge):
    """Sum of weight · log(1 + exp(-margin)), without overflow, plus the ridge of all of w but the bias."""
    total = 0.0
    for i in range(margins.shape[0]):
        m = margins[i]
        if m > 0.0:
            total += weight[i] * np.log1p(np.exp(-m))
        else:
            total += weight[i] * (np.log1p(np.exp(m)) - m)
    for j in range(w.shape[0] - 1):
        total += 0.5 * ridge * w[j] * w[j]
    return total


@kernel
def signed_combination(rows, w, sign, out):
    """Set ``out`` to sign · (w'rows), row by row so that the inner loop vectorises."""
    for i in range(rows.shape[1]):
        out[i] = 0.0
    for j in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            out[i] += sign[i] * w[j] * rows[j, i]


@reduction
def inner_product(u, v):
    """u'v."""
    total = 0.0
    for i in range(u.shape[0]):
        total += u[i] * v[i]
    return total


@kernel
def newton_system(rows, sign, weight, margins, w, ridge, residual, curvature, weighted, H, gradient):
    """Lower triangle of the Hessian, and the negative gradient; ``weighted`` are the rows times the curvature."""
    size, n = rows.shape
    for i in range(n):
        p = 1.0 / (1.0 + np.exp(min(margins[i], 700.0)))
        residual[i] = weight[i] * sign[i] * p
        curvature[i] = weight[i] * p * (1.0 - p)
    for j in range(size):
        for i in range(n):
            weighted[j, i] = rows[j, i] * curvature[i]
        for m in range(j + 1):
            H[j, m] = inner_product(weighted[j], rows[m])
        gradient[j] = inner_product(residual, rows[j])
    for j in range(size - 1):
        gradient[j] -= ridge * w[j]
        H[j, j] += ridge


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
    solve_triangles(H, step)


@kernel
def solve_triangles(L, step):
    """Replace ``step`` by the solution of L L' x = step."""
    size = L.shape[0]
    for j in range(size):
        for m in range(j):
            step[j] -= L[j, m] * step[m]
        step[j] /= L[j, j]
    for j in range(size - 1, -1, -1):
        for m in range(j + 1, size):
            step[j] -= L[m, j] * step[m]
        step[j] /= L[j, j]


@kernel
def fit_machine(rows, sign, weight, ridge, w, tol, max_iter, hopeless):
    """Newton's method for one machine from ``w``, which becomes the result.

    Returns the objective, infinity when given up, the steps taken, and whether it converged.
    """
    size, n = rows.shape
    H, gradient, step, trial_w = np.empty((size, size)), np.empty(size), np.empty(size), np.empty(size)
    margins, direction, trial = np.empty(n), np.empty(n), np.empty(n)
    residual, curvature, weighted = np.empty(n), np.empty(n), np.empty((size, n))
    signed_combination(rows, w, sign, margins)
    objective = penalised_loss(margins, weight, w, ridge)
    if not objective <= np.log(2.0) * np.sum(weight):
        # Weights of classes that are separated are huge, and no start for a subset that does not separate.
        w[:] = 0.0
        margins[:] = 0.0
        objective = penalised_loss(margins, weight, w, ridge)
    for steps in range(1, max_iter + 1):
        newton_system(rows, sign, weight, margins, w, ridge, residual, curvature, weighted, H, gradient)
        for j in range(size):
            step[j] = gradient[j]
        solve_in_place(H, step)
        decrement = inner_product(gradient, step)
        # Half the decrement is what Newton's model still expects to gain.
        if objective - 2.0 * decrement > hopeless and decrement < 0.5 * objective:
            return np.inf, steps, True
        signed_combination(rows, step, sign, direction)
        t = 1.0
        while True:
            for i in range(n):
                trial[i] = margins[i] + t * direction[i]
            for j in range(size):
                trial_w[j] = w[j] + t * step[j]
            value = penalised_loss(trial, weight, trial_w, ridge)
            if value <= objective - ARMIJO * t * decrement or t < SMALLEST_STEP:
                break
            t *= 0.5
        if value < objective:
            for j in range(size):
                w[j] = trial_w[j]
            for i in range(n):
                margins[i] = trial[i]
            objective = value
        if decrement <= tol * objective or t < SMALLEST_STEP:
            return objective, steps, decrement <= max(tol, GAIN_ROUNDING) * objective
    return objective, max_iter, False


@kernel
def fit_logistic(rows, signs, weight, ridge, coef, tol, max_iter, hopeless):
    """Fit one logistic machine per row of ``signs`` by Newton's method; ``coef`` is the start and the result.

    ``rows`` holds one feature per row and ones in the last row, the bias, which is not penalised. Returns
    the sum of the objectives, and the steps taken, negative when a machine did not converge. Gives up
    with infinity as soon as the sum will surely stay above ``hopeless``.
    """
    total, n_steps, failed = 0.0, 0, False
    for c in range(signs.shape[0]):
        objective, steps, converged = fit_machine(
            rows, signs[c], weight, ridge, coef[c], tol, max_iter, hopeless - total
        )
        total += objective
        n_steps += steps
        failed = failed or not converged
        if total == np.inf:
            break
    return total, -n_steps if failed else n_steps


@kernel
def invert(H, collinear, inverse):
    """The inverse from the lower triangle of a symmetric matrix, which becomes its Cholesky factor.

    False when less than the share ``collinear`` of a diagonal element is left given the other rows.
    """
    size = H.shape[0]
    column, curvature = np.empty(size), np.diag(H).copy()
    for j in range(size):
        column[:] = 0.0
        column[j] = 1.0
        if j == 0:
            solve_in_place(H, column)
        else:
            solve_triangles(H, column)
        for i in range(size):
            inverse[i, j] = column[i]
        if not 0.0 < collinear * curvature[j] * inverse[j, j] < 1.0:
            return False
    return True


@kernel
def expand_machines(rows, signs, weight, ridge, coef, collinear, residuals, curvatures, weighted, inverses):
    """Quadratic model of the loss of each machine; False when a Hessian has no trustworthy inverse."""
    size, n = rows.shape
    H, gradient, margins = np.empty((size, size)), np.empty(size), np.empty(n)
    usable = True
    for c in range(signs.shape[0]):
        signed_combination(rows, coef[c], signs[c], margins)
        newton_system(
            rows,
            signs[c],
            weight,
            margins,
            coef[c],
            ridge,
            residuals[c],
            curvatures[c],
            weighted[c],
            H,
            gradient,
        )
        usable = invert(H, collinear, inverses[c]) and usable
    return usable


@kernel
def add_squares(products, start_anew, factor, values, first, last):
    """Add squared products to some values, or begin with them; then multiply by the factors, if there are any."""
    for i in range(first, last):
        square = products[i] * products[i]
        values[i] = square if start_anew else values[i] + square
    if factor.shape[0] > 0:
        for i in range(first, last):
            values[i] *= factor[i]


# -- A copy of the data with one byte for each number --

LARGEST_BYTE = 127
TILE = 4096  # features whose sums stay close to the processor


@kernel
def to_bytes(block, factor, out, step, lost, length):
    """Write columns times their factors as multiples of steps, what is lost of each, and the length of what is left."""
    n, p = block.shape
    top, error, square, inverse = np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p)
    for i in range(n):
        for j in range(p):
            block[i, j] *= factor[j]
            top[j] = max(top[j], abs(block[i, j]))
    for j in range(p):
        step[j] = top[j] / LARGEST_BYTE
        inverse[j] = 1.0 / np.float64(step[j]) if step[j] > 0.0 else 0.0
    for i in range(n):
        for j in range(p):
            whole = np.floor(block[i, j] * inverse[j] + 0.5)
            difference = block[i, j] - whole * step[j]
            out[i, j] = np.int8(whole)
            error[j] += difference * difference
            square[j] += whole * whole
    for j in range(p):
        lost[j] = np.sqrt(error[j]) * (1.0 + 1e-6)
        length[j] = np.sqrt(square[j]) * step[j] * (1.0 + 1e-6)


@kernel
def coarse_lengths(values, rows, V, step, out, first, last):
    """Length of the products of some features with the rows of V, from some samples of the bytes."""
    m, in_eights = rows.shape[0], rows.shape[0] // 8 * 8
    sums, total = np.empty(TILE, dtype=np.float32), np.empty(TILE, dtype=np.float32)
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        width = end - begin
        total[:] = 0.0
        for q in range(V.shape[0]):
            sums[:] = 0.0
            for t in range(0, in_eights, 8):
                r, v = rows[t : t + 8], V[q, t : t + 8]
                x0, x1, x2 = values[r[0], begin:end], values[r[1], begin:end], values[r[2], begin:end]
                x3, x4, x5 = values[r[3], begin:end], values[r[4], begin:end], values[r[5], begin:end]
                x6, x7 = values[r[6], begin:end], values[r[7], begin:end]
                a, b, c, d, e, f, g, h = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
                for j in range(width):
                    one = (a * np.float32(x0[j]) + b * np.float32(x1[j])) + (
                        c * np.float32(x2[j]) + d * np.float32(x3[j])
                    )
                    two = (e * np.float32(x4[j]) + f * np.float32(x5[j])) + (
                        g * np.float32(x6[j]) + h * np.float32(x7[j])
                    )
                    sums[j] += one + two
            for t in range(in_eights, m):
                x, factor = values[rows[t], begin:end], V[q, t]
                for j in range(width):
                    sums[j] += factor * np.float32(x[j])
            for j in range(width):
                total[j] += sums[j] * sums[j]
        for j in range(width):
            out[begin + j] = np.sqrt(total[j]) * step[begin + j]


@kernel
def may_reach(estimate, lost, factor, length, rest, least, found):
    """Write the features that may reach the least length in question to ``found``; returns how many there are."""
    count = 0
    for j in range(estimate.shape[0]):
        if estimate[j] + factor * lost[j] + rest * length[j] >= least:
            found[count] = j
            count += 1
    return count


@kernel
def exact_squares(rows, V, factor, out):
    """Sum of squared products of each of the rows with those of V, times its factor."""
    for k in range(rows.shape[0]):
        total = 0.0
        for q in range(V.shape[0]):
            product = inner_product(rows[k], V[q])
            total += product * product
        out[k] = total * factor[k]
