"""The inverse squared margin of a support vector machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.criteria.base import Criterion, CriterionValue, FactoredMatrix
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm.dual import SvmDual, solve_svm_dual


@dataclass(frozen=True)
class Margin(Criterion):
    r"""Squared norm of the weight vector with squared slacks,

    .. math:: W^2(K) = \max_\alpha\ 2\sum_i \alpha_i - v^\top (K + I/C) v, \qquad v = \alpha \circ y.

    By the envelope theorem its gradient is :math:`-v v^\top`: the change of the solution does not count.
    """

    C: float = np.inf
    tol: float = 1e-8

    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        dual = self.solve(K, y, warm)
        v = dual.dual_coef
        slope = FactoredMatrix(np.zeros(v.size), v[:, None], np.array([-1.0]))
        return CriterionValue.from_factors(2.0 * dual.objective, slope, dual, dual.status.as_good_as_it_gets)

    def solve(self, K: FloatArray, y: FloatArray, warm: SvmDual | None = None) -> SvmDual:
        """The machine; a hard margin on inseparable data is an error with the remedy."""
        dual = solve_svm_dual(K, y, C=self.C, loss="squared_hinge", warm_start=warm, tol=self.tol)
        if dual.status is Status.UNBOUNDED:
            dual.status.check("The margin of a support vector machine")
        return dual


# -- The objective of a support vector machine with the hinge loss --


@dataclass(frozen=True, eq=False)
class SoftMargin(Criterion):
    r"""The smallest objective of a machine with the hinge loss, through its dual:

    .. math:: \max_\alpha\ \sum_i \alpha_i - \tfrac12 v^\top K v, \qquad v = \alpha \circ y,
        \quad 0 \le \alpha_i \le C_i, \quad \sum_i v_i = 0.

    By the envelope theorem its gradient is :math:`-\tfrac12 v v^\top`. As the largest of linear functions of K it
    is convex in K. ``C`` is one price for all samples or one for each.
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
