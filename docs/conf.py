"""Sphinx configuration; some pages are generated from the code when the site is built.

Set ``ZERONORM_GALLERY`` to a regular expression to run only the examples whose file names match it.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from generated_pages import write_pages
from method_cards import write_cards

import zeronorm
from zeronorm_studies.pages import from_markdown, to_html
from zeronorm_studies.study import NAMES

HERE = Path(__file__).parent
project = "zeronorm"
author = "The zeronorm developers"
copyright = author
release = version = zeronorm.__version__
extensions = [
    "myst_parser",  # for the changelog and the contributor guide
    "sphinx.ext.autodoc",
    "sphinx-mathjax-offline",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "studies", "toy", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]
suppress_warnings = ["config.cache"]

autodoc_typehints = "none"
autodoc_inherit_docstrings = False
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": os.environ.get("ZERONORM_GALLERY", "plot_"),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "capture_repr": (),  # show printed output only, not representations of objects
    "show_memory": False,
    "min_reported_time": 0,
    "write_computation_times": False,  # that page would load scripts from other sites
}

html_theme = "pydata_sphinx_theme"
html_title = "zeronorm"
html_static_path = ["_static"]
html_css_files = ["zeronorm.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
_ALONE = (
    "index",
    "start",
    "tasks",
    "choose",
    "framework",
    "comparison",
    "coming_from",
    "papers",
    "performance",
    "glossary",
    "trust",
    "references",
    "parameters",
    "architecture",
    "changelog",
    "contributing",
)
html_sidebars = {page: [] for page in _ALONE}

write_cards(HERE / "methods")
write_pages(HERE)

_ENTRY = re.compile(r"^(?P<names>\*{0,2}[A-Za-z_]\w*(?:, *\*{0,2}[A-Za-z_]\w*)*) : (?P<text>.+)$")


def prepare_entries(_app: Any, what: str, _name: str, obj: Any, _options: Any, lines: list[str]) -> None:
    """Rewrite entries of parameters and attributes in the form that numpydoc expects.

    A sentence after the colon moves below the name. Names that end with an underscore, in types and between quotation
    marks, are escaped so that they are not links. The description of a method is
    removed, since its page has it already.
    """
    if what == "class" and "_method" in vars(obj) and "Parameters" in lines:
        del lines[: lines.index("Parameters")]
    prepared = []
    for line in lines:
        match = _ENTRY.match(line)
        if match is None:
            prepared.append(re.sub(r"(?<=\w)_(?=[\"'])", r"\\_", line))
        elif match["text"].endswith("."):
            prepared += [match["names"], f"    {match['text']}"]
        else:
            plain = re.sub(r"(?<=\w)_(?=[,)])", r"\\_", match["text"])
            prepared.append(f"{match['names']} : {plain}")
    lines[:] = prepared


def write_study_pages(app: Any, error: Exception | None) -> None:
    """Write the self-contained pages of the studies from their Markdown texts into the site."""
    if error is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir, "studies")
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        page = from_markdown((HERE / "studies" / f"{name}.md").read_text(encoding="utf-8"))
        (folder / f"{name}.html").write_text(to_html(page), encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", prepare_entries, priority=100)
    app.connect("build-finished", write_study_pages)
