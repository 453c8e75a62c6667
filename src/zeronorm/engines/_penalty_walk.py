"""Models with an ℓ1 penalty that descends: the solutions on a grid, and the one that meets a bound on the weights."""

from __future__ import annotations

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._sparse_paths import path_of_entries, scatter_columns
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.solvers._lasso import penalty_at_bound
from zeronorm.solvers.l1_smooth._coupled import CoupledModels

WIDE_GRID_END = 1e-2  # smallest penalty on the grid, relative to the largest, for more features than samples
GRID_END = 1e-3
SMALLEST_PENALTY = 1e-5  # relative; a bound that is not active at this penalty has no effect
MANY_FEATURES = 500  # or twice as many as are asked for: more are slow and change nothing
EXPLAINED = 0.99  # share of the loss without features, after which the path adds nothing


def follow_penalties(
    models: CoupledModels, columns: IntArray, problem: Problem, n_alphas: int, norm_bound: float | None
) -> PenaltyWalk:
    """Solve for descending penalties; ``columns`` are those of the models among all features of the problem."""
    walk = PenaltyWalk(models, columns, problem.n_features)
    end = WIDE_GRID_END if problem.n_features > problem.n_samples else GRID_END
    largest = max(models.largest_penalty, np.finfo(float).tiny)
    with problem.progress.task("Penalties", n_alphas) as advance:
        for penalty in largest * np.geomspace(1.0, end, n_alphas):
            walk.visit(float(penalty))
            advance(1)
            if walk.ends(norm_bound, problem.n_features_to_select):
                break
    if norm_bound is not None:
        walk.meet(float(norm_bound))
    return walk


class PenaltyWalk:
    """Solutions for descending penalties."""

    def __init__(self, models: CoupledModels, columns: IntArray, n_features: int) -> None:
        self.models = models
        self.columns, self.n_features = columns, n_features  # columns of the models among all features
        self.penalties: list[float] = []
        self.supports: list[IntArray] = []
        self.abs_weights: list[FloatArray] = []
        self.norms: list[float] = []

    def visit(self, penalty: float) -> None:
        """Solve for a penalty and store the solution."""
        norm = self._norm_at(penalty)
        support = self.models.support
        self.penalties.append(penalty)
        self.supports.append(self.columns[support])
        self.abs_weights.append(self.models.absolute_weights()[support])
        self.norms.append(norm)

    def _norm_at(self, penalty: float) -> float:
        self.models.solve(np.full(self.models.n_features, penalty))
        return self.models.norm

    def ends(self, norm_bound: float | None, asked: int | None) -> bool:
        """Whether the path ends: at the bound; without one, where the loss is small or enough features have entered."""
        if norm_bound is not None:
            return self.norms[-1] >= norm_bound
        if asked is not None and self.supports[-1].size >= max(MANY_FEATURES, 2 * asked):
            return True
        return self.models.loss <= (1.0 - EXPLAINED) * self.models.loss_without_features

    def meet(self, norm_bound: float) -> None:
        """Replace the solutions beyond the bound by the one at the bound."""
        low = SMALLEST_PENALTY * self.models.largest_penalty
        while self.norms and self.norms[-1] > norm_bound:
            low = self.penalties[-1]
            for remembered in (self.penalties, self.supports, self.abs_weights, self.norms):
                remembered.pop()
        high = self.penalties[-1] if self.penalties else self.models.largest_penalty
        if high > low:
            self.visit(penalty_at_bound(self._norm_at, high, low, norm_bound))

    def path(self) -> SelectionPath:
        return path_of_entries(
            self.supports,
            self.penalties,
            scatter_columns(self.columns, self.n_features, self.models.first_gradients()),
            self.abs_weights,
            selected_size=int(self.supports[-1].size),
            n_iter=self.models.n_solved,
            converged=self.models.all_converged,
            remedy="raise tol, or lower norm_bound.",
        )
