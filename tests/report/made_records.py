"""Records with given values, for tests of the report."""

from __future__ import annotations

import polars as pl


def made_records(metric, values, *, n_train=30, n_test=10, sizes=(1, None)):
    """Records of several methods with given values of a metric, one per split."""
    rows = [
        {
            "split": split,
            "method": method,
            "size": size,
            "n_selected": size or 3,
            metric: value,
            "selected": [(3 * split + i) % 40 for i in range(size or 3)],
            "predictions": ["a", "b"] * (n_test // 2),
            "decision": None,
            "truth": ["a", "b"] * (n_test // 2),
            "test_rows": list(range(n_test)),
            "n_train": n_train,
            "n_test": n_test,
            "fit_seconds": 0.1,
            "converged": True,
            "error": None,
        }
        for method, per_split in values.items()
        for size in sizes
        for split, value in enumerate(per_split)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)
