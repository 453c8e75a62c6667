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
from zeronorm.solvers.l1_svm_interior import solve_l1_interior
from zeronorm.solvers.linear_program import LinearProgram
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm_dual import per_sample

LARGEST_MATRIX = 50_000_000  # entries; beyond, the program with column generation is the lighter one


class L1SvmDualProgram:
    """The same machine as :class:`~zeronorm.solvers.l1_svm.L1SvmProgram`, through its dual.

    By the simplex method, which after a change of the costs or of the price goes on from the last basis; or,
    with ``interior``, by an interior-point method, for few solutions or very different ones. What that one
    does not find, as the hard margin, is left to the simplex method.
    """

    def __init__(
        self,
        design: Design,
        y: ArrayLike,
        *,
        C: float | ArrayLike,
        epsilon: float | None = None,
        interior: bool = False,
    ) -> None:
        self.design = design
        self.y = np.asarray(y, dtype=np.float64)
        self.price = per_sample(C, self.y.size)
        self.epsilon = epsilon
        self.interior = interior
        self.n_iter = 0
        self._program: LinearProgram | None = None
        if epsilon is None:
            self._sides = self.y[None, :]
            self._targets = np.ones(self.y.size)
        else:
            self._sides = np.vstack([np.ones(self.y.size), -np.ones(self.y.size)])
            self._targets = np.concatenate([self.y - epsilon, -self.y - epsilon])
        self._rows = self._signed_rows()

    def set_price(self, C: ArrayLike) -> None:
        """Change the price of the loss."""
        self.price = per_sample(C, self.y.size)

    def solve(self, cost: ArrayLike = 1.0) -> L1Svm:
        """The machine for these costs of the features."""
        costs = np.broadcast_to(np.asarray(cost, dtype=np.float64), (self.design.n_features,))
        found = self._solve_interior(costs) if self.interior else None
        return found if found is not None else self._solve_program(costs)

    def _signed_rows(self) -> FloatArray:
        """For each side of each sample its data and a one, times the sign of the side."""
        n, p = self.design.shape
        rows = np.empty((len(self._sides), n, p + 1))
        rows[..., :-1] = self.design.block(slice(None))
        rows[..., -1] = 1.0
        rows *= self._sides[..., None]
        return rows.reshape(-1, p + 1)

    def _solve_interior(self, costs: FloatArray) -> L1Svm | None:
        price = self._upper()
        if not (np.all(np.isfinite(price)) and np.all(costs > 0.0)):
            return None
        in_play = price > 0.0
        everyone = bool(in_play.all())
        found = solve_l1_interior(
            self._rows if everyone else self._rows[in_play],
            self._targets if everyone else self._targets[in_play],
            price if everyone else price[in_play],
            costs,
        )
        if found is None:
            return None
        self.n_iter += found.n_iter
        alpha = np.zeros(price.size)
        alpha[in_play] = found.alpha
        return self._machine(found.weights, alpha, found.objective, Status.CONVERGED)

    def _solve_program(self, costs: FloatArray) -> L1Svm:
        """By the simplex method, from the last basis if there is one."""
        if self._program is None:
            zeros = np.zeros(self._rows.shape[1])
            self._program = LinearProgram(
                -self._targets, self._rows.T, zeros, zeros, 0.0, self._upper(), presolve=False
            )
        else:
            self._program.set_column_bounds(0.0, self._upper())
        bounds = np.append(costs, 0.0)
        self._program.set_row_bounds(-bounds, bounds)
        found = self._program.solve()
        self.n_iter += found.n_iter
        # An unbounded dual is a primal without a solution: the hard margin does not exist.
        status = Status.INFEASIBLE if found.status is Status.UNBOUNDED else found.status
        weights = -found.row_duals
        rounding = np.finfo(float).eps * np.abs(weights[:-1]).max(initial=0.0)
        weights[:-1][np.abs(weights[:-1]) <= rounding] = 0.0
        return self._machine(weights, found.x, -found.objective, status)

    def _machine(self, weights: FloatArray, alpha: FloatArray, objective: float, status: Status) -> L1Svm:
        """``weights`` has the bias last."""
        dual = (self._sides * alpha.reshape(self._sides.shape)).sum(axis=0)
        return L1Svm(
            weights=weights[:-1],
            bias=float(weights[-1]),
            slack=self._slacks(weights[:-1], float(weights[-1])),
            dual_coef=dual,
            pull=self.design.transpose_dot(dual),
            objective=objective,
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
    design: Design,
    y: ArrayLike,
    *,
    C: float | ArrayLike,
    epsilon: float | None = None,
    interior: bool = False,
) -> L1SvmProgram | L1SvmDualProgram:
    """The program that suits the shape of the data; ``interior`` for few or very different solutions."""
    n, p = design.shape
    if n >= p and n * p <= LARGEST_MATRIX:
        return L1SvmDualProgram(design, y, C=C, epsilon=epsilon, interior=interior)
    return L1SvmProgram(design, y, C=C, epsilon=epsilon)
