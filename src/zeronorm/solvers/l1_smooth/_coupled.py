"""ℓ1-penalised models that share the penalties of the features: one, or one for each class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.selection._problem import Problem
from zeronorm.solvers.l1_smooth._model import L1Model, SparseModel


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
