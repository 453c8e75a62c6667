"""The selection path of a fitted selector, from this package or elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm.selection._path import SelectionPath


def fitted_path(selector: Any, n_features: int) -> SelectionPath:
    """The path of a fitted selector: its ``path_``, that of its best estimator, or one made from its ranking.

    For other selectors it is made from ``ranking_`` (1 is best) or ``scores_`` (bigger is better);
    ``get_support`` gives the selected size.
    """
    inner = _unwrapped(selector)
    path = getattr(inner, "path_", None)
    if not isinstance(path, SelectionPath):
        path = _foreign_path(inner)
    if path.n_features != n_features:
        raise ValueError(
            f"{type(selector).__name__} ranks {path.n_features} features, but X has {n_features}. Inside a "
            "pipeline, only steps that keep the columns may come before the selector."
        )
    return path


def selected_support(selector: Any, path: SelectionPath) -> np.ndarray:
    """The features that the fitted selector has selected."""
    inner = _unwrapped(selector)
    if hasattr(inner, "get_support"):
        return np.flatnonzero(inner.get_support())
    raise ValueError(f"{type(selector).__name__} does not choose a number of features itself; set 'sizes'.")


def chosen_predictor(selector: Any) -> Any:
    """The unfitted predictor that a fitted selector has chosen together with its features; None for most selectors."""
    return getattr(_unwrapped(selector), "predictor_", None)


def _unwrapped(selector: Any) -> Any:
    """The selector inside searches and pipelines: the last step that has selected something."""
    while True:
        if hasattr(selector, "path_"):
            return selector
        if hasattr(selector, "best_estimator_"):
            selector = selector.best_estimator_
        elif hasattr(selector, "steps"):
            steps = [step for _, step in selector.steps if _selects(step)]
            if not steps:
                return selector
            selector = steps[-1]
        else:
            return selector


def _selects(step: Any) -> bool:
    return any(hasattr(step, name) for name in ("path_", "best_estimator_", "get_support"))


def _foreign_path(selector: Any) -> SelectionPath:
    selected_size = int(selector.get_support().sum()) if hasattr(selector, "get_support") else None
    if hasattr(selector, "ranking_"):
        return SelectionPath.from_scores(
            -np.asarray(selector.ranking_, dtype=float), selected_size=selected_size
        )
    scores = getattr(selector, "scores_", None)
    if scores is not None:
        # An undefined score (a constant column in scikit-learn's F test) must rank last.
        undefined = np.isnan(scores)
        return SelectionPath.from_scores(
            np.where(undefined, -np.inf, scores), last=undefined, selected_size=selected_size
        )
    raise ValueError(
        f"{type(selector).__name__} has no path_, ranking_ or scores_ after fit, so subsets of other sizes "
        "cannot be derived from it. Use a selector of zeronorm or one that ranks all features."
    )
