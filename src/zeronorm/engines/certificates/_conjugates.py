r"""Losses with their duals, for bounds on the objective of a linear model.

With the cost :math:`C_i` of a sample, a dual variable is :math:`\alpha_i = C_i v_i` and

.. math:: C_i L(f, y_i) = \max_v\ C_i\, d(v, y_i) - \alpha_i f, \qquad v = -\partial L / \partial f \text{ at the maximum.}
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from zeronorm._types import FloatArray, written
from zeronorm.solvers._losses import LogisticLoss, Loss, SquaredHingeLoss, SquaredLoss


class DualLoss(Loss):
    """A loss L(f, y) with the concave function d(v, y) of its dual problem."""

    # Whether v may have any value; otherwise y v is not negative.
    is_free: bool = False

    @property
    def largest_curvature(self) -> float:
        """An upper bound of the second derivative of a smooth loss."""
        return 1.0

    @abstractmethod
    def dual(self, v: FloatArray, y: FloatArray) -> FloatArray:
        """d(v, y), where v is one that `feasible` returns."""

    @abstractmethod
    def feasible(self, v: FloatArray, y: FloatArray) -> FloatArray:
        """The nearest v for which d(v, y) is finite."""

    def smoothed(self, width: float) -> DualLoss:
        """The loss with its kink rounded over this width; a smooth loss is returned as it is."""
        return self

    @property
    def is_smooth(self) -> bool:
        """Whether the loss has a derivative everywhere."""
        return self.smoothed(1.0) is self


class SquaredError(SquaredLoss, DualLoss):
    """(f - y)² / 2, with d = y v - v² / 2."""

    is_free = True

    def dual(self, v: FloatArray, y: FloatArray) -> FloatArray:
        return v * (y - 0.5 * v)

    def feasible(self, v: FloatArray, y: FloatArray) -> FloatArray:
        return v


class Logistic(LogisticLoss, DualLoss):
    """log(1 + exp(-y f)), with the entropy d = -u log u - (1 - u) log(1 - u) of u = y v."""

    @property
    def largest_curvature(self) -> float:
        return 0.25

    def dual(self, v: FloatArray, y: FloatArray) -> FloatArray:
        u = y * v
        return np.asarray(entr(u) + entr(1.0 - u))

    def feasible(self, v: FloatArray, y: FloatArray) -> FloatArray:
        return y * np.clip(y * v, 0.0, 1.0)


class SquaredHinge(SquaredHingeLoss, DualLoss):
    """max(0, 1 - y f)² / 2, with d = u - u² / 2 of u = y v ≥ 0."""

    def dual(self, v: FloatArray, y: FloatArray) -> FloatArray:
        u = y * v
        return u * (1.0 - 0.5 * u)

    def feasible(self, v: FloatArray, y: FloatArray) -> FloatArray:
        return y * np.maximum(y * v, 0.0)


@dataclass(frozen=True)
class Hinge(DualLoss):
    """max(0, 1 - y f), with d = u of u = y v between 0 and 1.

    With a ``width``, the loss is (1 - y f)² / (2 width) up to ``width`` from the kink and d = u - width u² / 2, so that
    Newton's method applies.
    """

    width: float = 0.0

    @property
    def largest_curvature(self) -> float:
        return 1.0 / self.width

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        short = np.maximum(0.0, 1.0 - y * f)
        if self.width == 0.0:
            return short
        return np.where(short < self.width, short**2 / (2.0 * self.width), short - 0.5 * self.width)

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        short = 1.0 - y * f
        if self.width == 0.0:
            return -y * (short > 0.0)
        return -y * np.clip(short / self.width, 0.0, 1.0)

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        if self.width == 0.0:
            return np.zeros_like(f)
        short = 1.0 - y * f
        return ((short > 0.0) & (short < self.width)) / self.width

    def dual(self, v: FloatArray, y: FloatArray) -> FloatArray:
        u = y * v
        return u * (1.0 - 0.5 * self.width * u)

    def feasible(self, v: FloatArray, y: FloatArray) -> FloatArray:
        return y * np.clip(y * v, 0.0, 1.0)

    def smoothed(self, width: float) -> Hinge:
        return Hinge(width)


DUAL_LOSSES: dict[str, DualLoss] = {
    "squared_error": SquaredError(),
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "logistic": Logistic(),
}


def dual_loss(name: str) -> DualLoss:
    """The loss of this name; an error lists those that have a dual here."""
    if name not in DUAL_LOSSES:
        known = ", ".join(repr(known) for known in DUAL_LOSSES)
        raise ValueError(f"The 'loss' must be one of {known}. Got {written(name)} instead.")
    return DUAL_LOSSES[name]
