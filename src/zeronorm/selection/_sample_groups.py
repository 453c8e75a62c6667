"""Groups of dependent samples: the samples of one patient, batch or plate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import IntArray


def group_codes(groups: NDArray[Any]) -> IntArray:
    """The code 0, 1, … of the group of each sample; labels are compared as text."""
    return np.asarray(np.unique(np.asarray(groups).astype(str), return_inverse=True)[1], dtype=np.intp)


def members_of(codes: IntArray) -> list[IntArray]:
    """The rows of each group, ascending."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes))[:-1])
