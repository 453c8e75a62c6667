"""How users name columns: groups of features and features that must stay."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.intp]


def column_index(column: Any, n_features: int, names: NDArray[Any] | None, parameter: str) -> int:
    """The index of a column given by name or position."""
    if isinstance(column, numbers.Integral) and not isinstance(column, bool):
        index = int(column)
        if not -n_features <= index < n_features:
            raise ValueError(
                f"The '{parameter}' parameter names column {index}, but X has {n_features} columns "
                f"(0 to {n_features - 1})."
            )
        return index % n_features
    if names is None:
        raise ValueError(
            f"The '{parameter}' parameter names column {column!r}, but X has no column names. "
            "Pass a DataFrame or use column positions."
        )
    found = np.flatnonzero(np.asarray(names, dtype=object) == column)
    if found.size != 1:
        problem = "is not a column of X" if found.size == 0 else f"stands {found.size} times in X"
        raise ValueError(f"The '{parameter}' parameter names column {column!r}, which {problem}.")
    return int(found[0])


def parse_always_keep(always_keep: Any, n_features: int, names: NDArray[Any] | None) -> IntArray:
    """Sorted indices of the forced features."""
    if always_keep is None:
        return np.empty(0, dtype=np.intp)
    if isinstance(always_keep, str) or not isinstance(always_keep, (Sequence, np.ndarray)):
        raise ValueError(
            "The 'always_keep' parameter must be None or a list of columns (positions or names). "
            f"Got {always_keep!r} instead."
        )
    columns = [column_index(c, n_features, names, "always_keep") for c in always_keep]
    return np.unique(np.asarray(columns, dtype=np.intp))


def parse_feature_groups(groups: Any, n_features: int, names: NDArray[Any] | None) -> IntArray | None:
    """A group code per feature, numbered by first appearance.

    Accepts one label per column, a mapping from group name to columns, or a list of lists of columns.
    Every column must belong to exactly one group.
    """
    if groups is None:
        return None
    members = _listed_members(groups)
    if members is None:
        labels = np.asarray(groups, dtype=object).ravel()
        if labels.size != n_features:
            raise ValueError(
                f"The 'feature_groups' parameter must give one label per column. Got {labels.size} labels "
                f"for {n_features} columns."
            )
        return _codes_by_appearance(labels.tolist())
    codes = np.full(n_features, -1, dtype=np.intp)
    for code, columns in enumerate(members):
        for column in columns:
            index = column_index(column, n_features, names, "feature_groups")
            if codes[index] >= 0:
                raise ValueError(f"The 'feature_groups' parameter puts column {column!r} into two groups.")
            codes[index] = code
    missing = np.flatnonzero(codes < 0)
    if missing.size:
        shown = [names[i] if names is not None else int(i) for i in missing[:5]]
        raise ValueError(
            f"The 'feature_groups' parameter must cover every column. {missing.size} of {n_features} columns "
            f"are in no group, the first: {shown}. Give each its own group if it stands alone."
        )
    return _codes_by_appearance(codes.tolist())


def _listed_members(groups: Any) -> list[Sequence[Any]] | None:
    if isinstance(groups, Mapping):
        return [list(columns) for columns in groups.values()]
    nested = (
        isinstance(groups, Sequence) and len(groups) > 0 and isinstance(groups[0], (list, tuple, np.ndarray))
    )
    return [list(columns) for columns in groups] if nested else None


def _codes_by_appearance(labels: list[Any]) -> IntArray:
    seen: dict[Any, int] = {}
    return np.asarray([seen.setdefault(label, len(seen)) for label in labels], dtype=np.intp)
