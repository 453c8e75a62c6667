"""Records to figures: one self-contained HTML file, or matplotlib for Python users.

``render`` makes the report of any records; ``figure`` draws one of its charts.
"""

from typing import Any

from zeronorm.report.chart import Chart, Facts, Run, chart_classes, register_chart
from zeronorm.report.charts.error import ErrorChart
from zeronorm.report.charts.importance import ImportanceChart
from zeronorm.report.charts.path import PathChart
from zeronorm.report.charts.selections import StabilityChart
from zeronorm.report.html import facts_of, render, render_report

__all__ = [
    "Chart",
    "ErrorChart",
    "Facts",
    "ImportanceChart",
    "PathChart",
    "Run",
    "StabilityChart",
    "figure",
    "register_chart",
    "render",
    "render_report",
]


def figure(name: str, records: Any, result: Any = None, *, ax: Any = None) -> Any:
    """One chart of the report as a matplotlib figure.

    Parameters
    ----------
    name : "error", "stability", "frequency", "path", … (the names of ``chart_classes()``).
    records : frame of ``evaluate``.
    result : what ``select`` or ``compare`` says about the run, which some charts need.
    ax : axes to draw on; None makes a figure of the width of a journal column.
    """
    classes = {cls.name: cls for cls in chart_classes()}
    if name not in classes:
        raise ValueError(f"There is no chart named {name!r}. Use one of {sorted(classes)}.")
    chart = classes[name].from_facts(facts_of(records) if result is None else Facts(result, records))
    if chart is None:
        raise ValueError(f"The chart {name!r} has nothing to show for this result.")
    return chart.plot(ax)
