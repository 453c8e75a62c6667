"""Predictors that standardise their columns and check them once."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.utils.validation import assert_all_finite

from zeronorm._types import FloatArray


class OnStandardized:
    """Fit and predict on columns of mean zero and variance one.

    A pipeline with ``StandardScaler`` does the same but checks X six times, which takes longer than fitting with few
    samples and features.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Take the means and scales of the columns, then fit the predictor."""
        X, means, scales = standardized_columns(_as_floats(X))
        assert_all_finite(X)
        return self.fit_standardized(X, means, scales, y)

    def fit_standardized(self, X: FloatArray, means: FloatArray, scales: FloatArray, y: Any) -> Self:
        """Fit the predictor on finite columns that these means and scales have standardised."""
        self.mean_, self.scale_ = means, scales
        super().fit(X, y)  # type: ignore[misc]
        return self

    def predict_standardized(self, X: FloatArray) -> Any:
        """Predictions of samples that are standardised already, and finite."""
        return super().predict(X)  # type: ignore[misc]

    def predict(self, X: Any) -> Any:
        """Predictions of the standardised samples."""
        return super().predict(self._standardized(X))  # type: ignore[misc]

    def _standardized(self, X: Any) -> NDArray[Any]:
        X = _as_floats(X)
        if X.shape[1:] != self.mean_.shape:  # one column would fit any number of means
            raise ValueError(
                f"{type(self).__name__} was fitted on {self.mean_.size} features. Got X of shape {X.shape} instead."
            )
        assert_all_finite(X, input_name="X")
        return np.asarray((X - self.mean_) / self.scale_)


def fresh_copy(estimator: Any) -> Any:
    """A copy of an unfitted estimator."""
    return copy.copy(estimator) if isinstance(estimator, OnStandardized) else copy.deepcopy(estimator)


def unchecked_parameters() -> AbstractContextManager[None]:
    """A context that skips the check of parameters, which takes a sixth of a small fit."""
    return cast("AbstractContextManager[None]", config_context(skip_parameter_validation=True))


def standardized_columns(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The columns with mean zero and variance one, their means and scales; constant columns have a scale of one."""
    n, means = len(X), X.mean(axis=0)
    centred = X - means
    variance = (centred**2).sum(axis=0) / n - centred.mean(axis=0) ** 2
    rounding = np.finfo(X.dtype).eps * n
    # A variance that rounding alone may give counts as zero.
    constant = variance <= rounding * variance + (rounding * means) ** 2
    scales = np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance))).astype(X.dtype)
    return centred / scales, means, scales


def _as_floats(X: Any) -> NDArray[Any]:
    array: NDArray[Any] = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
