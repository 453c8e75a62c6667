"""Linear support vector machines for many samples and few features: no n×n matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import gathered
from zeronorm.selectors.greedy.linear_value import LinearValue
from zeronorm.selectors.problem import Problem
from zeronorm.solvers.linear_svm import LinearSvm, solve_linear_svm, solve_linear_svr
from zeronorm.solvers.status import Status

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

LOSS_NAMES = {
    ("hinge", False): "hinge",
    ("squared", False): "squared_hinge",
    ("hinge", True): "epsilon_insensitive",
    ("squared", True): "squared_epsilon_insensitive",
}


class TallMachines(LinearValue):
    """``Machines`` of the elimination loop, trained from the last solution on the features that are left."""

    def __init__(
        self, problem: Problem, alive: IntArray, *, C: float, loss: str, epsilon: float, tol: float
    ) -> None:
        regression = problem.task == "regression"
        self.design = problem.design
        self.targets = problem.targets()
        self.solve: Any = solve_linear_svr if regression else solve_linear_svm
        self.settings: dict[str, Any] = {
            "C": problem.sample_costs(C),
            "loss": LOSS_NAMES[loss, regression],
            "tol": tol,
        }
        if regression:
            self.settings["epsilon"] = epsilon
        self.alive = alive
        self.solutions: list[LinearSvm | None] = [None] * self.targets.shape[1]
        self.status, self.n_iter = Status.CONVERGED, 0

    def train(self) -> None:
        design = gathered(self.design.take(self.alive))
        for c, start in enumerate(self.solutions):
            solution = self.solve(design, self.targets[:, c], warm_start=start, **self.settings)
            self.status = max(self.status, solution.status)
            self.n_iter += solution.n_iter
            self.solutions[c] = solution

    def weights(self) -> FloatArray:
        """One row per feature that is left, one column per machine."""
        return np.column_stack([s.weights for s in self.solutions if s is not None])

    def remove(self, features: IntArray) -> None:
        self.alive = self.alive[~np.isin(self.alive, features)]
