"""Control of false features: the estimate against the number of features, and paths on halves of the samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.engines._error_control import adjust_p_values, false_selection_bound
from zeronorm.report._chart import Chart, ReportData, Rows, Run, register_chart
from zeronorm.report._lines import Guides, Lines, Point, Series
from zeronorm.report._svg import Axes, visible

FEWEST_SIZES = 30  # that are shown at least, where there are as many
MOST_PATHS = 8

SHARE, NUMBER, PROBABILITY = (
    "estimated share of false features",
    "bound on the expected number of false features",
    "probability of any false feature",
)


@dataclass(frozen=True)
class Estimate:
    """What a selector estimates for its first 1, 2, … features: the measure, its values, and the level."""

    measure: str
    values: FloatArray
    level: float


# -- What each selector estimates ---------------------------------------------------------------------


def _of_dummies(selector: Any) -> Estimate:
    """The q-values in the order of the path; no set that has a feature has a smaller estimate."""
    q = np.maximum.accumulate(selector.q_values_[selector.path_.order])
    return Estimate(SHARE, q[q < 1.0], selector.level)


def _of_knockoffs(selector: Any) -> Estimate:
    """(offset + #{W <= -t}) / #{W >= t}, the threshold t being the positive statistic W of each feature."""
    W = selector.statistics_
    t = np.sort(W[W > 0.0])[::-1]
    negative = np.sort(-W[W < 0.0])
    n_false = selector.offset + negative.size - np.searchsorted(negative, t, side="left")
    return Estimate(SHARE, np.minimum(n_false / np.arange(1, t.size + 1), 1.0), selector.level)


def _of_probes(selector: Any) -> Estimate:
    """From the p-values: the expected number of irrelevant features that pass, or the adjusted p-value."""
    p = selector.p_values_
    if selector.control == "rate":
        return Estimate(NUMBER, np.sort(p) * p.size, selector.level * p.size)
    kind = {"fdr": (SHARE, "benjamini-hochberg"), "fwer": (PROBABILITY, "holm")}[selector.control]
    return Estimate(kind[0], np.sort(adjust_p_values(p, kind[1])), selector.level)


def _of_halves(selector: Any) -> Estimate:
    """The integrated bound over the number of features, or the bound whose threshold is the frequency of each."""
    order = selector.path_.order
    if selector.bound == "integrated":
        q = np.maximum.accumulate(selector.q_values_[order])
        return Estimate(SHARE, q[q < 1.0], selector.level)
    thresholds = np.minimum.accumulate(selector.frequencies_[order])
    n_pairs = selector.n_subsamples // 2 if selector.assumption == "unimodal" else None
    bounds = [
        false_selection_bound(selector.subset_size_, order.size, float(threshold), n_pairs=n_pairs)
        for threshold in thresholds[thresholds > 0.5]
    ]
    return Estimate(NUMBER, np.asarray(bounds, dtype=np.float64), selector.false_selections)


ESTIMATES: dict[str, Callable[[Any], Estimate]] = {
    "dummy-selector": _of_dummies,
    "knockoff-selector": _of_knockoffs,
    "probe-selector": _of_probes,
    "stability-selection": _of_halves,
}


def estimate_of(selector: Any) -> Estimate | None:
    """What a fitted selector with error control estimates; None for all others, and for several draws of knockoffs."""
    method = getattr(type(selector), "_method", None)
    if method is None or method.name not in ESTIMATES or getattr(selector, "n_draws", 1) > 1:
        return None
    return ESTIMATES[method.name](selector)


# -- The charts ---------------------------------------------------------------------------------------


@register_chart("false-features", order=36)
@dataclass(frozen=True)
class FalseFeaturesChart(Chart):
    """The estimated share or number of false features among the first 1, 2, … features, with the chosen number."""

    values: tuple[float, ...]
    chosen: int
    level: float
    measure: str

    @property
    def title(self) -> str:
        return f"{self.measure[:1].upper()}{self.measure[1:]}"

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        found = estimate_of(run.selector)
        if found is None or found.values.size == 0:
            return None
        chosen = int(run.columns.size)
        shown = found.values[: max(FEWEST_SIZES, 2 * chosen)]
        return {
            "values": [float(value) for value in shown],
            "chosen": chosen,
            "level": float(found.level),
            "measure": found.measure,
        }

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        figure = report_data.result.figures.get(cls.name)
        if not figure:
            return None
        return cls(tuple(figure["values"]), figure["chosen"], figure["level"], figure["measure"])

    @property
    def caption(self) -> str:
        return (
            f"{self.title} if the first 1, 2, … features of the ranking are selected. The dashed line is the level "
            f"that was asked for, the ringed point the {self.chosen} selected features. The guarantee holds on average "
            "over data sets; the curve is an estimate from these samples."
        )

    def picture(self) -> Lines:
        points = [
            Point(size, value, tip=f"{size} features: {value:.3g}")
            for size, value in enumerate(self.values, 1)
        ]
        if 1 <= self.chosen <= len(self.values):
            at = points[self.chosen - 1]
            points.append(Point(at.x, at.y, tip=f"chosen, {at.tip}", is_chosen=True))
        guides = Guides(((self.level, f"level {self.level:g}"),), ((self.chosen, f"chosen: {self.chosen}"),))
        axes = Axes("number of features", self.measure, "{:.3g}".format, y_bounds=(0.0, None))
        return Lines([Series(self.measure, tuple(points))], axes, guides)

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [str(size), f"{value:.4g}", "yes" if size == self.chosen else ""]
            for size, value in enumerate(self.values, 1)
        ]
        return ("features", self.measure, "chosen"), rows


@register_chart("half-sample-paths", order=37)
@dataclass(frozen=True)
class HalfSamplePathsChart(Chart):
    """The share of the halves on which a feature is among the first 1, 2, … ones, beside that of a permuted target."""

    names: tuple[str, ...]
    paths: tuple[tuple[float, ...], ...]
    permuted: tuple[float, ...]
    title = "Stability paths of the first features"
    caption = (
        "Share of the half-samples on which a feature is among the first 1, 2, … of the ranking. The last line is the "
        "largest share that any feature reaches at this size with a permuted target, that is without any relation."
    )

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        paths = getattr(run.selector, "stability_paths_", None)
        if paths is None:
            return None
        return {
            "features": [int(index) for index in run.selector.path_.order[:MOST_PATHS]],
            "paths": paths[:MOST_PATHS].tolist(),
            "permuted": run.selector.permuted_path_.tolist(),
        }

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        figure = report_data.result.figures.get(cls.name)
        if not figure:
            return None
        names = tuple(report_data.result.name_of(index) for index in figure["features"])
        return cls(names, tuple(map(tuple, figure["paths"])), tuple(figure["permuted"]))

    def _lines(self) -> list[tuple[str, tuple[float, ...]]]:
        permuted = [("permuted target, largest", self.permuted)] if self.permuted else []
        return [*zip(self.names, self.paths, strict=True), *permuted]

    def picture(self) -> Lines:
        series = [
            Series(
                name,
                tuple(
                    Point(
                        size, share, tip=f"{visible(name)}, first {size}: {100 * share:.0f} % of the halves"
                    )
                    for size, share in enumerate(shares, 1)
                ),
            )
            for name, shares in self._lines()
        ]
        axes = Axes("features selected on each half", "share of the halves", y_bounds=(0.0, 1.0))
        return Lines(series, axes)

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [name, str(size), f"{share:.3f}"]
            for name, shares in self._lines()
            for size, share in enumerate(shares, 1)
        ]
        return ("feature", "features selected on each half", "share of the halves"), rows

    def keys(self) -> list[str]:
        return [name for name, _ in self._lines()]
