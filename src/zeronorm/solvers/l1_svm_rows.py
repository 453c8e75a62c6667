"""The samples of an ℓ1 machine as rows of signed data, one for each side of its loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from zeronorm.design.base import Design
from zeronorm.solvers.arrays import FloatArray
from zeronorm.solvers.l1_svm import L1Svm
from zeronorm.solvers.status import Status


class SignedRows:
    r"""Rows z and targets h with which the loss is :math:`\max(0, h - z \cdot (w, b))`.

    A class label makes one row of a sample; a real target makes two, one for each end of the tube.
    """

    def __init__(self, design: Design, y: ArrayLike, epsilon: float | None) -> None:
        self.design = design
        self.y = np.asarray(y, dtype=np.float64)
        self.epsilon = epsilon
        if epsilon is None:
            self.sides = self.y[None, :]
            self.targets = np.ones(self.y.size)
        else:
            self.sides = np.vstack([np.ones(self.y.size), -np.ones(self.y.size)])
            self.targets = np.concatenate([self.y - epsilon, -self.y - epsilon])
        n, p = design.shape
        rows = np.empty((len(self.sides), n, p + 1))
        rows[..., :-1] = design.block(slice(None))
        rows[..., -1] = 1.0
        rows *= self.sides[..., None]
        self.rows: FloatArray = rows.reshape(-1, p + 1)

    def per_row(self, price: FloatArray) -> FloatArray:
        """Prices of the samples for each of their rows."""
        return np.tile(price, len(self.sides))

    def machine(
        self, weights: FloatArray, alpha: FloatArray, objective: float, n_iter: int, status: Status
    ) -> L1Svm:
        """The machine with these weights, the bias last, and multipliers of the rows."""
        dual = (self.sides * alpha.reshape(self.sides.shape)).sum(axis=0)
        return L1Svm(
            weights=weights[:-1],
            bias=float(weights[-1]),
            slack=self._slacks(weights[:-1], float(weights[-1])),
            dual_coef=dual,
            pull=self.design.transpose_dot(dual),
            objective=objective,
            n_iter=n_iter,
            status=status,
        )

    def _slacks(self, weights: FloatArray, bias: float) -> FloatArray:
        f = self.design.dot(weights) + bias
        if self.epsilon is None:
            return np.asarray(np.maximum(0.0, 1.0 - self.y * f))
        return np.asarray(np.maximum(0.0, np.abs(self.y - f) - self.epsilon))
