"""The committed result pages: they are about the studies as they are, and the HTML pages follow from them."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from zeronorm.evaluation.significance import critical_difference
from zeronorm_studies.pages import Page, PageTable, Section, from_markdown, to_html, to_markdown
from zeronorm_studies.rank_diagram import HEADER, diagram, note_on_difference, printed_difference
from zeronorm_studies.study import NAMES, all_studies

PAGES = Path(__file__).parents[2] / "docs" / "studies"
ERRORS = [[0.10, 0.20, 0.30], [0.20, 0.25, 0.40], [0.10, 0.30, 0.20], [0.15, 0.20, 0.35]]


class Cells(HTMLParser):
    """The texts of the cells and paragraphs of a page."""

    def __init__(self, html):
        super().__init__()
        self.texts, self._open = [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag in ("td", "th", "p", "h1", "h2"):
            self.texts.append("")
            self._open = True

    def handle_endtag(self, tag):
        self._open = self._open and tag not in ("td", "th", "p", "h1", "h2")

    def handle_data(self, data):
        if self._open:
            self.texts[-1] += data


def page_with(*sections):
    return Page("A title", "Study made-here, after a source", sections)


@pytest.mark.parametrize("study", all_studies(), ids=lambda study: study.name)
def test_the_page_of_a_study_is_about_the_study_as_it_is_now(study):
    page = (PAGES / f"{study.name}.md").read_text(encoding="utf-8")
    assert " ".join(study.about.split()) in " ".join(page.split()), (
        "run the study again, or its page is out of date"
    )


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_page_is_lost_on_the_way_to_html(name):
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    page = from_markdown(text)
    assert to_markdown(page) == text
    shown = [page.title, page.subtitle, page.head]
    for section in page.sections:
        table = section.table
        shown += [section.heading, *section.paragraphs]
        shown += [cell for row in (table.header, *table.rows) for cell in row] if table else []
    assert Cells(to_html(page)).texts == shown


@pytest.mark.parametrize("name", NAMES)
def test_a_page_says_at_its_head_which_code_and_day_it_speaks_of(name):
    head = (PAGES / f"{name}.md").read_text(encoding="utf-8").partition("## ")[0]
    assert re.search(r"^The figures were computed by zeronorm [\d.]+, .*\d{4}-\d\d-\d\d", head, re.MULTILINE)


def test_one_form_of_each_page_is_kept():
    kept = {file.name for file in PAGES.iterdir() if file.suffix != ".html"}  # what a build left is not kept
    assert kept == {"README.md", *(f"{name}.md" for name in NAMES)}
    assert "docs/studies/*.html" in (PAGES.parents[1] / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_a_page_comes_back_from_its_markdown():
    table = PageTable(("a|b", ""), (("x | y", ""), ("", "1 < 2")))
    page = page_with(Section("one", ("p", "q & r"), table), Section("two", ("alone",)), Section("three"))
    assert from_markdown(to_markdown(page)) == page


def test_the_diagram_of_mean_ranks_shows_what_the_test_found():
    found = critical_difference(ERRORS, ["a", "b", "c"], greater_is_better=False)
    rows = tuple((name, f"{rank:.2f}") for name, rank in zip(found.methods, found.mean_ranks, strict=True))
    note = f"4 data sets. {note_on_difference(found.difference)}"
    assert printed_difference(note) == pytest.approx(found.difference, abs=0.005)
    drawing = diagram(rows, printed_difference(note))
    centres = dict(zip("abc", map(float, re.findall(r'cx="([\d.]+)"', drawing)), strict=True))
    # 1, 2.25 and 2.75 on a scale of 640 pixels that begins at 40
    assert centres == pytest.approx({"a": 40.0, "b": 40 + 640 * 1.25 / 1.75, "c": 680.0}, abs=0.01)
    bars = [tuple(map(float, ends)) for ends in re.findall(r'x1="([\d.]+)" x2="([\d.]+)"', drawing)]
    assert bars == [(centres[group[0]], centres[group[-1]]) for group in found.groups]
    assert drawing in to_html(page_with(Section("ranks", (note,), PageTable(HEADER, rows))))


def test_mean_ranks_without_their_critical_difference_are_not_drawn_wrongly():
    section = Section("ranks", ("4 data sets.",), PageTable(HEADER, (("a", "1.00"), ("b", "2.00"))))
    with pytest.raises(ValueError, match="must follow the sentence"):
        to_html(page_with(section))


def test_other_tables_are_not_drawn():
    assert "<svg" not in to_html(
        page_with(Section("x", ("p",), PageTable(("method", "rank"), (("a", "1"),))))
    )
