r"""Linear SVMs with a weighted ℓ1 norm, by linear programs with column generation.

.. math:: \min_{w, b}\ \sum_k c_k |w_k| + \sum_i C_i\,\xi_i, \qquad
    \xi_i = \max(0, 1 - y_i(w^\top x_i + b)) \quad\text{or}\quad
    \xi_i = \max(0, |y_i - w^\top x_i - b| - \epsilon).

The program starts with a few features. With v the multipliers of its rows, a feature outside can improve the
solution only if :math:`|x_k^\top v| > c_k`. Those with the largest violation are added until there are none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from zeronorm._types import BoolArray, FloatArray, Int64Array
from zeronorm.design._base import Design
from zeronorm.solvers._geometry import GradientBounds
from zeronorm.solvers._linear_program import LinearProgram, LinearProgramSolution
from zeronorm.solvers._status import Ended, Status
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._dual import per_sample
from zeronorm.solvers.svm._tall import solve_squared_loss

ALL_AT_ONCE = 200  # up to this many features are all in the program from the start
FIRST = 50  # number of features the program starts with otherwise
BATCH = 25  # features added at a time: rounds are cheap, needless columns are not
COST_TOL = 1e-7  # relative violation of |x'v| <= c that is tolerated
SLACK_TOL = 1e-7  # slacks of a hard margin that are rounding
LARGEST_COST = 1e12  # beyond, rounding hides whether a hard margin exists


@dataclass(frozen=True, eq=False)
class L1Svm(Ended):
    """A linear SVM with sparse weights."""

    weights: FloatArray
    bias: float
    slack: FloatArray
    dual_coef: FloatArray
    design: Design
    objective: float
    n_iter: int
    status: Status

    @cached_property
    def gradient(self) -> FloatArray:
        """x'v of every feature, from one pass over the data.

        Its absolute value is at most the penalty of the feature, and equal to it where the feature has a weight.
        """
        return self.design.transpose_dot(self.dual_coef)


class L1SvmProgram:
    """The program for one data set, solved for changing penalties of the features from the last basis.

    Parameters
    ----------
    y : labels -1 and +1, or real targets when ``epsilon`` is given.
    C : cost of the loss, one for all samples or one for each; ``inf`` for a hard margin.
    epsilon : half-width of the interval of errors without loss, for regression.
    """

    def __init__(
        self, design: Design, y: ArrayLike, *, C: float | ArrayLike, epsilon: float | None = None
    ) -> None:
        self.design = design
        self.y = np.asarray(y, dtype=np.float64)
        self.cost = per_sample(C, self.y.size)
        self.sign = self.y if epsilon is None else np.ones(self.y.size)
        self.pool: Int64Array = self._first_columns()
        self._program = self._build(epsilon)
        self._n_fixed = self._program.shape[1]
        self._shift = np.empty(0)  # of the columns in the program
        self._add(self.pool)
        self._bounds = GradientBounds(design)
        self._feasible = False  # known to be, for hard margins
        self.n_iter = 0

    def solve(self, penalty: ArrayLike = 1.0) -> L1Svm:
        """Solve with this penalty of each feature."""
        penalties = np.broadcast_to(np.asarray(penalty, dtype=np.float64), (self.design.n_features,))
        hard = np.isinf(self.cost)
        if hard.any():
            return self._solve_hard(penalties, hard)
        found = self._generate(penalties, self.cost)
        return self._model(found, found.status)

    def set_cost(self, C: ArrayLike) -> None:
        """Change the cost C of the loss; the samples of infinite cost must stay the same."""
        self.cost = per_sample(C, self.y.size)

    def _solve_hard(self, penalties: FloatArray, hard: BoolArray) -> L1Svm:
        """Solve with a hard margin: increase a finite cost until no slack is left, which is exact.

        A first program, with costs for the slacks alone, shows whether a solution without slack exists.
        """
        if not self._feasible:
            found = self._generate(np.zeros_like(penalties), np.where(hard, 1.0, 0.0))
            if not found.converged or self._slacks(found)[hard].max() > SLACK_TOL:
                return self._model(found, Status.INFEASIBLE if found.converged else found.status)
            self._feasible = True
        bound = 10.0 * max(float(penalties.max(initial=0.0)), float(self.cost[~hard].max(initial=0.0)), 1e-6)
        while bound <= LARGEST_COST:
            found = self._generate(penalties, np.where(hard, bound, self.cost))
            if not found.converged or self._slacks(found)[hard].max() <= SLACK_TOL:
                return self._model(found, found.status)
            bound *= 10.0
        return self._model(found, Status.INFEASIBLE)

    # -- the program ----------------------------------------------------------------------------

    def _first_columns(self) -> Int64Array:
        """All features when they are few, otherwise those with the largest products with the target."""
        p = self.design.n_features
        if p <= ALL_AT_ONCE:
            return np.arange(p)
        gradient = np.abs(self.design.transpose_dot(self.y - self.y.mean()))
        return np.sort(np.argsort(-gradient, kind="stable")[:FIRST])

    def _build(self, epsilon: float | None) -> LinearProgram:
        """The program with bias and slacks only; features are added later, and costs are set before each solution."""
        n = self.y.size
        slacks = sparse.eye_array(n)
        if epsilon is None:
            matrix = sparse.hstack([self.y[:, None], slacks])
            lower, upper = np.ones(n), np.full(n, np.inf)
        else:
            matrix = sparse.hstack([np.ones((n, 1)), slacks, -slacks])
            lower, upper = self.y - epsilon, self.y + epsilon
        free_bias = np.zeros(matrix.shape[1])
        free_bias[0] = -np.inf
        return LinearProgram(np.zeros(matrix.shape[1]), matrix, lower, upper, col_lower=free_bias)

    def _add(self, columns: Int64Array) -> None:
        """Add two non-negative variables for each feature, w = w⁺ - w⁻.

        Sparse columns are not centred, which changes only the bias.
        """
        stored = self.design.stored_columns(columns)
        if stored is None:
            block = self.sign[:, None] * self.design.block(columns)
            both = np.stack([block, -block], axis=2).reshape(self.y.size, -1)
            shift = np.zeros(columns.size)
        else:
            kept, shift = stored
            block = sparse.csc_array(kept * self.sign[:, None])
            both = sparse.hstack([block, -block], format="csc")
            both = both[:, np.arange(2 * columns.size).reshape(2, -1).T.ravel()]
        self._program.add_columns(0.0, both)
        self._shift = np.concatenate([self._shift, shift])

    def _generate(self, penalties: FloatArray, cost: FloatArray) -> LinearProgramSolution:
        """Solve, adding features as long as one can improve the solution."""
        while True:
            slack_costs = np.tile(cost, (self._n_fixed - 1) // self.y.size)
            own = np.repeat(penalties[self.pool], 2)
            self._program.set_costs(np.concatenate([[0.0], slack_costs, own]))
            found = self._program.solve()
            self.n_iter += found.n_iter
            if not found.converged or self.pool.size == self.design.n_features:
                return found
            allowed = penalties + COST_TOL * np.where(penalties > 0.0, penalties, 1.0)
            allowed[self.pool] = np.inf
            entering = self._bounds.beyond(self.sign * found.row_duals, allowed, BATCH)
            if entering.size == 0:
                return found
            self._add(entering)
            self.pool = np.concatenate([self.pool, entering])

    def _slacks(self, found: LinearProgramSolution) -> FloatArray:
        slacks: FloatArray = found.x[1 : self._n_fixed].reshape(-1, self.y.size).sum(axis=0)
        return slacks

    def _model(self, found: LinearProgramSolution, status: Status) -> L1Svm:
        weights = np.zeros(self.design.n_features)
        parts = found.x[self._n_fixed :].reshape(-1, 2)
        weights[self.pool] = parts[:, 0] - parts[:, 1]
        return L1Svm(
            weights=weights,
            bias=float(found.x[0] + weights[self.pool] @ self._shift),
            slack=self._slacks(found),
            dual_coef=self.sign * found.row_duals,
            design=self.design,
            objective=found.objective,
            n_iter=self.n_iter,
            status=status,
        )


# -- Whether classes with many samples can be separated at all --


ROWS_PER_FEATURE = 4.0  # of the first samples; random labels can be separated up to about two
SQUARED_COST = 1e4  # of squared losses
LARGEST_NORM = 1e7  # of the weights; beyond, rounding hides whether the classes can be separated
NEWTON_STEPS = 5  # between two checks of the solution
MOST_LOOKS = 12  # checks for one cost; after these, linear programs decide


def separating_model(design: Design, y: FloatArray) -> tuple[FloatArray, float] | None:
    r"""Weights and bias of a linear classifier that separates the classes -1 and +1, or nearly; None if there is none.

    The result None is proved: with margin one the norm :math:`\|w\|_1` would be larger than 1e7. Where neither is found
    soon, the last classifier is returned, which may misclassify some samples.

    A subset of the samples is enough to prove that there is none. A classifier that separates the subset is tested on
    all samples. Where it fails, the subset is doubled by the samples with the worst margins and by others.
    """
    n, p = design.shape
    order = np.random.default_rng(0).permutation(n)
    rows, start = np.sort(order[: int(ROWS_PER_FEATURE * (p + 1))]), None
    while True:
        start = _separating(design.take_rows(rows), y[rows], start)
        if start is None:
            return None
        value = y * (design.dot(start[0]) + start[1])
        wrong = np.flatnonzero(value <= 0.0)
        if wrong.size == 0 or float(value[rows].min()) <= 0.0:
            return start
        worst = wrong[np.argsort(value[wrong], kind="stable")[: rows.size]]
        others = order[: 2 * rows.size - worst.size]  # the earlier ones and new ones
        rows = np.union1d(np.union1d(rows, worst), others)


def _separating(
    design: Design, y: FloatArray, start: tuple[FloatArray, float] | None
) -> tuple[FloatArray, float] | None:
    r"""Weights and bias of a classifier that separates the classes, or of the last one found; None if there is none.

    An SVM with squared losses has multipliers :math:`\alpha \ge 0` with :math:`\sum_i \alpha_i y_i = 0`. For any such
    multipliers, weights u and a bias b with margin one satisfy

    .. math:: \sum_i \alpha_i \le \sum_i \alpha_i y_i (u \cdot x_i + b)
        \le \|u\|_1 \max_k \Bigl|\sum_i \alpha_i y_i x_{ik}\Bigr| .

    Where the classes overlap, the last factor vanishes relative to the sum of the multipliers as the cost grows.
    """
    cost, n_looks = SQUARED_COST, 0
    while cost <= LARGEST_COST and n_looks < MOST_LOOKS:
        problem = BoxDual.classification(y, np.full(y.size, cost), squared=True)
        found = solve_squared_loss(design, problem, start, tol=1e-8, max_iter=NEWTON_STEPS)
        start = found.weights, found.bias
        if float((y * (design.dot(found.weights) + found.bias)).min()) > 0.0:
            return start
        gradient = design.transpose_dot(found.dual_coef)
        if float(found.alpha.sum()) > LARGEST_NORM * float(np.abs(gradient).max(initial=0.0)):
            return None
        cost, n_looks = (100.0 * cost, 0) if found.converged else (cost, n_looks + 1)
    return start
