"""The joint multi-class machine on rescaled features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import Design
from zeronorm.selectors.problem import Problem
from zeronorm.selectors.sparsity.machines import SOLVER_TOL
from zeronorm.selectors.sparsity.rescaling import NO_SOLUTION
from zeronorm.solvers.multiclass_svm import MulticlassSvm, solve_weston_watkins
from zeronorm.solvers.status import Status

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


class JointMachine:
    """Weston and Watkins' machine: all classes in one problem, one weight vector for each."""

    settled = True

    def __init__(self, problem: Problem, C: float) -> None:
        self.codes = problem.y
        self.n_classes = problem.n_classes
        self.price = problem.sample_costs(C)
        self.status = Status.CONVERGED
        self.weights: FloatArray = np.zeros((0, self.n_classes))
        self.bias: FloatArray = np.zeros(self.n_classes)
        self._solution: MulticlassSvm | None = None

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        self._solution = solve_weston_watkins(
            design.gram(scale**2),
            self.codes,
            self.n_classes,
            C=self.price,
            loss="squared_hinge",
            warm_start=self._solution,
            tol=SOLVER_TOL,
        )
        self.status = self._solution.status
        if self.status in NO_SOLUTION:
            return np.zeros(scale.size)
        rescaled_weights = scale[:, None] * design.transpose_dot(self._solution.dual_coef)
        self.weights = scale[:, None] * rescaled_weights
        self.bias = self._solution.bias
        return np.asarray(np.abs(rescaled_weights).sum(axis=1))

    def keep(self, staying: BoolArray) -> None:
        """The dual variables belong to samples: there is nothing to forget."""
