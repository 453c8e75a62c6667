"""Rows of records, made by hand and by small evaluations."""

from __future__ import annotations

import numpy as np
import polars as pl

from zeronorm import FisherScore, SelectionPath, evaluate
from zeronorm.evaluation import METRICS


def fold_rows(truth, predictions, n_folds=5, repeats=1, **more):
    """Rows of records; the samples are assigned to the test folds in turn."""
    truth, predictions = np.asarray(truth), np.asarray(predictions)
    rows = []
    for split in range(n_folds * repeats):
        test = np.arange(split % n_folds, truth.size, n_folds)
        row = {"test_rows": test, "truth": truth[test], "predictions": predictions[test]}
        row |= {"n_test": test.size, "n_train": truth.size - test.size}
        row |= {name: np.asarray(values)[test] for name, values in more.items()}
        for name in ("error_rate", "balanced_error_rate"):
            row[name] = METRICS[name].function(row["truth"], row["predictions"])
        rows.append(row)
    return rows


class Reversed(FisherScore):
    """The worst features first."""

    def _select(self, problem):
        return SelectionPath(order=super()._select(problem).order[::-1].copy())


def records_of_three():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 8))
    X[:, 7] += 1.5 * y
    selectors = {"fisher": FisherScore(), "reversed": Reversed(), "again": FisherScore()}
    return evaluate(selectors, X, y, cv=5, sizes=[1, 2])


def records_with_errors(*counts):
    """One test fold of 60 samples, and a method for each number of errors."""
    return pl.DataFrame(
        [
            {
                "split": 0, "method": str(n_wrong), "size": None, "truth": [0] * 60, "error_rate": n_wrong / 60,
                "predictions": [1] * n_wrong + [0] * (60 - n_wrong), "test_rows": list(range(60)),
                "n_train": 60, "n_test": 60,
            }
            for n_wrong in counts
        ]
    )  # fmt: skip
