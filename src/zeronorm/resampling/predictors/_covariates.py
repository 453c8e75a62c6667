"""Columns whose weights a predictor leaves practically without a penalty: the covariates, which are the last ones."""

from __future__ import annotations

from typing import Any, Self

from sklearn.preprocessing import StandardScaler

# Standard deviation of the covariates where that of the features is one: the squared weights of a ridge penalty then
# count a thousandth. With 100 a logistic regression takes twice as many steps, and weights changed by 0.2 %.
DEVIATION = 30.0


class CovariateScaler(StandardScaler):  # type: ignore[misc]
    """Standardise the columns, the last of them to a larger standard deviation.

    Parameters
    ----------
    n_covariates : number of last columns that are covariates.
    with_mean : whether columns are centred.
    """

    def __init__(self, n_covariates: int = 0, *, with_mean: bool = True) -> None:
        super().__init__(with_mean=with_mean)
        self.n_covariates = n_covariates

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute means and scales."""
        super().fit(X, y, sample_weight)
        self.scale_[X.shape[1] - self.n_covariates :] /= DEVIATION
        return self
