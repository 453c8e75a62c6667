r"""Losses with their duals, for bounds on the objective of a linear model.

With the cost :math:`C_i` of a sample, a dual variable is :math:`\alpha_i = C_i v_i` and

.. math:: C_i L(f, y_i) = \max_v\ C_i\, d(v, y_i) - \alpha_i f

with the maximum at :math:`v = -\partial L / \partial f`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from zeronorm._types import FloatArray, written
from zeronorm.solvers.linear._losses import HingeLoss, LogisticLoss, SeparableLoss, SquaredLoss


class DualLoss(SeparableLoss):
    """A loss L(f, y) with the concave function d(v, y) of its dual problem."""

    is_free: bool = False  # whether v may have any value; otherwise y v is not negative
    is_smooth: bool = True  # whether the loss has a derivative everywhere

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

    def smoothed(self, width: float, v: FloatArray) -> DualLoss:
        """The loss with its kink rounded over this width, near the dual variables v; a smooth loss as it is."""
        return self


class SquaredError(SquaredLoss, DualLoss):
    """(f - y)² / 2, with d = y v - v² / 2."""

    is_free = True

    def dual(self, v: FloatArray, y: FloatArray) -> FloatArray:
        return v * (y - 0.5 * v)

    def feasible(self, v: FloatArray, y: FloatArray) -> FloatArray:
        return v


class LogisticConjugate(LogisticLoss, DualLoss):
    """log(1 + exp(-y f)), with the entropy d = -u log u - (1 - u) log(1 - u) of u = y v."""

    @property
    def largest_curvature(self) -> float:
        return 0.25

    def dual(self, v: FloatArray, y: FloatArray) -> FloatArray:
        u = y * v
        return np.asarray(entr(u) + entr(1.0 - u))

    def feasible(self, v: FloatArray, y: FloatArray) -> FloatArray:
        return y * np.clip(y * v, 0.0, 1.0)


class SquaredHingeConjugate(HingeLoss, DualLoss):
    """max(0, 1 - y f)² / 2, with d = u - u² / 2 of u = y v ≥ 0."""

    def dual(self, v: FloatArray, y: FloatArray) -> FloatArray:
        u = y * v
        return u * (1.0 - 0.5 * u)

    def feasible(self, v: FloatArray, y: FloatArray) -> FloatArray:
        return y * np.maximum(y * v, 0.0)


class Hinge(DualLoss):
    """max(0, 1 - y f), with d = u of u = y v between 0 and 1."""

    is_smooth = False

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.maximum(0.0, 1.0 - y * f)

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return -y * (y * f < 1.0)

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.zeros_like(f)

    def dual(self, v: FloatArray, y: FloatArray) -> FloatArray:
        return y * v

    def feasible(self, v: FloatArray, y: FloatArray) -> FloatArray:
        return y * np.clip(y * v, 0.0, 1.0)

    def smoothed(self, width: float, v: FloatArray) -> DualLoss:
        return RoundedHinge(width, np.abs(v))


@dataclass(frozen=True, eq=False)
class RoundedHinge(Hinge):
    r"""The hinge loss from below, without its kink:
    :math:`\max_{0 \le u \le 1} u (1 - y f) - \tfrac{\omega}{2} (u - u_0)^2`.

    It equals the hinge loss where :math:`u_0` is the dual variable. Minimising with this loss and taking the u as the
    next :math:`u_0` is the method of multipliers (Rockafellar 1976).
    """

    width: float
    centre: FloatArray

    def _u(self, short: FloatArray) -> FloatArray:
        return np.clip(self.centre + short / self.width, 0.0, 1.0)

    @property
    def largest_curvature(self) -> float:
        return 1.0 / self.width

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        short = 1.0 - y * f
        u = self._u(short)
        return u * short - 0.5 * self.width * (u - self.centre) ** 2

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return -y * self._u(1.0 - y * f)

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        u = self.centre + (1.0 - y * f) / self.width
        return ((u > 0.0) & (u < 1.0)) / self.width


DUAL_LOSSES: dict[str, DualLoss] = {
    "squared_error": SquaredError(),
    "hinge": Hinge(),
    "squared_hinge": SquaredHingeConjugate(squared=True),
    "logistic": LogisticConjugate(),
}


def dual_loss(name: str) -> DualLoss:
    """The loss of this name; an error lists those that have a dual here."""
    if name not in DUAL_LOSSES:
        known = ", ".join(repr(known) for known in DUAL_LOSSES)
        raise ValueError(f"The 'loss' must be one of {known}. Got {written(name)} instead.")
    return DUAL_LOSSES[name]
