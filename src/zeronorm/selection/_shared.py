"""What several fits to the same data compute once, and a C that was found before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from zeronorm.design import Design, StandardizedDesign

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class SharedValues:
    """What a fit takes over from others; whoever fits several selectors to the same data passes it to each of them.

    ``C`` is used where the C of a selector is "auto", as if the selector had found it; None lets the selector find it.
    ``members_C`` has the same for each member of a selector that fits several, or nothing.
    """

    C: float | None = None
    members_C: tuple[float | None, ...] = ()
    _known: dict[str, list[tuple[tuple[Any, ...], Any]]] = field(default_factory=dict, repr=False)

    def of_member(self, index: int) -> SharedValues:
        """What one of several members takes over: the same values, and a C of its own."""
        return replace(self, C=self.members_C[index] if self.members_C else None, members_C=())

    def once(self, name: str, inputs: tuple[Any, ...], compute: Callable[[], Value]) -> Value:
        """A value that depends on its name and these inputs alone; the same design is the same object."""
        known = self._known.setdefault(name, [])
        for others, value in known:
            if all(_is_same(one, other) for one, other in zip(inputs, others, strict=True)):
                return value  # type: ignore[no-any-return]
        value = compute()
        known.append((inputs, value))
        return value

    def standardized(self, design: Design, sample_weight: Any = None) -> StandardizedDesign:
        """The standardised view of a design; of an array in memory there is one, with what it keeps."""
        if sample_weight is not None or not design._in_one_array:
            return design.standardized(sample_weight=sample_weight)
        return self.once("standardized", (design,), design.standardized)


def _is_same(one: Any, other: Any) -> bool:
    return one is other if isinstance(one, Design) else np.array_equal(one, other)
