"""ℓ1-penalised logistic machines that share the penalties of the features: one, or one against the rest."""

from __future__ import annotations

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.selection.problem import Problem
from zeronorm.solvers.logistic import L1Logistic, SparseLogistic


class LogisticMachines:
    """Machines with their current solutions; each solution is the start of the next."""

    def __init__(self, problem: Problem, tol: float) -> None:
        weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
        share = weight / weight.sum()
        targets = np.ascontiguousarray(problem.targets().T)
        self.n_features = problem.n_features
        self.machines = [L1Logistic(problem.design, sign, share, tol) for sign in targets]
        self.solutions: list[SparseLogistic] = [machine.empty for machine in self.machines]
        self.all_converged = True
        self.n_solved = 0

    @property
    def largest_penalty(self) -> float:
        """Beyond it no feature has a weight."""
        return max(machine.largest_slope for machine in self.machines)

    @property
    def loss(self) -> float:
        return sum(solution.loss for solution in self.solutions)

    @property
    def loss_without_features(self) -> float:
        return sum(machine.empty.loss for machine in self.machines)

    @property
    def norm(self) -> float:
        """The sum of all absolute weights."""
        return sum(solution.norm for solution in self.solutions)

    @property
    def support(self) -> IntArray:
        """Features with a weight in any machine."""
        return np.unique(np.concatenate([solution.columns for solution in self.solutions]))

    def solve(self, penalty: FloatArray) -> None:
        """Solve all machines for one penalty per feature."""
        pairs = zip(self.machines, self.solutions, strict=True)
        self.solutions = [machine.solve(penalty, solution) for machine, solution in pairs]
        self.all_converged &= all(solution.converged for solution in self.solutions)
        self.n_solved += 1

    def absolute_weights(self) -> FloatArray:
        """Absolute weight of each feature, summed over the machines."""
        total = np.zeros(self.n_features)
        for solution in self.solutions:
            total[solution.columns] += np.abs(solution.weights)
        return total

    def weights(self) -> FloatArray:
        """Weights, one row per machine."""
        rows = np.zeros((len(self.solutions), self.n_features))
        for row, solution in zip(rows, self.solutions, strict=True):
            row[solution.columns] = solution.weights
        return rows

    def bias(self) -> FloatArray:
        return np.asarray([solution.bias for solution in self.solutions])

    def first_slopes(self) -> FloatArray:
        """How strongly the loss calls for each feature before any is in, summed over the machines."""
        return np.asarray(np.sum([np.abs(machine.empty.slope) for machine in self.machines], axis=0))
