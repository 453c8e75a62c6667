"""The interface of a criterion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CriterionValue:
    """Value, gradient with respect to the kernel matrix (symmetric), and the state for a warm start."""

    value: float
    gradient: FloatArray
    warm: Any
    converged: bool = True


class Criterion(ABC):
    """A measure of a kernel matrix against the labels; smaller is better."""

    @abstractmethod
    def evaluate(self, K: FloatArray, y: FloatArray, warm: Any = None) -> CriterionValue:
        """Value and gradient at ``K`` for labels ``y`` in {-1, +1}; ``warm`` is the state of an earlier call."""


def with_ridge(K: FloatArray, C: float) -> FloatArray:
    """K + I/C: squared slacks turn a soft margin into a hard one."""
    if np.isinf(C):
        return K
    ridged = K.copy()
    ridged.flat[:: K.shape[0] + 1] += 1.0 / C
    return ridged
