"""Error against the number of features."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm.evaluation.records import columns_of, metric_columns
from zeronorm.evaluation.significance.pooled import POOLED_COLUMNS, metric_interval
from zeronorm.evaluation.stability import stability_of_records
from zeronorm.resampling.metrics import METRICS, Metric, as_metric


@dataclass(frozen=True)
class CurvePoint:
    """Mean of a metric over the test parts, with a 95 % interval (None where there is none)."""

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
    """The metric that is shown first: the one that stands first in ``METRICS``, else a scorer of scikit-learn."""
    names = metric_columns(records)
    for name in (*(known for known in METRICS if known in names), *names):
        try:
            return as_metric(name).name
        except ValueError:
            continue
    raise ValueError(
        f"The records have no metric that is known by name; their metric columns are {names}. Evaluate one of "
        f"{list(METRICS)} or a scorer of scikit-learn, or make a metric known with register_metric."
    )


def error_curves(records: Any, metric: str | Metric) -> tuple[Curve, ...]:
    """Mean and interval of ``metric`` for every method and size.

    The intervals are those of ``metric_interval``, which allow for overlapping training parts.
    """
    columns, measure = columns_of(records), as_metric(metric)
    groups: dict[str, dict[int | None, list[int]]] = {}
    for row, (method, size) in enumerate(zip(columns["method"], columns["size"], strict=True)):
        if columns[measure.name][row] is not None:
            groups.setdefault(method, {}).setdefault(size, []).append(row)
    curves = []
    for method, by_size in groups.items():
        points = [_point(columns, rows, measure) for size, rows in by_size.items() if size is not None]
        own = _point(columns, by_size[None], measure) if None in by_size else None
        curves.append(Curve(method, tuple(sorted(points, key=lambda point: point.size)), own))
    return tuple(curves)


def _point(columns: Any, rows: list[int], metric: Metric) -> CurvePoint:
    names = (metric.name, "n_train", "n_test", *POOLED_COLUMNS)
    parts = [{name: columns[name][row] for name in names if name in columns} for row in rows]
    selected = float(np.mean([columns["n_selected"][row] for row in rows]))
    low, high = metric_interval(metric, parts) or (None, None)
    mean = float(np.mean([part[metric.name] for part in parts]))
    return CurvePoint(selected, mean, low, high, len(parts))


def metric_label(metric: str | Metric) -> str:
    """The metric in words."""
    return as_metric(metric).text


def format_metric(value: float | None, metric: str | Metric) -> str:
    """A value of the metric as it is shown."""
    return as_metric(metric).format(value)


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
