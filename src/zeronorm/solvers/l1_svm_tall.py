r"""Linear machines with a weighted ℓ1 norm for more samples than features: the dual linear program.

.. math:: \max_v\ \sum_i y_i v_i - \epsilon |v_i| \quad\text{subject to}\quad
    |x_k \cdot v| \le c_k, \qquad \sum_i v_i = 0,

with :math:`0 \le y_i v_i \le C_i` and :math:`\epsilon = 0` for classes, :math:`|v_i| \le C_i` for a regression.
It has one row for each feature and one for the bias, so a basis is small; the weights are the multipliers of
the rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from zeronorm.design.base import Design
from zeronorm.solvers.arrays import FloatArray
from zeronorm.solvers.l1_svm import L1Svm, L1SvmProgram
from zeronorm.solvers.linear_program import LinearProgram
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm_dual import per_sample

LARGEST_MATRIX = 50_000_000  # entries; beyond, the program with column generation is the lighter one


class L1SvmDualProgram:
    """The same machine as :class:`~zeronorm.solvers.l1_svm.L1SvmProgram`, through its dual.

    After a change of the costs or of the price the program goes on from the last basis.
    """

    def __init__(
        self, design: Design, y: ArrayLike, *, C: float | ArrayLike, epsilon: float | None = None
    ) -> None:
        self.design = design
        self.y = np.asarray(y, dtype=np.float64)
        self.price = per_sample(C, self.y.size)
        self.epsilon = epsilon
        self.n_iter = 0
        samples = np.vstack([design.block(slice(None)).T, np.ones(self.y.size)])
        if epsilon is None:
            self._sides = self.y[None, :]
            costs = -np.ones(self.y.size)
        else:
            self._sides = np.vstack([np.ones(self.y.size), -np.ones(self.y.size)])
            costs = np.concatenate([epsilon - self.y, epsilon + self.y])
        matrix = np.hstack([samples * side for side in self._sides])
        zeros = np.zeros(len(matrix))
        self._program = LinearProgram(costs, matrix, zeros, zeros, 0.0, self._upper(), presolve=False)

    def set_price(self, C: ArrayLike) -> None:
        """Change the price of the loss."""
        self.price = per_sample(C, self.y.size)
        self._program.set_column_bounds(0.0, self._upper())

    def solve(self, cost: ArrayLike = 1.0) -> L1Svm:
        """The machine for these costs of the features."""
        costs = np.broadcast_to(np.asarray(cost, dtype=np.float64), (self.design.n_features,))
        bounds = np.append(costs, 0.0)
        self._program.set_row_bounds(-bounds, bounds)
        found = self._program.solve()
        self.n_iter += found.n_iter
        # An unbounded dual is a primal without a solution: the hard margin does not exist.
        status = Status.INFEASIBLE if found.status is Status.UNBOUNDED else found.status
        weights, bias = -found.row_duals[:-1], -float(found.row_duals[-1])
        weights[np.abs(weights) <= np.finfo(float).eps * np.abs(weights).max(initial=0.0)] = 0.0
        dual = (self._sides * found.x.reshape(self._sides.shape)).sum(axis=0)
        return L1Svm(
            weights=weights,
            bias=bias,
            slack=self._slacks(weights, bias),
            dual_coef=dual,
            pull=self.design.transpose_dot(dual),
            objective=-found.objective,
            n_iter=self.n_iter,
            status=status,
        )

    def _upper(self) -> FloatArray:
        return np.tile(self.price, len(self._sides))

    def _slacks(self, weights: FloatArray, bias: float) -> FloatArray:
        f = self.design.dot(weights) + bias
        if self.epsilon is None:
            return np.asarray(np.maximum(0.0, 1.0 - self.y * f))
        return np.asarray(np.maximum(0.0, np.abs(self.y - f) - self.epsilon))


def l1_svm_program(
    design: Design, y: ArrayLike, *, C: float | ArrayLike, epsilon: float | None = None
) -> L1SvmProgram | L1SvmDualProgram:
    """The program that suits the shape of the data."""
    n, p = design.shape
    kind = L1SvmDualProgram if n >= p and n * p <= LARGEST_MATRIX else L1SvmProgram
    return kind(design, y, C=C, epsilon=epsilon)
