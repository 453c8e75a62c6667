"""Held-out predictions by sample: what was predicted for each, and whether it is wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from zeronorm.report._chart import ReportData
from zeronorm.report._svg import visible
from zeronorm.selection.target import TASKS

MOST_SAMPLES = 2000  # rows of the table of samples; records.parquet has all


@dataclass(frozen=True)
class SamplePrediction:
    """One sample with its truth and its held-out prediction.

    With repeated cross-validation the prediction is the most frequent class, or the mean; ``n_wrong`` of
    ``n_predictions`` differ from the truth. ``decision`` is the mean decision value, for two classes.
    """

    row: int
    name: str
    truth: Any
    prediction: Any
    n_wrong: int
    n_predictions: int
    decision: float | None

    @property
    def is_wrong(self) -> bool:
        return 2 * self.n_wrong > self.n_predictions or (self.n_predictions == 1 and self.n_wrong == 1)

    @property
    def residual(self) -> float:
        """Prediction minus truth, of a real target."""
        return float(self.prediction) - float(self.truth)


def sample_predictions(report_data: ReportData) -> list[SamplePrediction]:
    """The held-out predictions of the chosen procedure, in the order of the table; empty where there are none."""
    columns, label = report_data.columns, report_data.result.chosen_method
    has_classes = TASKS[report_data.result.data["task"]].has_classes
    found: dict[int, list[tuple[Any, Any, float | None]]] = {}
    decisions = columns.get("decision") or [None] * len(columns["method"])
    wanted = ("method", "size", "truth", "predictions", "test_rows")
    for method, size, truth, predictions, rows, decision in zip(
        *(columns[name] for name in wanted), decisions, strict=True
    ):
        if method != label or size is not None or predictions is None or rows is None:
            continue
        values = [None] * len(rows) if decision is None else decision
        for row, *triple in zip(rows, truth, predictions, values, strict=True):
            if not isinstance(triple[0], (dict, list)):
                found.setdefault(int(row), []).append((triple[0], triple[1], triple[2]))
    names = _names(report_data)
    return [
        _summarised(row, names.get(row, str(row + 1)), made, has_classes)
        for row, made in sorted(found.items())
    ]


def _names(report_data: ReportData) -> dict[int, str]:
    """The names of the samples, where the data have some; rows are numbered from 1 otherwise."""
    kept = report_data.result.figures.get("samples") or {}
    return dict(enumerate(kept.get("names") or []))


def _summarised(
    row: int, name: str, made: list[tuple[Any, Any, float | None]], has_classes: bool
) -> SamplePrediction:
    truth, predicted = made[0][0], [prediction for _, prediction, _ in made]
    decisions = [decision for *_, decision in made if decision is not None]
    prediction = Counter(predicted).most_common(1)[0][0] if has_classes else fmean(map(float, predicted))
    n_wrong = sum(p != truth for p in predicted) if has_classes else 0
    return SamplePrediction(
        row, name, truth, prediction, n_wrong, len(made), fmean(decisions) if decisions else None
    )


# -- The table of the report --


@dataclass(frozen=True)
class SampleRow:
    """One row of the table of samples."""

    name: str
    cells: tuple[str, ...]
    is_wrong: bool


@dataclass(frozen=True)
class SampleTable:
    """The table of samples: a sentence, the headings and the rows."""

    text: str
    headings: tuple[str, ...]
    rows: tuple[SampleRow, ...]


def sample_table(report_data: ReportData) -> SampleTable | None:
    """The held-out prediction of each sample, wrong ones first; None where there are no predictions."""
    if report_data.result.chosen_method is None:
        return None
    samples = sample_predictions(report_data)
    if not samples:
        return None
    has_classes = TASKS[report_data.result.data["task"]].has_classes
    times = max(sample.n_predictions for sample in samples)
    text = "Each sample was predicted by models that were selected and trained without it."
    if has_classes:
        n_wrong = sum(sample.is_wrong for sample in samples)
        text += f" {n_wrong} of {len(samples)} are wrong; they come first."
        samples = sorted(samples, key=lambda sample: (not sample.is_wrong, sample.row))
    else:
        samples = sorted(samples, key=lambda sample: (-abs(sample.residual), sample.row))
        text += " The largest errors come first."
    if len(samples) > MOST_SAMPLES:
        text += f" The first {MOST_SAMPLES} of {len(samples)} are shown; records.parquet has all."
    headings = ["sample", "truth", "prediction", "wrong" if has_classes else "error"]
    headings += ["decision value"] if any(sample.decision is not None for sample in samples) else []
    headings += ["predictions"] if times > 1 else []
    shown = samples[:MOST_SAMPLES]
    return SampleTable(text, tuple(headings), tuple(_row(sample, has_classes, headings) for sample in shown))


def _row(sample: SamplePrediction, has_classes: bool, headings: list[str]) -> SampleRow:
    if has_classes:
        wrong = f"{sample.n_wrong} of {sample.n_predictions}" if sample.n_predictions > 1 else "wrong"
        cells = [str(sample.truth), str(sample.prediction), wrong if sample.n_wrong else ""]
    else:
        cells = [f"{value:.6g}" for value in (sample.truth, sample.prediction, sample.residual)]
    if "decision value" in headings:
        cells.append("–" if sample.decision is None else f"{sample.decision:.4g}")
    if "predictions" in headings:
        cells.append(str(sample.n_predictions))
    return SampleRow(
        visible(sample.name, 60), tuple(visible(cell, 60) for cell in cells), has_classes and sample.is_wrong
    )
