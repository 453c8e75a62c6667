"""Linear support vector machines on a design; the algorithm is chosen by size and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray, Int64Array
from zeronorm.design._base import Design
from zeronorm.solvers._status import Ended, Status
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._dual import (
    DEFAULT_MAX_ITER,
    ClassificationLoss,
    DualSolution,
    RegressionLoss,
    finite_costs,
    per_sample,
    run_smo,
)
from zeronorm.solvers.svm._tall import (
    TallSolution,
    certified,
    newton_step,
    solve_linear_loss,
    solve_squared_loss,
)

DEFAULT_MEMORY_BUDGET = 2 << 30  # bytes


@dataclass(frozen=True, eq=False)
class LinearSvm(Ended):
    """A linear SVM: decision values are X @ weights + bias; alpha and dual_coef belong to the samples."""

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
    """One linear SVM for each class against all others."""

    models: tuple[LinearSvm, ...]

    @property
    def weights(self) -> FloatArray:
        """The weights of all models, one row for each class."""
        return np.stack([model.weights for model in self.models])

    @property
    def biases(self) -> FloatArray:
        """The biases of all models."""
        return np.array([model.bias for model in self.models])

    @property
    def dual_coef(self) -> FloatArray:
        """The coefficients of the samples, one column for each class."""
        return np.stack([model.dual_coef for model in self.models], axis=1)

    @property
    def gap(self) -> float:
        """The sum of the duality gaps."""
        return float(sum(model.gap for model in self.models))

    @property
    def n_iter(self) -> int:
        """The largest number of iterations of any model."""
        return max(model.n_iter for model in self.models)

    @property
    def status(self) -> Status:
        """CONVERGED if all models converged, otherwise the worst status."""
        return max(model.status for model in self.models)

    @property
    def converged(self) -> bool:
        """Whether all models met the tolerance."""
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
    r"""Fit a two-class linear SVM with an unpenalised bias.

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
    costs = finite_costs(C, target.size)
    problem = BoxDual.regression(target, costs, epsilon, loss == "squared_epsilon_insensitive")
    K = design.gram() if prefers_gram(design.shape, memory_budget, regression=True) else None
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
    """Fit one linear SVM for each class against the rest, on one Gram matrix; codes are 0 to n_classes - 1."""
    costs = per_sample(C, len(codes))
    K = design.gram() if prefers_gram(design.shape, memory_budget) else None
    starts: Sequence[LinearSvm | None] = [None] * n_classes if warm_start is None else warm_start.models
    models = []
    for code, start in enumerate(starts):
        labels = np.where(np.asarray(codes) == code, 1.0, -1.0)
        problem = BoxDual.classification(labels, costs, loss == "squared_hinge")
        models.append(_solve(design, K, problem, start, tol, max_iter))
    return OneVsRest(tuple(models))


def prefers_gram(
    shape: tuple[int, int], memory_budget: int = DEFAULT_MEMORY_BUDGET, *, regression: bool = False
) -> bool:
    """Whether the dual on the n by n Gram matrix is cheaper, first by memory and then by arithmetic.

    Building the Gram matrix and solving on it costs about n²(p + 100) operations, the primal on p by p matrices about
    20 iterations of np² each. A regression has twice the multipliers: as measured, its Gram matrix pays only up to a
    fifth of these samples.
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
    return n * (p + 100) <= (4 if regression else 20) * p * p


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
        tall = solve_piecewise_linear(design, problem, near, tol=tol, max_iter=max_iter or 100)
    return _linear(tall.weights, tall)


def solve_piecewise_linear(
    design: Design, problem: BoxDual, start: Start | None = None, *, tol: float = 1e-6, max_iter: int = 100
) -> TallSolution:
    """The solution of ``solve_linear_loss``, on sparse data without a p by p matrix where that is faster."""
    is_large = design.n_features >= FEWEST_SPARSE or (start is not None and design.n_samples >= MANY_SAMPLES)
    if design.is_sparse and is_large and np.isfinite(problem.upper).all():
        solution = solve_by_multipliers(design, problem, start, tol=tol)
        if solution.status.converged:
            return solution
    return solve_linear_loss(design, problem, start, tol=tol, max_iter=max_iter)


def _primal_start(design: Design, warm_start: LinearSvm) -> tuple[FloatArray, float]:
    """Weights and bias of another model; where its features differ, weights on this design from its dual_coef."""
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


# -- Piecewise linear loss on tall sparse data: an augmented Lagrangian (Rockafellar 1976) --
#
# With multipliers alpha and a number sigma, the loss u max(0, r) is replaced by its smooth envelope, whose slope is
# clip(alpha + sigma r, 0, u). Its minimum over weights and bias gives the next multipliers, these slopes. Only samples
# strictly between the bounds have curvature; in the end these are the few on the margin. A Newton step by conjugate
# gradients therefore reads little of the data, and its main cost is two products with all data.

Start = tuple[FloatArray, float, FloatArray]

FEWEST_SPARSE = 1500  # features; with fewer, factors of p by p matrices are as fast ...
MANY_SAMPLES = 50_000  # ... unless the start is near the solution, from which interior points gain little
MOST_ROUNDS, MOST_STEPS = 40, 50
GROWTH = 3.0  # of sigma from one minimum to the next
EXTRA_PRECISION, ROUNDING = 1e-4, 1e-12  # the gap is closed to this multiple of tol, or to rounding


def solve_by_multipliers(
    design: Design, problem: BoxDual, start: Start | None = None, *, tol: float = 1e-6
) -> TallSolution:
    """Solve for weights and bias by products with the data only; all costs are finite."""
    in_play = problem.upper > 0.0
    method = _Multipliers(design, problem.restricted(in_play))
    if start is not None:
        method.begin(start[0], start[1], start[2][in_play])
    goal = max(EXTRA_PRECISION * tol, ROUNDING)
    n_iter, gap = 0, np.inf
    for _ in range(MOST_ROUNDS):
        n_steps = method.minimize(0.1 * max(goal * method.primal, min(gap, method.primal)))
        before, gap, n_iter = gap, method.renew(), n_iter + n_steps
        # Rounding prevents further progress when sigma has become very large.
        stalls = n_steps > 0 and gap > 0.5 * before
        if gap <= goal * method.primal or (stalls and (gap <= tol * method.primal or n_steps == MOST_STEPS)):
            break
    alpha = np.zeros(problem.sign.size)
    alpha[in_play] = method.alpha
    found = certified(design, problem, method.weights, method.bias, alpha, n_iter, Status.ITERATION_LIMIT)
    return replace(found, status=Status.CONVERGED) if found.gap <= tol * max(found.objective, tol) else found


class _Multipliers:
    """The iterate of the augmented Lagrangian method: weights, bias and multipliers of one problem."""

    def __init__(self, design: Design, problem: BoxDual) -> None:
        self.design, self.problem = design, problem
        self.weights, self.bias = np.zeros(design.n_features), 0.0
        self.decision = np.zeros(problem.n_samples)
        self.alpha = problem.feasible(0.5 * problem.upper)
        self.sigma = float(problem.upper.mean())
        self.primal = problem.loss(self.decision)

    def begin(self, weights: FloatArray, bias: float, alpha: FloatArray) -> None:
        """Start from the solution of a similar problem."""
        self.weights, self.bias, self.alpha = weights, bias, alpha
        self.decision = self.design.dot(weights) + bias
        self.primal = 0.5 * float(weights @ weights) + self.problem.loss(self.decision)

    def minimize(self, enough: float) -> int:
        """Newton steps on the envelope until the remaining gradient can change the objective by at most ``enough``."""
        problem, upper = self.problem, self.problem.upper
        for n_steps in range(MOST_STEPS):
            slope = self.alpha + self.sigma * problem.residual(self.decision)
            dual_coef = problem.signed_sum(np.clip(slope, 0.0, upper))
            gradient = np.append(self.weights - self.design.transpose_dot(dual_coef), -dual_coef.sum())
            left = 0.5 * gradient[:-1] @ gradient[:-1] + abs(gradient[-1]) * (1.0 + abs(self.bias))
            if left <= enough:
                return n_steps
            on_the_ramp = (slope > 0.0) & (slope < upper)
            curvature = problem.sum_by_sample(np.where(on_the_ramp, self.sigma, 0.0))
            step = newton_step(self.design, curvature, gradient)
            change = self.design.dot(step[:-1]) + step[-1]
            length = self._length(slope, step, change)
            self.weights = self.weights + length * step[:-1]
            self.bias += length * float(step[-1])
            self.decision = self.decision + length * change
        return MOST_STEPS

    def _length(self, slope: FloatArray, step: FloatArray, change: FloatArray) -> float:
        """The length of a step at which the envelope is smallest, by a safeguarded Newton method."""
        problem, upper = self.problem, self.problem.upper
        along = -self.sigma * problem.sign * change[problem.sample]
        straight, quadratic = float(self.weights @ step[:-1]), float(step[:-1] @ step[:-1])
        at_start = straight + float(np.clip(slope, 0.0, upper) @ along) / self.sigma
        low, high, length = 0.0, np.inf, 1.0
        for _ in range(50):
            moved = slope + length * along
            derivative = (
                straight + length * quadratic + float(np.clip(moved, 0.0, upper) @ along) / self.sigma
            )
            if abs(derivative) <= 1e-2 * abs(at_start):
                break
            between = (moved > 0.0) & (moved < upper)
            rise = quadratic + float(np.sum(along[between] ** 2)) / self.sigma
            low, high = (length, high) if derivative < 0.0 else (low, length)
            length -= derivative / max(rise, np.finfo(float).tiny)
            if not low < length < high:
                length = 0.5 * (low + high) if high < np.inf else 2.0 * low
        return length

    def renew(self) -> float:
        """Update the multipliers and increase sigma; returns the duality gap, including the imbalance."""
        problem = self.problem
        slope = self.alpha + self.sigma * problem.residual(self.decision)
        self.alpha = np.clip(slope, 0.0, problem.upper)
        dual_coef = problem.signed_sum(self.alpha)
        dual_weights = self.design.transpose_dot(dual_coef)
        self.primal = 0.5 * float(self.weights @ self.weights) + problem.loss(self.decision)
        self.sigma *= GROWTH
        dual = -float(problem.linear @ self.alpha + 0.5 * dual_weights @ dual_weights)
        return abs(self.primal - dual) + abs(float(dual_coef.sum())) * (1.0 + abs(self.bias))
