"""A map of the samples by the selected features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zeronorm.report._chart import Chart, ReportData, Rows, Run, register_chart, standardized
from zeronorm.report._samples import sample_predictions
from zeronorm.report._scatter import MOST_POINTS, Dot, Scatter
from zeronorm.report._svg import Axes, visible
from zeronorm.resampling._splits import dense_columns
from zeronorm.selection.target import TASKS

MOST_FEATURES = 200  # of the selected ones, in the principal components


@register_chart("samples", order=65)
@dataclass(frozen=True)
class SamplesChart(Chart):
    """The first two principal components of the standardised selected features, one point per sample."""

    positions: tuple[tuple[float, float], ...]
    groups: tuple[int, ...]
    tips: tuple[str, ...]
    wrong: tuple[bool, ...]
    classes: tuple[str, ...]
    shares: tuple[float, float]
    n_samples: int
    title = "Map of the samples"

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        names = None if run.sample_names is None else [str(name) for name in run.sample_names]
        if run.columns.size < 2 or len(run.y) < 3 or run.y.ndim != 1 or run.y.dtype.names:
            return None if names is None else {"names": names}
        values = standardized(dense_columns(run.X, run.columns[:MOST_FEATURES]))
        left, scale, _ = np.linalg.svd(values, full_matrices=False)
        total = float(np.sum(scale**2))
        if total == 0.0:
            return None if names is None else {"names": names}
        # The sign of a component is arbitrary; the largest deviation is made positive.
        position = left[:, :2] * scale[:2]
        position *= np.where(np.abs(position.min(axis=0)) > position.max(axis=0), -1.0, 1.0)
        shown = np.arange(len(position))
        if len(shown) > MOST_POINTS:
            shown = np.linspace(0, len(shown) - 1, MOST_POINTS).round().astype(np.intp)
        return {
            "names": names,
            "rows": shown.tolist(),
            "positions": position[shown].tolist(),
            "target": run.y[shown].tolist(),
            "shares": (scale[:2] ** 2 / total).tolist(),
            "n_samples": len(run.y),
        }

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        kept = report_data.result.figures.get(cls.name)
        if not kept or not kept.get("positions"):
            return None
        predicted = {sample.row: sample for sample in sample_predictions(report_data)}
        has_classes = TASKS[report_data.result.data["task"]].has_classes
        labels = sorted({str(value) for value in kept["target"]}) if has_classes else []
        names = kept.get("names")
        tips, wrong = [], []
        for row, value in zip(kept["rows"], kept["target"], strict=True):
            sample = predicted.get(row)
            tip = f"{visible(names[row], 40) if names else f'sample {row + 1}'}: {visible(str(value), 40)}"
            if sample is not None and has_classes:
                tip += f", predicted {visible(str(sample.prediction), 40)}"
            tips.append(tip)
            wrong.append(bool(sample is not None and has_classes and sample.is_wrong))
        groups = tuple(labels.index(str(value)) for value in kept["target"]) if labels else (0,) * len(tips)
        positions = tuple((float(x), float(y)) for x, y in kept["positions"])
        shares = (float(kept["shares"][0]), float(kept["shares"][1]))
        return cls(
            positions, groups, tuple(tips), tuple(wrong), tuple(labels), shares, int(kept["n_samples"])
        )

    @property
    def caption(self) -> str:
        part = f" {len(self.positions)} of {self.n_samples} samples are shown." if self._is_part else ""
        wrong = " Large points were predicted wrongly on their test fold." if any(self.wrong) else ""
        return (
            f"First two principal components of the standardised selected features, one point per sample.{wrong}{part} "
            "The features were selected with these samples, so the groups look better separated than new samples would."
        )

    @property
    def _is_part(self) -> bool:
        return len(self.positions) < self.n_samples

    def picture(self) -> Scatter:
        first, second = (
            f"component {i + 1} ({100 * share:.0f} % of the variance)" for i, share in enumerate(self.shares)
        )
        dots = tuple(
            Dot(x, y, group, tip, is_wrong)
            for (x, y), group, tip, is_wrong in zip(
                self.positions, self.groups, self.tips, self.wrong, strict=True
            )
        )
        return Scatter(dots, Axes(first, second, x_log=False))

    def legend(self) -> list[tuple[str, str]]:
        return [(f"c{i % 8}", visible(label, 40)) for i, label in enumerate(self.classes[:8])]

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [[tip, f"{x:.4g}", f"{y:.4g}"] for tip, (x, y) in zip(self.tips, self.positions, strict=True)]
        return ("sample", "component 1", "component 2"), rows
