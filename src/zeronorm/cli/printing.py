"""What people and machines see on the terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zeronorm.workflow.result import RunResult

MOST_ROWS = 30
LONGEST_NAME = 60


def shows_progress(quiet: bool, as_json: bool) -> bool:
    """Progress bars are for people in front of a terminal."""
    return not quiet and not as_json and sys.stderr.isatty()


def print_json(content: Any) -> None:
    """JSON on the output stream, and nothing else."""
    from zeronorm.workflow.result import finite

    sys.stdout.write(json.dumps(finite(content), ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def print_table(title: str, headers: list[str], rows: list[list[str]]) -> None:
    """A table; cells are shown as plain text, whatever they hold."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    width = None if sys.stdout.isatty() else 120
    Console(width=width, highlight=False).print(table)


def say(text: str) -> None:
    """One paragraph of plain text."""
    sys.stdout.write(text + "\n")


def plain(text: str) -> str:
    """Text for a cell: control characters made visible, long text cut."""
    shown = "".join(c if c.isprintable() else "␤" if c == "\n" else "�" for c in text)
    return shown if len(shown) <= LONGEST_NAME else f"{shown[: LONGEST_NAME - 1]}…"


def print_selection(result: RunResult, records: Any, folder: Path) -> None:
    """The selected features, the error, notes and warnings, and where the report is."""
    for note in result.notes:
        say(f"note: {note}")
    rows = [
        [
            str(feature.rank),
            feature.name,
            "–" if feature.score is None else f"{feature.score:.4g}",
            "–" if feature.frequency is None else f"{100 * feature.frequency:.0f} %",
        ]
        for feature in result.selected[:MOST_ROWS]
    ]
    left = len(result.selected) - len(rows)
    title = f"{len(result.selected)} of {result.data['n_features']} features selected by {result.methods[0]['name']}"
    print_table(title, ["rank", "feature", "score", "selected in folds"], rows)
    if left > 0:
        say(f"… and {left} more in selected.csv")
    say(error_sentence(result, records))
    _print_end(result, folder)


def print_comparison(result: RunResult, records: Any, folder: Path) -> None:
    """The methods by error, the verdict, and where the report is."""
    from zeronorm.evaluation.comparison import compare
    from zeronorm.evaluation.summary import format_metric, metric_label, primary_metric

    for note in result.notes:
        say(f"note: {note}")
    metric = primary_metric(records)
    comparison = compare(records, metric)
    if comparison is not None:
        rows = [
            [row.method, format_metric(row.mean, metric), f"{row.n_selected:.1f}", f"{row.fit_seconds:.2f}"]
            for row in comparison.rows
        ]
        print_table(
            "Methods on the same folds", ["method", metric_label(metric), "features", "seconds"], rows
        )
    _print_end(result, folder)


def _print_end(result: RunResult, folder: Path) -> None:
    for warning in result.warnings:
        say(f"warning: {warning}")
    say(f"report: {folder / 'report.html'}")


def error_sentence(result: RunResult, records: Any) -> str:
    """The honest error in one sentence."""
    from zeronorm.report.chart import Facts
    from zeronorm.report.text import error_sentence as sentence

    return sentence(Facts(result, records))
