"""The choice of a method as part of what is evaluated, so that its error is honest too."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from zeronorm.evaluation.comparison import choose_method


class RosterSelector(BaseEstimator):
    """Fit several selectors whose sizes are cross-validated, and keep one.

    All see the same inner folds; ``choose_method`` says which is kept. Evaluated as a whole, the error
    includes the price of the choice.

    Parameters
    ----------
    selectors : pairs of a name and a ``SelectorCV``.
    n_jobs : processes over the inner folds of each.
    """

    def __init__(self, selectors: list[tuple[str, Any]], n_jobs: int | None = None) -> None:
        self.selectors = selectors
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit all, compare, keep one."""
        from sklearn.base import clone

        fitted = {
            name: clone(selector).set_params(n_jobs=self.n_jobs).fit(X, y, groups=groups)
            for name, selector in self.selectors
        }
        self.scores_ = {name: _scores_at_choice(selector) for name, selector in fitted.items()}
        sizes = {name: int(selector.n_features_) for name, selector in fitted.items()}
        splits = next(iter(fitted.values())).cv_results_["splits"]
        self.choice_ = choose_method(
            self.scores_,
            sizes,
            n_train=float(np.mean([len(train) for train, _ in splits])),
            n_test=float(np.mean([len(test) for _, test in splits])),
        )
        self.chosen_ = self.choice_.preferred
        self.selector_ = fitted[self.chosen_]
        self.path_ = self.selector_.path_
        self.converged_ = self.selector_.converged_
        return self

    def get_support(self) -> Any:
        """Mask of the selected features."""
        return self.selector_.get_support()

    def verdict(self) -> str:
        """The choice in words."""
        names = ", ".join(self.scores_)
        return f"{len(self.scores_)} methods ({names}) were compared on the same inner folds. {self.choice_.sentence}"


def _scores_at_choice(selector: Any) -> Any:
    results = selector.cv_results_
    place = int(np.flatnonzero(np.asarray(results["size"]) == selector.path_.own_size)[0])
    return np.asarray(results["scores"])[:, place]
