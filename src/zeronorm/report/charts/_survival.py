"""Kaplan–Meier curves of groups of samples by their held-out risks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from zeronorm.evaluation._records import own_rows_of
from zeronorm.evaluation._risk_groups import risk_groups
from zeronorm.report._chart import Chart, ReportData, Rows, register_chart
from zeronorm.report._lines import Lines, Point, Series
from zeronorm.report._svg import Axes, linear_ticks
from zeronorm.selection.target import TASKS, TimeToEvent

N_TIMES = 6  # at which the numbers at risk are listed


@register_chart("survival", order=16)
@dataclass(frozen=True)
class SurvivalChart(Chart):
    """The share of samples without event in each risk group, with the numbers at risk and the log-rank test."""

    names: tuple[str, ...]
    steps: tuple[tuple[tuple[float, float], ...], ...]  # of each group: times with the share from then on
    times: tuple[float, ...]
    at_risk: tuple[tuple[int, ...], ...]
    p_value: float | None  # of the log-rank test; None where there is none
    n_events: int
    target: str
    predicted: tuple[
        tuple[tuple[float, float], ...], ...
    ] = ()  # of each group: the mean of the predicted curves
    title = "Survival by predicted risk"
    is_wide = True

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        result = report_data.result
        label = result.chosen_method
        if label is None or not issubclass(TASKS[result.data["task"]], TimeToEvent):
            return None
        columns = own_rows_of(report_data.columns, label)
        found = risk_groups(
            [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        )
        if found is None:
            return None
        times = np.asarray(times_at_risk(float(found.time.max())))
        steps = []
        for code, curve in enumerate(found.curves()):
            end = float(found.time[found.group == code].max())
            inside = [(0.0, 1.0), *zip(curve.times.tolist(), curve.values.tolist(), strict=True)]
            steps.append((*inside, (end, float(curve(end)))))
        return cls(
            found.names,
            tuple(steps),
            tuple(times.tolist()),
            tuple(tuple(row) for row in found.at_risk(times).tolist()),
            None if found.test is None else found.test.p_value,
            int(found.event.sum()),
            str(result.data.get("target") or "event"),
        )

    @property
    def caption(self) -> str:
        return (
            "Share of samples without event (Kaplan–Meier). In each test fold the samples were divided "
            f"{self._divided()} of the predicted risks, which come from models that were fitted on other samples only. "
            f"Log-rank test, stratified by fold, with allowance for overlapping training sets: {self._tested()}. "
            f"{self._numbers_at_risk()}"
        )

    def _divided(self) -> str:
        return "at the median" if len(self.names) == 2 else "at the terciles"

    def _tested(self) -> str:
        if self.p_value is None:
            return f"not made, because samples of one group depend on each other; {self.n_events} events"
        p_value = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        return f"{p_value}; {self.n_events} events"

    def _numbers_at_risk(self) -> str:
        listed = (
            f"{name} {', '.join(map(str, row))}" for name, row in zip(self.names, self.at_risk, strict=True)
        )
        return f"Samples at risk at {', '.join(f'{t:g}' for t in self.times)}: {'; '.join(listed)}."

    def picture(self) -> Lines:
        series = []
        for name, steps, at_risk in zip(self.names, self.steps, self.at_risk, strict=True):
            marks = [
                Point(t, _share_at(steps, t), tip=f"{name}, {t:g}: {_share_at(steps, t):.2f}, {n} at risk")
                for t, n in zip(self.times, at_risk, strict=True)
                if n > 0
            ]
            series.append(Series(name, tuple(marks), stairs(steps)))
        series = [
            replace(line, beside=beside)
            for line, beside in zip(series, self.predicted or [()] * len(series), strict=True)
        ]
        last = max(steps[-1][0] for steps in self.steps)
        axes = Axes(
            "time",
            "share without event",
            "{:.2g}".format,
            x_log=False,
            y_bounds=(0.0, 1.0),
            x_bounds=(0.0, last),
        )
        return Lines(series, axes)

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [name, *(f"{_share_at(steps, t):.2f} ({n})" for t, n in zip(self.times, at_risk, strict=True))]
            for name, steps, at_risk in zip(self.names, self.steps, self.at_risk, strict=True)
        ]
        return ("share without event (number at risk)", *(f"{t:g}" for t in self.times)), rows

    def keys(self) -> list[str]:
        return list(self.names)


def times_at_risk(longest: float) -> tuple[float, ...]:
    """Round times up to the longest one, at which the numbers at risk are listed."""
    return tuple(t for t in linear_ticks(0.0, longest, N_TIMES) if t <= longest)


def _share_at(steps: tuple[tuple[float, float], ...], time: float) -> float:
    """The share without event at a time."""
    return [share for start, share in steps if start <= time][-1]


def stairs(steps: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    """The corners of a line that is level between the steps."""
    corners = [steps[0]]
    for time, share in steps[1:]:
        corners += [(time, corners[-1][1]), (time, share)]
    return tuple(corners)
