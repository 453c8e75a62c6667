"""The list of methods, for the command line, the method cards, the benchmarks and the contract tests.

``@register`` adds a class when its module is imported. So that ``import zeronorm`` stays light, public
names resolve through a generated index, the ``__init__.pyi`` of their package; after adding a method run
``make index``, which rewrites that one file. A test fails when it is stale.

Another package adds methods by decorating its classes with ``@register`` and naming them, or their modules, as entry
points of the group ``zeronorm.selectors``. Modules that register something else (a chart, a metric, a file format, a
backend, a loss) are named in the group ``zeronorm.extensions``, functions that add a command to a ``typer.Typer`` in
the group ``zeronorm.commands``.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T", bound=type)

KINDS = ("selector", "meta", "model", "transformer")
ENTRY_POINTS = "zeronorm.selectors"
EXTENSIONS = "zeronorm.extensions"
COMMANDS = "zeronorm.commands"


@dataclass(frozen=True)
class MethodInfo:
    """The entry of one method in the registry.

    ``reference`` names papers by authors and year, separated by semicolons. ``papers`` holds the full text and the
    link (a DOI or an address) of those that docs/references.csv does not have. ``cost`` is the computing time in terms
    of n samples and p features, ``oracle`` what the tests compare the method with, ``avoid`` when not to use it,
    ``misprints`` the known misprints of its papers.
    """

    name: str
    cls: type
    kind: str
    family: str
    tasks: tuple[str, ...]
    reference: str
    test_params: tuple[Mapping[str, Any], ...] = field(default=({},))
    cost: str = ""
    oracle: str = ""
    avoid: str = ""
    misprints: str = ""
    papers: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """First line of the documentation."""
        return (self.cls.__doc__ or "").strip().splitlines()[0] if self.cls.__doc__ else ""

    def instances(self) -> list[Any]:
        """One quick instance per set of test parameters."""
        return [
            self.cls(**{key: _resolved(value) for key, value in params.items()})
            for params in self.test_params
        ]


class Registered(str):
    """In test parameters: a default instance of the method of this name, made when it is needed."""


def _resolved(value: Any) -> Any:
    if isinstance(value, list):
        return [_resolved(item) for item in value]
    return get_method(value).cls() if isinstance(value, Registered) else value


_METHODS: dict[str, MethodInfo] = {}


def register(
    name: str,
    *,
    family: str,
    tasks: tuple[str, ...],
    reference: str,
    kind: str = "selector",
    test_params: Mapping[str, Any] | tuple[Mapping[str, Any], ...] = ({},),
    cost: str = "",
    oracle: str = "",
    avoid: str = "",
    misprints: str = "",
    papers: Mapping[str, tuple[str, str]] | None = None,
) -> Callable[[T], T]:
    """Class decorator that registers a method under ``name``; `MethodInfo` describes the other arguments."""
    if kind not in KINDS:
        raise ValueError(f"The 'kind' of method {name!r} must be one of {KINDS}. Got {kind!r} instead.")
    params = (test_params,) if isinstance(test_params, Mapping) else tuple(test_params)

    def enter(cls: T) -> T:
        known = _METHODS.get(name)
        if known is not None and _full_name(known.cls) != _full_name(cls):
            raise ValueError(f"Method {name!r} is registered twice: {known.cls} and {cls}.")
        texts = (cost, oracle, avoid, misprints)
        info = MethodInfo(name, cls, kind, family, tasks, reference, params, *texts, papers or {})
        _METHODS[name] = info
        cls._method = info  # type: ignore[attr-defined]
        return cls

    return enter


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def all_methods(kind: str | None = None, *, task: str | None = None) -> list[MethodInfo]:
    """All registered methods, by family and name; of one kind, or for one kind of target (``task``)."""
    from zeronorm._index import METHODS

    for module in dict.fromkeys(METHODS.values()):
        importlib.import_module(module)
    outside = _methods_of_other_packages()
    methods = [m for m in _METHODS.values() if m.cls.__module__.startswith("zeronorm.") or m.name in outside]
    wanted = (m for m in methods if kind in (None, m.kind) and task in (None, *m.tasks))
    return sorted(wanted, key=lambda m: (m.kind, m.family, m.name))


def methods_with(parameter: str) -> list[MethodInfo]:
    """The selectors whose constructor has a parameter of this name."""
    return [
        info
        for info in all_methods()
        if info.kind in ("selector", "meta") and parameter in inspect.signature(info.cls).parameters
    ]


def names_in_sources() -> list[str]:
    """Names of the methods of this package, without the time that importing them takes."""
    from zeronorm._index import METHODS

    return sorted(METHODS)


@cache
def _methods_of_other_packages() -> frozenset[str]:
    """Names of the methods that other installed packages add."""
    found: set[str] = set()
    use_entry_points(ENTRY_POINTS, "method", lambda point: found.update(_announced(point.load())))
    return frozenset(found)


@cache
def load_extensions() -> None:
    """Import, once, the modules that installed packages name in the group ``zeronorm.extensions``.

    Functions that look up a chart, a metric, a file format, a backend or a loss by name call this first.
    """
    use_entry_points(EXTENSIONS, "extension", lambda point: point.load())


def use_entry_points(group: str, kind: str, use: Callable[[metadata.EntryPoint], Any]) -> None:
    """Call ``use`` with each entry point of a group; one that cannot be loaded gives a warning and is left out."""
    for point in metadata.entry_points(group=group):
        try:
            use(point)
        except Exception as error:  # an error in another package must not stop this one
            package = point.dist.name if point.dist is not None else point.value
            warnings.warn(
                f"The package {package!r} adds the {kind} {point.name!r} to zeronorm, but it cannot be loaded "
                f"({type(error).__name__}: {error}). Update or remove that package.",
                RuntimeWarning,
                stacklevel=4,
            )


def _announced(found: Any) -> set[str]:
    """Names of the registered methods in the object of an entry point: a class, or a module of classes."""
    if inspect.ismodule(found):
        names = {m.name for m in _METHODS.values() if m.cls.__module__ == found.__name__}
    else:
        names = {m.name for m in _METHODS.values() if m.cls is found}
    if not names:
        raise ValueError(f"{found!r} is not a class decorated with zeronorm.registry.register")
    return names


def get_method(name: str) -> MethodInfo:
    """The method registered under ``name``; the error lists close names."""
    import difflib

    own = _METHODS.get(name)
    if own is not None and own.cls.__module__.startswith("zeronorm."):
        return own  # without importing all the others
    known = {m.name: m for m in all_methods()}
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=3)
    hint = f"Did you mean {', '.join(close)}?" if close else "`zeronorm methods` lists them."
    raise ValueError(f"There is no method named {name!r}. {hint}")


def parameters_of(cls: type) -> list[dict[str, str]]:
    """Name, type, default and meaning of each parameter, from the signature and the docstring of a class."""
    texts = _documented_parameters(inspect.getdoc(cls) or "")
    signature = list(inspect.signature(cls).parameters.values())
    return [
        {
            "name": parameter.name,
            "type": texts.get(parameter.name, ("", ""))[0].partition(", default=")[0],
            "default": "required" if parameter.default is parameter.empty else repr(parameter.default),
            "text": texts.get(parameter.name, ("", ""))[1],
        }
        for parameter in signature
    ]


def _documented_parameters(doc: str) -> dict[str, tuple[str, str]]:
    """Type and text of each parameter in the section "Parameters" of a docstring."""
    _, _, section = doc.partition("Parameters\n----------\n")
    found: dict[str, tuple[str, str]] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line.startswith("---"):  # the heading of the next section is the line before
            for name in names:
                found.pop(name, None)
            break
        head, _, kind = line.partition(" :")
        if line and not line[0].isspace():
            names = [name.strip().lstrip("*") for name in head.split(",")]
            found |= dict.fromkeys(names, (kind.strip(), ""))
        elif line.strip():
            found |= {name: (found[name][0], f"{found[name][1]} {line.strip()}".strip()) for name in names}
    return found


# -- generation of the index --------------------------------------------------------------------------

# Public names that are not registered classes.
EXTRA_EXPORTS = {
    "zeronorm": {
        "evaluate": "zeronorm.evaluation._protocol",
        "learning_curve": "zeronorm.evaluation.learning._curve",
        "substitutes": "zeronorm.evaluation.stand_ins._substitutes",
        "SelectionPath": "zeronorm.selection._path",
        "as_design": "zeronorm.design",
        "optimality_gap": "zeronorm.engines.certificates._gap",
        "Cohort": "zeronorm.workflow._cohort",
        "Result": "zeronorm.workflow._result",
        "apply": "zeronorm.workflow._run",
        "compare": "zeronorm.workflow._run",
        "select": "zeronorm.workflow._run",
        "test_panel": "zeronorm.workflow._run",
    }
}
PACKAGE_OF_KIND = {
    "selector": "zeronorm",
    "meta": "zeronorm",
    "model": "zeronorm.models",
    "transformer": "zeronorm.transformers",
}


def _registered_classes(source: str) -> list[tuple[str, str, str]]:
    """(class name, name of the method, kind) of the registered classes in a source text."""
    found = []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "register":
                kinds = [k.value for k in call.keywords if k.arg == "kind"]
                kind = ast.literal_eval(kinds[0]) if kinds else "selector"
                found.append((node.name, ast.literal_eval(call.args[0]), kind))
    return found


def scan_sources(package: Path) -> dict[str, list[str]]:
    """Import lines of the stub of each package with lazy names, from the sources, without importing them."""
    lines: dict[str, list[str]] = {package_name: [] for package_name in sorted(set(PACKAGE_OF_KIND.values()))}
    for folder in ("selectors", "models", "transformers"):
        for file in sorted((package / folder).rglob("*.py")):
            module = ".".join(("zeronorm", *file.relative_to(package).with_suffix("").parts))
            for cls, method, kind in _registered_classes(file.read_text(encoding="utf-8")):
                lines[PACKAGE_OF_KIND[kind]].append(f"from {module} import {cls} as {cls}  # {method}")
    for package_name, names in EXTRA_EXPORTS.items():
        for name, module in names.items():
            relative = Path(*module.split(".")[1:])
            if (package / relative).with_suffix(".py").exists() or (package / relative).is_dir():
                lines[package_name].append(f"from {module} import {name} as {name}")
    return lines


def render_stub(package_name: str, imports: list[str]) -> str:
    """Text of the ``.pyi`` of a package with lazy names."""
    lines = sorted(imports, key=lambda line: (line.split()[1], line.split()[3]))
    if package_name == "zeronorm":
        lines += ["", "__version__: str"]
    lines += ["", "__all__: list[str]", ""]
    return "\n".join(lines)


def generated_files(package: Path) -> dict[Path, str]:
    """All generated files with their texts."""
    return {
        package.joinpath(*package_name.split(".")[1:], "__init__.pyi"): render_stub(package_name, imports)
        for package_name, imports in scan_sources(package).items()
    }


def write_index() -> None:
    """Rewrite the generated files that are stale."""
    package = Path(__file__).resolve().parent
    for file, text in generated_files(package).items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_index()
