"""Precision against recall of two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, precision_recall_curve

from zeronorm.report._chart import Chart, ReportData, Rows, register_chart
from zeronorm.report._lines import Guides, Lines, Point, Series
from zeronorm.report._svg import Axes, visible
from zeronorm.report.charts._predictions import decided_folds, fold_range

N_POINTS = 21  # on the averaged curve


@register_chart("precision", order=47)
@dataclass(frozen=True)
class PrecisionChart(Chart):
    """Precision-recall curves of two classes, averaged over the test folds at equal recall."""

    curves: tuple[tuple[str, tuple[tuple[float, float, float], ...], float], ...]
    positive: str
    share: float
    title = "Precision and recall"

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        curves, positive, share = [], "", 0.0
        for method in report_data.labels:
            label, parts = decided_folds(report_data, method)
            if not parts:
                continue
            positive = str(label)
            share = float(np.mean(np.concatenate([is_positive for is_positive, _ in parts])))
            rates = np.array([_precision_at(*part) for part in parts])
            area = float(np.mean([average_precision_score(*part) for part in parts]))
            curves.append((method, fold_range(rates), area))
        return cls(tuple(curves), positive, share) if curves else None

    @property
    def caption(self) -> str:
        return (
            f"Precision (share of the samples taken for class {visible(self.positive, 40)} that belong to it) against "
            "recall (share of the class that is found), over all thresholds of the predictor; mean over the test "
            f"folds, bars from the lowest to the highest fold. The dashed line is chance, {100 * self.share:.0f} %."
        )

    def picture(self) -> Lines:
        recall = np.linspace(0.0, 1.0, N_POINTS).tolist()
        series = [
            Series(
                method,
                tuple(
                    Point(x, y, low, high, f"{method}: {100 * y:.0f} % precision at {100 * x:.0f} % recall")
                    for x, (y, low, high) in zip(recall, curve, strict=True)
                ),
            )
            for method, curve, _ in self.curves
        ]
        axes = Axes("recall", "precision", x_log=False, y_bounds=(0.0, 1.0), x_bounds=(0.0, 1.0))
        return Lines(series, axes, Guides(levels=((self.share, "chance"),)))

    def table(self) -> tuple[tuple[str, ...], Rows]:
        return ("method", "average precision"), [[m, f"{area:.3f}"] for m, _, area in self.curves]

    def keys(self) -> list[str]:
        return [method for method, _, _ in self.curves] if len(self.curves) > 1 else []


def _precision_at(is_positive: NDArray[np.bool_], decision: Any) -> NDArray[np.float64]:
    """The best precision at each recall or a larger one."""
    precision, recall, _ = precision_recall_curve(is_positive, decision)
    wanted = np.linspace(0.0, 1.0, N_POINTS)
    return np.array([precision[recall >= least - 1e-12].max() for least in wanted])
