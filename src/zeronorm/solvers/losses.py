"""Convex losses of a linear model with their first and second derivatives in the prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit

from zeronorm._types import FloatArray


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


class SquaredLoss(Loss):
    """(f - y)² / 2."""

    for_classes_only = False

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return 0.5 * (f - y) ** 2

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return f - y

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.ones_like(f)


class LogisticLoss(Loss):
    """log(1 + exp(-y f))."""

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.logaddexp(0.0, -y * f))

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-y * expit(-y * f))

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(expit(f) * expit(-f))


class SquaredHingeLoss(Loss):
    """max(0, 1 - y f)² / 2."""

    def value(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return 0.5 * np.maximum(0.0, 1.0 - y * f) ** 2

    def slope(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return -y * np.maximum(0.0, 1.0 - y * f)

    def curvature(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return (y * f < 1.0).astype(np.float64)


LOSSES: dict[str, Loss] = {
    "squared": SquaredLoss(),
    "logistic": LogisticLoss(),
    "squared_hinge": SquaredHingeLoss(),
}
