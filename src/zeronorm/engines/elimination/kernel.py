"""Support vector machines with any kernel, valued feature by feature with the dual held fixed.

The value of a feature is |W² - W²(without it)| with W² = v'Kv, summed over machines (Lal et al. 2006,
algorithm 2).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.elimination.sources import KernelSource, PolynomialSource, RBFSource
from zeronorm.selection.problem import Problem
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.dual import DEFAULT_MAX_ITER, DualSolution, solve_svm_dual
from zeronorm.solvers.svm.regression import solve_svr_dual

NO_SIMILARITY = 1e-9  # largest entry off the diagonal of a kernel that is diagonal for all purposes
NEGATIVE_EIGENVALUE = -1e-8  # relative to the largest: below, a kernel is not positive semi-definite


def warn_if_diagonal(K: FloatArray) -> None:
    """Say so when the kernel sees no two samples as similar: then no feature can matter."""
    diagonal = np.abs(np.diagonal(K)).max()
    if np.abs(K - np.diag(np.diagonal(K))).max() <= NO_SIMILARITY * diagonal:
        warnings.warn(
            "The kernel matrix is diagonal: no two samples are similar, and the order of the features means nothing. "
            "Decrease gamma.",
            UserWarning,
            stacklevel=2,
        )


class KernelMachines:
    """``Machines`` of the elimination loop with a kernel source."""

    def __init__(
        self,
        problem: Problem,
        source: KernelSource,
        *,
        C: float,
        loss: str,
        epsilon: float,
        tol: float,
        max_iter: int = DEFAULT_MAX_ITER,
    ) -> None:
        self.problem, self.source = problem, source
        self.targets = problem.targets()
        self.cost = problem.sample_costs(C)
        self.squared, self.epsilon = loss == "squared", epsilon
        self.settings: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
        self.alive: IntArray = np.arange(problem.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.is_psd = True
        self.K = np.empty((0, 0))
        self.V = np.zeros(self.targets.shape)
        self.duals: list[Any] = [None] * self.targets.shape[1]

    def train(self) -> None:
        self.K = np.ascontiguousarray(self.source.matrix(self.alive))
        if self.n_iter == 0:
            warn_if_diagonal(self.K)
        trainable = self._definite()
        for c in range(self.targets.shape[1]):
            dual = self._solve(trainable, self.targets[:, c], self.duals[c])
            self.status = max(self.status, dual.status)
            self.n_iter += dual.n_iter
            self.duals[c] = dual
            self.V[:, c] = dual.dual_coef

    def _solve(self, K: FloatArray, target: FloatArray, start: Any) -> DualSolution:
        if self.problem.task == "regression":
            return solve_svr_dual(
                K,
                target,
                C=self.cost,
                epsilon=self.epsilon,
                loss="squared_epsilon_insensitive" if self.squared else "epsilon_insensitive",
                warm_start=start,
                **self.settings,
            )
        return solve_svm_dual(
            K,
            target,
            C=self.cost,
            loss="squared_hinge" if self.squared else "hinge",
            warm_start=start,
            **self.settings,
        )

    def _definite(self) -> FloatArray:
        """The kernel for training: an indefinite one is shifted until the problem is convex.

        Features are valued by the kernel itself: the shift is no part of what a feature contributes.
        """
        if isinstance(self.source, (PolynomialSource, RBFSource)):
            return self.K
        eigenvalues = np.linalg.eigvalsh(self.K)
        if eigenvalues[0] >= NEGATIVE_EIGENVALUE * max(abs(eigenvalues[-1]), np.finfo(float).tiny):
            return self.K
        self.is_psd = False
        return np.asarray(self.K - eigenvalues[0] * np.eye(len(self.K)))

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
