# mypy: allow-untyped-defs
"""Coordinate ascent for the multi-class dual; see ``multiclass_svm`` for the problem."""

from __future__ import annotations

from zeronorm._jit import kernel


@kernel
def ascend(K, codes, ridge, upper, alpha, f, balance, bias, stiffness, tol, max_sweeps):
    """Sweep over the variables until none gains more than tol; changes alpha, f and balance.

    Every sweep over all variables is followed by sweeps over the free ones until they are settled.
    Returns the number of sweeps.
    """
    everywhere = True
    for sweep in range(max_sweeps):
        worst = _sweep(K, codes, ridge, upper, alpha, f, balance, bias, stiffness, everywhere)
        if worst <= tol:
            if everywhere:
                return sweep + 1
            everywhere = True
        else:
            everywhere = False
    return max_sweeps


@kernel
def _sweep(K, codes, ridge, upper, alpha, f, balance, bias, stiffness, everywhere):
    """One step for each variable (or each free one); the largest violation met."""
    n, n_classes = alpha.shape
    worst = 0.0
    for i in range(n):
        own = codes[i]
        curvature = 2.0 * (K[i, i] + stiffness) + ridge[i]
        for m in range(n_classes):
            old = alpha[i, m]
            if m == own or upper[i] == 0.0 or not (everywhere or 0.0 < old < upper[i]):
                continue
            margin = f[own, i] - f[m, i] + bias[own] - bias[m] + stiffness * (balance[own] - balance[m])
            slope = 1.0 - margin - ridge[i] * old
            new = min(max(old + slope / curvature, 0.0), upper[i])
            if new == old:
                continue
            worst = max(worst, abs(slope))
            step = new - old
            alpha[i, m] = new
            balance[own] += step
            balance[m] -= step
            for j in range(n):
                f[own, j] += step * K[i, j]
                f[m, j] -= step * K[i, j]
    return worst
