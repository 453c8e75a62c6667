# mypy: allow-untyped-defs
"""The data and the binary or multi-class problems on which subsets of features are tried."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, Int64Array


class Pool(NamedTuple):
    """Samples to draw training and test sets from, and how mistakes are counted.

    ``columns`` has one row per feature. Row m of ``coding`` gives the label of each class in machine m: one
    row 0, 1, … for a multi-class learner, one row per class for one-against-all, a code word per machine for
    output codes. ``class_cost`` is the cost of a mistake on a sample of each class; with ``balanced`` the
    error rates of the labels are averaged instead.
    """

    columns: NDArray[np.floating[Any]]
    codes: Int64Array
    test_columns: NDArray[np.floating[Any]]
    test_codes: Int64Array
    coding: Int64Array
    n_labels: int
    class_cost: FloatArray
    balanced: bool


@kernel
def labels_of(coding, codes, rows):
    """Labels in one machine of the chosen samples."""
    out = np.empty(rows.shape[0], np.int64)
    for i in range(rows.shape[0]):
        out[i] = coding[codes[rows[i]]]
    return out


@kernel
def machine_cost(pool, m, rows, predicted):
    """Mean cost of the predictions of machine ``m`` on the chosen test samples, between 0 and 1."""
    wrong = np.zeros(pool.n_labels)
    weight = np.zeros(pool.n_labels)
    for i in range(rows.shape[0]):
        code = pool.test_codes[rows[i]]
        label = pool.coding[m, code]
        weight[label] += pool.class_cost[code]
        if predicted[i] != label:
            wrong[label] += pool.class_cost[code]
    if not pool.balanced:
        return wrong.sum() / weight.sum()
    total = 0.0
    present = 0
    for label in range(pool.n_labels):
        if weight[label] > 0.0:
            total += wrong[label] / weight[label]
            present += 1
    return total / present
