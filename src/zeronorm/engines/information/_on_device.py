"""Ross's estimate of mutual information for all columns at once, on the device that holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.design import Design
from zeronorm.design._array_api import values_of_columns
from zeronorm.engines.information._sorted_columns import NOISE


def neighbour_information_on_device(
    design: Design, codes: NDArray[np.integer[Any]], k: int, digamma: FloatArray
) -> FloatArray:
    """The estimates of `neighbour_information`; NaN for columns with samples at the same distance.

    All are NaN if the data are not on a device. Samples with negative codes are ignored.
    """
    rows = np.flatnonzero(codes >= 0)
    members = [np.flatnonzero(codes[rows] == c) for c in range(int(codes.max(initial=-1)) + 1)]

    def estimates(xp: Any, block: Any, send: Any) -> Any:
        return _estimates(xp, block, [send(each) for each in members], k, send(digamma))

    found = values_of_columns(design.take_rows(rows), estimates)
    return np.full(design.n_features, np.nan) if found is None else found


def _estimates(xp: Any, block: Any, members: list[Any], k: int, digamma: Any) -> Any:
    n = block.shape[0]
    size = xp.maximum(xp.std(block, axis=0), xp.mean(xp.abs(block), axis=0))
    near, ordered = NOISE * size, xp.sort(block, axis=0)
    total, has_ties = xp.zeros_like(size), size < 0.0
    for rows in members:
        own = xp.sort(xp.take(block, rows, axis=0), axis=0)
        wanted = min(k, own.shape[0] - 1)
        radius = _distance_to_neighbour(xp, own, wanted)
        inside = _number_within(xp, ordered, own, radius - near, closed=False)
        up_to_edge = _number_within(xp, ordered, own, radius + near, closed=True)
        has_ties = has_ties | xp.any((up_to_edge - inside != 1) | (radius <= near), axis=0)
        counted = xp.reshape(xp.take(digamma, xp.reshape(xp.clip(inside, 1, n), (-1,))), own.shape)
        total = total + own.shape[0] * (digamma[wanted] - digamma[own.shape[0]]) - xp.sum(counted, axis=0)
    found = digamma[n] + total / n
    return xp.where(has_ties, xp.full_like(found, float("nan")), xp.maximum(found, xp.zeros_like(found)))


def _distance_to_neighbour(xp: Any, own: Any, k: int) -> Any:
    """Distance of each value of sorted columns to its k-th nearest.

    The nearest k lie in a window of k + 1 neighbouring values, the one whose farther end is nearest.
    """
    beyond = xp.full_like(own[:1, :], float("inf"))
    padded = xp.concat([-beyond] * k + [own] + [beyond] * k, axis=0)
    n, distance = own.shape[0], xp.full_like(own, float("inf"))
    for first in range(k + 1):
        farther = xp.maximum(own - padded[first : first + n, :], padded[first + k : first + k + n, :] - own)
        distance = xp.minimum(distance, farther)
    return distance


def _number_within(xp: Any, ordered: Any, values: Any, radius: Any, *, closed: bool) -> Any:
    """Number of the values of sorted columns that are nearer than ``radius`` to each of ``values``.

    With ``closed`` those at the distance ``radius`` are counted too.
    """
    above = _number_below(xp, ordered, values + radius, or_equal=closed)
    return above - _number_below(xp, ordered, values - radius, or_equal=not closed)


def _number_below(xp: Any, ordered: Any, values: Any, *, or_equal: bool) -> Any:
    """Number of the values of sorted columns below each of ``values``, by halving in all columns at once."""
    n = ordered.shape[0]
    count = xp.zeros_like(values, dtype=xp.int64)
    for step in (2**power for power in range(n.bit_length() - 1, -1, -1)):
        further = count + step
        at = xp.take_along_axis(ordered, xp.clip(further - 1, 0, n - 1), axis=0)
        is_below = (at <= values) if or_equal else (at < values)
        count = xp.where(is_below & (further <= n), further, count)
    return count
