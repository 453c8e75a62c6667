"""Pages generated from the code and from committed results: API, commands, parameters, studies, times, references."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from method_cards import full_reference, references, table

from zeronorm._index import EXPORTS
from zeronorm.registry import all_methods
from zeronorm.selection._parameters import VOCABULARY

# Packages with public names besides the registered methods, and their purpose.
PACKAGES = {
    "zeronorm": "Selection, evaluation and paths",
    "zeronorm.design": "Data in any storage format",
    "zeronorm.evaluation": "Metrics and stability",
    "zeronorm.evaluation.significance": "Tests of differences",
    "zeronorm.datasets": "Files, known data sets, synthetic problems",
    "zeronorm.report": "Report and charts",
    "zeronorm.registry": "Adding methods",
    "zeronorm.testing": "Checks for your own methods and designs",
}
NAMES_OF_REGISTRY = ("register", "all_methods", "get_method", "MethodInfo")


def write_pages(docs: Path) -> None:
    """Write all generated pages except the method cards."""
    (docs / "api").mkdir(exist_ok=True)
    for name, text in api().items():
        (docs / "api" / f"{name}.rst").write_text(text, encoding="utf-8")
    (docs / "api" / "commands.rst").write_text(commands(), encoding="utf-8")
    (docs / "parameters.rst").write_text(parameters(), encoding="utf-8")
    (docs / "papers.rst").write_text(papers(docs / "studies"), encoding="utf-8")
    (docs / "performance.rst").write_text(performance(docs.parent / "benchmarks"), encoding="utf-8")
    (docs / "references.rst").write_text(reference_list(), encoding="utf-8")
    for page in ("CHANGELOG", "CONTRIBUTING"):
        text = (docs.parent / f"{page}.md").read_text(encoding="utf-8")
        # These pages are left out of the search, which should find pages that solve a problem.
        (docs / f"{page.lower()}.md").write_text(f"---\nnosearch: true\n---\n\n{text}", encoding="utf-8")


def heading(text: str, mark: str = "=") -> list[str]:
    return [text, mark * len(text), ""]


# -- API ----------------------------------------------------------------------------------------------


def api() -> dict[str, str]:
    """The pages of all public names by file name: an overview, and one page per class or function.

    Methods have pages of their own; the overview links to them.
    """
    lines = heading("API reference")
    lines += ["Public names are those on this page and on the :doc:`commands </api/commands>` page.", ""]
    lines += [*heading("Methods", "-"), *_methods_by_package()]
    methods = {method.cls for method in all_methods()}
    documented: list[Any] = []
    pages: dict[str, str] = {}
    for package, title in PACKAGES.items():
        rows = []
        for name in _public_names(package):
            found = getattr(importlib.import_module(package), name)
            if any(found is other for other in documented) or (inspect.isclass(found) and found in methods):
                continue
            documented.append(found)
            full = f"{package}.{name}"
            pages[full] = "\n".join(
                [*heading(full), f".. currentmodule:: {package}", "", *_entry(full, found)]
            )
            rows.append([f":doc:`{name} </api/{full}>`", _first_sentence(found)])
        if rows:
            lines += [*heading(f"{package}: {title}", "-"), *table(["name", "what it is or does"], rows)]
    lines += [".. toctree::", "   :hidden:", "", "   commands", *(f"   {full}" for full in pages), ""]
    return {"index": "\n".join(lines), **pages}


def _first_sentence(found: Any) -> str:
    """The first line of the docstring; nothing for a plain value, whose type has a docstring of its own."""
    is_plain = not (inspect.isclass(found) or callable(found) or inspect.ismodule(found))
    text = "" if is_plain else inspect.getdoc(found) or ""
    return text.partition("\n")[0].rstrip(".")


def _methods_by_package() -> list[str]:
    backends = {"selector": "zeronorm", "meta": "zeronorm"}
    rows = [
        [
            f":doc:`{m.cls.__name__} </methods/{m.name}>`",
            f"``{backends.get(m.kind, f'zeronorm.{m.kind}s')}``",
            m.summary,
        ]
        for m in sorted(all_methods(), key=lambda m: m.cls.__name__.lower())
    ]
    return table(["class", "import from", "what it does"], rows)


def _public_names(package: str) -> list[str]:
    if package == "zeronorm.registry":
        return list(NAMES_OF_REGISTRY)
    if package in EXPORTS:
        return list(EXPORTS[package])
    return list(importlib.import_module(package).__all__)


def _entry(full: str, found: Any) -> list[str]:
    if inspect.isclass(found):
        return [f".. autoclass:: {full}", "   :members:", ""]
    if callable(found):
        return [f".. autofunction:: {full}", ""]
    return [f".. autodata:: {full}", "   :no-value:", ""]


# -- Parameters ---------------------------------------------------------------------------------------


def parameters() -> str:
    """The page of all constructor parameters with their allowed values and meanings."""
    lines = [
        *heading("Parameters"),
        "A constructor parameter has one name and one meaning in the whole library. The checks in ``fit``, the errors",
        "and the sections *Parameters* of all classes come from ``zeronorm.selection._parameters.VOCABULARY``, and so",
        "does this page. Besides the values in the second column, a class may allow None and strings that it lists.",
        "",
    ]
    rows = [
        [
            f"``{name}``",
            literal(parameter.kind.must_be) if parameter.kind else "a string that the class lists",
            re.sub(r"(?<=\w)_(?=[\"'])", r"\\_", parameter.meaning),  # a name in quotes must not be a link
        ]
        for name, parameter in sorted(VOCABULARY.items(), key=lambda item: item[0].lower())
    ]
    return "\n".join([*lines, *table(["name", "must be", "meaning"], rows)])


# -- Command line -------------------------------------------------------------------------------------


def commands() -> str:
    """The page of all commands with their arguments and options, read from the program."""
    from typer.main import get_command

    from zeronorm.cli.commands import app

    lines = heading("Commands")
    lines += [
        "``zeronorm COMMAND --help`` prints the same. See :doc:`/guide/command_line` for an introduction.",
        "",
    ]
    program: Any = get_command(app)
    for name in program.list_commands(None):  # with those of the studies
        command = program.commands[name]
        lines += [*heading(f"zeronorm {name}", "-")]
        lines += [literal(inspect.cleandoc(command.help or "")), ""]
        rows = [_option(parameter) for parameter in command.params if parameter.name != "help"]
        lines += table(["option", "default", "meaning"], rows)
        _, _, examples = (command.epilog or "").partition(":")
        lines += [".. code-block:: bash", ""]
        lines += [f"   {example.strip()}" for example in examples.split("|")] + [""]
    return "\n".join(lines)


def _option(parameter: Any) -> list[str]:
    is_argument = parameter.param_type_name == "argument"
    names = parameter.name.upper() if is_argument else ", ".join(parameter.opts)
    default = parameter.default
    if default is None or default is False or callable(default) or default == [] or parameter.required:
        default = ""
    default = getattr(default, "value", default)
    meaning = literal(" ".join((parameter.help or "").split()))
    return [f"``{names}``", f"``{default}``" if default != "" else "", meaning]


def literal(text: str) -> str:
    """Convert a help message or Markdown text to reStructuredText."""
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"\0\1\0", text)
    text = re.sub(r"([*|_\\])", r"\\\1", text)
    return re.sub(r"\0([^\0]+)\0", lambda m: "``" + m[1].replace("\\", "") + "``", text)


def reference_list() -> str:
    """The page of all papers that methods cite, and how to cite the library."""
    lines = [
        *heading("References"),
        "Each method page names its papers. To cite the library itself, see below.",
        "",
    ]
    lines += [f"- {full_reference(key)}" for key in references()]
    lines += ["", *heading("How to cite", "-"), "``CITATION.cff`` of the repository:", ""]
    return "\n".join([*lines, ".. literalinclude:: ../CITATION.cff", "   :language: yaml", ""])


# -- Studies, performance -----------------------------------------------------------------------------


def markdown_table(text: str) -> list[list[str]]:
    """Cells of the first table in a Markdown text, the heading first."""
    lines = re.search(r"(?:^\|.*\|\n)+", text + "\n", re.M)
    if lines is None:
        return []
    rows = [re.split(r"(?<!\\)\|", line.strip()[1:-1]) for line in lines[0].splitlines()]
    cells = [[cell.strip().replace("\\|", "|") for cell in row] for row in rows]
    return [row for row in cells if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]


def papers(folder: Path) -> str:
    """The page of the repeated experiments: an overview, and every statement with its verdict."""
    lines = heading("The papers' experiments, repeated")
    lines += [
        "Each study repeats an experiment of a paper with this library. Its page shows the published figures beside",
        "ours, with standard errors, and whether they agree or differ by a rule that was stated beforehand.",
        "``zeronorm study --list`` lists the studies with their costs, ``zeronorm study NAME`` runs one; the",
        "command comes with the package ``zeronorm-studies`` (folder ``studies`` of the repository).",
        "",
    ]
    pages = {page.stem: page.read_text(encoding="utf-8") for page in sorted(folder.glob("*.md"))}
    pages.pop("README", None)
    totals = [verdict_counts(text) for text in pages.values()]
    agree, differ = (sum(counts[word] for counts in totals) for word in ("agree", "differ"))
    lines += [
        f"Of {agree + differ} statements in {len(pages)} studies {agree} agree and {differ} differ.",
        "",
    ]
    rows = [[f"`{name} <studies/{name}.html>`__", *_overview(text)] for name, text in pages.items()]
    lines += [*table(["study", "what", "after", "verdicts"], rows)]
    lines += [*heading("Every statement", "-")]
    for name, text in pages.items():
        cells = markdown_table(text.partition("## Published and ours")[2].partition("\n## ")[0])
        if not cells:
            continue
        wanted = [cells[0].index(head) for head in ("what", "origin", "published", "ours", "verdict")]
        body = [[literal(row[column]) for column in wanted] for row in cells[1:]]
        inner = table([cells[0][column] for column in wanted], body)
        lines += [f".. dropdown:: {name}: {_overview(text)[2]}", ""] + [
            f"   {line}".rstrip() for line in inner
        ]
    return "\n".join(lines)


def _overview(text: str) -> list[str]:
    title = text.partition("\n")[0].removeprefix("# ").removesuffix(" (full version)")
    after = re.search(r"^Study [\w-]+, after (.*)$", text, re.M)
    counts = verdict_counts(text)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return [literal(title), literal(after[1] if after else ""), verdicts]


def verdict_counts(text: str) -> dict[str, int]:
    """Number of statements of a study that agree and that differ, from the line below its heading."""
    _, _, below = text.partition("## Published and ours")
    line = below.strip().partition("\n")[0]
    found = {word: int(count) for count, word in re.findall(r"(\d+) (agree|differ)", line)}
    return {"agree": found.get("agree", 0), "differ": found.get("differ", 0)}


def performance(benchmarks: Path) -> str:
    """The page of measured times, from benchmarks/results/measured.json."""
    sys.path.insert(0, str(benchmarks))
    try:
        readme_table = importlib.import_module("readme_table")
    finally:
        sys.path.remove(str(benchmarks))
    found = readme_table.measured()
    rows = [[literal(row[head]) for head in readme_table.HEADS] for row in found["rows"]]
    lines = [*heading("Performance"), literal(readme_table.introduction(found)), ""]
    lines += [*table(list(readme_table.HEADS), rows)]
    after = "Times on a GPU: :doc:`/guide/big_data`. How cost grows with the data: :doc:`/guide/cost`."
    return "\n".join(
        [
            *lines,
            after,
            "",
            f"From ``{readme_table.MEASURED.relative_to(benchmarks.parent).as_posix()}``.",
            "",
        ]
    )
