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
    {"_types", "_jit", "execution", "_index", "__version__"},
    {"_messages"},
    {"_lazy", "registry"},
    {"design"},
    {"selection"},
    {"datasets"},
    {"solvers"},
    {"criteria"},
    {"resampling"},
    {"engines"},
    {"selectors"},
    {"models", "transformers"},
    {"evaluation"},
    {"result"},
    {"report"},
    {"workflow"},
    {"app"},
    {"cli"},
    {"testing"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
BESIDE_DESIGN = {
    "design",
    "selection",
    "registry",
    *LAYERS[0],
    "_messages",
    "_lazy",
}  # all that datasets may import
FAMILIES = ("filters", "greedy", "meta", "scaling", "sparsity", "stochastic")
ABOUT_THE_INDEX = (("_index",), ("registry",))  # the list of public names, and what writes it
FILES = sorted(f for f in PACKAGE.rglob("*.py") if f.parent != PACKAGE or f.stem != "__init__")
FILES_OF_STUDIES = sorted(STUDIES.rglob("*.py"))


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imported_modules(tree: ast.AST, package: tuple[str, ...], *, texts: bool = True) -> set[str]:
    """Modules of zeronorm that a source imports."""
    found = all_imported_modules(tree, package, texts=texts)
    return {name for name in found if name.split(".")[0] == "zeronorm" and "." in name}


def all_imported_modules(tree: ast.AST, package: tuple[str, ...], *, texts: bool = True) -> set[str]:
    """Modules that a source imports: plainly, from the top of the package, or by the text of their name.

    A text counts wherever it stands, as it may be imported from a table, and elsewhere.
    """
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= _imported_from(node, package)
        elif texts and isinstance(node, ast.Constant) and names_a_module(node.value):
            found.add(node.value)
    return found


def _imported_from(node: ast.ImportFrom, package: tuple[str, ...]) -> set[str]:
    base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
    module = ".".join(part for part in (base, node.module or "") if part)
    modules_of = EXPORTS.get(module, {})
    return {modules_of.get(alias.name, f"{module}.{alias.name}") for alias in node.names}


def names_a_module(value: object) -> bool:
    package, *parts = str(value).split(".")
    return package == "zeronorm" and len(parts) > 0 and parts[0] in LEVEL


def misplaced(own: tuple[str, ...], other: tuple[str, ...]) -> str | None:
    """Why the module ``own`` must not import ``other`` (both without "zeronorm"), or None."""
    if own[0] != other[0]:
        if own[0] == "datasets" and other[0] not in BESIDE_DESIGN:
            return "datasets may import design and selection only"
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
        texts = parts not in ABOUT_THE_INDEX
        for name in imported_modules(parsed(file), ("zeronorm", *parts[:-1]), texts=texts):
            reason = misplaced(parts, tuple(name.split(".")[1:]))
            if reason is not None:
                wrong.append(f"{'.'.join(parts)} must not import {name}: {reason}")
    assert len(FILES) > 100
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "from zeronorm import RFE",
        "import zeronorm.selectors._base",
        "from zeronorm.selectors import _base as base",
        "import importlib; importlib.import_module('zeronorm.selectors._base')",
        "SERVICES = {'base': 'zeronorm.selectors._base'}",
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


def test_the_studies_know_nothing_of_the_other_commands():
    assert len(FILES_OF_STUDIES) > 20
    for file in FILES_OF_STUDIES:
        package = ("zeronorm_studies", *file.relative_to(STUDIES).parts[:-1])
        imported = imported_modules(parsed(file), package)
        assert not [name for name in imported if "commands" in name.split(".")], file


def test_only_faces_of_packages_are_public():
    """A module is private unless it is one that packages of others import by name."""
    public = {"registry", "cli.options", "cli.printing"}
    found = {
        ".".join(f.relative_to(PACKAGE).with_suffix("").parts) for f in FILES if not f.stem.startswith("_")
    }
    assert found == public


@pytest.mark.parametrize("family", FAMILIES)
def test_family_folders_hold_methods_only(family):
    for file in (PACKAGE / "selectors" / family).glob("*.py"):
        if file.stem != "__init__":
            assert "@register(" in file.read_text(encoding="utf-8"), f"{file.name} registers no method"


def test_a_class_name_means_one_thing():
    """Classes that other files may import have names of their own."""
    files_of: dict[str, list[str]] = {}
    for file in [*FILES, *FILES_OF_STUDIES]:
        for node in parsed(file).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files_of.setdefault(node.name, []).append(str(file))
    assert {name: files for name, files in files_of.items() if len(files) > 1} == {}
