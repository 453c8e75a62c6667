"""Values of the selected features across samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from zeronorm.report._cells import Grid
from zeronorm.report._chart import Chart, ReportData, Run, clustered, register_chart, standardized
from zeronorm.report._svg import visible
from zeronorm.resampling._splits import dense_columns
from zeronorm.selection.target import TASKS

MOST_FEATURES = 60
MOST_SAMPLES = 300
N_LEVELS = 9  # colours of the map, the middle one for the mean
WIDEST_DEVIATION = 2.25  # in standard deviations; greater deviations have the same colour


@register_chart("values", order=70)
@dataclass(frozen=True)
class ValuesChart(Chart):
    """Standardised values of the selected features, with features and samples ordered by clustering."""

    figure: dict[str, Any]
    names: tuple[str, ...]
    is_regression: bool
    title = "Selected features across samples"

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        y = run.y["time"] if run.y.dtype.names else run.y
        return value_map(run.X, y, run.columns, sorted_target=not TASKS[run.task].has_classes)

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        figure = report_data.result.figures.get(cls.name)
        if not figure:
            return None
        names = tuple(report_data.result.name_of(i) for i in figure["features"])
        return cls(figure, names, not TASKS[report_data.result.data["task"]].has_classes)

    @property
    def caption(self) -> str:
        shown, n = self.figure, len(self.names)
        features = f"{n} of {shown['n_features']} features" if shown["n_features"] > n else "Features"
        part = ""
        if len(shown["samples"]) < shown["n_samples"]:
            part = f" {len(shown['samples'])} of {shown['n_samples']} samples are shown."
        return (
            f"{features} in rows, samples in columns, both ordered by clustering; colours show deviations from the "
            f"mean in standard deviations.{part}"
        )

    def picture(self) -> Grid:
        classes = self.figure["classes"]
        labels = list(dict.fromkeys(classes))
        kind = "target" if self.is_regression else "class"
        return Grid(
            rows=list(self.names),
            columns=[
                f"sample {s + 1} ({kind} {visible(c, 40)})"
                for s, c in zip(self.figure["samples"], classes, strict=True)
            ],
            levels=self.figure["levels"],
            palette="d",
            texts=level_texts(),
            strip=None if self.is_regression else [labels.index(c) for c in classes],
            x_label="samples" + (", sorted by the target" if self.is_regression else ", by class"),
        )

    def legend(self) -> list[tuple[str, str]]:
        texts = level_texts()
        legend = [(f"d{level}", texts[level]) for level in (0, 4, 8)]
        if not self.is_regression:
            labels = list(dict.fromkeys(self.figure["classes"]))
            legend += [(f"c{i % 8}", visible(label, 40)) for i, label in enumerate(labels[:8])]
        return legend


def level_texts() -> list[str]:
    """The deviations that the colours of the map stand for."""
    step = 2.0 * WIDEST_DEVIATION / N_LEVELS
    centers = [-WIDEST_DEVIATION + (level + 0.5) * step for level in range(N_LEVELS)]
    texts = [f"{center:+.1f} SD" if abs(center) > 0.01 else "near the mean" for center in centers]
    return [f"{texts[0]} or less", *texts[1:-1], f"{texts[-1]} or more"]


def value_map(
    X: Any, y: NDArray[Any], columns: NDArray[np.intp], *, sorted_target: bool = False
) -> dict[str, Any] | None:
    """Standardised values of the selected features across samples, as colour levels, ordered by clustering.

    Samples are ordered by class and clustered within it (for regression, sorted by the target).
    Of more than 300 samples, evenly spaced ones of this order are shown.
    """
    if columns.size == 0:
        return None
    shown = columns[:MOST_FEATURES]
    values = standardized(dense_columns(X, shown))
    samples = np.argsort(y, kind="stable") if sorted_target else _by_class(values, y)
    if len(samples) > MOST_SAMPLES:
        samples = samples[np.linspace(0, len(samples) - 1, MOST_SAMPLES).round().astype(np.intp)]
    features = clustered(values.T, metric="correlation")
    step = 2.0 * WIDEST_DEVIATION / N_LEVELS
    levels = np.floor((values + WIDEST_DEVIATION) / step).clip(0, N_LEVELS - 1).astype(int)
    return {
        "features": shown[features].tolist(),
        "samples": samples.tolist(),
        "classes": [str(label) for label in y[samples]],
        "levels": levels[np.ix_(samples, features)].T.tolist(),
        "n_samples": len(y),
        "n_features": int(columns.size),
    }


def _by_class(values: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.intp]:
    order = []
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        # Clustering takes time for all pairs of samples: of a large class, evenly spaced samples are shown.
        if len(members) > 4 * MOST_SAMPLES:
            members = members[np.linspace(0, len(members) - 1, 4 * MOST_SAMPLES).round().astype(np.intp)]
        order.append(members[clustered(values[members], metric="euclidean")])
    return np.concatenate(order)
