"""The report of a run as one self-contained HTML file, and its charts as matplotlib figures.

``render`` makes the report of any records; ``zeronorm.report(records)`` does the same. ``figure`` draws one chart.
"""

import sys
from types import ModuleType
from typing import Any

from zeronorm.report._chart import Chart, ReportData, Run, chart_classes, register_chart
from zeronorm.report._html import render, render_report, report_data_of

__all__ = [
    "Chart",
    "ReportData",
    "Run",
    "figure",
    "register_chart",
    "render",
    "render_report",
]


REMEDY = "Pass the result of select or compare as 'result', or draw another chart."

DECIDED = (
    "It needs two classes, and decision values or probabilities of the predictor at the selected size (None)."
)
REMEDIES = {
    "roc": DECIDED,
    "precision": DECIDED,
}


def figure(name: str, records: Any, result: Any = None, *, ax: Any = None) -> Any:
    """One chart of the report as a matplotlib figure.

    Parameters
    ----------
    name : str
        Name of a chart: "error", "stability", "frequency", "path", … The error message for an unknown name
        lists all names.
    records : DataFrame or selector
        What ``evaluate`` returned; or a fitted selector for "importance", a fitted ``SelectorCV`` for "sizes".
    result : Result or None, default=None
        What ``select`` or ``compare`` returned; some charts need it.
    ax : matplotlib Axes or None, default=None
        Axes to draw on. None makes a figure of the width of a journal column.

    Returns
    -------
    matplotlib Figure
        The figure with the chart.

    Examples
    --------
    >>> import zeronorm
    >>> from zeronorm.report import figure
    >>> result = zeronorm.select("linear-toy", method="fisher", features=2, permutations=0)
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> type(figure("error", result.records, result)).__name__
    'Figure'
    """
    classes = {cls.name: cls for cls in chart_classes()}
    if name not in classes:
        raise ValueError(f"There is no chart named {name!r}. Use one of {sorted(classes)}.")
    if hasattr(records, "path_"):
        chart = _of_selector(classes[name], records)
    else:
        chart = classes[name].from_data(
            report_data_of(records) if result is None else ReportData(result, records)
        )
    if chart is None:
        raise ValueError(
            f"The chart {name!r} has nothing to show for this result. {REMEDIES.get(name, REMEDY)}"
        )
    return chart.plot(ax)


def _of_selector(chart: Any, selector: Any) -> Any:
    if not hasattr(chart, "from_selector"):
        raise ValueError(
            f"The chart {chart.name!r} needs records of evaluate, not a fitted {type(selector).__name__}. For a fitted "
            "selector use 'importance' or, with SelectorCV, 'sizes'."
        )
    return chart.from_selector(selector)


class _CallablePackage(ModuleType):
    """A package that can be called like its function ``render``."""

    def __call__(self, *args: Any, **settings: Any) -> str:
        return render(*args, **settings)


sys.modules[__name__].__class__ = _CallablePackage
