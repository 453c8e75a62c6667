"""The three nested lists of a fitted procedure that has chosen its number of features inside the folds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zeronorm.resampling._folds import smallest_size
from zeronorm.result._lists import LISTS, ListedFeature

if TYPE_CHECKING:
    from zeronorm.datasets import Table
    from zeronorm.selection._path import SelectionPath


def sizes_by_rule(selector: Any) -> dict[str, int]:
    """The number of features that each rule chooses; empty for a selector that has not chosen its size."""
    found = getattr(selector, "sizes_", None)
    return {name: found[name] for name in LISTS} if isinstance(found, Mapping) else {}


def tried_sizes(selector: Any, otherwise: list[int]) -> list[int]:
    """The sizes from which the selector has chosen."""
    return [int(size) for size in selector.cv_results_["size"]] if sizes_by_rule(selector) else otherwise


def nested_lists(
    table: Table,
    path: SelectionPath,
    sizes: Mapping[str, int],
    selected: Any,
    rule: str,
    frequencies: Mapping[int, float],
) -> list[ListedFeature]:
    """The features of the largest list, those of smaller lists first, each list in the order of the path.

    ``selected`` are the columns of the list that ``rule`` names. Smaller lists are subsets of it and larger ones
    contain it, also on a path whose subsets are not nested.
    """
    names = list(LISTS)
    position = names.index(rule)
    members = {rule: {int(column) for column in selected}}
    for at in (*range(position - 1, -1, -1), *range(position + 1, len(names))):
        size = max(sizes[names[at]], smallest_size(path))
        support = {int(column) for column in path.support(size)}
        nearer = members[names[at + 1 if at < position else at - 1]]
        members[names[at]] = support & nearer if at < position else support | nearer
    order = path.position()
    largest = sorted(members[names[-1]], key=lambda column: order[column])
    smallest = {column: next(name for name in names if column in members[name]) for column in largest}
    return [
        ListedFeature(column, str(table.feature_names[column]), name, frequencies.get(column, 0.0))
        for name in names
        for column in largest
        if smallest[column] == name
    ]
