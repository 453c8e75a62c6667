"""All pairs of methods in the records of ``evaluate``."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from zeronorm.evaluation.records import cells_by_method, frame_of_rows
from zeronorm.evaluation.significance.paired import corrected_resampled_t, signed_rank
from zeronorm.selectors.meta.multiplicity import adjust_p_values


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
