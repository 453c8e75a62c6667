"""The report: one HTML file that needs no network."""

from __future__ import annotations

from importlib import resources
from typing import Any

from zeronorm.evaluation import summary
from zeronorm.evaluation.comparison import Comparison, compare
from zeronorm.evaluation.summary import stabilities
from zeronorm.report import drawings, text
from zeronorm.workflow.result import RunResult

TEMPLATES = "zeronorm.report.templates"


def render_report(result: RunResult, records: Any) -> str:
    """The HTML text of a report.

    Parameters
    ----------
    result : what the run says about itself.
    records : frame of ``evaluate``.
    """
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_template),
    )
    page = environment.get_template("report.html.j2")
    return page.render(
        style=Markup(_template("style.css")),
        script=Markup(_template("script.js")),
        **view(result, records),
    )


def _template(name: str) -> str:
    return resources.files(TEMPLATES).joinpath(name).read_text(encoding="utf-8")


def view(result: RunResult, records: Any) -> dict[str, Any]:
    """Everything the template shows, as values."""
    metric = summary.primary_metric(records)
    comparison = compare(records, metric) if len(result.methods) > 1 else None
    return {
        "result": result,
        "headline": text.headline(result),
        "tiles": _tiles(result, records, metric, comparison),
        "features": _feature_rows(result),
        "first_figures": _present(drawings.error_drawing(result, records, metric)),
        "figures": _present(
            drawings.frequency_drawing(result, records),
            drawings.stability_drawing(result, records),
            drawings.shared_features_drawing(result, records),
            drawings.value_drawing(result),
            drawings.redundancy_drawing(result),
            drawings.path_drawing(result),
            drawings.history_drawing(result),
        ),
        "comparison": comparison,
        "metric_label": summary.metric_label(metric),
        "format_metric": lambda value: summary.format_metric(value, metric),
        "methods_section": text.methods_section(result, records),
        "provenance": _provenance_rows(result),
    }


def _present(*found: Any) -> list[Any]:
    return [drawing for drawing in found if drawing is not None and drawing.chart]


def _tiles(
    result: RunResult, records: Any, metric: str, comparison: Comparison | None
) -> list[dict[str, str]]:
    """The figures one looks for first."""
    data = result.data
    tiles = []
    if comparison is not None:
        best = comparison.rows[0]
        tiles.append(
            {"value": best.method, "label": f"lowest error: {summary.format_metric(best.mean, metric)}"}
        )
        tiles.append(
            {"value": comparison.preferred, "label": "preferred: fewest features of the equally good"}
        )
    own = {curve.method: curve.own for curve in summary.error_curves(records, metric)}.get(
        result.chosen_method or ""
    )
    if own is not None:
        interval = ""
        if own.low is not None:
            low, high = (summary.format_metric(v, metric) for v in (own.low, own.high))
            interval = f" ({low} to {high})"
        label = f"{summary.metric_label(metric)} on unseen samples{interval}"
        tiles.append({"value": summary.format_metric(own.mean, metric), "label": label})
    if result.selected:
        tiles.append({"value": str(len(result.selected)), "label": f"of {data['n_features']} features"})
    stable = [
        p.nogueira
        for p in stabilities(records, data["n_features"])
        if p.size is None and p.method == result.chosen_method and p.nogueira is not None
    ]
    if stable:
        tiles.append({"value": f"{stable[0]:.2f}", "label": "stability of the selection (1 is best)"})
    tiles.append({"value": str(data["n_samples"]), "label": "samples"})
    return tiles


def _feature_rows(result: RunResult) -> list[dict[str, Any]]:
    """Rows of the table of selected features, with the strongest correlation to another one."""
    partners = _strongest_partners(result)
    return [
        {
            "feature": feature,
            "frequency": feature.frequency,
            "partner": partners.get(feature.index),
        }
        for feature in result.selected
    ]


def _strongest_partners(result: RunResult) -> dict[int, tuple[str, float]]:
    redundancy = result.figures.get("redundancy")
    if not redundancy:
        return {}
    partners = {}
    indices, matrix = redundancy["features"], redundancy["correlation"]
    for i, row in enumerate(matrix):
        j = max((k for k in range(len(row)) if k != i), key=lambda k: abs(row[k]))
        partners[indices[i]] = (result.name_of(indices[j]), row[j])
    return partners


def _provenance_rows(result: RunResult) -> list[tuple[str, str]]:
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
