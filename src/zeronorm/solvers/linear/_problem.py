"""A linear problem, the state from which it is solved again, and its solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from zeronorm._types import BoolArray, FloatArray
from zeronorm.design import Design
from zeronorm.design._index import each, made_absolute
from zeronorm.selection._problem import Problem
from zeronorm.solvers._status import Ended, Status
from zeronorm.solvers.linear._losses import Loss
from zeronorm.solvers.linear._ways import Way

Norm = Literal["l2", "l1"]
Pairing = Literal["one_vs_rest", "one_vs_one"]


FREE = (
    1e4  # how much less a covariate costs than an error; with 1e6 pairwise steps in the dual hardly converge
)


def _basis(problem: Problem) -> FloatArray | None:
    return None if problem.adjust is None else problem.adjust.basis


@dataclass(frozen=True, eq=False)
class LinearProblem:
    r"""One or several linear models of the same features, each with a target and the cost of errors.

    .. math:: \min_{w_c, b_c}\ \tfrac12 \|w_c / z\|_2^2 + L(X w_c + b_c;\ y_c, C_c) \qquad\text{for each model } c,

    or :math:`\|w_c / z\|_1` for the ℓ1 norm.

    Attributes
    ----------
    targets, costs : one column for each model; a sample of cost zero has no influence.
    scale : the factors z of the features; None: all are one.
    joint : the models are the classes of one problem with a slack for each sample and each other class (Weston &
        Watkins 1999).
    covariates : columns Q with free weights v, which add Qv to the decision values; None: there are none. They are of
        variance one and uncorrelated.
    """

    loss: Loss
    targets: FloatArray
    costs: FloatArray
    norm: Norm = "l2"
    scale: FloatArray | None = None
    joint: bool = False
    covariates: FloatArray | None = None

    @classmethod
    def of(
        cls, problem: Problem, loss: Loss, C: float, *, pairing: str = "one_vs_rest", norm: Norm = "l2"
    ) -> LinearProblem:
        """One model for two classes, a regression or one label; for more classes one for each class or pair."""
        targets, involved = problem.target.model_columns(pairing)
        cost = np.broadcast_to(np.asarray(problem.sample_costs(C), dtype=np.float64), problem.n_samples)
        # Errors on samples of other classes cost nothing, so these samples have no influence.
        costs = np.where(involved, cost[:, None], 0.0)
        return cls(loss, targets, costs, norm, covariates=_basis(problem))

    @classmethod
    def jointly(cls, problem: Problem, loss: Loss, C: float | FloatArray, norm: Norm = "l2") -> LinearProblem:
        """One problem for all classes together."""
        targets = np.where(problem.y[:, None] == np.arange(problem.n_classes), 1.0, -1.0)
        cost = np.broadcast_to(problem.sample_costs(1.0) * np.asarray(C, dtype=np.float64), problem.n_samples)
        costs = np.repeat(cost[:, None], problem.n_classes, axis=1)
        return cls(loss, targets, costs, norm, joint=True, covariates=_basis(problem))

    @property
    def n_models(self) -> int:
        return int(self.targets.shape[1])

    def model(self, c: int) -> LinearProblem:
        """The problem of one model."""
        return replace(self, targets=self.targets[:, [c]], costs=self.costs[:, [c]])

    def covariate_factor(self, diagonal: float = 1.0) -> float:
        """The factor of the covariates that makes their weights practically free, as the ℓ2 norm divides by it.

        Relative to the errors, what it leaves of their gradient is about one over ``FREE``. With a hard margin, where
        errors have no cost, it follows the mean ``diagonal`` of the kernel.
        """
        paid = self.costs[(self.costs > 0.0) & np.isfinite(self.costs)]
        unit = float(np.abs(self.targets).max(initial=0.0)) if self.loss.has_kinks else 1.0
        return float(np.sqrt(FREE * max(unit, 1.0) / paid.mean() if paid.size else FREE * diagonal))

    def covariate_columns(self, diagonal: float = 1.0) -> FloatArray:
        """The covariates times their factor; no column where there are none."""
        if self.covariates is None:
            return np.empty((len(self.targets), 0))
        return self.covariate_factor(diagonal) * self.covariates

    def costlier(self, factor: float) -> LinearProblem:
        """The problem with all costs multiplied."""
        return self if factor == 1.0 else replace(self, costs=factor * self.costs)


@dataclass(frozen=True, eq=False)
class State:
    """Where the next solution starts: the last one, and what was computed for it.

    Attributes
    ----------
    bias : one number for each model.
    alpha : dual variables, one row for each model.
    dual_coef : coefficients of the samples, one column for each model.
    weights : weights of the features as they are, one column for each model; None: from ``dual_coef``.
    gram : the Gram matrix of the features, where it is updated from one problem to the next.
    programs : linear programs of a design with their last bases.
    """

    bias: FloatArray
    alpha: FloatArray | None = None
    dual_coef: FloatArray | None = None
    weights: FloatArray | None = None
    gram: FloatArray | None = None
    programs: Any = None

    def keep(self, kept: BoolArray) -> State:
        """The state after features were removed; dual variables belong to samples and stay."""
        return self if self.weights is None else replace(self, weights=self.weights[kept])

    def costlier(self, factor: float) -> State:
        """The state after all costs were multiplied: dual variables grow with their bounds."""
        if factor == 1.0 or self.alpha is None or self.dual_coef is None:
            return self
        return replace(self, alpha=factor * self.alpha, dual_coef=factor * self.dual_coef)


@dataclass(frozen=True, eq=False)
class Solution(Ended):
    """The models of a linear problem: decision values are ``X @ weights + bias``, one column for each model.

    Attributes
    ----------
    rescaled : the weights over the factors, w / z.
    models : the solution of each model by its solver, with objective and gap.
    state : where a similar problem starts.
    offset : what the covariates add to the decision values, one column for each model; None without covariates.
    """

    rescaled: FloatArray
    bias: FloatArray
    status: Status
    n_iter: int
    way: Way
    state: State
    models: Sequence[Any] = ()
    scale: FloatArray | None = field(default=None, repr=False)
    offset: FloatArray | None = field(default=None, repr=False)

    def decisions(self, design: Design) -> FloatArray:
        """The decision values of the samples that the problem was solved for, one column for each model."""
        found = design.dot(self.weights) + self.bias
        return np.asarray(found if self.offset is None else found + self.offset)

    @cached_property
    def weights(self) -> FloatArray:
        """The weights of the features as they are, one column for each model."""
        if self.scale is None:
            return self.rescaled
        if self.rescaled.shape[1] > 1:
            return self.scale[:, None] * self.rescaled
        return each(np.multiply, self.scale, self.rescaled[:, 0])[:, None]

    @property
    def dual_coef(self) -> FloatArray:
        """The coefficients of the samples, one column for each model: minus the gradient of the loss."""
        assert self.state.dual_coef is not None
        return self.state.dual_coef

    @property
    def objective(self) -> float:
        """The sum of the objectives of all models."""
        return float(sum(model.objective for model in self.models))

    @property
    def gap(self) -> float:
        """The sum of the duality gaps of all models."""
        return float(sum(model.gap for model in self.models))

    def absolute_weights(self) -> FloatArray:
        """The absolute weights over the factors, summed over models."""
        if self.rescaled.shape[1] > 1:
            return np.asarray(np.abs(self.rescaled).sum(axis=1))
        return made_absolute(self.rescaled[:, 0].copy())
