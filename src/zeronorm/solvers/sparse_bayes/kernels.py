"""Compiled loops of sparse Bayesian learning: prior variances of largest evidence, one column at a time."""

# mypy: allow-untyped-defs

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel

_REFINEMENTS = 60
_HALVINGS = 30


@kernel
def gain_of(variance, s, q):
    """Log evidence with this prior variance minus that without the column; s and q by output."""
    total = 0.0
    for c in range(s.shape[0]):
        grown = 1.0 + variance * s[c]
        total += 0.5 * (variance * q[c] * q[c] / grown - np.log(grown))
    return total


@kernel
def best_variance_of(s, q):
    """The prior variance of largest evidence, 0 when the column is better out; outputs share it."""
    high = 0.0
    for c in range(s.shape[0]):
        if s[c] > 0.0 and q[c] * q[c] > s[c]:
            high = max(high, (q[c] * q[c] - s[c]) / (s[c] * s[c]))
    if s.shape[0] == 1 or high == 0.0:
        return high
    # All stationary points lie below the largest optimum of an output: halve from there, climb from the best.
    variance, best_gain, trial = 0.0, 0.0, high
    for _ in range(_HALVINGS):
        gain = gain_of(trial, s, q)
        if gain > best_gain:
            variance, best_gain = trial, gain
        trial *= 0.5
    low, high = 0.5 * variance, min(2.0 * variance, high)
    for _ in range(_REFINEMENTS):
        slope, bend = 0.0, 0.0
        for c in range(s.shape[0]):
            grown = 1.0 + variance * s[c]
            square = q[c] * q[c] / (grown * grown)
            slope += square - s[c] / grown
            bend += s[c] * s[c] / (grown * grown) - 2.0 * s[c] * square / grown
        if slope > 0.0:
            low = variance
        else:
            high = variance
        following = variance - slope / bend if bend < 0.0 else 0.5 * (low + high)
        if not low < following < high:
            following = 0.5 * (low + high)
        change = abs(following - variance)
        variance = following
        if change <= 1e-13 * variance:  # also when it is zero: better out
            break
    return variance


@kernel
def best_variances(s, q, variance, gain):
    """Fill ``variance`` and ``gain`` for the rows of s and q."""
    for k in range(s.shape[0]):
        variance[k] = best_variance_of(s[k], q[k])
        gain[k] = gain_of(variance[k], s[k], q[k])


@kernel
def sweep_precisions(mean, covariance, precision, least_change):
    """Re-estimate the precisions of all columns but the first in turn; infinite ones leave.

    Relative changes below ``least_change`` are not made.
    ``mean`` (outputs × columns) and ``covariance`` (outputs × columns × columns) follow by updates of rank one.
    """
    n_outputs, size = mean.shape
    s, q, column = np.empty(n_outputs), np.empty(n_outputs), np.empty(size)
    for j in range(1, size):
        if np.isinf(precision[j]):
            continue
        for c in range(n_outputs):
            spread = covariance[c, j, j]
            s[c] = max(1.0 / spread - precision[j], 0.0)
            q[c] = mean[c, j] / spread
        variance = best_variance_of(s, q)
        updated = 1.0 / variance if variance > 0.0 else np.inf
        if abs(updated - precision[j]) <= least_change * precision[j]:
            continue
        inverse_change = 1.0 / (updated - precision[j])
        for c in range(n_outputs):
            factor = 1.0 / (covariance[c, j, j] + inverse_change)
            for i in range(size):
                column[i] = covariance[c, j, i]
            shift = factor * mean[c, j]
            for i in range(size):
                mean[c, i] -= shift * column[i]
                scaled = factor * column[i]
                for k in range(size):
                    covariance[c, i, k] -= scaled * column[k]
        precision[j] = updated
