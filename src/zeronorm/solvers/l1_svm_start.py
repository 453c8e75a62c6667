"""Where an interior-point method for the ℓ1 machine starts."""

from __future__ import annotations

import numpy as np

from zeronorm.solvers.arrays import FloatArray
from zeronorm.solvers.l1_svm_vertex import SignedProblem

TINY = float(np.finfo(float).tiny)
SMALLEST_SHARE = 0.3  # of half their range at which multipliers start
WEIGHTS = 0.8  # multiple of the nearest weights in one direction at which weights start
ROOM = 0.5  # of all slacks, relative to their mean


def balanced_multipliers(problem: SignedProblem) -> FloatArray:
    """The largest multiples of the prices on either side whose sums agree."""
    positive = problem.rows[:, -1] > 0.0
    mass = np.array([problem.price[~positive].sum(), problem.price[positive].sum()])
    balance = mass.min() / np.maximum(mass, TINY) if mass.min() > 0.0 else np.ones(2)
    return np.asarray(problem.price * balance[positive.astype(int)])


def start_point(problem: SignedProblem, balanced: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Positive x = (t, ξ, w⁺, w⁻) and s = (α, C - α, c - g, c + g) of balanced multipliers, for a bias of zero."""
    rows, cost = problem.rows, problem.cost
    pull = 0.5 * (balanced @ rows)[:-1]
    # Slopes that start far from what the multipliers say take many steps to get there.
    share = max(SMALLEST_SHARE, 1.0 / max(float(np.max(np.abs(pull) / cost)), 1.0))
    alpha, pull = 0.5 * share * balanced, share * pull
    slopes = np.concatenate([np.maximum(cost - pull, cost), np.maximum(cost + pull, cost)])
    weights = _weights(problem, balanced)
    short = problem.target - rows[:, :-1] @ weights
    room = max(ROOM * float(np.abs(short).mean()), TINY)
    slacks = np.concatenate([np.maximum(-short, 0.0), np.maximum(short, 0.0)]) + room
    parts = np.concatenate([np.maximum(weights, 0.0), np.maximum(-weights, 0.0)])
    product = float(np.mean(alpha * slacks[: alpha.size]))
    x = np.concatenate([slacks, parts + product / slopes])
    return x, np.concatenate([alpha, problem.price - alpha, slopes])


def _weights(problem: SignedProblem, balanced: FloatArray) -> FloatArray:
    """Nearly the multiple of the pull of balanced targets that comes nearest to them."""
    weighted = balanced * problem.target
    direction = (weighted @ problem.rows)[:-1] / problem.cost
    value = problem.rows[:, :-1] @ direction
    nearest = float(weighted @ value) / max(float(balanced @ value**2), TINY)
    return np.asarray(WEIGHTS * nearest * direction)
