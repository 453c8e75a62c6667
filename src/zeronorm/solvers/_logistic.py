"""Logistic regression with an ℓ1 penalty on the weights."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.design._dense import DenseDesign
from zeronorm.selection._problem import Problem
from zeronorm.solvers._geometry import GradientBounds
from zeronorm.solvers._lasso import BATCH, LARGEST_DENSE_COPY, descend_coordinates, descend_sparse_columns
from zeronorm.solvers.linear._losses import LOSSES
from zeronorm.solvers.linear._working_set import SUFFICIENT

# -- Logistic regression with a weighted ℓ1 norm: iteratively reweighted least squares on a growing set of features --
#
# .. math:: \min_{w, b}\ \sum_i s_i \log(1 + e^{-y_i (w \cdot x_i + b)}) + \sum_k \lambda_k |w_k|, \qquad \sum_i s_i = 1
#
# Roth (2004) solves it by iteratively reweighted least squares; each of these problems is a LASSO, which
# scikit-learn solves by coordinate descent. Only the columns of features that have a weight or violate the
# optimality conditions are read.


LOSS = LOSSES["logistic"]
MAX_ROUNDS = 50  # enlargements of the working set
MAX_STEPS = 50  # reweighted least squares problems on one working set
SMALLEST_CURVATURE = 1e-9
HARDLY_SPARSE = 4  # where the stored values times this exceed the entries, dense columns are faster
FEWER_VALUES = (
    2  # where the stored values times this are fewer than Gram entries, passes over them are faster
)
ROUGHLY = 0.1
FREE_PENALTY = 1e-7  # of covariates, relative to the largest slope: practically none
LASSO_TOL = 1e-12
LASSO_MAX_ITER = 5000


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
        self._last: tuple[IntArray, _WorkingSet] | None = None
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
        part: _WorkingSet,
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

    def _part(self, columns: IntArray) -> _WorkingSet:
        """The working set of these columns; the last one is kept, since it often serves the next penalty as well."""
        if self._last is None or not np.array_equal(self._last[0], columns):
            self._last = None  # free the memory before the next one is made
            self._last = columns, _WorkingSet.of(self.design, columns)
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
        self, part: _WorkingSet, penalty: FloatArray, w: FloatArray, bias: float
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


class L1Logistic(L1Model):
    """The problem for one classifier.

    Parameters
    ----------
    sign : labels, -1 and +1.
    share : weight of each sample; they sum to one.
    """

    def __init__(
        self, design: Design, sign: FloatArray, share: FloatArray, tol: float, n_free: int = 0
    ) -> None:
        self.sign = sign
        self.share = share
        positive = float(share[sign > 0].sum())
        super().__init__(design, float(np.log(positive / (1.0 - positive))), tol, n_free)

    def _loss(self, f: FloatArray) -> float:
        return float(self.share @ LOSS.value(f, self.sign))

    def _slope(self, f: FloatArray) -> FloatArray:
        return -self.share * LOSS.slope(f, self.sign)

    def _quadratic_step(
        self,
        part: _WorkingSet,
        f: FloatArray,
        slope: FloatArray,
        w: FloatArray,
        penalty: FloatArray,
        tol: float,
    ) -> tuple[FloatArray, float]:
        curvature = np.maximum(self.share * LOSS.curvature(f, self.sign), SMALLEST_CURVATURE * self.share)
        response = f + slope / curvature
        response_mean = np.average(response, weights=curvature)
        if w.size == 0:
            return w, float(response_mean)
        mean = part.X.transpose_dot(curvature) / curvature.sum()
        solution = _weighted_lasso(part, curvature, mean, response - response_mean, penalty, w, tol)
        return solution, float(response_mean - mean @ solution)


def _violation(X: Design, slope: FloatArray, w: FloatArray, penalty: FloatArray) -> float:
    """Largest violation of the optimality conditions on the working set."""
    gradient = X.transpose_dot(slope)
    at_zero = np.maximum(np.abs(gradient) - penalty, 0.0)
    violation = np.where(w != 0.0, np.abs(gradient - penalty * np.sign(w)), at_zero)
    return max(float(violation.max(initial=0.0)), abs(float(slope.sum())))


# -- The features of a working set: dense columns, or the stored values of large sparse ones --


@dataclass(frozen=True, eq=False)
class _WorkingSet:
    """The columns of a working set, with their stored values where they stay sparse."""

    X: Design
    stored: tuple[Any, FloatArray] | None = None

    @classmethod
    def of(cls, design: Design, columns: IntArray) -> Self:
        n_entries = design.n_samples * columns.size
        if not design.is_sparse or n_entries <= LARGEST_DENSE_COPY:
            return cls(DenseDesign(design.block(columns)))
        stored = design.stored_columns(columns)
        if stored is not None and HARDLY_SPARSE * stored[0].nnz > n_entries:
            return cls(DenseDesign(design.block(columns)))
        return cls(design.take(columns), stored)

    @property
    def has_few_columns(self) -> bool:
        """Whether the Gram matrix of the columns is the smaller problem."""
        n, k = self.X.shape
        return self.X.is_sparse or n * k > LARGEST_DENSE_COPY


def _weighted_lasso(
    part: _WorkingSet,
    curvature: FloatArray,
    mean: FloatArray,
    response: FloatArray,
    penalty: FloatArray,
    start: FloatArray,
    tol: float,
) -> FloatArray:
    """Weights of the centred columns for squared errors weighted by the curvature, plus the penalty."""
    X, stored = part.X, part.stored
    if stored is not None and FEWER_VALUES * stored[0].nnz < start.size**2:
        columns, shift = stored
        weights = start.copy()
        arrays = (columns.data, columns.indices, columns.indptr)
        descend_sparse_columns(
            *arrays, curvature, mean + shift, response, penalty, weights, tol, LASSO_MAX_ITER
        )
        return weights
    if part.has_few_columns:
        products = X.sandwich(curvature)
        products -= curvature.sum() * np.outer(mean, mean)
        products /= np.outer(penalty, penalty)
        gradient, weights = X.transpose_dot(curvature * response) / penalty, start * penalty
        descend_coordinates(products, gradient, 1.0, np.inf, weights, tol / penalty.max(), LASSO_MAX_ITER)
        return np.asarray(weights / penalty)
    root = np.sqrt(curvature)
    scaled = X.block(slice(None))
    scaled -= mean
    scaled *= root[:, None]
    scaled /= penalty
    target = root * response
    # The Gram matrix is chosen here, since scikit-learn 1.7 chooses it only together with its input checks.
    is_tall = len(scaled) > scaled.shape[1]
    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the conditions are checked by the caller
        _, coefficients, _ = lasso_path(
            np.asfortranarray(scaled),
            target,
            alphas=[1.0 / len(scaled)],
            precompute=np.asarray(scaled.T @ scaled) if is_tall else False,
            Xy=scaled.T @ target if is_tall else None,
            coef_init=start * penalty,
            tol=LASSO_TOL,
            max_iter=LASSO_MAX_ITER,
            check_input=False,  # on small data the checks take longer than the descent
        )
    return np.asarray(coefficients[:, 0] / penalty)


# -- ℓ1-penalised models that share the penalties of the features: one, or one for each class --


def sample_shares(problem: Problem) -> FloatArray:
    """The weights of the samples, divided by their sum."""
    weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
    return np.asarray(weight / weight.sum())


def with_covariates(problem: Problem) -> tuple[Design, int]:
    """The features, with the covariates as last columns, and the number of these."""
    if problem.adjust is None:
        return problem.design, 0
    return problem.with_basis(), problem.adjust.rank


class CoupledModels:
    """Sparse models with their current solutions; each solution is the start of the next."""

    def __init__(self, models: Sequence[L1Model]) -> None:
        self.models = models
        self.n_features = models[0].n_features
        self.solutions: list[SparseModel] = [model.empty for model in self.models]
        self.all_converged = True
        self.n_solved = 0

    @property
    def largest_penalty(self) -> float:
        """The smallest penalty at which no feature has a weight."""
        return max(model.largest_slope for model in self.models)

    @property
    def loss(self) -> float:
        return sum(solution.loss for solution in self.solutions)

    @property
    def loss_without_features(self) -> float:
        return sum(model.empty.loss for model in self.models)

    @property
    def norm(self) -> float:
        """The sum of the absolute weights of all features."""
        return sum(
            float(np.abs(solution.weights[solution.columns < self.n_features]).sum())
            for solution in self.solutions
        )

    @property
    def support(self) -> IntArray:
        """Features with a weight in any model."""
        found = np.unique(np.concatenate([solution.columns for solution in self.solutions]))
        return found[found < self.n_features]

    def solve(self, penalty: FloatArray) -> None:
        """Solve all models for one penalty per feature."""
        pairs = zip(self.models, self.solutions, strict=True)
        self.solutions = [model.solve(penalty, solution) for model, solution in pairs]
        self.all_converged &= all(solution.converged for solution in self.solutions)
        self.n_solved += 1

    def absolute_weights(self) -> FloatArray:
        """Absolute weight of each feature, summed over the models."""
        total = np.zeros(self.n_features)
        for solution in self.solutions:
            is_feature = solution.columns < self.n_features
            total[solution.columns[is_feature]] += np.abs(solution.weights[is_feature])
        return total

    def weights(self) -> FloatArray:
        """Weights, one row per model."""
        rows = np.zeros((len(self.solutions), self.n_features))
        for row, solution in zip(rows, self.solutions, strict=True):
            is_feature = solution.columns < self.n_features
            row[solution.columns[is_feature]] = solution.weights[is_feature]
        return rows

    def bias(self) -> FloatArray:
        return np.asarray([solution.bias for solution in self.solutions])

    def first_gradients(self) -> FloatArray:
        """Absolute derivative of the loss in each weight where all are zero, summed over the models."""
        return np.asarray(np.sum([np.abs(model.first_slope) for model in self.models], axis=0))


class CoupledLogistic(CoupledModels):
    """A logistic model, or one for each class."""

    def __init__(self, problem: Problem, tol: float) -> None:
        share, targets = sample_shares(problem), np.ascontiguousarray(problem.target.columns().T)
        design, n_free = with_covariates(problem)
        super().__init__([L1Logistic(design, sign, share, tol, n_free) for sign in targets])
