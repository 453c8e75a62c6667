"""Error against the number of features."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm.evaluation.records import columns_of
from zeronorm.evaluation.significance import mean_difference
from zeronorm.evaluation.stability import stability_of_records

# Names, labels and whether smaller is better, for the metrics that figures know.
METRIC_LABELS = {
    "balanced_error_rate": "balanced error rate",
    "error_rate": "error rate",
    "mse": "mean squared error",
    "mae": "mean absolute error",
    "r2": "R²",
    "auc": "area under the ROC curve",
}
PRIMARY_METRICS = ("balanced_error_rate", "error_rate", "mse", "mae", "r2", "auc")
RATES = ("balanced_error_rate", "error_rate", "auc")


@dataclass(frozen=True)
class CurvePoint:
    """Mean of a metric over the test parts, with a 95 % interval (None with a single test part)."""

    size: float
    mean: float
    low: float | None
    high: float | None
    n_splits: int


@dataclass(frozen=True)
class Curve:
    """One method: its points by size, and the point of its own size (the procedure as asked for)."""

    method: str
    points: tuple[CurvePoint, ...]
    own: CurvePoint | None


def primary_metric(records: Any) -> str:
    """The metric that the figures show: the first known one among the columns of the records."""
    columns = columns_of(records)
    for name in PRIMARY_METRICS:
        if name in columns:
            return name
    raise ValueError(f"The records have none of the metrics {list(PRIMARY_METRICS)}. Evaluate one of them.")


def error_curves(records: Any, metric: str) -> tuple[Curve, ...]:
    """Mean and interval of ``metric`` for every method and size.

    The interval is that of the corrected resampled t statistic: training parts overlap, so the plain
    standard error would be too small.
    """
    columns = columns_of(records)
    groups: dict[str, dict[int | None, list[int]]] = {}
    for row, (method, size) in enumerate(zip(columns["method"], columns["size"], strict=True)):
        if columns[metric][row] is not None:
            groups.setdefault(method, {}).setdefault(size, []).append(row)
    curves = []
    for method, by_size in groups.items():
        points = [_point(columns, rows, metric) for size, rows in by_size.items() if size is not None]
        own = _point(columns, by_size[None], metric) if None in by_size else None
        curves.append(Curve(method, tuple(sorted(points, key=lambda point: point.size)), own))
    return tuple(curves)


def _point(columns: Any, rows: list[int], metric: str) -> CurvePoint:
    values = np.asarray([columns[metric][row] for row in rows], dtype=np.float64)
    selected = float(np.mean([columns["n_selected"][row] for row in rows]))
    if len(values) < 2:
        return CurvePoint(selected, float(values.mean()), None, None, len(values))
    ratio = float(np.mean([columns["n_test"][row] / columns["n_train"][row] for row in rows]))
    effect = mean_difference(values, test_train_ratio=ratio)
    low, high = effect.low, effect.high
    if metric in RATES:
        low, high = max(0.0, low), min(1.0, high)
    return CurvePoint(selected, effect.estimate, low, high, len(values))


def metric_label(metric: str) -> str:
    """The metric in words."""
    return METRIC_LABELS.get(metric, metric.replace("_", " "))


def format_metric(value: float | None, metric: str) -> str:
    """Rates in per cent, other metrics with three significant digits, without exponents where it can be."""
    if value is None:
        return "–"
    if metric in RATES and metric != "auc":
        return f"{100 * value:.1f} %"
    return f"{value:.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


# -- How often features were selected, and how alike the selections are --


@dataclass(frozen=True)
class Frequencies:
    """Share of the outer training parts in which each feature was selected, most frequent first.

    ``expected`` is the share that a random choice of as many features would have.
    """

    method: str
    shares: tuple[tuple[int, float], ...]
    n_splits: int
    expected: float


@dataclass(frozen=True)
class StabilityPoint:
    """Similarity of the subsets of one method at one size (None where not defined)."""

    method: str
    size: int | None
    mean_size: float
    nogueira: float | None
    low: float | None
    high: float | None
    jaccard: float


def selection_frequencies(records: Any, method: str, n_features: int, size: int | None = None) -> Frequencies:
    """Frequencies of one method at one size; None for its own size."""
    columns = columns_of(records)
    counts: Counter[int] = Counter()
    n_splits = n_selected = 0
    for name, row_size, selected in zip(columns["method"], columns["size"], columns["selected"], strict=True):
        if name == method and row_size == size and selected is not None:
            counts.update(int(index) for index in selected)
            n_splits += 1
            n_selected += len(selected)
    shares = sorted(
        ((index, count / n_splits) for index, count in counts.items()), key=lambda p: (-p[1], p[0])
    )
    expected = n_selected / max(1, n_splits * n_features)
    return Frequencies(method, tuple(shares), n_splits, expected)


def stabilities(records: Any, n_features: int) -> tuple[StabilityPoint, ...]:
    """Stability of every method and size with at least two selections."""
    columns = columns_of(records)
    counts = Counter(
        (method, size)
        for method, size, selected in zip(
            columns["method"], columns["size"], columns["selected"], strict=True
        )
        if selected is not None
    )
    if not counts or min(counts.values()) < 2:
        return ()
    table = columns_of(stability_of_records(records, n_features))
    fields = ("method", "size", "mean_size", "nogueira", "low", "high", "jaccard")
    return tuple(StabilityPoint(*row) for row in zip(*(table[name] for name in fields), strict=True))
