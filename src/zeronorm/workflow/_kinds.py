"""Types of the options of a run: the values they accept, how these are checked, and the flags of the options.

No large package is imported, so that ``zeronorm --help`` is fast.
"""

from __future__ import annotations

import inspect
import math
import numbers
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
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
    accepts : the accepted values, for a docstring.
    text : how the command line reads the value: "text", "path", "switch", "number", "decimal", "count" (or auto),
        "choice", "names", "size" or "parameters".
    least : the smallest number.
    values : the texts to choose from.
    former : previous names of values, each with its present name.
    """

    accepts: str
    text: str = "text"
    least: int = 0
    values: tuple[str, ...] = ()
    former: Mapping[str, str] = field(default_factory=dict)

    def checked(self, name: str, value: Any) -> Any:
        """The checked value in the form that is used; ``OptionError`` for a value that is not accepted."""
        must_be = self._must_be(value)
        if must_be is not None:
            from zeronorm._types import written

            raise OptionError(f"must be {must_be}. Got {written(value)} instead.", name)
        return value

    def _must_be(self, value: Any) -> str | None:
        """A description of the accepted values if this one is not accepted, else None."""
        return None


class WholeNumber(OptionKind):
    """A whole number of at least ``least``, or None where ``accepts`` mentions it."""

    def _must_be(self, value: Any) -> str | None:
        is_right = _is_count(value, self.least) or (value is None and "None" in self.accepts)
        return None if is_right else f"a whole number of at least {self.least}"


class PositiveNumber(OptionKind):
    """A number above 0, or None where ``accepts`` mentions it."""

    def _must_be(self, value: Any) -> str | None:
        is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        is_right = (value is None and "None" in self.accepts) or (is_number and 0 < float(value) < math.inf)
        return None if is_right else "a number above 0"


class Sheet(OptionKind):
    """The name of a sheet, or its number as a text."""

    def checked(self, name: str, value: str | int | None) -> str | None:
        return None if value is None else str(value)


class Size(OptionKind):
    """A number of features, or None for "auto"."""

    def checked(self, name: str, value: Any) -> int | None:
        return None if value is None or value == "auto" else int(super().checked(name, value))

    def _must_be(self, value: Any) -> str | None:
        try:
            is_right = 1 <= int(value) == float(value)
        except (ValueError, TypeError):
            is_right = False
        return None if is_right else "a count of at least 1, or 'auto'"


class Permutations(OptionKind):
    """A count of at least 0, or "auto"."""

    def _must_be(self, value: Any) -> str | None:
        return None if value == "auto" or _is_count(value, 0) else "a count (0 for none) or 'auto'"


class OneOf(OptionKind):
    """One of several texts."""

    def checked(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value in self.former:
            raise OptionError(f"must be one of {self.values}. {renamed(value, self.former[value])}.", name)
        return super().checked(name, value)

    def _must_be(self, value: Any) -> str | None:
        is_right = (isinstance(value, str) and value in self.values) or (
            value is None and "None" in self.accepts
        )
        return None if is_right else f"one of {self.values}"


class Predictor(OneOf):
    """One of several texts, or an estimator of the scikit-learn kind."""

    def _must_be(self, value: Any) -> str | None:
        methods = [hasattr(value, part) for part in ("fit", "predict", "get_params")]
        must_be = super()._must_be(value)
        if must_be is None or (all(methods) and not isinstance(value, type)):
            return None
        return f"{must_be} or an estimator with fit and predict"


class Names(OptionKind):
    """One name or several, as a tuple."""

    def checked(self, name: str, value: str | Sequence[str] | None) -> tuple[str, ...]:
        if value is None:
            return ()
        return (value,) if isinstance(value, str) else tuple(str(each) for each in value)


class ListedNames(Names):
    """Names that may also be separated by commas."""

    def checked(self, name: str, value: str | Sequence[str] | None) -> tuple[str, ...]:
        listed = (part.strip() for text in super().checked(name, value) for part in text.split(","))
        return tuple(dict.fromkeys(part for part in listed if part))


class Parameters(OptionKind):
    """Parameters of methods, as a dict."""

    def checked(self, name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
        return dict(value or {})


def renamed(former: str, present: str) -> str:
    """What a message says about a value that has another name now."""
    return f"{former!r} is now called {present!r}"


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least


# -- Options ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Option:
    """One option of a run.

    Parameters
    ----------
    kind : the type of its values.
    meaning : its description in Python.
    help : its description on the command line; empty for an option that only Python has.
    usage : its flags and the placeholder of its value on a help page; without a long flag, ``--name`` comes first.
    """

    kind: OptionKind
    meaning: str
    help: str = ""
    usage: str = ""

    def flags_of(self, name: str) -> list[str]:
        """All flags; the first is the one that messages mention."""
        flags = [word for word in self.usage.split() if word.startswith("-")]
        has_long = any(flag.startswith("--") for flag in flags)
        return flags if has_long else [f"--{name.replace('_', '-')}", *flags]

    @property
    def metavar(self) -> str | None:
        """The placeholder of the value on a help page."""
        return next((word for word in self.usage.split() if not word.startswith("-")), None)


def option(default: Any, kind: OptionKind, meaning: str, help: str = "", usage: str = "") -> Any:
    """Declare an option as a field of a record of options."""
    return field(default=default, metadata={"option": Option(kind, meaning, help, usage)})


def shared(record: type[Options], name: str, **changes: Any) -> Any:
    """Declare the option of another record as a field of this one, with changes of its texts."""
    declared = replace(options_of(record)[name], **changes)
    return field(default=defaults_of(record)[name], metadata={"option": declared})


@dataclass(frozen=True, kw_only=True)
class Options:
    """A record of options, which are checked when it is created."""

    def __post_init__(self) -> None:
        for name, declared in options_of(type(self)).items():
            object.__setattr__(self, name, declared.kind.checked(name, getattr(self, name)))


def options_of(record: type[Options]) -> dict[str, Option]:
    """The declared options of a record, by name."""
    return {each.name: each.metadata["option"] for each in fields(record)}


def defaults_of(record: type[Options]) -> dict[str, Any]:
    """The declared defaults of a record, by name."""
    return {each.name: each.default for each in fields(record)}


def documents(record: type[Options], data: Option, **others: Option) -> Callable[[F], F]:
    """Decorator: describe ``data`` and the options of a record in the docstring of a function, as its parameters.

    ``others`` are further parameters that are no options.
    """

    def add(function: F) -> F:
        declared = {"data": data, **others, **options_of(record)}
        lines = []
        for name, parameter in inspect.signature(function).parameters.items():
            default = "" if parameter.default is parameter.empty else f", default={parameter.default!r}"
            lines.append(f"{name} : {declared[name].kind.accepts}{default}")
            lines.append(textwrap.indent(textwrap.fill(declared[name].meaning, DOC_WIDTH), "    "))
        listing = textwrap.indent("\n".join(lines), "    ")
        function.__doc__ = (function.__doc__ or "").replace("    {parameters}", listing)
        return function

    return add
