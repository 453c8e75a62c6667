"""Method cards: one page per registered method, and tables of all, written from the registry."""

from __future__ import annotations

import inspect
import re
from functools import cache
from pathlib import Path

from zeronorm.registry import HOME_OF_KIND, MethodInfo, all_methods, parameters_of

SYSTEMATIC = Path(__file__).parent / "studies" / "systematic.md"
# What the rule that stops or filters a method promises; the pages of the methods state the assumptions.
ERROR_CONTROL = {
    "knockoff-selector": "false discovery rate",
    "probe-selector": "false-selection rate, FDR or FWER against probes",
    "stability-selection": "expected number of false selections",
    "consensus": "expected number of false selections (with halves)",
    "gram-schmidt": "risk of one random probe",
    "gram-schmidt-relief": "risk of one random probe",
}


def write_cards(folder: Path) -> None:
    """Write one page per method, an index of all, and the table of what each can do."""
    folder.mkdir(exist_ok=True)
    methods = all_methods()
    for method in methods:
        (folder / f"{method.name}.rst").write_text(card(method), encoding="utf-8")
    (folder / "index.rst").write_text(index(methods), encoding="utf-8")
    (folder / "abilities.inc").write_text(abilities(methods), encoding="utf-8")


@cache
def measured_ranks() -> dict[str, tuple[str, str, str]]:
    """Mean ranks at 20 features over all, wide and tall data, from the page of the systematic study."""
    _, _, section = SYSTEMATIC.read_text(encoding="utf-8").partition("## Mean ranks on wide and on tall data")
    rows = re.findall(
        r"^\| ([\w-]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", section.partition("\n## ")[0], re.M
    )
    return {name: (overall, wide, tall) for name, overall, wide, tall in rows}


def card(method: MethodInfo) -> str:
    """The page of one method."""
    title = f"{method.cls.__name__} (``{method.name}``)"
    lines = [title, "=" * len(title), ""]
    lines += [f":{name}: {value}" for name, value in facts(method).items()]
    ranks = measured_ranks()
    if method.name in ranks:
        overall, wide, tall = ranks[method.name]
        lines += [
            f":Mean rank: {overall} of {len(ranks)} over 14 data sets at 20 features (wide {wide}, tall {tall}); "
            "differences below 16 places mean nothing, see :doc:`/comparison`"
        ]
    is_ours = method.cls.__module__.startswith("zeronorm.")
    home = HOME_OF_KIND[method.kind] if is_ours else method.cls.__module__  # a package outside
    lines += ["", f".. autoclass:: {home}.{method.cls.__name__}", ""]
    lines += ["Options and defaults", "--------------------", ""]
    if method.kind in ("selector", "meta"):
        lines += [f"On the command line: ``zeronorm methods {method.name}``.", ""]
    return "\n".join(lines + table(["option", "default"], options(method)))


def options(method: MethodInfo) -> list[list[str]]:
    """Name and default of each parameter."""
    return [[f"``{row['name']}``", f"``{row['default']}``"] for row in parameters_of(method.cls)]


def facts(method: MethodInfo) -> dict[str, str]:
    """What is known of a method, by heading."""
    found = {"Family": method.family, "Tasks": ", ".join(method.tasks), "Reference": method.reference}
    if method.kind in ("selector", "meta"):
        able = can(method)
        found |= {
            "Groups": able["groups"],
            "Sample weights": able["weights"],
            "Sparse data": able["sparse"],
            "Missing values": able["NaN"],
        }
        if able["error control"]:
            found["Error control"] = able["error control"]
    return found


def can(method: MethodInfo) -> dict[str, str]:
    """What a selector can do, read from its class."""
    parameters = inspect.signature(method.cls).parameters
    of_wrapped = "of the wrapped" if "selector" in parameters else ""
    return {
        "tasks": ", ".join(method.tasks),
        "groups": "yes" if "feature_groups" in parameters else of_wrapped or "no",
        "weights": "yes" if "sample_weight" in inspect.signature(method.cls.fit).parameters else "no",
        "sparse": "yes" if getattr(method.cls, "_accepts_sparse", False) else "no",
        "NaN": "yes" if getattr(method.cls, "_allow_nan", False) else "no",
        "error control": ERROR_CONTROL.get(method.name, ""),
    }


def abilities(methods: list[MethodInfo]) -> str:
    """Table of what each selector can do."""
    selectors = [m for m in methods if m.kind in ("selector", "meta")]
    heads = ["tasks", "groups", "weights", "sparse", "NaN", "error control"]
    rows = [
        [f":doc:`{m.cls.__name__} </methods/{m.name}>`", m.family, *(can(m)[head] for head in heads)]
        for m in selectors
    ]
    return "\n".join(table(["method", "family", *heads], rows))


def index(methods: list[MethodInfo]) -> str:
    """Table of all methods with their first lines."""
    lines = ["Methods", "=======", ""]
    titles = {
        "selector": "Selectors",
        "meta": "Around any selector",
        "model": "Models that do not select input features",
        "transformer": "Transformers",
    }
    for kind, title in titles.items():
        rows = [
            [f":doc:`{m.cls.__name__} <{m.name}>`", f"``{m.name}``", m.family, m.summary]
            for m in methods
            if m.kind == kind
        ]
        lines += [title, "-" * len(title), "", *table(["class", "name", "family", "what it does"], rows)]
    lines += [".. toctree::", "   :hidden:", ""] + [f"   {m.name}" for m in methods] + [""]
    return "\n".join(lines)


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """A table of reStructuredText, as lines; cells must be one line each."""
    if not rows:
        return []
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in [heads, *rows]:
        for place, cell in enumerate(row):
            lines.append(f"   {'* -' if place == 0 else '  -'} {cell}".rstrip())
    return [*lines, ""]
