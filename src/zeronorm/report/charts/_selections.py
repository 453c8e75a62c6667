"""Selections in the folds: frequencies of the features, agreement of the methods, and stability of the sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from zeronorm.evaluation._summary import StabilityPoint, stabilities
from zeronorm.report._cells import Bar, Bars, Grid
from zeronorm.report._chart import Chart, ReportData, Rows, register_chart
from zeronorm.report._lines import Lines, Point, Series
from zeronorm.report._svg import Axes, visible

MOST_BARS = 30
MOST_SHARED = 30


@register_chart("frequency", order=40)
@dataclass(frozen=True)
class FrequencyChart(Chart):
    """Shares of the folds in which a feature was selected, the most frequent first."""

    shares: tuple[tuple[str, float, bool], ...]
    expected: float
    n_splits: int
    n_more: int
    title = "Selection frequency"

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        found = report_data.frequencies.get(report_data.result.chosen_method or "")
        if found is None or not found.shares:
            return None
        chosen = {feature.index for feature in report_data.result.selected}
        shown = tuple(
            (report_data.result.name_of(i), share, i in chosen) for i, share in found.shares[:MOST_BARS]
        )
        return cls(shown, found.expected, found.n_splits, len(found.shares) - len(shown))

    @property
    def caption(self) -> str:
        more = f" {self.n_more} more features were selected less often." if self.n_more else ""
        return (
            f"Share of the {self.n_splits} outer folds in which a feature was selected. Filled bars: features of "
            f"the final set.{more}"
        )

    def picture(self) -> Bars:
        bars = [
            Bar(
                name,
                share,
                f"{100 * share:.0f} %",
                f"{visible(name)}: selected in {100 * share:.0f} % of the folds",
                is_selected,
            )
            for name, share, is_selected in self.shares
        ]
        chance = (self.expected, f"by chance: {100 * self.expected:.2g} %")
        return Bars(bars, "share of the folds", chance)

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [name, f"{100 * share:.0f} %", "yes" if chosen else "no"] for name, share, chosen in self.shares
        ]
        return ("feature", "frequency", "in the final set"), rows


@register_chart("stability", order=50)
@dataclass(frozen=True)
class StabilityChart(Chart):
    """Stability of every method at every size where it is defined."""

    points: tuple[StabilityPoint, ...]
    title = "Stability of the selected set"
    caption = (
        "Agreement of the sets selected in different folds (Nogueira et al. 2018): 1 means always the same "
        "features, 0 means no more than chance. Bars are 95 % intervals; ringed points are the whole procedure."
    )

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        return cls._of(report_data.stabilities)

    @classmethod
    def from_records(cls, records: Any, n_features: int) -> Self:
        """The chart of the records of ``evaluate``, which do not hold the number of features of the data."""
        found = cls._of(stabilities(records, n_features))
        if found is None:
            raise ValueError("Stability needs at least two splits with selections. Evaluate with more folds.")
        return found

    @classmethod
    def _of(cls, points: tuple[StabilityPoint, ...]) -> Self | None:
        defined = tuple(p for p in points if p.nogueira is not None)
        return cls(defined) if defined else None

    def _by_method(self) -> dict[str, list[StabilityPoint]]:
        ordered = sorted(self.points, key=lambda p: (p.size is None, p.mean_size))
        return {
            m: [p for p in ordered if p.method == m] for m in dict.fromkeys(p.method for p in self.points)
        }

    def picture(self) -> Lines:
        series = []
        for method, points in self._by_method().items():
            line = tuple(
                Point(
                    p.mean_size,
                    p.nogueira or 0.0,
                    p.low,
                    p.high,
                    f"{method}, {p.mean_size:g} features: stability {p.nogueira:.2f}",
                    is_chosen=p.size is None,
                )
                for p in points
            )
            series.append(Series(method, line))
        return Lines(series, Axes("number of features", "stability", y_bounds=(None, 1.0)))

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [p.method, f"{p.mean_size:g}", f"{p.nogueira:.3f}", f"{p.jaccard:.3f}"]
            for points in self._by_method().values()
            for p in points
        ]
        return ("method", "features", "stability", "Jaccard index"), rows

    def keys(self) -> list[str]:
        methods = list(self._by_method())
        return methods if len(methods) > 1 else []


@register_chart("shared", order=60)
@dataclass(frozen=True)
class SharedChart(Chart):
    """Selection frequencies (features by methods) of the features that are selected most often overall."""

    features: tuple[str, ...]
    methods: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]
    title = "Features that the methods agree on"
    caption = "How often each method selected the features that are selected most often overall."

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        found = {label: dict(frequencies.shares) for label, frequencies in report_data.frequencies.items()}
        totals: dict[int, float] = {}
        for by_feature in found.values():
            for index, share in by_feature.items():
                totals[index] = totals.get(index, 0.0) + share
        leading = sorted(totals, key=lambda index: (-totals[index], index))[:MOST_SHARED]
        if not leading or len(found) < 2:
            return None
        shares = tuple(tuple(by.get(index, 0.0) for by in found.values()) for index in leading)
        return cls(tuple(report_data.result.name_of(i) for i in leading), tuple(found), shares)

    def picture(self) -> Grid:
        return Grid(
            rows=list(self.features),
            columns=list(self.methods),
            levels=[[round(share, 2) for share in row] for row in self.shares],
            palette="p",
            cells=[[f"selected in {100 * share:.0f} % of the folds" for share in row] for row in self.shares],
            column_ticks=list(enumerate(self.methods)),
        )

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [name, *(f"{100 * s:.0f} %" for s in row)]
            for name, row in zip(self.features, self.shares, strict=True)
        ]
        return ("feature", *self.methods), rows

    def legend(self) -> list[tuple[str, str]]:
        return [("scale-share", "never to always")]
