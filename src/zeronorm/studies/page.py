"""A page of text and tables, as Markdown and as one HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

STYLE = """
table { border-collapse: collapse; font-size: .9rem; } .scroll { overflow-x: auto; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--rule); vertical-align: top; }
td.agrees { background: var(--better); } td.differs { background: var(--worse); }
"""


@dataclass(frozen=True)
class Table:
    """Rows of plain text under a header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """A heading with paragraphs, a table, and a drawing that only the HTML page shows."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    table: Table | None = None
    drawing: str = ""


@dataclass(frozen=True)
class Page:
    """A whole page."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]


def to_markdown(page: Page) -> str:
    """The page as Markdown; cells never break the table."""
    parts = [f"# {page.title}", page.subtitle]
    for section in page.sections:
        parts.append(f"## {section.heading}")
        parts.extend(section.paragraphs)
        if section.table is not None:
            parts.append(_markdown_table(section.table))
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    lines = [table.header, tuple("---" for _ in table.header), *table.rows]
    return "\n".join("| " + " | ".join(_cell(text) for text in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def to_html(page: Page) -> str:
    """The page as one HTML file that needs no network, in the style of the reports."""
    from markupsafe import Markup

    from zeronorm.report.svg.markup import element

    style = resources.files("zeronorm.report.templates").joinpath("style.css").read_text(encoding="utf-8")
    head = element(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", page.title),
        element("style", Markup(style + STYLE)),
    )
    header = element("header", element("h1", page.title), element("p", page.subtitle, class_="source"))
    body = element("body", header, element("main", *(_html_section(section) for section in page.sections)))
    return str(Markup("<!doctype html>\n") + element("html", head, body, lang="en") + "\n")


def _html_section(section: Section) -> str:
    from markupsafe import Markup

    from zeronorm.report.svg.markup import element

    parts = [element("h2", section.heading), *(element("p", text) for text in section.paragraphs)]
    if section.drawing:
        parts.append(Markup(section.drawing))
    if section.table is not None:
        head = element("tr", *(element("th", text, scope="col") for text in section.table.header))
        rows = [element("tr", *(_html_cell(text) for text in row)) for row in section.table.rows]
        whole = element("table", element("thead", head), element("tbody", *rows))
        parts.append(element("div", whole, class_="scroll"))
    return element("section", *parts, class_="card")


def _html_cell(text: str) -> str:
    from zeronorm.report.svg.markup import element

    return element("td", text, class_=text if text in ("agrees", "differs") else None)
