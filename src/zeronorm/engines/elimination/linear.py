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
        multi_class: str = "one_vs_rest",
    ) -> None:
        regression = problem.task == "regression"
        self.design = problem.design
        self.targets, involved = problem.machine_targets(multi_class)
        cost = np.broadcast_to(problem.sample_costs(C), problem.n_samples)
        self.costs: list[FloatArray] = [np.where(inside, cost, 0.0) for inside in involved.T]
        self.solve: Any = solve_linear_svr if regression else solve_linear_svm
        self.settings: dict[str, Any] = {
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
            solution = self.solve(
                design, self.targets[:, c], C=self.costs[c], warm_start=start, **self.settings
            )
            self.status = max(self.status, solution.status)
            self.n_iter += solution.n_iter
            self.solutions[c] = solution

    def weights(self) -> FloatArray:
        """One row per feature that is left, one column per machine."""
        return np.column_stack([s.weights for s in self.solutions if s is not None])

    def remove(self, features: IntArray) -> None:
        self.alive = self.alive[~np.isin(self.alive, features)]
        if self.price is not None:
            factor = self.price.growth(self.alive)
            self.costs = [factor * cost for cost in self.costs]


# -- Penalised logistic regression as the learner of an elimination (Zhu and Hastie 2003) --


class LogisticMachines(LinearValue):
    """One regression per class or pair of classes; on the Gram matrix for few samples, else by scikit-learn."""

    def __init__(
        self,
        problem: Problem,
        *,
        C: float,
        tol: float,
        max_iter: int,
        price_follows: bool = False,
        multi_class: str = "one_vs_rest",
    ) -> None:
        self.problem, self.C, self.tol, self.max_iter = problem, C, tol, max_iter
        self.design = problem.design
        self.price = FollowingPrice.of(problem) if price_follows else None
        self.targets, involved = problem.machine_targets(multi_class)
        self.rows: list[IntArray] = [np.flatnonzero(inside) for inside in involved.T]
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
        cost = np.broadcast_to(self.problem.sample_costs(self.C), self.problem.n_samples)
        coefficients = np.zeros(self.targets.shape)
        for c, (rows, start) in enumerate(zip(self.rows, self.duals, strict=True)):
            dual = solve_logistic_dual(
                self.K if rows.size == len(self.K) else self.K[np.ix_(rows, rows)],
                self.targets[rows, c],
                C=cost[rows],
                warm_start=start,
                tol=self.tol,
                max_iter=self.max_iter,
            )
            self.status = max(self.status, dual.status)
            self.n_iter += dual.n_iter
            self.duals[c], self.bias[c] = dual, dual.bias
            coefficients[rows, c] = dual.dual_coef
        self.primal = self.design.take(self.alive).transpose_dot(coefficients)

    def _train_tall(self) -> None:
        columns = np.ascontiguousarray(self.design.block(self.alive))
        weights, sample_weight = [], self.problem.sample_weight
        for c, rows in enumerate(self.rows):
            model = LogisticRegression(
                C=self.C, solver="newton-cholesky", tol=self.tol, max_iter=self.max_iter
            )
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                model.fit(
                    columns if rows.size == len(columns) else columns[rows],
                    self.targets[rows, c],
                    sample_weight=None if sample_weight is None else sample_weight[rows],
                )
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
