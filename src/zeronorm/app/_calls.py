"""The command and the call in Python that do what a page does."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from zeronorm.app._fields import record_of
from zeronorm.result._provenance import call_text
from zeronorm.workflow._kinds import Option, defaults_of, options_of


def command_text(kind: str, data: str, options: Mapping[str, Any], *, with_model: bool = False) -> str:
    """The command for a terminal."""
    declared = options_of(record_of(kind))
    arguments = ["zeronorm", kind, data]
    for name, value in options.items():
        arguments += _flags(declared[name].flags_of(name)[0], declared[name], value)
    return shlex.join([*arguments, *(["--save-model"] if with_model else [])])


def _flags(flag: str, option: Option, value: Any) -> list[str]:
    match option.kind.text:
        case "switch":
            return [flag] if value else []
        case "names":
            return [part for name in value for part in (flag, str(name))]
        case "choice":
            return [flag, str(value).replace("_", "-")]
    return [flag, str(value)]


def python_text(kind: str, data: str, options: Mapping[str, Any], *, with_model: bool = False) -> str:
    """The call in Python."""
    arguments = {"data": data, **options, **({"save_model": True} if with_model else {})}
    call = call_text(kind, arguments, defaults_of(record_of(kind)))
    return f"import zeronorm\n\nresult = {call}\nprint(result)"
