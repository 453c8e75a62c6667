"""The HTML of the report: complete, self-contained, and with all names escaped."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from zeronorm.report._html import render_report
from zeronorm.workflow._result import Result

VOID = {"meta", "link", "input", "br", "img", "hr"}


class Page(HTMLParser):
    """Elements, attributes and texts of a page; unbalanced elements are an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts, self.errors = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(params=["strange_selection", "regression_selection", "comparison"])
def page(request):
    return Page(render_report(*request.getfixturevalue(request.param)))


def test_the_page_is_well_formed_and_needs_nothing_from_outside(page):
    assert page.errors == []
    assert page.open == []
    for tag, attributes in page.elements:
        for name in ("src", "href", "action", "data", "poster"):
            value = attributes.get(name, "")
            assert value in ("", "data:,") or value.startswith("#"), (tag, name, value)
        assert not any(name.startswith("on") for name in attributes), tag
    identifiers = [a["id"] for _, a in page.elements if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    policy = next(a["content"] for t, a in page.elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")


def test_every_figure_is_named_for_those_who_do_not_see_it(page):
    charts = [a for tag, a in page.elements if tag == "svg" and a.get("class") == "chart"]
    assert len(charts) >= 3
    for chart in charts:
        assert chart["role"] == "img"
        assert chart["aria-label"]
        assert chart["tabindex"] == "0"


def test_hostile_names_are_text_only(strange_selection):
    result, records = strange_selection
    text = render_report(result, records)
    page = Page(text)
    assert sum(tag == "script" for tag, _ in page.elements) == 1 + text.count('type="application/json"')
    assert not any(tag in ("img", "b") for tag, _ in page.elements)
    shown = "".join(page.texts)
    for feature in result.selected:
        assert feature.name in shown
    assert "49" not in re.findall(r"quoted\S* & (\S+)", shown)


def test_a_selection_shows_everything(strange_selection):
    result, records = strange_selection
    text = render_report(result, records)
    for identifier in ("error", "frequency", "stability", "values", "redundancy", "path"):
        assert f'id="figure-{identifier}"' in text
    for message in ("Selected features", "What was done", "seed 0", "To repeat it", "Before you believe it"):
        assert message in text


def test_a_comparison_shows_the_score_matrix(comparison):
    text = render_report(*comparison)
    assert 'id="score-matrix"' in text
    assert 'id="figure-shared"' in text
    assert "Selected features</h2>" not in text


def test_a_comparison_names_the_test_that_was_made(comparison):
    """Both tables of p-values: error rates are compared sample by sample."""
    page = html.unescape(render_report(*comparison))
    assert page.count("p-values are those of the paired test of single samples") == 2
    assert "t-test" not in page


def test_results_survive_json(strange_selection, regression_selection, comparison):
    for result, records in (strange_selection, regression_selection, comparison):
        again = Result.from_json(result.to_json())
        assert again.selected == result.selected
        assert again.names == result.names
        assert render_report(again, records) == render_report(Result.from_json(again.to_json()), records)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a result"),
        ('{"format": "zeronorm-result", "format_version": 99}', "format version 99"),
        ('{"format": "zeronorm-result", "format_version": 2}', "incomplete"),
    ],
)
def test_damaged_results(text, message):
    with pytest.raises(ValueError, match=message):
        Result.from_json(text)


def test_the_methods_section_names_what_a_reader_needs(strange_selection):
    result, records = strange_selection
    text = render_report(result, records)
    for message in (
        "fisher",
        "3-fold stratified cross-validation",
        "balanced error rate",
        "40 samples and 20 features",
    ):
        assert message in text


def test_means_of_classes_are_shown_for_all_of_them_or_none(strange_selection):
    result, records = strange_selection

    def columns(n_classes):
        """The page with so many classes, each feature of which has a p-value of zero."""
        means = {f"class {i}": float(i) for i in range(n_classes)}
        selected = [replace(feature, class_means=means, p_value=0.0) for feature in result.selected]
        return "".join(Page(render_report(replace(result, selected=selected), records)).texts)

    four, five = columns(4), columns(5)
    assert re.findall(r"mean of (class \d)", four) == [f"class {i}" for i in range(4)]
    assert "mean of" not in five
    assert five.count("< 1e-300") == len(result.selected)
