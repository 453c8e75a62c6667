"""Estimates of the error: the span bound on the leave-one-out error, and the loss on validation samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import expit

from zeronorm._types import FloatArray, IntArray
from zeronorm.criteria._base import Criterion, CriterionValue, with_ridge
from zeronorm.criteria._margin import Margin

SUPPORT_THRESHOLD = 1e-9  # relative to the largest α


@dataclass(frozen=True)
class Span(Criterion):
    r"""Sum of :math:`\alpha_k S_k^2` over the support vectors of an SVM with squared slacks,

    .. math:: S_k^2 = \frac{1}{(H^{-1})_{kk}}, \qquad
        H = \begin{pmatrix} K_{SV} + I/C & \mathbf 1 \\ \mathbf 1^\top & 0 \end{pmatrix}.

    Where removing sample k leaves the other support vectors unchanged,
    :math:`\alpha_k S_k^2 = 1 - y_k f^{(-k)}(x_k)`. The SVM itself solves :math:`H (v, b) = (y, 0)`, so the gradient
    includes the change of α with K; it is exact as long as the set of support vectors stays the same.
    """

    C: float = np.inf
    tol: float = 1e-8

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        dual = Margin(self.C, self.tol).solve(K, y, warm)
        support = support_of(dual.alpha)
        inverse = bordered_inverse(with_ridge(K, self.C)[np.ix_(support, support)])
        H_inv = inverse[:-1, :-1]
        span_sq = 1.0 / np.diagonal(H_inv)
        v = dual.dual_coef[support]
        value = float(np.sum(v * y[support] * span_sq))
        # First the change of α with K, then that of the spans.
        through_alpha = -np.outer(H_inv @ (y[support] * span_sq), v)
        through_span = (H_inv * (v * y[support] * span_sq**2)) @ H_inv
        gradient = np.zeros_like(K)
        gradient[np.ix_(support, support)] = 0.5 * (through_alpha + through_alpha.T) + through_span
        return CriterionValue(value, gradient, dual, dual.status.as_good_as_it_gets)


def support_of(alpha: FloatArray) -> NDArray[np.intp]:
    """Indices of the support vectors."""
    return np.flatnonzero(alpha > SUPPORT_THRESHOLD * alpha.max(initial=0.0))


def bordered_inverse(K: FloatArray) -> FloatArray:
    """Inverse of K bordered by ones; the pseudo-inverse where support vectors are linearly dependent."""
    n = K.shape[0]
    H = np.ones((n + 1, n + 1))
    H[:n, :n] = K
    H[n, n] = 0.0
    try:
        inverse = np.linalg.inv(H)
        if np.all(np.isfinite(inverse)) and np.all(np.diagonal(inverse)[:n] > 0):
            return inverse
    except np.linalg.LinAlgError:
        pass
    inverse = scipy.linalg.pinvh(H)
    smallest = np.finfo(float).eps * max(float(np.abs(inverse).max()), 1.0)
    index = np.arange(n)
    inverse[index, index] = np.maximum(inverse[index, index], smallest)
    return np.asarray(inverse)


# -- A smooth estimate of the error of a support vector machine on validation samples --


@dataclass(frozen=True, eq=False)
class ValidationLoss(Criterion):
    r"""Share of misclassified validation samples, with a sigmoid instead of the step (Chapelle et al. 2002):

    .. math:: E = \frac1m \sum_{i \in V} \frac{1}{1 + \exp(a\, y_i f(x_i))},
        \qquad f(x_i) = \sum_{j \in T} v_j K_{ij} + b.

    The SVM fitted to the training samples T has squared slacks and solves :math:`H (v, b) = (y, 0)` on its support
    vectors, as in :class:`~zeronorm.criteria._span.Span`. The gradient includes the change of v and b, and is exact
    as long as the set of support vectors stays the same.

    Parameters
    ----------
    train, valid : indices of the samples; both classes must be among the training samples.
    steepness : a, how closely the sigmoid follows the step.
    """

    train: IntArray
    valid: IntArray
    C: float = np.inf
    steepness: float = 5.0
    tol: float = 1e-8

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        T, V = self.train, self.valid
        dual = Margin(self.C, self.tol).solve(np.ascontiguousarray(K[np.ix_(T, T)]), y[T], warm)
        support = support_of(dual.alpha)
        S, v = T[support], dual.dual_coef[support]
        outputs = K[np.ix_(V, S)] @ v + dual.bias
        error = expit(-self.steepness * y[V] * outputs)
        per_output = -self.steepness * y[V] * error * (1.0 - error) / V.size

        # The outputs depend on the kernel between the two sets and, through v and b, on the training kernel.
        inverse = bordered_inverse(with_ridge(K[np.ix_(S, S)], self.C))
        through_model = inverse @ np.append(K[np.ix_(S, V)] @ per_output, per_output.sum())
        gradient = np.zeros_like(K)
        gradient[np.ix_(V, S)] += np.outer(per_output, v)
        gradient[np.ix_(S, S)] -= np.outer(through_model[:-1], v)
        gradient = 0.5 * (gradient + gradient.T)
        return CriterionValue(float(error.mean()), gradient, dual, dual.status.as_good_as_it_gets)


@dataclass(frozen=True, eq=False)
class CrossValidation(Criterion):
    """The mean validation error over several splits into training and validation samples."""

    folds: tuple[ValidationLoss, ...]

    @classmethod
    def from_splits(
        cls, splits: Iterable[tuple[IntArray, IntArray]], C: float, steepness: float, tol: float
    ) -> CrossValidation:
        """The criterion with one fold for each pair of training and validation indices."""
        return cls(tuple(ValidationLoss(train, valid, C, steepness, tol) for train, valid in splits))

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        starts = [None] * len(self.folds) if warm is None else warm
        values = [fold.evaluate(K, y, start) for fold, start in zip(self.folds, starts, strict=True)]
        return CriterionValue(
            float(np.mean([value.value for value in values])),
            np.mean([value.gradient for value in values], axis=0),
            [value.warm for value in values],
            all(value.converged for value in values),
        )
