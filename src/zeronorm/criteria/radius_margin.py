"""The radius/margin bound on the leave-one-out error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from zeronorm.criteria.base import Criterion, CriterionValue, FloatArray
from zeronorm.criteria.margin import Margin
from zeronorm.criteria.radius import Radius, Variance


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
