"""Sphinx configuration; method cards are written from the registry at build time."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from method_cards import write_cards

import zeronorm

project = "zeronorm"
author = "The zeronorm developers"
release = zeronorm.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
html_theme = "pydata_sphinx_theme"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
autodoc_inherit_docstrings = False

write_cards(Path(__file__).parent / "methods")
