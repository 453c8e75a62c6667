"""Fisher's discriminant with an ℓ1 norm: on features, or, given a kernel matrix, on samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._sparse_paths import path_of_entries, scatter_columns, without_copies
from zeronorm.registry import register
from zeronorm.selection._kinds import POSITIVE, exceptions
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector
from zeronorm.solvers._lasso import (
    GRADIENT_ROUNDING,
    MAX_ROUNDS,
    BoxLassoSolution,
    descend_coordinates,
    empty_solution,
    most_violating,
)

SMALLEST_PENALTY = 1e-2  # end of the path by default, relative to where the second feature enters
ROUNDING_OF_MEANS = 1e-14  # relative to the values: smaller differences of the class means are zero
STIFFNESS = 10.0  # weight of the constraint's penalty, relative to the curvature of the loss
MULTIPLIER_STEPS = 200
CONSTRAINT_TOL = 1e-9  # relative to the distance between the targets
DISTANCE = 2.0  # between the targets -1 and +1 of the classes


@register(
    "sparse-kernel-fisher",
    family="sparsity",
    tasks=("binary",),
    reference="Mika, Rätsch & Müller 2001; Lal et al. 2006, section 4.5",
    cost="n p for each step of the path that brings in a feature",
    oracle="a QP solver, and Fisher's discriminant",
    avoid="outliers, which the squared loss follows; several classes",
    test_params=({"n_steps": 6},),
)
class SparseKernelFisher(WeightedSelector):
    r"""Select with Fisher's discriminant under an ℓ1 norm.

    .. math:: \min_{a, b}\ \|\xi\|^2 + C \|a\|_1 \quad \text{subject to} \quad
              x_i \cdot a + b = y_i + \xi_i, \qquad \sum_{y_i = +1} \xi_i = \sum_{y_i = -1} \xi_i = 0

    The projections of the two class means are two apart, and the variance within the classes is as small as the norm
    allows. Without the norm this is Fisher's linear discriminant. The problem is solved along a path of descending C;
    for large C the feature with the most distant class means is the only one with a weight. Features are ordered by the
    C at which they enter; those that never do, by the gradient of the constraint and the errors.

    With the columns of a kernel matrix as X (and ``standardize=False``) the weights belong to the training
    samples, and the same method selects the samples that the kernel classifier needs.

    Use it for two classes of similar shape; the squared loss is sensitive to outliers. Features with equal class
    means can still enter when they help to cancel noise.

    Parameters
    ----------
    n_features_to_select
        None: all features with a weight at ``penalty_l1``.
    penalty_l1
        In the formula C, at the end of the path. None: a hundredth of the value at which the second feature enters.
    n_steps
        Each is a value of the penalty.
    tol
        Largest violation of the optimality conditions, relative to the penalty.
    max_iter
        One iteration visits every weight once.

    Attributes
    ----------
    coef_ : ndarray
        The weights a of the standardised features at the end of the path; zeros when all class means coincide.
    intercept_ : float or ndarray
        The bias b at the end of the path; zero when all class means coincide.
    penalty_ : float
        C at the end of the path.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import SparseKernelFisher
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = SparseKernelFisher(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _parameter_exceptions = exceptions(penalty_l1=(POSITIVE, "end of a path on a logarithmic scale"))

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        penalty_l1: float | None = None,
        n_steps: int = 30,
        tol: float = 1e-8,
        max_iter: int = 10_000,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.penalty_l1 = penalty_l1
        self.n_steps = n_steps
        self.tol = tol
        self.max_iter = max_iter
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        merged, distinct = without_copies(problem)  # copies could share a weight in any way
        fisher = _Fisher(merged)
        if not fisher.mean_difference.any():
            self.coef_, self.intercept_, self.penalty_ = np.zeros(problem.n_features), 0.0, 0.0
            return SelectionPath.from_scores(np.zeros(problem.n_features))
        largest = fisher.entry_of_second()
        last = SMALLEST_PENALTY * largest if self.penalty_l1 is None else float(self.penalty_l1)
        penalties = np.geomspace(max(largest, last), last, int(self.n_steps))
        steps: list[BoxLassoSolution] = []
        with problem.progress.task("Penalties", penalties.size) as advance:
            for penalty in penalties:
                steps.append(
                    fisher.solve(float(penalty), float(self.tol) * float(penalty), int(self.max_iter))
                )
                advance(1)
        self.coef_ = scatter_columns(distinct, problem.n_features, fisher.full(steps[-1]))
        self.intercept_ = fisher.bias(steps[-1])
        self.penalty_ = float(penalties[-1])
        return path_of_entries(
            [distinct[step.columns] for step in steps],
            penalties,
            scatter_columns(distinct, problem.n_features, np.abs(steps[-1].gradient)),
            [np.abs(step.weights) for step in steps],
            selected_size=steps[-1].columns.size,
            n_iter=len(steps),
            converged=all(step.converged for step in steps),
            remedy="raise max_iter, penalty_l1 or tol.",
        )


class _Fisher:
    r"""The problem with its constraints on the errors removed.

    With Z the columns centred within the classes and m the difference of the class means, it is
    :math:`\min \|Za\|^2 + C\|a\|_1` subject to :math:`m \cdot a = 2`. The constraint is met by the method of
    multipliers: each step is :math:`\min \|Za\|^2 + \rho (m \cdot a - t)^2 + C\|a\|_1`, a LASSO with one more
    row, and t is changed by the violation of the constraint. Until the constraint is met, only inner products of the
    active features are needed; one pass over the data then finds the features that should join.
    """

    def __init__(self, problem: Problem) -> None:
        weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
        self.design = problem.design
        self.weight = weight
        self.codes = problem.y
        totals = np.bincount(problem.y, weights=weight)
        self.shares = [np.where(problem.y == c, weight, 0.0) / totals[c] for c in (0, 1)]
        self.mean_difference = problem.design.transpose_dot(self.shares[1] - self.shares[0])
        stats = problem.design.column_stats(sample_weight=problem.sample_weight)
        size = np.sqrt(stats.mean**2 + stats.variance)
        self.mean_difference[np.abs(self.mean_difference) <= ROUNDING_OF_MEANS * size] = 0.0
        m = np.abs(self.mean_difference)
        # Of values equal up to rounding the lower index is taken, on every platform.
        self.first = int(np.argmax(m >= (1.0 - 1e-10) * m.max(initial=0.0)))
        self.stiffness = self._stiffness() if m.any() else 0.0
        self.target = DISTANCE
        self._known: IntArray = np.empty(0, dtype=np.intp)
        self._products = np.empty((0, 0))
        self._last: BoxLassoSolution | None = None

    def within(self, columns: FloatArray) -> FloatArray:
        """Columns centred within the classes, times the roots of the weights."""
        centred = columns.copy()
        for c, share in enumerate(self.shares):
            centred[self.codes == c] -= share @ columns
        return centred * np.sqrt(self.weight)[:, None]

    def adjoint(self, v: FloatArray) -> FloatArray:
        """Z'v for all features."""
        scaled = np.sqrt(self.weight) * v
        for share, c in zip(self.shares, (0, 1), strict=True):
            scaled = scaled - share * scaled[self.codes == c].sum()
        return self.design.transpose_dot(scaled)

    def _stiffness(self) -> float:
        z = self.within(self.design.block(np.asarray([self.first])))[:, 0]
        scale = max(float(z @ z), 1e-3 * float(self.weight.sum()) * self.mean_difference[self.first] ** 2)
        return float(STIFFNESS * scale / self.mean_difference[self.first] ** 2)

    def entry_of_second(self) -> float:
        """The C below which a second feature joins the one with the most distant class means."""
        m = self.mean_difference / self.mean_difference[self.first]
        z = self.within(self.design.block(np.asarray([self.first])))[:, 0]
        alone = DISTANCE / abs(float(self.mean_difference[self.first]))
        gradient = 2.0 * alone * (m * float(z @ z) - self.adjoint(z))
        with np.errstate(divide="ignore", invalid="ignore"):
            entries = np.maximum(gradient / (1.0 - m), -gradient / (1.0 + m))
        entries[~np.isfinite(entries)] = 0.0
        entries[np.abs(np.abs(m) - 1.0) < 1e-9] = 0.0
        highest = float(entries.max(initial=0.0))
        return highest if highest > 0.0 else 2.0 * alone * max(float(z @ z), float(self.weight.sum()))

    def solve(self, C: float, tol: float, max_iter: int) -> BoxLassoSolution:
        """Solve for one C, starting from the last solution."""
        found = self._start(C) if self._last is None else self._last
        for n_rounds in range(MAX_ROUNDS):
            tol = max(tol, GRADIENT_ROUNDING * float(np.max(np.abs(self._gradient_of_target()))))
            joining = most_violating(found, C, tol)
            if n_rounds and joining.size == 0:
                break
            found = self._solve_among(np.concatenate([found.columns, joining]), found, C, tol, max_iter)
        else:
            found = replace(found, converged=False)
        self._last = found
        return found

    def _start(self, C: float) -> BoxLassoSolution:
        """Zero weights, with the t at which the feature with the most distant means alone meets the constraint.

        The multiplier changes by a few units per step; without this, a large C would need hundreds of steps.
        """
        m = abs(float(self.mean_difference[self.first]))
        z = self.within(self.design.block(np.asarray([self.first])))[:, 0]
        self.target = DISTANCE + (DISTANCE * float(z @ z) / m + 0.5 * C) / (self.stiffness * m)
        return empty_solution(self._gradient_of_target(), 0)

    def _solve_among(
        self, columns: IntArray, start: BoxLassoSolution, C: float, tol: float, max_iter: int
    ) -> BoxLassoSolution:
        """The solution with weights for these features only; the features of ``start`` come first."""
        weights = np.append(start.weights, np.zeros(columns.size - start.weights.size))
        m, converged = self.mean_difference[columns], False
        square = 2.0 * (self._products_of(columns) + self.stiffness * np.multiply.outer(m, m))
        for _ in range(MULTIPLIER_STEPS):
            q = self._gradient_of_target()[columns]
            settled = descend_coordinates(square, q, C, np.inf, weights, 0.1 * tol, max_iter) > 0
            missing = DISTANCE - float(m @ weights)
            if abs(missing) <= CONSTRAINT_TOL * DISTANCE:
                converged = settled
                break
            self.target += missing
        kept = weights != 0.0
        columns, weights, m = columns[kept], weights[kept], m[kept]
        image = self.within(self.design.take(columns).dot(weights)[:, None])[:, 0]
        gradient = (
            self._gradient_of_target() - 2.0 * self.stiffness * float(m @ weights) * self.mean_difference
        )
        gradient -= 2.0 * self.adjoint(image)
        return BoxLassoSolution(columns, weights, image, gradient, converged)

    def _gradient_of_target(self) -> FloatArray:
        """Gradient of all features at zero weights, which is that of the row of the constraint."""
        return np.asarray(2.0 * self.stiffness * self.target * self.mean_difference)

    def _products_of(self, columns: IntArray) -> FloatArray:
        """Z'Z of some features; computed products are kept for later calls."""
        if not np.isin(columns, self._known).all():
            self._known = columns.copy()
            self._products = self._squares(columns)
        order = np.argsort(self._known)
        index = order[np.searchsorted(self._known, columns, sorter=order)]
        return np.ascontiguousarray(self._products[np.ix_(index, index)])

    def _squares(self, columns: IntArray) -> FloatArray:
        """Z'Z of some features; sparse columns stay sparse, and the means are subtracted afterwards."""
        if not self.design.is_sparse:
            centred = self.within(self.design.block(columns))
            return np.asarray(centred.T @ centred)
        part = self.design.take(columns)
        squares = part.sandwich(self.weight)
        for c, share in enumerate(self.shares):
            mean = part.transpose_dot(share)
            squares -= float(self.weight[self.codes == c].sum()) * np.multiply.outer(mean, mean)
        return squares

    def full(self, solution: BoxLassoSolution) -> FloatArray:
        weights = np.zeros(self.mean_difference.size)
        weights[solution.columns] = solution.weights
        return weights

    def bias(self, solution: BoxLassoSolution) -> float:
        """The bias with which the mean of the second class projects to one."""
        means = self.shares[1] @ self.design.block(solution.columns)
        return float(1.0 - means @ solution.weights)
