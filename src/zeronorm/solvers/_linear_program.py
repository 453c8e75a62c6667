"""Linear programs on HiGHS that can be changed and solved again from the last basis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from zeronorm._types import FloatArray
from zeronorm.execution import stoppable
from zeronorm.solvers._status import Ended, Status

_LARGEST_INDEX = 2**31 - 1
_DUAL_SIMPLEX = 1
_PRIMAL_SIMPLEX = 4
LARGE_PROGRAM = 100_000  # coefficients from which a run may last longer than a second
_STATUS = {
    highspy.HighsModelStatus.kOptimal: Status.CONVERGED,
    highspy.HighsModelStatus.kModelEmpty: Status.CONVERGED,
    highspy.HighsModelStatus.kInfeasible: Status.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    highspy.HighsModelStatus.kIterationLimit: Status.ITERATION_LIMIT,
}


@dataclass(frozen=True, eq=False)
class LinearProgramSolution(Ended):
    r"""The point at which the simplex method ended.

    At an optimum ``reduced_costs`` equals cost - matrix' row_duals; it is not negative for variables at
    their lower bound and not positive for those at their upper bound.
    """

    x: FloatArray
    row_duals: FloatArray
    reduced_costs: FloatArray
    objective: float
    n_iter: int
    status: Status


class LinearProgram:
    r"""Minimise :math:`c^\top x` subject to row and column bounds.

    .. math:: \mathrm{row\_lower} \le A x \le \mathrm{row\_upper}, \qquad
        \mathrm{col\_lower} \le x \le \mathrm{col\_upper}.

    Bounds are numbers or arrays and may be infinite. The model stays in the solver: after
    :meth:`set_costs`, :meth:`add_columns` or a change of bounds the next :meth:`solve` starts from the
    last basis. ``presolve=False`` skips the search for simplifications, which takes longer than it saves when
    the matrix is dense and has few rows.
    """

    def __init__(
        self,
        cost: ArrayLike,
        matrix: Any,
        row_lower: ArrayLike,
        row_upper: ArrayLike,
        col_lower: ArrayLike = 0.0,
        col_upper: ArrayLike = np.inf,
        *,
        presolve: bool = True,
    ) -> None:
        columns = sp.csc_array(matrix, dtype=np.float64)
        self._model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._model.setOptionValue("output_flag", False)
        self._model.setOptionValue("threads", 1)
        self._model.setOptionValue("parallel", "off")
        self._model.setOptionValue("presolve", "choose" if presolve else "off")
        n_rows = columns.shape[0]
        empty = np.empty(0, np.int32)
        lower, upper = _broadcast(row_lower, n_rows), _broadcast(row_upper, n_rows)
        self._model.addRows(n_rows, lower, upper, 0, np.zeros(n_rows, np.int32), empty, np.empty(0))
        self._add_columns(cost, columns, col_lower, col_upper)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self._model.getNumRow(), self._model.getNumCol()

    def set_costs(self, cost: ArrayLike, columns: NDArray[np.integer[Any]] | None = None) -> None:
        """Change the costs of all columns, or of those given; the last solution stays feasible."""
        index = np.arange(self.shape[1]) if columns is None else np.asarray(columns)
        self._model.changeColsCost(index.size, index.astype(np.int32), _broadcast(cost, index.size))
        self._keep_feasible_basis()

    def add_columns(
        self, cost: ArrayLike, matrix: Any, col_lower: ArrayLike = 0.0, col_upper: ArrayLike = np.inf
    ) -> None:
        """Append variables; ``columns`` holds their coefficients in all rows."""
        self._add_columns(cost, sp.csc_array(matrix, dtype=np.float64), col_lower, col_upper)
        self._keep_feasible_basis()

    def set_column_bounds(self, col_lower: ArrayLike, col_upper: ArrayLike) -> None:
        """Change the bounds of all variables; the last solution stays dual feasible."""
        n_columns = self.shape[1]
        index = np.arange(n_columns, dtype=np.int32)
        lower, upper = _broadcast(col_lower, n_columns), _broadcast(col_upper, n_columns)
        self._model.changeColsBounds(n_columns, index, lower, upper)
        self._keep_optimal_basis()

    def set_row_bounds(self, row_lower: ArrayLike, row_upper: ArrayLike) -> None:
        """Change the bounds of all rows; the last solution stays dual feasible."""
        n_rows = self.shape[0]
        lower, upper = _broadcast(row_lower, n_rows), _broadcast(row_upper, n_rows)
        if hasattr(self._model, "changeRowsBounds"):
            self._model.changeRowsBounds(n_rows, np.arange(n_rows, dtype=np.int32), lower, upper)
        else:  # HiGHS before 1.13
            for row, (low, high) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
                self._model.changeRowBounds(row, low, high)
        self._keep_optimal_basis()

    def solve(self, *, interior: bool = False) -> LinearProgramSolution:
        """Solve, from the last basis if there is one.

        ``interior`` starts with an interior-point method, which is faster where thousands of variables leave their
        bounds, and ends at a vertex. The simplex method finishes what it leaves open.
        """
        if interior:
            self._model.setOptionValue("solver", "ipm")
            self._run()
            self._model.setOptionValue("solver", "simplex")
        if not interior or _STATUS.get(self._model.getModelStatus()) is not Status.CONVERGED:
            self._run()
        solution, info = self._model.getSolution(), self._model.getInfo()
        n_rows, n_columns = self.shape
        return LinearProgramSolution(
            x=_array(solution.col_value, n_columns),
            row_duals=_array(solution.row_dual, n_rows),
            reduced_costs=_array(solution.col_dual, n_columns),
            objective=float(info.objective_function_value),
            n_iter=sum(max(0, int(count)) for count in self._iteration_counts(info)),
            status=_STATUS.get(self._model.getModelStatus(), Status.FAILED),
        )

    def _run(self) -> None:
        if self._model.getNumNz() > LARGE_PROGRAM:
            stoppable(self._model.run)
        else:
            self._model.run()

    @staticmethod
    def _iteration_counts(info: Any) -> tuple[Any, Any, Any]:
        return info.simplex_iteration_count, info.ipm_iteration_count, info.crossover_iteration_count

    def _add_columns(self, cost: ArrayLike, columns: Any, lower: ArrayLike, upper: ArrayLike) -> None:
        n_rows, n_columns = columns.shape
        if n_rows != self.shape[0]:
            raise ValueError(
                f"New columns must have {self.shape[0]} rows, as the program has. Got {n_rows} instead."
            )
        if columns.nnz > _LARGEST_INDEX:
            raise ValueError(
                f"A linear program may have {_LARGEST_INDEX} nonzero coefficients. Got {columns.nnz} instead; "
                "add fewer columns at a time, or select features with a filter first."
            )
        self._model.addCols(
            n_columns,
            _broadcast(cost, n_columns),
            _broadcast(lower, n_columns),
            _broadcast(upper, n_columns),
            columns.nnz,
            columns.indptr[:-1].astype(np.int32),
            columns.indices.astype(np.int32),
            columns.data,
        )

    def _keep_feasible_basis(self) -> None:
        """The basis stays primal feasible under such changes, so the primal simplex method goes on from it."""
        self._model.setOptionValue("simplex_strategy", _PRIMAL_SIMPLEX)

    def _keep_optimal_basis(self) -> None:
        """The basis stays dual feasible under such changes, so the dual simplex method goes on from it."""
        self._model.setOptionValue("simplex_strategy", _DUAL_SIMPLEX)


def _broadcast(value: ArrayLike, size: int) -> FloatArray:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(value, dtype=np.float64), (size,)))


def _array(values: Any, size: int) -> FloatArray:
    """A vector of the solver as an array; zeros where an unsuccessful run left none."""
    return np.array(values, dtype=np.float64) if len(values) == size else np.zeros(size)
