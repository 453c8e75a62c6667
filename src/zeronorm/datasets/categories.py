"""Text columns as indicator columns, one group per text column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zeronorm.datasets.errors import DataError, shown

MISSING_LEVEL = "(missing)"
MOST_LEVELS_OF_MIXED_COLUMNS = 20
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True)
class EncodedColumn:
    """The indicators of one text column and their levels."""

    indicators: NDArray[np.float64]
    levels: list[str]


def encode(cells: Sequence[str | None]) -> EncodedColumn:
    """One indicator per level in alphabetic order; with two levels only that of the second.

    A missing cell is a level of its own.
    """
    filled = np.asarray([MISSING_LEVEL if cell is None else cell for cell in cells], dtype=object)
    levels = sorted(set(filled.tolist()))
    used = levels[1:] if len(levels) == 2 else levels
    indicators = (filled[:, None] == np.asarray(used, dtype=object)[None, :]).astype(np.float64)
    return EncodedColumn(indicators, used)


def check_not_numbers(name: str, cells: Sequence[str | None]) -> None:
    """Refuse a text column that is a column of numbers spoilt by a few cells."""
    present = [cell for cell in cells if cell is not None]
    if present and all(_DECIMAL_COMMA.fullmatch(cell) for cell in present):
        raise DataError(
            f"The column {shown(name)} holds numbers with a decimal comma, such as {shown(present[0])}. "
            "Pass --decimal-comma."
        )
    if len(set(present)) <= MOST_LEVELS_OF_MIXED_COLUMNS:
        return
    odd = [(row, cell) for row, cell in enumerate(cells) if cell is not None and not _is_float(cell)]
    if 2 * len(odd) < len(present):
        row, cell = odd[0]
        raise DataError(
            f"The column {shown(name)} holds numbers but also text, first {shown(cell)} in data row {row + 1}. "
            "Correct these cells, or leave the column out with --ignore."
        )


def _is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
