"""Lazy import: public names are imported when they are first used (see ``_index``)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

# Packages that are available after ``import zeronorm`` alone, for instance ``zeronorm.report.render``.
PACKAGES = ("datasets", "design", "evaluation", "report", "testing", "transformers")


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for a package with lazy names."""
    from zeronorm._index import EXPORTS

    names = EXPORTS.get(package, {})

    def load(name: str) -> Any:
        if package == "zeronorm" and name in PACKAGES:
            return importlib.import_module(f"zeronorm.{name}")
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(names[name]), name)

    return load, lambda: sorted(names), sorted(names)
