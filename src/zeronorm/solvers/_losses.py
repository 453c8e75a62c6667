"""Convex losses of a linear model with their derivatives, and a Newton method for sparse penalties on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from zeronorm._jit import dividing_kernel, reduction
from zeronorm._types import FloatArray, IntArray
from zeronorm.registry import load_extensions
from zeronorm.selection._kinds import Kind


class Loss(ABC):
    """A loss L(f, y), elementwise; the labels of classification losses are -1 and +1."""

    for_classes_only: bool = True

    @abstractmethod
    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """L(f, y)."""

    @abstractmethod
    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """The derivative of L in f."""

    @abstractmethod
    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """The second derivative of L in f (where it jumps, the value on either side)."""


LOSSES: dict[str, Loss] = {}
L = TypeVar("L", bound=type[Loss])


def register_loss(name: str) -> Callable[[L], L]:
    """Class decorator that registers a loss under ``name``, for example for the ``loss`` parameter of Grafting."""

    def enter(cls: L) -> L:
        LOSSES[name] = cls()
        return cls

    return enter


@register_loss("squared_error")
class SquaredLoss(Loss):
    """(f - y)² / 2."""

    for_classes_only = False

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return 0.5 * (f - y) ** 2

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return f - y

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.ones_like(f)


@register_loss("logistic")
class LogisticLoss(Loss):
    """log(1 + exp(-y f))."""

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.logaddexp(0.0, -y * f))

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-y * expit(-y * f))

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(expit(f) * expit(-f))


@register_loss("squared_hinge")
class SquaredHingeLoss(Loss):
    """max(0, 1 - y f)² / 2."""

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return 0.5 * np.maximum(0.0, 1.0 - y * f) ** 2

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return -y * np.maximum(0.0, 1.0 - y * f)

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return (y * f < 1.0).astype(np.float64)


def find_loss(name: str) -> Loss | None:
    """The loss registered under this name, here or by another package; None if there is none."""
    if name not in LOSSES:
        load_extensions()
    return LOSSES.get(name)


LOSS_NAME = Kind(
    "loss",
    ("'squared_error'", "'logistic'", "'squared_hinge'", "the name of another registered loss"),
    "str",
    lambda value: isinstance(value, str) and find_loss(value) is not None,
)


# -- Newton's method for a smooth loss with an ℓ1 penalty, on few columns --
#
# .. math:: \min_{w, b} \sum_i \omega_i L(w \cdot x_i + b, y_i) + \lambda_2 \|w\|^2 + \lambda_1 \|w\|_1
#
# for few columns (a working set) and a good start. Weights that reach zero leave the working set. The caller, who
# knows the gradients of all columns, decides which of them return.


MAX_NEWTON_STEPS = 200
SUFFICIENT = 1e-4  # share of the decrease predicted by the slope (Armijo)
DECREASE_ROUNDING = 1e-12  # predicted decrease, relative to the objective, that may be lost to rounding
RIDGE = 1e-12  # relative, for linearly dependent columns


@dataclass(frozen=True)
class PenalizedLoss:
    """The objective: a weighted sum of losses with penalties; ``share`` sums to one."""

    loss: Loss
    y: FloatArray
    share: FloatArray
    penalty_l1: float
    penalty_l2: float

    def value(self, f: FloatArray, w: FloatArray) -> float:
        """Loss of the predictions ``f`` plus the penalties of ``w``."""
        penalty = self.penalty_l2 * float(w @ w) + self.penalty_l1 * float(np.abs(w).sum())
        return float(self.share @ self.loss.value(f, self.y)) + penalty

    def slope(self, f: FloatArray) -> FloatArray:
        """Derivative of the loss in each prediction."""
        return self.share * self.loss.slope(f, self.y)

    def curvature(self, f: FloatArray) -> FloatArray:
        """Second derivative of the loss in each prediction."""
        return self.share * self.loss.curvature(f, self.y)


@dataclass(frozen=True)
class WorkingSetSolution:
    """The solution: weights (exactly zero for columns that left), bias, predictions, objective."""

    w: FloatArray
    bias: float
    f: FloatArray
    value: float
    converged: bool


def solve_working_set(
    X: FloatArray,
    objective: PenalizedLoss,
    w: FloatArray,
    bias: float,
    signs: FloatArray,
    tol: float,
) -> WorkingSetSolution:
    """Minimise over the columns of ``X`` from ``w`` and ``bias``.

    ``signs`` gives the direction in which a weight that starts at zero moves. Converged when no derivative exceeds
    ``tol``, or when rounding allows no further decrease.
    """
    w, signs = w.copy(), np.where(w != 0.0, np.sign(w), signs)
    active = signs != 0.0
    f = X @ w + bias
    value = objective.value(f, w)
    for _ in range(MAX_NEWTON_STEPS):
        gradient = _gradient(X[:, active], objective, f, w[active], signs[active])
        if np.abs(gradient).max() <= tol:
            return WorkingSetSolution(w, bias, f, value, True)
        step = _newton_step(X[:, active], objective, f, gradient)
        direction = np.zeros_like(w)
        direction[active] = step[:-1]
        misled = (w == 0.0) & (direction * signs < 0.0)
        if misled.any():
            active &= ~misled
            continue
        slope = float(gradient @ step)
        state = (w, bias, f, value)
        hidden = -slope <= DECREASE_ROUNDING * abs(
            value
        )  # rounding of the objective hides a decrease this small
        if hidden:
            moved = _full_step(X, objective, state, direction, float(step[-1]), signs, active, gradient)
        else:
            moved = _line_search(X, objective, state, direction, float(step[-1]), slope)
        if moved is None:
            return WorkingSetSolution(w, bias, f, value, hidden)
        w, bias, f, value = moved
        active &= w != 0.0
        signs = np.where(active, np.sign(w), 0.0)
    return WorkingSetSolution(w, bias, f, value, False)


def _gradient(
    X: FloatArray, objective: PenalizedLoss, f: FloatArray, w: FloatArray, signs: FloatArray
) -> FloatArray:
    slope = objective.slope(f)
    in_w = X.T @ slope + 2.0 * objective.penalty_l2 * w + objective.penalty_l1 * signs
    return np.append(in_w, slope.sum())


def _newton_step(X: FloatArray, objective: PenalizedLoss, f: FloatArray, gradient: FloatArray) -> FloatArray:
    """The step for the weights, then for the bias."""
    columns = np.column_stack([X, np.ones(len(X))])
    hessian = (columns.T * objective.curvature(f)) @ columns
    diagonal = np.einsum("ii->i", hessian)
    diagonal[:-1] += 2.0 * objective.penalty_l2
    ridge = RIDGE * max(float(diagonal.max()), 1e-300)
    while True:
        try:
            factor = cho_factor(hessian + ridge * np.eye(len(gradient)))
            return np.asarray(-cho_solve(factor, gradient))
        except LinAlgError:
            ridge *= 100.0


def _full_step(
    X: FloatArray,
    objective: PenalizedLoss,
    start: tuple[FloatArray, float, FloatArray, float],
    direction: FloatArray,
    bias_step: float,
    signs: FloatArray,
    active: NDArray[np.bool_],
    gradient: FloatArray,
) -> tuple[FloatArray, float, FloatArray, float] | None:
    """Newton's step, taken if it halves the gradient and no weight changes its sign."""
    w, bias, f, _ = start
    moved = w + direction
    if objective.penalty_l1 > 0.0 and np.any(moved[active] * signs[active] <= 0.0):
        return None
    predictions = f + X @ direction + bias_step
    after = _gradient(X[:, active], objective, predictions, moved[active], signs[active])
    if np.abs(after).max() > 0.5 * np.abs(gradient).max():
        return None
    return moved, bias + bias_step, predictions, objective.value(predictions, moved)


def _line_search(
    X: FloatArray,
    objective: PenalizedLoss,
    start: tuple[FloatArray, float, FloatArray, float],
    direction: FloatArray,
    bias_step: float,
    slope: float,
) -> tuple[FloatArray, float, FloatArray, float] | None:
    """The best of the full step and the points where a weight reaches zero; if none is better, a shorter step."""
    w, bias, f, value = start
    change = X @ direction + bias_step

    def at(t: float, crossing: FloatArray) -> tuple[FloatArray, float, FloatArray, float]:
        moved = np.where(crossing == t, 0.0, w + t * direction)
        predictions = f + t * change
        return moved, bias + t * bias_step, predictions, objective.value(predictions, moved)

    # Without an absolute-value penalty there is no kink at zero and no reason to stop there.
    stops = (w * direction < 0.0) & (objective.penalty_l1 > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(stops, -w / direction, np.inf)
    best = min((at(t, crossing) for t in {1.0, *crossing[crossing < 1.0].tolist()}), key=lambda m: m[3])
    t = 1.0
    while best[3] > value + SUFFICIENT * t * slope:
        t *= 0.5
        if t < 1e-12:
            return None
        best = at(t, crossing)
    return best


# -- Several classes at once --


LARGEST_VALUE = 700.0  # of a decision value: its exponential is still finite


class Softmax:
    r"""Class probabilities from ``n_classes - 1`` decision values per sample.

    With two classes, the second has probability :math:`1 / (1 + e^{-f})`. With more, the probabilities are the softmax
    of :math:`Q f`, where the columns of Q are orthonormal and sum to zero. Nothing is lost by this, since a ridge
    penalty makes the weights of all classes sum to zero, and the norm of the weights is the same. Arrays are
    outputs × samples.
    """

    def __init__(self, codes: IntArray, n_classes: int, cost: FloatArray) -> None:
        self.n_outputs = n_classes - 1
        self.cost = cost
        of_class = np.eye(n_classes)[:, codes]
        self.paid = cost * (of_class[1:] if n_classes == 2 else of_class)
        # Q is an orthogonal matrix without its first column, which is constant.
        start = np.eye(n_classes)
        start[:, 0] = 1.0
        self.contrast = np.linalg.qr(start)[0][:, 1:]

    def slope(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivative of the loss in the decision values, and the probabilities; overwrites ``f``."""
        if self.n_outputs == 1:
            np.negative(f, out=f)
            np.minimum(f, LARGEST_VALUE, out=f)
            return slope_of_two_classes(np.exp(f, out=f), self.cost, self.paid)
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
        """Turn an array with one row per output into one with one row per class; with two classes it has one row."""
        return values if self.n_outputs == 1 else self.contrast @ values


@dividing_kernel
def slope_of_two_classes(
    exponential: FloatArray, cost: FloatArray, paid: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Derivative of the loss and probabilities of the second class, from exp(-f)."""
    slope, probability = np.empty_like(exponential), np.empty_like(exponential)
    for i in range(cost.size):
        share = 1.0 / (1.0 + exponential[0, i])
        probability[0, i] = share
        slope[0, i] = share * cost[i] - paid[0, i]
    return slope, probability


@reduction
def sum_of_curvatures(probability: FloatArray, cost: FloatArray) -> float:
    """The second derivatives of the loss, given the class probabilities, summed over all samples."""
    total = 0.0
    for c in range(len(probability)):
        for i in range(cost.size):
            total += cost[i] * probability[c, i] * (1.0 - probability[c, i])
    return total
