"""Optimise the scaling factors, discard features, optimise those of the others, and so on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.criteria import RadiusMargin, Summed, Variance
from zeronorm.engines.elimination.loop import count_to_remove
from zeronorm.engines.factor_descent.criterion import ScaledCriterion, is_zero, standing
from zeronorm.engines.factor_descent.curvature import (
    Derivatives,
    KernelChange,
    kernel_change,
    margin_derivatives,
    radius_derivatives,
    variance_derivatives,
)
from zeronorm.engines.factor_descent.descent import ConstantSum, Descent, Region, UnitBox, descend
from zeronorm.selection.path import SelectionPath, order_by_score
from zeronorm.selection.progress import Progress

# -- What each feature is worth once the scaling factors have been optimised, beyond its own factor --


Worth = Callable[[ScaledCriterion, FloatArray], FloatArray]


def removal_value(objective: ScaledCriterion, scale_sq: FloatArray) -> FloatArray:
    """The value of the criterion when each feature in turn is taken out and the machines are trained anew."""
    return objective.without(np.arange(scale_sq.size), scale_sq)


def curvature_saliency(objective: ScaledCriterion, scale_sq: FloatArray) -> FloatArray:
    r"""σ² ∂²(R²W²)/∂σ² at the given factors, summed over machines.

    With s = σ² it is :math:`4 s^2\,\partial^2 (R^2W^2)/\partial s^2 + 2 s\,\partial (R^2W^2)/\partial s`.
    """
    objective(scale_sq)
    saliency = np.empty(scale_sq.size)
    for columns, block in objective.design.iter_blocks():
        change = kernel_change(objective.kernel, objective.gram, objective.K, block)
        s = scale_sq[columns]
        saliency[columns] = sum(
            4.0 * s**2 * bound.second + 2.0 * s * bound.first for bound in _bounds(objective, change)
        )
    return saliency


def _bounds(objective: ScaledCriterion, change: KernelChange) -> list[Derivatives]:
    """R²W² with its derivatives, one for each machine."""
    assert isinstance(objective.criterion, Summed)
    assert isinstance(objective.criterion.criterion, RadiusMargin)
    assert objective.last is not None
    bound, K = objective.criterion.criterion, objective.K
    found = []
    for sphere, dual in objective.last.warm:
        if bound.spread == "radius":
            spread = radius_derivatives(sphere, K, bound.C, change)
        else:
            variance = Variance(bound.C).evaluate(K, objective.target[:, 0]).value
            spread = variance_derivatives(variance, change, K.shape[0])
        found.append(spread * margin_derivatives(dual, K, bound.C, change))
    return found


# How much a feature is worth, bigger is better. The third rule, the factor itself, needs no computation.
WORTH: dict[str, Worth] = {"removal": removal_value, "curvature": curvature_saliency}


@dataclass
class Discarding:
    """The rounds of optimising and discarding, and what they left behind.

    Parameters
    ----------
    rule, step : which features leave in each round and how many; without a step there is one round only.
    bounded : factors between 0 and 1 instead of a constant sum of squares.
    """

    rule: str
    step: int | float | None
    bounded: bool
    zero_tol: float
    tol: float
    max_iter: int
    eliminated: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    n_iter: int = 0
    remedy: str = ""
    first: Descent | None = None

    def run(self, objective: ScaledCriterion, progress: Progress) -> None:
        """All rounds, until one feature is left or a hard margin cannot do with fewer."""
        m = objective.design.n_features
        region: Region = UnitBox() if self.bounded else ConstantSum(float(m))
        alive, start = np.arange(m), np.ones(m)
        with progress.task("Discarding features", m) as advance:
            while True:
                found = self._optimise(objective, start, region)
                ranked, n_out = self._ranked(objective, found)
                self.eliminated.extend(int(k) for k in alive[ranked[:n_out]])
                advance(n_out)
                if n_out == alive.size:
                    break
                staying = np.sort(ranked[n_out:])
                start = found.point[staying] if self.bounded else m * _shares(found.point[staying])
                objective = objective.take(staying)
                if not np.isfinite(objective(start)[0]):
                    self.eliminated.extend(int(k) for k in alive[ranked[n_out:]])
                    break
                alive = alive[staying]

    def _optimise(self, objective: ScaledCriterion, start: FloatArray, region: Region) -> Descent:
        found = descend(objective, start, region, tol=self.tol, max_iter=self.max_iter)
        self.n_iter += found.n_iter
        self.remedy = self.remedy or found.remedy
        if not objective.converged:
            self.remedy = self.remedy or "the machines did not meet their tolerance; lower C or standardize."
        self.first = self.first or found
        self.sizes.append(int(np.count_nonzero(~is_zero(found.point, self.zero_tol))))
        self.values.append(found.value)
        return found

    def _ranked(self, objective: ScaledCriterion, found: Descent) -> tuple[IntArray, int]:
        """The features, the worst first, and how many leave: those without a factor, then the least worth."""
        place = standing(found.point, found.slope, self.zero_tol, top=1.0 if self.bounded else np.inf)
        by_scale = order_by_score(place)[::-1]
        zero = is_zero(found.point, self.zero_tol)[by_scale]
        gone, rest = by_scale[zero], by_scale[~zero]
        if self.rule in WORTH and rest.size > 1:
            columns = np.sort(rest)
            value = WORTH[self.rule](objective.take(columns), found.point[columns])
            rest = columns[order_by_score(value)[::-1]]
        n_out = rest.size
        if self.step is not None and rest.size > 1:
            n_out = min(count_to_remove(self.step, rest.size), rest.size - 1)
        return np.concatenate([gone, rest]), gone.size + n_out

    def path(self, varying: IntArray, scale: FloatArray) -> SelectionPath:
        """The path over all features; those that took no part come last."""
        left_out = np.setdiff1d(np.arange(scale.size), varying)
        eliminated = varying[np.asarray(self.eliminated, dtype=np.intp)]
        return SelectionPath.from_elimination(
            np.concatenate([left_out[::-1], eliminated]),
            scale=scale,
            sizes=self.sizes,
            objective=np.asarray(self.values),
            own_size=self.sizes[0],
            n_iter=self.n_iter,
            converged=self.remedy == "",
            remedy=self.remedy,
        )


def _shares(scale_sq: FloatArray) -> FloatArray:
    return np.asarray(scale_sq / scale_sq.sum())
