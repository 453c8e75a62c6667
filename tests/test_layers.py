"""Imports point in one direction: each layer knows only the layers before it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import zeronorm

PACKAGE = Path(zeronorm.__file__).parent
LAYERS = [
    {"_jit", "_index"},
    {"_lazy"},
    {"design"},
    {"datasets", "solvers"},
    {"criteria"},
    {"selectors"},
    {"models", "transformers"},
    {"evaluation"},
    {"report"},
    {"studies"},
    {"cli"},
    {"testing"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted(f for f in PACKAGE.rglob("*.py") if f.parent != PACKAGE or f.stem != "__init__")


def imported_modules(file: Path) -> set[str]:
    package = ("zeronorm", *file.relative_to(PACKAGE).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            found.add(".".join(part for part in (base, node.module or "") if part))
    return {name for name in found if name.split(".")[0] == "zeronorm" and "." in name}


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_no_upward_import(file):
    own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for name in imported_modules(file):
        other = name.split(".")[1]
        if other == own:
            continue
        assert LEVEL[other] < LEVEL[own], f"{own} must not import {name}"
        if own == "datasets":
            assert other in {"design", "_jit", "_lazy"}, f"datasets may import design only, not {name}"
