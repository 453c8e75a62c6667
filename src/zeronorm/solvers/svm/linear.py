"""Linear support vector machines from a design; the way of solving is chosen by size and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray, Int64Array
from zeronorm.design.base import Design
from zeronorm.solvers.status import Ended, Status
from zeronorm.solvers.svm.box_dual import BoxDual
from zeronorm.solvers.svm.dual import (
    DEFAULT_MAX_ITER,
    ClassificationLoss,
    DualSolution,
    RegressionLoss,
    finite_prices,
    per_sample,
    run_smo,
)
from zeronorm.solvers.svm.tall import TallSolution, solve_linear_loss, solve_squared_loss

DEFAULT_MEMORY_BUDGET = 2 << 30  # bytes


@dataclass(frozen=True, eq=False)
class LinearSvm(Ended):
    """A linear machine: decision values are X @ weights + bias; alpha and dual_coef belong to the samples."""

    weights: FloatArray
    bias: float
    alpha: FloatArray
    dual_coef: FloatArray
    objective: float
    gap: float
    n_iter: int
    status: Status


@dataclass(frozen=True, eq=False)
class OneVsRest:
    """One machine for each class against all others."""

    machines: tuple[LinearSvm, ...]

    @property
    def weights(self) -> FloatArray:
        """The weights of all machines, one row for each class."""
        return np.stack([machine.weights for machine in self.machines])

    @property
    def biases(self) -> FloatArray:
        """The biases of all machines."""
        return np.array([machine.bias for machine in self.machines])

    @property
    def dual_coef(self) -> FloatArray:
        """The coefficients of the samples, one column for each class."""
        return np.stack([machine.dual_coef for machine in self.machines], axis=1)

    @property
    def gap(self) -> float:
        """The sum of the duality gaps."""
        return float(sum(machine.gap for machine in self.machines))

    @property
    def n_iter(self) -> int:
        """The largest number of iterations of any machine."""
        return max(machine.n_iter for machine in self.machines)

    @property
    def status(self) -> Status:
        """CONVERGED if all machines did, otherwise the worst of their states."""
        return max(machine.status for machine in self.machines)

    @property
    def converged(self) -> bool:
        """Whether all machines met the tolerance."""
        return self.status.converged


def solve_linear_svm(
    design: Design,
    y: ArrayLike,
    *,
    C: float | ArrayLike = 1.0,
    loss: ClassificationLoss = "hinge",
    warm_start: LinearSvm | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> LinearSvm:
    r"""Fit a two-class linear machine with an unpenalised bias.

    .. math:: \min_{w, b}\ \tfrac12\|w\|^2 + \sum_i C_i \xi_i, \qquad
        \xi_i = \max(0, 1 - y_i(w^\top x_i + b)),

    or :math:`\tfrac12 C_i \xi_i^2` for ``loss="squared_hinge"``; y is -1 and +1. With few samples for the
    number of features the dual is solved on the Gram matrix, otherwise the primal on p by p matrices;
    ``memory_budget`` (bytes) limits both. ``warm_start`` may come from other features of the same samples.
    """
    labels = np.asarray(y, dtype=np.float64)
    problem = BoxDual.classification(labels, per_sample(C, labels.size), loss == "squared_hinge")
    K = design.gram() if prefers_gram(design.shape, memory_budget) else None
    return _solve(design, K, problem, warm_start, tol, max_iter)


def solve_linear_svr(
    design: Design,
    y: ArrayLike,
    *,
    C: float | ArrayLike = 1.0,
    epsilon: float = 0.1,
    loss: RegressionLoss = "epsilon_insensitive",
    warm_start: LinearSvm | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> LinearSvm:
    """Fit a linear support vector regression; see :func:`solve_linear_svm` and ``solve_svr_dual``."""
    target = np.asarray(y, dtype=np.float64)
    prices = finite_prices(C, target.size)
    problem = BoxDual.regression(target, prices, epsilon, loss == "squared_epsilon_insensitive")
    K = design.gram() if prefers_gram(design.shape, memory_budget) else None
    return _solve(design, K, problem, warm_start, tol, max_iter)


def solve_one_vs_rest(
    design: Design,
    codes: Int64Array,
    n_classes: int,
    *,
    C: float | ArrayLike = 1.0,
    loss: ClassificationLoss = "hinge",
    warm_start: OneVsRest | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> OneVsRest:
    """Fit one machine for each class against the rest; they share one Gram matrix. Codes are 0 to q - 1."""
    prices = per_sample(C, len(codes))
    K = design.gram() if prefers_gram(design.shape, memory_budget) else None
    starts: Sequence[LinearSvm | None] = [None] * n_classes if warm_start is None else warm_start.machines
    machines = []
    for code, start in enumerate(starts):
        labels = np.where(np.asarray(codes) == code, 1.0, -1.0)
        problem = BoxDual.classification(labels, prices, loss == "squared_hinge")
        machines.append(_solve(design, K, problem, start, tol, max_iter))
    return OneVsRest(tuple(machines))


def prefers_gram(shape: tuple[int, int], memory_budget: int = DEFAULT_MEMORY_BUDGET) -> bool:
    """Whether the n by n Gram matrix is the cheaper way, by memory first and then by arithmetic.

    Building the Gram matrix and solving on it costs about n²(p + 100) operations, the p by p way about
    20 iterations of np² each.
    """
    n, p = shape
    gram_bytes, tall_bytes = 8 * n * n, 16 * (p + 1) ** 2
    if min(gram_bytes, tall_bytes) > memory_budget:
        raise ValueError(
            f"A linear support vector machine on {n} samples and {p} features needs "
            f"{min(gram_bytes, tall_bytes) / 2**30:.1f} GiB, more than the memory budget of "
            f"{memory_budget / 2**30:.1f} GiB; raise memory_budget, or select features with a filter first."
        )
    if max(gram_bytes, tall_bytes) > memory_budget:
        return gram_bytes <= memory_budget
    return n * (p + 100) <= 20 * p * p


def _solve(
    design: Design,
    K: FloatArray | None,
    problem: BoxDual,
    warm_start: LinearSvm | None,
    tol: float,
    max_iter: int | None,
) -> LinearSvm:
    if K is not None:
        alpha = None if warm_start is None else warm_start.alpha
        limit = DEFAULT_MAX_ITER if max_iter is None else max_iter
        dual = DualSolution(*run_smo(K, problem, alpha, tol, limit))
        return _linear(design.transpose_dot(dual.dual_coef), dual)
    start = None if warm_start is None else _primal_start(design, warm_start)
    if problem.ridge.any():
        tall = solve_squared_loss(design, problem, start, tol=tol, max_iter=max_iter or 200)
    else:
        near = None if start is None or warm_start is None else (*start, warm_start.alpha)
        tall = solve_linear_loss(design, problem, near, tol=tol, max_iter=max_iter or 100)
    return _linear(tall.weights, tall)


def _primal_start(design: Design, warm_start: LinearSvm) -> tuple[FloatArray, float]:
    """The weights of another machine; those it would have on this design when the features differ."""
    if warm_start.weights.size == design.shape[1]:
        return warm_start.weights, warm_start.bias
    return design.transpose_dot(warm_start.dual_coef), warm_start.bias


def _linear(weights: FloatArray, solution: DualSolution | TallSolution) -> LinearSvm:
    return LinearSvm(
        weights=weights,
        bias=solution.bias,
        alpha=solution.alpha,
        dual_coef=solution.dual_coef,
        objective=solution.objective,
        gap=solution.gap,
        n_iter=solution.n_iter,
        status=solution.status,
    )
