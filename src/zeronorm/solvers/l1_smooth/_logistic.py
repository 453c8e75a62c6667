r"""Logistic regression with an ℓ1 penalty on the weights:

.. math:: \min_{w, b}\ \sum_i s_i \log(1 + e^{-y_i (w \cdot x_i + b)}) + \sum_k \lambda_k |w_k|, \qquad \sum_i s_i = 1.
"""

from __future__ import annotations

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.design import Design
from zeronorm.selection._problem import Problem
from zeronorm.solvers.l1_smooth._coupled import CoupledModels, sample_shares, with_covariates
from zeronorm.solvers.l1_smooth._model import L1Model
from zeronorm.solvers.l1_smooth._working_set import WorkingSet, weighted_lasso
from zeronorm.solvers.linear._losses import LOSSES

LOSS = LOSSES["logistic"]
SMALLEST_CURVATURE = 1e-9


class L1Logistic(L1Model):
    """The problem for one classifier.

    Parameters
    ----------
    sign : labels, -1 and +1.
    share : weight of each sample; they sum to one.
    """

    def __init__(
        self, design: Design, sign: FloatArray, share: FloatArray, tol: float, n_free: int = 0
    ) -> None:
        self.sign = sign
        self.share = share
        positive = float(share[sign > 0].sum())
        super().__init__(design, float(np.log(positive / (1.0 - positive))), tol, n_free)

    def _loss(self, f: FloatArray) -> float:
        return float(self.share @ LOSS.value(f, self.sign))

    def _slope(self, f: FloatArray) -> FloatArray:
        return -self.share * LOSS.slope(f, self.sign)

    def _quadratic_step(
        self,
        part: WorkingSet,
        f: FloatArray,
        slope: FloatArray,
        w: FloatArray,
        penalty: FloatArray,
        tol: float,
    ) -> tuple[FloatArray, float]:
        curvature = np.maximum(self.share * LOSS.curvature(f, self.sign), SMALLEST_CURVATURE * self.share)
        response = f + slope / curvature
        response_mean = np.average(response, weights=curvature)
        if w.size == 0:
            return w, float(response_mean)
        mean = part.X.transpose_dot(curvature) / curvature.sum()
        solution = weighted_lasso(part, curvature, mean, response - response_mean, penalty, w, tol)
        return solution, float(response_mean - mean @ solution)


class CoupledLogistic(CoupledModels):
    """A logistic model, or one for each class."""

    def __init__(self, problem: Problem, tol: float) -> None:
        share, targets = sample_shares(problem), np.ascontiguousarray(problem.target.columns().T)
        design, n_free = with_covariates(problem)
        super().__init__([L1Logistic(design, sign, share, tol, n_free) for sign in targets])
