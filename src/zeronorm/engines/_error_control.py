r"""Control of false selections: random probes, corrected p-values and random halves of the samples.

Used by GramSchmidt, GramSchmidtRelief, ProbeSelector, StabilitySelection and Consensus.

A probe is a random direction. Its squared cosine with a fixed subspace of dimension :math:`r` in
:math:`\nu` dimensions follows a beta distribution,

.. math:: P(\cos^2 \le x) = I_x\!\left(\tfrac r2, \tfrac{\nu - r}2\right),

the regularised incomplete beta function (Stoppiglia, Dreyfus, Dubois & Oussar 2003, for :math:`r = 1`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc

from zeronorm._types import FloatArray, IntArray, written


def probe_cdf(cos_sq: ArrayLike, dimension: float, rank: int = 1) -> FloatArray:
    """Probability that a probe has a squared cosine of at most ``cos_sq``.

    ``dimension`` is the dimension of the space the probe lives in, ``rank`` that of the subspace
    of the target. If the space is no larger than that subspace, the squared cosine is 1.
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
    """Probability that at least one of ``n_probes`` probes falls in a tail of probability ``tail``."""
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
    r"""Adjust p-values for the number of tests.

    With :math:`p_{(1)} \le \dots \le p_{(m)}`:

    - "bonferroni": :math:`m p_{(i)}`,
    - "holm" (family-wise error, the default): :math:`\max_{j \le i} (m - j + 1) p_{(j)}`,
    - "benjamini-hochberg" (false discovery rate): :math:`\min_{j \ge i} m p_{(j)} / j`,

    each clipped at 1.

    Parameters
    ----------
    p_values : array-like
        The p-values, in any order.
    method : {"holm", "bonferroni", "benjamini-hochberg"}, default='holm'
        The correction.

    Returns
    -------
    ndarray
        The adjusted p-values, in the order given.

    Examples
    --------
    >>> from zeronorm.evaluation.significance import adjust_p_values
    >>> adjust_p_values([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        raise ValueError(
            f"'p_values' must be a list of numbers between 0 and 1. Got {written(p_values)} instead."
        )
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
            f"Got {written(method)} instead."
        )
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(ordered, 1.0)
    return adjusted


# -- Random halves of the samples, and the bound on false selections --
#
# Used by StabilitySelection and Consensus


def false_selection_bound(
    size: int, n_features: int, threshold: float, *, n_pairs: int | None = None
) -> float:
    """Bound on the expected number of false selections; with ``n_pairs``, the bound for unimodal frequencies."""
    theta = size / n_features
    worst_case = theta * size / (2 * threshold - 1)
    if n_pairs is None:
        return worst_case
    step = 1 / (2 * n_pairs)
    if threshold <= min(0.5 + theta**2, 0.5 + step + 0.75 * theta**2):
        return worst_case
    if threshold <= 0.75:
        gap = 2 * threshold - 1 - step
        factor = 1 / (2 * gap) if gap > 0 else np.inf
    else:
        factor = 4 * (1 - threshold + step) / (1 + 2 * step)
    return float(min(worst_case, factor * theta * size))


def draw_halves(
    n_samples: int, strata: NDArray[Any] | None, count: int, in_pairs: bool, rng: np.random.Generator
) -> list[IntArray]:
    """Draw random halves of the rows, stratified by class."""
    halves: list[IntArray] = []
    while len(halves) < count:
        left, right = _split_in_two(n_samples, strata, rng)
        halves += [left, right] if in_pairs else [left]
    return halves[:count]


def _split_in_two(
    n_samples: int, strata: NDArray[Any] | None, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Two disjoint halves of equal size; with an odd number of rows one is left out."""
    order = rng.permutation(n_samples)
    if strata is not None:
        # Each half takes every other row of the rows sorted by class, so both have the same share of each class.
        order = order[np.argsort(strata[order], kind="stable")]
    half = n_samples // 2
    return np.sort(order[: 2 * half : 2]), np.sort(order[1 : 2 * half : 2])
