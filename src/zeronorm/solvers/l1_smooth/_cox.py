r"""Cox's model with an ℓ1 penalty: Newton's method for the partial likelihood on a growing set of features.

.. math:: \min_w\ -\tfrac1n \ell(w) + \sum_k \lambda_k |w_k|

On the features that have a weight, or violate the optimality conditions, the likelihood is replaced by its quadratic
model, whose matrix of second derivatives is computed in O(n) for each feature and O(events) for each pair. Coordinate
descent on this matrix minimises the model with the penalty.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from zeronorm._types import FloatArray
from zeronorm.design import Design
from zeronorm.selection._problem import Problem
from zeronorm.solvers._lasso import descend_coordinates
from zeronorm.solvers.l1_smooth._coupled import CoupledModels, sample_shares, with_covariates
from zeronorm.solvers.l1_smooth._model import L1Model
from zeronorm.solvers.l1_smooth._working_set import WorkingSet
from zeronorm.solvers.linear._cox import RiskSets, Ties, risk_sets
from zeronorm.solvers.linear._survival import PreparedLoss, Strata

MOST_CROSSINGS = 3  # of zero, before coordinate descent finds the signs again
MOST_ROUNDS, EPOCHS = 100, 100  # solutions for given signs, and epochs of descent before each of them
LEAST_CURVATURE = 1e-12  # relative to the largest: keeps weights finite along which the likelihood is flat


class L1Cox(L1Model):
    """The problem for one set of times and events; the weights of ``sets`` sum to one."""

    def __init__(self, design: Design, sets: Strata[RiskSets], tol: float, n_free: int = 0) -> None:
        self._sets = PreparedLoss(sets)
        super().__init__(design, 0.0, tol, n_free)

    def _loss(self, f: FloatArray) -> float:
        return self._sets.at(f).total()

    def _slope(self, f: FloatArray) -> FloatArray:
        return -self._sets.at(f).gradient()

    def _quadratic_step(
        self,
        part: WorkingSet,
        f: FloatArray,
        slope: FloatArray,
        w: FloatArray,
        penalty: FloatArray,
        tol: float,
    ) -> tuple[FloatArray, float]:
        if w.size == 0:
            return w, 0.0
        products = self._sets.at(f).sandwich(part.X.block(slice(None)))
        products.flat[:: w.size + 1] += LEAST_CURVATURE * float(np.diagonal(products).max())
        goal = (part.X.transpose_dot(slope) + products @ w) / penalty
        products /= np.outer(penalty, penalty)
        weights = w * penalty
        minimise_with_unit_penalty(products, goal, weights, tol / float(penalty.max()))
        return np.asarray(weights / penalty), 0.0


def minimise_with_unit_penalty(Q: FloatArray, q: FloatArray, a: FloatArray, tol: float) -> None:
    """Minimise a'Qa/2 - q'a + |a|; ``a`` is start and result.

    A few epochs of coordinate descent find the signs of the solution, or nearly so. The equations for these signs are
    then solved at once, because descent alone is slow where columns are correlated.
    """
    for _ in range(MOST_ROUNDS):
        if descend_coordinates(Q, q, 1.0, np.inf, a, tol, EPOCHS) > 0:
            return
        _solve_for_signs(Q, q, a)


def _solve_for_signs(Q: FloatArray, q: FloatArray, a: FloatArray) -> None:
    """Move to the minimum for the present signs; a number that reaches zero on the way there stays zero."""
    active = np.flatnonzero(a)
    for _ in range(MOST_CROSSINGS):
        try:
            factor = cho_factor(Q[np.ix_(active, active)], check_finite=False)
        except LinAlgError:
            return
        here = a[active]
        step = cho_solve(factor, q[active] - np.sign(here), check_finite=False) - here
        crossing = np.divide(-here, step, out=np.full(active.size, np.inf), where=here * step < 0.0)
        length = float(crossing.min())
        if length >= 1.0:
            a[active] = here + step
            return
        a[active] = np.where(crossing <= length, 0.0, here + length * step)
        active = active[crossing > length]
        if not active.size:
            return


class CoupledCox(CoupledModels):
    """One Cox model, to be solved for descending penalties."""

    def __init__(self, problem: Problem, ties: Ties, tol: float) -> None:
        design, n_free = with_covariates(problem)
        sets = risk_sets(problem.target.values, sample_shares(problem), ties)
        super().__init__([L1Cox(design, sets, tol, n_free)])
