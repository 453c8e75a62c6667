"""The predictor of times to an event that uses no feature: one curve for all samples."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from zeronorm._types import FloatArray
from zeronorm.resampling.survival._curves import event_and_time, kaplan_meier


class KaplanMeier(BaseEstimator):  # type: ignore[misc]
    """The Kaplan–Meier curve of the training samples; all predicted risks are equal."""

    def fit(self, X: Any, y: Any) -> Self:
        """Estimate the curve from events and times."""
        self.curve_ = kaplan_meier(*event_and_time(y))
        return self

    def predict(self, X: Any) -> FloatArray:
        """The same log risk, zero, for each sample."""
        return np.zeros(X.shape[0])

    def predict_survival_function(self, X: Any, times: ArrayLike) -> FloatArray:
        """The curve at some times, one equal row for each sample."""
        return np.tile(self.curve_(times), (X.shape[0], 1))
