"""Correction of p-values for the number of tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def adjust_p_values(p_values: ArrayLike, method: str = "holm") -> NDArray[np.float64]:
    r"""Adjusted p-values, in the order given.

    With :math:`p_{(1)} \le \dots \le p_{(m)}`:

    - "bonferroni": :math:`m p_{(i)}`,
    - "holm" (family-wise error, the default): :math:`\max_{j \le i} (m - j + 1) p_{(j)}`,
    - "benjamini-hochberg" (false discovery rate): :math:`\min_{j \ge i} m p_{(j)} / j`,

    each cut at 1.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        raise ValueError(f"'p_values' must be a list of numbers between 0 and 1. Got {p_values!r} instead.")
    m, order = p.size, np.argsort(p, kind="stable")
    rank = np.arange(1, m + 1)
    if method == "bonferroni":
        ordered = m * p[order]
    elif method == "holm":
        ordered = np.maximum.accumulate((m - rank + 1) * p[order])
    elif method == "benjamini-hochberg":
        ordered = np.minimum.accumulate((m * p[order] / rank)[::-1])[::-1]
    else:
        raise ValueError(
            "The 'method' parameter must be 'holm', 'benjamini-hochberg' or 'bonferroni'. "
            f"Got {method!r} instead."
        )
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(ordered, 1.0)
    return adjusted
