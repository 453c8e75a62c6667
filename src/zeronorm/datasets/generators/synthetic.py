"""What a generator returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Seed = int | np.random.Generator | None


class SyntheticData(NamedTuple):
    """Samples whose relevant features are known: ``X, y, relevant = make_…()``."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    relevant: NDArray[np.intp]


def random_signs(n_samples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Labels -1 and +1 with equal probability."""
    return 2 * rng.integers(0, 2, size=n_samples) - 1


def standardized(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns with mean zero and standard deviation one."""
    deviation = X.std(axis=0)
    return np.asarray((X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0))
