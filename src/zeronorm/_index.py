"""Where public names live, read from the ``__init__.pyi`` files that `make index` writes."""

import os

PACKAGES = ("zeronorm", "zeronorm.models", "zeronorm.transformers")  # those with lazy names


def _names_in_stub(package: str) -> dict[str, str]:
    """Public names of a package, each with the module that it is imported from."""
    folder = os.path.join(os.path.dirname(__file__), *package.split(".")[1:])
    with open(os.path.join(folder, "__init__.pyi"), encoding="utf-8") as stream:
        imports = [line.split() for line in stream if line.startswith("from ")]
    return dict(sorted((words[3], words[1]) for words in imports))


EXPORTS = {package: _names_in_stub(package) for package in PACKAGES}
MODULES = tuple(
    sorted(
        {
            module
            for names in EXPORTS.values()
            for module in names.values()
            if module.split(".")[1] in ("selectors", "models", "transformers")
        }
    )
)
