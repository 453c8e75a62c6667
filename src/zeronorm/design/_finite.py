"""Checks for values that are missing, infinite or too large to be squared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import written
from zeronorm.design._blocks import blocks
from zeronorm.design._stats import ColumnStats
from zeronorm.design._stats_kernels import LARGEST_VALUE

if TYPE_CHECKING:
    from zeronorm.design._base import Design

SMALLEST_RANGE = 1e-140  # squares of smaller differences underflow


def is_surely_finite(values: NDArray[Any]) -> bool:
    """Quick check that all values and the sum of their squares are finite; if False, a closer check is needed."""
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype == np.float32:  # in double precision their squares cannot overflow
            return bool(np.isfinite(values.sum()))
        if values.flags.forc:
            flat = values.ravel(order="K")
            return bool(np.isfinite(flat @ flat))
        return bool(np.isfinite(np.einsum("ij,ij->", values, values)))


def require_finite_stats(design: Design, stats: ColumnStats) -> None:
    """Raise an error that names the first value or column for which the statistics are not reliable."""
    if not stats.extremes.all_usual:
        require_finite(design)
        return
    if stats.extremes.smallest_width < SMALLEST_RANGE:
        width = stats.maximum - stats.minimum
        small = (width < SMALLEST_RANGE) & ~stats.is_constant(design.dtype)
        if small.any():
            column = int(np.argmax(small))
            raise ValueError(
                f"Input X varies by no more than {width[column]:.3g} in column {column}{_name_of(design, column)}. "
                f"Squares of differences below {SMALLEST_RANGE:.0e} underflow; rescale such columns first."
            )


def are_trusted(stats: ColumnStats, dtype: np.dtype[Any]) -> bool:
    """Whether `require_finite_stats` would raise no error."""
    if not stats.extremes.all_usual or stats.extremes.smallest_width >= SMALLEST_RANGE:
        return stats.extremes.all_usual
    return not np.any((stats.maximum - stats.minimum < SMALLEST_RANGE) & ~stats.is_constant(dtype))


def require_finite(design: Design, allow_nan: bool = False) -> None:
    """Raise an error that names the first entry that is NaN, infinite or too large to be squared."""
    if design._known_finite or _quickly_finite(design):
        design._known_finite = True
        return
    for columns, block in blocks(design):
        acceptable = np.abs(block) <= LARGEST_VALUE
        if allow_nan:
            acceptable |= np.isnan(block)
        if not acceptable.all():
            row, column = np.argwhere(~acceptable)[0]
            raise ValueError(_unusable_message(design, row, columns.start + column, block[row, column]))
    design._known_finite = not allow_nan


def _quickly_finite(design: Design) -> bool:
    return design._surely_finite() if design.affine is None else blocks_are_finite(design)


def blocks_are_finite(design: Design) -> bool:
    """Quick check of all blocks, see `is_surely_finite`."""
    return all(is_surely_finite(block) for _, block in blocks(design))


def _name_of(design: Design, column: int) -> str:
    return "" if design.feature_names is None else f" ({written(design.feature_names[column])})"


def _unusable_message(design: Design, row: int, column: int, value: float) -> str:
    position = f"row {row}, column {column}{_name_of(design, column)}"
    if np.isfinite(value):
        return (
            f"Input X contains {value:.3g}: first found in {position}. Squares of values beyond "
            f"{LARGEST_VALUE:.0e} overflow; rescale such columns first."
        )
    found = "NaN" if np.isnan(value) else "infinity"
    return (
        f"Input X contains {found}: first found in {position}. All values must be finite; impute or drop such "
        "values first."
    )
