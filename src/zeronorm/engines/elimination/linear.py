"""Linear support vector machines for many samples and few features: no n×n matrix."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import gathered
from zeronorm.engines.elimination.loop import Downdating, FollowingPrice, finite_gram
from zeronorm.selection.problem import Problem
from zeronorm.solvers.logistic import LogisticDual, solve_logistic_dual
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.linear import LinearSvm, prefers_gram, solve_linear_svm, solve_linear_svr

# -- The value of features and groups for linear machines --


class LinearValue(ABC):
    """Machines with one weight per feature and machine."""

    @abstractmethod
    def weights(self) -> FloatArray:
        """One row per feature that is left, one column per machine."""

    def importance(self) -> FloatArray:
        r"""Squared weights summed over machines, :math:`\sum_c w_{ck}^2`."""
        return np.asarray((self.weights() ** 2).sum(axis=1))

    def group_importance(self, unit: IntArray) -> FloatArray:
        r"""Absolute weights summed over machines and over the group, :math:`\sum_{k \in g} \sum_c |w_{ck}|`."""
        return np.bincount(unit, weights=np.abs(self.weights()).sum(axis=1)).astype(np.float64)


LOSS_NAMES = {
    ("hinge", False): "hinge",
    ("squared", False): "squared_hinge",
    ("hinge", True): "epsilon_insensitive",
    ("squared", True): "squared_epsilon_insensitive",
}


class TallMachines(LinearValue):
    """``Machines`` of the elimination loop, trained from the last solution on the features that are left."""

    def __init__(
        self,
        problem: Problem,
        alive: IntArray,
        *,
        C: float,
        loss: str,
        epsilon: float,
        tol: float,
        max_iter: int | None = None,
        price_follows: bool = False,
    ) -> None:
        regression = problem.task == "regression"
        self.design = problem.design
        self.targets = problem.targets()
        self.solve: Any = solve_linear_svr if regression else solve_linear_svm
        self.settings: dict[str, Any] = {
            "C": problem.sample_costs(C),
            "loss": LOSS_NAMES[loss, regression],
            "tol": tol,
            "max_iter": max_iter,
        }
        if regression:
            self.settings["epsilon"] = epsilon
        self.alive = alive
        self.price = FollowingPrice.of(problem, alive) if price_follows else None
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
        if self.price is not None:
            self.settings["C"] = self.settings["C"] * self.price.growth(self.alive)


# -- Penalised logistic regression as the learner of an elimination (Zhu and Hastie 2003) --


class LogisticMachines(LinearValue):
    """One regression per class against the rest; on the Gram matrix for few samples, else by scikit-learn."""

    def __init__(
        self, problem: Problem, *, C: float, tol: float, max_iter: int, price_follows: bool = False
    ) -> None:
        self.problem, self.C, self.tol, self.max_iter = problem, C, tol, max_iter
        self.design = problem.design
        self.price = FollowingPrice.of(problem) if price_follows else None
        self.targets = problem.targets()
        self.alive: IntArray = np.arange(problem.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.duals: list[LogisticDual | None] = [None] * self.targets.shape[1]
        self.primal = np.empty((0, 0))
        self.bias = np.zeros(self.targets.shape[1])
        self.K: FloatArray | None = None
        self.downdating: Downdating | None = None

    def train(self) -> None:
        if not prefers_gram((self.problem.n_samples, self.alive.size)):
            self._train_tall()
            return
        if self.K is None:
            self.K = finite_gram(self.design.take(self.alive))
            self.downdating = self.downdating or Downdating(self.design)
            self.downdating.start(self.alive)
        cost = self.problem.sample_costs(self.C)
        for c, start in enumerate(self.duals):
            dual = solve_logistic_dual(
                self.K, self.targets[:, c], C=cost, warm_start=start, tol=self.tol, max_iter=self.max_iter
            )
            self.status = max(self.status, dual.status)
            self.n_iter += dual.n_iter
            self.duals[c], self.bias[c] = dual, dual.bias
        self.primal = self.design.take(self.alive).transpose_dot(
            np.column_stack([dual.dual_coef for dual in self.duals if dual is not None])
        )

    def _train_tall(self) -> None:
        columns = np.ascontiguousarray(self.design.block(self.alive))
        weights = []
        for c, target in enumerate(self.targets.T):
            model = LogisticRegression(
                C=self.C, solver="newton-cholesky", tol=self.tol, max_iter=self.max_iter
            )
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                model.fit(columns, target, sample_weight=self.problem.sample_weight)
            if any(issubclass(w.category, ConvergenceWarning) for w in caught):
                self.status = max(self.status, Status.ITERATION_LIMIT)
            self.n_iter += int(model.n_iter_[0])
            weights.append(model.coef_[0])
            self.bias[c] = model.intercept_[0]
        self.primal = np.column_stack(weights)

    def weights(self) -> FloatArray:
        return self.primal

    def remove(self, features: IntArray) -> None:
        self.alive = self.alive[~np.isin(self.alive, features)]
        if self.price is not None:
            self.C *= self.price.growth(self.alive)
        if self.downdating is None or self.K is None or self.downdating.is_due(features, self.alive):
            self.K = None
        else:
            self.K = self.K - self.design.take(np.sort(features)).gram()
