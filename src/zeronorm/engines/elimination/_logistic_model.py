"""Logistic regression with a ridge penalty, whose exact solution is updated as features are removed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import suppress

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrs

from zeronorm._jit import dividing_kernel, kernel, reduction
from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.elimination._smooth_models import (
    DOWNDATES,
    Columns,
    KnownModel,
    factor_of,
    inverse_from,
    without,
    without_rows,
)
from zeronorm.solvers.linear._softmax import Softmax, sum_of_curvatures

STEPS = 200
ROUNDED_STEP = 1e-7  # below this step rounding may keep the gradient from decreasing
NEWTON_STEP = 1e-5  # after a Newton step of this size the remaining error is about its square
SLOWEST = 0.5  # a step must reduce the gradient by this factor, or the second derivatives are recomputed
QUICK = 0.02  # after a reduction by this factor the inverse Hessian is not updated
SLOWEST_IN_SAMPLES = 0.1  # the same in the dual, where they cost less
# Relative; after a smaller step the second derivatives are not recomputed: the solution is near.
LATE_STEP = 1e-3
SAFETY = 4.0  # safety factor on the error that the contraction of the last steps predicts
STEPS_PER_COLUMN = 0.1  # steps that take as long as computing the second derivatives, per column and output
MOST_RANKS = 0.1  # rank of an update, relative to the size of the inverse, up to which it is not recomputed
LEAST_LEVEL = 0.01  # least ratio of the curvatures to those of a Hessian for which the Hessian may be scaled
# Relative to the cost, above its rounding: a sample with a probability of one has no curvature.
LEAST_CURVATURE = 1e-15


class Logistic(KnownModel):
    """Logistic regression, solved in dual variables while features outnumber samples, then in the weights."""

    def __init__(self, X: FloatArray, codes: IntArray, cost: FloatArray) -> None:
        super().__init__(X.shape[1])
        self.loss = Softmax(codes, int(codes.max()) + 1, cost)
        self.phase: Phase = InSamples(X, self.loss) if X.shape[1] > len(X) else InFeatures(X, self.loss)

    def train(self) -> bool:
        if isinstance(self.phase, InSamples) and self.active.size <= self.loss.cost.size:
            start = np.column_stack([self.phase.weights(self.phase.state), self.phase.state[:, -1]])
            self.phase = InFeatures(self.phase.columns.left().T, self.loss, start)
        if not self.phase.solve(self.precision, self.smallest_suffices):
            self.phase.restart()
            return False
        state = self.phase.state
        self.weights = self.loss.all_classes(self.phase.weights(state))
        self.intercept = self.loss.all_classes(state[:, -1:])[:, 0]
        return True

    def remove(self, features: IntArray) -> None:
        positions = np.searchsorted(self.active, features)
        self.phase.remove(positions)
        self.active = without(self.active, positions)


class Phase(ABC):
    """Newton's method with second derivatives that are reused while the steps converge fast.

    ``state`` has one row per output, the intercept last. The removed feature had the smallest weight, so the solution
    changes little: one to three steps from the last state reach it.
    """

    columns: Columns
    state: FloatArray
    probability: FloatArray | None = None  # probabilities of the classes at the last solution
    is_ready = False  # whether there are second derivatives
    rough: float  # relative error below which it is checked whether the smallest weight is determined
    contraction = 1.0  # length of a step over that of the step before
    contracted_at = math.inf  # the relative size of that earlier step
    n_repeated = 0  # steps beyond the first of each round since the second derivatives were computed

    @abstractmethod
    def residual(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The residual, which is zero at the solution, and the probabilities of the classes."""

    @abstractmethod
    def prepare(self, probability: FloatArray) -> None:
        """Compute the second derivatives at these probabilities."""

    def adapt(self, probability: FloatArray) -> None:
        """Adapt the second derivatives to these probabilities by a cheap correction."""
        del probability  # no correction by default

    @abstractmethod
    def worn_after(self) -> float:
        """Number of steps beyond the first of each round that take as long as new second derivatives."""

    @abstractmethod
    def step(self, residual: FloatArray) -> FloatArray:
        """The Newton step, after which a linear residual would be zero."""

    @abstractmethod
    def learn(self, step: FloatArray, change: FloatArray, reduction: float) -> None:
        """Update the second derivatives by the change of the residual over a step and the reduction of its norm."""

    @abstractmethod
    def weights(self, state: FloatArray) -> FloatArray:
        """The weights of a state, or of a difference of two, one row per output."""

    @abstractmethod
    def remove(self, positions: IntArray) -> None:
        """Remove features, given by their positions among the remaining ones."""

    def restart(self) -> None:
        """Discard the last solution."""
        self.state, self.probability, self.is_ready = np.zeros_like(self.state), None, False
        self.contraction, self.contracted_at = 1.0, math.inf

    def solve(self, precision: float, smallest_suffices: bool) -> bool:
        """Iterate from the last state to the solution; False if it is not reached."""
        state, (residual, probability) = self.state, self.residual(self.state)
        norm, size, is_fresh, last_step = _norm(residual), math.inf, False, 0.0
        self.contraction = min(1.0, 2.0 * self.contraction)
        for _ in range(STEPS):
            if not self.is_ready or (size > LATE_STEP and self.n_repeated >= self.worn_after()):
                try:
                    self.prepare(probability)
                except LinAlgError:
                    return False
                self.is_ready, is_fresh, self.n_repeated = True, True, 0
            else:
                self.adapt(probability)
            step = self.step(residual)
            length, scale = largest(step), max(largest(state), 1e-300)
            if last_step > 0.0:
                self.contraction, self.contracted_at = length / last_step, max(size, 1e-300)
            size = length / scale
            share = min(1.0, SAFETY * self.contraction * max(1.0, size / self.contracted_at))
            trial = state + step
            left = size * (size if is_fresh and size <= NEWTON_STEP else share)
            if left <= precision or (
                smallest_suffices and left <= self.rough and self.tells_the_smallest(trial, share * step)
            ):
                self.state, self.probability = trial, probability
                return True
            residual_there, probability_there = self.residual(trial)
            self.n_repeated += 1
            norm_there = _norm(residual_there)
            if not norm_there <= SLOWEST * norm and not is_fresh:
                self.is_ready, last_step = False, 0.0
                continue
            while not norm_there < norm:
                step = 0.5 * step
                if not largest(step) > 1e-6 * length:
                    self.state, self.probability = state, probability
                    return size <= ROUNDED_STEP
                residual_there, probability_there = self.residual(state + step)
                norm_there = _norm(residual_there)
            last_step, is_fresh = length, False
            self.learn(step, residual_there - residual, norm_there / norm)
            state, residual, probability, norm = state + step, residual_there, probability_there, norm_there
        return False

    def tells_the_smallest(self, trial: FloatArray, error: FloatArray) -> bool:
        """Whether the feature with the smallest weight is certain in spite of an error of this size."""
        lengths = np.sqrt((self.weights(trial) ** 2).sum(axis=0))
        if lengths.size == 1:
            return True
        smallest, next_one = np.partition(lengths, 1)[:2]
        return bool(next_one - smallest > 2.0 * np.sqrt((self.weights(error) ** 2).sum(axis=0).max()))


def _norm(residual: FloatArray) -> float:
    return math.sqrt(float(np.vdot(residual, residual)))


@kernel
def largest(values: FloatArray) -> float:
    """The largest absolute value; NaN if any value is NaN."""
    found = 0.0
    for value in values.flat:
        if not abs(value) <= found:
            found = abs(value)
            if found != found:
                return found
    return found


class InFeatures(Phase):
    """Newton's method in the weights and intercepts; these are the weights of a last column of ones.

    The inverse Hessian predicts the solution without a feature; then the rows of the feature are removed from it, and
    each step updates it by the BFGS formula. The curvature of a sample depends mainly on the direction of the weights;
    in directions orthogonal to it the Hessian changes like the sum of all curvatures.
    """

    rough = 0.1
    level = 0.0  # the sum of the curvatures to which the inverse is scaled

    def __init__(self, X: FloatArray, loss: Softmax, start: FloatArray | None = None) -> None:
        self.columns, self.loss = Columns(X, np.ones((len(X), 1))), loss
        self.state = np.zeros((loss.n_outputs, X.shape[1] + 1)) if start is None else start

    def residual(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        slope, probability = self.loss.slope(self.columns.dot(state))
        gradient = np.ascontiguousarray(self.columns.transpose_dot(slope.T).T)
        gradient[:, :-1] += state[:, :-1]
        return gradient, probability

    def prepare(self, probability: FloatArray) -> None:
        curvature = self.loss.curvature(probability)
        m, width = len(curvature), self.columns.kept_rows.size
        system = np.empty((m, width, m, width))
        for k in range(m):
            scaled = self.columns.scaled(np.sqrt(np.maximum(curvature[k, k], 0.0)))  # negative by rounding
            system[k, :, k] = scaled @ scaled.T  # a product with its own transpose takes half the time
            system[k, range(width - 1), k, range(width - 1)] += 1.0
            for other in range(k):
                product = self.columns.scaled(curvature[k, other]) @ self.columns.left().T
                system[k, :, other] = system[other, :, k] = product
        self.inverse = inverse_from(factor_of(system.reshape(m * width, m * width)))
        self.level = sum_of_curvatures(probability, self.loss.cost)

    def adapt(self, probability: FloatArray) -> None:
        before, self.level = self.level, sum_of_curvatures(probability, self.loss.cost)
        if self.level > LEAST_LEVEL * before:
            self.inverse *= before / self.level

    def worn_after(self) -> float:
        m, width = self.state.shape
        return float(STEPS_PER_COLUMN * (m + 1) * width)

    def step(self, residual: FloatArray) -> FloatArray:
        return -(self.inverse @ residual.ravel()).reshape(residual.shape)

    def learn(self, step: FloatArray, change: FloatArray, reduction: float) -> None:
        step, change = step.ravel(), change.ravel()
        along = float(step @ change)
        if along > 0.0 and reduction > QUICK:
            seen = self.inverse @ change
            half = (0.5 * (1.0 + float(change @ seen) / along) * step - seen) / along
            update = np.outer(step, half)
            self.inverse += update
            self.inverse += update.T

    def weights(self, state: FloatArray) -> FloatArray:
        return state[:, :-1]

    def remove(self, positions: IntArray) -> None:
        self.columns.remove(positions)
        m, width = self.state.shape
        if self.is_ready:
            gone = positions if m == 1 else (width * np.arange(m)[:, None] + positions).ravel()
            inverse, point = without_rows(self.inverse, gone, self.state.reshape(-1, 1))
            if inverse is not None:
                # The minimum of the quadratic model of the loss without these features.
                self.inverse, self.state = inverse, point.reshape(m, -1)
                return
        self.is_ready, self.state = False, np.delete(self.state, positions, axis=1)


class InSamples(Phase):
    r"""Newton's method in the dual variables a of :math:`w = X^\top a` and the intercepts b.

    At the solution :math:`a = -\partial L / \partial f` where :math:`f = K a + b`. With curvatures
    :math:`D = R R^\top`, a step needs one system, :math:`I + R^\top K R`.
    """

    rough = 1e-5  # the check computes the weights, a product with the data

    def __init__(self, X: FloatArray, loss: Softmax) -> None:
        self.columns, self.loss = Columns(X), loss
        self.state = np.zeros((loss.n_outputs, loss.cost.size + 1))
        self.K, self.n_downdates = self.columns.gram(), 0
        self.inverse: FloatArray | None = None  # computed when it can be used in the next round
        self.lost: FloatArray | None = None

    def solve(self, precision: float, smallest_suffices: bool) -> bool:
        if self.n_downdates > DOWNDATES:
            self.K, self.n_downdates = self.columns.gram(), 0
        if self.lost is not None and self.probability is not None and not self.is_ready:
            self._predict(self.lost, self.probability)
        self.lost = None
        return super().solve(precision, smallest_suffices)

    def _predict(self, lost: FloatArray, probability: FloatArray) -> None:
        """Predict the new state from the last second derivatives and the decision values ``lost`` by the removal."""
        with suppress(LinAlgError):
            self.prepare(probability)
            self.is_ready = True
            residual = np.zeros_like(self.state)
            residual[:, :-1] = -(self.loss.curvature(probability) * lost).sum(axis=1)
            self.state = self.state + self.step(residual)

    def residual(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        slope, probability = self.loss.slope(state[:, :-1] @ self.K + state[:, -1:])
        residual = np.empty_like(state)
        np.add(slope, state[:, :-1], out=residual[:, :-1])
        residual[:, -1] = state[:, :-1].sum(axis=1)
        return residual, probability

    def prepare(self, probability: FloatArray) -> None:
        curvature = self.loss.curvature(probability)
        m = len(curvature)
        if m == 1:
            self.root = np.sqrt(curvature)
        else:
            curvature[range(m), range(m)] += LEAST_CURVATURE * self.loss.cost
            roots = np.linalg.cholesky(curvature.transpose(2, 0, 1))
            self.root = np.ascontiguousarray(roots.transpose(1, 2, 0))
        self.factor, self.inverse = factor_of(system_in_samples(self.K, self.root)), None
        self._note_border()

    def worn_after(self) -> float:
        return math.inf  # recomputed by the reduction of each step alone

    def _note_border(self) -> None:
        """Compute the response of the system's unknowns to each intercept, one row each."""
        self.border = self.root.reshape(len(self.root), -1)
        if self.inverse is None:
            solved = np.asarray(dpotrs(self.factor, self.border.T)[0])
        else:
            solved = self.inverse @ self.border.T
        seen = self.border @ solved
        self.solved_border = np.ascontiguousarray(solved.T)
        self.of_intercept = 1.0 / seen if seen.size == 1 else np.linalg.inv(seen)

    def step(self, residual: FloatArray) -> FloatArray:
        is_factor = self.inverse is None
        matrix = self.factor.T if self.inverse is None else self.inverse
        return step_in_samples(
            self.K, self.root, matrix, is_factor, self.solved_border, self.of_intercept, residual
        )

    def learn(self, step: FloatArray, change: FloatArray, reduction: float) -> None:
        self.is_ready = reduction <= SLOWEST_IN_SAMPLES

    def weights(self, state: FloatArray) -> FloatArray:
        return self.columns.transpose_dot(state[:, :-1].T).T

    def remove(self, positions: IntArray) -> None:
        x = self.columns.of(positions)
        self.columns.remove(positions)
        gone = x @ x.T
        self.K -= gone
        self.n_downdates += 1
        if self.is_ready:
            self._downdate(x)
        self.lost = self.state[:, :-1] @ gone

    def _downdate(self, x: FloatArray) -> None:
        """Update the inverse by a low rank when x xᵀ is subtracted from the Gram matrix."""
        m, n = len(self.state), len(x)
        if x.shape[1] > MOST_RANKS * n:
            self.is_ready = False
            return
        side = (self.root.transpose(1, 2, 0)[:, :, :, None] * x[:, None, :]).reshape(m * n, -1)
        if self.inverse is None:
            self.inverse = inverse_from(self.factor)
        solved = self.inverse @ side
        left = np.eye(side.shape[1]) - side.T @ solved
        try:
            self.inverse += solved @ (solved.T / left if left.size == 1 else np.linalg.solve(left, solved.T))
            self._note_border()
        except LinAlgError:
            self.is_ready = False


@dividing_kernel
def system_in_samples(K: FloatArray, root: FloatArray) -> FloatArray:
    r"""The lower triangle of :math:`I + R^\top K R`; ``root`` is outputs × outputs × samples."""
    m, n = root.shape[1:]
    system = np.empty((m * n, m * n))
    for k in range(m):
        for i in range(n):
            for other in range(k + 1):
                row = system[k * n + i, other * n : (other + 1) * n]
                for j in range(n):
                    row[j] = root[0, k, i] * root[0, other, j]
                for c in range(1, m):
                    for j in range(n):
                        row[j] += root[c, k, i] * root[c, other, j]
                for j in range(n):
                    row[j] *= K[i, j]
            system[k * n + i, k * n + i] += 1.0
    return system


@reduction
def step_in_samples(
    K: FloatArray,
    root: FloatArray,
    matrix: FloatArray,
    is_factor: bool,
    solved_border: FloatArray,
    of_intercept: FloatArray,
    residual: FloatArray,
) -> FloatArray:
    r"""With :math:`\Delta a = -r - R t`: :math:`(I + R^\top K R)\, t = R^\top(\Delta b - K r)`.

    ``matrix`` is the inverse of the system, or its factor in a lower triangle.
    """
    m, n = root.shape[1:]
    right, step, missing = np.zeros(m * n), -residual, residual[:, n].copy()
    for c in range(m):
        for i in range(n):
            seen = 0.0
            for j in range(n):
                seen += K[i, j] * residual[c, j]
            for k in range(m):
                right[k * n + i] -= root[c, k, i] * seen
    solved = solved_by_factor(matrix, right) if is_factor else matrix @ right
    for c in range(m):
        for i in range(n):
            missing[c] -= residual[c, i]
            for k in range(m):
                missing[c] -= root[c, k, i] * solved[k * n + i]
    for c in range(m):
        step[c, n] = 0.0
        for other in range(m):
            step[c, n] += of_intercept[c, other] * missing[other]
    for c in range(m):
        for index in range(m * n):
            solved[index] += solved_border[c, index] * step[c, n]
    for c in range(m):
        for k in range(m):
            for i in range(n):
                step[c, i] -= root[c, k, i] * solved[k * n + i]
    return step


@reduction
def solved_by_factor(factor: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a system whose Cholesky factor is lower triangular."""
    solved = right.copy()
    for i in range(len(factor)):
        inner = 0.0
        for j in range(i):
            inner += factor[i, j] * solved[j]
        solved[i] = (solved[i] - inner) / factor[i, i]
    for i in range(len(factor) - 1, -1, -1):
        solved[i] /= factor[i, i]
        for j in range(i):
            solved[j] -= factor[i, j] * solved[i]
    return solved
