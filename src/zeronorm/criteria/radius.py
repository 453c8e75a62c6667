"""The spread of the samples in feature space: radius of the smallest sphere, or variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm.criteria.base import Criterion, CriterionValue, FactoredMatrix, FloatArray, with_ridge
from zeronorm.solvers.enclosing_sphere import solve_enclosing_sphere


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
