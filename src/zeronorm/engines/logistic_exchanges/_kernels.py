# mypy: allow-untyped-defs
"""Compiled loops of the logistic methods."""

from __future__ import annotations

import numpy as np

from zeronorm._jit import dividing_kernel, kernel, reduction

ARMIJO = 1e-4
SMALLEST_STEP = 1e-8
PART = 512  # samples per block, so that the features of a block fit in the cache

LARGEST_DECAY = 745.0  # exp(-745) is the smallest positive double
LOG2_E, LOG_2_HEAD, LOG_2_TAIL = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
HALVES = np.ldexp(1.0, -np.arange(1080))
GAIN_ROUNDING = 1e-9  # relative gain below the rounding error


@reduction
def inner_product(u, v):
    """u'v."""
    total = 0.0
    for i in range(u.shape[0]):
        total += u[i] * v[i]
    return total


@kernel
def add_multiple(factor, values, out):
    for i in range(out.shape[0]):
        out[i] += factor * values[i]


@dividing_kernel
def decays(values, out):
    """exp(-|v|) of each value, by a polynomial and a table of powers of two, in vector instructions."""
    for i in range(values.shape[0]):
        size = abs(values[i])
        size = size if size < LARGEST_DECAY else LARGEST_DECAY
        halvings = np.floor(size * LOG2_E + 0.5)
        x = (halvings * LOG_2_HEAD - size) + halvings * LOG_2_TAIL
        term = 1.0 + x * (1.0 / 13.0)
        term = 1.0 + x * (1.0 / 12.0) * term
        term = 1.0 + x * (1.0 / 11.0) * term
        term = 1.0 + x * (1.0 / 10.0) * term
        term = 1.0 + x * (1.0 / 9.0) * term
        term = 1.0 + x * (1.0 / 8.0) * term
        term = 1.0 + x * (1.0 / 7.0) * term
        term = 1.0 + x * (1.0 / 6.0) * term
        term = 1.0 + x * (1.0 / 5.0) * term
        term = 1.0 + x * (1.0 / 4.0) * term
        term = 1.0 + x * (1.0 / 3.0) * term
        term = 1.0 + x * 0.5 * term
        out[i] = (1.0 + x * term) * HALVES[int(halvings)]


@dividing_kernel
def losses_of_decays(margins, small, out):
    """log(1 + exp(-margin)) from small = exp(-|margin|), with 2 artanh(small / (2 + small)) as a series."""
    for i in range(margins.shape[0]):
        ratio = small[i] / (2.0 + small[i])
        x = ratio * ratio
        term = 1.0 / 33.0 + x * (1.0 / 35.0)
        term = 1.0 / 31.0 + x * term
        term = 1.0 / 29.0 + x * term
        term = 1.0 / 27.0 + x * term
        term = 1.0 / 25.0 + x * term
        term = 1.0 / 23.0 + x * term
        term = 1.0 / 21.0 + x * term
        term = 1.0 / 19.0 + x * term
        term = 1.0 / 17.0 + x * term
        term = 1.0 / 15.0 + x * term
        term = 1.0 / 13.0 + x * term
        term = 1.0 / 11.0 + x * term
        term = 1.0 / 9.0 + x * term
        term = 1.0 / 7.0 + x * term
        term = 1.0 / 5.0 + x * term
        term = 1.0 / 3.0 + x * term
        out[i] = 2.0 * ratio * (1.0 + x * term) + 0.5 * (abs(margins[i]) - margins[i])


@dividing_kernel
def slopes_of_decays(margins, small, sign, weight, residual, curvature):
    """The negative first and the second derivative of the loss by the decision value."""
    for i in range(margins.shape[0]):
        share = 1.0 / (1.0 + small[i])
        wrong = share * small[i] if margins[i] > 0.0 else share
        residual[i] = weight[i] * sign[i] * wrong
        curvature[i] = weight[i] * small[i] * share * share


@kernel
def part_of_loss(rows, begin, w, sign, weight, margins, small, residual, curvature):
    """Loss of the samples from ``begin`` on, with derivatives; ``margins`` and ``small`` are work arrays."""
    end = begin + margins.shape[0]
    margins[:] = 0.0
    for j in range(rows.shape[0]):
        add_multiple(w[j], rows[j, begin:end], margins)
    for i in range(margins.shape[0]):
        margins[i] *= sign[i]
    decays(margins, small)
    losses_of_decays(margins, small, residual)
    total = inner_product(weight, residual)
    slopes_of_decays(margins, small, sign, weight, residual, curvature)
    return total


@kernel
def expand(rows, sign, weight, ridge, w, with_hessian, residual, curvature, weighted, H, gradient):
    """Compute the objective at ``w``, the negative gradient and optionally the lower triangle of the Hessian.

    Samples are processed in blocks that fit in the cache. ``residual`` and ``curvature`` are the derivatives by
    the decision values, ``weighted`` the rows times the curvature: of all samples, or, where these arrays have
    the size of a block, of the last block.
    """
    size, n = rows.shape
    keep_all = residual.shape[0] == n
    margins, small = np.empty(min(n, PART)), np.empty(min(n, PART))
    H[:] = 0.0
    gradient[:] = 0.0
    total = 0.0
    for begin in range(0, n, PART):
        end = min(begin + PART, n)
        first, width = begin if keep_all else 0, end - begin
        slope, bend = residual[first : first + width], curvature[first : first + width]
        scratch = margins[:width], small[:width]
        total += part_of_loss(
            rows, begin, w, sign[begin:end], weight[begin:end], scratch[0], scratch[1], slope, bend
        )
        for j in range(size if with_hessian else 0):
            own = weighted[j, first : first + width]
            for i in range(width):
                own[i] = rows[j, begin + i] * bend[i]
            for m in range(j + 1):
                H[j, m] += inner_product(own, rows[m, begin:end])
            gradient[j] += inner_product(slope, rows[j, begin:end])
    for j in range(size - 1):
        total += 0.5 * ridge * w[j] * w[j]
        gradient[j] -= ridge * w[j]
        H[j, j] += ridge
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
        # A dependent column: a huge pivot keeps its weight unchanged, where a tiny one would give a random weight.
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
def fit_model(rows, sign, weight, ridge, w, tol, max_iter, hopeless):
    """Fit one model by Newton's method from ``w``, which becomes the result.

    Returns the objective, infinity when given up, the steps taken, and whether it converged.
    """
    size, width = rows.shape[0], min(rows.shape[1], PART)
    H, gradient = np.empty((size, size)), np.empty(size)
    step, trial, slope = np.empty(size), np.empty(size), np.empty(size)
    residual, curvature, weighted = np.empty(width), np.empty(width), np.empty((size, width))
    objective = expand(rows, sign, weight, ridge, w, True, residual, curvature, weighted, H, gradient)
    if not objective <= np.log(2.0) * np.sum(weight):
        # Weights of a fit that separates the classes are huge, and a bad start for a subset that does not.
        w[:] = 0.0
        objective = expand(rows, sign, weight, ridge, w, True, residual, curvature, weighted, H, gradient)
    for steps in range(1, max_iter + 1):
        step[:] = gradient
        slope[:] = gradient
        solve_in_place(H, step)
        decrement = inner_product(slope, step)
        # Half the Newton decrement is the expected gain.
        if objective - 2.0 * decrement > hopeless and decrement < 0.5 * objective:
            return np.inf, steps, True
        is_last = decrement <= tol * objective
        t = 1.0
        while True:
            for j in range(size):
                trial[j] = w[j] + t * step[j]
            value = expand(
                rows, sign, weight, ridge, trial, not is_last, residual, curvature, weighted, H, gradient
            )
            if value <= objective - ARMIJO * t * decrement or t < SMALLEST_STEP:
                break
            t *= 0.5
        if value < objective:
            w[:] = trial
            objective = value
        if is_last or t < SMALLEST_STEP:
            return objective, steps, decrement <= max(tol, GAIN_ROUNDING) * objective
    return objective, max_iter, False


@kernel
def fit_logistic(rows, signs, weight, ridge, coef, tol, max_iter, hopeless):
    """Fit one logistic model per row of ``signs`` by Newton's method; ``coef`` is the start and the result.

    ``rows`` holds one feature per row and ones in the last row, the bias, which is not penalised. Returns
    the sum of the objectives, and the steps taken, negative when a model did not converge. Gives up
    with infinity as soon as the sum will surely stay above ``hopeless``.
    """
    total, n_steps, failed = 0.0, 0, False
    for c in range(signs.shape[0]):
        objective, steps, converged = fit_model(
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
    """Invert a symmetric matrix given by its lower triangle, which becomes its Cholesky factor.

    Returns False when a pivot is below the share ``collinear`` of its diagonal element.
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
def expand_models(rows, signs, weight, ridge, coef, collinear, residuals, curvatures, weighted, inverses):
    """Second-order expansion of the loss of each model; False when a Hessian is too close to singular."""
    size = rows.shape[0]
    H, gradient = np.empty((size, size)), np.empty(size)
    usable = True
    for c in range(signs.shape[0]):
        out = residuals[c], curvatures[c], weighted[c]
        expand(rows, signs[c], weight, ridge, coef[c], True, out[0], out[1], out[2], H, gradient)
        usable = invert(H, collinear, inverses[c]) and usable
    return usable


@kernel
def add_squares(products, start_anew, factor, values, first, last):
    """Set values to squared products, or add these; then multiply by the factors, if there are any."""
    for i in range(first, last):
        square = products[i] * products[i]
        values[i] = square if start_anew else values[i] + square
    if factor.shape[0] > 0:
        for i in range(first, last):
            values[i] *= factor[i]


# -- A quantised copy of the data with one byte per number --

LARGEST_BYTE = 127
TILE = 4096  # features per block, so that their sums fit in the cache


@kernel
def to_bytes(block, factor, start, values, step, lost, length):
    """Quantise columns times their factors; write the norm of the rounding error and of the quantised column.

    ``start`` is the position of the first of these columns in the arrays for all columns.
    """
    n, p = block.shape
    top, error, square, inverse = np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p)
    unit = np.empty(p)
    for i in range(n):
        row = block[i]
        for j in range(p):
            row[j] *= factor[j]
            top[j] = max(top[j], abs(row[j]))
    for j in range(p):
        step[start + j] = top[j] / LARGEST_BYTE
        unit[j] = step[start + j]
        inverse[j] = 1.0 / unit[j] if unit[j] > 0.0 else 0.0
    for i in range(n):
        row, out = block[i], values[i, start : start + p]
        for j in range(p):
            whole = np.floor(row[j] * inverse[j] + 0.5)
            difference = row[j] - whole * unit[j]
            out[j] = np.int8(whole)
            error[j] += difference * difference
            square[j] += whole * whole
    for j in range(p):
        lost[start + j] = np.sqrt(error[j]) * (1.0 + 1e-6)
        length[start + j] = np.sqrt(square[j]) * unit[j] * (1.0 + 1e-6)


@kernel
def coarse_sums(values, rows, shares, begin, end, sums):
    """Products of the quantised features from ``begin`` to ``end`` with a vector, over some samples."""
    m, in_eights, width = rows.shape[0], rows.shape[0] // 8 * 8, end - begin
    sums[:] = 0.0
    for t in range(0, in_eights, 8):
        r, v = rows[t : t + 8], shares[t : t + 8]
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
        x, factor = values[rows[t], begin:end], shares[t]
        for j in range(width):
            sums[j] += factor * np.float32(x[j])


@kernel
def coarse_reach(
    values, rows, shares, starts, query, step, lost, length, total, rest, least, found, estimate, first, last
):
    """Features whose norm of products may reach the ``least`` of a query, and their estimated norms.

    Vector v has the samples rows[starts[v] : starts[v + 1]] and belongs to query[v]; all queries share one pass over
    the copy. ``found`` and ``estimate`` are written from ``first`` on; returns their number for each query.
    """
    count = np.zeros(least.shape[0], dtype=np.int64)
    sums, squares = np.empty(TILE, dtype=np.float32), np.empty((least.shape[0], TILE), dtype=np.float32)
    top = np.empty(TILE, dtype=np.float32)
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        width = end - begin
        squares[:] = 0.0
        for v in range(query.shape[0]):
            own, mine = slice(starts[v], starts[v + 1]), squares[query[v]]
            coarse_sums(values, rows[own], shares[own], begin, end, sums)
            for j in range(width):
                mine[j] += sums[j] * sums[j]
        for q in range(least.shape[0]):
            coarse_bounds(
                squares[q], step[begin:end], lost[begin:end], length[begin:end], total[q], rest[q], top
            )
            for j in range(width):
                if top[j] >= least[q]:
                    index = first + count[q]
                    found[q, index] = begin + j
                    estimate[q, index] = squares[q, j]
                    count[q] += 1
    return count


@kernel
def coarse_bounds(squares, step, lost, length, total, rest, top):
    """Replace squared sums by estimated norms; ``top`` receives upper bounds on the norms."""
    for j in range(step.shape[0]):
        squares[j] = np.sqrt(squares[j]) * step[j]
        top[j] = squares[j] + total * lost[j] + rest * length[j]


@kernel
def exact_squares(rows, V, factor, out):
    """For each row the sum of its squared products with the rows of V, times its factor."""
    for k in range(rows.shape[0]):
        total = 0.0
        for q in range(V.shape[0]):
            product = inner_product(rows[k], V[q])
            total += product * product
        out[k] = total * factor[k]
