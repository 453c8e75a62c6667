"""An ℓ1 machine with fewer rows and features: what is left, and how its solution reads in the whole problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zeronorm.solvers.arrays import BoolArray, FloatArray, IntArray
from zeronorm.solvers.l1_svm_vertex import EXACT, SignedProblem


@dataclass(frozen=True, eq=False)
class Reduction:
    """The problem of the rows and features left; ``coarse`` are its rows in single precision.

    The other rows have their multipliers fixed at zero or at their price, the other features no weight.
    """

    whole: SignedProblem
    problem: SignedProblem
    coarse: Any
    samples: IntArray
    features: IntArray
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

    def has(self, rows: IntArray, features: IntArray) -> bool:
        """Whether all of these are left."""
        return bool(np.isin(rows, self.samples).all() and np.isin(features, self.features).all())

    def lifted(self, weights: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights, the bias last, and multipliers of the whole problem."""
        all_weights, all_alpha = np.zeros(self.whole.cost.size + 1), self.fixed_alpha.copy()
        all_weights[self.features], all_weights[-1] = weights[:-1], weights[-1]
        all_alpha[self.samples] = alpha
        return all_weights, all_alpha

    def contradicted(self, weights: FloatArray, alpha: FloatArray) -> tuple[IntArray, IntArray]:
        """Rows fixed at the wrong bound and features left out that could lower the objective."""
        whole = self.whole
        short = whole.target - whole.rows @ weights
        fixed = np.ones(short.size, dtype=bool)
        fixed[self.samples] = False
        excess = np.abs(alpha @ whole.rows)[:-1] - whole.cost
        wrong_rows = fixed & np.where(alpha > 0.0, short < 0.0, short > 0.0)
        return np.flatnonzero(wrong_rows), np.flatnonzero(excess > EXACT * whole.cost)
