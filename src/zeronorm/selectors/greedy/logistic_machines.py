"""Penalised logistic regression as the learner of an elimination (Zhu and Hastie 2003)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from zeronorm.selectors.greedy.linear_value import LinearValue
from zeronorm.selectors.problem import Problem
from zeronorm.solvers.linear_svm import prefers_gram
from zeronorm.solvers.logistic_dual import LogisticDual, solve_logistic_dual
from zeronorm.solvers.status import Status

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class LogisticMachines(LinearValue):
    """One regression per class against the rest; on the Gram matrix for few samples, else by scikit-learn."""

    def __init__(self, problem: Problem, *, C: float, tol: float) -> None:
        self.problem, self.C, self.tol = problem, C, tol
        self.design = problem.design
        self.targets = problem.targets()
        self.alive: IntArray = np.arange(problem.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.duals: list[LogisticDual | None] = [None] * self.targets.shape[1]
        self.primal = np.empty((0, 0))
        self.K: FloatArray | None = None

    def train(self) -> None:
        if not prefers_gram((self.problem.n_samples, self.alive.size)):
            self._train_tall()
            return
        if self.K is None:
            self.K = self.design.take(self.alive).gram()
        cost = self.problem.sample_costs(self.C)
        for c, start in enumerate(self.duals):
            dual = solve_logistic_dual(self.K, self.targets[:, c], C=cost, warm_start=start, tol=self.tol)
            # Rounding ends Newton's method before a very small tolerance does: that is as good as it gets.
            self.status = max(
                self.status, dual.status if dual.status is not Status.STALLED else Status.CONVERGED
            )
            self.n_iter += dual.n_iter
            self.duals[c] = dual
        self.primal = self.design.take(self.alive).transpose_dot(
            np.column_stack([dual.dual_coef for dual in self.duals if dual is not None])
        )

    def _train_tall(self) -> None:
        columns = np.ascontiguousarray(self.design.block(self.alive))
        weights = []
        for target in self.targets.T:
            model = LogisticRegression(C=self.C, solver="newton-cholesky", tol=self.tol, max_iter=1000)
            model.fit(columns, target, sample_weight=self.problem.sample_weight)
            self.n_iter += int(model.n_iter_[0])
            weights.append(model.coef_[0])
        self.primal = np.column_stack(weights)

    def weights(self) -> FloatArray:
        return self.primal

    def remove(self, features: IntArray) -> None:
        self.alive = self.alive[~np.isin(self.alive, features)]
        # Fresh Gram matrices of many features are dear, differences of few are exact enough.
        if self.K is not None and features.size < self.alive.size // 2:
            self.K = self.K - self.design.take(np.sort(features)).gram()
        else:
            self.K = None
