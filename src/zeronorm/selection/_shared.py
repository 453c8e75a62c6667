"""Values that several fits to the same data share: computed once, and a C that was found before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from zeronorm.design import Design

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class SharedValues:
    """Values that a fit takes from earlier fits; code that fits several selectors to the same data passes it to each.

    ``C`` replaces the search for C in a selector with ``C="auto"``; with None the selector searches.
    ``members_C`` holds one such value for each member of a selector that fits several, or is empty.
    """

    C: float | None = None
    members_C: tuple[float | None, ...] = ()
    _known: dict[str, list[tuple[tuple[Any, ...], Any]]] = field(default_factory=dict, repr=False)

    def of_member(self, index: int) -> SharedValues:
        """The shared values for one member: the same values, with the C of this member."""
        return replace(self, C=self.members_C[index] if self.members_C else None, members_C=())

    def once(self, name: str, inputs: tuple[Any, ...], compute: Callable[[], Value]) -> Value:
        """The value of ``compute()``, computed once per name and inputs; designs are compared by identity."""
        known = self._known.setdefault(name, [])
        for others, value in known:
            if all(_is_same(one, other) for one, other in zip(inputs, others, strict=True)):
                return value  # type: ignore[no-any-return]
        value = compute()
        known.append((inputs, value))
        return value

    def standardized(self, design: Design, sample_weight: Any = None, *, how: bool | str = True) -> Design:
        """The view that ``standardize=how`` means; for an array in memory all fits share one and its cached values."""
        common = how == "common"
        if sample_weight is not None or not design.backend.in_one_array:
            return design.standardized(sample_weight=sample_weight, common=common)
        return self.once("standardized", (design, common), lambda: design.standardized(common=common))


def _is_same(one: Any, other: Any) -> bool:
    return one is other if isinstance(one, Design) else np.array_equal(one, other)
