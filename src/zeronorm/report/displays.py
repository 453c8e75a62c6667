"""Matplotlib figures from the same figure data as the report.

Each display has ``from_records`` (or ``from_path``), which computes and draws, and ``plot``, which draws
again, in the manner of scikit-learn's displays: the axes are in ``ax_``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from zeronorm.evaluation.comparison import Comparison, compare
from zeronorm.evaluation.summary import (
    Curve,
    StabilityPoint,
    error_curves,
    metric_label,
    primary_metric,
    stabilities,
)
from zeronorm.selection.path import SelectionPath
from zeronorm.workflow.figure_data import path_figure

LARGEST_PATH = 128


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: install it with `pip install zeronorm[app]`.") from error
    return plt.subplots(layout="constrained")[1]


@dataclass
class PathDisplay:
    """Which features are in the subset of each size.

    Parameters
    ----------
    figure : from ``zeronorm.workflow.figure_data.path_figure``.
    names : names of the features by index; None shows the indices.
    """

    figure: dict[str, Any]
    names: Sequence[str] | None = None
    ax_: Any = field(default=None, init=False)

    @classmethod
    def from_path(
        cls,
        path: SelectionPath,
        *,
        names: Sequence[str] | None = None,
        largest: int = LARGEST_PATH,
        ax: Any = None,
    ) -> Self:
        """Draw the path of a fitted selector (``selector.path_``) up to ``largest`` features."""
        figure = path_figure(path, largest)
        if figure is None:
            raise ValueError("The path has fewer than two sizes, so there is nothing to draw.")
        display = cls(figure, names)
        display.plot(ax)
        return display

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        self.ax_ = _axes(ax)
        sizes, features = self.figure["sizes"], self.figure["features"]
        labels = [str(i) if self.names is None else str(self.names[i]) for i in features]
        self.ax_.imshow(
            self.figure["members"], aspect="auto", cmap="Blues", vmin=0, vmax=1.5, interpolation="nearest"
        )
        step = max(1, len(sizes) // 10)
        self.ax_.set_xticks(range(0, len(sizes), step), [str(s) for s in sizes[::step]])
        self.ax_.set_yticks(range(len(labels)), labels, fontsize="small")
        self.ax_.set(xlabel="number of features", title="Path of the selection")
        return self


@dataclass
class StabilityDisplay:
    """Stability of the selected sets against their size."""

    points: tuple[StabilityPoint, ...]
    ax_: Any = field(default=None, init=False)

    @classmethod
    def from_records(cls, records: Any, n_features: int, *, ax: Any = None) -> Self:
        """Draw the stability of all methods in the records of ``evaluate``."""
        points = stabilities(records, n_features)
        if not points:
            raise ValueError("Stability needs at least two splits with selections. Evaluate with more folds.")
        display = cls(points)
        display.plot(ax)
        return display

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        self.ax_ = _axes(ax)
        defined = [p for p in self.points if p.nogueira is not None and p.size is not None]
        for method in dict.fromkeys(p.method for p in defined):
            line = sorted((p for p in defined if p.method == method), key=lambda p: p.mean_size)
            values = [p.nogueira or 0.0 for p in line]
            errors = [
                [v - (p.low if p.low is not None else v) for v, p in zip(values, line, strict=True)],
                [(p.high if p.high is not None else v) - v for v, p in zip(values, line, strict=True)],
            ]
            self.ax_.errorbar(
                [p.mean_size for p in line], values, errors, marker="o", capsize=2, label=method
            )
        self.ax_.set(xscale="log", xlabel="number of features", ylabel="stability")
        self.ax_.legend()
        return self


@dataclass
class CompareDisplay:
    """Error of several methods against the number of features, and their comparison at their own sizes."""

    metric: str
    curves: tuple[Curve, ...]
    comparison: Comparison | None
    ax_: Any = field(default=None, init=False)

    @classmethod
    def from_records(cls, records: Any, *, metric: str | None = None, ax: Any = None) -> Self:
        """Draw the curves of all methods in the records of ``evaluate``."""
        chosen = metric or primary_metric(records)
        display = cls(chosen, error_curves(records, chosen), _comparison(records, chosen))
        display.plot(ax)
        return display

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        self.ax_ = _axes(ax)
        for curve in self.curves:
            points = curve.points or ((curve.own,) if curve.own is not None else ())
            means = [p.mean for p in points]
            errors = [
                [p.mean - (p.low if p.low is not None else p.mean) for p in points],
                [(p.high if p.high is not None else p.mean) - p.mean for p in points],
            ]
            self.ax_.errorbar(
                [p.size for p in points], means, errors, marker="o", capsize=2, label=curve.method
            )
        self.ax_.set(xscale="log", xlabel="number of features", ylabel=metric_label(self.metric))
        self.ax_.legend()
        return self


def _comparison(records: Any, metric: str) -> Comparison | None:
    """The comparison, where the records have the methods' own sizes."""
    try:
        return compare(records, metric)
    except ValueError:
        return None
