"""Compiled order statistics of a moving window."""

# mypy: allow-untyped-defs

from __future__ import annotations

import numpy as np

from zeronorm._jit import kernel


@kernel
def lower_median(spectra, half, fraction, baseline):
    """Median of the lowest ``fraction`` of the values at most ``half`` positions away, for every position.

    Windows end at the borders of the spectrum. The sorted window is kept from one position to the next.
    """
    n, length = spectra.shape
    window = np.empty(2 * half + 1)
    for i in range(n):
        x, size = spectra[i], 0
        for j in range(min(half, length)):
            size = _insert(window, size, x[j])
        for j in range(length):
            if j + half < length:
                size = _insert(window, size, x[j + half])
            if j - half > 0:
                size = _remove(window, size, x[j - half - 1])
            lowest = max(1, int(np.ceil(fraction * size - 1e-9)))
            baseline[i, j] = 0.5 * (window[(lowest - 1) // 2] + window[lowest // 2])


@kernel
def _insert(window, size, value):
    place = np.searchsorted(window[:size], value)
    for k in range(size, place, -1):
        window[k] = window[k - 1]
    window[place] = value
    return size + 1


@kernel
def _remove(window, size, value):
    place = np.searchsorted(window[:size], value)
    for k in range(place, size - 1):
        window[k] = window[k + 1]
    return size - 1
