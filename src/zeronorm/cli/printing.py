"""Output of the commands: tables and sentences on the terminal, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zeronorm._messages import rendered
from zeronorm.cli.options import in_flags

if TYPE_CHECKING:
    from zeronorm.result._cohort import CohortData
    from zeronorm.result._record import ResultData

MOST_ROWS = 30
LONGEST_NAME = 60
LONGEST_CLASS = 20  # in a heading


def shows_progress(quiet: bool, as_json: bool) -> bool:
    """Whether to show a progress bar: on a terminal, without --quiet and --json."""
    return not quiet and not as_json and sys.stderr.isatty()


def print_json(content: Any) -> None:
    """Print a value as JSON to standard output."""
    from zeronorm.result._plain import finite

    sys.stdout.write(json.dumps(finite(content), ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def print_table(title: str, headers: list[str], rows: list[list[str]], longest: int = LONGEST_NAME) -> None:
    """Print a table, with the text of its cells as it is, without markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(plain(title, longest)), title_justify="left")
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell, longest)) for cell in row))
    width = None if sys.stdout.isatty() else 120
    Console(width=width, highlight=False).print(table)


def print_text(text: str) -> None:
    """Print a line of text, if there is any; control characters (of column names) are replaced."""
    if text:
        sys.stdout.write("".join(c if c.isprintable() else "�" for c in text) + "\n")


def plain(text: str, longest: int = LONGEST_NAME) -> str:
    """Text for a cell: control characters made visible, long text cut."""
    shown = "".join(c if c.isprintable() else "␤" if c == "\n" else "�" for c in text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def print_rows(title: str, rows: list[dict[str, Any]]) -> None:
    """Print dicts with the same keys as the rows of a table."""
    heads = list(rows[0]) if rows else []
    print_table(title, heads, [[_number(row[head]) for head in heads] for row in rows])


def _number(value: Any) -> str:
    return "–" if value is None else f"{value + 0.0:.4g}" if isinstance(value, float) else str(value)


def print_selection(result: ResultData, folder: Path) -> None:
    """Print the headline and the error, the selected features, notes and warnings, and the path of the report."""
    from zeronorm.result._lists import list_sentence
    from zeronorm.result._sentences import answer_sentences, error_sentence, size_sentence

    print_notes(result.notes)
    print_text(f"{result.headline}.")
    print_text(error_sentence(result.procedure))
    print_text(size_sentence(result))
    print_text(list_sentence(result))
    if result.selected:
        _print_features(result)
    for sentence in answer_sentences(result):
        print_text(sentence)
    _print_end(result, folder)


def _print_features(result: ResultData) -> None:
    """Print the table of selected features, with the smallest list of each."""
    from zeronorm.datasets._table import counted
    from zeronorm.result._lists import RARE_MARK, is_rare

    has_lists = bool(result.listed)
    rows = [
        [
            str(feature.rank),
            feature.name,
            *([feature.smallest_list] if has_lists else []),
            _number(feature.score),
            "–"
            if feature.frequency is None
            else f"{100 * feature.frequency:.0f} %{f' {RARE_MARK}' * is_rare(feature.frequency)}",
            feature.direction,
            _number(feature.effect),
        ]
        for feature in result.selected[:MOST_ROWS]
    ]
    of_all = counted(result.data["n_features"], "feature")
    title = f"{len(result.selected)} of {of_all} selected by {result.methods[0]['name']}"
    heads = ["rank", "feature", *(["list"] if has_lists else []), "score", "selected in folds", "direction"]
    print_table(title, [*heads, _effect(result.selected)], rows)
    left = len(result.selected) - len(rows)
    if left > 0:
        print_text(f"… and {left} more in selected.csv")


def _effect(features: Sequence[Any]) -> str:
    """The heading of the column of effects, with the two classes that are compared."""
    from zeronorm.result._sentences import compared_classes, effect_name

    classes = compared_classes(features)
    compared = (
        "" if classes is None else ", {} − {}".format(*(plain(name, LONGEST_CLASS) for name in classes))
    )
    return f"{effect_name(features)}{compared}"


def print_comparison(result: ResultData, folder: Path) -> None:
    """Print the methods from best to worst, notes and warnings, and the path of the report."""
    from zeronorm.evaluation._summary import format_metric
    from zeronorm.result._files import method_rows
    from zeronorm.result._sentences import panel_sentence

    print_notes(result.notes)
    metric, label = result.table[0]["metric"], result.table[0]["label"]
    sign = -1.0 if result.table[0]["greater_is_better"] else 1.0
    order = sorted(
        method_rows(result.table), key=lambda row: (row["value"] is None, sign * (row["value"] or 0.0))
    )
    rows = [
        [
            row["method"],
            format_metric(row["value"], metric),
            "–"
            if row["low"] is None
            else f"{format_metric(row['low'], metric)} to {format_metric(row['high'], metric)}",
            _number(row["p_value"]),
            _number(row["features"]),
            "–" if row["stability"] is None else f"{row['stability'] + 0.0:.2f}".replace("-0.00", "0.00"),
            "–" if row["seconds"] is None else f"{row['seconds']:.2f}",
        ]
        for row in order
    ]
    heads = ["method", label, "95 % interval", "p against chance", "features", "stability", "seconds per fit"]
    if all(row["p_value"] is None for row in order):  # no permutations
        index = heads.index("p against chance")
        heads, *rows = [[*line[:index], *line[index + 1 :]] for line in (heads, *rows)]
    if result.panel:
        print_text(f"{result.headline}.")
        print_text(panel_sentence(result))
    print_table("Methods on the same folds; intervals are for the models fitted in these folds", heads, rows)
    _print_end(result, folder)


def print_cohort(cohort: CohortData, out: Path | None) -> None:
    """Print the score of the predictions, or the predictions where nothing is known or written."""
    from zeronorm.datasets._table import counted
    from zeronorm.result._cohort import VERDICTS

    print_notes(cohort.notes)
    rows = cohort.rows()
    if out is None:
        print_rows(counted(len(rows), "prediction"), rows)
    if cohort.scores:
        print_text(f"{cohort.headline}.")
        for sentence in cohort.sentences:
            print_text(sentence)
        _print_scores(cohort, VERDICTS)
    for warning in cohort.warnings:
        print_text(f"warning: {warning}")
    if out is not None and (out / "report.html").is_file():
        print_text(f"report: {out / 'report.html'}")
    elif out is not None:
        print_text(f"{counted(len(rows), 'prediction')}: {out}")


def _print_scores(cohort: CohortData, verdicts: Mapping[str, str]) -> None:
    """Print the table of metrics, expected and found."""
    from zeronorm.evaluation._summary import format_metric, metric_label

    rows = []
    for score in cohort.scores:
        shown = [format_metric(score[name], score["metric"]) for name in ("expected", "value", "low", "high")]
        interval = "–" if score["low"] is None else f"{shown[2]} to {shown[3]}"
        verdict = verdicts[score["verdict"]] if score["verdict"] else "–"
        rows.append([metric_label(score["metric"]), shown[0], shown[1], interval, verdict])
    print_table("Expected and found", ["metric", "expected", "found", "95 % interval", "verdict"], rows)


def print_notes(notes: Iterable[str]) -> None:
    """Print the notes: what was inferred or changed in the data."""
    for note in notes:
        print_text(f"note: {rendered(note, in_flags)}")


def _print_end(result: ResultData, folder: Path) -> None:
    for warning in result.warnings:
        print_text(f"warning: {warning}")
    print_text(f"report: {folder / 'report.html'}")
