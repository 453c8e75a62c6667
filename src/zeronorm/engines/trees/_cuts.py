"""All cuts of the columns in one node of a tree, with the class counts on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import BoolArray, FloatArray

MOST_ENTRIES = 2_000_000  # class counts held in memory at one time


class Cuts(NamedTuple):
    """The cuts of consecutive columns: cut i of a column lies between its values i and i + 1 in ascending order.

    ``inside`` and ``outside`` are the class counts of the samples below and above each cut. A cut is ``allowed`` where
    the two values differ and both sides are large enough.
    """

    first_column: int
    values: NDArray[Any]
    inside: FloatArray
    outside: FloatArray
    allowed: BoolArray


def cuts(data: NDArray[Any], indicator: FloatArray, min_leaf: int) -> Iterator[Cuts]:
    """The cuts of all columns, some columns at a time."""
    n, p = data.shape
    total = indicator.sum(axis=0)
    size = np.arange(1, n)[:, None]
    allowed_size = (size >= min_leaf) & (n - size >= min_leaf)
    at_a_time = max(1, MOST_ENTRIES // (n * total.size))
    for start in range(0, p, at_a_time):
        block = data[:, start : start + at_a_time]
        order = np.argsort(block, axis=0, kind="stable")
        values = np.take_along_axis(block, order, axis=0)
        inside = np.cumsum(indicator[order], axis=0)[:-1]
        yield Cuts(start, values, inside, total - inside, allowed_size & (values[:-1] < values[1:]))


def between(low: np.floating[Any], high: np.floating[Any]) -> float:
    """A threshold that separates two values of the data: their mean, or the lower one if it rounds to the higher."""
    midpoint = type(low)(0.5 * (float(low) + float(high)))
    return float(midpoint if low <= midpoint < high else low)
