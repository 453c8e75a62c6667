"""Row and column selections as composable indices: a ``range`` where possible, otherwise an index array.

Also elementwise operations on vectors of length ``n_features`` in several threads, and sorting in descending order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from zeronorm._jit import kernel
from zeronorm._types import BoolArray, FloatArray, Int64Array, IntArray
from zeronorm.execution import available_threads, in_threads, long_vector, run_in_threads

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
    # A copy, so that later changes by the caller have no effect; read-only arrays are shared.
    return _compact(_checked(positions.astype(np.intp, copy=positions.flags.writeable), size, axis))


def compose(outer: Index, inner: Index) -> Index:
    """Return the index that selects the positions ``inner`` of the selection ``outer``."""
    if isinstance(inner, range):
        return outer[cast("slice", as_selector(inner))]
    if isinstance(outer, range):
        from_zero = outer.start == 0 and outer.step == 1
        return _compact(inner if from_zero else outer.start + outer.step * inner)
    return outer[inner]


def as_selector(index: Index) -> slice | NDArray[np.intp]:
    """Return what NumPy indexing accepts: a slice for an increasing range, the array itself otherwise."""
    return slice(index.start, max(index.start, index.stop), index.step) if isinstance(index, range) else index


def is_consecutive(positions: Index) -> bool:
    """Whether the positions are a range with step 1."""
    return isinstance(positions, range) and positions.step == 1


def spans_of(positions: Index, largest_gap: int) -> tuple[list[tuple[int, int]], NDArray[np.intp] | None]:
    """Return consecutive spans to read, and the positions within them; None if all of one span is wanted."""
    if isinstance(positions, range) and is_consecutive(positions):
        return [(positions.start, max(positions.start, positions.stop))], None
    chosen, back = np.unique(np.asarray(positions, dtype=np.intp), return_inverse=True)
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
    """Return a range for consecutive positions, because slices need no copy; otherwise the array itself."""
    if positions.size == 0:
        return range(0)
    first, last = int(positions[0]), int(positions[-1])
    if last - first == positions.size - 1 and bool(np.all(np.diff(positions) == 1)):
        return range(first, last + 1)
    return positions


# -- Operations on vectors of length n_features, in several threads --

_LONG = 1 << 18


def each(
    operation: np.ufunc, left: NDArray[Any], right: NDArray[Any] | float, dtype: DTypeLike = np.float64
) -> NDArray[Any]:
    """Apply a binary operation to the elements of a vector and of another vector, or a scalar."""
    if left.size < _LONG:
        return np.asarray(operation(left, right))
    result = long_vector(left.size, dtype)

    def operate(first: int, last: int) -> None:
        other = right[first:last] if isinstance(right, np.ndarray) else right
        operation(left[first:last], other, out=result[first:last])

    in_threads(operate, left.size)
    return result


def roots(values: FloatArray) -> FloatArray:
    """Return the square roots of the values."""
    if values.size < _LONG:
        return np.sqrt(values)
    result = long_vector(values.size)

    def take(first: int, last: int) -> None:
        np.sqrt(values[first:last], out=result[first:last])

    in_threads(take, values.size)
    return result


def rising(size: int) -> IntArray:
    """Return the vector 0, 1, …, size - 1, as ``np.arange(size)``."""
    if size < _LONG:
        return np.arange(size, dtype=np.intp)
    result: IntArray = long_vector(size, np.intp)

    def write(first: int, last: int) -> None:
        for start in range(first, last, _LONG):
            stop = min(start + _LONG, last)
            result[start:stop] = np.arange(start, stop)

    in_threads(write, size)
    return result


def made_absolute(values: FloatArray) -> FloatArray:
    """Replace the values of a vector or a matrix by their absolute values, in place, and return it."""
    if len(values) < _LONG:
        return np.abs(values, out=values)

    def change(first: int, last: int) -> None:
        np.abs(values[first:last], out=values[first:last])

    in_threads(change, len(values))
    return values


def marked(values: NDArray[Any], mask: BoolArray, mark: bool = True) -> NDArray[Any]:
    """Return the values at which the mask equals ``mark``."""
    if values.size < _LONG:
        return np.asarray(values[mask if mark else ~mask])
    if values.strides == (0,):
        return values[: int(np.count_nonzero(mask == mark))]
    counts: dict[int, int] = {}

    def count(first: int, last: int) -> None:
        n_true = int(np.count_nonzero(mask[first:last]))
        counts[first] = n_true if mark else last - first - n_true

    in_threads(count, values.size)
    starts, n_found = {}, 0
    for first in sorted(counts):
        starts[first], n_found = n_found, n_found + counts[first]
    found = long_vector(n_found, values.dtype)
    in_threads(lambda a, b: _copy_marked(values, mask, mark, found, starts[a], a, b), values.size)
    return found


@kernel
def _copy_marked(
    values: NDArray[Any],
    mask: BoolArray,
    mark: bool,
    out: NDArray[Any],
    target: int,
    first: int,
    last: int,
) -> None:
    for i in range(first, last):
        if mask[i] == mark:
            out[target] = values[i]
            target += 1


# -- Sorting in descending order --

# From this size on integer keys are sorted instead of calling argsort, which takes a third of the time.
MANY = 1 << 14


def by_descending_value(values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the indices that sort the values in descending order, NaN last, and the sorted values.

    Many values are sorted as integer keys: the leading bits of a key are those of the value, its last bits hold the
    index. Values that differ only in the bits that are replaced are sorted afterwards by insertion.
    """
    n_bits = int(values.size - 1).bit_length()
    if values.size < MANY or np.isnan(values.min()):
        order = np.argsort(-values)
        return order, values[order]
    keys, order = _sort_keys(_keys_of(values, n_bits), n_bits)
    descending = keys.view(np.float64)  # the same memory: each key is read before it is overwritten
    if not _sort_by_insertion(
        order, descending, lambda a, b: _read_keys(keys, n_bits, values, order, descending, a, b)
    ):
        order = np.argsort(-values)
        return order, values[order]
    return order, descending


def _sort_by_insertion(
    order: IntArray, descending: FloatArray, read: Callable[[int, int], None] = lambda first, last: None
) -> bool:
    """Sort nearly sorted values by insertion, first within parts, then across their bounds.

    Returns False if this would take too many moves. ``read`` fills a part before it is sorted.
    """
    starts, done = [], []

    def sort(first: int, last: int) -> None:
        read(first, last)
        starts.append(first)
        done.append(_insert(order, descending, first, first + 1, last, False))

    in_threads(sort, descending.size)
    across = [_insert(order, descending, 0, first, descending.size, True) for first in sorted(starts)[1:]]
    return all(done + across)


def _keys_of(values: FloatArray, n_bits: int) -> Int64Array:
    """Return keys whose order is the descending order of the values, with the index of each value in the last bits."""
    keys, bits = long_vector(values.size, np.int64), np.ascontiguousarray(values).view(np.int64)
    in_threads(lambda first, last: _write_keys(bits, n_bits, keys, first, last), values.size)
    return keys


_DIGIT_BITS = 11
# Threads wait for each other at every digit: with sixteen cores, four threads sorted a million numbers fastest.
_FEW_THREADS, _NUMBERS_FOR_MORE = 4, 1 << 20


def _sort_keys(keys: Int64Array, n_bits: int) -> tuple[Int64Array, Int64Array]:
    """Radix sort by the bits above ``n_bits``; return the sorted keys and a second vector that may be overwritten."""
    spare: Int64Array = long_vector(keys.size, np.int64)
    useful = min(keys.size // MANY, max(_FEW_THREADS, keys.size // _NUMBERS_FOR_MORE))
    n_threads = max(1, min(available_threads(), useful))
    low = (int(keys.min()) >> n_bits) << n_bits
    width = (int(keys.max()) - low).bit_length()
    for shift in range(n_bits, width, _DIGIT_BITS):
        _move_digit(keys, spare, low, shift, n_threads)
        keys, spare = spare, keys
    return keys, spare


def _move_digit(keys: Int64Array, out: Int64Array, low: int, shift: int, n_threads: int) -> None:
    """One step of the radix sort: move the keys to ``out``, stably sorted by one digit."""
    parts = [(keys.size * k // n_threads, keys.size * (k + 1) // n_threads) for k in range(n_threads)]
    counts = np.empty((n_threads, 1 << _DIGIT_BITS), dtype=np.int64)
    counting = [(keys, low, shift, row, *part) for row, part in zip(counts, parts, strict=True)]
    run_in_threads(_count_digits, counting, n_threads)
    # Position at which each part writes its keys of each digit: after all lower digits, then after earlier parts.
    counts[...] = (np.cumsum(counts.T) - counts.T.ravel()).reshape(-1, n_threads).T
    moving = [(keys, low, shift, row, out, *part) for row, part in zip(counts, parts, strict=True)]
    run_in_threads(_move_by_digit, moving, n_threads)


_SIGN_BIT, _OTHER_BITS = -(1 << 63), (1 << 63) - 1


@kernel
def _write_keys(bits: NDArray[np.int64], n_bits: int, keys: NDArray[np.int64], first: int, last: int) -> None:
    """Write keys whose order is the descending order of the values; the bits of negative numbers are inverted."""
    for i in range(first, last):
        negated = bits[i] ^ _SIGN_BIT
        key = negated ^ ((negated >> 63) & _OTHER_BITS)
        keys[i] = ((key >> n_bits) << n_bits) + i


@kernel
def _count_digits(keys: Int64Array, low: int, shift: int, counts: Int64Array, first: int, last: int) -> None:
    counts[:] = 0
    for i in range(first, last):
        counts[(np.uint64(keys[i] - low) >> np.uint64(shift)) & np.uint64(counts.size - 1)] += 1


@kernel
def _move_by_digit(
    keys: Int64Array, low: int, shift: int, targets: Int64Array, out: Int64Array, first: int, last: int
) -> None:
    for i in range(first, last):
        digit = (np.uint64(keys[i] - low) >> np.uint64(shift)) & np.uint64(targets.size - 1)
        out[targets[digit]] = keys[i]
        targets[digit] += 1


@kernel
def _read_keys(
    keys: NDArray[np.int64],
    n_bits: int,
    values: FloatArray,
    order: IntArray,
    descending: FloatArray,
    first: int,
    last: int,
) -> None:
    """Read the indices from the last bits of the keys, and look up their values."""
    last_bits = (1 << n_bits) - 1
    for i in range(first, last):
        position = keys[i] & last_bits
        order[i] = position
        descending[i] = values[position]


_MOST_MOVES = 8  # for each value; with more, sorting from scratch is faster


@kernel
def _insert(
    order: IntArray, descending: FloatArray, lowest: int, first: int, last: int, to_the_first_in_place: bool
) -> bool:
    """Insertion sort in descending order, down to index ``lowest``; equal values keep their order."""
    left = _MOST_MOVES * (last - first) + _MOST_MOVES
    for i in range(first, last):
        value, position, j = descending[i], order[i], i
        while j > lowest and descending[j - 1] < value and left > 0:
            descending[j], order[j] = descending[j - 1], order[j - 1]
            j -= 1
            left -= 1
        descending[j], order[j] = value, position
        if left == 0:
            return False
        if to_the_first_in_place and j == i:
            return True
    return True
