"""The value of features and groups for linear machines."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class LinearValue(ABC):
    """Machines with one weight per feature and machine."""

    @abstractmethod
    def weights(self) -> FloatArray:
        """One row per feature that is left, one column per machine."""

    def importance(self) -> FloatArray:
        r"""Squared weights summed over machines, :math:`\sum_c w_{ck}^2`."""
        return np.asarray((self.weights() ** 2).sum(axis=1))

    def group_importance(self, unit: IntArray) -> FloatArray:
        r"""Absolute weights summed over machines and over the group, :math:`\sum_{k \in g} \sum_c |w_{ck}|`."""
        return np.bincount(unit, weights=np.abs(self.weights()).sum(axis=1)).astype(np.float64)
