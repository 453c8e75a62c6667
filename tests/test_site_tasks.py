"""What users look for, and ten tasks, are answered by pages of the documentation; the commands named there exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from zeronorm.cli.commands import app

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {
    str(file.relative_to(DOCS).with_suffix("")): file.read_text(encoding="utf-8")
    for folder in (DOCS, DOCS / "guide")
    for file in sorted(folder.glob("*.rst"))
}
SEARCHES = [
    "excel sheet",
    "ROC",
    "missing values",
    "batch",
    "misclassified",
    "conda",
    "volcano",
    "survival",
    "TRIPOD",
]
TASKS = {
    "read a sheet of a workbook whose header is in row 3": (
        "questions",
        "select",
        ["--sheet", "--header-row"],
    ),
    "keep the samples of one patient together": ("questions", "select", ["--groups"]),
    "select beside age and stage": ("guide/adjust", "select", ["--adjust"]),
    "select for a time until an event": ("guide/survival", "select", ["--time", "--event"]),
    "limit the share of false features": ("guide/error_control", "select", ["--control", "--level"]),
    "score a second cohort with a saved model": ("guide/second_cohort", "apply", ["--target"]),
    "ask why a feature is not in the list": ("questions", "explain", []),
    "find features that would do as well": ("guide/substitutes", "select", ["--substitutes"]),
    "learn how many samples are needed": ("guide/sample_size", "select", ["--learning-curve"]),
    "compare methods on the same folds": ("guide/command_line", "compare", []),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_finds_a_page_of_the_guide(search):
    """The search of the site lists the pages that hold all words."""
    found = [name for name, text in PAGES.items() if all(w.lower() in text.lower() for w in search.split())]
    assert "questions" in found or any(name.startswith("guide/") for name in found)


@pytest.mark.parametrize("task", TASKS)
def test_the_page_of_a_task_names_a_command_that_exists(task):
    page, command, options = TASKS[task]
    text = PAGES[page]
    assert f"zeronorm {command}" in text or f"``{options[0]}" in text
    accepted = {name for each in get_command(app).commands[command].params for name in each.opts}
    for option in options:
        assert option in accepted
        assert re.search(rf"{option}\b", text), (option, page)
