"""Support vector machines with any kernel, valued feature by feature with the dual held fixed.

The value of a feature is |W² - W²(without it)| with W² = v'Kv, summed over machines (Lal et al. 2006,
algorithm 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.elimination.sources import KernelSource, PolynomialSource, RBFSource
from zeronorm.selection.problem import Problem
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.dual import DualSolution, solve_svm_dual
from zeronorm.solvers.svm.regression import solve_svr_dual

NEGATIVE_EIGENVALUE = -1e-8  # relative to the largest: below, a kernel is not positive semi-definite


class KernelMachines:
    """``Machines`` of the elimination loop with a kernel source."""

    def __init__(
        self, problem: Problem, source: KernelSource, *, C: float, loss: str, epsilon: float, tol: float
    ) -> None:
        self.problem, self.source = problem, source
        self.targets = problem.targets()
        self.cost = problem.sample_costs(C)
        self.squared, self.epsilon, self.tol = loss == "squared", epsilon, tol
        self.alive: IntArray = np.arange(problem.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.is_psd = True
        self.K = np.empty((0, 0))
        self.V = np.zeros(self.targets.shape)
        self.duals: list[Any] = [None] * self.targets.shape[1]

    def train(self) -> None:
        self.K = np.ascontiguousarray(self.source.matrix(self.alive))
        self._check_definite()
        for c in range(self.targets.shape[1]):
            dual = self._solve(self.targets[:, c], self.duals[c])
            self.status = max(self.status, dual.status)
            self.n_iter += dual.n_iter
            self.duals[c] = dual
            self.V[:, c] = dual.dual_coef

    def _solve(self, target: FloatArray, start: Any) -> DualSolution:
        if self.problem.task == "regression":
            return solve_svr_dual(
                self.K,
                target,
                C=self.cost,
                epsilon=self.epsilon,
                loss="squared_epsilon_insensitive" if self.squared else "epsilon_insensitive",
                warm_start=start,
                tol=self.tol,
            )
        return solve_svm_dual(
            self.K,
            target,
            C=self.cost,
            loss="squared_hinge" if self.squared else "hinge",
            warm_start=start,
            tol=self.tol,
        )

    def _check_definite(self) -> None:
        """Shift an indefinite kernel until it is positive semi-definite: the machine needs a convex problem."""
        if isinstance(self.source, (PolynomialSource, RBFSource)):
            return
        eigenvalues = np.linalg.eigvalsh(self.K)
        if eigenvalues[0] < NEGATIVE_EIGENVALUE * max(abs(eigenvalues[-1]), np.finfo(float).tiny):
            self.is_psd = False
            self.K.flat[:: len(self.K) + 1] -= eigenvalues[0]

    def importance(self) -> FloatArray:
        """|W² - W²(without the feature)|, summed over machines."""
        return self._value([np.array([i]) for i in range(self.alive.size)])

    def group_importance(self, unit: IntArray) -> FloatArray:
        """|W² - W²(without the group)|, summed over machines."""
        return self._value([np.flatnonzero(unit == u) for u in range(int(unit.max()) + 1)])

    def _value(self, units: list[IntArray]) -> FloatArray:
        return np.asarray(np.abs(self.source.removal(self.alive, self.K, self.V, units)).sum(axis=1))

    def remove(self, features: IntArray) -> None:
        self.alive = self.alive[~np.isin(self.alive, features)]
