r"""The score test of Cox's model for each feature alone, in one pass over the data.

At weights of zero the derivative of the partial likelihood in the weight of a feature x and its variance are

.. math:: U = \sum_i m_i x_i, \qquad V = \sum_i h_i x_i^2 - \sum_k v_k \bar x_k^2,

with the martingale residuals m (events minus expected events), the expected number of events h of each sample, and the
mean :math:`\bar x_k` of the feature over the samples at risk at event k. U²/V is the χ² statistic with one degree of
freedom; with tied times and Breslow's approximation between two groups it is that of the log-rank test but for the
factor that corrects the variance for ties.
"""
# mypy: allow-untyped-defs

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel
from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.design import DenseDesign, Design, require_finite
from zeronorm.design._stats import is_constant_range
from zeronorm.execution import available_threads, run_in_threads
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Real, TimeToEvent
from zeronorm.solvers.linear import CoxLoss, SurvivalLoss, loss_for
from zeronorm.solvers.linear._cox import RiskSets, Ties, risk_sets
from zeronorm.solvers.linear._smooth import solve_in_weights
from zeronorm.solvers.linear._survival import Strata

PRACTICALLY_FREE = 1e8  # cost of the likelihood beside half of the squared weights of covariates
LEAST_LEFT = 1e-9  # share of the variance of a feature that the covariates leave; less is rounding
NUMBERS_PER_THREAD = 1 << 17  # starting a thread takes as long as a tenth of the work on so many


def weights_of(problem: Problem) -> FloatArray:
    """The weights of the samples, one where none are given."""
    return np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight


def risk_sets_of(problem: Problem, ties: Ties = "efron") -> Strata[RiskSets]:
    """The risk sets of the samples of a problem, in each stratum."""
    return risk_sets(problem.target.values, weights_of(problem), ties)


def working_problem(problem: Problem) -> Problem:
    """For times to an event the regression of the martingale residuals, otherwise the problem itself.

    Near predictions of zero the partial likelihood is the squared error of m / h, with the residuals m and the share of
    events h as its curvature: what is chosen by squares or correlations is chosen for these residuals.
    """
    if not isinstance(problem.target, TimeToEvent):
        return problem
    residuals = -risk_sets_of(problem).at(np.zeros(problem.n_samples)).gradient() / weights_of(problem)
    return replace(problem, target=Real(residuals))


def mean_curvature(problem: Problem, loss: str) -> float:
    """The mean second derivative of the loss of this name in a prediction, in units of that of a squared error."""
    found = loss_for(problem.target, loss) if isinstance(problem.target, TimeToEvent) else None
    if not isinstance(found, SurvivalLoss):
        return 1.0
    return found.mean_curvature(problem.target.columns()[:, 0], weights_of(problem))


def adjusted_score_tests(problem: Problem, ties: Ties) -> tuple[FloatArray, FloatArray, BoolArray]:
    r"""U and V of each feature at the weights of the covariates, which change V: with the second derivatives H

    .. math:: V = x^\top H x - x^\top H Z (Z^\top H Z)^{-1} Z^\top H x.
    """
    sets = risk_sets_of(problem, ties)
    if problem.adjust is None or not problem.adjust.rank:
        return score_tests(problem.design, sets)
    Z, signed_time = problem.adjust.basis, problem.target.columns()[:, 0]
    assert isinstance(problem.target, TimeToEvent)
    loss, cost = CoxLoss(ties, problem.target.stratum), PRACTICALLY_FREE * weights_of(problem)
    found = solve_in_weights(DenseDesign(Z), loss, signed_time, cost)
    assert found.weights is not None
    log_risk = Z @ found.weights
    slope, variance, constant = score_tests(problem.design, sets, log_risk)
    curvature_of_covariates = sets.at(log_risk).product(Z)
    explained = problem.design.transpose_dot(curvature_of_covariates)
    lost = np.einsum("kj,kj->k", explained, np.linalg.solve(Z.T @ curvature_of_covariates, explained.T).T)
    left = np.where(variance - lost > LEAST_LEFT * variance, variance - lost, 0.0)
    constant |= left == 0.0
    return np.where(constant, 0.0, slope), left, constant


def score_tests(
    design: Design, sets: Strata[RiskSets], log_risk: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """U and V of each feature, and whether it is constant; values that are not finite raise an error."""
    f = np.zeros(design.n_samples) if log_risk is None else log_risk
    found = np.zeros((4, design.n_features))  # U, V, smallest and largest value
    found[2], found[3] = np.inf, -np.inf
    strata = [_arrays_of(rows, part, f[rows]) for rows, part in sets.parts]
    for columns, block in design.iter_blocks():
        n_threads = max(1, min(available_threads(), block.size // NUMBERS_PER_THREAD))
        bounds = [block.shape[1] * part // n_threads for part in range(n_threads + 1)]
        for arrays in strata:
            tasks = [(block.T[a:b], *arrays, found[:, columns][:, a:b]) for a, b in pairwise(bounds)]
            run_in_threads(_score_columns, tasks, n_threads)
    slope, variance, smallest, largest = found
    if not np.isfinite(slope).all():
        require_finite(design, False)
    constant = is_constant_range(smallest, largest, design.dtype)
    return np.where(constant, 0.0, slope), np.where(constant, 0.0, np.maximum(variance, 0.0)), constant


def _arrays_of(rows: IntArray, sets: RiskSets, f: FloatArray) -> tuple[NDArray[Any], ...]:
    """What the compiled loop needs of one stratum, whose samples are these rows."""
    here = sets.at(f)
    return (
        rows[sets.order],
        np.exp(here.log_odds),
        here.hazard(),
        -here.gradient()[sets.order],
        sets.start,
        sets.n_tied,
        sets.share,
        sets.event_weight,
        np.exp(here.log_denominator),
    )


@kernel
def _score_columns(columns, order, odds, hazard, residual, start, n_tied, share, weight, denominator, found):
    """Add U, V and extremes of one stratum; one row of ``columns`` for each feature, samples by rank of the times."""
    n = order.shape[0]
    for j in range(columns.shape[0]):
        mean, smallest, largest = 0.0, found[2, j], found[3, j]
        for i in order:
            mean += columns[j, i]
            smallest, largest = min(smallest, columns[j, i]), max(largest, columns[j, i])
        mean /= n
        at_risk, total, first, squares = 0.0, 0.0, n, 0.0
        term = share.shape[0]
        for tie in range(start.shape[0] - 1, -1, -1):
            for rank in range(first - 1, start[tie] - 1, -1):
                x = columns[j, order[rank]] - mean
                at_risk += odds[rank] * x
                squares += hazard[rank] * x * x
                total += residual[rank] * x
            first = start[tie]
            tied = 0.0
            if n_tied[tie] > 1:
                for rank in range(first, first + n_tied[tie]):
                    tied += odds[rank] * (columns[j, order[rank]] - mean)
            for _ in range(n_tied[tie]):
                term -= 1
                at_event = (at_risk - share[term] * tied) / denominator[term]
                squares -= weight[term] * at_event * at_event
        found[0, j] += total
        found[1, j] += squares
        found[2, j], found[3, j] = smallest, largest
