"""The LASSO as a selector: the exact piecewise-linear path, features in the order in which they enter."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import as_design
from zeronorm.engines._sparse_paths import (
    distinct_columns,
    entry_scores,
    first_copies,
    path_of_entries,
    scatter_columns,
)
from zeronorm.registry import register
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector
from zeronorm.solvers._lasso import (
    LARGEST_DENSE_COPY,
    LassoFactor,
    LassoStep,
    WeightedRows,
    follow_lasso_path,
    penalty_at_bound,
)
from zeronorm.solvers._least_angles import least_angle_supports

GRID_END = 1e-3  # smallest penalty on the grid, relative to the one at which the first feature enters
SMALLEST_PENALTY = 1e-6  # relative; a bound that is not active at this penalty has no effect
GRID_TOL = 1e-4  # duality gap on the grid, relative
BOUND_TOL = 1e-7  # the same at the bound
REPAIR_TOL = 1e-12  # the same where the homotopy went wrong
OPTIMAL = 1e-8  # violation of the optimality conditions, relative to the largest penalty, that is rounding
ACCEPTABLE = 1e-5  # the same after a repair; more is reported
MOST_EPOCHS = 10_000
JOIN_TOL = 1e-6  # relative excess of the gradient over the penalty with which a column joins the active ones
MOST_JOINING = 200  # columns at a time, or as many as are active
MOST_STEPS = 500  # breakpoints, unless more features are asked for
STEPS_AT_A_TIME = 8


@register(
    "lasso",
    family="sparsity",
    tasks=("binary", "multiclass", "regression"),
    reference="Tibshirani 1996; Efron et al. 2004; Lal et al. 2006, section 4.4",
    cost="one pass over the data for each feature that enters or leaves",
    oracle="the optimality conditions, and scikit-learn's coordinate descent",
    avoid="keeping all of several correlated features; interpreting weights as effects: they are shrunk",
    test_params=({}, {"task": "regression"}, {"method": "lars"}),
)
class LassoSelector(WeightedSelector):
    r"""Select with the LASSO: squared loss under a bound on the sum of absolute weights.

    .. math:: \min_{w, b} \sum_i (w \cdot x_i + b - y_i)^2 \quad \text{subject to} \quad \sum_k |w_k| \le \sigma_0

    The solution is followed from :math:`\sigma_0 = 0` upwards, to ``norm_bound`` if one is given. Features enter
    and may leave again, so the visited subsets are not nested. ``method="lars"`` follows least angle regression
    instead, in which features never leave: its path is the order of entry (for more than two classes, of
    the first entry for any class).

    Class labels are coded ±1; for more than two classes one indicator per class is fitted jointly and a feature
    enters for all classes at once (multi-task LASSO on a grid of penalties; a feature then counts in the
    bound with the Euclidean norm of its weights).

    Columns equal up to sign and shift count once. The path ends after 500 breakpoints, or twice the number of features
    that are asked for, if that is more; that of "lars" ends with the features that are asked for, and the others follow
    in the order of their correlation with the target. Each breakpoint takes one pass over the data, which may be sparse
    or on disk.
    The optimality conditions are checked at every breakpoint; where columns are linearly dependent and the path is
    wrong, coordinate descent replaces it. If that happens close to least squares, with penalties below a thousandth of
    the largest, the path ends there, and the features that have not entered are ordered by their correlation with the
    target.

    Parameters
    ----------
    n_features_to_select
        None: the features with a weight at ``norm_bound``, or the largest subset on the path.
    norm_bound
        In the formula σ₀. A bound above the norm of the least-squares solution has no effect.
    method
        "lars" never removes a feature.
    n_alphas
        Used for more than two classes.

    Attributes
    ----------
    coef_ : ndarray
        Weights of the standardised features at the end of the path of "lasso"; for more than two classes their
        Euclidean norms over the classes.
    representative_ : ndarray of shape (n_features_in_,), dtype int
        For each feature the first one that it is a copy of, up to sign and shift.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import LassoSelector
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = LassoSelector(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _linear_loss = "squared_error"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        norm_bound: float | None = None,
        method: Literal["lasso", "lars"] = "lasso",
        task: Literal["classification", "regression"] = "classification",
        n_alphas: int = 100,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.norm_bound = norm_bound
        self.method = method
        self.task = task
        self.n_alphas = n_alphas
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust

    def _select(self, problem: Problem) -> SelectionPath:
        self.representative_ = first_copies(problem.design)
        distinct = distinct_columns(self.representative_)
        X, Y = centred_least_squares(replace(problem, design=problem.design.take(distinct)))
        gradient = np.atleast_2d(X.transpose_dot(Y).T)
        correlation = scatter_columns(distinct, problem.n_features, np.abs(gradient).max(axis=0))
        most_steps = max(MOST_STEPS, 2 * (problem.n_features_to_select or 0))
        if self.method == "lars":
            if problem.n_features_to_select is not None and problem.feature_groups is None:
                most_steps = problem.n_features_to_select
            return self._entry_order(X, gradient, distinct, correlation, most_steps)
        if Y.shape[1] == 1:
            steps, optimal = self._path_of_one_target(X, Y, gradient[0], most_steps)
            levels = _levels_of_entry(steps)
        else:
            steps, optimal = _grid_path(X, Y, self.n_alphas, self.norm_bound, most_steps), True
            levels = np.asarray([step.penalty for step in steps])
        supports = [distinct[step.columns] for step in steps]
        self.coef_ = scatter_columns(supports[-1], problem.n_features, steps[-1].weights)
        selected_size = supports[-1].size if self.norm_bound is not None else max(s.size for s in supports)
        return path_of_entries(
            supports,
            levels,
            correlation,
            [np.abs(step.weights) for step in steps],
            selected_size=selected_size,
            n_iter=len(steps),
            converged=optimal,
            remedy="some columns are nearly dependent on others; leave out columns that repeat others.",
        )

    def _path_of_one_target(
        self, X: LassoFactor, Y: FloatArray, gradient: FloatArray, most_steps: int
    ) -> tuple[list[LassoStep], bool]:
        """The solutions up to the bound, and whether all of them are optimal."""
        bound = np.inf if self.norm_bound is None else float(self.norm_bound)
        steps = follow_lasso_path(X, gradient, most_steps=most_steps, most_norm=bound)
        wrong = np.flatnonzero(_violations(X, Y[:, 0], steps) > OPTIMAL)
        if not wrong.size:
            return _cut_at_bound(steps, bound), True
        if self.norm_bound is not None:
            steps = _grid_path(X, Y, self.n_alphas, self.norm_bound, most_steps)
        elif steps[wrong[0]].penalty < GRID_END * steps[0].penalty:
            steps = steps[: wrong[0]]  # close to least squares, descent is slow and no more accurate
        else:
            later = np.asarray([step.penalty for step in steps[wrong[0] :]])
            steps = steps[: wrong[0]] + _descend(X, Y, later, REPAIR_TOL)
        return steps, bool(np.all(_violations(X, Y[:, 0], steps) <= ACCEPTABLE))

    @staticmethod
    def _entry_order(
        X: LassoFactor, gradient: FloatArray, distinct: IntArray, correlation: FloatArray, most_steps: int
    ) -> SelectionPath:
        """Scores by the step at which a feature enters; with several targets, the first step for any of them."""
        scores, n_steps = np.zeros(correlation.size), 0
        for q in gradient:
            supports = [distinct[active] for active in least_angle_supports(X, q, most_steps)]
            levels = 1.0 / np.arange(1, len(supports) + 1)
            scores = np.maximum(scores, entry_scores(supports, levels, correlation))
            n_steps = max(n_steps, len(supports))
        return SelectionPath.from_scores(scores, selected_size=min(n_steps - 1, scores.size), n_iter=n_steps)

    def _check_parameters(self) -> None:
        if self.method == "lars" and self.norm_bound is not None:
            raise parameter_error(self, "norm_bound", "None with method='lars'")


def centred_least_squares(problem: Problem) -> tuple[LassoFactor, FloatArray]:
    """Columns and targets of the equivalent problem without weights and bias; a dense copy where the data are small.

    Residuals of the regression on covariates give the same weights (Frisch, Waugh and Lovell).
    """
    weight, Y = problem.sample_weight, problem.target.columns()
    if problem.n_classes > 2:
        Y = (Y + 1.0) / 2.0
    Y = problem.residuals(Y - np.average(Y, axis=0, weights=weight))
    design = problem.residual_design()
    means = design.column_stats(sample_weight=weight).mean
    if means.any():
        design = design.transformed(means)
    X: LassoFactor = design if weight is None else WeightedRows(design, np.sqrt(weight))
    if weight is not None:
        Y = Y * np.sqrt(weight)[:, None]
    if not _is_small(X):
        return X, Y
    columns = X.block(np.arange(X.shape[1]))
    if (
        len(columns) > columns.shape[1] and Y.shape[1] == 1
    ):  # as many rows as columns are enough for all products
        rotation, columns = np.linalg.qr(columns)
        Y = rotation.T @ Y
    return as_design(np.asfortranarray(columns)), Y


def _is_small(X: LassoFactor) -> bool:
    return X.shape[0] * X.shape[1] <= LARGEST_DENSE_COPY


def _levels_of_entry(steps: list[LassoStep]) -> FloatArray:
    """Penalties at which the features of each step enter: those of the breakpoint before."""
    penalties = np.asarray([step.penalty for step in steps])
    return np.asarray(np.maximum(np.concatenate([penalties[:1], penalties[:-1]]), np.finfo(float).tiny))


def _violations(X: LassoFactor, y: FloatArray, steps: list[LassoStep]) -> FloatArray:
    """How far each solution is from meeting the optimality conditions, relative to the largest penalty.

    The gradient of a feature with a weight has the size of the penalty and the sign of the weight; that of the others
    is no larger. Where columns are linearly dependent the path may leave out a feature that has to enter.
    """
    found = []
    for start in range(0, len(steps), STEPS_AT_A_TIME):
        some = steps[start : start + STEPS_AT_A_TIME]
        residuals = [y - X.take(step.columns).dot(step.weights) for step in some]
        for step, gradient in zip(some, X.transpose_dot(np.column_stack(residuals)).T, strict=True):
            off_support = np.abs(gradient) - step.penalty
            off_support[step.columns] = 0.0
            on_support = np.abs(gradient[step.columns] - step.penalty * np.sign(step.weights))
            found.append(max(off_support.max(initial=0.0), on_support.max(initial=0.0)))
    return np.asarray(found) / max(steps[0].penalty, np.finfo(float).tiny)


def _cut_at_bound(steps: list[LassoStep], norm_bound: float) -> list[LassoStep]:
    """End the path where the sum of absolute weights, which grows linearly between breakpoints, meets the bound."""
    norms = np.asarray([np.abs(step.weights).sum() for step in steps])
    beyond = int(np.searchsorted(norms, norm_bound))
    if beyond == len(norms):
        return steps
    before, after = steps[beyond - 1], steps[beyond]
    t = (norm_bound - norms[beyond - 1]) / (norms[beyond] - norms[beyond - 1])
    columns = np.union1d(before.columns, after.columns)
    weights = np.zeros(columns.size)
    weights[np.searchsorted(columns, before.columns)] += (1.0 - t) * before.weights
    weights[np.searchsorted(columns, after.columns)] += t * after.weights
    penalty = (1.0 - t) * before.penalty + t * after.penalty
    return [*steps[:beyond], LassoStep.of(penalty, columns, weights)]


# -- Coordinate descent: for several targets, and where the path is wrong --


def _grid_path(
    X: LassoFactor, Y: FloatArray, n_alphas: int, norm_bound: float | None, most_features: int
) -> list[LassoStep]:
    """Solutions on a grid of penalties, then at the bound; weights of several targets are given by their norms."""
    largest = max(float(_norms(X.transpose_dot(Y)).max(initial=0.0)), np.finfo(float).tiny)
    penalties = largest * np.geomspace(1.0, GRID_END, n_alphas)
    exact = Y.shape[1] == 1
    steps = _descend(X, Y, penalties, REPAIR_TOL if exact else GRID_TOL, most_features)
    if norm_bound is None:
        return steps
    inside = [step for step in steps if np.abs(step.weights).sum() <= norm_bound]
    low = steps[len(inside)].penalty if len(inside) < len(steps) else SMALLEST_PENALTY * largest

    def norm(penalty: float) -> float:
        return float(np.abs(_descend(X, Y, np.asarray([penalty]), BOUND_TOL)[0].weights).sum())

    last = penalty_at_bound(norm, inside[-1].penalty, low, norm_bound)
    return inside + _descend(X, Y, np.asarray([last]), REPAIR_TOL if exact else BOUND_TOL)


def _descend(
    X: LassoFactor, Y: FloatArray, penalties: FloatArray, tol: float, most_features: int = MOST_STEPS
) -> list[LassoStep]:
    """Solutions by coordinate descent, in which a feature enters for all targets at once.

    For large data only the columns of features that have, or may get, a weight are used, and the solutions end once
    more than ``most_features`` have one.
    """
    if _is_small(X):
        every = np.arange(X.shape[1])
        found = _descend_columns(X.block(every), Y, penalties, tol)
        return [_step(penalty, every, w) for penalty, w in zip(penalties, found, strict=True)]
    steps: list[LassoStep] = []
    columns, gradient, before = np.empty(0, dtype=np.intp), X.transpose_dot(Y), np.inf
    for penalty in penalties:
        # Most features that will get a weight have nearly this gradient already; the others are found afterwards.
        above = max(2.0 * penalty - min(before, 2.0 * penalty), 0.5 * penalty)
        while True:
            joining = _joining(_norms(gradient), above, columns)
            columns = np.union1d(columns, joining)
            block = X.block(columns)
            weights = _descend_columns(block, Y, np.asarray([penalty]), tol)[0]
            gradient = X.transpose_dot(Y - block @ weights)
            above = penalty * (1.0 + JOIN_TOL)
            if not _joining(_norms(gradient), above, columns).size:
                break
        steps.append(_step(penalty, columns, weights))
        columns, before = steps[-1].columns, penalty
        if columns.size > most_features:
            break
    return steps


def _joining(gradient: FloatArray, above: float, columns: IntArray) -> IntArray:
    """Features not in ``columns`` with a gradient above ``above``; of many, those with the largest."""
    found = np.setdiff1d(np.flatnonzero(gradient > above), columns)
    return found[np.argsort(-gradient[found], kind="stable")[: max(MOST_JOINING, columns.size)]]


def _descend_columns(X: FloatArray, Y: FloatArray, penalties: FloatArray, tol: float) -> FloatArray:
    """Weights by coordinate descent (penalties × features × targets)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        single = Y.shape[1] == 1
        _, weights, _ = lasso_path(
            np.asfortranarray(X),
            Y[:, 0] if single else Y,
            alphas=penalties / len(X),
            tol=tol,
            max_iter=MOST_EPOCHS,
        )
    return np.asarray(weights.T[:, :, None] if single else np.moveaxis(weights, 2, 0).swapaxes(1, 2))


def _step(penalty: float, columns: IntArray, weights: FloatArray) -> LassoStep:
    """A step of the path: the weights of one target, or the norms of the weights of several."""
    return LassoStep.of(penalty, columns, weights[:, 0] if weights.shape[1] == 1 else _norms(weights))


def _norms(weights: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt((weights**2).sum(axis=1)))
