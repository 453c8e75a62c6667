"""Errors for targets and parameters that a method cannot take."""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm.selection._kinds import parameter_error
from zeronorm.selection.target import TimeToEvent

RANKING = "ranking"  # the value of a ``loss`` parameter


def require_real_target(selector: Any) -> None:
    """Raise an error for a loss that needs a real target where the target is classes."""
    if selector._target_type().has_classes:
        raise parameter_error(selector, "loss", "a loss of classes; the one given needs task='regression'")


def require_for_survival(selector: Any, **accepted: Any) -> None:
    """Raise an error for a parameter that has another value than the one that losses of times to an event allow."""
    is_ranking = getattr(selector, "loss", None) == RANKING
    if selector._target_type() is not TimeToEvent:
        if is_ranking:
            raise parameter_error(selector, "loss", "a loss of this task; 'ranking' needs task='survival'")
        return
    for name, value in accepted.items():
        if getattr(selector, name) != value and not (name == "loss" and is_ranking):
            raise parameter_error(selector, name, f"{value!r} with task='survival'")
    if not isinstance(getattr(selector, "C", 1.0), str) and np.isinf(getattr(selector, "C", 1.0)):
        raise parameter_error(selector, "C", "finite with task='survival'")


def require_labels(y: Any) -> None:
    """Raise an error that names the row of the first missing label."""
    y = np.asarray(y, dtype=object) if isinstance(y, (list, tuple)) and None in y else y
    if getattr(getattr(y, "dtype", None), "kind", "") != "O":
        return
    for row, label in enumerate(np.asarray(y).ravel()):
        if label is None or label != label:
            found = "None" if label is None else "NaN"
            raise ValueError(
                f"Input y contains {found}: first found in row {row}; drop samples without a label."
            )
