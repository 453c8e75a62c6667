"""The choice of a method as part of what is evaluated, so that its error is honest too."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

LEVEL = 0.05


class RosterSelector(BaseEstimator):
    """Fit several selectors whose sizes are cross-validated, and keep one.

    All see the same inner folds. Of the methods that are not significantly worse than the best one
    (corrected resampled t-test over the folds, Holm's correction), the one with the fewest features is kept.
    Evaluated as a whole, the error includes the price of the choice.

    Parameters
    ----------
    selectors : pairs of a name and a ``SelectorCV``.
    """

    def __init__(self, selectors: list[tuple[str, Any]]) -> None:
        self.selectors = selectors

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit all, compare, keep one."""
        from sklearn.base import clone

        fitted = {name: clone(selector).fit(X, y, groups=groups) for name, selector in self.selectors}
        self.scores_ = {name: _scores_at_choice(selector) for name, selector in fitted.items()}
        self.sizes_ = {name: int(selector.n_features_) for name, selector in fitted.items()}
        ratio = _test_share(next(iter(fitted.values())))
        self.equals_ = equally_good(self.scores_, ratio)
        self.chosen_ = min(
            self.equals_, key=lambda name: (self.sizes_[name], -float(self.scores_[name].mean()), name)
        )
        self.selector_ = fitted[self.chosen_]
        self.path_ = self.selector_.path_
        self.converged_ = self.selector_.converged_
        return self

    def get_support(self) -> Any:
        """Mask of the selected features."""
        return self.selector_.get_support()

    def verdict(self) -> str:
        """The choice in words."""
        others = [name for name in self.scores_ if name != self.chosen_]
        count = (
            f"{len(self.scores_)} methods ({', '.join(self.scores_)}) were compared on the same inner folds"
        )
        if len(self.equals_) == 1:
            return f"{count}; {self.chosen_} was significantly better than {', '.join(others)}."
        if len(self.equals_) == len(self.scores_):
            return f"{count}; none was significantly better, so {self.chosen_}, with the fewest features, is used."
        return (
            f"{count}; {', '.join(self.equals_)} were not significantly different, and of these {self.chosen_} uses "
            "the fewest features."
        )


def _scores_at_choice(selector: Any) -> Any:
    results = selector.cv_results_
    place = int(np.flatnonzero(np.asarray(results["size"]) == selector.path_.own_size)[0])
    return np.asarray(results["scores"])[:, place]


def _test_share(selector: Any) -> float:
    return float(np.mean([len(test) / len(train) for train, test in selector.cv_results_["splits"]]))


def equally_good(scores: dict[str, Any], test_share: float) -> list[str]:
    """Methods whose score is not significantly worse than the best (greater is better)."""
    from zeronorm.evaluation.significance import adjust_p_values, corrected_resampled_t

    best = max(scores, key=lambda name: float(scores[name].mean()))
    others = [name for name in scores if name != best]
    if not others or len(scores[best]) < 2:
        return list(scores)
    tests = [
        corrected_resampled_t(scores[best], scores[name], n_train=1.0 / test_share, n_test=1.0)
        for name in others
    ]
    adjusted = adjust_p_values([test.p_value for test in tests])
    worse = {name for name, p_value in zip(others, adjusted, strict=True) if p_value < LEVEL}
    return [name for name in scores if name not in worse]
