"""Effect of each feature alone against its p-value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zeronorm.report._chart import Chart, ReportData, Rows, Run, register_chart
from zeronorm.report._scatter import MOST_POINTS, Dot, Scatter
from zeronorm.report._svg import Axes, visible
from zeronorm.result._sentences import EFFECTS

SMALLEST = 1e-300  # smaller p-values are rounded to 0
LOG_FOLD = "log2_fold_change"
NAMES = {**EFFECTS, LOG_FOLD: "log2 fold change"}


@register_chart("volcano", order=34)
@dataclass(frozen=True)
class VolcanoChart(Chart):
    """The features with the smallest p-values, the selected ones and some of the others."""

    features: tuple[int, ...]
    names: tuple[str, ...]
    effect: tuple[float, ...]
    p_value: tuple[float, ...]
    selected: frozenset[int]
    kind: str
    n_features: int
    n_discoveries: int
    title = "Effect and p-value of each feature alone"

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        found = run.effects
        if found is None or found.kind == "hazard_ratio":
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithm = np.log2(found.fold_change)
        kind, effect = (
            (LOG_FOLD, logarithm) if np.isfinite(logarithm).all() else (found.kind, found.difference)
        )
        ascending = np.argsort(found.p_value, kind="stable")
        half = MOST_POINTS // 2
        others = ascending[half:][:: max(1, -(-(ascending.size - half) // half))]
        shown = np.union1d(np.concatenate([ascending[:half], others]), run.columns)
        shown = shown[np.isfinite(effect[shown])].astype(int)
        return {
            "features": shown.tolist(),
            "effect": effect[shown].round(6).tolist(),
            "p_value": [float(f"{p:.4g}") for p in found.p_value[shown]],
            "kind": kind,
            "n_discoveries": int(np.count_nonzero(found.q_value <= 0.05)),
        }

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        result = report_data.result
        kept = result.figures.get("volcano")
        if not kept or len(kept["features"]) < 2:
            return None
        return cls(
            tuple(kept["features"]),
            tuple(result.name_of(index) for index in kept["features"]),
            tuple(kept["effect"]),
            tuple(kept["p_value"]),
            frozenset(feature.index for feature in result.selected),
            kept["kind"],
            result.data["n_features"],
            kept["n_discoveries"],
        )

    @property
    def caption(self) -> str:
        part = "" if len(self.features) == self.n_features else f"{len(self.features)} of "
        return (
            f"Each point is a feature by itself: {part}{self.n_features} are shown, the selected ones as large points. "
            f"{self.n_discoveries} have a q-value (false discovery rate) of at most 0.05. Features that predict only "
            "together are low in this plot."
        )

    def legend(self) -> list[tuple[str, str]]:
        return [("c1", "selected"), ("c0", "not selected")]

    def picture(self) -> Scatter:
        points = zip(self.features, self.names, self.effect, self.p_value, strict=True)
        dots = [
            Dot(
                x,
                -float(np.log10(max(p, SMALLEST))),
                int(index in self.selected),
                f"{visible(name, 40)}: {NAMES[self.kind]} {x:.3g}, p = {p:.2g}",
                index in self.selected,
            )
            for index, name, x, p in points
        ]
        axes = Axes(NAMES[self.kind], "−log10 p", x_log=False, y_bounds=(0.0, None))
        return Scatter(tuple(sorted(dots, key=lambda dot: dot.is_marked)), axes)

    def table(self) -> tuple[tuple[str, ...], Rows]:
        order = sorted(range(len(self.features)), key=lambda i: self.p_value[i])
        rows = [
            [
                self.names[i],
                f"{self.effect[i]:.4g}",
                f"{self.p_value[i]:.3g}",
                "yes" if self.features[i] in self.selected else "",
            ]
            for i in order
        ]
        return ("feature", NAMES[self.kind], "p", "selected"), rows
