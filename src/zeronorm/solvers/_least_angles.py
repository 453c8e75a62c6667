r"""Least angle regression: the features in the order in which they reach the largest correlation, none of which leaves.

With an orthonormal basis of the active columns, a feature j with the sign :math:`s_j` that enters changes the direction
u of the fit, for which :math:`f_k^\top u = s_k` on the active features, by a multiple of one vector (Efron et al. 2004,
section 2, in a recursive form):

.. math:: r = f_j - Q Q^\top f_j, \qquad Q \leftarrow [Q,\ r / \|r\|], \qquad
    u \leftarrow u + \frac{s_j - f_j^\top u}{\|r\|} \frac{r}{\|r\|}.

So each feature takes one pass over the data, no system of equations is solved, and no weights are computed.
"""

from __future__ import annotations

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design._base import SMALL_COPY_BYTES
from zeronorm.solvers._lasso import (
    BARRED,
    DEPENDENT,
    PATH_END,
    PIECES_UNTIL_FRESH,
    TIED,
    LassoFactor,
    follow_lasso_path,
    next_entry,
)


def least_angle_supports(factor: LassoFactor, q: FloatArray, most_steps: int) -> list[IntArray]:
    """The active features at each breakpoint, from none at the largest penalty to the last ones at zero."""
    n_rows, n_columns = factor.shape
    if 8 * n_rows * min(n_rows, n_columns) > SMALL_COPY_BYTES:  # no room for the basis
        steps = follow_lasso_path(factor, q, removes=False, most_steps=most_steps)
        return [step.columns for step in steps]
    supports = [np.empty(0, dtype=np.intp)]
    if not q.any():
        return supports
    fit = _LeastAngles(factor, q)
    while fit.penalty > 0.0 and len(supports) <= most_steps:
        before, active = fit.penalty, np.sort(fit.active)
        fit.go_on()
        if fit.penalty < before:
            supports.append(active)
    return supports


class _LeastAngles:
    """The current fit: the penalty, its direction as a function of the penalty, and the gradients of all features."""

    def __init__(self, factor: LassoFactor, q: FloatArray) -> None:
        n_rows, n_columns = factor.shape
        self.factor, self.q, self.gradient = factor, q, q
        self.active: list[int] = []
        self.state = np.zeros(n_columns, dtype=np.int8)
        self._basis = np.empty((min(n_rows, n_columns), n_rows))
        self._image, self._direction, self._slope = np.zeros(n_rows), np.zeros(n_rows), np.zeros(n_columns)
        first = int(np.argmax(np.abs(q)))
        self.penalty = float(np.abs(q[first]))
        self._end = PATH_END * self.penalty
        self.state[first] = BARRED
        self._enter(first, float(np.sign(q[first])))

    def go_on(self) -> None:
        """Lower the penalty until the next feature enters, or to zero."""
        direction, slope = self._direction, self._slope
        constant = self.gradient - self.penalty * slope
        lower = self._enter_next(constant, slope)
        if lower < self.penalty * (1.0 - TIED):
            self._image = self._image + (self.penalty - lower) * direction
            self.penalty = lower
        self.gradient = constant + self.penalty * slope
        if len(self.active) % PIECES_UNTIL_FRESH == 0:
            products = self.factor.transpose_dot(np.column_stack([self._image, self._direction]))
            self.gradient, self._slope = self.q - products[:, 0], np.ascontiguousarray(products[:, 1])

    def _enter_next(self, constant: FloatArray, slope: FloatArray) -> float:
        while True:
            at, feature, sign = next_entry(constant, slope, self.penalty, self.state)
            if feature < 0 or at <= self._end:
                return 0.0
            self.state[feature] = BARRED
            if self._enter(feature, sign):
                return float(at)

    def _enter(self, feature: int, sign: float) -> bool:
        """Add a feature; returns False where it depends linearly on the others."""
        m = len(self.active)
        column = self.factor.block(slice(feature, feature + 1))[:, 0]
        basis, rest = self._basis[:m], column
        for _ in range(2):  # the second time removes what rounding left
            rest = rest - (basis @ rest) @ basis
        squared = float(rest @ rest)
        if m == len(self._basis) or squared <= DEPENDENT * float(column @ column):
            return False
        length = np.sqrt(squared)
        added = self._basis[m] = rest / length
        gain = (sign - float(column @ self._direction)) / length
        self._direction = self._direction + gain * added
        self._slope = self._slope + gain * self.factor.transpose_dot(added)
        self.active.append(feature)
        return True
