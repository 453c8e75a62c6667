"""The LASSO as a selector: the exact piecewise-linear path, features in the order in which they enter."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path, lasso_path

from zeronorm.selectors.base import WeightedSelector
from zeronorm.selectors.path import SelectionPath
from zeronorm.selectors.problem import Problem
from zeronorm.selectors.registry import register

FloatArray = NDArray[np.float64]
GRID_END = 1e-3  # smallest penalty on the grid, relative to the one at which the first feature enters


@register(
    "lasso",
    family="sparsity",
    tasks=("binary", "multiclass", "regression"),
    reference="Tibshirani 1996; Lal et al. 2006, section 4.4",
    test_params=({}, {"task": "regression"}),
)
class LassoSelector(WeightedSelector):
    r"""Select with the LASSO: squared loss under a bound on the sum of absolute weights.

    .. math:: \min_{w, b} \sum_i (w \cdot x_i + b - y_i)^2 \quad \text{subject to} \quad \sum_k |w_k| \le \sigma_0

    The solution is followed from :math:`\sigma_0 = 0` upwards. Features enter and may leave again, so the
    visited subsets are not nested. Class labels are coded ±1; for more than two classes one indicator
    per class is fitted jointly and a feature enters for all classes at once (multi-task LASSO on a grid of penalties).

    The path is computed by scikit-learn on a dense copy of the data.

    Parameters
    ----------
    n_features_to_select : count, fraction, or None for the largest subset on the path.
    task : "classification" or "regression".
    n_alphas : number of penalties on the grid for more than two classes.
    standardize : scale columns to unit variance first.
    estimator, feature_groups, always_keep : as in all selectors.
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: Literal["classification", "regression"] = "classification",
        n_alphas: int = 100,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.task = task
        self.n_alphas = n_alphas
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _select(self, problem: Problem) -> SelectionPath:
        X, Y = centred_least_squares(problem)
        correlation = np.abs(X.T @ Y).max(axis=1)
        if Y.shape[1] == 1:
            weights, penalties = _exact_path(X, Y[:, 0])
        else:
            weights, penalties = _grid_path(X, Y, self.n_alphas)
        subsets = [np.flatnonzero(w) for w in weights]
        visited = [s for s in subsets if s.size]
        entry = entry_scores(weights, penalties)
        # Features that never enter follow by their correlation with the target, below all that do.
        scale = float(entry[entry > 0].min(initial=1.0)) / max(float(correlation.max(initial=0.0)), 1e-300)
        scores = np.where(entry > 0, entry, 0.5 * scale * correlation)
        return SelectionPath.from_subsets(
            visited,
            n_features=problem.n_features,
            tie_break=scores,
            scores=scores,
            own_size=max((s.size for s in visited), default=None),
            n_iter=len(weights),
        )


def centred_least_squares(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Dense columns and targets of the equivalent unweighted problem without a bias."""
    X = problem.design.block(slice(None))
    Y = problem.targets()
    if problem.task == "multiclass":
        Y = (Y + 1.0) / 2.0
    weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
    X -= np.average(X, axis=0, weights=weight)
    Y = Y - np.average(Y, axis=0, weights=weight)
    if problem.sample_weight is not None:
        root = np.sqrt(weight)[:, None]
        X *= root
        Y = Y * root
    return X, Y


def entry_scores(weights: FloatArray, penalties: FloatArray) -> FloatArray:
    """The largest penalty at which each feature has a weight, 0 for those that never have one."""
    active = weights != 0
    first = np.argmax(active, axis=0)
    # A feature that is active at a breakpoint entered at the penalty before it.
    return np.where(active.any(axis=0), penalties[np.maximum(first - 1, 0)], 0.0)


def _exact_path(X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights (breakpoints × features) of the homotopy, and the penalty at each breakpoint."""
    with warnings.catch_warnings():
        # Near the end of the path the active columns become dependent; the path up to there is exact.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        penalties, _, coefficients = lars_path(X, y, method="lasso", copy_X=False)
    return coefficients.T, penalties


def _grid_path(X: FloatArray, Y: FloatArray, n_alphas: int) -> tuple[FloatArray, FloatArray]:
    largest = np.sqrt(((X.T @ Y) ** 2).sum(axis=1)).max(initial=0.0) / len(X)
    penalties = max(largest, np.finfo(float).tiny) * np.geomspace(1.0, GRID_END, n_alphas)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        penalties, coefficients, _ = lasso_path(np.asfortranarray(X), Y, alphas=penalties)
    return np.sqrt((coefficients**2).sum(axis=0)).T, penalties
