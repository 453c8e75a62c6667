"""Support vector machines with a Gaussian kernel on sparse columns, which are not centred."""

from __future__ import annotations

from typing import Any, Self

from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR


class _WidthOfDistances:
    """Take γ from the mean squared distance of two samples, twice the sum of the variances of the columns.

    Distances do not depend on the means of the columns, so this is ``gamma="scale"`` on centred columns. On others that
    setting counts differences between the means of columns as variance, and the kernel is too wide.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Set ``gamma``, then train."""
        variance = float(StandardScaler(with_mean=False).fit(X).var_.sum())
        self.gamma = 1.0 / variance if variance > 0.0 else 1.0
        super().fit(X, y, sample_weight)  # type: ignore[misc]
        return self


class SparseGaussianSVC(_WidthOfDistances, SVC):  # type: ignore[misc]
    """A classifier."""


class SparseGaussianSVR(_WidthOfDistances, SVR):  # type: ignore[misc]
    """A regression."""
