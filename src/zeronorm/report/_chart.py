"""The base class of the charts of the report, their registry, and the numbers that several of them share.

A chart is one file in ``charts/``: a class with ``@register_chart`` that takes its numbers from ``ReportData`` and
returns what to draw. At the end of a selection, ``collect`` keeps what comes from the data or the fitted selector.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from zeronorm.evaluation import _summary as summary
from zeronorm.evaluation._records import columns_of
from zeronorm.evaluation._summary import Comparison, Curve, CurvePoint, Frequencies, StabilityPoint, compare
from zeronorm.registry import load_extensions
from zeronorm.resampling._metrics import as_metric
from zeronorm.result._record import ResultData
from zeronorm.selection._path import SelectionPath

Rows = list[list[str]]
Bounds = tuple[float | None, float | None]


@dataclass(frozen=True)
class Run:
    """The data and the fitted procedure at the end of a selection, from which ``Chart.collect`` takes what it needs.

    Parameters
    ----------
    X : array-like
        The table of features.
    y : ndarray
        The target.
    task : {"classification", "regression"}
        Whether y holds classes or numbers.
    selector : estimator
        The fitted procedure.
    method : estimator
        The selector inside the procedure, which ranks the features.
    path : SelectionPath
        The path of the selector.
    columns : ndarray of int
        The selected features, in the order of the path.
    sizes : list of int
        The numbers of features that were tried.
    sample_names : array-like or None, default=None
        The names of the samples, if the data have some.
    effects : Effects or None, default=None
        The effect and the p-value of every feature by itself.
    """

    X: Any
    y: NDArray[Any]
    task: str
    selector: Any
    method: Any
    path: SelectionPath
    columns: NDArray[Any]
    sizes: list[int]
    sample_names: Any = None
    effects: Any = None


class ReportData:
    """A result and its records, with every number that charts share computed once.

    Parameters
    ----------
    result : Result
        What ``select`` or ``compare`` returned.
    records : DataFrame
        Its records.

    Examples
    --------
    >>> import zeronorm
    >>> from zeronorm.report import ReportData
    >>> result = zeronorm.select("linear-toy", method="fisher", features=2, permutations=0)
    >>> ReportData(result, result.records).metric
    'balanced_error_rate'
    """

    def __init__(self, result: ResultData, records: Any) -> None:
        self.result = result
        self.metric = summary.primary_metric(records)
        self.records = _finite_only(records, self.metric)

    @property
    def greater_is_better(self) -> bool:
        return as_metric(self.metric).greater_is_better

    @property
    def metric_label(self) -> str:
        return summary.metric_label(self.metric)

    def format(self, value: float | None) -> str:
        """A value of the metric as text, with its unit; a dash for a value that is not finite."""
        if value is None or not math.isfinite(value):
            return "–"
        return summary.format_metric(value, self.metric)

    @cached_property
    def bounds(self) -> Bounds:
        """The smallest and the largest possible value of the metric."""
        low, high = as_metric(self.metric).bounds
        return (low if np.isfinite(low) else None), (high if np.isfinite(high) else None)

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        return columns_of(self.records)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        return summary.error_curves(self.records, self.metric)

    @cached_property
    def stabilities(self) -> tuple[StabilityPoint, ...]:
        return summary.stabilities(self.records, self.result.data["n_features"])

    @cached_property
    def comparison(self) -> Comparison | None:
        return compare(self.records, self.metric) if len(self.labels) > 1 else None

    @cached_property
    def labels(self) -> list[str]:
        """Names of the methods in the records."""
        return list(dict.fromkeys(self.columns["method"]))

    @cached_property
    def frequencies(self) -> dict[str, Frequencies]:
        """How often each method selected each feature, at its selected size."""
        n_features = self.result.data["n_features"]
        return {
            label: summary.selection_frequencies(self.records, label, n_features) for label in self.labels
        }

    @cached_property
    def selected_sizes(self) -> dict[str, list[int]]:
        """Numbers of features that each procedure selected in the folds."""
        sizes: dict[str, list[int]] = {label: [] for label in self.labels}
        for label, size, count in zip(
            *(self.columns[k] for k in ("method", "size", "n_selected")), strict=True
        ):
            if size is None and count is not None:
                sizes[label].append(int(count))
        return sizes

    def own_point(self, label: str | None) -> CurvePoint | None:
        """The metric of the whole procedure of this name, at its selected size."""
        return next((curve.own for curve in self.curves if curve.method == label), None)

    def own_stability(self, label: str | None) -> StabilityPoint | None:
        """Stability of the procedure of this name; None where it is not defined."""
        found = (p for p in self.stabilities if p.method == label and p.size is None)
        return next((p for p in found if p.nogueira is not None), None)

    @cached_property
    def measured(self) -> dict[str, Any]:
        """Chance level, p-value and other metrics of the procedure, from the result; empty for records alone."""
        return self.result.procedure

    @cached_property
    def chance(self) -> float | None:
        """The metric of a predictor without features; None where the result does not have it."""
        return self.result.chance


def _finite_only(records: Any, metric: str) -> Any:
    """The records with missing values in position of those that are not finite, as for failed folds."""
    if hasattr(records, "iloc"):
        values = records[metric].astype(float)
        return records.assign(**{metric: values.where(np.isfinite(values))})
    import polars as pl

    return records.with_columns(pl.when(pl.col(metric).is_finite()).then(pl.col(metric)).alias(metric))


class Picture(Protocol):
    """A picture that can be drawn as SVG and on matplotlib axes."""

    def svg(self, identifier: str, title: str, width: int) -> Markup: ...

    def data(self, identifier: str) -> Markup: ...

    @property
    def inches(self) -> tuple[float, float]: ...

    def draw(self, ax: Any) -> None: ...


class Chart:
    """A figure of the report: its fields are the numbers, ``picture`` returns how they are drawn."""

    name: ClassVar[str]
    order: ClassVar[int]
    page: ClassVar[str] = "run"
    is_wide: ClassVar[bool] = False

    @property
    def title(self) -> str:
        raise NotImplementedError

    @property
    def caption(self) -> str:
        raise NotImplementedError

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        """Plain values that are not in the records, to keep in ``result.figures``; None keeps nothing."""
        return None

    @classmethod
    def from_data(cls, report_data: Any) -> Self | None:
        """The chart of ``ReportData``, or of the ``CohortData`` of new samples; None where there is nothing to show."""
        raise NotImplementedError

    def picture(self) -> Picture:
        """The picture of the chart."""
        raise NotImplementedError

    def table(self) -> tuple[tuple[str, ...], Rows]:
        """The numbers of the figure as a table: headers and rows."""
        return (), []

    def legend(self) -> list[tuple[str, str]]:
        """Colours (classes of the style sheet), each with its label."""
        return []

    def keys(self) -> list[str]:
        """Names of the lines, which can be hidden one by one."""
        return []

    def plot(self, ax: Any = None) -> Any:
        """Draw with matplotlib, on ``ax`` or on a new figure as wide as a journal column, and return the figure."""
        from zeronorm.report._plots import journal_style, new_axes

        picture = self.picture()
        if ax is not None:
            picture.draw(ax)
            return ax.figure
        with journal_style():
            ax = new_axes(*picture.inches)
            picture.draw(ax)
        return ax.figure


C = TypeVar("C", bound=type[Chart])
_CHARTS: dict[str, type[Chart]] = {}


def register_chart(name: str, *, order: int, page: str = "run") -> Callable[[C], C]:
    """Add a chart to the report.

    Parameters
    ----------
    name : str
        Name of the chart, which ``figure`` takes.
    order : int
        Position in the report: charts are sorted by it, in ascending order.
    page : {"run", "cohort"}, default='run'
        The report that shows it: that of a selection or comparison, or that of new samples.

    Returns
    -------
    callable
        The class decorator.

    Examples
    --------
    >>> from zeronorm.report import Chart, register_chart
    >>> from zeronorm.report._chart import _CHARTS
    >>> @register_chart("empty", order=999)
    ... class EmptyChart(Chart):
    ...     @classmethod
    ...     def from_data(cls, report_data):
    ...         return None  # nothing to show
    >>> _CHARTS.pop("empty").order
    999
    """

    def add(cls: C) -> C:
        cls.name, cls.order, cls.page = name, order, page
        _CHARTS[name] = cls
        return cls

    return add


def chart_classes(page: str = "run") -> list[type[Chart]]:
    """All charts of a page, in the order of the report."""
    import zeronorm.report.charts  # noqa: F401, registers them

    load_extensions()

    shown = [cls for cls in _CHARTS.values() if cls.page == page]
    return sorted(shown, key=lambda cls: (cls.order, cls.name))


def collect_figures(**at_hand: Any) -> dict[str, Any]:
    """What every chart keeps of a run, by the name of the chart; the arguments are the fields of ``Run``."""
    run = Run(**at_hand)
    kept = ((cls.name, cls.collect(run)) for cls in chart_classes())
    return {name: found for name, found in kept if found is not None}


def charts_of(report_data: Any, page: str = "run") -> list[Chart]:
    """The charts that have something to show."""
    found = (cls.from_data(report_data) for cls in chart_classes(page))
    return [chart for chart in found if chart is not None]


# -- Computations on columns of data that several charts share --


def standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns with mean 0 and standard deviation 1; constant ones become 0."""
    deviation = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0))


def clustered(rows: NDArray[np.float64], *, metric: str) -> NDArray[np.intp]:
    """Order of the leaves of a clustering by average linkage; correlations count by their absolute value."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import pdist, squareform

    if len(rows) < 3:
        return np.arange(len(rows))
    if metric == "correlation":
        similarity = np.abs(rows @ rows.T) / rows.shape[1]
        np.fill_diagonal(similarity, 1.0)
        distances = squareform((1.0 - similarity).clip(0.0), checks=False)
    else:
        distances = pdist(rows)
    return np.asarray(leaves_list(linkage(distances, method="average")), dtype=np.intp)
