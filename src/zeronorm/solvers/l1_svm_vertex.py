"""The exact end of an interior-point method for the ℓ1 machine: a vertex, and the proof that it is optimal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dtrtrs

from zeronorm.solvers.arrays import BoolArray, FloatArray, IntArray

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

    kink: IntArray
    at_price: BoolArray
    active: IntArray
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
