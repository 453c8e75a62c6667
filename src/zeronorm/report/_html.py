"""The report: one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from zeronorm.report import _text as text
from zeronorm.report._chart import Chart, ReportData, Rows, charts_of
from zeronorm.report._checklist import checklist
from zeronorm.report._samples import sample_table
from zeronorm.report._substitutes import substitute_table
from zeronorm.report._svg import HALF, NARROW, WIDE, series_class, shape, visible
from zeronorm.result._files import annotation_headings, described_records
from zeronorm.result._lists import LISTS, RARE, RARE_MARK, features_by_list, is_rare, list_sentence
from zeronorm.result._record import ResultData
from zeronorm.result._sentences import compared_classes, effect_name

if TYPE_CHECKING:
    import jinja2

MOST_CLASS_COLUMNS = 4
MOST_FEATURE_ROWS = 1000
MOST_LISTED = 30  # names that a list adds
FIRST = 20  # charts up to this order come before the tables


def render(
    records: Any,
    result: ResultData | None = None,
    *,
    names: Sequence[str] | None = None,
    n_features: int | None = None,
    path: str | Path | None = None,
) -> str:
    """The report of any records of ``evaluate``, as HTML text.

    Parameters
    ----------
    records : DataFrame
        What ``evaluate`` returned.
    result : Result or None, default=None
        What ``select`` or ``compare`` returned. None: the report shows what the records hold.
    names : list of str or None, default=None
        Names of all features, when there is no ``result``.
    n_features : int or None, default=None
        Number of features of the data, when there is no ``result`` and no ``names``. None: the largest
        position that was selected, plus one.
    path : path or None, default=None
        File to write the report to. None writes nothing.

    Returns
    -------
    str
        The HTML text.

    Examples
    --------
    >>> import zeronorm
    >>> from zeronorm.report import render
    >>> result = zeronorm.select("linear-toy", method="fisher", features=2, permutations=0)
    >>> render(result.records)[:15]
    '<!doctype html>'
    """
    report_data = (
        report_data_of(records, names=names, n_features=n_features)
        if result is None
        else ReportData(result, records)
    )
    html = _page(report_data)
    if path is not None:
        Path(path).write_text(html, encoding="utf-8")
    return html


def render_report(result: ResultData, records: Any) -> str:
    """The HTML text of the report of a run.

    Parameters
    ----------
    result : Result
        What ``select`` or ``compare`` returned.
    records : DataFrame
        Its records.

    Returns
    -------
    str
        The HTML text.

    Examples
    --------
    >>> import zeronorm
    >>> from zeronorm.report import render_report
    >>> result = zeronorm.select("linear-toy", method="fisher", features=2, permutations=0)
    >>> render_report(result, result.records)[:15]
    '<!doctype html>'
    """
    return _page(ReportData(result, records))


def report_data_of(
    records: Any, *, names: Sequence[str] | None = None, n_features: int | None = None
) -> ReportData:
    """The data of a report for which there are records but no result."""
    known = described_records(records, "records of an evaluation", names=names, n_features=n_features)
    return ReportData(ResultData(**known), records)


def _page(report_data: ReportData) -> str:
    return page("report.html.j2", **view(report_data))


def page(template: str, **values: Any) -> str:
    """A page with the style and the script of the report."""
    return _compiled_page(template).render(
        style=Markup(_template("style.css")), script=Markup(_template("script.js")), **values
    )


@cache
def _compiled_page(template: str) -> jinja2.Template:
    """The template of the report, compiled once per process, because compiling takes longer than rendering."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_template),
    )
    environment.globals.update(series_class=series_class, shape=shape, visible=visible)
    return environment.get_template(template)


def _template(name: str) -> str:
    return resources.files("zeronorm.report").joinpath("templates", name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Card:
    """A chart on the page: its drawing at two widths, its texts and its numbers."""

    identifier: str
    chart: Chart
    wide: Markup
    narrow: Markup
    data: Markup
    headers: tuple[str, ...]
    rows: Rows

    @classmethod
    def of(cls, chart: Chart) -> Card:
        identifier, picture = f"figure-{chart.name}", chart.picture()
        headers, rows = chart.table()
        return cls(
            identifier,
            chart,
            picture.svg(identifier, chart.title, WIDE if chart.is_wide else HALF),
            picture.svg(f"{identifier}-narrow", chart.title, NARROW),
            picture.data(identifier),
            headers,
            rows,
        )


def view(report_data: ReportData) -> dict[str, Any]:
    """The values that the template shows."""
    cards = [card for card in map(Card.of, charts_of(report_data)) if card.wide]
    return {
        "report_data": report_data,
        "result": report_data.result,
        "headline": report_data.result.headline,
        "groups": text.key_figures(report_data),
        "lists": _list_rows(report_data.result),
        "list_sentence": list_sentence(report_data.result),
        "rare": f"{RARE_MARK} fewer than {100 * RARE:.0f} % of the outer folds selected the feature",
        "features": _feature_rows(report_data.result),
        "effects": _effect_columns(report_data.result),
        "substitutes": substitute_table(report_data.result),
        "compared": compared_classes(report_data.result.selected),
        "first_cards": [card for card in cards if card.chart.order <= FIRST],
        "cards": [card for card in cards if card.chart.order > FIRST],
        "samples": sample_table(report_data),
        "comparison": report_data.comparison,
        "methods": _method_rows(report_data),
        "against": _baseline(report_data)[1],
        "methods_section": text.methods_section(report_data),
        "next_steps": text.next_steps(report_data.result),
        "provenance": _provenance_rows(report_data.result),
        "checklist": checklist(report_data),
    }


@dataclass(frozen=True)
class MethodLine:
    """One row of the table of methods; None where a number is not known."""

    method: str
    mean: str
    interval: str
    n_selected: float
    stability: float | None
    seconds: float
    p_best: float | None
    p_chance: float | None


def _method_rows(report_data: ReportData) -> list[MethodLine]:
    """The methods from best to worst, with p-values against the best and against chance."""
    comparison = report_data.comparison
    if comparison is None:
        return []
    p_values = {(d.method, d.reference): d.adjusted_p_value for d in comparison.differences}
    p_values |= {(b, a): p for (a, b), p in p_values.items()}
    by_chance = {row["method"]: row.get("p_value") for row in report_data.result.table}
    best = comparison.rows[0].method
    baseline, _ = _baseline(report_data)
    lines = []
    for row in comparison.rows:
        own, stability = report_data.own_point(row.method), report_data.own_stability(row.method)
        interval = ""
        if own is not None and own.low is not None:
            interval = f"{report_data.format(own.low)} to {report_data.format(own.high)}"
        lines.append(
            MethodLine(
                row.method,
                report_data.format(row.mean),
                interval,
                row.n_selected,
                None if stability is None else stability.nogueira,
                row.fit_seconds,
                p_values.get((row.method, best)),
                p_values.get((row.method, baseline), by_chance.get(row.method)),
            )
        )
    return lines


def _baseline(report_data: ReportData) -> tuple[str, str]:
    """The reference method that the others must beat, and its name in the heading: no features, or random features."""
    names = {"baseline": "chance", "random": "random features"}
    return next(
        ((name, heading) for name, heading in names.items() if name in report_data.labels), ("", "chance")
    )


@dataclass(frozen=True)
class ListLine:
    """One of the nested lists: its number of features, how it was chosen, and the features that it adds."""

    name: str
    count: int
    meaning: str
    added: str
    is_selected: bool


def _list_rows(result: ResultData) -> list[ListLine]:
    """The three nested lists, each with the features that the smaller ones do not have."""
    if not result.listed:
        return []
    lines, selected = [], {feature.index for feature in result.selected}
    for name, features in features_by_list(result).items():
        added = [feature for feature in features if feature.smallest_list == name]
        shown = [
            visible(feature.name, 40)
            + f" {RARE_MARK}" * (feature.index in selected and is_rare(feature.frequency))
            for feature in added[:MOST_LISTED]
        ]
        more = f" and {len(added) - MOST_LISTED} more" if len(added) > MOST_LISTED else ""
        is_selected = name == result.size["selected_list"]
        lines.append(ListLine(name, len(features), LISTS[name], ", ".join(shown) + more or "–", is_selected))
    return lines


def _feature_rows(result: ResultData) -> list[dict[str, Any]]:
    """Rows of the table of selected features, each with the selected feature that it correlates with most."""
    partners = _strongest_partners(result)
    return [
        {
            "feature": feature,
            "frequency": feature.frequency,
            "mark": RARE_MARK if is_rare(feature.frequency) else "",
            "partner": partners.get(feature.index),
        }
        for feature in result.selected[:MOST_FEATURE_ROWS]
    ]


def _effect_columns(result: ResultData) -> list[tuple[str, list[str]]]:
    """Columns about single features for which the result has values: heading and one text per selected feature."""
    features = result.selected[:MOST_FEATURE_ROWS]
    classes = next((list(f.class_means) for f in features if f.class_means), [])
    columns = [
        (f"mean of {visible(label, 20)}", [_number((f.class_means or {}).get(label)) for f in features])
        for label in (
            classes if len(classes) <= MOST_CLASS_COLUMNS else ()
        )  # only some of them would mislead
    ]
    columns += [
        (visible(heading, 20), [(f.annotation or {}).get(heading, "–") for f in features])
        for heading in annotation_headings(features)
    ]
    plain = (
        ("q of the selection", "selection_q_value"),
        ("direction", "direction"),
        (effect_name(features), "effect"),
        ("log2 fold change", "log2_fold_change"),
    )
    orientation = (("coefficient", "coefficient"), ("p alone*", "p_value"), ("q alone*", "q_value"))
    for heading, name in (*plain, *orientation):
        values = [getattr(feature, name) for feature in features]
        written = _p_value if heading.endswith("*") else _number
        if any(value not in (None, "") for value in values):
            columns.append((heading, [written(value) for value in values]))
    return columns


def _number(value: Any, digits: int = 4) -> str:
    """A number with a few digits; text as it is."""
    if value is None or value == "":
        return "–"
    return value if isinstance(value, str) else f"{value:.{digits}g}"


def _p_value(value: Any) -> str:
    """A p-value with two digits; 0, which is a rounded value, is shown as an upper bound."""
    return "< 1e-300" if value == 0.0 else _number(value, 2)


def _strongest_partners(result: ResultData) -> dict[int, tuple[str, float]]:
    redundancy = result.figures.get("redundancy")
    if not redundancy:
        return {}
    partners = {}
    indices, matrix = redundancy["features"], redundancy["correlation"]
    for i, row in enumerate(matrix):
        j = max((k for k in range(len(row)) if k != i), key=lambda k: abs(row[k] or 0.0))
        partners[indices[i]] = (result.name_of(indices[j]), row[j] or 0.0)
    return partners


def _provenance_rows(result: ResultData) -> list[tuple[str, str]]:
    run, data = result.provenance, result.data
    rows = [("data", data["source"]), ("SHA-256 of the data", data.get("sha256") or "–")]
    if run:
        rows += [
            ("command", run["command"]),
            ("zeronorm", run["version"]),
            ("Python", run["python"]),
            *run.get("packages", {}).items(),
            ("seed", str(run["seed"])),
            ("folds", f"{run['folds']} × {run['repeats']}"),
            ("started", run["started"]),
            ("duration", f"{run['seconds']} s"),
        ]
    return [(str(key), str(value)) for key, value in rows]
