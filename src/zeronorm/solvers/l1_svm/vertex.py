"""The exact end of an interior-point method for the ℓ1 machine: a vertex, and the proof that it is optimal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg.lapack import dtrtrs

from zeronorm._types import BoolArray, FloatArray, Int64Array

EXACT = 1e-9  # relative violation that is rounding
INDEPENDENT = 1e-9  # smallest pivot of the equations of the end, relative to the largest


@dataclass(frozen=True, eq=False)
class SignedProblem:
    """Signed rows z with their sign last, targets h, prices C of the rows and costs c of the features.

    ``pull`` and ``loss`` are those of further rows whose multipliers are fixed.
    """

    rows: FloatArray
    target: FloatArray
    price: FloatArray
    cost: FloatArray
    pull: FloatArray
    loss: float = 0.0

    def objective(self, weights: FloatArray, short: FloatArray) -> float:
        """Costs of the weights and loss of all rows; ``short`` is what the rows lack of their targets."""
        loss = self.price @ np.maximum(short, 0.0) + self.loss - self.pull @ weights
        return float(self.cost @ np.abs(weights[:-1]) + loss)

    def proven_objective(self, weights: FloatArray, alpha: FloatArray) -> float | None:
        """The objective, should the multipliers prove that there is no better one."""
        pull = alpha @ self.rows + self.pull
        if np.any(np.abs(pull[:-1]) > (1.0 + EXACT) * self.cost):
            return None
        if abs(pull[-1]) > EXACT * self.price.sum():
            return None
        objective = self.objective(weights, self.target - self.rows @ weights)
        if not objective - self.loss - float(alpha @ self.target) <= EXACT * objective:
            return None
        return objective


@dataclass(frozen=True, eq=False)
class Guess:
    """Which rows lie on the kink of their loss or beyond it, and which features have a weight of which sign."""

    kink: Int64Array
    at_price: BoolArray
    active: Int64Array
    signs: FloatArray


def vertex(problem: SignedProblem, guess: Guess, alpha: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Weights and multipliers that the guess determines; None where they contradict it.

    Where the multipliers on the kink are not determined, those nearest to ``alpha`` are taken.
    """
    columns = np.append(guess.active, problem.cost.size)
    Q, R = np.linalg.qr(problem.rows[guess.kink[:, None], columns])
    pivots = np.abs(np.diag(R))
    if pivots.min() <= INDEPENDENT * pivots.max():
        return None
    weights = np.zeros(problem.cost.size + 1)
    weights[columns] = dtrtrs(R, problem.target[guess.kink] @ Q)[0]
    if np.any(weights[guess.active] * guess.signs <= 0.0):
        return None
    multipliers = np.where(guess.at_price, problem.price, 0.0)
    multipliers[guess.kink] = alpha[guess.kink]
    wanted = np.append(problem.cost[guess.active] * guess.signs, 0.0)
    missing = wanted - (multipliers @ problem.rows + problem.pull)[columns]
    multipliers[guess.kink] += Q @ dtrtrs(R, missing, trans=1)[0]
    outside = np.maximum(-multipliers, multipliers - problem.price)
    if np.any(outside > EXACT * problem.price):
        return None
    return weights, np.clip(multipliers, 0.0, problem.price)


# -- Where an interior-point method for the ℓ1 machine starts --


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


# -- An ℓ1 machine with fewer rows and features: what is left, and how its solution reads in the whole problem --


@dataclass(frozen=True, eq=False)
class Reduction:
    """The problem of the rows and features left; ``coarse`` are its rows in single precision.

    The other rows have their multipliers fixed at zero or at their price, the other features no weight.
    """

    whole: SignedProblem
    problem: SignedProblem
    coarse: Any
    samples: Int64Array
    features: Int64Array
    fixed_alpha: FloatArray

    @classmethod
    def none_of(cls, whole: SignedProblem) -> Self:
        """All rows and features are left."""
        n, p = whole.target.size, whole.cost.size
        return cls(whole, whole, whole.rows.astype(np.float32), np.arange(n), np.arange(p), np.zeros(n))

    def restricted(self, rows_stay: BoolArray, at_price: BoolArray, features_stay: BoolArray) -> Reduction:
        """Fewer rows and features; of the rows that go, some at their price."""
        problem = self.problem
        price = problem.price[at_price]
        fixed_alpha = self.fixed_alpha.copy()
        fixed_alpha[self.samples[at_price]] = price
        columns = np.append(features_stay, True)
        rows = problem.rows if rows_stay.all() else problem.rows[rows_stay]
        rows = rows if columns.all() else rows.take(np.flatnonzero(columns), axis=1)
        left = SignedProblem(
            rows,
            problem.target[rows_stay],
            problem.price[rows_stay],
            problem.cost[features_stay],
            (problem.pull + price @ problem.rows[at_price])[columns],
            problem.loss + float(price @ problem.target[at_price]),
        )
        samples, features = self.samples[rows_stay], self.features[features_stay]
        return Reduction(self.whole, left, rows.astype(np.float32), samples, features, fixed_alpha)

    def has(self, rows: Int64Array, features: Int64Array) -> bool:
        """Whether all of these are left."""
        return bool(np.isin(rows, self.samples).all() and np.isin(features, self.features).all())

    def lifted(self, weights: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights, the bias last, and multipliers of the whole problem."""
        all_weights, all_alpha = np.zeros(self.whole.cost.size + 1), self.fixed_alpha.copy()
        all_weights[self.features], all_weights[-1] = weights[:-1], weights[-1]
        all_alpha[self.samples] = alpha
        return all_weights, all_alpha

    def contradicted(self, weights: FloatArray, alpha: FloatArray) -> tuple[Int64Array, Int64Array]:
        """Rows fixed at the wrong bound and features left out that could lower the objective."""
        whole = self.whole
        short = whole.target - whole.rows @ weights
        fixed = np.ones(short.size, dtype=bool)
        fixed[self.samples] = False
        excess = np.abs(alpha @ whole.rows)[:-1] - whole.cost
        wrong_rows = fixed & np.where(alpha > 0.0, short < 0.0, short > 0.0)
        return np.flatnonzero(wrong_rows), np.flatnonzero(excess > EXACT * whole.cost)
