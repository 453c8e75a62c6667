"""Imports point in one direction: each layer knows only the layers before it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import zeronorm
from zeronorm._index import EXPORTS

PACKAGE = Path(zeronorm.__file__).parent
STUDIES = Path(__file__).parents[1] / "studies" / "src" / "zeronorm_studies"
LAYERS = [
    {"_types", "_jit", "_threads", "_index", "__version__"},
    {"_lazy", "registry"},
    {"design"},
    {"datasets", "selection"},
    {"solvers"},
    {"criteria"},
    {"resampling"},
    {"engines"},
    {"selectors"},
    {"models", "transformers"},
    {"evaluation"},
    {"workflow"},
    {"report"},
    {"cli"},
    {"testing"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
BESIDE_DESIGN = {"design", "registry", *LAYERS[0], "_lazy"}  # all that datasets may import
FAMILIES = ("filters", "greedy", "meta", "scaling", "sparsity", "stochastic")
IMPORTERS = {"import_module", "__import__", "find_spec"}
FILES = sorted(f for f in PACKAGE.rglob("*.py") if f.parent != PACKAGE or f.stem != "__init__")
FILES_OF_STUDIES = sorted(STUDIES.rglob("*.py"))


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imported_modules(tree: ast.AST, package: tuple[str, ...]) -> set[str]:
    """Modules of zeronorm that a source imports."""
    found = all_imported_modules(tree, package)
    return {name for name in found if name.split(".")[0] == "zeronorm" and "." in name}


def all_imported_modules(tree: ast.AST, package: tuple[str, ...]) -> set[str]:
    """Modules that a source imports: plainly, from the top of the package, or by a string."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= _imported_from(node, package)
        elif isinstance(node, ast.Call) and _name(node.func) in IMPORTERS and node.args:
            target = node.args[0]
            if isinstance(target, ast.Constant) and isinstance(target.value, str):
                found.add(target.value)
    return found


def _imported_from(node: ast.ImportFrom, package: tuple[str, ...]) -> set[str]:
    base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
    module = ".".join(part for part in (base, node.module or "") if part)
    homes = EXPORTS.get(module, {})
    return {homes.get(alias.name, f"{module}.{alias.name}") for alias in node.names}


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def misplaced(own: tuple[str, ...], other: tuple[str, ...]) -> str | None:
    """Why the module ``own`` must not import ``other`` (both without "zeronorm"), or None."""
    if own[0] != other[0]:
        if own[0] == "datasets" and other[0] not in BESIDE_DESIGN:
            return "datasets may import design only"
        return None if LEVEL[other[0]] < LEVEL[own[0]] else f"{own[0]} stands below {other[0]}"
    if own[0] == "selectors" and len(other) > 1 and other[1] in FAMILIES:
        if own[1] not in FAMILIES:
            return "what all families use must not know one of them"
        return None if own[1] == other[1] else "families do not import each other"
    return None


def test_no_upward_import():
    wrong = []
    for file in FILES:
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        for name in imported_modules(parsed(file), ("zeronorm", *parts[:-1])):
            reason = misplaced(parts, tuple(name.split(".")[1:]))
            if reason is not None:
                wrong.append(f"{'.'.join(parts)} must not import {name}: {reason}")
    assert len(FILES) > 100
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "from zeronorm import RFE",
        "import zeronorm.selectors.base",
        "from zeronorm.selectors import base",
        "import importlib; importlib.import_module('zeronorm.selectors.base')",
    ],
)
def test_every_way_to_import_is_seen(line):
    names = imported_modules(ast.parse(line), ("zeronorm", "solvers"))
    assert any(misplaced(("solvers", "svm"), tuple(name.split(".")[1:])) for name in names)


def test_the_library_does_not_know_the_studies():
    for file in [PACKAGE / "__init__.py", *FILES]:
        package = ("zeronorm", *file.relative_to(PACKAGE).parts[:-1])
        names = all_imported_modules(parsed(file), package)
        assert "zeronorm_studies" not in {name.split(".")[0] for name in names}, file


def test_the_studies_use_the_library_as_any_other_package_does():
    """No name that begins with an underscore, and nothing of the other commands."""
    wrong = []
    for file in FILES_OF_STUDIES:
        package = ("zeronorm_studies", *file.relative_to(STUDIES).parts[:-1])
        for name in imported_modules(parsed(file), package):
            parts = name.removesuffix(".__version__").split(".")
            if "commands" in parts or any(part.startswith("_") for part in parts):
                wrong.append(f"{file.relative_to(STUDIES)} must not import {name}")
    assert len(FILES_OF_STUDIES) > 20
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("family", FAMILIES)
def test_family_folders_hold_methods_only(family):
    for file in (PACKAGE / "selectors" / family).glob("*.py"):
        if file.stem != "__init__":
            assert "@register(" in file.read_text(encoding="utf-8"), f"{file.name} registers no method"


def test_a_class_name_means_one_thing():
    """Classes that other files may import have names of their own."""
    homes: dict[str, list[str]] = {}
    for file in [*FILES, *FILES_OF_STUDIES]:
        for node in parsed(file).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(file))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
