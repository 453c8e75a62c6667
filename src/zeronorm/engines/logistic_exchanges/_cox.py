# mypy: allow-untyped-defs
r"""Cox models on subsets of the features.

With the samples at risk :math:`R_k` at event k and weights v, and :math:`o_j = v_j e^{x_j \cdot w}`, the objective is

.. math:: \sum_k v_k \Bigl[\log \sum_{j \in R_k} o_j - \log o_k\Bigr] + \tfrac{\lambda}{2} \|w\|^2,

with Efron's treatment of tied events. It differs by a constant from the negative partial likelihood, and is not
negative. Its gradient and Hessian need the sums of o, ox and oxx' over the samples at risk, which grow from the latest
time on.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import FloatArray
from zeronorm.design import Design
from zeronorm.engines.logistic_exchanges._candidates import Candidates, SparseCandidates
from zeronorm.engines.logistic_exchanges._kernels import ARMIJO, GAIN_ROUNDING, SMALLEST_STEP, solve_in_place
from zeronorm.engines.logistic_exchanges._subsets import (
    FIT_STEPS,
    FIT_TOLERANCE,
    Expansion,
    SubsetFit,
    Subsets,
    pseudo_inverses,
)
from zeronorm.solvers.linear._cox import RiskSets


class CoxSubsets(Subsets):
    """Cox models on subsets; their bias, which has no effect, is zero."""

    def __init__(self, design: Design, sets: RiskSets, ridge: float) -> None:
        super().__init__(design, sets.weight, ridge)
        self.sets = sets

    @property
    def information(self) -> float:
        return float(self.weight[self.sets.event].sum())

    def part(self, n_samples: int) -> CoxSubsets:
        """All events are drawn with one chance, and all censored samples with another."""
        rows, weight = self._drawn(self.sets.event.astype(np.intp), n_samples)
        return CoxSubsets(self.design.take_rows(rows), self.sets.take(rows, weight), self.ridge)

    def _minimise(self, rows: FloatArray, start: FloatArray, goal: float) -> tuple[float, int]:
        sets = self.sets
        samples = np.ascontiguousarray(rows[:-1, sets.order].T)
        known = sets.log_weight, sets.start, sets.n_tied, sets.share, sets.event_weight
        weight = sets.weight[sets.order]
        return cast(
            "tuple[float, int]",
            fit_cox(samples, weight, *known, self.ridge, start[0, :-1], FIT_TOLERANCE, FIT_STEPS, goal),
        )

    def residuals(self, fit: SubsetFit, own: FloatArray) -> FloatArray:
        return -self.sets.at(fit.coef[0] @ own).gradient()[None]

    def expand(self, fit: SubsetFit, own: FloatArray) -> Expansion:
        here, size = self.sets.at(fit.coef[0] @ own), fit.size
        weighted, inverse = np.zeros((1, *own.shape)), np.zeros((1, size + 1, size + 1))
        if size:
            weighted[0, :-1] = here.product(own[:-1].T).T
            # Constants have no second derivative: the bias takes no part.
            inverse[:, :-1, :-1] = pseudo_inverses(weighted[:, :-1] @ own[:-1].T, self.ridge, size)

        def bends(candidates: Candidates | SparseCandidates) -> FloatArray:
            return np.concatenate([here.diagonal(part.T) for part in candidates.parts()])[None]

        return Expansion(-here.gradient()[None], weighted, inverse, bends)


@kernel
def expand_cox(
    samples, weight, log_weight, start, n_tied, share, event_weight, ridge, w, with_hessian, H, gradient
):
    """The objective at ``w``, the negative gradient and optionally the lower triangle of the Hessian.

    Arrays of samples are by rank of the times; the others are those of ``RiskSets``.
    """
    n, size = samples.shape
    log_odds = log_weight.copy()
    for i in range(n):
        for j in range(size):
            log_odds[i] += w[j] * samples[i, j]
    at_risk, tied = np.zeros((size + 1, size + 1)), np.zeros((size + 1, size + 1))  # sums of o (x, 1) (x, 1)'
    H[:] = 0.0
    total, top, first, term = 0.0, log_odds[n - 1], n, share.shape[0]
    for j in range(size):
        gradient[j] = -ridge * w[j]
        total += 0.5 * ridge * w[j] * w[j]
    for tie in range(start.shape[0] - 1, -1, -1):
        for i in range(start[tie], first):
            if log_odds[i] > top:
                at_risk *= np.exp(top - log_odds[i])
                top = log_odds[i]
            add_products(np.exp(log_odds[i] - top), samples[i], with_hessian, at_risk)
        first = start[tie]
        tied[:] = 0.0
        for i in range(first, first + n_tied[tie]):
            total -= weight[i] * log_odds[i]
            for j in range(size):
                gradient[j] += weight[i] * samples[i, j]
            if n_tied[tie] > 1:
                add_products(np.exp(log_odds[i] - top), samples[i], with_hessian, tied)
        for _ in range(n_tied[tie]):
            term -= 1
            phi, v = share[term], event_weight[term]
            odds = at_risk[size, size] - phi * tied[size, size]
            total += v * (np.log(odds) + top)
            for j in range(size):
                mean = (at_risk[size, j] - phi * tied[size, j]) / odds
                gradient[j] -= v * mean
                for m in range(j + 1 if with_hessian else 0):
                    other = (at_risk[size, m] - phi * tied[size, m]) / odds
                    H[j, m] += v * ((at_risk[j, m] - phi * tied[j, m]) / odds - mean * other)
    for j in range(size):
        H[j, j] += ridge
    return total


@kernel
def add_products(odds, x, with_squares, sums):
    """Add odds times (x, 1) (x, 1)' to the lower triangle of the sums, or only to its last row."""
    size = x.shape[0]
    for j in range(size if with_squares else 0):
        factor = odds * x[j]
        for m in range(j + 1):
            sums[j, m] += factor * x[m]
    for m in range(size):
        sums[size, m] += odds * x[m]
    sums[size, size] += odds


@kernel
def fit_cox(
    samples, weight, log_weight, start, n_tied, share, event_weight, ridge, w, tol, max_iter, hopeless
):
    """Newton's method from ``w``, which becomes the result, as ``fit_model`` does for logistic regression."""
    size = samples.shape[1]
    H, gradient, trial = np.empty((size, size)), np.empty(size), np.zeros(size)
    given = samples, weight, log_weight, start, n_tied, share, event_weight, ridge
    objective = expand_cox(*given, w, True, H, gradient)
    if w.any() and objective > expand_cox(*given, trial, False, H.copy(), gradient.copy()):
        w[:] = 0.0
        objective = expand_cox(*given, w, True, H, gradient)
    for steps in range(1, max_iter + 1):
        step = gradient.copy()
        solve_in_place(H, step)
        decrement = np.sum(gradient * step)
        # Half the Newton decrement is the expected gain.
        if objective - 2.0 * decrement > hopeless and decrement < 0.5 * objective:
            return np.inf, steps
        is_last = decrement <= tol * objective
        t = 1.0
        while True:
            trial[:] = w + t * step
            value = expand_cox(*given, trial, not is_last, H, gradient)
            if value <= objective - ARMIJO * t * decrement or t < SMALLEST_STEP:
                break
            t *= 0.5
        if value < objective:
            w[:] = trial
            objective = value
        if is_last or t < SMALLEST_STEP:
            return objective, steps if decrement <= max(tol, GAIN_ROUNDING) * objective else -steps
    return objective, -max_iter
