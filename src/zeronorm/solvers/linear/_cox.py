r"""Cox's partial likelihood: the loss of a linear model of times to an event.

With risk sets :math:`R_i = \{j : t_j \ge t_i\}` and weights v the loss is

.. math:: L(f) = \sum_{i: \text{event}} v_i \Bigl[\log\Bigl(\sum_{j \in R_i} v_j e^{f_j}
          - \phi_i \sum_{j \in D_i} v_j e^{f_j}\Bigr) - f_i\Bigr].

Breslow: :math:`\phi_i = 0`. Efron: the d events :math:`D_i` at one time have :math:`\phi = 0, 1/d, \dots, (d-1)/d` and
the mean of their weights in front of the logarithm. Strata have risk sets of their own, and their losses add up.
All sums of exponentials are kept as logarithms, so that no prediction is too large or too small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.selection.target._event_columns import strata_of
from zeronorm.solvers.linear._survival import Strata, SurvivalLoss, rows_of_strata

Ties = Literal["efron", "breslow"]
SMALLEST_SHARE = 1e-250  # of the largest exponential: with smaller denominators products use the whole matrix


@dataclass(frozen=True, eq=False)
class CoxLoss(SurvivalLoss):
    """The negative log partial likelihood; the weight of a sample counts as an event and in the risk sets."""

    ties: Ties = "efron"
    strata: NDArray[Any] | None = None

    def comparisons(self, time: FloatArray, event: BoolArray, weight: FloatArray) -> RiskSets:
        return RiskSets(time, event, weight, self.ties)

    def mean_curvature(self, y: FloatArray, cost: FloatArray) -> float:
        """The mean expected number of events, that is, the share of events."""
        return float(np.average(~np.signbit(y), weights=cost))


def risk_sets(y: NDArray[Any], weight: FloatArray, ties: Ties = "efron") -> Strata[RiskSets]:
    """The risk sets in each stratum of a structured target; all weights are positive."""
    strata = strata_of(y)
    return Strata(
        tuple(
            (rows, RiskSets(y["time"][rows], y["event"][rows], weight[rows], ties))
            for rows in rows_of_strata(strata, y["event"], weight)
        )
    )


@dataclass(frozen=True, eq=False)
class RiskSets:
    """Who is at risk at each event; arrays of samples are in the order in which they were given.

    ``weight`` is positive. There is at least one event.
    """

    time: FloatArray
    event: BoolArray
    weight: FloatArray
    ties: Ties = "efron"

    def at(self, f: FloatArray) -> RiskSetsAt:
        """The risk sets with the predictions f."""
        return RiskSetsAt(self, f)

    @cached_property
    def order(self) -> IntArray:
        """The samples by ascending time, at one time events first."""
        return np.lexsort((~self.event, self.time))

    @cached_property
    def deaths(self) -> IntArray:
        """Ranks of the events, ascending."""
        return np.flatnonzero(self.event[self.order])

    @cached_property
    def first_of_ties(self) -> IntArray:
        """For each distinct event time the index of its first event in ``deaths``."""
        times = self.time[self.order][self.deaths]
        return np.flatnonzero(np.append(True, times[1:] != times[:-1]))

    @cached_property
    def n_tied(self) -> IntArray:
        """The number of events at each distinct event time."""
        return np.diff(np.append(self.first_of_ties, self.deaths.size))

    @cached_property
    def tie(self) -> IntArray:
        """For each event the index of its distinct time."""
        return np.repeat(np.arange(self.first_of_ties.size), self.n_tied)

    @cached_property
    def share(self) -> FloatArray:
        r"""In the formula :math:`\phi` of each event."""
        if self.ties == "breslow":
            return np.zeros(self.deaths.size)
        return (np.arange(self.deaths.size) - self.first_of_ties[self.tie]) / self.n_tied[self.tie]

    @cached_property
    def event_weight(self) -> FloatArray:
        """The weight of each event in front of its logarithm."""
        weight = self.weight[self.order][self.deaths]
        if self.ties == "breslow":
            return weight
        return (np.add.reduceat(weight, self.first_of_ties) / self.n_tied)[self.tie]

    @cached_property
    def start(self) -> IntArray:
        """For each distinct event time the rank of the first sample at risk, by which the later ones follow."""
        return self.deaths[self.first_of_ties]

    @cached_property
    def past(self) -> IntArray:
        """For each rank the number of distinct event times up to its time."""
        ranked = self.time[self.order]
        return np.searchsorted(ranked[self.start], ranked, side="right")

    @cached_property
    def is_death(self) -> BoolArray:
        return self.event[self.order]

    @cached_property
    def log_weight(self) -> FloatArray:
        """Logarithms of the weights, by rank; a common factor cancels in the likelihood and is left out."""
        return np.asarray(np.log(self.weight[self.order] / self.weight.mean()))


class RiskSetsAt:
    """Risk sets with predictions: the loss and its derivatives. Arrays inside are by rank of the times."""

    def __init__(self, sets: RiskSets, f: FloatArray) -> None:
        self.sets = sets
        self.f = f[sets.order]
        self.log_odds = self.f + sets.log_weight
        at_risk = np.logaddexp.accumulate(self.log_odds[::-1])[::-1][sets.start][sets.tie]
        if sets.share.any():
            tied = np.logaddexp.reduceat(self.log_odds[sets.deaths], sets.first_of_ties)[sets.tie]
            at_risk = at_risk + np.log1p(-sets.share * np.exp(np.minimum(tied - at_risk, 0.0)))
        self.log_denominator = at_risk  # of each event

    def total(self) -> float:
        sets = self.sets
        deaths = sets.weight[sets.order][sets.deaths] @ self.f[sets.deaths]
        return float(sets.event_weight @ self.log_denominator - deaths)

    def hazard(self) -> FloatArray:
        """The derivative of the sum of logarithms: for each rank the expected number of events, by weight."""
        return np.exp(self.log_odds + self._log_sums(1, of_events=1))

    def gradient(self) -> FloatArray:
        return self._unsorted(
            self.hazard() - np.where(self.sets.is_death, self.sets.weight[self.sets.order], 0.0)
        )

    def curvature(self) -> FloatArray:
        """The diagonal of the second derivatives."""
        return self._unsorted(self.hazard() - np.exp(2.0 * self.log_odds + self._log_sums(2, of_events=2)))

    def hessian(self) -> FloatArray:
        """The second derivatives; with their entries as closed sums over the events, in O(n²)."""
        sets = self.sets
        earlier = self._log_sums(2, of_events=1)
        rank = np.arange(sets.order.size)
        products = np.where(rank[:, None] <= rank, earlier[:, None], earlier)
        among_tied = self._log_sums(2, of_events=2)
        for first, n_tied in zip(sets.start, sets.n_tied, strict=True):
            products[first : first + n_tied, first : first + n_tied] = among_tied[first]
        products += self.log_odds[:, None]
        products += self.log_odds
        np.exp(products, out=products)
        np.negative(products, out=products)
        products.flat[:: rank.size + 1] += self.hazard()
        found = np.empty_like(products)
        found[np.ix_(sets.order, sets.order)] = products
        return found

    def sandwich(self, columns: FloatArray) -> FloatArray:
        """The product of the second derivatives with columns from both sides, without the matrix of samples."""
        sets, ranked = self.sets, columns[self.sets.order]
        found = self._means(ranked)
        if found is None:
            return columns.T @ self.hessian() @ columns
        means = found[0] * np.sqrt(sets.event_weight)[:, None]
        return (ranked.T * self.hazard()) @ ranked - means.T @ means

    def diagonal(self, columns: FloatArray) -> FloatArray:
        """The diagonal of ``sandwich``, in O(n) for each column."""
        sets, ranked = self.sets, columns[self.sets.order]
        found = self._means(ranked)
        if found is None:
            return np.asarray(np.einsum("ik,ik->k", columns, self.hessian() @ columns))
        return np.asarray(self.hazard() @ ranked**2 - sets.event_weight @ found[0] ** 2)

    def product(self, columns: FloatArray) -> FloatArray:
        """The product of the second derivatives with columns, without the matrix of samples."""
        sets, ranked = self.sets, columns[self.sets.order]
        found = self._means(ranked)
        if found is None:
            return np.asarray(self.hessian() @ columns)
        means, odds, denominators = found
        terms = means * (sets.event_weight / denominators)[:, None]
        past = np.cumsum(np.add.reduceat(terms, sets.first_of_ties, axis=0), axis=0)
        sums = np.concatenate([np.zeros((1, columns.shape[1])), past])[sets.past]
        own = np.add.reduceat(sets.share[:, None] * terms, sets.first_of_ties, axis=0)
        sums[sets.deaths] -= own[sets.tie]
        return self._unsorted(self.hazard()[:, None] * ranked - odds[:, None] * sums)

    def _means(self, ranked: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Means of columns over the samples at risk at each event, with the odds and denominators of a common scale.

        None where the scale is so wide that denominators are rounded to zero.
        """
        sets, top = self.sets, float(self.log_odds.max())
        scaled = np.exp(self.log_denominator - top)
        if scaled.min() < SMALLEST_SHARE:
            return None
        odds = np.exp(self.log_odds - top)
        weighted = odds[:, None] * ranked
        at_risk = np.cumsum(weighted[::-1], axis=0)[::-1][sets.start][sets.tie]
        if sets.share.any():
            tied = np.add.reduceat(weighted[sets.deaths], sets.first_of_ties, axis=0)[sets.tie]
            at_risk = at_risk - sets.share[:, None] * tied
        return at_risk / scaled[:, None], odds, scaled

    def _log_sums(self, power: int, of_events: int) -> FloatArray:
        r"""For each rank the logarithm of :math:`\sum_k v_k / d_k^{power}` over the events k up to its time.

        The denominators d of events at the same time count with :math:`(1 - \phi_k)` to the power ``of_events`` for the
        events of that time, and in full for the samples that are censored then.
        """
        sets = self.sets
        terms = np.log(sets.event_weight) - power * self.log_denominator
        plain = np.logaddexp.reduceat(terms, sets.first_of_ties)
        past = np.append(-np.inf, np.logaddexp.accumulate(plain))
        found = past[sets.past]
        if not sets.share.any():
            return found
        reduced = np.logaddexp.reduceat(terms + of_events * np.log1p(-sets.share), sets.first_of_ties)
        found[sets.deaths] = np.logaddexp(past[:-1], reduced)[sets.tie]
        return found

    def _unsorted(self, ranked: FloatArray) -> FloatArray:
        found = np.empty_like(ranked)
        found[self.sets.order] = ranked
        return found
