"""What the features add to covariates: the metric of the covariates alone, of the features alone, and of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from zeronorm.report._cells import Bar, Bars
from zeronorm.report._chart import Chart, ReportData, Rows, register_chart
from zeronorm.result._sentences import added_sentence, listed


@register_chart("added", order=5)
@dataclass(frozen=True)
class AddedChart(Chart):
    """The three models on the same folds."""

    report_data: ReportData
    measured: dict[str, Any]  # of the selection, or of a given list
    is_wide = True

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        result = report_data.result
        measured = result.table[0] if result.panel else report_data.measured
        added = measured.get("added")
        return None if not added or added["difference"] is None else cls(report_data, measured)

    @property
    def added(self) -> dict[str, Any]:
        """The metric of each model, and the difference."""
        return dict(self.measured["added"])

    @property
    def title(self) -> str:
        return f"What the features add to {listed(self.added['covariates'])}"

    @property
    def caption(self) -> str:
        better = "Higher" if self.report_data.greater_is_better else "Lower"
        return f"{better} is better. {added_sentence(self.measured)}"

    @property
    def models(self) -> list[tuple[str, float | None]]:
        """The name and the metric of each model."""
        chance = self.report_data.chance
        first = [] if chance is None else [("neither", chance)]
        names = ("covariates_alone", "features_alone", "both")
        return [*first, *((name.replace("_", " "), self.added[name]) for name in names)]

    def picture(self) -> Bars:
        values = [value for _, value in self.models if value is not None]
        highest = self.report_data.bounds[1]
        longest = max([*values, *([] if highest is None else [highest])], default=1.0)
        bars = [
            Bar(
                name,
                max(0.0, value / longest) if longest > 0.0 else 0.0,
                self.report_data.format(value),
                f"{name}: {self.report_data.metric_label} {self.report_data.format(value)}",
                name == "both",
            )
            for name, value in self.models
            if value is not None
        ]
        return Bars(bars, self.report_data.metric_label)

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [[name, self.report_data.format(value), "", ""] for name, value in self.models]
        ends = (self.added[name] for name in ("difference", "low", "high"))
        rows.append(["both minus covariates alone", *map(self.report_data.format, ends)])
        return ("model", self.report_data.metric_label, "low", "high"), rows
