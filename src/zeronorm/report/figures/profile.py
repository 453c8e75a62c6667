"""Figures of the selected columns themselves: values across samples, and redundancy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_FEATURES = 60
MOST_SAMPLES = 300
N_LEVELS = 9  # colours of the heat map, the middle one for the mean
WIDEST_DEVIATION = 2.25  # standard deviations at which the colours end


def dense_columns(X: Any, columns: NDArray[np.intp]) -> NDArray[np.float64]:
    """Some columns of a dense or sparse table as a dense array."""
    part = X[:, columns]
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)


def value_map(
    X: Any, y: NDArray[Any], columns: NDArray[np.intp], *, sorted_target: bool = False
) -> dict[str, Any] | None:
    """Standardised values of the selected features across samples, both clustered, as colour levels.

    Samples are ordered by class and clustered within it (for regression, sorted by the target).
    Of more than 300 samples an evenly spaced part of this order is shown.
    """
    if columns.size == 0:
        return None
    shown = columns[:MOST_FEATURES]
    values = _standardized(dense_columns(X, shown))
    samples = np.argsort(y, kind="stable") if sorted_target else _by_class(values, y)
    if len(samples) > MOST_SAMPLES:
        samples = samples[np.linspace(0, len(samples) - 1, MOST_SAMPLES).round().astype(np.intp)]
    features = _clustered(values.T, metric="correlation")
    step = 2.0 * WIDEST_DEVIATION / N_LEVELS
    levels = np.floor((values + WIDEST_DEVIATION) / step).clip(0, N_LEVELS - 1).astype(int)
    return {
        "features": shown[features].tolist(),
        "samples": samples.tolist(),
        "classes": [str(label) for label in y[samples]],
        "levels": levels[np.ix_(samples, features)].T.tolist(),
        "n_samples": len(y),
        "n_features": int(columns.size),
    }


def redundancy_map(X: Any, columns: NDArray[np.intp]) -> dict[str, Any] | None:
    """Correlations between the selected features, in clustered order."""
    if columns.size < 2:
        return None
    shown = columns[:MOST_FEATURES]
    values = _standardized(dense_columns(X, shown))
    correlation = (values.T @ values / len(values)).clip(-1.0, 1.0)
    order = _clustered(values.T, metric="correlation")
    return {
        "features": shown[order].tolist(),
        "correlation": correlation[np.ix_(order, order)].round(3).tolist(),
        "n_features": int(columns.size),
    }


def _standardized(values: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0))


def _by_class(values: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.intp]:
    order = []
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        # Clustering needs all pairs: a large class is shown by an evenly spaced part.
        if len(members) > 4 * MOST_SAMPLES:
            members = members[np.linspace(0, len(members) - 1, 4 * MOST_SAMPLES).round().astype(np.intp)]
        order.append(members[_clustered(values[members], metric="euclidean")])
    return np.concatenate(order)


def _clustered(rows: NDArray[np.float64], *, metric: str) -> NDArray[np.intp]:
    """Order of the leaves of average linkage; correlation is by absolute value, so that signs do not matter."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import pdist, squareform

    if len(rows) < 3:
        return np.arange(len(rows))
    if metric == "correlation":
        similarity = np.abs(rows @ rows.T) / rows.shape[1]
        np.fill_diagonal(similarity, 1.0)
        distances = squareform((1.0 - similarity).clip(0.0), checks=False)
    else:
        distances = pdist(rows)
    return np.asarray(leaves_list(linkage(distances, method="average")), dtype=np.intp)
