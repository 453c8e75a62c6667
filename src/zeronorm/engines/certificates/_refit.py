"""The best model on given features: an upper bound of the best objective, with the dual point of this subset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import as_design
from zeronorm.engines.certificates._bounds import UNIT_ROUNDOFF, CompetingUnits, Objective
from zeronorm.engines.certificates._relaxation import Relaxation, Start
from zeronorm.solvers.linear import HingeLoss, LinearProblem, Way, solve

NEWTON_STEPS = 100
DECREMENT = 1e-15  # predicted decrease, relative to the objective, at which Newton's method ends
HALVINGS = 40
SVM_TOLERANCE = 1e-10
PRECISION_AT_BOUND = 1e-9  # relative, of a model whose weights reach their bound


@dataclass(frozen=True, eq=False)
class Refit:
    """The model on ``columns``: weights (features × models), bias, objective, and dual variables (samples × models).

    ``objective`` is rounded up.
    """

    columns: IntArray
    weights: FloatArray
    bias: FloatArray
    objective: float
    alpha: FloatArray


def trained(relaxation: Relaxation, columns: IntArray) -> Refit:
    """The best model on whole units with no weight above the bound of the objective."""
    objective, units = relaxation.objective, relaxation.units
    free = refit(objective, columns)
    if not np.isfinite(objective.max_weight):
        return free
    sums = np.bincount(units.code[columns], np.sum(free.weights**2, axis=1), units.sizes.size)
    excess = np.sqrt(sums / units.sizes) / objective.max_weight
    if excess.max() <= 1.0:
        return free
    inside = np.isin(np.arange(units.sizes.size), units.code[columns])
    family = CompetingUnits(units, columns.size, inside, np.zeros_like(inside))
    weights = free.weights / np.maximum(excess, 1.0)[units.code[columns], None]
    start = Start(np.flatnonzero(inside), columns, weights, free.bias, 1.0, np.zeros_like(free.alpha))
    found = relaxation.solve(family, start, tol=PRECISION_AT_BOUND)
    X, weights, bias = objective.design.block(columns), found.weights[np.argsort(found.columns)], found.bias
    if relaxation.store.keeps_gram:  # its columns are centred
        bias = objective.cost @ (objective.targets - X @ weights) / objective.cost.sum()
    return Refit(columns, weights, bias, _rounded_up(objective, X, weights, bias), found.dual.alpha)


def refit(objective: Objective, columns: IntArray) -> Refit:
    """Minimise the objective over weights of these columns and the bias, whatever the bound of the weights."""
    X = objective.design.block(columns)
    if objective.loss.is_smooth:
        found = [_newton(objective, X, c) for c in range(objective.targets.shape[1])]
        weights = np.stack([w for w, _ in found], axis=1)
        bias = np.array([b for _, b in found])
        alpha = objective.dual_at(X @ weights + bias)
    else:
        weights, bias, alpha = _svms(objective, X)
    return Refit(columns, weights, bias, _rounded_up(objective, X, weights, bias), alpha)


def _rounded_up(objective: Objective, X: FloatArray, weights: FloatArray, bias: FloatArray) -> float:
    # Rounding of the decision values changes each loss by at most its largest slope times their error; one unit of
    # roundoff per feature and sample is more than all of it.
    error = (len(X) + len(weights) + 8) * UNIT_ROUNDOFF
    return objective.value(X @ weights + bias, weights) * (1.0 + 4.0 * error)


def _newton(objective: Objective, X: FloatArray, model: int) -> tuple[FloatArray, float]:
    loss, cost, y = objective.loss, objective.cost, objective.targets[:, model]
    columns = np.column_stack([X, np.ones(len(X))])
    ridge = np.append(np.ones(X.shape[1]), 0.0)
    coef = np.zeros(ridge.size)

    def value(coef: FloatArray) -> float:
        return 0.5 * float(coef[:-1] @ coef[:-1]) + float(cost @ loss.value(columns @ coef, y))

    before = value(coef)
    for _ in range(NEWTON_STEPS):
        decisions = columns @ coef
        gradient = columns.T @ (cost * loss.slope(decisions, y)) + ridge * coef
        curvature = cost * loss.curvature(decisions, y)
        hessian = (columns.T * curvature) @ columns + np.diag(ridge)
        hessian[-1, -1] += 1e-12 * max(float(np.trace(hessian)), 1e-300)
        step = -cho_solve(cho_factor(hessian), gradient)
        decrease = -float(gradient @ step)
        length = 1.0
        for _ in range(HALVINGS):
            after = value(coef + length * step)
            if after <= before - 1e-4 * length * decrease or decrease <= 1e-12 * before:
                break
            length *= 0.5
        coef, before = coef + length * step, after
        if decrease <= DECREMENT * abs(before):
            break
    return coef[:-1], float(coef[-1])


def _svms(objective: Objective, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    if X.shape[1] == 0:
        return _majority(objective)
    costs = np.repeat(objective.cost[:, None], objective.targets.shape[1], axis=1)
    found = solve(
        LinearProblem(HingeLoss(), objective.targets, costs), as_design(X), tol=SVM_TOLERANCE, way=Way.PRIMAL
    )
    return found.weights, found.bias, found.dual_coef


def _majority(objective: Objective) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Hinge losses without features: every sample has the decision value of the larger class."""
    bias = np.where(objective.cost @ objective.targets >= 0.0, 1.0, -1.0)
    alpha = objective.cost[:, None] * objective.targets  # balanced by the caller
    return np.empty((0, bias.size)), bias, alpha
