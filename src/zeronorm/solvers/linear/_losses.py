"""Convex losses of a linear model, with their derivatives and, where it is quadratic, their dual.

A loss is a function of the predictions of all samples. Most are sums over samples (``SeparableLoss``). Losses that are
piecewise linear or quadratic have a dual with box constraints, which is what the support vector machines solve.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from scipy.special import expit

from zeronorm._types import FloatArray
from zeronorm.registry import load_extensions
from zeronorm.selection._kinds import Kind
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._dual import finite_costs


class Loss(ABC):
    """A convex loss L(f) of the predictions f of all samples, given their targets y and costs C.

    A loss that is not a sum over samples, such as a partial likelihood, has a Hessian with n rows and n columns.
    """

    for_classes_only: bool = True
    has_bias: bool = True  # False if adding a constant to all predictions changes nothing
    # Whether the loss is piecewise linear or quadratic: a class that defines ``box_dual`` states its dual problem.
    has_dual: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.has_dual = cls.box_dual is not Loss.box_dual

    def prepared(self, y: FloatArray, cost: FloatArray) -> Loss:
        """The same loss for these targets and costs alone, with what depends on them computed once."""
        return self

    @abstractmethod
    def total(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> float:
        """L(f)."""

    @abstractmethod
    def gradient(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> FloatArray:
        """The derivative of L in each prediction."""

    @abstractmethod
    def hessian(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> FloatArray:
        """The second derivatives of L: the matrix, or only its diagonal where all others are zero."""

    def sandwich(self, f: FloatArray, y: FloatArray, cost: FloatArray, columns: FloatArray) -> FloatArray:
        """The second derivatives multiplied by columns from both sides."""
        bend = self.hessian(f, y, cost)
        return np.asarray((columns.T * bend if bend.ndim == 1 else columns.T @ bend) @ columns)

    @property
    def has_kinks(self) -> bool:
        """Whether the slope jumps somewhere, so that Newton's method on the loss fails."""
        return False

    def box_dual(self, y: FloatArray, cost: FloatArray) -> BoxDual:
        """The dual problem of a piecewise linear or quadratic loss."""
        raise NotImplementedError(f"{type(self).__name__} has no dual with box constraints.")


class SeparableLoss(Loss):
    r"""A loss that is a sum over samples, :math:`L(f) = \sum_i C_i\, \ell(f_i, y_i)`.

    The labels of classification losses are -1 and +1.
    """

    @abstractmethod
    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """The loss of each sample."""

    @abstractmethod
    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """The derivative in f."""

    @abstractmethod
    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """The second derivative in f (where it jumps, the value on either side)."""

    def total(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> float:
        return float(cost @ self.value(f, y))

    def gradient(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> FloatArray:
        return cost * self.slope(f, y)

    def hessian(self, f: FloatArray, y: FloatArray, cost: FloatArray) -> FloatArray:
        return cost * self.curvature(f, y)


LOSSES: dict[str, SeparableLoss] = {}
L = TypeVar("L", bound=type[SeparableLoss])


def register_loss(name: str) -> Callable[[L], L]:
    """Class decorator that registers a loss under ``name``, for example for the ``loss`` parameter of Grafting."""

    def enter(cls: L) -> L:
        LOSSES[name] = cls()
        return cls

    return enter


def find_loss(name: str) -> SeparableLoss | None:
    """The loss registered under this name, here or by another package; None if there is none."""
    if name not in LOSSES:
        load_extensions()
    return LOSSES.get(name)


# -- Smooth losses --


@register_loss("squared_error")
class SquaredLoss(SeparableLoss):
    """(f - y)² / 2."""

    for_classes_only = False

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return 0.5 * (f - y) ** 2

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return f - y

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.ones_like(f)


@register_loss("logistic")
class LogisticLoss(SeparableLoss):
    """log(1 + exp(-y f))."""

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.logaddexp(0.0, -y * f))

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-y * expit(-y * f))

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(expit(f) * expit(-f))


# -- Losses of support vector machines and their relatives --


@dataclass(frozen=True)
class HingeLoss(SeparableLoss):
    """max(0, 1 - y f), or half of its square."""

    squared: bool = False

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        excess = np.maximum(0.0, 1.0 - y * f)
        return 0.5 * excess**2 if self.squared else excess

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return -y * (np.maximum(0.0, 1.0 - y * f) if self.squared else (y * f < 1.0))

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return (y * f < 1.0).astype(np.float64) if self.squared else np.zeros_like(f)

    def box_dual(self, y: FloatArray, cost: FloatArray) -> BoxDual:
        return BoxDual.classification(y, cost, self.squared)

    @property
    def has_kinks(self) -> bool:
        return not self.squared


LOSSES["squared_hinge"] = HingeLoss(squared=True)


@dataclass(frozen=True)
class EpsilonInsensitiveLoss(SeparableLoss):
    """max(0, |f - y| - ε), or half of its square."""

    epsilon: float = 0.1
    squared: bool = False
    for_classes_only = False

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        excess = np.maximum(0.0, np.abs(f - y) - self.epsilon)
        return 0.5 * excess**2 if self.squared else excess

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        excess = np.maximum(0.0, np.abs(f - y) - self.epsilon)
        return np.sign(f - y) * np.where(self.squared, excess, excess > 0.0)

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        beyond = (np.abs(f - y) > self.epsilon).astype(np.float64)
        return beyond if self.squared else np.zeros_like(f)

    def box_dual(self, y: FloatArray, cost: FloatArray) -> BoxDual:
        return BoxDual.regression(y, finite_costs(cost, y.size), self.epsilon, self.squared)

    @property
    def has_kinks(self) -> bool:
        return not self.squared


@dataclass(frozen=True)
class HuberLoss(SeparableLoss):
    """(f - y)² / 2 up to an error of ε, and ε (|f - y| - ε / 2) beyond (Huber 1964)."""

    epsilon: float = 1.35
    for_classes_only = False

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        error = np.abs(f - y)
        inside = np.minimum(error, self.epsilon)
        return inside * (error - 0.5 * inside)

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.clip(f - y, -self.epsilon, self.epsilon)

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return (np.abs(f - y) < self.epsilon).astype(np.float64)

    def box_dual(self, y: FloatArray, cost: FloatArray) -> BoxDual:
        quadratic = BoxDual.regression(y, finite_costs(cost, y.size), 0.0, squared=True)
        return quadratic.bounded(self.epsilon * cost, self.epsilon * cost)


@dataclass(frozen=True)
class QuantileLoss(SeparableLoss):
    """τ (y - f) if f is too low and (1 - τ)(f - y) if it is too high (Koenker & Bassett 1978)."""

    quantile: float = 0.5
    for_classes_only = False

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.maximum(self.quantile * (y - f), (1.0 - self.quantile) * (f - y))

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(f < y, -self.quantile, 1.0 - self.quantile)

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.zeros_like(f)

    def box_dual(self, y: FloatArray, cost: FloatArray) -> BoxDual:
        absolute = BoxDual.regression(y, finite_costs(cost, y.size), 0.0, squared=False)
        return absolute.bounded(self.quantile * cost, (1.0 - self.quantile) * cost)

    @property
    def has_kinks(self) -> bool:
        return True


ROBUST_LOSSES = ("huber", "quantile")  # names of losses for real targets only


def svm_loss(name: str, epsilon: float | None = None, quantile: float = 0.5) -> SeparableLoss:
    """The loss that a ``loss`` parameter names; ``epsilon`` is given for real targets only."""
    if epsilon is None:
        return HingeLoss(squared=name == "squared") if name != "logistic" else LOGISTIC
    if name == "huber":
        return HuberLoss(epsilon)
    if name == "quantile":
        return QuantileLoss(quantile)
    return EpsilonInsensitiveLoss(epsilon, squared=name == "squared")


SQUARED_ERROR, LOGISTIC = LOSSES["squared_error"], LOSSES["logistic"]
LOSS_NAME = Kind(
    "loss",
    ("'squared_error'", "'logistic'", "'squared_hinge'", "the name of another registered loss"),
    "str",
    lambda value: isinstance(value, str) and find_loss(value) is not None,
)
