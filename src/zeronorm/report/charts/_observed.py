"""Predicted against observed values of a real target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from zeronorm.report._chart import Chart, ReportData, Rows, register_chart
from zeronorm.report._samples import sample_predictions
from zeronorm.report._scatter import MOST_POINTS, Dot, Scatter
from zeronorm.report._svg import Axes, visible
from zeronorm.selection.target import Real


@register_chart("observed", order=44)
@dataclass(frozen=True)
class ObservedChart(Chart):
    """Held-out predictions of a real target, one point per sample."""

    names: tuple[str, ...]
    observed: tuple[float, ...]
    predicted: tuple[float, ...]
    n_samples: int
    title = "Predicted against observed values"

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        if report_data.result.data["task"] != Real.task:
            return None
        samples = sample_predictions(report_data)
        if not samples:
            return None
        shown = samples
        if len(samples) > MOST_POINTS:
            kept = np.linspace(0, len(samples) - 1, MOST_POINTS).round().astype(np.intp)
            shown = [samples[i] for i in kept]
        return cls(
            tuple(sample.name for sample in shown),
            tuple(float(sample.truth) for sample in shown),
            tuple(float(sample.prediction) for sample in shown),
            len(samples),
        )

    @property
    def caption(self) -> str:
        part = (
            f" {len(self.names)} of {self.n_samples} samples are shown."
            if len(self.names) < self.n_samples
            else ""
        )
        return (
            "Each point is a sample, predicted from a model that was selected and trained without it. On the dashed "
            f"line prediction and observation are equal.{part}"
        )

    def picture(self) -> Scatter:
        dots = tuple(
            Dot(x, y, tip=f"{visible(name, 40)}: observed {x:.4g}, predicted {y:.4g}")
            for name, x, y in zip(self.names, self.observed, self.predicted, strict=True)
        )
        return Scatter(dots, Axes("observed", "predicted on the test fold", x_log=False), diagonal=True)

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [name, f"{x:.6g}", f"{y:.6g}"]
            for name, x, y in zip(self.names, self.observed, self.predicted, strict=True)
        ]
        return ("sample", "observed", "predicted"), rows
