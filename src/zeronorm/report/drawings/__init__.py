"""Figure data to drawings: each function returns a figure with its numbers as a table, or None."""

from zeronorm.report.drawings.columns import redundancy_drawing, value_drawing
from zeronorm.report.drawings.drawing import Drawing
from zeronorm.report.drawings.measured import (
    error_drawing,
    frequency_drawing,
    shared_features_drawing,
    stability_drawing,
)
from zeronorm.report.drawings.paths import history_drawing, path_drawing

__all__ = [
    "Drawing",
    "error_drawing",
    "frequency_drawing",
    "history_drawing",
    "path_drawing",
    "redundancy_drawing",
    "shared_features_drawing",
    "stability_drawing",
    "value_drawing",
]
