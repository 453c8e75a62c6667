"""The list of methods: it feeds the command line, the method cards, the benchmarks and the contract tests.

``@register`` adds a class when its module is imported. So that ``import zeronorm`` stays light, public
names resolve through a generated index (``zeronorm/_index.py`` and the ``.pyi`` files); after adding a
method run ``make index``. A test fails when the index is stale.

A package outside adds methods by decorating its classes with ``@register`` and naming them, or the modules
they are in, as entry points of the group ``zeronorm.selectors``. Modules that enter something else (a chart, a
metric, a file format, a backend, a loss) are named in the group ``zeronorm.extensions``, functions that add a command
to a ``typer.Typer`` in the group ``zeronorm.commands``.
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
    """What the registry knows about one method.

    ``cost`` is in the number of samples n and of features p, ``oracle`` what the tests compare the method with,
    ``avoid`` when not to use it, ``misprints`` what its papers print wrongly.
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
) -> Callable[[T], T]:
    """Class decorator that enters a method under ``name``; `MethodInfo` says what the other words mean."""
    if kind not in KINDS:
        raise ValueError(f"The 'kind' of method {name!r} must be one of {KINDS}. Got {kind!r} instead.")
    params = (test_params,) if isinstance(test_params, Mapping) else tuple(test_params)

    def enter(cls: T) -> T:
        known = _METHODS.get(name)
        if known is not None and _full_name(known.cls) != _full_name(cls):
            raise ValueError(f"Method {name!r} is registered twice: {known.cls} and {cls}.")
        info = MethodInfo(name, cls, kind, family, tasks, reference, params, cost, oracle, avoid, misprints)
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


def names_in_sources() -> list[str]:
    """Names of the methods of this package, without the time that importing them takes."""
    from zeronorm._index import METHODS

    return sorted(METHODS)


@cache
def _methods_of_other_packages() -> frozenset[str]:
    """Names of the methods that installed packages announce."""
    found: set[str] = set()
    use_entry_points(ENTRY_POINTS, "method", lambda point: found.update(_announced(point.load())))
    return frozenset(found)


@cache
def load_extensions() -> None:
    """Import, once, the modules that installed packages name in the group ``zeronorm.extensions``.

    Whoever looks up a chart, a metric, a file format, a backend or a loss by name calls this first.
    """
    use_entry_points(EXTENSIONS, "extension", lambda point: point.load())


def use_entry_points(group: str, kind: str, use: Callable[[metadata.EntryPoint], Any]) -> None:
    """Hand each entry point of a group to ``use``; a package that is broken only loses its own, with a warning."""
    for point in metadata.entry_points(group=group):
        try:
            use(point)
        except Exception as error:  # whatever another package does wrong must not stop this one
            package = point.dist.name if point.dist is not None else point.value
            warnings.warn(
                f"The package {package!r} adds the {kind} {point.name!r} to zeronorm, but it cannot be loaded "
                f"({type(error).__name__}: {error}). Update or remove that package.",
                RuntimeWarning,
                stacklevel=4,
            )


def _announced(found: Any) -> set[str]:
    """Names of the registered methods in what an entry point leads to: a class, or a module of classes."""
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
        return own  # without a look at all the others
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
        "evaluate": "zeronorm.evaluation.protocol",
        "SelectionPath": "zeronorm.selection.path",
        "as_design": "zeronorm.design",
        "Result": "zeronorm.workflow.result",
        "compare": "zeronorm.workflow.run",
        "select": "zeronorm.workflow.run",
    }
}
HOME_OF_KIND = {
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


def scan_sources(package: Path) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Public names by package, and the module of each method, read from the sources without importing them."""
    exports: dict[str, dict[str, str]] = {home: {} for home in sorted(set(HOME_OF_KIND.values()))}
    methods = {}
    for folder in ("selectors", "models", "transformers"):
        for file in sorted((package / folder).rglob("*.py")):
            module = ".".join(("zeronorm", *file.relative_to(package).with_suffix("").parts))
            for cls, method, kind in _registered_classes(file.read_text(encoding="utf-8")):
                exports[HOME_OF_KIND[kind]][cls] = module
                methods[method] = module
    for home, names in EXTRA_EXPORTS.items():
        for name, module in names.items():
            relative = Path(*module.split(".")[1:])
            if (package / relative).with_suffix(".py").exists() or (package / relative).is_dir():
                exports[home][name] = module
    sorted_exports = {home: dict(sorted(names.items())) for home, names in exports.items()}
    return sorted_exports, dict(sorted(methods.items(), key=lambda item: item[1]))


def render_index(exports: dict[str, dict[str, str]], methods: dict[str, str]) -> str:
    """Text of ``_index.py``."""
    lines = ['"""Where public names live. Generated by `make index`; do not edit."""', ""]
    lines += ["EXPORTS: dict[str, dict[str, str]] = {"]
    for home, names in exports.items():
        if not names:
            lines.append(f'    "{home}": {{}},')
            continue
        lines.append(f'    "{home}": {{')
        lines += [f'        "{name}": "{module}",' for name, module in names.items()]
        lines.append("    },")
    lines += ["}", ""]
    lines += ["METHODS: dict[str, str] = {"]
    lines += [f'    "{name}": "{module}",' for name, module in methods.items()]
    lines += ["}", ""]
    return "\n".join(lines)


def render_stub(home: str, names: dict[str, str]) -> str:
    """Text of the ``.pyi`` of a package with lazy names."""
    lines = [f"from {module} import {name} as {name}" for name, module in names.items()]
    lines.sort(key=lambda line: (line.split()[1], line.split()[3]))
    if home == "zeronorm":
        lines += ["", "__version__: str"]
    lines += ["", "__all__: list[str]", ""]
    return "\n".join(lines)


def generated_files(package: Path) -> dict[Path, str]:
    """All generated files with their texts."""
    exports, methods = scan_sources(package)
    files = {package / "_index.py": render_index(exports, methods)}
    for home, names in exports.items():
        folder = package.joinpath(*home.split(".")[1:])
        files[folder / "__init__.pyi"] = render_stub(home, names)
    return files


def write_index() -> None:
    """Rewrite the generated files."""
    package = Path(__file__).resolve().parent
    for file, text in generated_files(package).items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_index()
