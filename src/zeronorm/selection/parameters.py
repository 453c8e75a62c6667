"""Checks of parameters that several sparsity methods have in common."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from zeronorm.selection.problem import Problem


def check_choice(selector: Any, parameter: str, choices: Sequence[Any]) -> None:
    """Raise unless the parameter is one of the choices."""
    value = getattr(selector, parameter)
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(
            f"The '{parameter}' parameter of {type(selector).__name__} must be one of {listed}. "
            f"Got {value!r} instead."
        )


def check_positive(selector: Any, *parameters: str) -> None:
    """Raise unless each parameter is a number greater than zero; infinity counts."""
    for parameter in parameters:
        value = getattr(selector, parameter)
        if not value > 0:
            raise ValueError(
                f"The '{parameter}' parameter of {type(selector).__name__} must be positive. "
                f"Got {value!r} instead."
            )


def warn_of_empty_answer(selector: Any, problem: Problem, remedy: str) -> None:
    """Say that the method selects nothing by itself; a selector always keeps at least one feature."""
    if problem.n_features_to_select is None and problem.always_keep.size == 0:
        warnings.warn(
            f"{type(selector).__name__} selects no feature by its own rule; the one that came closest is kept. "
            f"To change that, {remedy}, or ask for a number of features.",
            UserWarning,
            stacklevel=6,
        )
