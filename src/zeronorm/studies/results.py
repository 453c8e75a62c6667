"""What a study measured, ready to be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.evaluation.significance import corrected_resampled_t, signed_rank
from zeronorm.evaluation.significance.effects import standard_error
from zeronorm.studies.study import Plan

Row = dict[str, Any]


class NotMeasured(ValueError):
    """The results do not hold what was asked for; the message says why."""


@dataclass(frozen=True)
class Difference:
    """Mean of a minus b over the same trials, with a two-sided p-value and the interval that goes with the test:
    of the mean for the corrected t-test, of the pseudo-median for the signed rank test.
    """

    mean: float
    low: float
    high: float
    p_value: float
    interval_of: str

    def __str__(self) -> str:
        interval = f"95 % of the {self.interval_of}: {self.low:+.4f} to {self.high:+.4f}"
        return f"mean {self.mean:+.4f} ({interval}; p = {self.p_value:.3g})"


class Results:
    """All rows of a run: one per data set, arm, trial and size; ``seconds`` is the time of all its cells."""

    def __init__(
        self, plan: Plan, rows: list[Row], missing: dict[str, str] | None = None, seconds: float = 0.0
    ) -> None:
        self.plan = plan
        self.seconds = seconds
        self.rows = rows
        self.missing = missing or {}
        self._cells: dict[tuple[str, str, int | None], list[Row]] = {}
        for row in rows:
            self._cells.setdefault((row["data"], row["arm"], row["asked_size"]), []).append(row)

    @property
    def keys(self) -> list[tuple[str, str, int | None]]:
        return list(self._cells)

    def rows_of(self, data: str, arm: str, size: int | None) -> list[Row]:
        """All trials of one cell of the table, in order."""
        if arm in self.missing:
            raise NotMeasured(f"{arm} was left out: {self.missing[arm]}")
        found = self._cells.get((data, arm, size))
        if not found:
            raise NotMeasured(f"{arm} on {data} with size {size} is not part of this version of the study")
        return sorted(found, key=lambda row: int(row["trial"]))

    def values(self, data: str, arm: str, size: int | None, metric: str = "error_rate") -> FloatArray:
        """A metric in every trial; an error if any trial has none, since means would not compare."""
        rows = self.rows_of(data, arm, size)
        failed = [row for row in rows if row.get(metric) is None]
        if failed:
            reason = failed[0]["error"] or f"{metric} is not measured for this method"
            raise NotMeasured(f"{arm} on {data}: {len(failed)} of {len(rows)} trials: {reason}")
        return np.asarray([row[metric] for row in rows], dtype=np.float64)

    def mean(self, data: str, arm: str, size: int | None, metric: str = "error_rate") -> float:
        return float(self.values(data, arm, size, metric).mean())

    def mean_and_error(
        self, data: str, arm: str, size: int | None, metric: str = "error_rate"
    ) -> tuple[float, float]:
        """Mean and its standard error; for resplits of one sample the corrected one (Nadeau & Bengio)."""
        values = self.values(data, arm, size, metric)
        if values.size < 2:
            return float(values.mean()), 0.0
        return float(values.mean()), standard_error(values, self.overlap(data, arm, size))

    def overlap(self, data: str, arm: str, size: int | None) -> float:
        """n_test / n_train of resplits, 0 for independent draws."""
        if next(d.independent for d in self.plan.data if d.label == data):
            return 0.0
        rows = self.rows_of(data, arm, size)
        return float(np.mean([row["n_test"] / row["n_train"] for row in rows]))

    def difference(
        self, data: str, a: str, b: str, size: int | None, metric: str = "error_rate", b_size: Any = "same"
    ) -> Difference:
        """a minus b on the same trials: signed rank test for draws, corrected t-test for resplits."""
        left = self.values(data, a, size, metric)
        right = self.values(data, b, size if b_size == "same" else b_size, metric)
        overlap = self.overlap(data, a, size)
        if overlap == 0.0:
            test: Any = signed_rank(left, right)
        else:
            row = self.rows_of(data, a, size)[0]
            try:
                test = corrected_resampled_t(left, right, n_train=row["n_train"], n_test=row["n_test"])
            except ValueError as error:
                raise NotMeasured(f"{a} and {b} on {data} cannot be compared: {error}") from error
        effect = test.difference
        kind = "pseudo-median" if overlap == 0.0 else "mean"
        return Difference(float(np.mean(left - right)), effect.low, effect.high, float(test.p_value), kind)

    def selections(self, data: str, arm: str, size: int | None) -> list[list[int]]:
        """The selected columns in every trial that has a result."""
        return [row["selected"] for row in self.rows_of(data, arm, size) if row["selected"] is not None]
