"""The columns of covariates, apart from the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import Message, parameter
from zeronorm.datasets._raw import RawTable, matching
from zeronorm.datasets._table import (
    DataError,
    counted,
    shown,
    shown_list,
)
from zeronorm.design import Design


def columns_of_covariates(
    raw: RawTable, sources: NDArray[np.intp], adjust: Sequence[str]
) -> NDArray[np.intp]:
    """The encoded columns that are covariates; an error for a covariate that is no column of the features."""
    found: list[int] = []
    for name in adjust:
        columns = np.flatnonzero(np.isin(sources, matching(raw.names, name, "adjust")))
        if columns.size == 0:
            raise DataError(
                f"names {shown(name)}, which is the target or a column that is left out. Name columns of the table "
                "that are measured beside the features.",
                "adjust",
            )
        found += columns.tolist()
    return np.unique(np.asarray(found, dtype=np.intp))


def covariates_apart(X: Any, names: Sequence[str], covariates: NDArray[np.intp]) -> dict[str, Any]:
    """The fields of a table for these columns; empty where there are none."""
    if covariates.size == 0:
        return {}
    block = X.block(covariates) if isinstance(X, Design) else X[:, covariates]
    values = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
    return {
        "covariates": values.astype(np.float64),
        "covariate_names": tuple(str(names[i]) for i in covariates),
    }


def adjusted_note(adjust: Sequence[str], names: Sequence[str]) -> str:
    """The note that says what the features are selected beside."""
    coded = "" if len(names) == len(adjust) else f", as {counted(len(names), 'column')}"
    return Message(
        f"Features are selected for what they add to {shown_list(list(adjust))}{coded}, which every model has "
        f"({parameter('adjust')})."
    )


# -- Texts as numbers ---------------------------------------------------------------------------------
