"""Scores of the leading features, and their weights over the steps of methods that learn iteratively."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zeronorm.report._cells import Bar, Bars
from zeronorm.report._chart import Chart, ReportData, Rows, Run, register_chart
from zeronorm.report._lines import Lines, Point, Series
from zeronorm.report._svg import Axes, visible

MOST_RANKED = 200
MOST_BARS = 30
MOST_LINES = 10


@register_chart("importance", order=30)
@dataclass(frozen=True)
class ImportanceChart(Chart):
    """The scores that the method gave to the leading features; greater is better."""

    names: tuple[str, ...]
    scores: tuple[float, ...]
    selected: tuple[bool, ...]
    title = "Importance of the leading features"
    caption = (
        "Scores of the leading features, in the order of the method. Filled bars: features of the final set."
    )

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        leading = leading_features(run.path, len(run.columns))
        scores = run.path.feature_scores()
        return {"features": leading, "scores": [float(scores[index]) for index in leading]}

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        figure = report_data.result.figures.get(cls.name)
        if not figure:
            return None
        chosen = {feature.index for feature in report_data.result.selected}
        rows = zip(figure["features"], figure["scores"], strict=True)
        return cls._of([(report_data.result.name_of(i), score, i in chosen) for i, score in rows])

    @classmethod
    def from_selector(cls, selector: Any, names: Sequence[str] | None = None) -> Self:
        """The scores of a fitted selector, with the names of the columns if it was fitted on a data frame."""
        path = selector.path_
        names = getattr(selector, "feature_names_in_", None) if names is None else names
        scores, support = path.feature_scores(), selector.get_support()
        leading = leading_features(path, int(support.sum()))
        shown = [str(names[i]) if names is not None else f"feature {i}" for i in leading]
        found = cls._of(
            [(name, float(scores[i]), bool(support[i])) for name, i in zip(shown, leading, strict=True)]
        )
        if found is None:
            raise ValueError(f"{type(selector).__name__} has no finite scores, so there is nothing to draw.")
        return found

    @classmethod
    def _of(cls, rows: list[tuple[str, float | None, bool]]) -> Self | None:
        finite = [row for row in rows if row[1] is not None and np.isfinite(row[1])][:MOST_BARS]
        if len({score for _, score, _ in finite}) < 2:
            return None
        names, scores, selected = zip(*finite, strict=True)
        return cls(names, scores, selected)

    def picture(self) -> Bars:
        low = min(0.0, *self.scores)
        span = max(max(self.scores) - low, 1e-300)
        bars = [
            Bar(name, (score - low) / span, f"{score:.3g}", f"{visible(name)}: score {score:.4g}", chosen)
            for name, score, chosen in zip(self.names, self.scores, self.selected, strict=True)
        ]
        return Bars(bars, "score, as a share of the largest")

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = zip(self.names, self.scores, self.selected, strict=True)
        return ("feature", "score", "in the final set"), [
            [name, f"{score:.4g}", "yes" if chosen else "no"] for name, score, chosen in rows
        ]


@register_chart("history", order=100)
@dataclass(frozen=True)
class HistoryChart(Chart):
    """Weights of the leading features over the steps of a method that learns them iteratively."""

    names: tuple[str, ...]
    steps: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]
    title = "Probability of features while learning"
    caption = "The probability with which the method draws each of the leading features, over its steps."

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        return weights_over_time(run.method, run.columns.tolist())

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        figure = report_data.result.figures.get(cls.name)
        if not figure:
            return None
        names = tuple(report_data.result.name_of(i) for i in figure["features"])
        return cls(names, tuple(figure["steps"]), tuple(tuple(row) for row in figure["values"]))

    def picture(self) -> Lines:
        series = [
            Series(
                name,
                tuple(
                    Point(max(1, step), value, tip=f"{visible(name, 60)}, step {step}: {value:.3g}")
                    for step, value in zip(self.steps, values, strict=True)
                ),
            )
            for name, values in zip(self.names, self.values, strict=True)
        ]
        return Lines(series, Axes("step", "probability", "{:.2g}".format, y_bounds=(0.0, 1.0)))

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [[name, f"{values[-1]:.3g}"] for name, values in zip(self.names, self.values, strict=True)]
        return ("feature", "final probability"), rows

    def keys(self) -> list[str]:
        return list(self.names) if len(self.names) > 1 else []


def leading_features(path: Any, n_selected: int) -> list[int]:
    """The leading features: the selected ones and as many again, at most 200."""
    return [int(index) for index in path.order[: min(path.n_features, MOST_RANKED, max(40, 2 * n_selected))]]


def weights_over_time(selector: Any, features: list[int]) -> dict[str, Any] | None:
    """Feature weights at the snapshots of a method that learns them iteratively.

    A method has them in ``history_`` with ``steps`` and ``weights`` (snapshots by features).
    """
    history: Any = getattr(selector, "history_", None)
    weights = getattr(history, "weights", None)
    if weights is None or len(weights) < 2 or not features:
        return None
    shown = features[:MOST_LINES]
    values = np.asarray(weights, dtype=np.float64)[:, shown].T
    return {"steps": [int(step) for step in history.steps], "features": shown, "values": values.tolist()}
