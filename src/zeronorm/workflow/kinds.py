"""What an option of a run is: the values it takes, how they are checked, and what it is called.

Nothing heavy is imported, so that ``zeronorm --help`` stays quick.
"""

from __future__ import annotations

import inspect
import numbers
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from zeronorm._messages import OptionError

DOC_WIDTH = 106
F = TypeVar("F", bound=Callable[..., Any])


# -- Values -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OptionKind:
    """Values that are used as they are, or checked where they are used: names, arrays, tables.

    Parameters
    ----------
    text : what the command line reads: "text", "path", "switch", "number", "choice", "names", "size" or "parameters".
    least : the smallest number.
    values : the texts to choose from.
    """

    text: str = "text"
    least: int = 0
    values: tuple[str, ...] = ()

    def checked(self, name: str, value: Any) -> Any:
        """The value as it is used, or an ``OptionError``."""
        return value


@dataclass(frozen=True)
class WholeNumber(OptionKind):
    """Whole numbers from ``least`` on, and None where it ``may_be_none``."""

    text: str = "number"
    may_be_none: bool = False

    def checked(self, name: str, value: Any) -> Any:
        if not (value is None and self.may_be_none) and not _is_count(value, self.least):
            raise OptionError(
                f"must be a whole number of at least {self.least}. Got {_written(value)}.", name
            )
        return value


class Size(OptionKind):
    """A number of features, or None for "auto"."""

    def checked(self, name: str, value: Any) -> int | None:
        if value is None or value == "auto":
            return None
        try:
            count = int(value)
        except (ValueError, TypeError):
            count = 0
        if count < 1 or count != float(value):
            raise OptionError(
                f"must be a count of at least 1, or 'auto'. Got {_written(value)} instead.", name
            )
        return count


class Permutations(OptionKind):
    """A count from 0, or "auto"."""

    def checked(self, name: str, value: Any) -> Any:
        if value != "auto" and not _is_count(value, 0):
            raise OptionError(f"must be a count (0 for none) or 'auto'. Got {_written(value)} instead.", name)
        return value


class OneOf(OptionKind):
    """One of several texts."""

    def checked(self, name: str, value: Any) -> Any:
        if value not in self.values:
            raise OptionError(f"must be one of {self.values}. Got {_written(value)} instead.", name)
        return value


class Predictor(OptionKind):
    """One of several texts, or an estimator of the scikit-learn kind."""

    def checked(self, name: str, value: Any) -> Any:
        is_estimator = not isinstance(value, type) and all(
            hasattr(value, part) for part in ("fit", "predict", "get_params")
        )
        if not is_estimator and (not isinstance(value, str) or value not in self.values):
            raise OptionError(
                f"must be one of {self.values} or an estimator with fit and predict. Got {_written(value)} instead.",
                name,
            )
        return value


class Names(OptionKind):
    """One name or several, as a tuple."""

    def checked(self, name: str, value: str | Sequence[str] | None) -> tuple[str, ...]:
        if value is None:
            return ()
        return (value,) if isinstance(value, str) else tuple(str(each) for each in value)


class Parameters(OptionKind):
    """Parameters of methods, as a dict."""

    def checked(self, name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
        return dict(value or {})


PATH, SWITCH = OptionKind("path"), OptionKind("switch")


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least


def _written(value: Any) -> str:
    from zeronorm._types import written

    return written(value)


# -- Options ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """One option of a run.

    Parameters
    ----------
    kind : which values it takes.
    accepts : these values, for a docstring.
    meaning : what it does, for Python.
    help : the same for the command line; empty for what only Python has.
    flags : its flags; without a long one, ``--name`` comes first.
    metavar : what stands for the value on a help page.
    default_shown : what a help page tells of the default, where that is None.
    """

    kind: OptionKind
    accepts: str
    meaning: str
    help: str = ""
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    default_shown: str | None = None

    def flags_of(self, name: str) -> tuple[str, ...]:
        """All flags, the one that messages mention first."""
        has_long = any(flag.startswith("--") for flag in self.flags)
        return self.flags if has_long else (f"--{name.replace('_', '-')}", *self.flags)


def option(default: Any, kind: OptionKind, accepts: str, meaning: str, help: str = "", **shown: Any) -> Any:
    """A field of a record of options."""
    return field(default=default, metadata={"option": Option(kind, accepts, meaning, help, **shown)})


@dataclass(frozen=True, kw_only=True)
class Options:
    """A record of options, which are checked when it is made."""

    def __post_init__(self) -> None:
        for name, declared in options_of(type(self)).items():
            object.__setattr__(self, name, declared.kind.checked(name, getattr(self, name)))


def options_of(record: type[Options]) -> dict[str, Option]:
    """The declared options of a record, by name."""
    return {each.name: each.metadata["option"] for each in fields(record)}


def defaults_of(record: type[Options]) -> dict[str, Any]:
    """The declared defaults of a record, by name."""
    return {each.name: each.default for each in fields(record)}


def documents(record: type[Options], data: Option) -> Callable[[F], F]:
    """Decorator: describe ``data`` and the options of a record in the docstring of a function, as its parameters."""

    def add(function: F) -> F:
        declared = {"data": data, **options_of(record)}
        lines = []
        for name, parameter in inspect.signature(function).parameters.items():
            default = "" if parameter.default is parameter.empty else f", default={parameter.default!r}"
            lines.append(f"{name} : {declared[name].accepts}{default}")
            lines.append(textwrap.indent(textwrap.fill(declared[name].meaning, DOC_WIDTH), "    "))
        listing = textwrap.indent("\n".join(lines), "    ")
        function.__doc__ = (function.__doc__ or "").replace("    {parameters}", listing)
        return function

    return add
