"""Records to figures: one self-contained HTML file, or matplotlib for Python users."""

from zeronorm.report.html import render_report
from zeronorm.report.result import RunResult, SelectedFeature

__all__ = [
    "RunResult",
    "SelectedFeature",
    "render_report",
]
