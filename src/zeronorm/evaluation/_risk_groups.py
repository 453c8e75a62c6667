"""Groups of samples by their held-out risks, with their survival curves and a test of the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.evaluation.significance._pooled import AREA_EXCESS, EXCESS_PER_FOLD, Row, number_of_folds
from zeronorm.resampling.survival._curves import StepFunction, event_and_time, kaplan_meier
from zeronorm.resampling.survival._log_rank import LogRankTest, log_rank_test

ENOUGH_FOR_THIRDS = 60  # events; with fewer, the samples of each fold are divided at the median
NAMES = {2: ("low risk", "high risk"), 3: ("low risk", "medium risk", "high risk")}


@dataclass(frozen=True, eq=False)
class RiskGroups:
    """Samples of the test folds by their predicted risk: within each fold, by models that were not fitted on them.

    ``test`` is the log-rank test stratified by fold; None for dependent samples, to which it does not apply.
    """

    names: tuple[str, ...]
    group: IntArray
    event: BoolArray
    time: FloatArray
    test: LogRankTest | None

    def curves(self) -> list[StepFunction]:
        """The Kaplan–Meier curve of each group."""
        parts = [self.group == code for code in range(len(self.names))]
        return [kaplan_meier(self.event[part], self.time[part]) for part in parts]

    def at_risk(self, times: FloatArray) -> IntArray:
        """How many samples of each group (rows) are at risk at some times (columns)."""
        return np.asarray(
            [
                (self.time[self.group == code][:, None] >= times).sum(axis=0)
                for code in range(len(self.names))
            ],
            dtype=np.intp,
        )


def risk_groups(rows: Sequence[Row]) -> RiskGroups | None:
    r"""Risk groups from the records of one method at one size; of several repetitions the first.

    In each fold the samples are divided at the median (with :math:`\ge 60` events, the terciles) of their predicted
    risks. The statistic of the log-rank test is divided by 1.1 + 0.14 k for k folds: the training sets overlap, so that
    the folds vary together, as for the area under a ROC curve (docs/trust). None without usable predictions.
    """
    first = _first_repetition([row for row in rows if row.get("predictions") is not None])
    if not first:
        return None
    parts = [event_and_time(list(row["truth"])) for row in first]
    event, time = (np.concatenate(found) for found in zip(*parts, strict=True))
    n_groups = _number_of_groups(event)
    group = np.concatenate([_shares(row["predictions"], n_groups) for row in first])
    fold = np.repeat(np.arange(len(first)), [len(row["predictions"]) for row in first])
    if np.unique(group).size < n_groups:
        return None
    found = log_rank_test(event, time, group, fold)
    allowance = 1 + AREA_EXCESS + EXCESS_PER_FOLD * number_of_folds(first)
    return RiskGroups(NAMES[n_groups], group, event, time, found.divided(allowance))


def risk_groups_of_new(y: Any, risk: FloatArray, groups: Any = None) -> RiskGroups | None:
    """Risk groups of new samples, divided at the same quantiles; with sample ``groups`` there is no test."""
    event, time = event_and_time(y)
    n_groups = _number_of_groups(event)
    group = _shares(risk, n_groups)
    if np.unique(group).size < n_groups:
        return None
    test = None if groups is not None else log_rank_test(event, time, group)
    return RiskGroups(NAMES[n_groups], group, event, time, test)


def _number_of_groups(event: BoolArray) -> int:
    return 3 if event.sum() >= ENOUGH_FOR_THIRDS else 2


def _first_repetition(rows: Sequence[Row]) -> list[Row]:
    """The rows up to the first that tests a sample again."""
    seen: set[int] = set()
    kept: list[Row] = []
    for row in rows:
        if seen.intersection(row["test_rows"]):
            break
        seen.update(row["test_rows"])
        kept.append(row)
    return kept


def _shares(risk: Any, n_groups: int) -> IntArray:
    """The group of each sample by the quantiles of the risks, 0 for the lowest."""
    values = np.asarray(risk, dtype=np.float64)
    limits = np.quantile(values, np.arange(1, n_groups) / n_groups)
    return np.asarray(np.searchsorted(limits, values, side="left"), dtype=np.intp)
