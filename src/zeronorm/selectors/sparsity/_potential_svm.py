"""The potential support vector machine: one dual variable per feature."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines._sparse_paths import (
    first_copies,
    groups_of_copies,
    path_of_entries,
    scatter_columns,
    without_copies,
)
from zeronorm.registry import register
from zeronorm.selection._kinds import POSITIVE, exceptions
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector
from zeronorm.solvers._lasso import BoxLassoSolution, empty_solution, solve_box_lasso

ROUNDING = 1e-12  # relative to the bound: smaller weights are zero
SMALLEST_EPSILON = 1e-2  # end of the path without an epsilon, relative to where the first feature enters


@register(
    "potential-svm",
    family="sparsity",
    tasks=("binary", "regression"),
    reference="Hochreiter & Obermayer 2004, 2006; Lal et al. 2006, section 4.5",
    cost="n p for each step of the path that brings in a feature",
    oracle="a QP solver; LassoSelector where no variable is at its bound",
    avoid="problems without a dominating feature, where LassoSelector gives the exact path; several classes",
    test_params=({"n_steps": 8}, {"task": "regression", "C": 2.0, "n_steps": 8}),
)
class PotentialSVM(WeightedSelector):
    r"""Select with the potential support vector machine, whose dual variables belong to features.

    Columns are centred and scaled to unit length. The dual problem

    .. math:: \min_\alpha\ \tfrac12 \|X\alpha\|^2 - y^\top X \alpha + \epsilon \|\alpha\|_1, \qquad |\alpha_k| \le C

    has one variable for each feature; those with :math:`\alpha_k \ne 0` are the support features. At the solution the
    correlation of the error with each feature is at most ε, unless the feature has reached the bound C. With ``C=inf``
    it is the LASSO; a finite C limits the influence of a single feature in favour of others.

    The problem is solved along a path of descending ε. Features are ordered by the ε at which they enter; those
    that never do, by their correlation with the residual.

    Use it where a few dominating features should not hide the others; with ``C=inf``, ``LassoSelector`` gives the exact
    path.

    Parameters
    ----------
    n_features_to_select
        None: the features with a dual variable at ``epsilon``.
    C
        Here: the largest absolute dual variable.
    epsilon
        Here for both tasks: the end of the path, in units of the target times the square root of the number of
        samples. None: a hundredth of the value at which the first feature enters.
    n_steps
        Each is a value of ε.
    tol
        Largest violation of the optimality conditions, relative to the ε at which the first feature enters.
    max_iter
        One iteration visits every variable once.

    Attributes
    ----------
    dual_coef_ : ndarray
        α at the end of the path.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import PotentialSVM
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = PotentialSVM(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    standardize = True

    _parameter_exceptions = exceptions(epsilon=(POSITIVE, "end of a path on a logarithmic scale"))

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        C: float = np.inf,
        epsilon: float | None = None,
        n_steps: int = 50,
        task: Literal["classification", "regression"] = "classification",
        tol: float = 1e-8,
        max_iter: int = 10_000,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.C = C
        self.epsilon = epsilon
        self.n_steps = n_steps
        self.task = task
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
        # Without a bound one copy has the whole weight; a finite bound holds for each copy.
        copies = [] if np.isinf(self.C) else groups_of_copies(first_copies(problem.design))
        merged, distinct = (
            without_copies(problem) if np.isinf(self.C) else (problem, np.arange(problem.n_features))
        )
        factor = _UnitColumns(merged.design, weight / weight.sum())
        y = problem.target.columns()[:, 0] * np.sqrt(weight)
        q = factor.transpose_dot(y)
        largest = max(float(np.abs(q).max(initial=0.0)), np.finfo(float).tiny)
        solution = empty_solution(q, problem.n_samples)
        steps: list[tuple[float, BoxLassoSolution]] = []
        with problem.progress.task("Tolerances", int(self.n_steps)) as advance:
            for epsilon in self._grid(largest):
                solution = solve_box_lasso(
                    factor,
                    q,
                    epsilon,
                    float(self.C),
                    solution,
                    tol=self.tol * largest,
                    max_iter=int(self.max_iter),
                )
                steps.append((epsilon, _filled_in_order(solution, copies, float(self.C))))
                advance(1)
        solution = steps[-1][1]
        self.dual_coef_ = np.zeros(problem.n_features)
        self.dual_coef_[distinct[solution.columns]] = solution.weights
        return path_of_entries(
            [distinct[step.columns] for _, step in steps],
            [epsilon for epsilon, _ in steps],
            scatter_columns(distinct, problem.n_features, np.abs(solution.gradient)),
            [np.abs(step.weights) for _, step in steps],
            selected_size=solution.columns.size,
            n_iter=len(steps),
            converged=all(step.converged for _, step in steps),
            remedy="raise max_iter, or raise epsilon or tol.",
        )

    def _grid(self, largest: float) -> FloatArray:
        """Descending values of ε, below the one at which the first feature enters."""
        last = SMALLEST_EPSILON * largest if self.epsilon is None else float(self.epsilon)
        return np.geomspace(max(largest, last), last, int(self.n_steps) + 1)[1:]


def _filled_in_order(step: BoxLassoSolution, copies: list[IntArray], C: float) -> BoxLassoSolution:
    """An equivalent solution in which the weight of copies is on the first up to its bound, then on the next one.

    Without this, rounding would decide how copies share a weight.
    """
    weight = np.zeros(step.gradient.size)
    weight[step.columns] = step.weights
    for group in copies:
        filled = np.clip(np.abs(weight[group]).sum() - C * np.arange(group.size), 0.0, C)
        weight[group] = np.where(filled > ROUNDING * C, np.copysign(filled, step.gradient[group]), 0.0)
    columns = np.flatnonzero(weight)
    return replace(step, columns=columns, weights=weight[columns])


class _UnitColumns:
    """Columns times the square roots of the sample shares; standardised columns then have length one."""

    def __init__(self, design: Design, share: FloatArray) -> None:
        self.design = design
        self.root = np.sqrt(share)

    def block(self, columns: IntArray | slice) -> FloatArray:
        return np.asarray(self.design.block(columns) * self.root[:, None])

    def transpose_dot(self, v: FloatArray) -> FloatArray:
        return self.design.transpose_dot(self.root * v)
