"""Error (or score) against the number of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from zeronorm.evaluation._summary import Curve, CurvePoint
from zeronorm.report._chart import Chart, ReportData, Rows, register_chart
from zeronorm.report._lines import Guides, Lines, Point, Series
from zeronorm.report._svg import Axes


@register_chart("error", order=10)
@dataclass(frozen=True)
class ErrorChart(Chart):
    """The metric of every method at every size, and of the whole procedure at its selected size."""

    report_data: ReportData
    curves: tuple[Curve, ...]
    sizes_of_folds: tuple[int, ...] = ()
    final_size: int | None = None
    is_wide = True

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        label = report_data.result.chosen_method
        sizes = tuple(sorted(report_data.selected_sizes.get(label or "", [])))
        final = len(report_data.result.selected) or None
        return cls(report_data, report_data.curves, sizes, final) if report_data.curves else None

    @classmethod
    def from_records(cls, records: Any) -> Self:
        """The chart of the records of ``evaluate``."""
        from zeronorm.report._html import report_data_of

        report_data = report_data_of(records)
        return cls(report_data, report_data.curves)

    @property
    def title(self) -> str:
        label = self.report_data.metric_label
        return f"{label[:1].upper()}{label[1:]} against the number of features"

    @property
    def caption(self) -> str:
        better = "Higher" if self.report_data.greater_is_better else "Lower"
        parts = [
            f"{better} is better. Mean over the outer test folds, with 95 % intervals for the models that were fitted "
            "here; with other data the procedure may do better or worse. Selection was repeated in every fold."
        ]
        if any(curve.own is not None for curve in self.curves):
            parts.append(
                "Ringed: the whole procedure, with the number of features that it selected in each fold"
                + (" (ticks above the axis)." if self.sizes_of_folds else ".")
            )
        if self.final_size is not None:
            parts.append("Dotted line: size of the final set, which was selected from all samples.")
        if len(self.curves) > 6:
            parts.append("Point at a line or its name to see its intervals.")
        return " ".join(parts)

    def picture(self) -> Lines:
        report_data = self.report_data
        axes = Axes("number of features", report_data.metric_label, self._tick, y_bounds=report_data.bounds)
        levels = () if report_data.chance is None else ((report_data.chance, "chance"),)
        positions = () if self.final_size is None else ((self.final_size, f"final set: {self.final_size}"),)
        rug = tuple((size, f"{size} features were selected in one fold") for size in self.sizes_of_folds)
        return Lines([self._series(curve) for curve in self.curves], axes, Guides(levels, positions, rug))

    def _tick(self, value: float) -> str:
        return self.report_data.format(value).replace(".0 ", " ")

    def _series(self, curve: Curve) -> Series:
        points = [Point(p.size, p.mean, p.low, p.high, self._tip(curve, p)) for p in curve.points]
        if curve.own is not None:
            own, tip = curve.own, f"whole procedure: {self._tip(curve, curve.own)}"
            points.append(Point(own.size, own.mean, own.low, own.high, tip, is_chosen=True))
        return Series(curve.method, tuple(points))

    def _tip(self, curve: Curve, p: CurvePoint) -> str:
        interval = ""
        if p.low is not None and p.high is not None:
            interval = f" ({self.report_data.format(p.low)} to {self.report_data.format(p.high)})"
        return f"{curve.method}, {p.size:g} features: {self.report_data.format(p.mean)}{interval}"

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [
                curve.method,
                kind,
                f"{p.size:g}",
                *(self.report_data.format(v) for v in (p.mean, p.low, p.high)),
            ]
            for curve in self.curves
            for kind, points in (("fixed size", curve.points), ("procedure", (curve.own,)))
            for p in points
            if p is not None
        ]
        return ("method", "measured", "features", "mean", "low", "high"), rows

    def keys(self) -> list[str]:
        return [curve.method for curve in self.curves] if len(self.curves) > 1 else []
