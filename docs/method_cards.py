"""Method cards: one page per registered method, written from the registry."""

from __future__ import annotations

from pathlib import Path

from zeronorm.registry import HOME_OF_KIND, MethodInfo, all_methods


def write_cards(folder: Path) -> None:
    """Write one page per method and an index of all."""
    folder.mkdir(exist_ok=True)
    methods = all_methods()
    for method in methods:
        (folder / f"{method.name}.rst").write_text(card(method), encoding="utf-8")
    (folder / "index.rst").write_text(index(methods), encoding="utf-8")


def card(method: MethodInfo) -> str:
    """The page of one method."""
    title = f"{method.cls.__name__} (``{method.name}``)"
    facts = {"Family": method.family, "Tasks": ", ".join(method.tasks), "Reference": method.reference}
    lines = [title, "=" * len(title), ""]
    lines += [f":{name}: {value}" for name, value in facts.items()]
    is_ours = method.cls.__module__.startswith("zeronorm.")
    home = HOME_OF_KIND[method.kind] if is_ours else method.cls.__module__  # a package outside
    lines += ["", f".. autoclass:: {home}.{method.cls.__name__}", ""]
    return "\n".join(lines)


def index(methods: list[MethodInfo]) -> str:
    """Table of all methods."""
    lines = ["Methods", "=======", "", ".. list-table::", "   :header-rows: 1", ""]
    lines += ["   * - Method", "     - Family", "     - Tasks", "     - What it does"]
    for m in methods:
        lines += [
            f"   * - :doc:`{m.cls.__name__} <{m.name}>`",
            f"     - {m.family}",
            f"     - {', '.join(m.tasks)}",
        ]
        lines += [f"     - {m.summary}"]
    lines += ["", ".. toctree::", "   :hidden:", ""] + [f"   {m.name}" for m in methods] + [""]
    return "\n".join(lines)
