"""Predictions on the test folds: ROC curves and the confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve

from zeronorm.evaluation._new_samples import Predicted, class_rates
from zeronorm.report._cells import Grid
from zeronorm.report._chart import Chart, ReportData, Rows, register_chart
from zeronorm.report._lines import Guides, Lines, Point, Series
from zeronorm.report._samples import sample_predictions
from zeronorm.report._svg import Axes, visible
from zeronorm.selection.target import TASKS

N_POINTS = 41  # on the averaged ROC curve
BAR_EVERY = 4  # points between two bars that show the range over the folds
MOST_CLASSES = 20


@dataclass(frozen=True)
class PredictedFold:
    """Truth, predictions and decision values of a procedure on one test fold."""

    truth: list[Any]
    predictions: list[Any]
    decision: list[float] | None


def predicted_folds(report_data: ReportData, method: str) -> list[PredictedFold]:
    """The predictions of a method at its selected size, for each test fold."""
    columns = report_data.columns
    decisions = columns.get("decision") or [None] * len(columns["method"])
    rows = zip(
        columns["method"], columns["size"], columns["truth"], columns["predictions"], decisions, strict=True
    )
    return [
        PredictedFold(list(truth), list(predictions), None if decision is None else list(decision))
        for name, size, truth, predictions, decision in rows
        if name == method and size is None and predictions is not None
    ]


@register_chart("roc", order=45)
@dataclass(frozen=True)
class RocChart(Chart):
    """ROC curves of two classes, averaged over the test folds at equal false positive rates."""

    curves: tuple[tuple[str, tuple[tuple[float, float | None, float | None], ...], float], ...]
    positive: str
    title = "ROC curve"

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        curves, positive = [], ""
        for method in report_data.labels:
            label, parts = decided_folds(report_data, method)
            if not parts:
                continue
            positive = str(label)
            rates, area = roc_rates(parts)
            curves.append((method, fold_range(rates), area))
        return cls(tuple(curves), positive) if curves else None

    @property
    def caption(self) -> str:
        return (
            f"True positive rate (share of the samples of class {visible(self.positive, 40)} that are found) against "
            "the false positive rate (share of the other samples that are taken for this class), over all thresholds "
            "of the predictor; mean over the test folds, bars from the lowest to the highest fold. The dashed diagonal "
            "is chance."
        )

    def picture(self) -> Lines:
        positions = np.linspace(0.0, 1.0, N_POINTS)
        series = [
            Series(
                method,
                tuple(
                    Point(
                        x,
                        y,
                        low if i % BAR_EVERY == 0 else None,
                        high if i % BAR_EVERY == 0 else None,
                        tip=f"{method} (area {area:.3f}): finds {100 * y:.0f} % at {100 * x:.0f} % false positives",
                    )
                    for i, (x, (y, low, high)) in enumerate(zip(positions.tolist(), curve, strict=True))
                ),
            )
            for method, curve, area in self.curves
        ]
        axes = Axes(
            "false positive rate", "true positive rate", x_log=False, y_bounds=(0.0, 1.0), x_bounds=(0.0, 1.0)
        )
        return Lines(series, axes, Guides(diagonal=True))

    def table(self) -> tuple[tuple[str, ...], Rows]:
        return ("method", "area under the curve"), [[m, f"{area:.3f}"] for m, _, area in self.curves]

    def keys(self) -> list[str]:
        return [method for method, _, _ in self.curves] if len(self.curves) > 1 else []


def decided_folds(
    report_data: ReportData, method: str
) -> tuple[Any, list[tuple[NDArray[np.bool_], list[float]]]]:
    """The positive class, and for each test fold with both classes which samples have it, with decision values."""
    parts = [
        p
        for p in predicted_folds(report_data, method)
        if p.decision is not None and not isinstance(p.truth[0], dict) and len(set(p.truth)) == 2
    ]
    labels = sorted({label for p in parts for label in p.truth}, key=str)
    if len(labels) != 2:
        return None, []
    return labels[-1], [(np.asarray(p.truth) == labels[-1], p.decision or []) for p in parts]


def roc_rates(parts: list[tuple[NDArray[np.bool_], list[float]]]) -> tuple[NDArray[np.float64], float]:
    """True positive rates of each fold at evenly spaced false positive rates, and the mean area under the curves."""
    positions = np.linspace(0.0, 1.0, N_POINTS)
    rates, areas = [], []
    for positive, decision in parts:
        false, true, _ = roc_curve(positive, decision)
        rates.append(np.interp(positions, false, true))
        areas.append(float(roc_auc_score(positive, decision)))
    found = np.array(rates)
    found[:, 0] = 0.0
    return found, float(np.mean(areas))


def fold_range(rates: NDArray[np.float64]) -> tuple[tuple[float, float, float], ...]:
    """Mean, smallest and largest value over the folds, at each position."""
    columns = (rates.mean(axis=0), rates.min(axis=0), rates.max(axis=0))
    return tuple(zip(*(column.tolist() for column in columns), strict=True))


@register_chart("confusion", order=46)
@dataclass(frozen=True)
class ConfusionChart(Chart):
    """Counts of true and predicted classes over all test folds."""

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    rates: tuple[dict[str, Any], ...] = ()
    title = "Confusion matrix"

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        method = report_data.result.chosen_method
        if method is None or not TASKS[report_data.result.data["task"]].has_classes:
            return None
        parts = predicted_folds(report_data, method)
        truth = [str(label) for p in parts for label in p.truth]
        predicted = [str(label) for p in parts for label in p.predictions]
        classes = sorted({*truth, *predicted})
        if not 2 <= len(classes) <= MOST_CLASSES:
            return None
        counts = confusion_matrix(truth, predicted, labels=classes)
        samples = sample_predictions(report_data)  # one prediction of each, for the intervals
        once = Predicted(
            np.array([str(s.truth) for s in samples]), np.array([str(s.prediction) for s in samples])
        )
        rates = class_rates(once, classes) if samples else []
        return cls(tuple(classes), tuple(tuple(row) for row in counts.tolist()), tuple(rates))

    @property
    def caption(self) -> str:
        right = sum(self.counts[i][i] for i in range(len(self.classes)))
        total = sum(map(sum, self.counts))
        return (
            f"True classes in rows, predicted classes in columns, counted over all test folds; {right} of {total} "
            f"predictions are correct. Colours show shares of the row.{self._rates_of_last()}"
        )

    def _rates_of_last(self) -> str:
        """Sensitivity and specificity of the second of two classes."""
        if len(self.rates) != 2:
            return ""
        last = self.rates[-1]
        found = [(name, last[name]) for name in ("sensitivity", "specificity")]
        texts = [
            f"{name} {100 * rate['value']:.0f} % (95 %: {100 * rate['low']:.0f} to {100 * rate['high']:.0f} %)"
            for name, rate in found
            if rate is not None and rate["low"] is not None
        ]
        return f" For class {visible(self.classes[-1], 40)}: {', '.join(texts)}." if texts else ""

    def picture(self) -> Grid:
        names = [visible(label, 40) for label in self.classes]
        shares = [[count / max(1, sum(row)) for count in row] for row in self.counts]
        return Grid(
            rows=[f"true {name}" for name in names],
            columns=[f"predicted {name}" for name in names],
            levels=[[round(0.75 * share, 2) for share in row] for row in shares],
            palette="p",
            cells=[
                [f"{count} samples ({100 * share:.0f} %)" for count, share in zip(row, part, strict=True)]
                for row, part in zip(self.counts, shares, strict=True)
            ],
            column_ticks=list(enumerate(names)),
            x_label="predicted class",
            shown=[[str(count) for count in row] for row in self.counts],
        )

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [[label, *map(str, row)] for label, row in zip(self.classes, self.counts, strict=True)]
        headers = ("true class", *(f"predicted {label}" for label in self.classes))
        if not self.rates:
            return headers, rows
        names = ("sensitivity", "specificity")
        for row, rate in zip(rows, self.rates, strict=True):
            row += ["–" if rate[name] is None else f"{rate[name]['value']:.3f}" for name in names]
        return (*headers, *names), rows
