"""New samples: the ROC curve and the confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zeronorm.report._chart import register_chart
from zeronorm.report._svg import visible
from zeronorm.report.charts._predictions import MOST_CLASSES, N_POINTS, ConfusionChart, RocChart


@register_chart("cohort-roc", order=30, page="cohort")
@dataclass(frozen=True)
class CohortRocChart(RocChart):
    """The ROC curve of the new samples."""

    @classmethod
    def from_data(cls, report_data: Any) -> Self | None:
        area = next((row["value"] for row in report_data.scores if row["metric"] == "auc"), None)
        if not report_data.roc or area is None:
            return None
        false, true = report_data.roc["false_positive_rate"], report_data.roc["true_positive_rate"]
        curve = np.interp(np.linspace(0.0, 1.0, N_POINTS), false, true)
        curve[0] = 0.0
        points = tuple((rate, None, None) for rate in curve.tolist())  # one curve has no range over folds
        return cls((("model", points, area),), report_data.data["classes"][1])

    @property
    def caption(self) -> str:
        return (
            f"True positive rate (share of the samples of class {visible(self.positive, 40)} that are found) against "
            "the false positive rate (share of the other samples that are taken for this class), over all thresholds "
            "of the decision value. The dashed diagonal is chance."
        )


@register_chart("cohort-confusion", order=40, page="cohort")
@dataclass(frozen=True)
class CohortConfusionChart(ConfusionChart):
    """Counts of true and predicted classes of the new samples."""

    @classmethod
    def from_data(cls, report_data: Any) -> Self | None:
        classes = report_data.confusion.get("classes", [])
        if not 2 <= len(classes) <= MOST_CLASSES:
            return None
        return cls(tuple(classes), tuple(tuple(row) for row in report_data.confusion["counts"]))

    @property
    def caption(self) -> str:
        right = sum(self.counts[i][i] for i in range(len(self.classes)))
        total = sum(map(sum, self.counts))
        return (
            f"True classes in rows, predicted classes in columns; {right} of {total} predictions are correct. Colours "
            "show shares of the row."
        )
