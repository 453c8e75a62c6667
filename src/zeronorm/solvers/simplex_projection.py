r"""Euclidean projection on the probability simplex :math:`\{x \ge 0,\ \sum_k x_k = 1\}`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._jit import kernel
from zeronorm._types import FloatArray


def project_on_simplex(x: ArrayLike) -> FloatArray:
    r"""The nearest point of the simplex, :math:`\max(x_k - \tau, 0)`, by sorting.

    The threshold is :math:`\tau = (\sum_{k \le m} x_{(k)} - 1)/m` for the largest m whose m-th largest entry
    stays above it.
    """
    values = np.asarray(x, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.all(np.isfinite(values)):
        raise ValueError(
            f"Only a finite, non-empty vector can be projected on the simplex. Got shape {values.shape}."
        )
    descending = np.sort(values)[::-1]
    thresholds = (np.cumsum(descending) - 1.0) / np.arange(1, values.size + 1)
    m = int(np.flatnonzero(descending > thresholds)[-1])
    projection: FloatArray = np.maximum(values - thresholds[m], 0.0)
    return projection


@kernel
def project_in_place(x: FloatArray) -> None:
    """The same projection for compiled loops: a few passes and no memory.

    Drops the entries below the current threshold and recomputes it from the others until none drops
    (Gadat and Younes 2007, section 4.3).
    """
    threshold = (x.sum() - 1.0) / x.shape[0]
    kept = x.shape[0]
    while True:
        total = 0.0
        count = 0
        for value in x:
            if value > threshold:
                total += value
                count += 1
        if count == kept or count == 0:
            break
        kept = count
        threshold = (total - 1.0) / count
    for k in range(x.shape[0]):
        x[k] = max(x[k] - threshold, 0.0)
