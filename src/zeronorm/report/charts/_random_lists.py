"""A given list of features beside random lists of the same size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from zeronorm.report._chart import Chart, ReportData, Rows, register_chart
from zeronorm.report._lines import Guides, Lines, Point, Series
from zeronorm.report._svg import Axes
from zeronorm.result._sentences import panel_sentence


@register_chart("random-lists", order=25)
@dataclass(frozen=True)
class RandomListsChart(Chart):
    """The metric of the list, and of random lists from best to worst."""

    report_data: ReportData
    values: tuple[float, ...]
    own: float
    title = "The list and random lists of its size"

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        panel = report_data.result.panel
        if not panel or not panel["random_values"]:
            return None
        ordered = sorted(panel["random_values"], reverse=report_data.greater_is_better)
        return cls(report_data, tuple(ordered), report_data.result.table[0]["value"])

    @property
    def caption(self) -> str:
        return (
            f"{panel_sentence(self.report_data.result)} Dots: random lists from best to worst, each drawn from all "
            "features and measured on the same folds. Dashed line: the given list."
        )

    def picture(self) -> Lines:
        label = self.report_data.metric_label
        points = tuple(
            Point(i + 1, value, tip=f"random list: {self.report_data.format(value)}")
            for i, value in enumerate(self.values)
        )
        axes = Axes("random lists, best first", label, self.report_data.format, x_log=False)
        levels = ((self.own, f"the list: {self.report_data.format(self.own)}"),)
        return Lines([Series("random lists", points)], axes, Guides(levels=levels))

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [[str(i + 1), self.report_data.format(value)] for i, value in enumerate(self.values)]
        return ("random list", self.report_data.metric_label), rows
