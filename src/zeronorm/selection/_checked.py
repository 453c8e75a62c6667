"""Estimators whose parameters are checked and documented from the vocabulary."""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Mapping
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from zeronorm.selection._kinds import BOOLEAN, LARGEST, NONE, Kind, choice, is_number, parameter_error
from zeronorm.selection._parameters import ATTRIBUTES, VOCABULARY

_WIDTH = 96
_SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}$", re.MULTILINE)


class CheckedParameters:
    """Base of all estimators: ``fit`` calls ``_validate_params`` before anything else.

    A class declares only the parameters that differ from the vocabulary, in ``_parameter_exceptions`` with their kind
    and the reason. ``_check_parameters`` checks conditions on several parameters together.
    """

    _parameter_exceptions: ClassVar[Mapping[str, tuple[Kind, str]]] = {}
    _common_attributes: ClassVar[Mapping[str, tuple[str, str]]] = {
        name: ATTRIBUTES[name] for name in ("n_features_in_", "feature_names_in_")
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__ and constructor_parameters(cls):
            cls.__doc__ = _completed(cls)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The names as scikit-learn finds them, kept because it inspects the signature in every call."""
        own_class: Any = cls
        return list(_names_of_parameters(own_class))

    def _validate_params(self) -> None:
        """Raise an error unless every parameter has an accepted value."""
        cls: Any = type(self)
        defaults = _defaults_of(cls)
        for name, kind in kinds_of(cls).items():
            value = getattr(self, name)
            # A default is always accepted, and the tests check that.
            if value is not defaults[name] and not kind.accepts(value):
                is_huge = is_number(value) and bool(LARGEST < abs(value) < math.inf)
                hint = f" (at most {LARGEST:g})" * is_huge + _renamed_value(name, value, kind)
                raise parameter_error(self, name, kind.must_be + hint)
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Raise an error where parameters contradict each other; subclasses override it."""


def _renamed_value(name: str, value: Any, kind: Kind) -> str:
    """A note for a former name of a value whose present name the parameter accepts, otherwise empty."""
    if not isinstance(value, str) or name not in VOCABULARY:
        return ""
    present = VOCABULARY[name].renamed.get(value)
    return f" ({value!r} is now {present!r})" if present is not None and kind.accepts(present) else ""


@cache
def _names_of_parameters(cls: Any) -> tuple[str, ...]:
    return tuple(super(CheckedParameters, cls)._get_param_names())


@cache
def _defaults_of(cls: type) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in constructor_parameters(cls).items()}


@cache
def kinds_of(cls: type) -> dict[str, Kind]:
    """The kind of each constructor parameter, without those that accept anything."""
    try:
        hints = get_type_hints(cls.__init__)  # type: ignore[misc]
    except NameError:  # names that only type checkers import
        hints = {}
    found = {}
    for name, parameter in constructor_parameters(cls).items():
        kind = _kind_of(cls, name, hints.get(name, Any), parameter.default)
        if kind is not None:
            found[name] = kind
    return found


def constructor_parameters(cls: type) -> dict[str, inspect.Parameter]:
    """The named parameters of the constructor, in order."""
    named = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    return {p.name: p for p in named if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _kind_of(cls: type, name: str, hint: Any, default: Any) -> Kind | None:
    """The kind from the vocabulary, with None and the strings that the annotation adds."""
    exceptions: Mapping[str, tuple[Kind, str]] = getattr(cls, "_parameter_exceptions", {})
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    literals = [value for option in options if get_origin(option) is Literal for value in get_args(option)]
    others = [option for option in options if get_origin(option) is not Literal and option is not NoneType]
    kinds = [choice(*literals)] if literals else []
    if name in exceptions:
        kinds.insert(0, exceptions[name][0])
    elif others and name in VOCABULARY:
        number = VOCABULARY[name].kind
        kinds = kinds if number is None else [number, *kinds]
    elif others == [bool]:
        kinds.insert(0, BOOLEAN)
    elif others:
        return None
    if not kinds:
        return None
    declared = reduce(or_, kinds)
    return NONE | declared if NoneType in options or default is None else declared


# -- Documentation ----------------------------------------------------------------------------------


def _completed(cls: type) -> str:
    """The docstring with all parameters and the common fitted attributes, in numpydoc form."""
    text = inspect.cleandoc(cls.__doc__ or "")
    sections = _sections(text)
    own = _entries(sections.get("Parameters", ""))
    kinds = kinds_of(cls)
    written = [
        _parameter_entry(name, parameter.default, kinds.get(name), own.get(name, ("", ""))[1])
        for name, parameter in constructor_parameters(cls).items()
    ]
    sections["Parameters"] = "\n".join(written)
    attributes = _entries(sections.get("Attributes", ""))
    common: Mapping[str, tuple[str, str]] = cls._common_attributes  # type: ignore[attr-defined]
    for name, (type_text, meaning) in common.items():
        attributes.setdefault(name, (type_text, meaning))
    sections["Attributes"] = "\n".join(
        f"{name} : {head}\n{_indented(body)}" if head else f"{name}\n{_indented(body)}"
        for name, (head, body) in attributes.items()
    )
    order = ["Parameters", "Attributes", *(s for s in sections if s not in ("", "Parameters", "Attributes"))]
    parts = [sections[""]] + [
        f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in order if sections[title]
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _sections(text: str) -> dict[str, str]:
    """The text before the first heading under "", then each section under its heading."""
    pieces = _SECTION.split(text)
    found = {"": pieces[0]}
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        found[title] = body.strip("\n")
    return found


def _entries(section: str) -> dict[str, tuple[str, str]]:
    """Type and description by name; "a, b : type" gives both names the same."""
    found: dict[str, tuple[str, str]] = {}
    for block in re.split(r"\n(?=\S)", section):
        if not block.strip():
            continue
        first, _, rest = block.partition("\n")
        names, _, head = first.partition(" : ")
        for name in names.split(", "):
            found[name.strip()] = (head.strip(), textwrap.dedent(rest).strip())
    return found


def _parameter_entry(name: str, default: Any, kind: Kind | None, own: str) -> str:
    type_text = kind.type_text if kind is not None else "object"
    head = f"{name} : {type_text}" + ("" if default is inspect.Parameter.empty else f", default={default!r}")
    meaning = VOCABULARY[name].meaning if name in VOCABULARY else ""
    body = "\n".join(part for part in ("\n".join(textwrap.wrap(meaning, _WIDTH)), own) if part)
    return f"{head}\n{_indented(body)}" if body else head


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")
