"""Missing values, filled on each training part with its own medians, so that no test sample has a say in them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import has_fit_parameter

from zeronorm.datasets.encoding import column_medians, fill
from zeronorm.resampling.estimators import fitted_path, own_support

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zeronorm.datasets import Table


class MedianFill(TransformerMixin, BaseEstimator):
    """Replaces missing values by the medians of the columns it was fitted on; 0 where a column had no value."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the medians."""
        self.medians_ = column_medians(X)
        return self

    def transform(self, X: Any) -> Any:
        """A copy without gaps."""
        return fill(X, self.medians_)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags


class OnFilled(BaseEstimator):
    """A procedure that is fitted on samples whose gaps are filled with their own medians.

    Parameters
    ----------
    procedure : selector that takes no missing values.
    """

    def __init__(self, procedure: Any) -> None:
        self.procedure = procedure

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fill and select."""
        params = (
            {"groups": groups} if groups is not None and has_fit_parameter(self.procedure, "groups") else {}
        )
        self.procedure_ = clone(self.procedure).fit(MedianFill().fit(X).transform(X), y, **params)
        self.path_ = fitted_path(self.procedure_, int(X.shape[1]))
        self.converged_ = bool(getattr(self.procedure_, "converged_", self.path_.converged))
        return self

    def get_support(self) -> NDArray[np.bool_]:
        """The features the procedure settled on."""
        mask = np.zeros(self.path_.n_features, dtype=bool)
        mask[own_support(self.procedure_, self.path_)] = True
        return mask


def selector_for(table: Table, procedure: Any) -> Any:
    """The procedure, made fit for the gaps of the table."""
    return OnFilled(procedure) if table.n_missing else procedure


def predictor_for(table: Table, estimator: Any) -> Any:
    """The predictor, made fit for the gaps of the table."""
    return make_pipeline(MedianFill(), estimator) if table.n_missing else estimator


def filled(table: Table) -> Table:
    """The table without gaps, for what is fitted on all samples: the final set, its description and its model."""
    if not table.n_missing:
        return table
    return replace(table, X=MedianFill().fit(table.X).transform(table.X), n_missing=0)
