"""Logistic regression with a ridge penalty, whose exact solution is followed as features leave."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import suppress

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.elimination.smooth_models import Columns, KnownModel, without, without_rows

DOWNDATES = 64  # removals after which a kernel matrix is computed afresh
STEPS = 200
ROUNDED_STEP = 1e-7  # a step below which rounding may keep the gradient from falling
NEWTON_STEP = 1e-5  # after a step of Newton's method this small, its square is left
SLOWEST = (
    0.5  # factor by which a step must reduce the gradient for the same second derivatives to be used again
)
QUICK = 0.02  # a factor that leaves nothing to learn
SLOWEST_IN_SAMPLES = 0.1  # the same in the dual, where they cost less
LATE_STEP = 1e-3  # relative; after a smaller one the solution is so near that nothing is worn
SAFETY = 4.0  # the error falls by that much less than the last step has reduced the residual
STEPS_PER_COLUMN = 0.1  # that cost as much as the second derivatives, per column and output
LARGEST_VALUE = 700.0  # of a decision, whose exponential is still a number
MOST_RANKS = 0.1  # of the size of an inverse, by which it is updated and not computed afresh
LEAST_CURVATURE = 1e-18  # relative to the cost: a sample of certain class has none


class Softmax:
    r"""Probabilities of classes, given one decision value less per sample than there are classes.

    Of two classes the second has :math:`1 / (1 + e^{-f})`. More have a softmax of :math:`Q f`, where the columns of Q
    are orthonormal and sum to zero: the ridge penalty makes the sum of all classes' weights zero, so nothing is lost,
    and the norm of the weights is the same. Arrays are outputs × samples.
    """

    def __init__(self, codes: IntArray, n_classes: int, cost: FloatArray) -> None:
        self.n_outputs = n_classes - 1
        self.cost = cost
        of_class = np.eye(n_classes)[:, codes]
        self.paid = cost * (of_class[1:] if n_classes == 2 else of_class)
        # The first column of an orthogonal matrix that begins with the constant vector is left out.
        start = np.eye(n_classes)
        start[:, 0] = 1.0
        self.contrast = np.linalg.qr(start)[0][:, 1:]

    def slope(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivative of the loss in the decision values, and the probabilities."""
        if self.n_outputs == 1:
            found = np.exp(np.minimum(-f, LARGEST_VALUE))
            found += 1.0
            np.reciprocal(found, out=found)
            return found * self.cost - self.paid, found
        found = self.contrast @ f
        if (
            not found.max() < LARGEST_VALUE
        ):  # the values of a sample sum to zero, so none is small for all classes
            found -= found.max(axis=0)
        np.exp(found, out=found)
        found /= found.sum(axis=0)
        return self.contrast.T @ (found * self.cost - self.paid), found

    def curvature(self, probability: FloatArray) -> FloatArray:
        """Second derivatives, outputs × outputs × samples."""
        if self.n_outputs == 1:
            return np.asarray((self.cost * probability * (1.0 - probability))[None])
        mean = self.contrast.T @ probability
        products = np.einsum("ck,cl->klc", self.contrast, self.contrast)
        return np.asarray(self.cost * (products @ probability - mean[:, None] * mean[None]))

    def all_classes(self, values: FloatArray) -> FloatArray:
        """One row per class of what has one row per output; for two classes there is one row."""
        return values if self.n_outputs == 1 else self.contrast @ values


class Logistic(KnownModel):
    """The regression in its dual variables while features outnumber samples, then in its weights."""

    def __init__(self, X: FloatArray, codes: IntArray, cost: FloatArray) -> None:
        super().__init__(X.shape[1])
        self.columns = Columns(X)
        self.loss = Softmax(codes, int(codes.max()) + 1, cost)
        self._start()

    def _start(self) -> None:
        in_samples = self.alive.size > self.loss.cost.size
        self.phase: Phase = (InSamples if in_samples else InFeatures)(self.columns, self.loss)

    def train(self) -> bool:
        if isinstance(self.phase, InSamples) and self.alive.size <= self.loss.cost.size:
            start = np.column_stack([self.phase.weights(self.phase.state), self.phase.state[:, -1]])
            self.phase = InFeatures(self.columns, self.loss, start)
        if not self.phase.solve(self.precision, self.smallest_suffices):
            self._start()
            return False
        state = self.phase.state
        self.weights = self.loss.all_classes(self.phase.weights(state))
        self.intercept = self.loss.all_classes(state[:, -1:])[:, 0]
        return True

    def remove(self, features: IntArray) -> None:
        positions = np.searchsorted(self.alive, features)
        self.phase.remove(positions)
        self.columns.remove(positions)
        super().remove(features)


class Phase(ABC):
    """Newton's method with second derivatives that are used again while they serve.

    ``state`` has one row per output, the intercept last. The feature that leaves had the smallest weight, so little
    changes: one to three steps from the last state reach the solution.
    """

    state: FloatArray
    probability: FloatArray | None = None  # of the classes, at the last solution
    is_ready = False  # whether there are second derivatives
    rough: float  # relative error from which on it is worth asking whether the smallest weight is known
    reduction = 1.0  # of the residual by the last step that was looked at; in proportion to its size, or less
    reduced_at = math.inf  # the relative size of that step
    n_repeated = 0  # steps beyond the first of each round since they were computed

    @abstractmethod
    def residual(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What vanishes at the solution, and the probabilities of the classes."""

    @abstractmethod
    def prepare(self, probability: FloatArray) -> None:
        """Second derivatives where the probabilities are these."""

    @abstractmethod
    def worn_after(self) -> float:
        """Steps beyond the first of each round that have cost as much as new second derivatives would."""

    @abstractmethod
    def step(self, residual: FloatArray) -> FloatArray:
        """To where the residual would vanish if it were linear."""

    @abstractmethod
    def learn(self, step: FloatArray, change: FloatArray, reduction: float) -> None:
        """Use how the residual changed over a step, and which share of its norm was left."""

    @abstractmethod
    def weights(self, state: FloatArray) -> FloatArray:
        """What a state, or a difference of two, is in weights, one row per output."""

    @abstractmethod
    def remove(self, positions: IntArray) -> None:
        """Take out features, given by their positions among those left."""

    def solve(self, precision: float, smallest_suffices: bool) -> bool:
        """From the last state to the solution; False where it is not reached."""
        state, (residual, probability) = self.state, self.residual(self.state)
        norm, size, is_fresh = _norm(residual), math.inf, False
        self.reduction = min(1.0, 2.0 * self.reduction)
        for _ in range(STEPS):
            if not self.is_ready or (size > LATE_STEP and self.n_repeated >= self.worn_after()):
                try:
                    self.prepare(probability)
                except LinAlgError:
                    return False
                self.is_ready, is_fresh, self.n_repeated = True, True, 0
            step = self.step(residual)
            size = float(np.abs(step).max()) / max(float(np.abs(state).max()), 1e-300)
            share = min(1.0, SAFETY * self.reduction * max(1.0, size / self.reduced_at))
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
                self.is_ready = False
                continue
            while not norm_there < norm:
                step = 0.5 * step
                if not np.abs(step).max() > 1e-6 * size * np.abs(state).max():
                    self.state, self.probability = state, probability
                    return size <= ROUNDED_STEP
                residual_there, probability_there = self.residual(state + step)
                norm_there = _norm(residual_there)
            self.reduction, self.reduced_at, is_fresh = norm_there / norm, max(size, 1e-300), False
            self.learn(step, residual_there - residual, self.reduction)
            state, residual, probability, norm = state + step, residual_there, probability_there, norm_there
        return False

    def tells_the_smallest(self, trial: FloatArray, error: FloatArray) -> bool:
        """Whether an error of this size leaves no doubt which feature has the smallest weight."""
        lengths = np.sqrt((self.weights(trial) ** 2).sum(axis=0))
        if lengths.size == 1:
            return True
        smallest, next_one = np.partition(lengths, 1)[:2]
        return bool(next_one - smallest > 2.0 * np.sqrt((self.weights(error) ** 2).sum(axis=0).max()))


def _norm(residual: FloatArray) -> float:
    return math.sqrt(float(np.vdot(residual, residual)))


class InFeatures(Phase):
    """Unknown are weights and intercepts.

    The inverse Hessian predicts the solution without a feature, loses its rows, and learns from each step by the
    formula of Broyden, Fletcher, Goldfarb and Shanno.
    """

    rough = 0.1

    def __init__(self, columns: Columns, loss: Softmax, start: FloatArray | None = None) -> None:
        self.columns, self.loss = columns, loss
        self.state = np.zeros((loss.n_outputs, columns.place.size + 1)) if start is None else start

    def residual(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        f = self.columns.dot(state[:, :-1])
        f += state[:, -1:]
        slope, probability = self.loss.slope(f)
        gradient = np.empty_like(state)
        np.add(self.columns.transpose_dot(slope.T).T, state[:, :-1], out=gradient[:, :-1])
        gradient[:, -1] = slope.sum(axis=1)
        return gradient, probability

    def prepare(self, probability: FloatArray) -> None:
        curvature, rows = self.loss.curvature(probability), self.columns.left()
        m, p = len(curvature), len(rows)
        system = np.empty((m, p + 1, m, p + 1))
        for k in range(m):
            for other in range(k + 1):
                weight = curvature[k, other]
                block = system[k, :, other]
                if k == other:  # a product with its own transpose takes half of the time
                    scaled = rows * np.sqrt(np.maximum(weight, 0.0))  # negative by rounding
                    block[:-1, :-1] = scaled @ scaled.T + np.eye(p)
                else:
                    block[:-1, :-1] = (rows * weight) @ rows.T
                block[-1, :-1] = block[:-1, -1] = rows @ weight
                block[-1, -1] = weight.sum()
                system[other, :, k] = block
        square = system.reshape(m * (p + 1), m * (p + 1))
        self.inverse = inverse_of(square)

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
        m, width = self.state.shape
        stay = without(np.arange(width), positions)
        if self.is_ready:
            gone = (width * np.arange(m)[:, None] + positions).ravel()
            inverse, point = without_rows(self.inverse, gone, self.state.reshape(-1, 1))
            if inverse is not None:
                # At the point the quadratic model of the loss has its minimum without these features.
                self.inverse, self.state = inverse, point.reshape(m, stay.size)
                return
        self.is_ready, self.state = False, self.state[:, stay]


def inverse_of(system: FloatArray) -> FloatArray:
    """The inverse of a positive definite matrix, by the shortest way: most are small."""
    return inverse_from(factor_of(system))


def factor_of(system: FloatArray) -> FloatArray:
    """The Cholesky factor in an upper triangle; the system is overwritten."""
    factor, not_definite = dpotrf(system.T, overwrite_a=True)
    if not_definite:
        raise LinAlgError("not positive definite")
    return np.asarray(factor)


def inverse_from(factor: FloatArray) -> FloatArray:
    """The inverse of the matrix that has this factor."""
    triangle = dpotri(factor)[0]
    inverse = triangle + triangle.T
    inverse.flat[:: len(inverse) + 1] *= 0.5
    return np.asarray(inverse)


class InSamples(Phase):
    r"""Unknown are the dual variables a of :math:`w = X^\top a`, and the intercepts b.

    At the solution :math:`a = -\partial L / \partial f` where :math:`f = K a + b`. With curvatures
    :math:`D = R R^\top`, a step needs one system, :math:`I + R^\top K R`.
    """

    rough = 1e-5  # the weights are a product with the data

    def __init__(self, columns: Columns, loss: Softmax) -> None:
        self.columns, self.loss = columns, loss
        self.state = np.zeros((loss.n_outputs, loss.cost.size + 1))
        self.K, self.n_downdates = columns.gram(), 0
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
        """Where the second derivatives of the last solution place the new one, which has lost these decision values."""
        with suppress(LinAlgError):
            self.prepare(probability)
            self.is_ready = True
            residual = np.zeros_like(self.state)
            residual[:, :-1] = -self._rooted(self._transpose_rooted(lost))
            self.state = self.state + self.step(residual)

    def residual(self, state: FloatArray) -> tuple[FloatArray, FloatArray]:
        slope, probability = self.loss.slope(state[:, :-1] @ self.K + state[:, -1:])
        residual = np.empty_like(state)
        np.add(slope, state[:, :-1], out=residual[:, :-1])
        residual[:, -1] = state[:, :-1].sum(axis=1)
        return residual, probability

    def prepare(self, probability: FloatArray) -> None:
        curvature = self.loss.curvature(probability).transpose(2, 0, 1)
        n, m = curvature.shape[:2]
        if m == 1:
            self.root = np.sqrt(curvature)
        else:
            curvature[:, range(m), range(m)] += LEAST_CURVATURE * self.loss.cost[:, None]
            self.root = np.linalg.cholesky(curvature)
        system = np.empty((m * n, m * n))
        for k in range(m):
            for other in range(m):
                roots = self.root[:, :, k] @ self.root[:, :, other].T
                np.multiply(self.K, roots, out=system[k * n : (k + 1) * n, other * n : (other + 1) * n])
        system.flat[:: m * n + 1] += 1.0
        self.factor, self.inverse = factor_of(system), None
        # What the intercepts do to the unknowns of the system, one column each.
        self.border = self.root.transpose(2, 0, 1).reshape(m * n, m)
        self._note_border()

    def _rooted(self, values: FloatArray) -> FloatArray:
        """R times values; einsum is slow for what is one product."""
        one = self.root.shape[1] == 1
        return np.asarray(self.root[:, 0, 0] * values if one else np.einsum("ick,ki->ci", self.root, values))

    def _transpose_rooted(self, values: FloatArray) -> FloatArray:
        one = self.root.shape[1] == 1
        return np.asarray(self.root[:, 0, 0] * values if one else np.einsum("ick,ci->ki", self.root, values))

    def worn_after(self) -> float:
        return math.inf  # each step decides

    def _solved(self, right: FloatArray) -> FloatArray:
        if self.inverse is not None:
            return self.inverse @ right
        return np.asarray(dpotrs(self.factor, right)[0])

    def _note_border(self) -> None:
        self.solved_border = self._solved(self.border)
        seen = self.border.T @ self.solved_border
        self.of_intercept = 1.0 / seen if seen.size == 1 else np.linalg.inv(seen)

    def step(self, residual: FloatArray) -> FloatArray:
        r"""With :math:`\Delta a = -r - R t`: :math:`(I + R^\top K R)\, t = R^\top(\Delta b - K r)`."""
        inner, balance = residual[:, :-1], residual[:, -1]
        right = -self._transpose_rooted(inner @ self.K).ravel()
        solved = self._solved(right)
        missing = balance - inner.sum(axis=1) - self.border.T @ solved
        intercept = self.of_intercept @ missing
        t = (solved + self.solved_border @ intercept).reshape(inner.shape)
        found = np.empty_like(residual)
        np.subtract(-inner, self._rooted(t), out=found[:, :-1])
        found[:, -1] = intercept
        return found

    def learn(self, step: FloatArray, change: FloatArray, reduction: float) -> None:
        self.is_ready = reduction <= SLOWEST_IN_SAMPLES

    def weights(self, state: FloatArray) -> FloatArray:
        return self.columns.transpose_dot(state[:, :-1].T).T

    def remove(self, positions: IntArray) -> None:
        x = self.columns.of(positions)
        gone = x @ x.T
        self.K -= gone
        self.n_downdates += 1
        if self.is_ready:
            self._downdate(x)
        self.lost = self.state[:, :-1] @ gone

    def _downdate(self, x: FloatArray) -> None:
        """The inverse when x xᵀ leaves the Gram matrix, a change of few ranks."""
        m, n = len(self.state), len(x)
        if x.shape[1] > MOST_RANKS * n:
            self.is_ready = False
            return
        side = (self.border.reshape(m, n, m, 1) * x[:, None, :]).reshape(m * n, -1)
        if self.inverse is None:
            self.inverse = inverse_from(self.factor)
        solved = self.inverse @ side
        left = np.eye(side.shape[1]) - side.T @ solved
        try:
            self.inverse += solved @ (solved.T / left if left.size == 1 else np.linalg.solve(left, solved.T))
            self._note_border()
        except LinAlgError:
            self.is_ready = False
