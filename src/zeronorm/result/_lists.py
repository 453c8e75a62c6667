"""The nested lists of a selection: the fewest features, the recommended ones, and all that help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zeronorm.datasets._table import counted

if TYPE_CHECKING:
    from zeronorm.result._record import ResultData

LISTS = {
    "fewest": "the smallest number within about one standard error of the best score",
    "recommended": "the smallest number whose score is nearly the best",
    "all": "the number with the best score; more features do not help",
}
RARE = 0.4  # share of the outer folds; a feature that fewer of them selected is marked
RARE_MARK = "†"


@dataclass(frozen=True)
class ListedFeature:
    """One feature of the largest list.

    Parameters
    ----------
    index : index of the feature in the encoded table, from 0.
    name : name of the feature.
    smallest_list : the smallest list that has it: "fewest", "recommended" or "all".
    frequency : share of the outer folds in which it was selected.
    """

    index: int
    name: str
    smallest_list: str
    frequency: float


def is_rare(frequency: float | None) -> bool:
    """Whether so few outer folds selected a feature that it is marked."""
    return frequency is not None and frequency < RARE


def features_by_list(result: ResultData) -> dict[str, list[ListedFeature]]:
    """The features of each list, each list with those of the smaller ones; empty if no size was chosen inside.

    The lists themselves are empty where the procedure does not predict better than chance.
    """
    if "by_rule" not in result.size:
        return {}
    rank = {name: position for position, name in enumerate(LISTS)}
    return {
        name: [feature for feature in result.listed if rank[feature.smallest_list] <= rank[name]]
        for name in LISTS
    }


def list_sentence(result: ResultData) -> str:
    """The sizes of the lists, which one was selected, or that nothing is recommended."""
    found = features_by_list(result)
    if not found:
        return ""
    if not result.listed:
        return "Nothing is recommended, because the procedure is not shown to predict better than chance."
    sizes = [f"{name} {counted(len(features), 'feature')}" for name, features in found.items()]
    return f"Three nested lists: {', '.join(sizes)}; selected: {result.size['selected_list']}."


def rare_note(selected: Sequence[Any]) -> list[str]:
    """A note that names the selected features that few outer folds selected."""
    rare = [feature.name for feature in selected if is_rare(feature.frequency)]
    if not rare:
        return []
    named = ", ".join(rare[:5]) + (f" and {len(rare) - 5} more" if len(rare) > 5 else "")
    were = "was" if len(rare) == 1 else "were"
    return [
        f"{RARE_MARK} marks features that fewer than {100 * RARE:.0f} % of the outer folds selected: "
        f"{len(rare)} of the {len(selected)} selected ones {were} so rare ({named})."
    ]


def left_out_note(always: Sequence[str]) -> list[str]:
    """A note that names features that every outer fold selected, but that are not in the final set."""
    if not always:
        return []
    named = ", ".join(always[:5]) + (f" and {len(always) - 5} more" if len(always) > 5 else "")
    return [f"Every outer fold selected {named}, but the final set from all samples does not have it."]


def outside_note(sizes: Sequence[int], chosen: int) -> list[str]:
    """A note where the final set is larger or smaller than that of every fold, whose error was measured."""
    if not sizes or min(sizes) <= chosen <= max(sizes):
        return []
    range_of_folds = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    compared = "more" if chosen > max(sizes) else "fewer"
    return [
        f"The final set has {counted(chosen, 'feature')}, {compared} than that of any fold ({range_of_folds}): the "
        "measured error is that of sets of other sizes."
    ]
