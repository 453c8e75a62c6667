"""The command and the call in Python that do what a page does."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from zeronorm.app._fields import record_of
from zeronorm.result._provenance import call_text
from zeronorm.workflow._kinds import Option, defaults_of, options_of

# The arguments that stand without a flag, in their order.
POSITIONAL = {"apply": ("model", "data"), "test_panel": ("panel", "data")}
LIST_FILE = "list.txt"


def command_text(kind: str, arguments: Mapping[str, Any], *, with_model: bool = False) -> str:
    """The command for a terminal."""
    declared = options_of(record_of(kind))
    positional = POSITIONAL.get(kind, ("data",))
    command, before = ["zeronorm", kind.replace("_", "-")], ""
    for name in positional:
        value = arguments[name]
        if isinstance(value, (list, tuple)):  # a list of names is a file for the command
            before = f"printf '%s\\n' {shlex.join(map(str, value))} > {LIST_FILE}\n"
            value = LIST_FILE
        command.append(str(value))
    for name, value in arguments.items():
        if name not in positional:
            command += _flags(declared[name].flags_of(name)[0], declared[name], value)
    return before + shlex.join([*command, *(["--save-model"] if with_model else [])])


def _flags(flag: str, option: Option, value: Any) -> list[str]:
    match option.kind.text:
        case "switch":
            return [flag] if value else []
        case "names":
            return [part for name in value for part in (flag, str(name))]
        case "choice":
            return [flag, str(value).replace("_", "-")]
    return [flag, str(value)]


def python_text(kind: str, arguments: Mapping[str, Any], *, with_model: bool = False) -> str:
    """The call in Python."""
    given = {**arguments, **({"save_model": True} if with_model else {})}
    call = call_text(kind, given, defaults_of(record_of(kind)))
    return f"import zeronorm\n\nresult = {call}\nprint(result)"
