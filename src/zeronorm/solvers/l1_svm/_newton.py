r"""The linear system of a Newton step of the ℓ1 SVM, reduced to features or to samples.

A step with change d of the weights (the bias last) and change a of the multipliers satisfies

.. math:: Z d + \Theta^{-1} a = r, \qquad D (d_f - e) = Z_f^\top a, \qquad z_b^\top a = o,

with :math:`Z_f` the columns of the features in the rows Z and :math:`z_b` the column of signs. Eliminating a leaves a
positive definite matrix with one row for each feature, :math:`Z^\top \Theta Z + D`; eliminating d leaves one with a row
for each sample, :math:`\Theta^{-1} + Z_f D^{-1} Z_f^\top`. The smaller one is factorised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from zeronorm._types import BoolArray, FloatArray, Int64Array

BLOCK = 2048  # rows or columns scaled at a time


class NotPositiveDefinite(ArithmeticError):
    """A matrix is not positive definite because of rounding."""


class NewtonSystem(Protocol):
    """A factorised system that can be solved for several right-hand sides."""

    def solve(self, right: FloatArray, drift: FloatArray, off: float) -> tuple[FloatArray, FloatArray]:
        """The changes d of weights and bias and a of the multipliers, for right-hand sides r, e and o."""


def newton_system(rows: FloatArray, theta: FloatArray, stiffness: FloatArray, coarse: Any) -> NewtonSystem:
    """The smaller of the two systems; ``coarse`` holds the rows in the precision that the matrix needs."""
    kind = FeatureSystem if stiffness.size < theta.size else SampleSystem
    return kind(rows, theta, stiffness, coarse)


class FeatureSystem:
    """The system with one equation for each feature and one for the bias."""

    def __init__(self, rows: FloatArray, theta: FloatArray, stiffness: FloatArray, coarse: Any) -> None:
        self.rows, self.theta, self.stiffness = rows, theta, stiffness
        matrix = _gram_of_columns(coarse, np.sqrt(theta))
        np.einsum("ii->i", matrix)[:-1] += stiffness
        self._factor = _Factor(matrix)

    def solve(self, right: FloatArray, drift: FloatArray, off: float) -> tuple[FloatArray, FloatArray]:
        weighted = self.theta * right
        system = weighted @ self.rows
        system[:-1] += self.stiffness * drift
        system[-1] -= off
        change = self._factor.solve(system)
        return change, weighted - self.theta * (self.rows @ change)


class SampleSystem:
    r"""The system with one equation for each sample.

    Along :math:`z_b` the matrix may be singular. As :math:`z_b^\top a` is known, a multiple of
    :math:`z_b z_b^\top` can be added to both sides.
    """

    def __init__(self, rows: FloatArray, theta: FloatArray, stiffness: FloatArray, coarse: Any) -> None:
        self.rows, self.softness = rows, 1.0 / stiffness
        matrix = _gram_of_rows(coarse, np.sqrt(self.softness))
        diagonal = np.einsum("ii->i", matrix)
        diagonal += 1.0 / theta
        self.sign = rows[:, -1]
        self.added = float(diagonal.mean())
        matrix += self.added * np.multiply.outer(self.sign, self.sign)
        self._factor = _Factor(matrix)
        self._per_bias = self._factor.solve(self.sign)

    def solve(self, right: FloatArray, drift: FloatArray, off: float) -> tuple[FloatArray, FloatArray]:
        without_bias = np.append(drift, -self.added * off)
        alpha = self._factor.solve(right - self.rows @ without_bias)
        bias = (self.sign @ alpha - off) / (self.sign @ self._per_bias)
        alpha -= bias * self._per_bias
        change = alpha @ self.rows
        change[:-1] *= self.softness
        change[:-1] += drift
        change[-1] = bias
        return change, alpha


class _Factor:
    """Cholesky factor of a matrix given by its lower triangle, which it overwrites.

    The entries span many orders of magnitude; scaling to a unit diagonal keeps the accuracy.
    """

    def __init__(self, matrix: FloatArray) -> None:
        diagonal = np.diagonal(matrix)
        if not diagonal.min() > 0.0:
            raise NotPositiveDefinite
        self.unit = 1.0 / np.sqrt(diagonal)
        matrix *= self.unit
        matrix *= self.unit[:, None]
        self.lower, failed = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        if failed:
            raise NotPositiveDefinite

    def solve(self, right: FloatArray) -> FloatArray:
        solution, _ = dpotrs(self.lower, self.unit * right, lower=1, overwrite_b=1)
        return np.asarray(self.unit * solution)


def _gram_of_columns(rows: Any, root: FloatArray) -> FloatArray:
    """Lower triangle of Z'R²Z, in the precision of the rows."""
    n, width = rows.shape
    syrk, scale = _syrk(rows), root[:, None].astype(rows.dtype)
    product = np.zeros((width, width), dtype=rows.dtype, order="F")
    buffer = np.empty((min(BLOCK, n), width), dtype=rows.dtype)
    for start in range(0, n, BLOCK):
        part = rows[start : start + BLOCK]
        scaled = np.multiply(part, scale[start : start + BLOCK], out=buffer[: len(part)])
        product = syrk(1.0, scaled.T, beta=1.0, c=product, lower=1, overwrite_c=1)
    return product.astype(np.float64, copy=False)


def _gram_of_rows(rows: Any, root: FloatArray) -> FloatArray:
    """Lower triangle of ZR²Z' over the features, in the precision of the rows."""
    n = len(rows)
    syrk, scale = _syrk(rows), root.astype(rows.dtype)
    product = np.zeros((n, n), dtype=rows.dtype, order="F")
    for start in range(0, root.size, BLOCK):
        stop = min(start + BLOCK, root.size)
        scaled = rows[:, start:stop] * scale[start:stop]
        product = syrk(1.0, scaled.T, trans=1, beta=1.0, c=product, lower=1, overwrite_c=1)
    return product.astype(np.float64, copy=False)


def _syrk(rows: Any) -> Any:
    return dsyrk if rows.dtype == np.float64 else ssyrk


# -- The exact solution at the end of an interior-point method for the ℓ1 SVM: a vertex, and a proof of optimality --


EXACT = 1e-9  # relative violation that is rounding
INDEPENDENT = 1e-9  # smallest pivot of the equations of a vertex, relative to the largest


@dataclass(frozen=True, eq=False)
class SignedProblem:
    """Signed rows z with the sign last, targets h, costs C of the rows and penalties c of the features.

    ``gradient`` and ``loss`` are the contributions of further rows whose multipliers are fixed.
    """

    rows: FloatArray
    target: FloatArray
    cost: FloatArray
    penalty: FloatArray
    gradient: FloatArray
    loss: float = 0.0

    def objective(self, weights: FloatArray, short: FloatArray) -> float:
        """Penalty of the weights plus loss of all rows; ``short`` is target minus decision value of each row."""
        loss = self.cost @ np.maximum(short, 0.0) + self.loss - self.gradient @ weights
        return float(self.penalty @ np.abs(weights[:-1]) + loss)

    def proven_objective(self, weights: FloatArray, alpha: FloatArray) -> float | None:
        """The objective if the multipliers prove that it is optimal, otherwise None."""
        gradient = alpha @ self.rows + self.gradient
        if np.any(np.abs(gradient[:-1]) > (1.0 + EXACT) * self.penalty):
            return None
        if abs(gradient[-1]) > EXACT * self.cost.sum():
            return None
        objective = self.objective(weights, self.target - self.rows @ weights)
        if not objective - self.loss - float(alpha @ self.target) <= EXACT * objective:
            return None
        return objective


@dataclass(frozen=True, eq=False)
class Guess:
    """A guess of the rows on the kink of their loss or beyond it, and of the features with a weight and its sign."""

    kink: Int64Array
    at_cost: BoolArray
    active: Int64Array
    signs: FloatArray


def vertex(problem: SignedProblem, guess: Guess, alpha: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Weights and multipliers determined by the guess; None where they contradict it.

    Where the multipliers on the kink are not unique, those nearest to ``alpha`` are taken.
    """
    columns = np.append(guess.active, problem.penalty.size)
    Q, R = np.linalg.qr(problem.rows[guess.kink[:, None], columns])
    pivots = np.abs(np.diag(R))
    if pivots.min() <= INDEPENDENT * pivots.max():
        return None
    weights = np.zeros(problem.penalty.size + 1)
    weights[columns] = dtrtrs(R, problem.target[guess.kink] @ Q)[0]
    if np.any(weights[guess.active] * guess.signs <= 0.0):
        return None
    multipliers = np.where(guess.at_cost, problem.cost, 0.0)
    multipliers[guess.kink] = alpha[guess.kink]
    wanted = np.append(problem.penalty[guess.active] * guess.signs, 0.0)
    missing = wanted - (multipliers @ problem.rows + problem.gradient)[columns]
    multipliers[guess.kink] += Q @ dtrtrs(R, missing, trans=1)[0]
    outside = np.maximum(-multipliers, multipliers - problem.cost)
    if np.any(outside > EXACT * problem.cost):
        return None
    return weights, np.clip(multipliers, 0.0, problem.cost)


# -- The start of an interior-point method for the ℓ1 SVM --


TINY = float(np.finfo(float).tiny)
SMALLEST_SHARE = 0.3  # multipliers start at least at this share of half their range
WEIGHTS = 0.8  # weights start at this multiple of the best weights in one direction
ROOM = 0.5  # added to all slacks, relative to their mean


def balanced_multipliers(problem: SignedProblem) -> FloatArray:
    """The largest multiples of the costs on either side that have equal sums."""
    positive = problem.rows[:, -1] > 0.0
    mass = np.array([problem.cost[~positive].sum(), problem.cost[positive].sum()])
    balance = mass.min() / np.maximum(mass, TINY) if mass.min() > 0.0 else np.ones(2)
    return np.asarray(problem.cost * balance[positive.astype(int)])


def start_point(problem: SignedProblem, balanced: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Positive x = (t, ξ, w⁺, w⁻) and s = (α, C - α, c - g, c + g) of balanced multipliers, for a bias of zero."""
    rows, penalty = problem.rows, problem.penalty
    gradient = 0.5 * (balanced @ rows)[:-1]
    # Slopes that start far from the values that the multipliers imply need many steps.
    share = max(SMALLEST_SHARE, 1.0 / max(float(np.max(np.abs(gradient) / penalty)), 1.0))
    alpha, gradient = 0.5 * share * balanced, share * gradient
    slopes = np.concatenate(
        [np.maximum(penalty - gradient, penalty), np.maximum(penalty + gradient, penalty)]
    )
    weights = _weights(problem, balanced)
    short = problem.target - rows[:, :-1] @ weights
    room = max(ROOM * float(np.abs(short).mean()), TINY)
    slacks = np.concatenate([np.maximum(-short, 0.0), np.maximum(short, 0.0)]) + room
    parts = np.concatenate([np.maximum(weights, 0.0), np.maximum(-weights, 0.0)])
    product = float(np.mean(alpha * slacks[: alpha.size]))
    x = np.concatenate([slacks, parts + product / slopes])
    return x, np.concatenate([alpha, problem.cost - alpha, slopes])


def _weights(problem: SignedProblem, balanced: FloatArray) -> FloatArray:
    """Slightly less than the multiple of the gradient of balanced targets that fits them best."""
    weighted = balanced * problem.target
    direction = (weighted @ problem.rows)[:-1] / problem.penalty
    value = problem.rows[:, :-1] @ direction
    nearest = float(weighted @ value) / max(float(balanced @ value**2), TINY)
    return np.asarray(WEIGHTS * nearest * direction)


# -- An ℓ1 SVM with fewer rows and features: the reduced problem, and its solution in terms of the whole problem --


@dataclass(frozen=True, eq=False)
class Reduction:
    """The problem in some of the rows and features; ``coarse`` holds its rows in single precision.

    The multipliers of the other rows are fixed at zero or at their cost; the other features have no weight.
    """

    whole: SignedProblem
    problem: SignedProblem
    coarse: Any
    samples: Int64Array
    features: Int64Array
    fixed_alpha: FloatArray

    @classmethod
    def none_of(cls, whole: SignedProblem) -> Self:
        """The reduction that keeps all rows and features."""
        n, p = whole.target.size, whole.penalty.size
        return cls(whole, whole, whole.rows.astype(np.float32), np.arange(n), np.arange(p), np.zeros(n))

    def restricted(self, rows_stay: BoolArray, at_cost: BoolArray, features_stay: BoolArray) -> Reduction:
        """Keep fewer rows and features; removed rows ``at_cost`` have their multiplier at the cost, others at zero."""
        problem = self.problem
        cost = problem.cost[at_cost]
        fixed_alpha = self.fixed_alpha.copy()
        fixed_alpha[self.samples[at_cost]] = cost
        columns = np.append(features_stay, True)
        rows = problem.rows if rows_stay.all() else problem.rows[rows_stay]
        rows = rows if columns.all() else rows.take(np.flatnonzero(columns), axis=1)
        left = SignedProblem(
            rows,
            problem.target[rows_stay],
            problem.cost[rows_stay],
            problem.penalty[features_stay],
            (problem.gradient + cost @ problem.rows[at_cost])[columns],
            problem.loss + float(cost @ problem.target[at_cost]),
        )
        samples, features = self.samples[rows_stay], self.features[features_stay]
        return Reduction(self.whole, left, rows.astype(np.float32), samples, features, fixed_alpha)

    def has(self, rows: Int64Array, features: Int64Array) -> bool:
        """Whether all of these rows and features are kept."""
        return bool(np.isin(rows, self.samples).all() and np.isin(features, self.features).all())

    def lifted(self, weights: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights (the bias last) and multipliers of the whole problem."""
        all_weights, all_alpha = np.zeros(self.whole.penalty.size + 1), self.fixed_alpha.copy()
        all_weights[self.features], all_weights[-1] = weights[:-1], weights[-1]
        all_alpha[self.samples] = alpha
        return all_weights, all_alpha

    def contradicted(self, weights: FloatArray, alpha: FloatArray) -> tuple[Int64Array, Int64Array]:
        """Rows fixed at the wrong bound and features left out that could lower the objective."""
        whole = self.whole
        short = whole.target - whole.rows @ weights
        fixed = np.ones(short.size, dtype=bool)
        fixed[self.samples] = False
        excess = np.abs(alpha @ whole.rows)[:-1] - whole.penalty
        wrong_rows = fixed & np.where(alpha > 0.0, short < 0.0, short > 0.0)
        return np.flatnonzero(wrong_rows), np.flatnonzero(excess > EXACT * whole.penalty)
