r"""Linear SVMs with a weighted ℓ1 norm, for more samples than features: the dual linear program.

.. math:: \max_v\ \sum_i y_i v_i - \epsilon |v_i| \quad\text{subject to}\quad
    |x_k \cdot v| \le c_k, \qquad \sum_i v_i = 0,

with :math:`0 \le y_i v_i \le C_i` and :math:`\epsilon = 0` for classes, :math:`|v_i| \le C_i` for a regression.
It has one row for each feature and one for the bias, so that a basis is small. The weights of the SVM are the
multipliers of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from zeronorm._types import FloatArray, IntArray
from zeronorm.design._base import Design
from zeronorm.solvers._lasso import LARGEST_DENSE_COPY
from zeronorm.solvers._linear_program import LinearProgram
from zeronorm.solvers._status import Status
from zeronorm.solvers.l1_svm._interior_point import solve_l1_interior
from zeronorm.solvers.l1_svm._program import (
    LARGEST_COST,
    LARGEST_NORM,
    SLACK_TOL,
    L1Svm,
    L1SvmProgram,
    separating_model,
)
from zeronorm.solvers.l1_svm._tall import L1SvmTallProgram, Sides
from zeronorm.solvers.svm._dual import per_sample

# -- The samples of an ℓ1 SVM as rows of signed data, one for each side of its loss --


class SignedRows(Sides):
    """Rows of signed data with the sign as the last column: dense, or sparse for large sparse data."""

    def __init__(self, design: Design, y: ArrayLike, epsilon: float | None) -> None:
        super().__init__(y, epsilon)
        self.design = design
        n, p = design.shape
        self.shift, self.rows = np.zeros(p), np.empty((0, 0))
        self.sparse_rows = self._sparse_rows()
        if self.sparse_rows is not None:
            return
        rows = np.empty((len(self.sides), n, p + 1))
        rows[..., :-1] = design.block(slice(None))
        rows[..., -1] = 1.0
        rows *= self.sides[..., None]
        self.rows = rows.reshape(-1, p + 1)

    def _sparse_rows(self) -> Any:
        """The rows of large sparse data without centring, which changes only the bias; None for other data."""
        n, p = self.design.shape
        stored = self.design.stored_columns(np.arange(p)) if n * p > LARGEST_DENSE_COPY else None
        if stored is None:
            return None
        columns, self.shift = stored
        rows = sparse.hstack([columns, np.ones((n, 1))], format="csr")
        return sparse.vstack([sparse.csr_array(rows * side[:, None]) for side in self.sides], format="csr")

    def model(
        self, weights: FloatArray, alpha: FloatArray, objective: float, n_iter: int, status: Status
    ) -> L1Svm:
        """The SVM with these weights (the bias last) and multipliers of the rows."""
        bias = float(weights[-1] + weights[:-1] @ self.shift)
        return L1Svm(
            weights=weights[:-1],
            bias=bias,
            slack=self.slacks(self.design.dot(weights[:-1]) + bias),
            dual_coef=self.dual_coef(alpha),
            design=self.design,
            objective=objective,
            n_iter=n_iter,
            status=status,
        )


LARGEST_MATRIX = 50_000_000  # entries; beyond, the program with column generation needs less memory
WIDEST = 60  # features for each sample; beyond, the program with column generation is faster
MANY_SAMPLES = 5000  # of sparse data: few of them differ in the features with a weight
MANY_ENTRIES = 1 << 25  # of sparse data, zeros included; with fewer, all features at once are faster
FEW_DATA = 50_000  # entries; with fewer, the simplex method is fast from the last basis


class L1SvmDualProgram:
    """The SVM of :class:`~zeronorm.solvers.l1_svm._program.L1SvmProgram`, solved through its dual.

    After a change of the penalty or of C the simplex method starts from the last basis.
    """

    def __init__(
        self,
        design: Design,
        y: ArrayLike,
        *,
        C: float | ArrayLike,
        epsilon: float | None = None,
        signed: SignedRows | None = None,
    ) -> None:
        self.signed = SignedRows(design, y, epsilon) if signed is None else signed
        self.y = self.signed.y
        self.cost = per_sample(C, self.y.size)
        self.n_iter = 0
        rows = self.signed.rows if self.signed.sparse_rows is None else self.signed.sparse_rows
        zeros = np.zeros(rows.shape[1])
        self._program = LinearProgram(-self.signed.targets, rows.T, zeros, zeros, 0.0, np.inf, presolve=False)

    def set_cost(self, C: ArrayLike) -> None:
        """Change the cost C of the loss."""
        self.cost = per_sample(C, self.y.size)

    def solve(self, penalty: ArrayLike = 1.0, *, interior: bool = False) -> L1Svm:
        """Solve with this penalty of each feature, from the last basis if there is one.

        ``interior``: start with an interior-point method, which pays with thousands of nonzero weights.
        """
        bounds = np.append(np.broadcast_to(penalty, self.signed.design.n_features), 0.0)
        self._program.set_column_bounds(0.0, self.signed.per_row(self.cost))
        self._program.set_row_bounds(-bounds, bounds)
        found = self._program.solve(interior=interior)
        self.n_iter += found.n_iter
        # The dual is unbounded exactly where the primal has no solution: there is no hard margin.
        status = Status.INFEASIBLE if found.status is Status.UNBOUNDED else found.status
        weights = -found.row_duals
        rounding = np.finfo(float).eps * np.abs(weights[:-1]).max(initial=0.0)
        weights[:-1][np.abs(weights[:-1]) <= rounding] = 0.0
        return self.signed.model(weights, found.x, -found.objective, self.n_iter, status)


class L1SvmInteriorProgram:
    """The same SVM solved by an interior-point method, for few solutions or very different ones.

    The simplex method solves what the interior-point method cannot, such as a hard margin.
    """

    def __init__(
        self, design: Design, y: ArrayLike, *, C: float | ArrayLike, epsilon: float | None = None
    ) -> None:
        self.signed = SignedRows(design, y, epsilon)
        self.y = self.signed.y
        self.cost = per_sample(C, self.y.size)
        self.n_iter = 0
        self._simplex: L1SvmProgram | L1SvmDualProgram | None = None

    def set_cost(self, C: ArrayLike) -> None:
        """Change the cost C of the loss."""
        self.cost = per_sample(C, self.y.size)

    def solve(self, penalty: ArrayLike = 1.0) -> L1Svm:
        """Solve with this penalty of each feature."""
        found = self.solve_interior(penalty)
        return found if found is not None else self._solve_simplex(penalty)

    def solve_interior(self, penalty: ArrayLike = 1.0) -> L1Svm | None:
        """The solution of the interior-point method, or None where it finds or certifies none."""
        penalties = np.array(np.broadcast_to(penalty, self.signed.design.n_features), dtype=np.float64)
        cost = self.signed.per_row(self.cost)
        if not (np.all(np.isfinite(cost)) and np.all(penalties > 0.0)):
            return None
        rows, targets, in_play = self.signed.rows, self.signed.targets, cost > 0.0
        if in_play.all():
            found = solve_l1_interior(rows, targets, cost, penalties)
        else:
            found = solve_l1_interior(rows[in_play], targets[in_play], cost[in_play], penalties)
        if found is None:
            return None
        self.n_iter += found.n_iter
        alpha = np.zeros(cost.size)
        alpha[in_play] = found.alpha
        return self.signed.model(found.weights, alpha, found.objective, self.n_iter, Status.CONVERGED)

    def _solve_simplex(self, penalty: ArrayLike) -> L1Svm:
        signed = self.signed
        n, p = signed.design.shape
        if self._simplex is None and n >= p:
            self._simplex = L1SvmDualProgram(signed.design, self.y, C=self.cost, signed=signed)
        elif self._simplex is None:
            self._simplex = L1SvmProgram(signed.design, self.y, C=self.cost, epsilon=signed.epsilon)
        before = self._simplex.n_iter
        self._simplex.set_cost(self.cost)
        found = self._simplex.solve(penalty)
        self.n_iter += self._simplex.n_iter - before
        return found


WEIGHT_ROUNDING = 1e-10  # of the largest weight
FIRST_ROWS = 1000  # samples closest to the boundary in the first program of a hard margin,
ROWS_OF_A_PROGRAM = 2  # or this many for each feature, if that is more
HIGH_COST = 1e4  # of a slack, relative to the largest penalty: exact for solutions of smaller norm
NEXT_COST = 1e4  # factor by which this cost grows where slacks remain
NEARLY_WITHIN = 2.0  # samples with smaller margins are added along with those within the margin


class L1SvmHardProgram:
    """The same SVM with a hard margin, for many samples of two classes of which few are on the margin.

    Where the classes overlap, a subset of the samples usually proves it at once. The dual program starts with the
    samples closest to the boundary of a classifier that separates all or nearly all samples. Samples that its solution
    leaves within the margin, or close to it, are added. The multipliers are bounded by a high cost of slacks, so that
    the program always has a solution. Without slacks it is the hard-margin solution. With slacks the cost grows, until
    it exceeds any norm that could be told from an infinite one in double precision.
    """

    def __init__(self, design: Design, y: ArrayLike) -> None:
        self.design = design
        self.y = np.asarray(y, dtype=np.float64)
        self.n_iter = 0
        self._model = separating_model(design, self.y)

    @property
    def overlap_is_proved(self) -> bool:
        """Whether the classes are known to overlap before the program is solved."""
        return self._model is None

    def set_cost(self, C: ArrayLike) -> None:
        """Does nothing: a hard margin has no C."""

    def solve(self, penalty: ArrayLike = 1.0) -> L1Svm:
        """Solve with this penalty of each feature."""
        weights, bias = np.zeros(self.design.n_features), 0.0
        if self._model is None:
            return self._lifted(weights, bias, np.zeros(self.y.size), Status.INFEASIBLE)
        unit = max(float(np.max(penalty)), np.finfo(float).tiny)
        cost = HIGH_COST * unit
        rows = self._nearest(*self._model, max(FIRST_ROWS, ROWS_OF_A_PROGRAM * self.design.n_features))
        while True:
            part = self.design.take_rows(rows)
            found = L1SvmDualProgram(part, self.y[rows], C=cost).solve(penalty, interior=True)
            self.n_iter += found.n_iter
            status = found.status
            if found.converged and float(found.slack.max()) > SLACK_TOL:
                if found.objective <= LARGEST_NORM * unit and cost <= LARGEST_COST * unit:
                    cost *= NEXT_COST
                    continue
                status = Status.INFEASIBLE
            joined = np.union1d(rows, self._nearest(found.weights, found.bias, rows.size, NEARLY_WITHIN))
            if status is not Status.CONVERGED or self._all_beyond(found, np.setdiff1d(joined, rows)):
                return self._rounded(found, rows, status)
            rows = joined

    def _nearest(self, weights: FloatArray, bias: float, size: int, below: float = np.inf) -> IntArray:
        """The ``size`` samples with the smallest margins below a bound."""
        margin = self.y * (self.design.dot(weights) + bias)
        order = np.argsort(margin, kind="stable")[:size]
        return np.sort(order[margin[order] < below])

    def _all_beyond(self, found: L1Svm, rows: IntArray) -> bool:
        """Whether these samples are beyond the margin as well."""
        decision = self.design.take_rows(rows).dot(found.weights) + found.bias
        return bool(np.all(self.y[rows] * decision >= 1.0 - SLACK_TOL))

    def _rounded(self, found: L1Svm, rows: IntArray, status: Status) -> L1Svm:
        """The solution for a subset of the samples as a solution for all samples."""
        dual_coef, size = np.zeros(self.y.size), np.abs(found.weights)
        dual_coef[rows] = found.dual_coef
        weights = np.where(size > WEIGHT_ROUNDING * size.max(initial=0.0), found.weights, 0.0)
        return self._lifted(weights, found.bias, dual_coef, status, found.objective)

    def _lifted(
        self,
        weights: FloatArray,
        bias: float,
        dual_coef: FloatArray,
        status: Status,
        objective: float = np.inf,
    ) -> L1Svm:
        slack = np.maximum(0.0, 1.0 - self.y * (self.design.dot(weights) + bias))
        return L1Svm(weights, bias, slack, dual_coef, self.design, objective, self.n_iter, status)


AnyL1SvmProgram = L1SvmProgram | L1SvmDualProgram | L1SvmInteriorProgram | L1SvmTallProgram | L1SvmHardProgram


def l1_svm_program(
    design: Design,
    y: ArrayLike,
    *,
    C: float | ArrayLike,
    epsilon: float | None = None,
    n_steps: int | None = None,
) -> AnyL1SvmProgram:
    """The program that suits the shape of the data and the number of values of C on a path.

    Without that number, the solutions are assumed to be close to each other.
    """
    n, p = design.shape
    largest = LARGEST_DENSE_COPY if design.is_sparse else LARGEST_MATRIX
    is_large_sparse = n * p > largest and design.stored_columns(np.empty(0, dtype=np.intp)) is not None
    if is_large_sparse and n >= min(p, MANY_SAMPLES) and n * p >= MANY_ENTRIES and np.all(np.isfinite(C)):
        return L1SvmTallProgram(design, y, C=C, epsilon=epsilon)
    if is_large_sparse and n >= p and n * p >= MANY_ENTRIES and epsilon is None and np.all(np.isinf(C)):
        return L1SvmHardProgram(design, y)
    if is_large_sparse and n >= p:
        return L1SvmDualProgram(design, y, C=C, epsilon=epsilon)
    if n >= p and n * p <= largest:
        if n_steps is not None and (n_steps == 1 or n * p > FEW_DATA):
            return L1SvmInteriorProgram(design, y, C=C, epsilon=epsilon)
        return L1SvmDualProgram(design, y, C=C, epsilon=epsilon)
    if n_steps == 1 and p <= WIDEST * n and n * p <= largest:
        return L1SvmInteriorProgram(design, y, C=C, epsilon=epsilon)
    return L1SvmProgram(design, y, C=C, epsilon=epsilon)
