"""Grafting: grow a penalised linear model by the feature with the largest gradient."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.design import Design
from zeronorm.registry import register
from zeronorm.selection._kinds import choice, exceptions, parameter_error
from zeronorm.selection._path import TIE_TOLERANCE, SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import TimeToEvent
from zeronorm.selectors._base import WeightedSelector
from zeronorm.selectors._requirements import require_for_survival
from zeronorm.solvers.linear import Loss, loss_for
from zeronorm.solvers.linear._losses import LOSS_NAME, LOSSES
from zeronorm.solvers.linear._working_set import PenalizedLoss, WorkingSetSolution, solve_working_set


@register(
    "grafting",
    family="greedy",
    tasks=("binary", "regression", "survival"),
    reference="Perkins, Lacker & Theiler 2003; Lal et al. 2006, eq. 12",
    cost="n p for each feature that enters, and small fits",
    oracle="a convex solver, the elastic net, exhaustive search",
    avoid="penalties of unknown size; several classes",
    misprints="The chapter prints the two-norm in eq. 12 without its square.",
    test_params=(
        {},
        {"task": "regression", "penalty_l0": 1e-3},
        {"loss": "squared_hinge", "penalty_l1": 0.02, "penalty_l2": 0.01},
        {"task": "survival"},
    ),
)
class Grafting(WeightedSelector):
    r"""Grow a linear model by the weight with the largest gradient, and refit all weights each time.

    .. math:: \min_{w, b} \frac1n \sum_i L(w \cdot x_i + b, y_i)
              + \lambda_2 \|w\|_2^2 + \lambda_1 \|w\|_1 + \lambda_0 \|w\|_0

    All weights start at zero. The feature with the largest :math:`|\partial \text{loss} / \partial w_j|` joins the
    working set if that exceeds :math:`\lambda_1`; otherwise a step from zero would lower the loss by less than the
    penalty it adds. The problem is then solved to convergence over the working set, from which weights that have become
    zero are removed. The feature is kept if the objective decreases by more than its cost :math:`\lambda_0`, else the
    search ends. With :math:`\lambda_0 = 0` the result is the solution of the whole convex problem, reached without ever
    fitting more than the working set.

    Losses: :math:`\frac12 (f - y)^2` (squared), :math:`\log(1 + e^{-yf})` (logistic) and
    :math:`\frac12 \max(0, 1 - yf)^2` (squared hinge); labels are ±1 and the bias is not penalised. The
    chapter prints the two-norm in eq. 12 without its square.

    Use it when the penalties are known or to be tuned, and p is large: only the gradient uses all
    columns. The path holds the working sets; larger sizes are filled with the features of the largest
    gradient.

    Parameters
    ----------
    n_features_to_select
        None: as many as the penalties allow. A count ends the search at that size.
    loss
        "squared_error", "logistic", "squared_hinge", or the name of a loss entered with ``register_loss``. "auto"
        is "logistic" for classes, "squared_error" for regression and Cox's partial likelihood for survival.
    task
        "survival" trains Cox models by the partial likelihood, with Efron's ties and without intercept.
    tol
        Largest remaining derivative, relative to the largest derivative at zero weights.
    max_iter
        One iteration tries one feature.

    Attributes
    ----------
    coef_ : ndarray
        Weights of the last model, for standardised columns.
    intercept_ : float or ndarray
        Intercept of the last model, for standardised columns.
    objective_ : float or ndarray
        The objective after each step.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import Grafting
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = Grafting(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _linear_loss = "logistic"

    _parameter_exceptions = exceptions(loss=(choice("auto") | LOSS_NAME, "losses can be added"))

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        loss: str = "auto",
        penalty_l0: float = 0.0,
        penalty_l1: float = 0.05,
        penalty_l2: float = 0.0,
        task: Literal["classification", "regression", "survival"] = "classification",
        standardize: bool = True,
        tol: float = 1e-8,
        max_iter: int = 10_000,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.loss = loss
        self.penalty_l0 = penalty_l0
        self.penalty_l1 = penalty_l1
        self.penalty_l2 = penalty_l2
        self.task = task
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        objective = self._objective(problem.around_zero())
        growth = _Growth(problem.design, objective, float(self.penalty_l0), float(self.tol))
        size = problem.n_features_to_select or problem.n_features
        with problem.progress.task("Grafting") as advance:
            for _ in range(self.max_iter):
                if len(growth.active) >= size or not growth.step():
                    break
                advance(1)
            else:
                growth.converged = False
        self.coef_ = growth.full_weights()
        self.intercept_ = growth.model.bias + problem.target.midrange
        self.objective_ = np.asarray(growth.values)
        return growth.path()

    def _check_parameters(self) -> None:
        require_for_survival(self, loss="auto")
        if self.loss == "auto" or self._target_type().has_classes:
            return
        if LOSSES[self.loss].for_classes_only:
            raise parameter_error(
                self, "loss", "'auto', 'squared_error' or another loss of real numbers for task='regression'"
            )

    def _objective(self, problem: Problem) -> PenalizedLoss:
        name = problem.target.smooth_loss if self.loss == "auto" else self.loss
        is_survival = isinstance(problem.target, TimeToEvent)
        loss: Loss = loss_for(problem.target, name) if is_survival else LOSSES[name]
        weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
        share = weight / weight.sum()
        y = problem.target.columns()[:, 0]
        return PenalizedLoss(loss, y, share, float(self.penalty_l1), float(self.penalty_l2))


class _Growth:
    """A linear model that grows one feature at a time."""

    def __init__(self, design: Design, objective: PenalizedLoss, penalty_l0: float, tol: float) -> None:
        self.design = design
        self.objective = objective
        self.penalty_l0 = penalty_l0
        self.active: list[int] = []
        self.columns = np.empty((design.n_samples, 0), order="F")
        nothing = np.empty(0)
        is_of_numbers = objective.loss.has_bias and not objective.loss.for_classes_only
        start = float(objective.share @ objective.y) if is_of_numbers else 0.0
        self.model = solve_working_set(self.columns, objective, nothing, start, nothing, tol)
        self.gradient = self._gradient()
        self.tol = tol * max(float(np.abs(self.gradient).max()), 1e-300)
        self.subsets: list[list[int]] = []
        self.values: list[float] = []
        self.converged = self.model.converged

    def step(self) -> bool:
        """Try the feature with the largest gradient; returns False when the search has ended."""
        size = np.abs(self.gradient)
        size[self.active] = 0.0
        highest = float(size.max())
        if highest <= self.objective.penalty_l1 + self.tol:
            return False
        best = int(np.argmax(size >= highest - TIE_TOLERANCE * highest))
        columns = np.column_stack([self.columns, self.design.block([best])])
        trial = solve_working_set(
            columns,
            self.objective,
            np.append(self.model.w, 0.0),
            self.model.bias,
            np.append(np.sign(self.model.w), -np.sign(self.gradient[best])),
            self.tol,
        )
        if not self._pays(trial):
            return False
        kept = np.flatnonzero(trial.w)
        self.active = [[*self.active, best][i] for i in kept]
        self.columns = np.asfortranarray(columns[:, kept])
        self.model = _restricted(trial, kept)
        self.converged = self.converged and trial.converged
        self.gradient = self._gradient()
        self.subsets.append(list(self.active))
        self.values.append(self._total(self.model))
        return True

    def _pays(self, trial: WorkingSetSolution) -> bool:
        return self._total(trial) < self._total(self.model)

    def _total(self, model: WorkingSetSolution) -> float:
        return model.value + self.penalty_l0 * int(np.count_nonzero(model.w))

    def _gradient(self) -> FloatArray:
        return self.design.transpose_dot(self.objective.slope(self.model.f))

    def full_weights(self) -> FloatArray:
        """Weights of all features."""
        weights = np.zeros(self.design.n_features)
        weights[self.active] = self.model.w
        return weights

    def path(self) -> SelectionPath:
        """The path of visited working sets; other features follow by their gradient."""
        gradient = np.abs(self.gradient)
        rest = gradient / max(float(gradient.max()), 1e-300)
        rest[self.active] = 1.0 + np.abs(self.model.w) / max(
            float(np.abs(self.model.w).max(initial=0.0)), 1e-300
        )
        return SelectionPath.from_subsets(
            self.subsets,
            n_features=self.design.n_features,
            tie_break=rest,
            objective=np.asarray(self.values),
            selected_size=len(self.active),
            n_iter=max(1, len(self.subsets)),
            converged=self.converged,
            remedy="raise penalty_l1 or penalty_l2 (the weights may be unbounded), max_iter, or tol.",
        )


def _restricted(model: WorkingSetSolution, kept: NDArray[np.intp]) -> WorkingSetSolution:
    return WorkingSetSolution(model.w[kept], model.bias, model.f, model.value, model.converged)
