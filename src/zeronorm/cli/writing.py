"""Results as files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zeronorm.report.result import RunResult, SelectedFeature

CSV_COLUMNS = ("rank", "name", "column", "score", "frequency", "mean", "scale")


def write_results(folder: Path, result: RunResult, records: Any) -> None:
    """All files of a run: selected.csv (for a selection), result.json, records.parquet, report.html."""
    from zeronorm.report.html import render_report

    if result.kind == "selection":
        write_selected(folder / "selected.csv", result.selected)
    (folder / "result.json").write_text(result.to_json(), encoding="utf-8")
    records.write_parquet(folder / "records.parquet")
    (folder / "report.html").write_text(render_report(result, records), encoding="utf-8")


def write_selected(file: Path, selected: list[SelectedFeature]) -> None:
    """The selected features; names are written as they are, quoted where CSV needs it."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(CSV_COLUMNS)
        for feature in selected:
            writer.writerow("" if (v := getattr(feature, key)) is None else v for key in CSV_COLUMNS)
