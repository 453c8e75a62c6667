"""Correlations between the selected features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from zeronorm.report._cells import Grid
from zeronorm.report._chart import Chart, ReportData, Rows, Run, clustered, register_chart, standardized
from zeronorm.report._svg import visible
from zeronorm.resampling._splits import dense_columns

MOST_FEATURES = 60
STRONG = 0.9


@register_chart("redundancy", order=80)
@dataclass(frozen=True)
class RedundancyChart(Chart):
    """The correlation matrix of the selected features, in clustered order."""

    names: tuple[str, ...]
    correlation: tuple[tuple[float, ...], ...]
    title = "Redundancy between the selected features"

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        return redundancy_map(run.X, run.columns)

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        figure = report_data.result.figures.get(cls.name)
        if not figure:
            return None
        names = tuple(report_data.result.name_of(i) for i in figure["features"])
        return cls(names, tuple(tuple(r or 0.0 for r in row) for row in figure["correlation"]))

    def _pairs(self) -> list[tuple[str, str, float]]:
        n = len(self.names)
        pairs = [(self.names[i], self.names[j], self.correlation[i][j]) for i in range(n) for j in range(i)]
        return sorted(pairs, key=lambda pair: -abs(pair[2]))

    @property
    def caption(self) -> str:
        strong = sum(abs(r) >= STRONG for _, _, r in self._pairs())
        pairs = f"{strong} pair has" if strong == 1 else f"{strong} pairs have"
        found = f"{pairs} |r| of at least {STRONG}." if strong else f"No pair reaches |r| = {STRONG}."
        return (
            f"Correlations, ordered by clustering: features in one block carry similar information. {found}"
        )

    def picture(self) -> Grid:
        return Grid(
            rows=list(self.names),
            columns=[visible(name, 60) for name in self.names],
            levels=[[round(r, 2) for r in row] for row in self.correlation],
            palette="r",
            cells=[[f"r = {r:.2f}" for r in row] for row in self.correlation],
            column_ticks=list(enumerate(self.names)),
        )

    def table(self) -> tuple[tuple[str, ...], Rows]:
        return ("feature", "feature", "correlation"), [[a, b, f"{r:.2f}"] for a, b, r in self._pairs()[:20]]

    def legend(self) -> list[tuple[str, str]]:
        return [("scale-correlation", "r from −1 to 1")]


def redundancy_map(X: Any, columns: NDArray[np.intp]) -> dict[str, Any] | None:
    """Correlations between the selected features, in clustered order."""
    if columns.size < 2:
        return None
    shown = columns[:MOST_FEATURES]
    values = standardized(dense_columns(X, shown))
    correlation = (values.T @ values / len(values)).clip(-1.0, 1.0)
    order = clustered(values.T, metric="correlation")
    return {
        "features": shown[order].tolist(),
        "correlation": correlation[np.ix_(order, order)].round(3).tolist(),
        "n_features": int(columns.size),
    }
