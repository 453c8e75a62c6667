"""The path of the final fit: which features are in the subset of each size, and the objective."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm.selection.path import SelectionPath

MOST_FEATURES = 40
MOST_SIZES = 40
MOST_RANKED = 200
MOST_LINES = 10


def path_figure(path: SelectionPath, largest: int) -> dict[str, Any] | None:
    """Membership of the leading features over the sizes up to ``largest``, and the objective where known."""
    sizes = _sizes(path, largest)
    if len(sizes) < 2:
        return None
    subsets = {size: set(path.support(size).tolist()) for size in sizes}
    ever = set().union(*subsets.values())
    features = [int(index) for index in path.order if index in ever][:MOST_FEATURES]
    return {
        "sizes": sizes,
        "features": features,
        "members": [[int(index in subsets[size]) for size in sizes] for index in features],
        "is_nested": path.is_nested,
        "objective": _objective(path),
    }


def leading_features(path: SelectionPath, n_selected: int) -> list[int]:
    """The features at the head of the order: those selected and as many again, at most 200."""
    return [int(index) for index in path.order[: min(path.n_features, MOST_RANKED, max(40, 2 * n_selected))]]


def weights_over_time(selector: Any, features: list[int]) -> dict[str, Any] | None:
    """Feature weights at the snapshots of a method that learns them step by step.

    A method offers them as ``history_`` with ``steps`` and ``weights`` (snapshots by features).
    """
    history: Any = getattr(selector, "history_", None)
    weights = getattr(history, "weights", None)
    if weights is None or len(weights) < 2 or not features:
        return None
    shown = features[:MOST_LINES]
    values = np.asarray(weights, dtype=np.float64)[:, shown].T
    return {"steps": [int(step) for step in history.steps], "features": shown, "values": values.tolist()}


def _sizes(path: SelectionPath, largest: int) -> list[int]:
    """Up to 40 sizes the path can give, spread evenly on a logarithmic scale."""
    smallest = int(path.sizes[0]) if path.sizes.size and path.groups is not None else 1
    smallest = max(smallest, int(path.always_keep.size), 1)
    largest = min(max(largest, smallest), path.n_features)
    if largest - smallest < MOST_SIZES:
        return list(range(smallest, largest + 1))
    grid = np.unique(np.geomspace(smallest, largest, MOST_SIZES).round().astype(int))
    return [int(size) for size in grid]


def _objective(path: SelectionPath) -> list[tuple[int, float]] | None:
    if path.objective is None:
        return None
    sizes = [len(s) for s in path.subsets] if path.subsets is not None else path.visited_sizes
    if sizes is None or len(sizes) != len(path.objective):
        return None
    pairs = [(int(s), float(v)) for s, v in zip(sizes, path.objective, strict=True) if np.isfinite(v)]
    return pairs[:MOST_RANKED] or None


# -- Figures of the selected columns themselves: values across samples, and redundancy --


MOST_COLUMNS = 60
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
    shown = columns[:MOST_COLUMNS]
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
    shown = columns[:MOST_COLUMNS]
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
