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

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._dummy_paths import DUMMY, DummyExperiment, advance

REFERENCE_VOTE = 0.75  # the voting level at which the number of dummies is chosen, as in the paper
PATIENCE = 4  # later stops without more features after which the search ends; the paper goes on to T = n/2
NOTHING = 1e-12  # increments of the occurrences below this are rounding errors

Penalty = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Round:
    """Occurrences and estimated shares of false features at one stopping point.

    ``false_share`` has one value for each level of ``votes``.
    """

    stop_after: int
    n_dummies: int
    occurrences: FloatArray
    votes: FloatArray
    false_share: FloatArray

    def n_selected(self) -> IntArray:
        """Number of features above each voting level."""
        return np.asarray(np.sum(self.occurrences[:, None] > self.votes, axis=0))

    def at_reference(self) -> float:
        """The estimated share of false features at the voting level of the paper."""
        return float(self.false_share[np.flatnonzero(self.votes <= REFERENCE_VOTE + NOTHING)[-1]])

    def q_values(self) -> FloatArray:
        """The smallest estimated share of false features in a selection with this feature, for each; 1 if none."""
        above = self.occurrences[:, None] > self.votes
        return np.asarray(np.where(above, self.false_share, 1.0).min(axis=1))


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

    ``penalty`` returns a factor for each column from the occurrences at the stopping point.
    """

    n_features: int
    level: float
    most_dummies: int
    most_included: int
    penalty: Penalty | None = None

    def rounds(self, start: Callable[[int], list[DummyExperiment]], columns: FloatArray) -> list[Round]:
        """Run the experiments with more and more dummies, then with later and later stops; one round per stop.

        ``start`` begins the experiments with p, 2p, 3p … dummies for 1, 2, 3 ….
        """
        for multiple in range(1, self.most_dummies + 1):
            experiments = start(multiple)
            found = self._round(experiments, columns, multiple * self.n_features, 1)
            if found.at_reference() <= self.level:
                break
        rounds, most = [found], min(self.most_included, found.n_dummies)
        while rounds[-1].false_share[-1] <= self.level and len(rounds) < most:
            if all(one.is_exhausted for one in experiments) or self._is_fruitless(rounds):
                break
            rounds.append(self._round(experiments, columns, found.n_dummies, len(rounds) + 1))
        return rounds

    def _is_fruitless(self, rounds: list[Round]) -> bool:
        """Whether the last rounds selected no more than the rounds before them."""
        counts = [
            int(np.max(one.n_selected(), where=one.false_share <= self.level, initial=0)) for one in rounds
        ]
        return len(counts) > PATIENCE and max(counts[-PATIENCE:]) <= max(counts[:-PATIENCE])

    def _round(
        self, experiments: list[DummyExperiment], columns: FloatArray, n_dummies: int, stop_after: int
    ) -> Round:
        advance(experiments, columns, stop_after)
        table = occurrence_table(experiments, columns.shape[1], stop_after)
        if self.penalty is not None:
            table *= self.penalty(table[:, -1])[:, None]
        votes = voting_levels(len(experiments))
        deflated = deflated_occurrences(table, self.n_features, n_dummies)
        shares = false_shares(table[:, -1], deflated, votes)
        return Round(stop_after, n_dummies, table[:, -1], votes, shares)


def best_round(rounds: Sequence[Round], level: float) -> tuple[Round, float]:
    """The round and the voting level that select most with an estimated share of false features within the level.

    Ties go to the smaller estimate, then to the earlier stop and the higher vote.
    """
    best = (-1, 0.0, 0, 0.0)
    for number, one in enumerate(rounds):
        for count, share, vote in zip(one.n_selected(), one.false_share, one.votes, strict=True):
            candidate = (int(count), -float(share), -number, float(vote))
            if share <= level and candidate > best:
                best = candidate
    if best[0] < 0:
        return rounds[0], 1.0
    return rounds[-best[2]], best[3]
