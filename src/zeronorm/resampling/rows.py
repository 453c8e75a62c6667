"""Rows and columns of data in any home."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from zeronorm._types import IntArray
from zeronorm.design import Design


def take_rows(X: Any, rows: IntArray) -> Any:
    """The given samples, in the same kind of container."""
    if isinstance(X, Design):
        return X.take_rows(rows)
    return X[rows] if isinstance(X, np.ndarray) else _safe_indexing(X, rows)


def take_columns(X: Any, columns: IntArray) -> Any:
    """The given features as something a scikit-learn estimator can be fitted on."""
    if isinstance(X, Design):
        return X.block(columns)
    if isinstance(X, np.ndarray):
        return X[:, columns]
    return _safe_indexing(X, columns, axis=1)
