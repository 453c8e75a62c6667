"""Missing values: found, explained, and handled the way the user chose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from zeronorm.datasets.errors import DataError, shown

MissingChoice = Literal["error", "median", "drop-rows", "drop-columns"]
MISSING_CHOICES: tuple[str, ...] = get_args(MissingChoice)


def missing_per_column(X: Any) -> NDArray[np.intp]:
    """How many values each column misses."""
    if hasattr(X, "tocsc"):
        by_column = X.tocsc()
        flags = np.concatenate([[0], np.cumsum(np.isnan(by_column.data))])
        return np.asarray(flags[by_column.indptr[1:]] - flags[by_column.indptr[:-1]], dtype=np.intp)
    return np.asarray(np.count_nonzero(np.isnan(X), axis=0), dtype=np.intp)


def check_finite(X: Any, names: Sequence[str]) -> None:
    """Refuse infinite values."""
    data = X.data if hasattr(X, "tocsc") else X
    if not np.any(np.isinf(data)):
        return
    columns = (
        X.tocoo().col[np.isinf(X.tocoo().data)] if hasattr(X, "tocsc") else np.flatnonzero(np.isinf(X).any(0))
    )
    raise DataError(
        f"The column {shown(names[int(columns[0])])} holds infinite values. Correct them, or leave the column out "
        "with --ignore."
    )


def complain(counts: NDArray[np.intp], names: Sequence[str], n_samples: int) -> DataError:
    """The error that explains what is missing and what the choices are."""
    columns = np.flatnonzero(counts)
    worst = int(columns[np.argmax(counts[columns])])
    share = counts.sum() / max(1, n_samples * len(counts))
    return DataError(
        f"{int(counts.sum())} values are missing ({share:.1%} of all) in {len(columns)} of {len(counts)} columns, "
        f"most in {shown(names[worst])} ({int(counts[worst])} of {n_samples}). Choose --missing median, "
        "drop-rows or drop-columns."
    )


def fill_with_medians(X: Any, counts: NDArray[np.intp], names: Sequence[str]) -> Any:
    """A copy of ``X`` in which each missing value is the median of the known values of its column."""
    columns = np.flatnonzero(counts)
    empty = columns[counts[columns] == X.shape[0]]
    if empty.size:
        raise DataError(
            f"The column {shown(names[int(empty[0])])} has no values at all, so there is no median. "
            "Leave it out with --ignore or choose --missing drop-columns."
        )
    if hasattr(X, "tocsc"):
        return _fill_sparse(X, columns)
    filled = X.copy(order="K")
    for column in columns:
        values = filled[:, column]
        values[np.isnan(values)] = np.nanmedian(values)
    return filled


def _fill_sparse(X: Any, columns: NDArray[np.intp]) -> Any:
    filled = X.tocsc(copy=True)
    for column in columns:
        part = slice(filled.indptr[column], filled.indptr[column + 1])
        known = np.zeros(X.shape[0])
        known[filled.indices[part]] = filled.data[part]
        values = filled.data[part]
        values[np.isnan(values)] = np.nanmedian(known)
    return filled.tocsr()
