"""Calibration on the test folds: predicted probabilities or numbers against what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zeronorm.evaluation._new_samples import (
    bins_of_numbers,
    calibration_bins,
    calibration_of_classes,
    calibration_of_numbers,
)
from zeronorm.evaluation._probabilities import fit_probabilities, probabilities_of
from zeronorm.report._chart import ReportData, Rows, register_chart
from zeronorm.report._samples import sample_predictions
from zeronorm.report.charts._cohort_calibration import CalibrationChart
from zeronorm.report.charts._predictions import decided_folds
from zeronorm.selection.target import Real

FEWEST_SAMPLES = 20  # in two groups of ten the share of a class is known to ± 0.3


@register_chart("held-out-calibration", order=48)
@dataclass(frozen=True)
class HeldOutCalibrationChart(CalibrationChart):
    """The same for held-out samples; probabilities of a fold are fitted to the decision values of the others."""

    coefficients: tuple[tuple[str, dict[str, float] | None], ...] = ()

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:  # type: ignore[override]
        method = report_data.result.chosen_method
        if method is None:
            return None
        if report_data.result.data["task"] == Real.task:
            samples = sample_predictions(report_data)
            truth, predicted = (
                np.array([float(getattr(s, name)) for s in samples]) for name in ("truth", "prediction")
            )
            if len(truth) < FEWEST_SAMPLES:
                return None
            bins, found = bins_of_numbers(truth, predicted), calibration_of_numbers(truth, predicted)
            return cls(
                tuple(bins), report_data.result.data["target"], False, coefficients=tuple(found.items())
            )
        positive, parts = decided_folds(report_data, method)
        if len(parts) < 2 or sum(len(hit) for hit, _ in parts) < FEWEST_SAMPLES:
            return None
        hit = np.concatenate([hit for hit, _ in parts])
        probability = np.concatenate([_predicted(parts, fold) for fold in range(len(parts))])
        both = np.column_stack([1.0 - probability, probability])
        found = calibration_of_classes(hit.astype(np.intp), both)
        return cls(
            tuple(calibration_bins(probability, hit)), str(positive), True, coefficients=tuple(found.items())
        )

    @property
    def caption(self) -> str:
        values = [
            f"{name} {value['value']:.2f} ({value['low']:.2f} to {value['high']:.2f})"
            for name, value in self.coefficients
            if value is not None
        ]
        ideal = (
            "" if not values else f" Calibration {', '.join(values)}; the ideal is slope 1 and intercept 0."
        )
        made = (
            " Probabilities of a test fold come from a curve that was fitted to the decision values of the other folds."
            if self.has_classes
            else ""
        )
        return super().caption + made + ideal

    def table(self) -> tuple[tuple[str, ...], Rows]:
        headers, rows = super().table()
        rows += [
            [name, "", *(f"{value[k]:.4g}" for k in ("value", "low", "high"))]
            for name, value in self.coefficients
            if value is not None
        ]
        return headers, rows


def _predicted(parts: list[tuple[Any, list[float]]], fold: int) -> Any:
    """Probabilities of one fold by Platt's sigmoid of the decision values of all others."""
    hit = np.concatenate([hit for i, (hit, _) in enumerate(parts) if i != fold])
    decision = np.concatenate([np.asarray(values) for i, (_, values) in enumerate(parts) if i != fold])
    fitted = fit_probabilities(_scores(decision), hit.astype(np.intp))
    return probabilities_of(_scores(np.asarray(parts[fold][1])), fitted.slope, fitted.biases)[:, 1]


def _scores(decision: Any) -> Any:
    return np.column_stack([-decision, decision]) / 2.0
