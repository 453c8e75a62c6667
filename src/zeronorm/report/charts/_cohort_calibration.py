"""New samples: predicted probabilities or numbers against what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from zeronorm.report._chart import Chart, Rows, register_chart
from zeronorm.report._lines import Guides, Lines, Point, Series
from zeronorm.report._svg import Axes, visible
from zeronorm.result._cohort import CohortData


@register_chart("calibration", order=20, page="cohort")
@dataclass(frozen=True)
class CalibrationChart(Chart):
    """Means of predictions and outcomes in groups of samples with like predictions."""

    bins: tuple[dict[str, Any], ...]
    what: str  # what is predicted: the name of a class, several classes (empty), or the target
    has_classes: bool
    time: float | None = None  # of predicted survival
    title = "Calibration"

    @classmethod
    def from_data(cls, report_data: CohortData) -> Self | None:
        bins = report_data.calibration.get("bins")
        if not bins:
            return None
        classes = report_data.data["classes"]
        what = (classes[1] if len(classes) == 2 else "") if classes else report_data.data["target"]
        return cls(tuple(bins), what, bool(classes), report_data.calibration.get("time"))

    @property
    def caption(self) -> str:
        if self.time is not None:
            return (
                f"Share of samples without event after {self.time:g}, the median time of the events (Kaplan–Meier), "
                "against the mean predicted probability, in groups of samples with like predictions, with 95 % "
                "intervals. On the dashed diagonal predictions are calibrated."
            )
        if not self.has_classes:
            return (
                f"Mean true value of {visible(self.what, 40)} against the mean prediction, in groups of samples with "
                "like predictions, with 95 % intervals. On the dashed diagonal predictions are right on average."
            )
        of_class = f"class {visible(self.what, 40)}" if self.what else "a class, over all classes"
        return (
            f"Share of {of_class} against its mean predicted probability, in groups of samples with like "
            "probabilities, with 95 % intervals. On the dashed diagonal probabilities are calibrated."
        )

    def picture(self) -> Lines:
        points = tuple(
            Point(
                row["predicted"],
                row["value"],
                row["low"],
                row["high"],
                tip=f"{row['n']} samples: predicted {row['predicted']:.3g}, found {row['value']:.3g}",
            )
            for row in self.bins
        )
        if self.has_classes or self.time is not None:
            axes = Axes(
                "predicted probability", "share", x_log=False, x_bounds=(0.0, 1.0), y_bounds=(0.0, 1.0)
            )
        else:
            axes = Axes("mean prediction", "mean true value", x_log=False)
        return Lines([Series("model", points)], axes, Guides(diagonal=True))

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [
                str(row["n"]),
                *("–" if row[k] is None else f"{row[k]:.4g}" for k in ("predicted", "value", "low", "high")),
            ]
            for row in self.bins
        ]
        return ("samples", "mean prediction", "found", "low", "high"), rows
