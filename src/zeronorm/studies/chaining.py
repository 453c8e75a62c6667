"""One selector after another: the second chooses among the features that the first has left."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from zeronorm.selectors.path import SelectionPath


class ChainedSelectors(BaseEstimator):  # type: ignore[misc]
    """Fit ``first`` on all features and ``second`` on those it settles on.

    The path has the features of the second selector in its order, then the features that the first left out in
    the order of the first.

    Parameters
    ----------
    first, second : selectors; a count that the second asks for may not exceed what the first leaves.
    at_least : features that the first leaves to the second, even where it would stop at fewer.
    """

    def __init__(self, first: Any, second: Any, *, at_least: int = 1) -> None:
        self.first = first
        self.second = second
        self.at_least = at_least

    def fit(self, X: Any, y: Any) -> Self:
        """Fit one after the other."""
        self.first_ = clone(self.first).fit(X, y)
        own = int(np.count_nonzero(self.first_.get_support()))
        left = self.first_.path_.support(max(own, self.at_least))
        self.second_ = clone(self.second).fit(np.asarray(X)[:, left], y)
        refused = self.first_.path_.order[~np.isin(self.first_.path_.order, left)]
        self.path_ = SelectionPath(
            order=np.concatenate([left[self.second_.path_.order], refused]),
            own_size=int(np.count_nonzero(self.second_.get_support())),
        )
        self.converged_ = bool(self.first_.path_.converged and self.second_.path_.converged)
        return self

    def get_support(self) -> NDArray[np.bool_]:
        """Mask of the selected features."""
        return self.path_.mask(int(self.path_.own_size or 1))
