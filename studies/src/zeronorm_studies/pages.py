"""A page of text and tables, as Markdown, and from that as one HTML file."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from zeronorm.resampling import parse_metrics
from zeronorm.selection.target import Labels
from zeronorm_studies.code_version import ROW, head_of
from zeronorm_studies.rank_diagram import HEADER, diagram, printed_difference
from zeronorm_studies.results import ORIGINS, Finding, NotMeasured, Results
from zeronorm_studies.study import Study


@dataclass(frozen=True)
class PageTable:
    """Rows of plain text under a header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self) -> list[tuple[str, ...]]:
        """Header, rule and rows, as Markdown has them."""
        return [self.header, tuple("---" for _ in self.header), *self.rows]


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs and a table; the HTML page also draws a table of mean ranks."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    table: PageTable | None = None

    def drawing(self) -> str:
        """The diagram of a table of mean ranks; nothing for another table."""
        if self.table is None or self.table.header != HEADER:
            return ""
        return diagram(self.table.rows, printed_difference(" ".join(self.paragraphs)))


@dataclass(frozen=True)
class Page:
    """A whole page; the last section tells how it was made."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]

    @property
    def head(self) -> str:
        """Which code the page speaks of; nothing where it does not tell how it was made."""
        last = self.sections[-1].table if self.sections else None
        codes = [row[1] for row in last.rows if row[0] == ROW] if last else []
        return head_of(codes[0]) if codes else ""


def to_markdown(page: Page) -> str:
    """The page as Markdown; cells never break the table."""
    return _rendered("study.md.j2", page)


def from_markdown(text: str) -> Page:
    """The page that `to_markdown` wrote."""
    head, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    title, subtitle, *_ = (line for line in head.splitlines() if line)  # the rest follows from the sections
    return Page(title.removeprefix("# "), subtitle, tuple(_section(part) for part in parts))


def _section(text: str) -> Section:
    heading, *lines = (line for line in text.splitlines() if line)
    rows = [_cells(line) for line in lines if line.startswith("|")]
    table = PageTable(rows[0], tuple(rows[2:])) if rows else None
    return Section(heading, tuple(line for line in lines if not line.startswith("|")), table)


def _cells(line: str) -> tuple[str, ...]:
    cells = re.split(r"(?<!\\)\|", line[1:-1])
    return tuple(cell.strip().replace("\\|", "|") for cell in cells)


def to_html(page: Page) -> str:
    """The page as one HTML file that needs no network, in the style of the reports."""
    style = resources.files("zeronorm.report").joinpath("templates", "style.css").read_text(encoding="utf-8")
    return _rendered("study.html.j2", page, style=style)


def _rendered(template: str, page: Page, **more: str) -> str:
    import jinja2

    environment = jinja2.Environment(
        autoescape=jinja2.select_autoescape(enabled_extensions=("html.j2",)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_template),
    )
    environment.filters["cell"] = lambda text: " ".join(text.split()).replace("|", "\\|")
    return environment.get_template(template).render(page=page, **more)


def _template(name: str) -> str:
    return resources.files("zeronorm_studies").joinpath("templates", name).read_text(encoding="utf-8")


# -- The result page of a study: what was published, what we found, and whether they agree --


Provenance = Sequence[tuple[str, str]]
IN_PERCENT = ("error_rate", "balanced_error_rate", "probe_fraction")


def compare_all(study: Study, results: Results, *, quick: bool) -> list[Finding]:
    """The comparison with every published figure and claim that this version of the study covers."""
    return [e.compare(results) for e in study.expectations if e.in_quick or not quick]


def build_page(study: Study, results: Results, *, quick: bool, provenance: Provenance = ()) -> Page:
    """The page of a run."""
    findings = compare_all(study, results, quick=quick)
    sections = [_introduction(study, quick), _comparison(findings), _measured(results)]
    if study.sections is not None:
        sections += study.sections(results)
    failures = _failures(results)
    if failures is not None:
        sections.append(failures)
    run = PageTable(("", ""), ((ROW, results.code), *provenance))
    sections.append(Section("How this was run", table=run))
    title = f"{study.title} ({'quick version' if quick else 'full version'})"
    return Page(title, f"Study {study.name}, after {study.source}", tuple(sections))


def _introduction(study: Study, quick: bool) -> Section:
    paragraphs = [study.about, f"Cost of the full version: {study.cost}"]
    if quick:
        paragraphs.append(
            "This is the quick version, on few trials: it checks that claims have the right direction; its "
            "numbers are not results."
        )
    return Section("What this is", tuple(paragraphs))


def _comparison(findings: list[Finding]) -> Section:
    counts = Counter(finding.verdict for finding in findings)
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "nothing to compare"
    used = dict.fromkeys(finding.origin for finding in findings)
    legend = "; ".join(f"“{origin}”: {ORIGINS[origin]}" for origin in used)
    rows = tuple((f.what, f.origin, f.published, f.ours, f.verdict, f.rule, f.note) for f in findings)
    header = ("what", "origin", "published", "ours", "verdict", "rule", "note")
    paragraphs = (f"{summary}.", f"Origin: {legend}." if legend else "")
    return Section("Published and ours", tuple(p for p in paragraphs if p), PageTable(header, rows))


def _measured(results: Results) -> Section:
    metrics = [metric.name for metric in parse_metrics(results.plan.metrics, Labels)]
    rows = []
    for data, config, size in results.keys:
        found = results.rows_of(data, config, size)
        done = [row for row in found if row.get("n_selected") is not None]
        counts = f"{np.mean([row['n_selected'] for row in done]):.4g}" if done else "–"
        seconds = [row["fit_seconds"] for row in done if row.get("fit_seconds") is not None]
        rows.append(
            (
                data,
                config,
                counts,
                *(_mean_text(results, data, config, size, metric) for metric in metrics),
                f"{np.mean(seconds):.3g}" if seconds else "–",
                f"{len(done)} of {len(found)}",
            )
        )
    labels = tuple(f"{metric.replace('_', ' ')}{', %' if metric in IN_PERCENT else ''}" for metric in metrics)
    header = ("data", "method", "features", *labels, "selection, s", "trials done")
    note = (
        "Mean ± standard error. For resplits of one sample the standard error is the corrected one of Nadeau and "
        "Bengio, sd·√(1/J + n_test/n_train); for independent draws it is sd/√J."
    )
    return Section("Measured", (note,), PageTable(header, tuple(rows)))


def _mean_text(results: Results, data: str, config: str, size: int | None, metric: str) -> str:
    try:
        mean, error = results.mean_and_error(data, config, size, metric)
    except NotMeasured:
        return "–"
    scale = 100.0 if metric in IN_PERCENT else 1.0
    if len(results.rows_of(data, config, size)) == 1:
        return f"{mean * scale:.4g}"
    return f"{mean * scale:.2f} ± {error * scale:.2f}"


def _failures(results: Results) -> Section | None:
    counts = Counter((r["data"], r["configuration"], r["error"]) for r in results.rows if r.get("error"))
    rows = [("all", config, reason, "all") for config, reason in results.missing.items()]
    rows += [(data, config, str(error), str(count)) for (data, config, error), count in counts.items()]
    if not rows:
        return None
    return Section("What did not finish", table=PageTable(("data", "method", "reason", "rows"), tuple(rows)))


# -- A finished study as files --


LARGE = ("predictions", "truth")


def write_study(folder: Path, name: str, page: Page, results: Results) -> list[Path]:
    """NAME.md, NAME.html and the measured rows as NAME.jsonl; each file is whole or absent."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{key: value for key, value in row.items() if key not in LARGE} for row in results.rows]
    markdown = to_markdown(page)
    texts = {
        f"{name}.md": markdown,
        f"{name}.html": to_html(from_markdown(markdown)),  # as the site makes it
        f"{name}.jsonl": "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows),
    }
    written = []
    for file, text in texts.items():
        temporary = folder / f".{file}.tmp"
        temporary.write_text(text, encoding="utf-8")
        written.append(temporary.replace(folder / file))
    return written
