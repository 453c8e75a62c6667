r"""A model with a smooth loss and a weighted ℓ1 norm, by reweighted least squares on a growing set of features:

.. math:: \min_{w, b}\ L(X w + b) + \sum_k \lambda_k |w_k|.

Roth (2004) solves it by iteratively reweighted least squares; each of these problems is a LASSO, which scikit-learn
solves by coordinate descent. Only the columns of features that have a weight or violate the optimality conditions
are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.solvers._geometry import GradientBounds
from zeronorm.solvers._lasso import BATCH
from zeronorm.solvers.l1_smooth._working_set import WorkingSet
from zeronorm.solvers.linear._working_set import SUFFICIENT

MAX_ROUNDS = 50  # enlargements of the working set
MAX_STEPS = 50  # reweighted least squares problems on one working set
ROUGHLY = 0.1
FREE_PENALTY = 1e-7  # of covariates, relative to the largest slope: practically none


@dataclass(frozen=True, eq=False)
class SparseModel:
    """A sparse linear model: weights of ``columns``, bias, and minus the derivative of the loss in each decision."""

    columns: IntArray
    weights: FloatArray
    bias: float
    residual: FloatArray
    loss: float
    converged: bool

    @property
    def norm(self) -> float:
        return float(np.abs(self.weights).sum())


class L1Model(ABC):
    """The problem for one model with a smooth loss on one data set, solved for changing penalties.

    Each solution starts from the last one.

    Parameters
    ----------
    bias_alone : the bias of the model without features.
    tol : largest violation of the optimality conditions, relative to the largest derivative at zero weights.
    n_free : number of last columns, the covariates, that have practically no penalty; they are in every solution.
    """

    def __init__(self, design: Design, bias_alone: float, tol: float, n_free: int = 0) -> None:
        self.design = design
        self.bias_alone = bias_alone
        nothing = np.empty(0, dtype=np.intp)
        self.empty = self._solution(nothing, np.empty(0), bias_alone, np.zeros(design.n_samples), True)
        self.n_features, self._free_penalty = design.n_features - n_free, np.empty(0)
        self._bounds = GradientBounds(design)
        self._last: tuple[IntArray, WorkingSet] | None = None
        slope = design.transpose_dot(self.empty.residual)
        if n_free:
            largest = max(float(np.abs(slope).max(initial=0.0)), np.finfo(float).tiny)
            self._free_penalty, self.tol = np.full(n_free, FREE_PENALTY * largest), tol * largest
            self.empty = self.solve(np.full(self.n_features, np.inf), self.empty)
            slope = design.transpose_dot(self.empty.residual)
        self.first_slope = slope[: self.n_features]
        self.largest_slope = float(np.abs(self.first_slope).max(initial=0.0))
        self.tol = tol * max(self.largest_slope, np.finfo(float).tiny)

    @abstractmethod
    def _loss(self, f: FloatArray) -> float:
        """The loss of the predictions of all samples."""

    @abstractmethod
    def _slope(self, f: FloatArray) -> FloatArray:
        """Minus the derivative of the loss in each prediction."""

    @abstractmethod
    def _quadratic_step(
        self,
        part: WorkingSet,
        f: FloatArray,
        slope: FloatArray,
        w: FloatArray,
        penalty: FloatArray,
        tol: float,
    ) -> tuple[FloatArray, float]:
        """Minimiser of the quadratic model plus the penalty; ``slope`` is minus the derivative of the loss."""

    def solve(self, penalty: FloatArray, start: SparseModel) -> SparseModel:
        """Solve for these penalties of the features, from ``start``."""
        penalty = np.append(penalty, self._free_penalty)
        current = start
        columns, weights, bias = start.columns, start.weights, start.bias
        for _ in range(MAX_ROUNDS):
            joining = self._violators(current, penalty)
            if joining.size:
                columns = np.concatenate([columns, joining])
                weights = np.append(weights, np.zeros(joining.size))
            elif current is not start:
                return current
            part = self._part(columns)
            weights, bias, converged = self._solve_on(part, penalty[columns], weights, bias)
            image, kept = part.X.dot(weights), weights != 0.0
            columns, weights = columns[kept], weights[kept]
            current = self._solution(columns, weights, bias, image, converged)
        return SparseModel(columns, weights, bias, current.residual, current.loss, False)

    def _part(self, columns: IntArray) -> WorkingSet:
        """The working set of these columns; the last one is kept, since it often serves the next penalty as well."""
        if self._last is None or not np.array_equal(self._last[0], columns):
            self._last = None  # free the memory before the next one is made
            self._last = columns, WorkingSet.of(self.design, columns)
        return self._last[1]

    def _violators(self, current: SparseModel, penalty: FloatArray) -> IntArray:
        limit = penalty + self.tol
        limit[current.columns] = np.inf
        return self._bounds.beyond(current.residual, limit, BATCH + current.columns.size)

    def _solution(
        self, columns: IntArray, weights: FloatArray, bias: float, image: FloatArray, converged: bool
    ) -> SparseModel:
        f = image + bias
        return SparseModel(columns, weights, bias, self._slope(f), self._loss(f), converged)

    # -- on a working set -----------------------------------------------------------------------

    def _solve_on(
        self, part: WorkingSet, penalty: FloatArray, w: FloatArray, bias: float
    ) -> tuple[FloatArray, float, bool]:
        f = part.X.dot(w) + bias
        value = self._value(f, w, penalty)
        for _ in range(MAX_STEPS):
            slope = self._slope(f)
            violation = _violation(part.X, slope, w, penalty)
            if violation <= self.tol:
                return w, bias, True
            # A quadratic model that is still far from the loss need not be minimised to the last digit.
            accuracy = 0.01 * max(self.tol, ROUGHLY * violation)
            target = self._quadratic_step(part, f, slope, w, penalty, accuracy)
            moved = self._line_search(part.X, (w, bias, f, value), slope, target, penalty)
            if moved is None:
                break
            w, bias, f, value = moved
        slope = self._slope(f)
        return w, bias, _violation(part.X, slope, w, penalty) <= 100.0 * self.tol

    def _value(self, f: FloatArray, w: FloatArray, penalty: FloatArray) -> float:
        return self._loss(f) + float(penalty @ np.abs(w))

    def _line_search(
        self,
        X: Design,
        start: tuple[FloatArray, float, FloatArray, float],
        slope: FloatArray,
        target: tuple[FloatArray, float],
        penalty: FloatArray,
    ) -> tuple[FloatArray, float, FloatArray, float] | None:
        (w, bias, f, value), (target_w, target_bias) = start, target
        target_f = X.dot(target_w) + target_bias
        promised = float(slope @ (f - target_f)) + float(penalty @ (np.abs(target_w) - np.abs(w)))
        rounding = np.sqrt(f.size) * np.finfo(float).eps * abs(value)  # of a sum over all samples
        t = 1.0
        while t > 1e-10:
            new_w, new_f = (1.0 - t) * w + t * target_w, (1.0 - t) * f + t * target_f
            new_value = self._value(new_f, new_w, penalty)
            if new_value <= value + SUFFICIENT * t * promised + rounding:
                return new_w, (1.0 - t) * bias + t * target_bias, new_f, new_value
            t *= 0.5
        return None


def _violation(X: Design, slope: FloatArray, w: FloatArray, penalty: FloatArray) -> float:
    """Largest violation of the optimality conditions on the working set."""
    gradient = X.transpose_dot(slope)
    at_zero = np.maximum(np.abs(gradient) - penalty, 0.0)
    violation = np.where(w != 0.0, np.abs(gradient - penalty * np.sign(w)), at_zero)
    return max(float(violation.max(initial=0.0)), abs(float(slope.sum())))
