"""Row and column selections as composable indices: a ``range`` where possible, else an index array."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Index: TypeAlias = range | NDArray[np.intp]
Selection: TypeAlias = slice | ArrayLike


def as_index(selection: Selection, size: int, axis: str) -> Index:
    """Turn a slice, a boolean mask or an array of positions into an `Index` into ``range(size)``."""
    if isinstance(selection, slice):
        chosen = range(size)[selection]
        return chosen if chosen.step > 0 else np.arange(chosen.start, chosen.stop, chosen.step)
    positions = np.asarray(selection)
    if positions.ndim != 1:
        raise IndexError(f"A selection of {axis}s must be one-dimensional. Got {positions.ndim} dimensions.")
    if positions.dtype == bool:
        return _compact(_from_mask(positions, size, axis))
    if positions.size == 0:
        return range(0)
    if positions.dtype.kind not in "iu":
        raise IndexError(
            f"A selection of {axis}s must be a slice, a boolean mask or integers. Got {positions.dtype}."
        )
    return _compact(_checked(positions.astype(np.intp), size, axis))


def compose(outer: Index, inner: Index) -> Index:
    """Return the index that selects ``inner`` out of what ``outer`` selected."""
    if isinstance(inner, range):
        return outer[as_slice(inner)]
    if isinstance(outer, range):
        return _compact(outer.start + outer.step * inner)
    return outer[inner]


def as_slice(index: range) -> slice:
    """Return the slice that selects the same positions as the increasing ``index``."""
    return slice(index.start, max(index.start, index.stop), index.step)


def as_selector(index: Index) -> slice | NDArray[np.intp]:
    """Return what NumPy indexing accepts: a slice for a range, the array itself otherwise."""
    return as_slice(index) if isinstance(index, range) else index


def is_run(places: Index) -> bool:
    """Tell whether places are consecutive."""
    return isinstance(places, range) and places.step == 1


def spans_of(places: Index, largest_gap: int) -> tuple[list[tuple[int, int]], NDArray[np.intp] | None]:
    """Consecutive pieces to read, and where in them the places are; None when all of one piece is wanted."""
    if isinstance(places, range) and is_run(places):
        return [(places.start, max(places.start, places.stop))], None
    chosen, back = np.unique(np.asarray(places, dtype=np.intp), return_inverse=True)
    cuts = np.flatnonzero(np.diff(chosen) > largest_gap) + 1
    pieces = np.split(chosen, cuts)
    spans = [(int(piece[0]), int(piece[-1]) + 1) for piece in pieces if piece.size]
    begins = np.cumsum([0] + [stop - start for start, stop in spans[:-1]])
    local = [piece - piece[0] + begin for piece, begin in zip(pieces, begins, strict=False) if piece.size]
    return spans, np.concatenate(local)[back] if local else np.empty(0, dtype=np.intp)


def _from_mask(mask: NDArray[np.bool_], size: int, axis: str) -> NDArray[np.intp]:
    if mask.shape[0] != size:
        raise IndexError(f"The boolean mask of {axis}s must have {size} entries. Got {mask.shape[0]}.")
    return np.flatnonzero(mask)


def _checked(positions: NDArray[np.intp], size: int, axis: str) -> NDArray[np.intp]:
    lowest, highest = positions.min(), positions.max()
    if lowest < -size or highest >= size:
        wrong = lowest if lowest < -size else highest
        raise IndexError(f"The {axis} {wrong} does not exist: there are {size} {axis}s.")
    return np.where(positions < 0, positions + size, positions) if lowest < 0 else positions


def _compact(positions: NDArray[np.intp]) -> Index:
    """Use a range for consecutive positions: ranges need no gathering."""
    if positions.size == 0:
        return range(0)
    first, last = int(positions[0]), int(positions[-1])
    if last - first == positions.size - 1 and bool(np.all(np.diff(positions) == 1)):
        return range(first, last + 1)
    return positions
