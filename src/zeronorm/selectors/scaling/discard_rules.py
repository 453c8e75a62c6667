"""What each feature is worth once the scaling factors have been optimised, beyond its own factor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from zeronorm.criteria import RadiusMargin, Summed, Variance
from zeronorm.selectors.scaling.curvature import (
    Derivatives,
    KernelChange,
    kernel_change,
    margin_derivatives,
    radius_derivatives,
    variance_derivatives,
)
from zeronorm.selectors.scaling.scaled_criterion import ScaledCriterion

FloatArray = NDArray[np.float64]
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
