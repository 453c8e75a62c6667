"""The metric on growing parts of the samples, with the fitted law and what it predicts for more samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from zeronorm.evaluation.learning._answer import LearningCurve
from zeronorm.report._chart import Chart, ReportData, Rows, register_chart
from zeronorm.report._lines import Guides, Lines, Point, Series
from zeronorm.report._svg import Axes
from zeronorm.resampling._metrics import as_metric

POINTS_OF_LAW = 24


@register_chart("learning-curve", order=42)
@dataclass(frozen=True)
class LearningCurveChart(Chart):
    """Measured points, the law, and predictions with intervals."""

    curve: LearningCurve

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        stored = report_data.result.stored_learning_curve
        return cls(LearningCurve.from_dict(stored)) if stored else None

    @property
    def title(self) -> str:
        label = as_metric(self.curve.metric).text
        return f"{label[:1].upper()}{label[1:]} against the number of training samples"

    @property
    def caption(self) -> str:
        return (
            f"{self.curve.sentence()} Points: the whole procedure on nested parts of the training samples, mean of "
            f"{self.curve.n_draws} draws. Line: a + b m^(−c), fitted to them. Intervals "
            f"({100 * self.curve.confidence:.0f} %) are for the value that would be measured with so many samples, if "
            "the new ones are like these."
        )

    def _format(self, value: float) -> str:
        return as_metric(self.curve.metric).format(value)

    def picture(self) -> Lines:
        curve, metric = self.curve, as_metric(self.curve.metric)
        largest = curve.points[-1].n_train
        measured = tuple(
            Point(p.n_train, p.value, tip=f"{p.n_train:.0f} training samples: {self._format(p.value)}")
            for p in curve.points
        )
        last = curve.predictions[-1].factor * largest
        law = tuple(
            Point(float(m), curve.at(float(m)))
            for m in np.geomspace(curve.points[0].n_train, last, POINTS_OF_LAW)
        )
        predicted = tuple(
            Point(
                p.factor * largest,
                p.value,
                p.low,
                p.high,
                tip=f"{p.factor} times as many: {', '.join(map(self._format, (p.value, p.low, p.high)))}",
            )
            for p in curve.predictions
        )
        low, high = metric.bounds
        bounds = (low if np.isfinite(low) else None, high if np.isfinite(high) else None)
        axes = Axes("training samples", metric.text, self._tick, y_bounds=bounds)
        guides = Guides(((curve.chance, "without features"),), ((largest, "now"),))
        series = [Series("measured", measured), Series("fitted law", law), Series("predicted", predicted)]
        return Lines(series, axes, guides)

    def _tick(self, value: float) -> str:
        return self._format(value).replace(".0 ", " ")

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [
                row["kind"],
                f"{row['n_train']:.0f}",
                *("–" if row[name] is None else self._format(row[name]) for name in ("value", "low", "high")),
            ]
            for row in self.curve.rows()
        ]
        return ("kind", "training samples", as_metric(self.curve.metric).text, "low", "high"), rows

    def keys(self) -> list[str]:
        return ["measured", "fitted law", "predicted"]
