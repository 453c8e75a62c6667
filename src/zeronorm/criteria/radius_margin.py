"""The radius/margin bound on the leave-one-out error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.criteria.base import Criterion, CriterionValue, FactoredMatrix, with_ridge
from zeronorm.criteria.margin import Margin
from zeronorm.solvers.enclosing_sphere import solve_enclosing_sphere

# -- The spread of the samples in feature space: radius of the smallest sphere, or variance --


@dataclass(frozen=True)
class Radius(Criterion):
    r"""Squared radius of the smallest enclosing sphere, with gradient :math:`\mathrm{diag}(\beta) - \beta\beta^\top`.

    With squared slacks of cost C the sphere is that of K + I/C.
    """

    C: float = np.inf
    tol: float = 1e-8

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        sphere = solve_enclosing_sphere(with_ridge(K, self.C), warm_start=warm, tol=self.tol)
        slope = FactoredMatrix(sphere.beta, sphere.beta[:, None], np.array([-1.0]))
        return CriterionValue.from_factors(sphere.radius_sq, slope, sphere, sphere.status.as_good_as_it_gets)


@dataclass(frozen=True)
class Variance(Criterion):
    r"""Mean squared distance from the mean (Lal et al. 2006, eq. 17), a smooth stand-in for the radius:

    .. math:: V = \frac1n \sum_k K_{kk} - \frac{1}{n^2} \sum_{kl} K_{kl}.
    """

    C: float = np.inf

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        n = K.shape[0]
        value = float(np.trace(K)) / n - float(K.sum()) / n**2
        if np.isfinite(self.C):
            value += (1.0 - 1.0 / n) / self.C
        slope = FactoredMatrix(np.full(n, 1.0 / n), np.full((n, 1), 1.0 / n), np.array([-1.0]))
        return CriterionValue.from_factors(value, slope, None)


@dataclass(frozen=True)
class RadiusMargin(Criterion):
    r"""R²‖w‖² (Lal et al. 2006, eqs. 14 and 16), with the radius or the variance as R².

    .. math:: \frac{\partial (R^2 W^2)}{\partial K} =
        W^2 \frac{\partial R^2}{\partial K} + R^2 \frac{\partial W^2}{\partial K}
    """

    C: float = np.inf
    spread: Literal["radius", "variance"] = "radius"
    tol: float = 1e-8

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        warm_spread, warm_margin = warm if warm is not None else (None, None)
        spread_criterion = Radius(self.C, self.tol) if self.spread == "radius" else Variance(self.C)
        spread = spread_criterion.evaluate(K, y, warm_spread)
        margin = Margin(self.C, self.tol).evaluate(K, y, warm_margin)
        assert spread.factored is not None
        assert margin.factored is not None
        return CriterionValue.from_factors(
            spread.value * margin.value,
            margin.value * spread.factored + spread.value * margin.factored,
            (spread.warm, margin.warm),
            spread.converged and margin.converged,
        )
