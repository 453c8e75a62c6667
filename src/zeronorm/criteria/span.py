"""The span estimate of the leave-one-out error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.criteria.base import Criterion, CriterionValue, with_ridge
from zeronorm.criteria.margin import Margin

SUPPORT_THRESHOLD = 1e-9  # relative to the largest α


@dataclass(frozen=True)
class Span(Criterion):
    r"""Sum of :math:`\alpha_k S_k^2` over the support vectors of a machine with squared slacks,

    .. math:: S_k^2 = \frac{1}{(H^{-1})_{kk}}, \qquad
        H = \begin{pmatrix} K_{SV} + I/C & \mathbf 1 \\ \mathbf 1^\top & 0 \end{pmatrix}.

    Where removing sample k leaves the other support vectors unchanged,
    :math:`\alpha_k S_k^2 = 1 - y_k f^{(-k)}(x_k)`. The machine itself solves :math:`H (v, b) = (y, 0)`, so the
    gradient follows the change of α as well; it is exact as long as the set of support vectors stays the same.
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
        # First how α changes with K, then how the spans do.
        through_alpha = -np.outer(H_inv @ (y[support] * span_sq), v)
        through_span = (H_inv * (v * y[support] * span_sq**2)) @ H_inv
        gradient = np.zeros_like(K)
        gradient[np.ix_(support, support)] = 0.5 * (through_alpha + through_alpha.T) + through_span
        return CriterionValue(value, gradient, dual, dual.status.as_good_as_it_gets)


def support_of(alpha: FloatArray) -> NDArray[np.intp]:
    """Indices of the support vectors."""
    return np.flatnonzero(alpha > SUPPORT_THRESHOLD * alpha.max(initial=0.0))


def bordered_inverse(K: FloatArray) -> FloatArray:
    """Inverse of K bordered by ones; the pseudo-inverse where support vectors are dependent."""
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
