r"""Integrated path stability selection: expected false selections and q-values from rankings on halves of the samples.

Used by StabilitySelection. With :math:`\pi_j(k)` the share of 2B halves (B complementary pairs) on which feature j is
among the first k of p features, and :math:`f(x) = (2x - 1)^3` for :math:`x \ge 1/2`, otherwise 0, the score of a
feature and the expected number of irrelevant features with a score of at least :math:`\tau` are

.. math:: s_j = \frac1K \sum_{k=1}^K f(\pi_j(k)), \qquad
    E[V(\tau)] \le \frac{I}{\tau}, \qquad I = \frac1K \sum_{k=1}^K b(k), \qquad
    b(k) \ge E \sum_{j\ \text{irrelevant}} f(\pi_j(k))

by Markov's inequality (Melikechi & Miller 2025, with the size k as the path parameter and equal weights of the sizes;
scores and bound have the same weights). The largest size K is the last one with :math:`I \le 0.05`.

The paper's :math:`b(k) = \frac{k^2}{B^2 p} + \frac{3 (B-1) k^4}{B^2 p^3} + \frac{(B-1)(B-2) k^6}{B^2 p^5}` takes the
selections of an irrelevant feature on different pairs as independent. All pairs are drawn from the same samples, so a
feature that is related to the target by chance is selected on most of them, and the bound is exceeded even for
independent features. The sum over all features with a permuted target measures b(k) instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray

LARGEST_INTEGRAL = 0.05  # expected false selections with the largest possible score; C of the paper


def cubic(share: FloatArray) -> FloatArray:
    """The function f of a share of the halves."""
    return np.asarray(np.clip(2.0 * share - 1.0, 0.0, 1.0) ** 3)


def independent_pairs_bound(sizes: NDArray[np.intp], n_features: int, n_pairs: int) -> FloatArray:
    """The paper's b(k) for each size, which takes the pairs of halves as independent."""
    share = np.asarray(sizes, dtype=np.float64) / n_features
    B = float(n_pairs)
    moments = share**2 + 3.0 * (B - 1.0) * share**4 + (B - 1.0) * (B - 2.0) * share**6
    return np.asarray(n_features * moments / B**2)


def summed_paths(positions: IntArray) -> FloatArray:
    """The sum of f(π_j(k)) over all features for k = 1, …, p, from the positions (0 is best) by half and feature."""
    steps = _steps(len(positions))
    jumps = np.repeat(steps, positions.shape[1])
    added = np.bincount(np.sort(positions, axis=0).ravel(), weights=jumps, minlength=positions.shape[1])
    return np.asarray(np.cumsum(added))


def integrated_scores(positions: IntArray, largest: int) -> FloatArray:
    """The score s_j of each feature; ``largest`` is the size K."""
    # The i-th smallest position r of a feature raises π to i/2B for the K - r sizes above r.
    remaining = np.maximum(largest - np.sort(positions, axis=0), 0)
    return np.asarray(_steps(len(positions)) @ remaining / largest)


def shares_by_size(positions: IntArray, n_sizes: int) -> FloatArray:
    """π_j(k) of each feature for k = 1, …, ``n_sizes``, from the positions (0 is best) by half and feature."""
    counts = [np.bincount(column, minlength=n_sizes)[:n_sizes] for column in np.minimum(positions, n_sizes).T]
    return np.asarray(np.cumsum(counts, axis=1) / len(positions))


def _steps(n_halves: int) -> FloatArray:
    """The increase of f(π) where π rises from (i - 1)/2B to i/2B."""
    return np.diff(cubic(np.arange(n_halves + 1) / n_halves))


@dataclass(frozen=True, eq=False)
class IntegratedPaths:
    """Integrated path stability selection of one data set.

    ``expected_false`` is the expected number of false selections if the features with at least the score of this one
    are selected, ``q_values`` the smallest estimated false discovery rate at which a feature is selected.
    """

    largest_size: int
    scores: FloatArray
    expected_false: FloatArray
    q_values: FloatArray


def integrate_paths(
    positions: IntArray, permuted: list[IntArray], most: int | None = None
) -> IntegratedPaths:
    """Scores and q-values from positions by half and feature, with the observed target and with permuted ones.

    Without permuted targets the bound of independent pairs is used alone; a measured one is never below it. ``most``
    limits the size K.
    """
    n_halves, p = positions.shape
    bound = independent_pairs_bound(np.arange(1, p + 1), p, n_halves // 2)
    if permuted:
        bound = np.maximum(bound, np.mean([summed_paths(one) for one in permuted], axis=0))
    largest = _largest_size(bound, most)
    integral = float(bound[:largest].mean())
    scores = integrated_scores(positions, largest)
    expected = integral / np.maximum(scores, integral / p)
    return IntegratedPaths(largest, scores, expected, q_values_of(expected))


def most_sizes(n_features: int, n_halves: int, most: int | None = None) -> int:
    """The largest size K that any permuted targets can give: what follows on the paths does not count."""
    return _largest_size(
        independent_pairs_bound(np.arange(1, n_features + 1), n_features, n_halves // 2), most
    )


def _largest_size(bound: FloatArray, most: int | None) -> int:
    integral = (np.cumsum(bound) / np.arange(1, bound.size + 1))[:most]
    above = np.flatnonzero(integral > LARGEST_INTEGRAL)
    return max(1, int(above[0]) if above.size else int(integral.size))


def q_values_of(expected_false: FloatArray) -> FloatArray:
    """The least ratio of expected false selections to selections over all thresholds that select the feature."""
    order = np.argsort(expected_false, kind="stable")
    ordered = expected_false[order]
    n_selected = np.searchsorted(ordered, ordered, side="right")
    found = np.empty_like(expected_false)
    found[order] = np.minimum.accumulate((ordered / n_selected)[::-1])[::-1]
    return np.minimum(found, 1.0)
