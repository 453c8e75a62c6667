r"""How far each knockoff is from its feature: :math:`s` with :math:`2\Sigma - \operatorname{diag}(s) \succeq 0`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from zeronorm._jit import kernel
from zeronorm._types import FloatArray

Gaps = Callable[[FloatArray], FloatArray]

# Shrinks s slightly, so that the covariance of the knockoffs stays positive definite.
SAFETY = 1e-3
MOST_PASSES = 100  # of coordinate descent over all s_j
MOVED = 1e-3  # largest change of an s_j in the last pass


def equicorrelated_gaps(correlation: FloatArray) -> FloatArray:
    r"""The same :math:`s_j = \min(2 \lambda_{\min}(\Sigma), 1)` for every feature."""
    smallest = float(linalg.eigvalsh(correlation, subset_by_index=[0, 0])[0])
    return np.full(len(correlation), min(1.0, 2.0 * max(smallest, 0.0)))


def minimum_variance_gaps(correlation: FloatArray) -> FloatArray:
    r"""The s that minimises :math:`\operatorname{tr} G^{-1}`, G being the covariance of :math:`[X, \tilde X]`.

    That is :math:`\sum_j 1 / s_j + \operatorname{tr} (2\Sigma - \operatorname{diag}(s))^{-1}` up to a factor (Spector &
    Janson 2022): features can then be told from linear combinations of the others and of all knockoffs.
    """
    s = 0.5 * equicorrelated_gaps(correlation)
    for _ in range(MOST_PASSES):
        # The rank-one updates accumulate rounding errors; a new inverse for each pass does not.
        inverse = linalg.inv(2 * correlation - np.diag(s))
        if descend_trace(inverse, s) < MOVED:
            break
    return s


@kernel
def descend_trace(inverse: FloatArray, s: FloatArray) -> float:
    r"""One pass of coordinate descent on :math:`\sum_j 1/s_j + \operatorname{tr} M`, M being the inverse.

    A step :math:`\delta` along s_j gives :math:`\frac{1}{s_j + \delta} + \frac{c\,\delta}{1 - \delta m}` up to a
    constant, with :math:`m = M_{jj}` and :math:`c = \|M_j\|^2`; the minimum is at
    :math:`\delta = (1 - \sqrt c\, s_j) / (\sqrt c + m)`.
    """
    p = s.size
    moved = 0.0
    row = np.empty(p)
    for j in range(p):
        norm_sq = 0.0
        for k in range(p):
            row[k] = inverse[j, k]
            norm_sq += row[k] * row[k]
        norm = np.sqrt(norm_sq)
        step = (1.0 - norm * s[j]) / (norm + row[j])
        s[j] += step
        moved = max(moved, abs(step))
        factor = step / (1.0 - step * row[j])
        for i in range(p):
            scaled = factor * row[i]
            for k in range(p):
                inverse[i, k] += scaled * row[k]
    return moved


def semidefinite_gaps(correlation: FloatArray, *, tol: float = 1e-2, max_passes: int = 500) -> FloatArray:
    r"""The largest :math:`\sum_j s_j` with :math:`0 \le s_j \le 1` and :math:`2\Sigma - \operatorname{diag}(s)
    \succeq 0`.

    Coordinate ascent on :math:`\sum_j s_j + \mu \log\det(2\Sigma - \operatorname{diag}(s))` for decreasing
    :math:`\mu`. With :math:`m = [(2\Sigma - \operatorname{diag}(s))^{-1}]_{jj}` the best step along s_j is
    :math:`1/m - \mu`, and the inverse follows by a rank-one update.
    """
    p = len(correlation)
    s = 0.5 * equicorrelated_gaps(correlation)
    barrier = 0.1
    inverse = linalg.inv(2 * correlation - np.diag(s))
    for _ in range(max_passes):
        moved = 0.0
        for j in range(p):
            m = inverse[j, j]
            step = min(max(s[j] + 1 / m - barrier, 0.0), 1.0) - s[j]
            if step != 0.0:
                inverse += np.outer(inverse[j] * (step / (1 - step * m)), inverse[j])
                s[j] += step
                moved = max(moved, abs(step))
        if moved < 0.1 * barrier:
            if barrier < tol / p:  # the optimum is then at most about ``tol`` away
                break
            barrier *= 0.5
            inverse = linalg.inv(2 * correlation - np.diag(s))  # the updates accumulate rounding errors
    return s


GAPS: dict[str, Gaps] = {
    "mvr": minimum_variance_gaps,
    "equicorrelated": equicorrelated_gaps,
    "sdp": semidefinite_gaps,
}
