"""Which columns hold categories instead of quantities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm.selectors.columns import column_index
from zeronorm.selectors.problem import Problem


def parse_discrete_features(discrete: Any, problem: Problem) -> NDArray[np.bool_]:
    """Mask of the columns named in ``discrete_features``: None, "all", a mask, or a list of columns."""
    p = problem.n_features
    if discrete is None:
        return np.zeros(p, dtype=bool)
    if isinstance(discrete, str) and discrete == "all":
        return np.ones(p, dtype=bool)
    if isinstance(discrete, str) or not isinstance(discrete, (Sequence, np.ndarray)):
        raise ValueError(
            "The 'discrete_features' parameter must be None, 'all', a mask, or a list of columns (positions or "
            f"names). Got {discrete!r} instead."
        )
    given = np.asarray(discrete)
    if given.dtype == bool:
        if given.shape != (p,):
            raise ValueError(
                f"The 'discrete_features' mask must have one entry per column. Got shape {given.shape} for "
                f"{p} columns."
            )
        return given.copy()
    mask = np.zeros(p, dtype=bool)
    for column in discrete:
        mask[column_index(column, p, problem.design.feature_names, "discrete_features")] = True
    return mask
