"""Columns that name a sample instead of measuring it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A text column with more levels than this share of the samples is taken as an identifier.
IDENTIFIER_SHARE = 0.5
FEWEST_LEVELS = 20
_ID_NAME = re.compile(
    r"(^|[\W_])(id|ids|identifier|index|uuid|guid|barcode|accession|row|row_?number|rowname|unnamed: ?\d+)$",
    re.IGNORECASE,
)


def is_text_identifier(cells: Sequence[str | None]) -> bool:
    """Whether nearly every sample has its own text."""
    levels = len({cell for cell in cells if cell is not None})
    return levels > 2 and (levels == len(cells) or levels > max(FEWEST_LEVELS, IDENTIFIER_SHARE * len(cells)))


def is_identifier_name(name: str) -> bool:
    """Whether a name reads like that of an identifier (id, patient_id, index, …)."""
    return bool(_ID_NAME.search(name.strip()))


def numeric_identifiers(X: Any, names: Sequence[str]) -> NDArray[np.intp]:
    """Columns of whole numbers, all different, that are named like an identifier or count the rows.

    Only such columns are looked at closely, so that 10^5 measured columns cost one look at two rows.
    """
    n_samples = X.shape[0]
    if n_samples < 3 or hasattr(X, "tocsr"):
        return np.empty(0, dtype=np.intp)
    counts_up = np.abs(X[1] - X[0]) == 1.0
    named = np.fromiter((is_identifier_name(name) for name in names), dtype=bool, count=len(names))
    found = []
    for column in np.flatnonzero(counts_up | named):
        values = X[:, column]
        if not np.all(np.isfinite(values)) or np.any(values != np.round(values)):
            continue
        steps = np.diff(values)
        if np.all(steps == 1.0) or (named[column] and len(np.unique(values)) == n_samples):
            found.append(column)
    return np.asarray(found, dtype=np.intp)
