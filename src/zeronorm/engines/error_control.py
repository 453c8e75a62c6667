r"""Random probes: how well a column of pure noise would do, and the risk of keeping one.

A probe is a random direction. Its squared cosine with a fixed subspace of dimension :math:`r` in
:math:`\nu` dimensions follows a beta law with the distribution function

.. math:: P(\cos^2 \le x) = I_x\!\left(\tfrac r2, \tfrac{\nu - r}2\right),

the regularised incomplete beta function (Stoppiglia, Dreyfus, Dubois & Oussar 2003, for :math:`r = 1`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc

from zeronorm._types import FloatArray


def probe_cdf(cos_sq: ArrayLike, dimension: float, rank: int = 1) -> FloatArray:
    """Probability that a probe has a squared cosine of at most ``cos_sq``.

    ``dimension`` is the dimension of the space the probe lives in, ``rank`` that of the subspace
    of the target. A probe in a space no larger than the target's lies in it altogether.
    """
    x = np.clip(np.asarray(cos_sq, dtype=np.float64), 0.0, 1.0)
    if dimension <= rank:
        return np.where(x >= 1.0, 1.0, 0.0)
    return np.asarray(betainc(rank / 2, (dimension - rank) / 2, x))


def probe_tail(cos_sq: ArrayLike, dimension: float, rank: int = 1) -> FloatArray:
    """Probability that a probe has a squared cosine above ``cos_sq``, accurate also when it is tiny.

    It is the significance of the partial F test with ``rank`` and ``dimension - rank`` degrees of
    freedom for the same column.
    """
    x = np.clip(np.asarray(cos_sq, dtype=np.float64), 0.0, 1.0)
    if dimension <= rank:
        return np.ones_like(x)
    return np.asarray(betaincc(rank / 2, (dimension - rank) / 2, x))


def best_of(tail: float, n_probes: int) -> float:
    """Probability that at least one of ``n_probes`` probes is in a tail of probability ``tail``."""
    if tail >= 1.0:
        return 1.0
    return -math.expm1(n_probes * math.log1p(-tail))


@dataclass
class ProbeRisk:
    r"""The risk that a probe is among the features selected so far.

    .. math:: R_k = R_{k-1} + (1 - F_k(\cos^2_k)) (1 - R_{k-1})

    where :math:`F_k` is the distribution of one probe, or with ``correction="max"`` that of the best
    of as many probes as there are columns to choose from.
    """

    correction: str | None = None
    value: float = 0.0

    def after(self, cos_sq: float, dimension: float, rank: int, n_candidates: int) -> float:
        """Return the risk when a feature with this squared cosine is selected next."""
        tail = float(probe_tail(cos_sq, dimension, rank))
        if self.correction == "max":
            tail = best_of(tail, n_candidates)
        return self.value + tail * (1.0 - self.value)


# -- Correction of p-values for the number of tests --


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
