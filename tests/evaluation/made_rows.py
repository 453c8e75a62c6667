"""Rows of records made by hand."""

from __future__ import annotations

import numpy as np

from zeronorm.evaluation import METRICS


def parts(truth, predictions, n_parts=5, repeats=1, **more):
    """Rows of records, the samples dealt out to the test parts in turn."""
    truth, predictions = np.asarray(truth), np.asarray(predictions)
    rows = []
    for split in range(n_parts * repeats):
        test = np.arange(split % n_parts, truth.size, n_parts)
        row = {"test_rows": test, "truth": truth[test], "predictions": predictions[test]}
        row |= {"n_test": test.size, "n_train": truth.size - test.size}
        row |= {name: np.asarray(values)[test] for name, values in more.items()}
        for name in ("error_rate", "balanced_error_rate"):
            row[name] = METRICS[name].function(row["truth"], row["predictions"])
        rows.append(row)
    return rows
