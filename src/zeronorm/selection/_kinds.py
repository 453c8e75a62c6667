"""Kinds of parameters: a check of one value, and the texts for errors and for the documentation."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer_names

from zeronorm._types import written

LARGEST = 1e100  # largest finite value of a parameter: its square and its cube must not overflow


@dataclass(frozen=True)
class Kind:
    """The values that a parameter accepts.

    Attributes
    ----------
    name : short name, such as "count".
    alternatives : the accepted values as text; they end the sentence "The 'x' parameter of C must be …".
    type_text : the type as the documentation shows it.
    accepts : whether a value is of this kind.
    """

    name: str
    alternatives: str | tuple[str, ...]
    type_text: str
    accepts: Callable[[Any], bool]

    @property
    def must_be(self) -> str:
        """The alternatives as one phrase."""
        texts = self._texts()
        return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"

    def _texts(self) -> tuple[str, ...]:
        return (self.alternatives,) if isinstance(self.alternatives, str) else self.alternatives

    def __or__(self, other: Kind) -> Kind:
        first, second = self.accepts, other.accepts
        return Kind(
            f"{self.name} or {other.name}",
            self._texts() + other._texts(),
            # The documentation names None last, as scikit-learn's does.
            f"{other.type_text} or None" if self.name == "None" else f"{self.type_text} or {other.type_text}",
            lambda value: first(value) or second(value),
        )


def parameter_error(owner: Any, parameter: str, must_be: str, got: Any = ...) -> ValueError:
    """The error for a parameter with a wrong value, always in the same sentence.

    Parameters
    ----------
    owner : the estimator, or its name.
    parameter : name of the parameter.
    must_be : what it must be, without a full stop.
    got : what was found, by default the value of the parameter; text is shown as it is.
    """
    name = owner if isinstance(owner, str) else type(owner).__name__
    if got is ...:
        found = written(getattr(owner, parameter))
    else:
        found = got if isinstance(got, str) else written(got)
    return ValueError(f"The '{parameter}' parameter of {name} must be {must_be}. Got {found} instead.")


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number; True and False are not."""
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def is_number(value: Any) -> bool:
    """Whether a value is a real number; True and False are not."""
    kind = type(value)
    return kind is float or kind is int or (isinstance(value, numbers.Real) and not isinstance(value, bool))


def is_list(value: Any) -> bool:
    """Whether a value is a list, a tuple or an array of one dimension."""
    return (isinstance(value, Sequence) and not isinstance(value, (str, bytes))) or (
        isinstance(value, np.ndarray) and value.ndim == 1
    )


def count(low: int = 1, high: int = 2**63 - 1, *, odd: bool = False) -> Kind:
    """A whole number that fits into 64 bits, because compiled loops use it."""
    what = "an odd whole number" if odd else "a whole number"
    return Kind(
        "count",
        f"{what} of at least {low}" + f" and at most {high}" * (high < 2**63 - 1),
        "int",
        lambda value: is_whole(value) and low <= value <= high and (not odd or value % 2 == 1),
    )


def number(
    *, above: float = -math.inf, least: float = -math.inf, below: float = math.inf, most: float = LARGEST
) -> Kind:
    """A number between limits."""
    limits = [
        f"greater than {above:g}" * (above > -math.inf),
        f"of at least {least:g}" * (least > -math.inf),
        f"less than {below:g}" * (below < math.inf),
        f"at most {most:g}" * (most < LARGEST),
    ]
    bounds = " and ".join(limit for limit in limits if limit)
    return Kind(
        "number",
        f"a finite number {bounds}" if most == LARGEST and below == math.inf else f"a number {bounds}",
        "float",
        lambda value: (
            is_number(value) and above < value < below and least <= value <= most and value >= -LARGEST
        ),
    )


INFINITE = Kind(
    "infinity", "infinity", "inf", lambda value: is_number(value) and math.isinf(value) and value > 0
)
POSITIVE = number(above=0)
NOT_NEGATIVE = number(least=0)
OPEN_FRACTION = number(above=0, below=1)
NONE = Kind("None", "None", "None", lambda value: value is None)
BOOLEAN = Kind("bool", ("True", "False"), "bool", lambda value: isinstance(value, (bool, np.bool_)))
VERBOSITY = Kind(
    "verbosity",
    ("True", "False", "a whole number of at least 0"),
    "bool or int",
    lambda value: _is_verbosity(value),
)
SEED = Kind(
    "seed",
    ("a whole number of at least 0", "a NumPy generator", "a NumPy RandomState"),
    "int, Generator or RandomState",
    lambda value: (
        (is_whole(value) and value >= 0)
        or isinstance(value, (np.random.Generator, np.random.RandomState, np.random.SeedSequence))
    ),
)
WORKERS = Kind(
    "workers",
    "a whole number other than 0 (-1 for all cores)",
    "int",
    lambda value: is_whole(value) and value != 0 and abs(value) < 2**31,
)
ESTIMATOR = Kind(
    "estimator",
    "an object with a fit method",
    "estimator",
    lambda value: hasattr(value, "fit") and not isinstance(value, type),
)
SIZE = Kind(
    "count or fraction",
    ("a whole number of at least 1", "a fraction greater than 0 and at most 1"),
    "int or float",
    lambda value: (
        (is_whole(value) and value >= 1) or (is_number(value) and not is_whole(value) and 0 < value <= 1)
    ),
)
STEP = Kind(
    "count or open fraction",
    ("a whole number of at least 1", "a fraction greater than 0 and less than 1"),
    "int or float",
    lambda value: (is_whole(value) and value >= 1) or (is_number(value) and 0 < value < 1),
)
COLUMNS = Kind("columns", "a list of columns (positions or names)", "list", is_list)
GROUPS = Kind(
    "groups",
    (
        "a list with one label per column",
        "a list of lists of columns",
        "a mapping from names to lists of columns",
    ),
    "list or dict",
    lambda value: len(value) > 0 if isinstance(value, Mapping) else is_list(value) and len(value) > 0,
)
SPLITTER = Kind(
    "splitter",
    ("a number of folds of at least 2", "a scikit-learn splitter", "a list of (training rows, test rows)"),
    "int, splitter or list",
    lambda value: (
        value >= 2
        if is_whole(value)
        else (hasattr(value, "split") and not isinstance(value, str))
        or (isinstance(value, Iterable) and not isinstance(value, str) and not _is_empty(value))
    ),
)
METRIC_NAMES: set[str] = set()  # filled where metrics are registered


def _is_scorer_name(value: Any) -> bool:
    return isinstance(value, str) and (value in METRIC_NAMES or value in get_scorer_names())


SCORER = Kind(
    "scorer",
    ("the name of a metric or of a scikit-learn scorer", "a Metric", "a function of (estimator, X, y)"),
    "str, Metric or callable",
    lambda value: callable(value) or _is_scorer_name(value) or hasattr(value, "greater_is_better"),
)
PATH = Kind("path", "a path", "str or path", lambda value: isinstance(value, (str, os.PathLike)))


def choice(*values: Any) -> Kind:
    """One of a few strings or whole numbers."""
    strings = [value for value in values if isinstance(value, str)]
    wholes = [value for value in values if not isinstance(value, str)]
    shown = [repr(value) for value in values]
    return Kind(
        "choice",
        tuple(shown),
        shown[0] if len(shown) == 1 else "{" + ", ".join(shown) + "}",
        lambda value: value in strings if isinstance(value, str) else is_whole(value) and value in wholes,
    )


def list_of(kind: Kind, length: int | None = None) -> Kind:
    """A list of values of one kind, of the given length or with at least one entry."""
    many = "one or more entries" if length is None else f"{length} entries"
    return Kind(
        f"list of {kind.name}",
        f"a list of {many}, each {kind.must_be}",
        f"list of {kind.type_text}",
        lambda value: (
            is_list(value)
            and (len(value) == length if length else len(value) > 0)
            and all(kind.accepts(entry) for entry in value)
        ),
    )


def _is_verbosity(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_)) or (is_whole(value) and value >= 0)


def _is_empty(value: Any) -> bool:
    return hasattr(value, "__len__") and len(value) == 0


def exceptions(**declared: tuple[Kind, str]) -> Mapping[str, tuple[Kind, str]]:
    """Parameters of one class that differ from the vocabulary, each with its kind and the reason."""
    return declared
