"""Class probabilities of several classes at once, and the derivatives of their loss."""

from __future__ import annotations

import numpy as np

from zeronorm._jit import dividing_kernel, reduction
from zeronorm._types import FloatArray, IntArray

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
