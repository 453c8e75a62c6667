"""Predictors that judge subsets in several studies."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

COSTS = (0.01, 0.1, 1.0, 10.0)


def linear_machine(C: float = 1.0) -> Any:
    """Standardisation and a linear support vector machine."""
    return make_pipeline(StandardScaler(), SVC(kernel="linear", C=C))


def tuned_linear_machine(costs: tuple[float, ...] = COSTS, cv: int = 3) -> Any:
    """The same with its cost chosen by cross-validation inside the training part."""
    return GridSearchCV(linear_machine(), {"svc__C": list(costs)}, cv=cv)


class CommonScale(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Centre the columns and divide all by one number, such that squared lengths of samples have mean one.

    For columns in one unit, such as intensities of a spectrum: large ones stay large.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the means and the scale."""
        self.mean_ = np.mean(X, axis=0)
        self.scale_ = float(np.sqrt(np.mean(np.sum((X - self.mean_) ** 2, axis=1)))) or 1.0
        return self

    def transform(self, X: Any) -> Any:
        """Centred and scaled columns."""
        return (X - self.mean_) / self.scale_


def as_dense(X: Any) -> Any:
    """Sparse columns made dense: standardisation fills them anyway."""
    return X.toarray() if sp.issparse(X) else X


def tuned_squared_hinge_machine(costs: tuple[float, ...] = (0.01, 0.1, 1.0), cv: int = 3) -> Any:
    """A linear machine with squared hinge loss: as good a judge, and quick on thousands of samples."""
    machine = make_pipeline(
        FunctionTransformer(as_dense, accept_sparse=True),
        StandardScaler(),
        LinearSVC(dual="auto", random_state=0, max_iter=10_000),
    )
    return GridSearchCV(machine, {"linearsvc__C": list(costs)}, cv=cv)


def rbf_machine(C: float = 1.0, gamma: float | str = "scale") -> Any:
    """Standardisation and a support vector machine with a Gaussian kernel."""
    return make_pipeline(StandardScaler(), SVC(kernel="rbf", C=C, gamma=gamma))


def polynomial_machine(C: float = 1.0, degree: int = 2) -> Any:
    """Standardisation and a support vector machine with the kernel (1 + x·x'/p)^degree."""
    return make_pipeline(StandardScaler(), SVC(kernel="poly", C=C, degree=degree, coef0=1.0, gamma="auto"))


# -- Choosing a selector by cross-validation inside the training part --


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
