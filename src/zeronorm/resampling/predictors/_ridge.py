"""Ridge regression with a given penalty or one chosen by leave-one-out cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.linear_model import Ridge

from zeronorm.resampling.predictors._standardized import OnStandardized, unchecked_parameters

RIDGE_PENALTIES = np.geomspace(1e-2, 1e4, 13)


class _QuickRidge(Ridge):  # type: ignore[misc]
    """Ridge regression that predicts samples without checking them again."""

    def fit(self, X: Any, y: Any) -> Self:
        with unchecked_parameters():
            super().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return X @ self.coef_.T + self.intercept_


class StandardizedRidge(OnStandardized, _QuickRidge):
    """Ridge regression on standardised columns."""


class _TunedRidge(_QuickRidge):
    """Ridge regression with the penalty of the lowest leave-one-out error; the columns are centred."""

    def fit(self, X: Any, y: Any) -> Self:
        X = X.astype(np.float64, copy=False)
        self.intercept_ = float(np.mean(y))
        target = y - self.intercept_
        is_tall = X.shape[0] > X.shape[1]
        values, vectors = np.linalg.eigh(X.T @ X if is_tall else X @ X.T)
        present = values > np.finfo(float).eps * X.shape[0] * max(values[-1], np.finfo(float).tiny)
        values, vectors = values[present], vectors[:, present]
        scores = X @ vectors / np.sqrt(values) if is_tall else vectors  # orthonormal, one row per sample
        projected = scores.T @ target
        kept = values[:, None] / (values[:, None] + RIDGE_PENALTIES)  # share of each direction, by penalty
        leverage = scores**2 @ kept + 1.0 / X.shape[0]
        left_out = (target[:, None] - scores @ (kept * projected[:, None])) / np.maximum(1.0 - leverage, 1e-9)
        self.alpha_ = float(RIDGE_PENALTIES[np.argmin(np.mean(left_out**2, axis=0))])
        along = projected / (values + self.alpha_)
        self.coef_ = vectors @ (np.sqrt(values) * along) if is_tall else X.T @ (vectors @ along)
        return self


class StandardizedTunedRidge(OnStandardized, _TunedRidge):
    """Ridge regression on standardised columns, with a penalty chosen by leave-one-out cross-validation."""
