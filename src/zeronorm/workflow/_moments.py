"""The correlations that a model keeps, so that it can be applied to new samples that lack some of its features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.covariance import ledoit_wolf

from zeronorm.design import as_design
from zeronorm.resampling._splits import dense_columns
from zeronorm.result._moments import Moments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zeronorm.datasets import Table

# A file of a model with all of them has about 100 kB of correlations.
MOST_SELECTED = 120  # features of a model; with more, no correlations are kept
PER_FEATURE, MOST_OTHERS = 3, 40  # features that are kept beside those of the model
DIGITS = 6


def moments_of(table: Table, columns: NDArray[np.intp]) -> Moments | None:
    """Correlations of the selected features and of those most correlated with them; None with very many features."""
    if not 0 < columns.size <= MOST_SELECTED:
        return None
    selected = _standardized(dense_columns(table.X, columns))[0]
    kept = np.concatenate([columns, _others(table.X, columns, selected)])
    values, mean, scale = _standardized(dense_columns(table.X, kept))
    covariance = ledoit_wolf(values, assume_centered=True)[0]
    unit = np.sqrt(np.diag(covariance).clip(1e-300))
    correlation = covariance / np.outer(unit, unit)
    np.fill_diagonal(correlation, 1.0)
    return Moments(
        [str(table.feature_names[i]) for i in kept],
        mean.tolist(),
        scale.tolist(),
        correlation.round(DIGITS).tolist(),
    )


def _standardized(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """The columns with mean 0 and standard deviation 1, their means and deviations; a constant one becomes 0."""
    mean, scale = values.mean(axis=0), values.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    return (values - mean) / scale, mean, scale


def _others(X: Any, columns: NDArray[np.intp], selected: NDArray[np.float64]) -> NDArray[np.intp]:
    """For each selected feature in turn the most correlated of the others, until enough are found."""
    design = as_design(X)
    products = np.abs(design.transpose_dot(selected))
    variance = design.column_stats().variance
    usable = variance > 0.0
    usable[columns] = False
    absolute = np.where(usable[:, None], products / np.sqrt(np.where(usable, variance, 1.0))[:, None], -1.0)
    n_each = min(PER_FEATURE, int(usable.sum()))
    if n_each == 0:
        return np.empty(0, dtype=np.intp)
    best = np.argpartition(-absolute, n_each - 1, axis=0)[:n_each]
    order = np.argsort(-np.take_along_axis(absolute, best, axis=0), axis=0, kind="stable")
    found = dict.fromkeys(np.take_along_axis(best, order, axis=0).ravel().tolist())
    return np.asarray(list(found)[:MOST_OTHERS], dtype=np.intp)
