"""The LASSO as a selector: the exact piecewise-linear path, features in the order in which they enter."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path, lasso_path

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines.sparse_paths import distinct_columns, entry_scores, first_copies, path_of_entries
from zeronorm.registry import register
from zeronorm.selection.kinds import parameter_error
from zeronorm.selection.path import SelectionPath
from zeronorm.selection.problem import Problem
from zeronorm.selectors.base import WeightedSelector
from zeronorm.solvers.lasso import penalty_at_bound

GRID_END = 1e-3  # smallest penalty on the grid, relative to the one at which the first feature enters
SMALLEST_PENALTY = 1e-6  # relative; a bound that does not bind here is taken not to bind at all
GRID_TOL = 1e-4  # duality gap on the grid, relative
BOUND_TOL = 1e-7  # the same at the bound
REPAIR_TOL = 1e-12  # the same where the homotopy went wrong
OPTIMAL = 1e-8  # violation of the optimality conditions, relative to the largest penalty, that is rounding
ACCEPTABLE = 1e-5  # the same after a repair; more is reported
MOST_SWEEPS = 10_000
ROUNDING = 1e-13  # of a weight, relative to the largest


@register(
    "lasso",
    family="sparsity",
    tasks=("binary", "multiclass", "regression"),
    reference="Tibshirani 1996; Efron et al. 2004; Lal et al. 2006, section 4.4",
    cost="n p for each feature that enters or leaves; a dense copy of the data",
    oracle="the optimality conditions, and scikit-learn's coordinate descent",
    avoid="keeping all of several correlated features; reading weights as effects: they are shrunk",
    test_params=({}, {"task": "regression"}, {"method": "lars"}),
)
class LassoSelector(WeightedSelector):
    r"""Select with the LASSO: squared loss under a bound on the sum of absolute weights.

    .. math:: \min_{w, b} \sum_i (w \cdot x_i + b - y_i)^2 \quad \text{subject to} \quad \sum_k |w_k| \le \sigma_0

    The solution is followed from :math:`\sigma_0 = 0` upwards, to ``norm_bound`` if one is given. Features enter
    and may leave again, so the visited subsets are not nested. ``method="lars"`` follows least angle regression
    instead, in which features never leave: its path is the order of entry alone (for more than two classes, of
    the first entry for any class).

    Class labels are coded ±1; for more than two classes one indicator per class is fitted jointly and a feature
    enters for all classes at once (multi-task LASSO on a grid of penalties; a feature then counts in the
    bound with the Euclidean norm of its weights).

    The path is computed by scikit-learn on a dense copy of the data, columns equal up to sign and shift once. The
    optimality conditions are checked at every breakpoint; where columns depend on each other and the path went wrong,
    coordinate descent takes its place.

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
        Weights at the end of the path of "lasso", of the columns as standardised; for more than two classes their
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

    def _select(self, problem: Problem) -> SelectionPath:
        self.representative_ = first_copies(problem.design)
        distinct = distinct_columns(self.representative_)
        X, Y = centred_least_squares(replace(problem, design=problem.design.take(distinct)))
        correlation = np.zeros(problem.n_features)
        correlation[distinct] = np.abs(X.T @ Y).max(axis=1)
        if self.method == "lars":
            return self._entry_order(X, Y, distinct, correlation)
        if Y.shape[1] == 1:
            steps, penalties, optimal = self._path_of_one_target(X, Y[:, 0])
            levels = _levels_of_entry(penalties)
        else:
            steps, penalties = _grid_path(X, Y, self.n_alphas, self.norm_bound)
            levels, optimal = penalties, True
        weights = np.zeros((len(steps), problem.n_features))
        weights[:, distinct] = steps
        self.coef_ = weights[-1]
        supports = [np.flatnonzero(w) for w in weights]
        own_size = supports[-1].size if self.norm_bound is not None else max(s.size for s in supports)
        strengths = [np.abs(w[s]) for w, s in zip(weights, supports, strict=True)]
        return path_of_entries(
            supports,
            levels,
            correlation,
            strengths,
            own_size=own_size,
            n_iter=len(weights),
            converged=optimal,
            remedy="some columns are nearly dependent on others; leave out columns that repeat others.",
        )

    def _path_of_one_target(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
        """Weights and penalties up to the bound, and whether all of them are optimal."""
        weights, penalties = _exact_path(X, y, "lasso")
        wrong = np.flatnonzero(_violations(X, y, weights, penalties) > OPTIMAL)
        if not wrong.size:
            if self.norm_bound is not None:
                weights, penalties = _cut_at_bound(weights, penalties, float(self.norm_bound))
            return weights, penalties, True
        if self.norm_bound is not None:
            weights, penalties = _grid_path(X, y[:, None], self.n_alphas, self.norm_bound, signed=True)
        else:
            later = penalties[wrong[0] :]
            weights[wrong[0] :] = _descend(X, y[:, None], later, REPAIR_TOL)[:, 0]
        return weights, penalties, bool(np.all(_violations(X, y, weights, penalties) <= ACCEPTABLE))

    @staticmethod
    def _entry_order(
        X: FloatArray, Y: FloatArray, distinct: IntArray, correlation: FloatArray
    ) -> SelectionPath:
        """Score by the step at which a feature enters; of several targets the one where it enters first."""
        scores, n_steps = np.zeros(correlation.size), 0
        for y in Y.T:
            weights, _ = _exact_path(X, y, "lar")
            supports = [distinct[np.flatnonzero(w)] for w in weights]
            scores = np.maximum(
                scores, entry_scores(supports, 1.0 / np.arange(1, len(weights) + 1), correlation)
            )
            n_steps = max(n_steps, len(weights))
        return SelectionPath.from_scores(scores, own_size=min(n_steps - 1, scores.size), n_iter=n_steps)

    def _check_parameters(self) -> None:
        if self.method == "lars" and self.norm_bound is not None:
            raise parameter_error(self, "norm_bound", "None with method='lars'")


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


def _levels_of_entry(penalties: FloatArray) -> FloatArray:
    """A feature with a weight at a breakpoint entered at the penalty of the one before."""
    return np.asarray(np.maximum(np.concatenate([penalties[:1], penalties[:-1]]), np.finfo(float).tiny))


def _exact_path(
    X: FloatArray, y: FloatArray, method: Literal["lasso", "lar"]
) -> tuple[FloatArray, FloatArray]:
    """Weights (breakpoints × features) of the homotopy, and the penalty at each breakpoint."""
    with warnings.catch_warnings():
        # Near the end of the path the active columns become dependent; the path up to there is exact.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        penalties, _, coefficients = lars_path(X, y, method=method)
    weights = coefficients.T
    # The weight of a feature that leaves is zero up to rounding, of either sign.
    weights[np.abs(weights) <= ROUNDING * np.abs(weights).max(axis=1, keepdims=True)] = 0.0
    return weights, penalties


def _violations(X: FloatArray, y: FloatArray, weights: FloatArray, penalties: FloatArray) -> FloatArray:
    """How far each solution is from meeting the optimality conditions, relative to the largest penalty.

    The correlation with the residual is the penalty for a feature with a weight, with its sign, and no larger for
    the others. Where columns depend on each other the homotopy may leave a feature out that has to enter.
    """
    pull = (y - weights @ X.T) @ X / y.size
    off_support = np.maximum(np.abs(pull) - penalties[:, None], 0.0)
    on_support = np.abs(pull - penalties[:, None] * np.sign(weights))
    broken = np.where(weights != 0.0, on_support, off_support).max(axis=1)
    return np.asarray(broken / max(float(penalties.max()), np.finfo(float).tiny))


def _cut_at_bound(
    weights: FloatArray, penalties: FloatArray, norm_bound: float
) -> tuple[FloatArray, FloatArray]:
    """End the path where the sum of absolute weights, which grows linearly between breakpoints, meets the bound."""
    norms = np.abs(weights).sum(axis=1)
    beyond = int(np.searchsorted(norms, norm_bound))
    if beyond == len(norms):
        return weights, penalties
    t = (norm_bound - norms[beyond - 1]) / (norms[beyond] - norms[beyond - 1])
    last = (1.0 - t) * weights[beyond - 1] + t * weights[beyond]
    penalty = (1.0 - t) * penalties[beyond - 1] + t * penalties[beyond]
    return np.vstack([weights[:beyond], last]), np.append(penalties[:beyond], penalty)


def _grid_path(
    X: FloatArray, Y: FloatArray, n_alphas: int, norm_bound: float | None, signed: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Norms of the weights over the targets, or the ``signed`` weights of a single one, and the penalties."""
    X = np.asfortranarray(X)
    largest = max(np.sqrt(((X.T @ Y) ** 2).sum(axis=1)).max(initial=0.0) / len(X), np.finfo(float).tiny)
    penalties = largest * np.geomspace(1.0, GRID_END, n_alphas)
    weights = _descend(X, Y, penalties, REPAIR_TOL if signed else GRID_TOL)
    norms = np.sqrt((weights**2).sum(axis=1))
    if norm_bound is None:
        return norms, penalties
    inside = norms.sum(axis=1) <= norm_bound
    high = float(penalties[inside][-1])

    def norm(penalty: float) -> float:
        found = _descend(X, Y, np.asarray([penalty]), BOUND_TOL)
        return float(np.sqrt((found**2).sum(axis=1)).sum())

    last = penalty_at_bound(norm, high, SMALLEST_PENALTY * largest, norm_bound)
    solution = _descend(X, Y, np.asarray([last]), REPAIR_TOL if signed else BOUND_TOL)
    every = np.vstack([weights[inside], solution])
    steps = every[:, 0] if signed else np.sqrt((every**2).sum(axis=1))
    return steps, np.append(penalties[inside], last)


def _descend(X: FloatArray, Y: FloatArray, penalties: FloatArray, tol: float) -> FloatArray:
    """Weights (penalties × targets × features) by coordinate descent; a feature enters for all targets at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        single = Y.shape[1] == 1
        target = Y[:, 0] if single else Y
        _, coefficients, _ = lasso_path(
            np.asfortranarray(X), target, alphas=penalties, tol=tol, max_iter=MOST_SWEEPS
        )
    return np.asarray(coefficients.T[:, None] if single else np.moveaxis(coefficients, 2, 0))
