"""The predictions for new samples as plain values, and in sentences."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from zeronorm.datasets._table import counted
from zeronorm.evaluation._records import frame_of_rows
from zeronorm.evaluation._summary import format_metric, metric_label
from zeronorm.result._plain import finite
from zeronorm.selection.target import TASKS

FORMAT, FORMAT_VERSION = "zeronorm-cohort", 1
VERDICTS = {
    "compatible": "compatible",
    "worse": "worse than expected",
    "seen": "not new samples",
    "": "not compared, because there is no interval",
}


@dataclass(frozen=True, repr=False)
class CohortData:
    """The predictions for new samples as plain values; see ``zeronorm.Cohort``."""

    data: dict[str, Any]
    scores: list[dict[str, Any]] = field(default_factory=list)
    classes: list[dict[str, Any]] = field(default_factory=list)
    confusion: dict[str, Any] = field(default_factory=dict)
    calibration: dict[str, Any] = field(default_factory=dict)
    refit: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    samples: dict[str, list[Any]] = field(default_factory=dict)
    roc: dict[str, Any] = field(default_factory=dict)
    risk_groups: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "\n".join(line for line in (self.headline, *self.sentences) if line)

    @property
    def has_classes(self) -> bool:
        """Whether the target holds classes."""
        return TASKS[self.data["task"]].has_classes

    @property
    def headline(self) -> str:
        """The main finding in one line."""
        if not self.scores:
            return f"{counted(self.data['n_samples'], 'prediction')} of {self.data['target']}"
        first = self.scores[0]
        is_seen = first["verdict"] == "seen"
        samples = counted(self.data["n_scored"], "sample" if is_seen else "new sample")
        label = f"{metric_label(first['metric'])} on {samples}"
        found = format_metric(first["value"], first["metric"])
        if first["expected"] is None:
            return f"{found} {label}"
        expected = format_metric(first["expected"], first["metric"])
        verdict = f": {VERDICTS[first['verdict']]}" if first["verdict"] else ""
        whole = " with all features" if self.refit else ""
        return f"{expected} expected{whole}, {found} found{verdict} ({label})"

    @property
    def sentences(self) -> list[str]:
        """The score with its interval and what it says about the expected one, and the calibration."""
        if not self.scores:
            return []
        return [text for text in (_score_sentence(self.scores[0]), calibration_sentence(self)) if text]

    def rows(self) -> list[dict[str, Any]]:
        """One row per sample."""
        return [
            dict(zip(self.samples, cells, strict=True)) for cells in zip(*self.samples.values(), strict=True)
        ]

    def to_frame(self) -> Any:
        """One row per sample, as a polars (else pandas) frame."""
        return frame_of_rows(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """The values of cohort.json, without the table of samples."""
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("samples", "roc")}
        content: dict[str, Any] = finite(
            {"format": FORMAT, "format_version": FORMAT_VERSION, "headline": self.headline, **kept}
        )
        return content

    def to_json(self) -> str:
        """The values as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _score_sentence(score: Mapping[str, Any]) -> str:
    """The value with its interval, the expected one, and the interval of the difference."""

    def shown(value: float | None) -> str:
        return format_metric(value, score["metric"])

    interval = (
        "" if score["low"] is None else f" (95 % interval {shown(score['low'])} to {shown(score['high'])})"
    )
    text = f"The {metric_label(score['metric'])} is {shown(score['value'])}{interval}."
    if score["expected"] is None:
        return text
    promised = ""
    if score["expected_low"] is not None:
        promised = f" ({shown(score['expected_low'])} to {shown(score['expected_high'])})"
    text += f" The selection promised {shown(score['expected'])}{promised}."
    if score["verdict"] == "seen":
        return f"{text} The model was selected on these samples, so that the two say nothing about new ones."
    if not score["verdict"]:
        return f"{text} The two are {VERDICTS['']}."
    limits = f"{shown(score['difference_low'])} to {shown(score['difference_high'])}"
    shift = "the new samples are predicted worse than held-out samples of the selection"
    meaning = shift if score["verdict"] == "worse" else "the new samples are not shown to be predicted worse"
    return f"{text} The difference has the 95 % interval {limits}: {meaning}."


def calibration_sentence(cohort: CohortData) -> str:
    """Slope and intercept of the calibration; empty where there are none."""
    found = cohort.calibration
    slope, intercept = found.get("slope"), found.get("intercept")
    if not slope:
        return ""
    text = f"The calibration slope is {limits_text(slope)} (1 is best)"
    if intercept and "expected" in found:
        ratio = {name: math.exp(value) for name, value in intercept.items()}
        return (
            f"{text}. Observed were {counted(found['observed'], 'event')} and expected {found['expected']:.1f}: the "
            f"ratio is {limits_text(ratio)}; 1 is best."
        )
    if intercept:
        best = "; 0 is best" if cohort.has_classes else ""
        text += f" and the intercept {limits_text(intercept)}{best}"
    return f"{text}."


def limits_text(found: Mapping[str, float]) -> str:
    """A value with its interval."""
    return f"{found['value']:.3g} ({found['low']:.3g} to {found['high']:.3g})"
