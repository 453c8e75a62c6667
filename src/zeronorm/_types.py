"""Array types used in signatures everywhere."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
Int64Array: TypeAlias = NDArray[np.int64]  # in the signatures of compiled loops
BoolArray: TypeAlias = NDArray[np.bool_]
