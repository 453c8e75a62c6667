"""Two methods on the same splits or data sets."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from zeronorm.engines.error_control import adjust_p_values
from zeronorm.evaluation.records import cells_by_method, frame_of_rows
from zeronorm.evaluation.significance.effects import (
    EffectSize,
    check_differences,
    hodges_lehmann,
    mean_difference,
    standard_error,
)


@dataclass(frozen=True)
class CorrectedT:
    """Result of the corrected resampled t-test."""

    statistic: float
    df: int
    p_value: float
    difference: EffectSize


@dataclass(frozen=True)
class SignedRank:
    """Result of the Wilcoxon signed rank test; ``rank_biserial`` is in [-1, 1]."""

    rank_sum_positive: float
    rank_sum_negative: float
    p_value: float
    rank_biserial: float
    difference: EffectSize


def corrected_resampled_t(
    a: ArrayLike, b: ArrayLike, *, n_train: float, n_test: float, confidence: float = 0.95
) -> CorrectedT:
    r"""Test for J resplits of one data set (Nadeau & Bengio 2003), two-sided.

    .. math:: t = \frac{\bar d}{\sqrt{(1/J + n_{test}/n_{train})\, \hat\sigma^2}}, \qquad df = J - 1

    The training parts overlap, so the differences :math:`d_j = a_j - b_j` vary too little; the second
    term makes up for it.
    """
    if n_train < 1 or n_test < 1:
        raise ValueError(f"'n_train' and 'n_test' must be at least 1. Got {n_train} and {n_test}.")
    d = _paired(a, b)
    effect = mean_difference(d, test_train_ratio=n_test / n_train, confidence=confidence)
    error = standard_error(d, n_test / n_train)
    # Rounding may leave a spread of 1e-17 in differences that are all the same.
    if error <= 1e-14 * np.abs(d).max(initial=0.0):
        error = 0.0
    if error == 0.0:
        t = 0.0 if effect.estimate == 0.0 else float(np.copysign(np.inf, effect.estimate))
    else:
        t = effect.estimate / error
    p_value = float(2 * stats.t.sf(abs(t), d.size - 1))
    return CorrectedT(float(t), d.size - 1, p_value, effect)


def signed_rank(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95) -> SignedRank:
    """Wilcoxon signed rank test for independent data sets or draws, two-sided.

    Differences of zero share their ranks between both signs, as in Demšar (2006). Not for resplits
    of one data set, whose differences are dependent: see ``corrected_resampled_t``.
    """
    d = _paired(a, b)
    ranks = stats.rankdata(np.abs(d))
    positive = float(ranks[d > 0].sum() + ranks[d == 0].sum() / 2)
    negative = float(ranks.sum() - positive)
    if np.all(d == 0):
        p_value = 1.0
    else:
        tied = np.unique(np.abs(d)).size < d.size or np.any(d == 0)
        method = "exact" if d.size <= 50 and not tied else "approx"
        p_value = float(stats.wilcoxon(d, zero_method="zsplit", method=method).pvalue)
    biserial = (positive - negative) / (positive + negative)
    return SignedRank(positive, negative, p_value, biserial, hodges_lehmann(d, confidence=confidence))


def _paired(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.shape != right.shape:
        raise ValueError(
            f"The two methods must have the same number of values. Got {left.shape} and {right.shape}."
        )
    return check_differences(left - right)


# -- All pairs of methods in the records of ``evaluate`` --


def compare_methods(
    records: Any,
    metric: str,
    *,
    size: int | None = None,
    reference: str | None = None,
    test: str = "corrected_t",
    correction: str = "holm",
    confidence: float = 0.95,
) -> Any:
    """Differences of a metric between methods at one size, with intervals and corrected p-values.

    Parameters
    ----------
    records : from ``evaluate``.
    size : the size to compare at; None for the methods' own sizes.
    reference : compare all methods to this one; None compares all pairs.
    test : "corrected_t" for resplits of one data set, "wilcoxon" for independent draws.
    correction : see ``adjust_p_values``.

    Returns
    -------
    A frame with one row per pair: ``method, reference, difference`` (method minus reference), ``low,
    high, p_value, adjusted_p_value, n_splits``.
    """
    if test not in ("corrected_t", "wilcoxon"):
        raise ValueError(f"The 'test' parameter must be 'corrected_t' or 'wilcoxon'. Got {test!r} instead.")
    cells = cells_by_method(records, size, (metric, "n_train", "n_test"))
    rows = []
    for method, other in _pairs(list(cells), reference):
        a, b = (np.asarray([row[metric] for row in cells[name]], dtype=float) for name in (method, other))
        if test == "wilcoxon":
            result: Any = signed_rank(a, b, confidence=confidence)
        else:
            n_train, n_test = (
                np.mean([row[name] for row in cells[method]]) for name in ("n_train", "n_test")
            )
            result = corrected_resampled_t(a, b, n_train=n_train, n_test=n_test, confidence=confidence)
        rows.append(
            {
                "method": method,
                "reference": other,
                "difference": result.difference.estimate,
                "low": result.difference.low,
                "high": result.difference.high,
                "p_value": result.p_value,
                "n_splits": len(a),
            }
        )
    for row, adjusted in zip(rows, adjust_p_values([r["p_value"] for r in rows], correction), strict=True):
        row["adjusted_p_value"] = float(adjusted)
    return frame_of_rows(rows)


def _pairs(methods: list[str], reference: str | None) -> list[tuple[str, str]]:
    if reference is None:
        pairs = list(combinations(methods, 2))
    elif reference in methods:
        pairs = [(name, reference) for name in methods if name != reference]
    else:
        raise ValueError(f"The 'reference' parameter must be one of {methods}. Got {reference!r} instead.")
    if not pairs:
        raise ValueError(f"A comparison needs at least two methods. Got {methods}.")
    return pairs
