"""The report of a model on new samples: one HTML file with the parts of the report of a selection."""

from __future__ import annotations

from typing import Any

from zeronorm.evaluation._summary import format_metric, metric_label
from zeronorm.report._chart import charts_of
from zeronorm.report._html import Card, page
from zeronorm.report._text import Tile
from zeronorm.result._cohort import VERDICTS, CohortData, limits_text

MOST_SAMPLES = 1000  # rows of the table of samples


def render_cohort(cohort: CohortData) -> str:
    """The HTML text of the report of new samples."""
    heads, rows = _sample_rows(cohort)
    return page(
        "cohort.html.j2",
        cohort=cohort,
        tiles=_tiles(cohort),
        scores=[_score_row(score) for score in cohort.scores],
        classes=[_class_row(row) for row in cohort.classes],
        cards=[card for card in map(Card.of, charts_of(cohort, "cohort")) if card.wide],
        heads=heads,
        rows=rows,
        provenance=_provenance_rows(cohort),
    )


def _tiles(cohort: CohortData) -> list[Tile]:
    if not cohort.scores:
        return [Tile(str(cohort.data["n_samples"]), "samples, without a known outcome")]
    first = cohort.scores[0]
    label = metric_label(first["metric"])
    tiles = [
        Tile(_shown(first["value"], first), f"{label} found{_limits(first['low'], first['high'], first)}"),
        Tile(
            _shown(first["expected"], first),
            f"{label} expected{_limits(first['expected_low'], first['expected_high'], first)}",
        ),
    ]
    if first["verdict"]:
        is_seen = first["verdict"] == "seen"
        reason = "the model was selected on them" if is_seen else "by the interval of the difference"
        tiles.append(Tile(VERDICTS[first["verdict"]], reason))
    if cohort.calibration.get("slope"):
        tiles.append(Tile(limits_text(cohort.calibration["slope"]), "calibration slope; 1 is best"))
    return [*tiles, Tile(str(cohort.data["n_scored"]), "samples with a known outcome")]


def _shown(value: float | None, score: dict[str, Any]) -> str:
    return format_metric(value, score["metric"])


def _limits(low: float | None, high: float | None, score: dict[str, Any]) -> str:
    return "" if low is None else f" (95 %: {_shown(low, score)} to {_shown(high, score)})"


def _between(low: float | None, high: float | None, score: dict[str, Any]) -> str:
    return "–" if low is None else f"{_shown(low, score)} to {_shown(high, score)}"


def _score_row(score: dict[str, Any]) -> dict[str, str]:
    return {
        "label": metric_label(score["metric"]),
        "expected": _shown(score["expected"], score),
        "promised": _between(score["expected_low"], score["expected_high"], score),
        "found": _shown(score["value"], score),
        "interval": _between(score["low"], score["high"], score),
        "difference": _between(score["difference_low"], score["difference_high"], score),
        "verdict": VERDICTS[score["verdict"]] if score["verdict"] else "–",
    }


def _class_row(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "label": str(row["class"]),
        "n": row["n"],
        "predicted": row["predicted"],
        **{name: _share_text(row[name]) for name in ("sensitivity", "specificity")},
    }


def _share_text(found: dict[str, Any] | None) -> str:
    if found is None:
        return "–"
    limits = "" if found["low"] is None else f" ({100 * found['low']:.1f} % to {100 * found['high']:.1f} %)"
    return f"{100 * found['value']:.1f} %{limits}"


def _sample_rows(cohort: CohortData) -> tuple[list[str], list[list[str]]]:
    """Headings and cells of the table of samples, with wrong predictions or large errors first."""
    rows = cohort.rows()
    numbered = [{"sample": str(i + 1), **row} for i, row in enumerate(rows)]
    if cohort.scores:
        numbered.sort(key=lambda row: -float(abs(row.get("wrong", row.get("error")) or 0.0)))
    heads = list(numbered[0]) if numbered else []
    return heads, [[_cell(row[head], head) for head in heads] for row in numbered[:MOST_SAMPLES]]


def _cell(value: Any, head: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return (head if value else "") if head == "wrong" else ("yes" if value else "no")
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _provenance_rows(cohort: CohortData) -> list[tuple[str, str]]:
    run, data = cohort.provenance, cohort.data
    rows = [("data", data.get("source")), ("SHA-256 of the data", data.get("sha256") or "–")]
    if run:
        rows += [("command", run["command"]), ("zeronorm", run["version"]), ("Python", run["python"])]
        rows += [
            *run.get("packages", {}).items(),
            ("started", run["started"]),
            ("duration", f"{run['seconds']} s"),
        ]
    return [(str(key), str(value)) for key, value in rows]
