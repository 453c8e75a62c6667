"""New samples: Kaplan–Meier curves of groups of samples by their predicted risk, beside the predicted curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from zeronorm.report._chart import Rows, register_chart
from zeronorm.report.charts._survival import SurvivalChart, times_at_risk


@register_chart("cohort-survival", order=15, page="cohort")
@dataclass(frozen=True)
class CohortSurvivalChart(SurvivalChart):
    """The observed and the predicted share of samples without event in each risk group."""

    @classmethod
    def from_data(cls, report_data: Any) -> Self | None:
        groups = report_data.risk_groups.get("groups")
        if not groups:
            return None
        times = times_at_risk(max(max(group["time"]) for group in groups))
        return cls(
            tuple(group["name"] for group in groups),
            tuple(tuple(tuple(step) for step in group["steps"]) for group in groups),
            times,
            tuple(tuple(sum(own >= t for own in group["time"]) for t in times) for group in groups),
            report_data.risk_groups["p_value"],
            sum(group["events"] for group in groups),
            str(report_data.data["target"]),
            tuple(tuple(tuple(point) for point in group["predicted"]) for group in groups),
        )

    @property
    def caption(self) -> str:
        return (
            f"Share of samples without event (Kaplan–Meier) in groups divided {self._divided()} of the predicted risks "
            "of the new samples. Dotted: the mean of the survival curves that the model predicts for the same samples. "
            f"Log-rank test: {self._tested()}. {self._numbers_at_risk()}"
        )

    def table(self) -> tuple[tuple[str, ...], Rows]:
        heads, rows = super().table()
        for name, curve in zip(self.names, self.predicted, strict=True):
            nearest = (min(curve, key=lambda point: abs(point[0] - t)) for t in self.times)
            rows.append([f"{name}, predicted", *(f"{share:.2f}" for _, share in nearest)])
        return heads, rows
