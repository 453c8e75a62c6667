"""Array types for signatures, and the text of single values in messages."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
Int64Array: TypeAlias = NDArray[np.int64]  # in the signatures of compiled loops
BoolArray: TypeAlias = NDArray[np.bool_]

# NumPy 2 adds the name of the type to a single value, which is of no use in a message.
_WITHOUT_TYPES: dict[str, Any] = {} if np.lib.NumpyVersion(np.__version__) < "2.0.0" else {"legacy": "1.25"}


def written(value: Any) -> str:
    """Text of a value for a message: 'q' and 0 rather than np.str_('q') and np.int64(0), also inside of lists."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return str(value)
    with np.printoptions(**_WITHOUT_TYPES):
        return repr(value)
