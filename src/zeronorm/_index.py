"""Where public names are defined, read from the ``__init__.pyi`` files that `make index` writes.

A line of such a file is ``from module import Class as Class  # name-of-the-method``.
"""

import os

PACKAGES = ("zeronorm", "zeronorm.models", "zeronorm.transformers")  # those with lazy names


def _imports_in_stub(package: str) -> list[list[str]]:
    """The parts of each import of a package's stub: from, module, import, name, as, name, #, method."""
    folder = os.path.join(os.path.dirname(__file__), *package.split(".")[1:])
    with open(os.path.join(folder, "__init__.pyi"), encoding="utf-8") as stream:
        return [line.split() for line in stream if line.startswith("from ")]


_IMPORTS = {package: _imports_in_stub(package) for package in PACKAGES}
# Public names of each package with the module that defines them, and registered methods with theirs.
EXPORTS = {
    package: dict(sorted((parts[3], parts[1]) for parts in found)) for package, found in _IMPORTS.items()
}
METHODS = {parts[7]: parts[1] for found in _IMPORTS.values() for parts in found if "#" in parts}
