"""Records to figures: one self-contained HTML file, or matplotlib for Python users."""

from zeronorm.report.displays import CompareDisplay, PathDisplay, StabilityDisplay
from zeronorm.report.html import render_report
from zeronorm.workflow.result import RunResult, SelectedFeature

__all__ = [
    "CompareDisplay",
    "PathDisplay",
    "RunResult",
    "SelectedFeature",
    "StabilityDisplay",
    "render_report",
]
