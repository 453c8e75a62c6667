"""How often features were selected, and how alike the selections are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from zeronorm.evaluation.records import columns_of
from zeronorm.evaluation.stability import stability_of_records


@dataclass(frozen=True)
class Frequencies:
    """Share of the outer training parts in which each feature was selected, most frequent first.

    ``expected`` is the share that a random choice of as many features would have.
    """

    method: str
    shares: tuple[tuple[int, float], ...]
    n_splits: int
    expected: float


@dataclass(frozen=True)
class StabilityPoint:
    """Similarity of the subsets of one method at one size (None where not defined)."""

    method: str
    size: int | None
    mean_size: float
    nogueira: float | None
    low: float | None
    high: float | None
    jaccard: float


def selection_frequencies(records: Any, method: str, n_features: int, size: int | None = None) -> Frequencies:
    """Frequencies of one method at one size; None for its own size."""
    columns = columns_of(records)
    counts: Counter[int] = Counter()
    n_splits = n_selected = 0
    for name, row_size, selected in zip(columns["method"], columns["size"], columns["selected"], strict=True):
        if name == method and row_size == size and selected is not None:
            counts.update(int(index) for index in selected)
            n_splits += 1
            n_selected += len(selected)
    shares = sorted(
        ((index, count / n_splits) for index, count in counts.items()), key=lambda p: (-p[1], p[0])
    )
    expected = n_selected / max(1, n_splits * n_features)
    return Frequencies(method, tuple(shares), n_splits, expected)


def stabilities(records: Any, n_features: int) -> tuple[StabilityPoint, ...]:
    """Stability of every method and size with at least two selections."""
    columns = columns_of(records)
    counts = Counter(
        (method, size)
        for method, size, selected in zip(
            columns["method"], columns["size"], columns["selected"], strict=True
        )
        if selected is not None
    )
    if not counts or min(counts.values()) < 2:
        return ()
    table = columns_of(stability_of_records(records, n_features))
    fields = ("method", "size", "mean_size", "nogueira", "low", "high", "jaccard")
    return tuple(StabilityPoint(*row) for row in zip(*(table[name] for name in fields), strict=True))
