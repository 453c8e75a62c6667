"""Feature selection by concave minimisation: the zero-norm as a sum of exponentials, by linear programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._cost import epsilon_of
from zeronorm.engines._early_stopping import split_off
from zeronorm.engines._sparse_paths import distinct_columns, first_copies, relative
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, warn_of_empty_selection
from zeronorm.selectors._base import WeightedSplittingSelector
from zeronorm.solvers._status import Status
from zeronorm.solvers.l1_svm._dual import l1_svm_program
from zeronorm.solvers.linear import HingeLoss, LinearProblem, State, solve, svm_loss

ZERO_WEIGHT = 1e-9  # relative to the largest weight
LARGEST_ALPHA = 1e6


@register(
    "fsv",
    family="sparsity",
    tasks=("binary", "multiclass", "regression"),
    reference="Bradley & Mangasarian 1998; Lal et al. 2006, Algorithm 3",
    cost="n p for each of 10 to 20 passes over the data, and small linear programs",
    oracle="scipy's linprog for each program",
    avoid="very few samples: many smallest sets exist by chance",
    misprints="Huang et al. print 1 − α|w| inside the exponential; it is −α|w|.",
    test_params=(
        {},
        {"sparsity": 0.2, "growth": 2.0},
        {"task": "regression"},
        {"multi_class": "weston_watkins"},
    ),
)
class FSV(WeightedSplittingSelector):
    r"""Select as few features as possible by concave minimisation, a sequence of linear programs (FSV).

    The zero-norm is replaced by :math:`\sum_k 1 - e^{-\alpha |w_k|}`. With ``sparsity=None`` the classes must be
    separated,

    .. math:: \min_{w, b}\ \sum_k 1 - e^{-\alpha |w_k|} \quad \text{subject to} \quad y_i (w \cdot x_i + b) \ge 1,

    else errors are allowed, averaged within each class:

    .. math:: \min_{w, b}\ (1 - \lambda) \sum_{c = \pm 1} \frac{1}{n_c} \sum_{y_i = c} \max(0, 1 - y_i(w \cdot x_i + b))
              + \lambda \sum_k 1 - e^{-\alpha |w_k|}.

    The concave part is replaced by its tangent at the last weights, which gives a linear program with the costs
    :math:`\alpha e^{-\alpha |w_k|}`; the first has equal costs and is the ℓ1 SVM. The objective never increases,
    and the sequence ends after a few programs at a vertex that need not be the global optimum. Features
    enter the programs only when they can improve the solution.

    Features are ranked by the last program in which they have a weight, then by that weight; features that never have
    one, by how close they came to it in the first program. The weight of columns equal up to sign and shift goes to the
    first, the others rank last.

    A program may have several optimal vertices when there are few samples of few distinct values; which one is
    found may then depend on the order of the columns.

    More than two classes share the penalty, with :math:`|w_k| = \sum_c |w_{ck}|`: a feature that one classifier uses
    costs the others little. Each class is separated from the rest, or with ``multi_class="weston_watkins"`` one linear
    program trains all classes jointly, with the constraints

    .. math:: (w_{y_i} - w_m) \cdot x_i + b_{y_i} - b_m \ge 1 - \xi_{im}, \quad \xi_{im} \ge 0, \quad m \ne y_i .

    For regression the loss is the mean of :math:`\max(0, |y_i - w
    \cdot x_i - b| - \epsilon)` in units of the target's scale, so that the unit of y does not matter; with
    ``sparsity=None`` all targets must be met up to ε.

    With ``validation_fraction`` the sequence ends before the error on samples that are kept out of it rises (early
    stopping; Lal et al. 2006, section 4.3).

    Huang et al. (2008) print the exponent as 1 - α|w| inside the exponential; the formula above is the one of
    the original paper.

    Use it for the smallest set of features that separates two classes; with very few samples many such
    sets exist by chance.

    Parameters
    ----------
    n_features_to_select
        None: all features with a weight in the last program.
    growth
        Each time the sequence has converged, α is multiplied by this, until the selected features no longer change.
        1: α stays the same.
    multi_class
        "coupled": one classifier for each class against the rest, which share the penalty. "weston_watkins": one joint
        classifier, whose linear program holds all features.
    sparsity
        None forbids errors, which needs classes that can be separated.
    epsilon
        "auto" is a tenth of the scale of the target.
    tol
        The sequence ends when no weight changes by more than this.
    max_iter
        One iteration solves one linear program.
    validation_fraction
        The sequence ends before a program whose error on these samples is above the lowest by more than one standard
        error of the difference. They are chosen by their values within each class, whole groups where ``fit`` gets
        ``groups``; the programs have the other samples. None: no early stopping.

    Attributes
    ----------
    coef_ : ndarray
        Weights of the standardised features in the last program; with more than two classes one row for each class.
    intercept_ : float or ndarray
        Bias in the last program; with more than two classes one number for each class.
    epsilon_ : float or None
        The ``epsilon`` that was used. None in classification.
    objective_ : float or ndarray
        The objective after each program, with the α of that program.
    validation_errors_ : ndarray or None
        With ``validation_fraction`` the mean error of each program on the validation samples, the last of which may be
        the one that ended the sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import FSV
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = FSV(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _linear_loss = "hinge"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        alpha: float = 5.0,
        growth: float = 1.0,
        sparsity: float | None = 0.05,
        multi_class: Literal["coupled", "weston_watkins"] = "coupled",
        task: Literal["classification", "regression"] = "classification",
        epsilon: float | Literal["auto"] = "auto",
        tol: float = 1e-7,
        max_iter: int = 100,
        validation_fraction: float | None = None,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.growth = growth
        self.sparsity = sparsity
        self.multi_class = multi_class
        self.task = task
        self.epsilon = epsilon
        self.tol = tol
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _follows_target_outliers(self) -> bool:
        return False

    def _select(self, problem: Problem) -> SelectionPath:
        self.epsilon_ = epsilon_of(self, problem)
        problem, stopping = split_off(self, problem, svm_loss("hinge", self.epsilon_))
        midrange, problem = problem.target.midrange, problem.around_zero()
        unit = problem.target.unit(problem.sample_weight)
        is_joint = self.multi_class == "weston_watkins" and problem.n_classes > 2
        models: _SharedPrograms | _JointProgram = (
            _JointProgram(problem, self.sparsity)
            if is_joint
            else _SharedPrograms(problem, self.sparsity, self.epsilon_, unit)
        )
        steps: list[_Step] = []
        objectives: list[float] = []
        alpha, converged, rested = float(self.alpha), False, np.empty(0, dtype=np.intp)
        weights = np.zeros(problem.n_features)
        with problem.progress.task("Linear programs", int(self.max_iter)) as advance:
            for _ in range(int(self.max_iter)):
                step = models.solve(alpha * np.exp(-alpha * weights))
                self._check_solution(step.status)
                if stopping and stopping.stops(
                    slice(None), unit * step.weights.T, midrange + unit * step.bias
                ):
                    converged = True
                    break
                moved = float(np.abs(step.size - weights).max(initial=0.0))
                weights = step.size
                steps.append(step)
                objectives.append(step.loss - models.rate * float(np.expm1(-alpha * weights).sum()))
                advance(1)
                if moved > self.tol:
                    continue
                support = np.flatnonzero(weights)
                settled = np.array_equal(support, rested) or not support.size
                converged = self.growth == 1.0 or alpha >= LARGEST_ALPHA or settled
                if converged:
                    break
                alpha, rested = alpha * float(self.growth), support
        self.validation_errors_ = None if stopping is None else np.array(stopping.errors)
        self.objective_ = np.asarray(objectives)
        single = len(steps[-1].bias) == 1
        self.coef_ = unit * (steps[-1].weights[0] if single else steps[-1].weights)
        self.intercept_: Any = midrange + unit * (float(steps[-1].bias[0]) if single else steps[-1].bias)
        if not weights.any():
            warn_of_empty_selection(self, problem, "lower sparsity or alpha")
        assert models.first_gradient is not None
        return _path_of_programs(steps, models.first_gradient, converged)

    def _check_solution(self, status: Status) -> None:
        if status is Status.INFEASIBLE:
            what = (
                "targets that a linear model meets up to epsilon"
                if self.epsilon_ is not None
                else "classes that a linear classifier can separate"
            )
            raise ValueError(
                f"FSV with sparsity=None needs {what}. That is not possible with these samples; "
                "set 'sparsity' to a number between 0 and 1."
            )
        if not status.converged:
            raise RuntimeError(f"FSV: a linear program was not solved. {status.describe()}")


# -- The programs of all classes, which share the costs of the features --


@dataclass(frozen=True, eq=False)
class _Step:
    """The solution of the programs: weights (programs × features) and their absolute values summed over programs."""

    weights: FloatArray
    bias: FloatArray
    size: FloatArray
    loss: float
    status: Status


class _SharedPrograms:
    """The linear programs: one for two classes or a regression, otherwise one for each class."""

    def __init__(self, problem: Problem, sparsity: float | None, epsilon: float | None, unit: float) -> None:
        self.n_features = problem.n_features
        self.rate = 1.0 if sparsity is None else float(sparsity)
        self.first_gradient: FloatArray | None = None  # of the first programs, summed over the classes
        # A program could share a weight between copies in any way: only the first copy is given to it.
        self.distinct = distinct_columns(first_copies(problem.design))
        design = problem.design.take(self.distinct)
        scaled_epsilon = None if epsilon is None else epsilon / unit
        self.costs = [_cost(problem, t, sparsity) for t in problem.target.columns().T]
        self.programs = [
            l1_svm_program(design, t / unit, C=cost, epsilon=scaled_epsilon)
            for t, cost in zip(np.ascontiguousarray(problem.target.columns().T), self.costs, strict=True)
        ]

    def solve(self, penalty: FloatArray) -> _Step:
        """Solve all programs for these costs of the features."""
        models = [program.solve(self.rate * penalty[self.distinct]) for program in self.programs]
        weights = np.zeros((len(models), self.n_features))
        weights[:, self.distinct] = [model.weights for model in models]
        if self.first_gradient is None:
            self.first_gradient = np.zeros(self.n_features)
            self.first_gradient[self.distinct] = np.sum([np.abs(model.gradient) for model in models], axis=0)
        loss = sum(
            float(cost[np.isfinite(cost)] @ model.slack[np.isfinite(cost)])
            for cost, model in zip(self.costs, models, strict=True)
        )
        return _Step(
            weights=weights,
            bias=np.array([model.bias for model in models]),
            size=np.abs(weights).sum(axis=0),
            loss=loss,
            status=max(model.status for model in models),
        )


class _JointProgram:
    """One linear program of all classes, with the constraints of Weston and Watkins."""

    def __init__(self, problem: Problem, sparsity: float | None) -> None:
        self.n_features = problem.n_features
        self.rate = 1.0 if sparsity is None else float(sparsity)
        self.first_gradient: FloatArray | None = None
        self.distinct = distinct_columns(first_copies(problem.design))
        self.design = problem.design.take(self.distinct)
        cost = _cost_within(problem, problem.y, sparsity)
        # The costs hold the sample weights already.
        costs = np.repeat(cost[:, None], problem.n_classes, axis=1)
        self.linear = replace(LinearProblem.jointly(problem, HingeLoss(), 1.0, norm="l1"), costs=costs)
        self.state: State | None = None

    def solve(self, penalty: FloatArray) -> _Step:
        """Solve the program for these costs of the features."""
        smallest = float(np.finfo(float).tiny)
        scale = 1.0 / np.maximum(self.rate * penalty[self.distinct], smallest)
        model = solve(replace(self.linear, scale=scale), self.design, self.state)
        self.state = model.state
        weights = np.zeros((self.linear.n_models, self.n_features))
        if model.status is Status.CONVERGED:
            weights[:, self.distinct] = model.weights.T
        if self.first_gradient is None:
            self.first_gradient = np.zeros(self.n_features)
            self.first_gradient[self.distinct] = np.abs(self.design.transpose_dot(model.dual_coef)).sum(
                axis=1
            )
        return _Step(
            weights=weights,
            bias=model.bias,
            size=np.abs(weights).sum(axis=0),
            loss=model.models[0].loss,
            status=model.status,
        )


def _cost(problem: Problem, target: FloatArray, sparsity: float | None) -> FloatArray:
    """Cost of an error of each sample: errors are averaged within each side, in regression over all samples."""
    side = np.zeros(problem.n_samples, dtype=np.intp)
    if problem.target.has_classes:
        side[target > 0.0] = 1
    return _cost_within(problem, side, sparsity)


def _cost_within(problem: Problem, part: IntArray, sparsity: float | None) -> FloatArray:
    """Cost of an error of each sample, so that errors are averaged within each part of the samples."""
    if sparsity is None:
        return np.full(problem.n_samples, np.inf)
    weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
    return np.asarray((1.0 - float(sparsity)) * weight / np.bincount(part, weights=weight)[part])


def _path_of_programs(steps: list[_Step], first_gradient: FloatArray, converged: bool) -> SelectionPath:
    """Path of the supports of all programs; a feature is scored by the last program in which it has a weight."""
    scores = 0.5 * relative(first_gradient)
    supports: list[IntArray] = []
    for level, step in enumerate(steps, start=1):
        support = np.flatnonzero(relative(step.size) > ZERO_WEIGHT)
        scores[support] = level + 0.5 * relative(step.size[support])
        supports.append(support)
    return SelectionPath.from_subsets(
        [support for support in supports if support.size],
        n_features=scores.size,
        tie_break=scores,
        scores=scores,
        selected_size=supports[-1].size,
        n_iter=len(steps),
        converged=converged,
        remedy="raise max_iter or loosen tol.",
    )
