"""A small chart of every selected feature: values by class, or against the target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from zeronorm.report._chart import Chart, ReportData, Rows, Run, register_chart
from zeronorm.report._svg import HALF, Box, Scale, element, fitted, svg_chart, value_range, visible
from zeronorm.resampling._splits import dense_columns
from zeronorm.selection.target import TASKS, TimeToEvent

MOST_FEATURES = 24
MOST_DOTS = 120
MOST_CLASSES = 8
PANEL, WIDEST_PANEL = 170, 240  # pixels
GAP = 14
LABEL_SIZE = 11.0  # of .cell-label


@register_chart("features", order=15)
@dataclass(frozen=True)
class FeaturesChart(Chart):
    """Small panels in the order of the method: boxes and samples per class, or target against value."""

    panels: tuple[Panel, ...]
    n_features: int
    is_regression: bool
    target: str
    is_wide = True

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        if run.task == TimeToEvent.task:  # censored times have no value to compare with
            return None
        return feature_values(run.X, run.y, run.columns, is_regression=not TASKS[run.task].has_classes)

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        figure, result = report_data.result.figures.get(cls.name), report_data.result
        if not figure:
            return None
        panels = tuple(
            Panel(
                result.name_of(i),
                tuple(values),
                tuple(figure["target"]),
                tuple(map(tuple, boxes)),
                figure["classes"],
            )
            for i, values, boxes in zip(figure["features"], figure["values"], figure["boxes"], strict=True)
        )
        is_regression = not TASKS[result.data["task"]].has_classes
        return cls(panels, figure["n_features"], is_regression, str(result.data.get("target") or "target"))

    @property
    def title(self) -> str:
        return (
            f"Selected features against {visible(self.target, 40)}"
            if self.is_regression
            else "Selected features by class"
        )

    @property
    def caption(self) -> str:
        first = (
            f"The first {len(self.panels)} of {self.n_features} selected features. "
            if self.n_features > len(self.panels)
            else ""
        )
        if self.is_regression:
            return f"{first}Each dot is a sample; the target is on the vertical axis."
        return (
            f"{first}Boxes show the median and the quartiles of a class; whiskers reach to the "
            "5 % and 95 % quantiles; dots are single samples. The feature was selected with these samples: on new "
            "samples the classes will overlap more."
        )

    def picture(self) -> Panels:
        return Panels(self.panels, self.is_regression)

    def table(self) -> tuple[tuple[str, ...], Rows]:
        if self.is_regression:
            return (), []
        rows = [
            [panel.name, visible(label, 40), *(f"{value:.4g}" for value in box)]
            for panel in self.panels
            for label, box in zip(panel.classes, panel.boxes, strict=True)
        ]
        return ("feature", "class", "5 %", "25 %", "median", "75 %", "95 %"), rows

    def legend(self) -> list[tuple[str, str]]:
        if self.is_regression:
            return []
        return [(f"c{i}", visible(label, 40)) for i, label in enumerate(self.panels[0].classes)]

    def plot(self, ax: Any = None) -> Any:
        """Draw one panel per feature with matplotlib; with ``ax``, the first feature only."""
        from zeronorm.report._plots import journal_style

        if ax is not None:
            self.panels[0].draw(ax, self.is_regression)
            return ax.figure
        n_columns = min(4, len(self.panels))
        n_rows = math.ceil(len(self.panels) / n_columns)
        with journal_style() as plt:
            figure, grid = plt.subplots(
                n_rows,
                n_columns,
                figsize=(1.75 * n_columns, 1.6 * n_rows),
                layout="constrained",
                squeeze=False,
            )
            for position, panel in zip(grid.flat, self.panels, strict=False):
                panel.draw(position, self.is_regression)
            for position in list(grid.flat)[len(self.panels) :]:
                position.set_axis_off()
        return figure


@dataclass(frozen=True)
class Panel:
    """One feature: values and targets of some samples, and five quantiles per class over all samples."""

    name: str
    values: tuple[float, ...]
    target: tuple[float, ...]
    boxes: tuple[tuple[float, ...], ...]
    classes: list[str]

    def draw(self, ax: Any, is_regression: bool) -> None:
        """Draw the panel on matplotlib axes."""
        from zeronorm.report._plots import COLOURS, printable

        ax.set_title(printable(self.name, 26))
        if is_regression:
            ax.scatter(self.values, self.target, s=4, color=COLOURS[0], alpha=0.6, linewidths=0)
            return
        ends = ("whislo", "q1", "med", "q3", "whishi")
        ax.bxp(
            [{**dict(zip(ends, box, strict=True)), "fliers": []} for box in self.boxes],
            widths=0.5,
            medianprops={"color": "black"},
        )
        for value, code, shift in zip(self.values, self.target, _jitter(len(self.values)), strict=True):
            ax.plot(code + 1 + 0.5 * shift, value, ".", markersize=2, color=COLOURS[int(code) % 8], alpha=0.6)
        ax.set_xticks(range(1, len(self.classes) + 1), [printable(label, 10) for label in self.classes])


@dataclass(frozen=True)
class Panels:
    """Panels side by side, as many in a row as the width allows."""

    panels: tuple[Panel, ...]
    is_regression: bool

    def svg(self, identifier: str, title: str, width: int = HALF) -> Markup:
        n_columns = min(len(self.panels), max(1, (width + GAP) // (PANEL + GAP - 16)))
        panel = min(WIDEST_PANEL, (width - GAP * (n_columns - 1)) / n_columns)
        start = (width - n_columns * panel - GAP * (n_columns - 1)) / 2
        height = 150.0
        parts = []
        for i, content in enumerate(self.panels):
            left, top = start + (i % n_columns) * (panel + GAP), (i // n_columns) * (height + GAP)
            box = Box(left + 38, top + 20, left + panel - 10, top + height - 22)
            parts.append(_panel(content, box, self.is_regression))
        rows = math.ceil(len(self.panels) / n_columns)
        return svg_chart(identifier, title, (width, rows * (height + GAP)), *parts)

    def data(self, identifier: str) -> Markup:
        return Markup("")

    @property
    def inches(self) -> tuple[float, float]:
        return 1.75, 1.6

    def draw(self, ax: Any) -> None:
        self.panels[0].draw(ax, self.is_regression)


def _panel(panel: Panel, box: Box, is_regression: bool) -> Markup:
    name = visible(panel.name, int((box.right - box.left + 34) / 8.2))
    parts = [element("text", name, x=box.left - 34, y=box.top - 6, class_="label name")]
    if is_regression:
        parts += _scatter(panel, box)
    else:
        parts += _boxes(panel, box)
    parts.append(element("line", x1=box.left, x2=box.right, y1=box.bottom, y2=box.bottom, class_="axis"))
    return element("g", *parts)


def _value_ticks(box: Box, scale: Scale) -> list[Markup]:
    parts = []
    for tick in scale.ticks(4):
        position = scale(tick)
        parts.append(element("line", x1=box.left, x2=box.right, y1=position, y2=position, class_="grid"))
        parts.append(element("text", f"{tick:.6g}", x=box.left - 4, y=position + 4, class_="tick end"))
    return parts


def _boxes(panel: Panel, box: Box) -> list[Markup]:
    values = [v for five in panel.boxes for v in five] + list(panel.values)
    scale = Scale(*value_range(values), box.bottom, box.top)
    parts = _value_ticks(box, scale)
    step = (box.right - box.left) / len(panel.boxes)
    names = _class_names(panel.classes, step - 3)
    for code, (label, five) in enumerate(zip(panel.classes, panel.boxes, strict=True)):
        center = box.left + (code + 0.5) * step
        half = min(22.0, 0.3 * step)
        low, first, median, third, high = (scale(v) for v in five)
        quartiles = f"median {five[2]:.4g} ({five[1]:.4g} to {five[3]:.4g})"
        tip = f"{visible(panel.name, 60)}, {visible(label, 40)}: {quartiles}"
        size = {"width": 2 * half, "height": max(1.0, first - third)}
        dots = "".join(
            f"M{center + shift * 2 * half:.1f} {scale(v):.1f}h.01"
            for v, t, shift in zip(panel.values, panel.target, _jitter(len(panel.values)), strict=True)
            if int(t) == code
        )
        parts.append(
            element(
                "g",
                element("path", d=dots, class_="dots"),
                element("line", x1=center, x2=center, y1=low, y2=high, class_="whisker"),
                element("rect", x=center - half, y=third, **size, class_="mark box", data_tip=tip),
                element(
                    "line", x1=center - half, x2=center + half, y1=median, y2=median, class_="median-line"
                ),
                class_=f"s{code % 8}",
            )
        )
        if code < len(names):
            parts.append(
                element("text", names[code], x=center, y=box.bottom + 15, class_="cell-label middle name")
            )
    return parts


def _class_names(classes: list[str], room: float) -> list[str]:
    """Names of the classes as they fit under the boxes; none where cut names would be the same: the legend has them."""
    names = [fitted(label, room, LABEL_SIZE) for label in classes]
    is_cut = any(name != visible(label) for name, label in zip(names, classes, strict=True))
    return [] if is_cut and (min(map(len, names)) < 4 or len(set(names)) < len(names)) else names


def _scatter(panel: Panel, box: Box) -> list[Markup]:
    x = Scale(*value_range(list(panel.values)), box.left, box.right)
    y = Scale(*value_range(list(panel.target)), box.bottom, box.top)
    parts = _value_ticks(box, y)
    ticks = x.ticks(3)
    parts += [element("text", f"{t:.6g}", x=x(t), y=box.bottom + 15, class_="tick middle") for t in ticks]
    positions = zip(panel.values, panel.target, strict=True)
    dots = "".join(f"M{x(v):.1f} {y(t):.1f}h.01" for v, t in positions)
    parts.append(element("g", element("path", d=dots, class_="dots"), class_="s0"))
    return parts


def _jitter(n: int) -> NDArray[np.float64]:
    """Shifts in [-0.5, 0.5] that fill the width evenly and are always the same."""
    return np.asarray((np.arange(n) * 0.618034) % 1.0 - 0.5, dtype=np.float64)


def feature_values(
    X: Any, y: NDArray[Any], columns: NDArray[np.intp], *, is_regression: bool
) -> dict[str, Any] | None:
    """Values of some samples and quantiles per class of the first selected features."""
    shown = columns[:MOST_FEATURES]
    if shown.size == 0:
        return None
    values = dense_columns(X, shown)
    labels, codes = (
        (np.empty(0), np.asarray(y, dtype=float)) if is_regression else np.unique(y, return_inverse=True)
    )
    if len(labels) > MOST_CLASSES:
        return None
    rows = np.linspace(0, len(y) - 1, min(len(y), MOST_DOTS)).round().astype(np.intp)
    if not is_regression:  # evenly spaced samples of every class
        rows = np.argsort(codes, kind="stable")[rows]
    boxes = [
        [
            np.quantile(column[codes == code], (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()
            for code in range(len(labels))
        ]
        for column in values.T
    ]
    return {
        "features": shown.tolist(),
        "values": [[float(f"{v:.5g}") for v in column[rows]] for column in values.T],
        "target": [float(f"{t:.5g}") for t in codes[rows]],
        "boxes": boxes,
        "classes": [str(label) for label in labels],
        "n_features": int(columns.size),
    }
