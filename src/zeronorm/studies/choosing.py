"""Choosing a selector by cross-validation inside the training part."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone


class BestOfSelectors(BaseEstimator):  # type: ignore[misc]
    """Fit several ``SelectorCV`` on the same inner folds and keep the one with the best mean score.

    Nothing but the data given to ``fit`` is used, so that the error of the whole, measured on other data, includes
    the price of the choice.

    Parameters
    ----------
    selectors : pairs of a name and a ``SelectorCV``; they must share folds and scoring.
    """

    def __init__(self, selectors: list[tuple[str, Any]]) -> None:
        self.selectors = selectors

    def fit(self, X: Any, y: Any) -> Self:
        """Fit all, keep one; ties go to the earlier."""
        fitted = {name: clone(selector).fit(X, y) for name, selector in self.selectors}
        self.scores_ = {name: _score_at_choice(selector) for name, selector in fitted.items()}
        self.chosen_ = max(self.scores_, key=lambda name: self.scores_[name])
        self.selector_ = fitted[self.chosen_]
        self.path_ = self.selector_.path_
        self.converged_ = self.selector_.converged_
        return self

    def get_support(self) -> Any:
        """Mask of the selected features."""
        return self.selector_.get_support()


def _score_at_choice(selector: Any) -> float:
    results = selector.cv_results_
    place = int(np.flatnonzero(np.asarray(results["size"]) == selector.path_.own_size)[0])
    return float(np.asarray(results["scores"])[:, place].mean())
