r"""How often features enter before dummies, the estimated share of false ones, and the choice of the stopping point.

:math:`\Phi_T(j)` is the share of the experiments in which feature j entered before the T-th dummy. Of the features with
:math:`\Phi_T(j) > v`, :math:`\hat V = \sum_j (1 - \Phi'(j))` are estimated to be false, with the deflated occurrences

.. math:: \Phi'(j) = \sum_{t \le T} \Bigl(1 - \frac{p - \sum_i \Phi_t(i)}{L - t + 1} \Big/
          \sum_{i: \Phi_T(i) > 1/2} \Delta\Phi_t(i)\Bigr)\, \Delta\Phi_t(j), \qquad \Delta\Phi_t = \Phi_t - \Phi_{t-1}

(Machkour, Muma & Palomar 2025, definitions 1 to 3): between two dummies about :math:`(p - \dots)/(L - t + 1)`
irrelevant features enter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._dummy_paths import DUMMY, DummyExperiment, advance

REFERENCE_VOTE = 0.75  # the voting level at which the number of dummies is chosen, as in the paper
PATIENCE = 4  # later stops without more features after which the search ends; the paper goes on to T = n/2
PATIENCE_PER_MULTIPLE = (
    2  # the same for m p dummies is 2 m: between two of them fewer irrelevant features enter
)
NOTHING = 1e-12  # increments of the occurrences below this are rounding errors

LEAST_RELEVANCE = 0.5  # a feature that is more likely irrelevant than relevant is not kept at any level


@dataclass(frozen=True)
class Round:
    """Occurrences of the columns, plain and deflated, at one stopping point."""

    stop_after: int
    n_dummies: int
    occurrences: FloatArray
    deflated: FloatArray
    votes: FloatArray

    @cached_property
    def false_share(self) -> FloatArray:
        """The estimated share of false features above each level of ``votes``."""
        return false_shares(self.occurrences, self.deflated, self.votes)

    def n_selected(self) -> IntArray:
        """Number of features above each voting level."""
        return np.asarray(np.sum(self.occurrences[:, None] > self.votes, axis=0))

    def at_reference(self) -> float:
        """The estimated share of false features at the voting level of the paper."""
        return float(self.false_share[np.flatnonzero(self.votes <= REFERENCE_VOTE + NOTHING)[-1]])


@dataclass(frozen=True)
class Selection:
    """The columns that are kept at a stopping point and a voting level, and the estimated share of false ones.

    ``above`` are the columns above the voting level, ``kept`` those of them that are kept. ``q_values`` holds, for
    each column, the estimated share in the smallest selection that contains it, 1 if none does.
    """

    round: Round
    vote: float
    above: IntArray
    kept: IntArray
    false_share: float
    q_values: FloatArray


def voting_levels(n_experiments: int) -> FloatArray:
    """The levels 1/2, 1/2 + 1/K, … below 1."""
    count = int(np.ceil(n_experiments / 2 - NOTHING))
    return 0.5 + np.arange(count) / n_experiments


def occurrence_table(experiments: Sequence[DummyExperiment], n_columns: int, stop_after: int) -> FloatArray:
    """The share of the experiments in which each column entered before dummy 1, 2, …, ``stop_after``."""
    table = np.zeros((n_columns, stop_after))
    for one in experiments:
        n_dummies = 0
        for column in one.entered:
            if column == DUMMY:
                n_dummies += 1
                if n_dummies == stop_after:
                    break
            else:
                table[column, n_dummies:] += 1.0
    return table / len(experiments)


def deflated_occurrences(table: FloatArray, n_features: int, n_dummies: int) -> FloatArray:
    """:math:`\\Phi'` for every column of a table of occurrences."""
    steps = np.diff(table, axis=1, prepend=0.0)
    voted = steps[table[:, -1] > 0.5].sum(axis=0)
    expected = (n_features - table.sum(axis=0)) / (n_dummies - np.arange(table.shape[1]))
    kept = np.zeros(voted.size)
    np.divide(expected, voted, out=kept, where=voted > NOTHING)
    return np.asarray(steps @ np.where(voted > NOTHING, 1.0 - kept, 0.0))


def false_shares(occurrences: FloatArray, deflated: FloatArray, votes: FloatArray) -> FloatArray:
    """The estimated share of false features above each voting level, 0 where nothing is selected."""
    above = occurrences[:, None] > votes
    count = above.sum(axis=0)
    share = ((1.0 - deflated)[:, None] * above).sum(axis=0) / np.maximum(count, 1)
    return np.where(count > 0, np.minimum(share, 1.0), 0.0)


@dataclass(frozen=True)
class Calibration:
    """Settings of the search for the number of dummies, the stopping point and the voting level.

    ``multiples`` are the numbers of dummies, in units of p, in the order in which they are tried.
    """

    n_features: int
    level: float
    multiples: Sequence[int]
    most_included: int

    def rounds(self, start: Callable[[int], list[DummyExperiment]], columns: FloatArray) -> list[Round]:
        """Run the experiments with more and more dummies, then with later and later stops; one round per stop.

        ``start`` begins the experiments with p, 2p, 3p … dummies for 1, 2, 3 ….
        """
        for multiple in self.multiples:
            experiments = start(multiple)
            found = self._round(experiments, columns, multiple * self.n_features, 1)
            if found.at_reference() <= self.level:
                break
        rounds, most = [found], min(self.most_included, found.n_dummies)
        patience = max(PATIENCE, PATIENCE_PER_MULTIPLE * multiple)
        while rounds[-1].false_share[-1] <= self.level and len(rounds) < most:
            if all(one.is_exhausted for one in experiments) or self._is_fruitless(rounds, patience):
                break
            rounds.append(self._round(experiments, columns, found.n_dummies, len(rounds) + 1))
        return rounds

    def _is_fruitless(self, rounds: list[Round], patience: int) -> bool:
        """Whether the last rounds selected no more than the rounds before them."""
        counts = [
            int(np.max(one.n_selected(), where=one.false_share <= self.level, initial=0)) for one in rounds
        ]
        return len(counts) > patience and max(counts[-patience:]) <= max(counts[:-patience])

    def _round(
        self, experiments: list[DummyExperiment], columns: FloatArray, n_dummies: int, stop_after: int
    ) -> Round:
        advance(experiments, columns, stop_after)
        table = occurrence_table(experiments, columns.shape[1], stop_after)
        deflated = deflated_occurrences(table, self.n_features, n_dummies)
        return Round(stop_after, n_dummies, table[:, -1], deflated, voting_levels(len(experiments)))


def best_selection(rounds: Sequence[Round], level: float) -> Selection:
    """The stopping point and voting level that select most within the level of the estimated share of false features.

    Ties go to the smaller estimate, then to the earlier stop and the higher vote.
    """
    found = (_all_above(one, float(vote), level) for one in rounds for vote in one.votes)
    return min(found, key=_preference)


def _preference(one: Selection) -> tuple[float, ...]:
    share = one.false_share if one.kept.size else float(one.q_values.min(initial=1.0))
    return (-one.kept.size, share, one.round.stop_after, -one.vote)


def _all_above(one: Round, vote: float, level: float) -> Selection:
    """All columns above a voting level, or none."""
    above = np.flatnonzero(one.occurrences > vote)
    share = float(false_shares(one.occurrences, one.deflated, np.asarray([vote]))[0])
    q_values = np.ones(one.occurrences.size)
    q_values[above] = share
    kept = above if share <= level else above[:0]
    return Selection(one, vote, above, kept, share if kept.size else 0.0, q_values)


def widest(paths: Sequence[Sequence[Round]]) -> Round:
    """The last rounds of several paths as one: of each column the larger occurrences."""
    last = [rounds[-1] for rounds in paths]
    first = max(last, key=lambda one: one.stop_after)
    occurrences, deflated = (
        np.max([getattr(one, name) for one in last], axis=0) for name in ("occurrences", "deflated")
    )
    return Round(first.stop_after, first.n_dummies, occurrences, deflated, first.votes)


def most_relevant(one: Round, relevance: FloatArray, level: float) -> Selection:
    r"""The columns in most experiments that are relevant with the largest probabilities :math:`w_j`.

    They are kept as long as :math:`w_j \ge 1/2` and the mean of :math:`1 - w_j` is within the level.
    """
    vote = float(one.votes[0])
    above = np.flatnonzero(one.occurrences > vote)
    weight = relevance[above]
    order = np.argsort(-weight, kind="stable")
    shares = np.cumsum(1.0 - weight[order]) / np.arange(1, above.size + 1)
    q_values = np.ones(one.occurrences.size)
    q_values[above[order]] = np.where(weight[order] >= LEAST_RELEVANCE, shares, 1.0)
    kept = above[q_values[above] <= level]
    return Selection(one, vote, above, kept, float(q_values[kept].max(initial=0.0)), q_values)
