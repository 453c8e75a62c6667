"""The margin of a support vector machine, the radius of the data, and their ratio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.criteria._base import Criterion, CriterionValue, FactoredMatrix, with_ridge
from zeronorm.solvers._geometry import solve_enclosing_sphere
from zeronorm.solvers._status import Status
from zeronorm.solvers.svm._dual import SvmDual, solve_svm_dual


@dataclass(frozen=True)
class Margin(Criterion):
    r"""Squared norm of the weight vector with squared slacks,

    .. math:: W^2(K) = \max_\alpha\ 2\sum_i \alpha_i - v^\top (K + I/C) v, \qquad v = \alpha \circ y.

    By the envelope theorem its gradient is :math:`-v v^\top`: the change of the solution with K has no effect.
    """

    C: float = np.inf
    tol: float = 1e-8

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        dual = self.solve(K, y, warm)
        v = dual.dual_coef
        slope = FactoredMatrix(np.zeros(v.size), v[:, None], np.array([-1.0]))
        return CriterionValue.from_factors(2.0 * dual.objective, slope, dual, dual.status.as_good_as_it_gets)

    def solve(self, K: FloatArray, y: FloatArray, warm: SvmDual | None = None) -> SvmDual:
        """The dual solution of the SVM; a hard margin on inseparable data raises an error that names the remedy."""
        dual = solve_svm_dual(K, y, C=self.C, loss="squared_hinge", warm_start=warm, tol=self.tol)
        if dual.status is Status.UNBOUNDED:
            dual.status.check("The margin of a support vector machine")
        return dual


# -- The objective of a support vector machine with the hinge loss --


@dataclass(frozen=True, eq=False)
class SoftMargin(Criterion):
    r"""The minimum of the objective of an SVM with the hinge loss, computed from its dual:

    .. math:: \max_\alpha\ \sum_i \alpha_i - \tfrac12 v^\top K v, \qquad v = \alpha \circ y,
        \quad 0 \le \alpha_i \le C_i, \quad \sum_i v_i = 0.

    By the envelope theorem its gradient is :math:`-\tfrac12 v v^\top`. As a maximum of linear functions of K it is
    convex in K. ``C`` is one cost for all samples or one for each sample.
    """

    C: float | FloatArray = 1.0
    tol: float = 1e-8

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        dual = solve_svm_dual(K, y, C=self.C, loss="hinge", warm_start=warm, tol=self.tol)
        if dual.status is Status.UNBOUNDED:
            dual.status.check("A support vector machine with a hard margin")
        v = dual.dual_coef
        slope = FactoredMatrix(np.zeros(v.size), v[:, None], np.array([-0.5]))
        return CriterionValue.from_factors(dual.objective, slope, dual, dual.status.as_good_as_it_gets)


# -- The radius/margin bound on the leave-one-out error --


# -- The extent of the samples in feature space: radius of the smallest sphere, or variance --


@dataclass(frozen=True)
class Radius(Criterion):
    r"""Squared radius of the smallest enclosing sphere, with gradient :math:`\mathrm{diag}(\beta) - \beta\beta^\top`.

    With squared slacks of cost C it is the sphere for K + I/C.
    """

    C: float = np.inf
    tol: float = 1e-8

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        sphere = solve_enclosing_sphere(with_ridge(K, self.C), warm_start=warm, tol=self.tol)
        slope = FactoredMatrix(sphere.beta, sphere.beta[:, None], np.array([-1.0]))
        return CriterionValue.from_factors(sphere.radius_sq, slope, sphere, sphere.status.as_good_as_it_gets)


@dataclass(frozen=True)
class Variance(Criterion):
    r"""Mean squared distance from the mean (Lal et al. 2006, eq. 17), a smooth substitute for the radius:

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
    scale: Literal["radius", "variance"] = "radius"
    tol: float = 1e-8

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        warm_scale, warm_margin = warm if warm is not None else (None, None)
        scale_criterion = Radius(self.C, self.tol) if self.scale == "radius" else Variance(self.C)
        scale = scale_criterion.evaluate(K, y, warm_scale)
        margin = Margin(self.C, self.tol).evaluate(K, y, warm_margin)
        assert scale.factored is not None
        assert margin.factored is not None
        return CriterionValue.from_factors(
            scale.value * margin.value,
            margin.value * scale.factored + scale.value * margin.factored,
            (scale.warm, margin.warm),
            scale.converged and margin.converged,
        )
