# mypy: allow-untyped-defs
r"""Cox models on subsets of the features.

With the samples at risk :math:`R_k` at event k and weights v, and :math:`o_j = v_j e^{x_j \cdot w}`, the objective is

.. math:: \sum_k v_k \Bigl[\log \sum_{j \in R_k} o_j - \log o_k\Bigr] + \tfrac{\lambda}{2} \|w\|^2,

with Efron's treatment of tied events. It differs by a constant from the negative partial likelihood, and is not
negative. Its gradient and Hessian need the sums of o, ox and oxx' over the samples at risk, which grow from the latest
time on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from zeronorm.solvers.linear._cox import RiskSets, risk_sets
from zeronorm.solvers.linear._survival import Strata


class CoxSubsets(Subsets):
    """Cox models on subsets; their bias, which has no effect, is zero."""

    def __init__(self, design: Design, y: NDArray[Any], weight: FloatArray, ridge: float) -> None:
        super().__init__(design, weight, ridge)
        self.y = y
        self.sets = risk_sets(y, weight)
        self._order = np.concatenate([rows[sets.order] for rows, sets in self.sets.parts])
        self._known = (weight[self._order], *joined(self.sets))

    @property
    def information(self) -> float:
        return float(self.weight[self.y["event"]].sum())

    def part(self, n_samples: int) -> CoxSubsets:
        """All events are drawn with one chance, and all censored samples with another."""
        rows, weight = self._drawn(self.y["event"].astype(np.intp), n_samples)
        return CoxSubsets(self.design.take_rows(rows), self.y[rows], weight, self.ridge)

    def _minimise(self, rows: FloatArray, start: FloatArray, goal: float) -> tuple[float, int]:
        samples = np.ascontiguousarray(rows[:-1, self._order].T)
        limits = FIT_TOLERANCE, FIT_STEPS, goal
        found: tuple[float, int] = fit_cox(samples, self._known, self.ridge, start[0, :-1], limits)
        return found

    def residuals(self, fit: SubsetFit, own: FloatArray) -> FloatArray:
        return -self.sets.at(fit.coef[0] @ own).gradient()[None]

    def expand(self, fit: SubsetFit, own: FloatArray) -> Expansion:
        f, size = fit.coef[0] @ own, fit.size
        here = self.sets.at(f)
        weighted, inverse = np.zeros((1, *own.shape)), np.zeros((1, size + 1, size + 1))
        if size:
            weighted[0, :-1] = here.product(own[:-1].T).T
            # Constants have no second derivative: the bias takes no part.
            inverse[:, :-1, :-1] = pseudo_inverses(weighted[:, :-1] @ own[:-1].T, self.ridge, size)

        def bends(candidates: Candidates | SparseCandidates) -> FloatArray:
            return np.concatenate(
                [
                    sum(sets.at(f[rows]).diagonal(part.T[rows]) for rows, sets in self.sets.parts)
                    for part in candidates.parts()
                ]
            )[None]

        return Expansion(-here.gradient()[None], weighted, inverse, bends)


def joined(sets: Strata[RiskSets]) -> tuple[NDArray[Any], ...]:
    """Arrays of all strata one after the other, for compiled loops.

    By rank the logarithms of the weights; for each distinct event time the ranks from ``start`` to ``end`` that are at
    risk and were not at the next time, the number of events, and whether the time is the last one of its stratum; for
    each event the share and the weight as in ``RiskSets``.
    """
    found: list[tuple[NDArray[Any], ...]] = []
    begin = 0
    for rows, part in sets.parts:
        start, end = part.start + begin, np.append(part.start[1:], rows.size) + begin
        is_last = np.arange(start.size) == start.size - 1
        found.append((part.log_weight, start, end, is_last, part.n_tied, part.share, part.event_weight))
        begin += rows.size
    return tuple(np.concatenate(arrays) for arrays in zip(*found, strict=True))


@kernel
def expand_cox(samples, known, ridge, w, with_hessian, H, gradient):
    """The objective at ``w``, the negative gradient and optionally the lower triangle of the Hessian.

    Samples are by rank of the times; ``known`` are their weights and the arrays of ``joined``.
    """
    weight, log_weight, start, end, is_last, n_tied, share, event_weight = known
    n, size = samples.shape
    log_odds = log_weight.copy()
    for i in range(n):
        for j in range(size):
            log_odds[i] += w[j] * samples[i, j]
    at_risk, tied = np.zeros((size + 1, size + 1)), np.zeros((size + 1, size + 1))  # sums of o (x, 1) (x, 1)'
    H[:] = 0.0
    total, top, term = 0.0, 0.0, share.shape[0]
    for j in range(size):
        gradient[j] = -ridge * w[j]
        total += 0.5 * ridge * w[j] * w[j]
    for tie in range(start.shape[0] - 1, -1, -1):
        if is_last[tie]:
            at_risk[:] = 0.0
            top = log_odds[start[tie]]
        for i in range(start[tie], end[tie]):
            if log_odds[i] > top:
                at_risk *= np.exp(top - log_odds[i])
                top = log_odds[i]
            add_products(np.exp(log_odds[i] - top), samples[i], with_hessian, at_risk)
        tied[:] = 0.0
        for i in range(start[tie], start[tie] + n_tied[tie]):
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
def fit_cox(samples, known, ridge, w, limits):
    """Newton's method from ``w``, which becomes the result, as ``fit_model`` does for logistic regression.

    ``limits`` are the tolerance, the number of steps, and the objective above which it gives up.
    """
    tol, max_iter, hopeless = limits
    size = samples.shape[1]
    H, gradient, trial = np.empty((size, size)), np.empty(size), np.zeros(size)
    objective = expand_cox(samples, known, ridge, w, True, H, gradient)
    if w.any() and objective > expand_cox(samples, known, ridge, trial, False, H.copy(), gradient.copy()):
        w[:] = 0.0
        objective = expand_cox(samples, known, ridge, w, True, H, gradient)
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
            value = expand_cox(samples, known, ridge, trial, not is_last, H, gradient)
            if value <= objective - ARMIJO * t * decrement or t < SMALLEST_STEP:
                break
            t *= 0.5
        if value < objective:
            w[:] = trial
            objective = value
        if is_last or t < SMALLEST_STEP:
            return objective, steps if decrement <= max(tol, GAIN_ROUNDING) * objective else -steps
    return objective, -max_iter
