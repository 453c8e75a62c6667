"""The Python blocks of the documentation run as printed; what the pages are made from is complete."""

from __future__ import annotations

import re
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
GENERATED = {"papers.rst", "performance.rst"}
PAGES = [
    page
    for page in sorted([*DOCS.glob("*.rst"), *DOCS.glob("guide/*.rst")])
    if page.name not in GENERATED and ".. code-block:: python" in page.read_text(encoding="utf-8")
]


def blocks(text):
    """The Python blocks of a page, in order."""
    found = re.findall(r"^\.\. code-block:: python\n\n((?:(?: {3}.*)?\n)+)", text + "\n", flags=re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for place, block in enumerate(blocks(page.read_text(encoding="utf-8"))):
            exec(compile(block, f"{page.name}, block {place + 1}", "exec"), names)


def test_every_page_with_code_is_found():
    assert {"start", "paths", "error_control", "big_data"} <= {page.stem for page in PAGES}


@pytest.fixture
def cards(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    import method_cards

    yield method_cards
    sys.modules.pop("method_cards", None)


def test_error_control_is_stated_for_registered_methods_only(cards):
    from zeronorm.registry import all_methods

    assert set(cards.ERROR_CONTROL) <= {method.name for method in all_methods()}


def test_the_ranks_of_the_systematic_study_are_read(cards):
    ranks = cards.measured_ranks()
    assert len(ranks) >= 38
    assert ranks["random"][0] == max(ranks.values(), key=lambda found: float(found[0]))[0]
