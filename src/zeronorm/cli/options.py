"""Options of the commands: those of a run, from their declaration, and a few that only commands have."""

from __future__ import annotations

import ast
import inspect
import shlex
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from zeronorm._messages import Mention
from zeronorm.workflow._kinds import Option, Options, defaults_of, options_of, renamed
from zeronorm.workflow._options import (
    DATA,
    ApplyOptions,
    CompareOptions,
    PanelOptions,
    RunOptions,
    SelectOptions,
)

# -- Completion in the shell; fast, because no large package is imported for it --


def method_names(incomplete: str) -> list[str]:
    """Names of methods that start with ``incomplete``, including auto."""
    from zeronorm.registry import names_in_sources

    return [name for name in ["auto", *names_in_sources()] if name.startswith(incomplete)]


def method_lists(incomplete: str) -> list[str]:
    """The list of methods that the user has begun, completed with each method that may come next."""
    before, comma, last = incomplete.rpartition(",")
    names = [name for name in method_names(last) if name not in ("auto", *before.split(","))]
    groups = [] if comma else [name for name in ("all-fast",) if name.startswith(last)]
    return [*groups, *(f"{before}{comma}{name}" for name in names)]


def dataset_names(incomplete: str) -> list[str]:
    """Names of data sets that start with ``incomplete``."""
    from zeronorm.datasets._catalogue import known_names

    return [name for name in known_names() if name.startswith(incomplete)]


def examples(*commands: str) -> str:
    """The examples at the end of a help page, one command per line."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


# -- Options that several commands have ---------------------------------------------------------------

COMPLETIONS = {"method": method_names, "methods": method_lists}
TYPES: dict[str, Any] = {
    "text": str,
    "path": Path,
    "switch": bool,
    "number": int,
    "decimal": float,
    "count": str,
    "names": list[str],
    "size": str,
    "parameters": list[str],
}


def declared(record: type[Options], name: str) -> Any:
    """The annotated type of an option for the parser, with its flags and its help text."""
    found = options_of(record)[name]
    return _annotated(name, found, defaults_of(record)[name])


def _annotated(name: str, found: Option, default: Any) -> Any:
    kind = found.kind
    type_ = _choices(name, found) if kind.text == "choice" else TYPES[kind.text]
    is_number = kind.text == "number"
    about = typer.Option(
        *found.flags_of(name),
        help=found.help,
        metavar="N" if is_number else found.metavar,
        min=kind.least if is_number else None,
        autocompletion=COMPLETIONS.get(name),
        parser=path if kind.text == "path" else None,
    )
    return Annotated[type_ if default not in (None, ()) else type_ | None, about]


def path(text: str | Path) -> Path:
    """The path that an option names; an empty one, often an unset variable of a script, would be this folder."""
    if not str(text).strip():
        raise typer.BadParameter("it is empty. Name a file or folder; a dot is this folder.")
    return Path(text)


def _choices(name: str, found: Option) -> Any:
    return StrEnum(name, {value: value.replace("_", "-") for value in found.kind.values})


def former_values() -> dict[str, str]:
    """What the parser says about former values of options, each with a message that has the present name."""
    return {
        f"{text!r} is not one of": f"{renamed(text, present)}; use one of"
        for record in (SelectOptions, CompareOptions)
        for found in options_of(record).values()
        for former, present in found.kind.former.items()
        for text in (former, former.replace("_", "-"))
    }


def value_of(found: Option, given: Any) -> Any:
    """The value for the Python function, from the value that the parser read."""
    match found.kind.text:
        case "choice":
            return given and given.name
        case "names":
            return tuple(given or ())
        case "size":
            return n_bytes(given)
        case "parameters":
            return parameters(given)
        case "count":
            return int(given) if given.isdecimal() else given
        case "number" if found.kind.least < 0:  # 0 on the command line is None in Python
            return given or None
    return given


def takes(
    record: type[Options], names: Iterable[str], **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator that replaces the parameter ``options`` of a command with the named options of a record.

    ``defaults`` replace declared defaults.
    """
    options = {name: found for name, found in options_of(record).items() if name in set(names)}
    values = {**defaults_of(record), **defaults}

    def add(function: Callable[..., None]) -> Callable[..., None]:
        made = [_parameter(name, options[name], values[name]) for name in names]
        shown: list[inspect.Parameter] = []
        for own in inspect.signature(function, eval_str=True).parameters.values():
            shown += made if own.name == "options" else [own]

        def command(**given: Any) -> None:
            read = {name: value_of(found, given.pop(name)) for name, found in options.items()}
            function(options=read, **given)

        order = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in shown]
        command.__signature__ = inspect.Signature(order)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in shown}
        command.__doc__, command.__name__ = function.__doc__, function.__name__
        return command

    return add


def _parameter(name: str, found: Option, default: Any) -> inspect.Parameter:
    annotation = _annotated(name, found, default)
    if found.kind.text == "choice" and default is not None:
        default = default.replace("_", "-")
    elif found.kind.text == "number" and found.kind.least < 0:
        default = default or 0
    elif found.kind.text == "count":
        default = str(default)
    elif found.kind.text == "names":
        default = None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


Data = Annotated[str, typer.Argument(metavar=DATA.metavar, help=DATA.help, show_default=False)]
Out = declared(RunOptions, "out")
Seed = declared(RunOptions, "random_state")
Jobs = declared(RunOptions, "n_jobs")
DaskAddress = declared(RunOptions, "dask")
Force = declared(RunOptions, "force")
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


# -- Values and messages ------------------------------------------------------------------------------

FLAGS = {
    name: found.flags_of(name)[0]
    for record in (ApplyOptions, PanelOptions, SelectOptions, CompareOptions)
    for name, found in options_of(record).items()
}


def in_flags(mention: Mention) -> str:
    """The option that a message mentions, as a flag of the command line."""
    flag = FLAGS[mention.name]
    if not mention.value:
        return flag
    if mention.value == "True":
        verbs = {"set": "pass ", "Set": "Pass "}
        return verbs.get(mention.form, "") + flag
    verb = f"{mention.form} ".lstrip()
    if mention.name == "params":
        pairs = ast.literal_eval(mention.value).items()
        return verb + " ".join(f"{flag} {shlex.quote(f'{key}={value}')}" for key, value in pairs)
    return f"{verb}{flag} {shlex.quote(mention.text)}"


def n_bytes(text: str | None) -> int | None:
    """A size such as 512M or 1.5G in bytes."""
    if text is None:
        return None
    number, unit = text.strip().upper().removesuffix("B").removesuffix("I"), 1
    if number and number[-1] in "KMGT":
        number, unit = number[:-1], 1024 ** ("KMGT".index(number[-1]) + 1)
    try:
        size = int(float(number) * unit)
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise ValueError(f"--memory-budget takes a size such as 512M or 2G. Got {text!r} instead.")
    return size


def parameters(items: list[str] | None) -> dict[str, Any]:
    """The values of --param NAME=VALUE, by name: numbers, True, False, None, or text."""
    parsed: dict[str, Any] = {}
    for item in items or ():
        key, sign, text = item.partition("=")
        if not sign or not key:
            raise ValueError(f"--param takes NAME=VALUE, such as C=10. Got {item!r} instead.")
        try:
            parsed[key] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            parsed[key] = text
        except (RecursionError, MemoryError) as error:  # what Python's parser answers to deep nesting
            raise ValueError(
                f"--param takes NAME=VALUE, such as C=10. The value of {key!r} is nested too deeply to be read."
            ) from error
    return parsed
