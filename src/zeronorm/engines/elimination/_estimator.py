"""Elimination with a scikit-learn estimator, round for round as scikit-learn's RFE does it.

The estimator is refitted on the remaining features; if its solution can be updated as features
are removed (``zeronorm.engines.elimination._known_models``), the weights come from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.svm import SVC, SVR, LinearSVC

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.selection._path import SelectionPath, order_by_score

MOST_WAITING = 2**22  # weights collected before one matrix product gives the predictions of several sizes


def feature_importances(fitted: Any, getter: str | Callable[[Any], Any]) -> FloatArray:
    """Squared importances of the features, summed over outputs."""
    if callable(getter):
        found = getter(fitted)
    elif getter != "auto":
        found = attrgetter(getter)(fitted)
    elif hasattr(fitted, "coef_"):
        found = fitted.coef_
    elif hasattr(fitted, "feature_importances_"):
        found = fitted.feature_importances_
    else:
        raise ValueError(
            "The 'estimator' parameter must have coef_ or feature_importances_ after fit. "
            f"{type(fitted).__name__} has neither; set 'importance_getter' to where they are."
        )
    values = found.toarray() if sp.issparse(found) else np.asarray(found)
    return np.asarray((np.atleast_2d(values).astype(np.float64) ** 2).sum(axis=0))


class Ranker(Protocol):
    """Trains on some of the features and gives their importances."""

    def importances(self, features: IntArray) -> FloatArray:
        """Importance of each feature; ``features`` is a subset of those of the last call."""

    def fitted(self) -> Any:
        """The estimator of the last training."""

    def collect(self, predictions: Predictions, features: IntArray) -> None:
        """Add the predictions of the last trained estimator from the features it was trained on."""


class Predictions:
    """Predictions for one set of samples at each size; those of linear models are computed for many sizes at once."""

    def __init__(self, X: Any, labels: Callable[[FloatArray], Any]) -> None:
        self.X, self.labels = X, labels
        self._columns: list[Any] = []
        self._waiting: list[tuple[IntArray, FloatArray, FloatArray]] = []

    def add(self, features: IntArray, predict: Callable[[Any], Any]) -> None:
        """Add the predictions of a model that has its own ``predict``."""
        self._flush()
        self._columns.append(np.asarray(predict(self.X[:, features]))[:, None])

    def add_linear(self, features: IntArray, weights: FloatArray, intercept: FloatArray) -> None:
        """Add the predictions of a linear model with one row of weights and one intercept per output."""
        self._waiting.append((features, weights, intercept))
        if len(self._waiting) * weights.shape[0] * self.X.shape[1] > MOST_WAITING:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        n_outputs, p = self._waiting[0][2].size, self.X.shape[1]
        scale = np.zeros((len(self._waiting), n_outputs, p))
        for row, (features, weights, _) in zip(scale, self._waiting, strict=True):
            row[:, features] = weights
        values = np.asarray(self.X @ scale.reshape(-1, p).T).reshape(-1, len(scale), n_outputs)
        self._columns.append(self.labels(values + np.stack([intercept for *_, intercept in self._waiting])))
        self._waiting = []

    def columns(self) -> Any:
        """One column per size, in the order in which they were added."""
        self._flush()
        return np.concatenate(self._columns, axis=1)


class Refits:
    """A clone of the estimator, fitted anew in every round."""

    def __init__(
        self, estimator: Any, X: Any, y: Any, fit_params: dict[str, Any], getter: Any, verbose: int = 0
    ) -> None:
        self.estimator, self.X, self.y = estimator, X, y
        self.fit_params, self.getter, self.verbose = fit_params, getter, verbose
        self.last: Any = None

    def fit(self, features: IntArray) -> Any:
        """Fit a clone of the estimator on these features."""
        if self.verbose > 0:
            self.announce(features)
        self.last = clone(self.estimator).fit(self.X[:, features], self.y, **self.fit_params)
        return self.last

    @staticmethod
    def announce(features: IntArray) -> None:
        """Log the number of features that are left."""
        print(f"Training on {features.size} features.")

    def importances(self, features: IntArray) -> FloatArray:
        return feature_importances(self.fit(features), self.getter)

    def fitted(self) -> Any:
        return self.last

    def collect(self, predictions: Predictions, features: IntArray) -> None:
        predictions.add(features, self.last.predict)


@dataclass
class Rounds:
    """Record of all rounds; ``ranking`` counts rounds, so features removed in one round share a rank."""

    support: BoolArray
    ranking: IntArray
    eliminated: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    values: FloatArray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of_all(cls, n_features: int) -> Rounds:
        """The record before the first round."""
        every = np.ones(n_features, dtype=bool)
        return cls(every, np.ones(n_features, dtype=np.intp), values=np.zeros(n_features))

    def rankings(self) -> IntArray:
        """The ranking at each size, one row per size, the row of all features first."""
        return np.asarray(np.maximum(1, self.ranking - np.arange(len(self.sizes), -1, -1)[:, None]))

    def path(self, last_values: FloatArray, forced: IntArray) -> SelectionPath:
        """The path; the remaining features are ordered by their last values, forced features first."""
        left = np.flatnonzero(self.support)
        self.values[left] = last_values
        survivors = left[order_by_score(last_values)][::-1]
        survivors = survivors[np.argsort(np.isin(survivors, forced), kind="stable")]
        return SelectionPath.from_elimination(
            [*self.eliminated, *survivors],
            sizes=[*self.sizes, left.size],
            scores=self.values,
            n_iter=len(self.sizes) + 1,
        )


def eliminate_with_estimator(
    ranker: Ranker,
    n_features: int,
    *,
    n_stop: int,
    step: int | float,
    groups: IntArray | None = None,
    forced: IntArray | None = None,
    lower_index_stays: bool = False,
    on_round: Callable[[IntArray], None] | None = None,
) -> Rounds:
    """Remove the least valuable units until at most ``n_stop`` features are left.

    ``step`` is a count, or a fraction of all features. Of features with equal values scikit-learn removes the
    lower index first; ``lower_index_stays`` reverses that.
    """
    per_round = max(1, int(step * n_features)) if 0.0 < step < 1.0 else int(step)
    codes = np.arange(n_features) if groups is None else groups
    may_leave = ~np.isin(codes, codes[forced]) if forced is not None else np.ones(n_features, dtype=bool)
    rounds = Rounds.of_all(n_features)
    left_in = np.zeros(n_features, dtype=np.intp)
    while (features := np.flatnonzero(rounds.support)).size > n_stop:
        value = ranker.importances(features)
        rounds.sizes.append(features.size)
        rounds.values[features] = value
        if on_round is not None:
            on_round(features)
        n_most = min(per_round, features.size - n_stop)
        if groups is None:
            leaving = _leaving(features, value, codes, may_leave, lower_index_stays, n_most)[:n_most]
        else:
            unit_value = _group_values(value, codes[features])
            leaving = _leaving(features, unit_value, codes, may_leave, lower_index_stays, features.size)
            leaving = leaving[: _count(leaving, codes, per_round, features.size - n_stop)]
        if leaving.size == 0:
            break
        rounds.support[leaving] = False
        left_in[leaving] = len(rounds.sizes)
        rounds.eliminated.extend(leaving.tolist())
    gone = ~rounds.support
    rounds.ranking[gone] = int(left_in.max()) + 2 - left_in[gone]
    return rounds


def _group_values(value: FloatArray, unit: IntArray) -> FloatArray:
    """For each feature the value of its group, the sum of absolute weights, if any group has several features."""
    if np.unique(unit).size == unit.size:
        return value
    return np.asarray(np.bincount(unit, weights=np.sqrt(value))[unit])


def _leaving(
    features: IntArray,
    value: FloatArray,
    codes: IntArray,
    may_leave: BoolArray,
    lower_index_stays: bool,
    n_most: int,
) -> IntArray:
    """Features that may be removed, the least valuable unit first; at least as many as are requested."""
    candidate = may_leave[features]
    if not candidate.all():
        features, value = features[candidate], value[candidate]
    if n_most == 1 and value.size and not lower_index_stays:
        index = int(np.argmin(value))
        if value[index] == value[index]:  # not NaN
            return features[index : index + 1]
    if n_most < features.size // 2:  # only the smallest values need sorting
        near = np.flatnonzero(value <= np.partition(value, n_most)[n_most])
        if near.size > n_most:  # false if values are NaN
            features, value = features[near], value[near]
    unit = codes[features]
    order = np.lexsort((-unit if lower_index_stays else unit, value))
    return np.asarray(features[order])


def _count(leaving: IntArray, codes: IntArray, per_round: int, n_surplus: int) -> int:
    """Number of features to remove: whole units, and more than the surplus only to complete a group."""
    count, units = 0, 0
    while count < leaving.size and units < per_round and count < n_surplus:
        unit = codes[leaving[count]]
        count += int(np.count_nonzero(codes[leaving] == unit))
        units += 1
    return count


# -- Predictions of an estimator with given weights --


def predicted_by(estimator: Any, y: Any) -> Callable[[FloatArray], Any]:
    """Return the function from decision values (last axis: outputs) to predictions of an estimator trained on y."""
    if is_regressor(estimator):
        return lambda values: values[..., 0]
    return partial(voted, classes=np.unique(y), pairwise=isinstance(estimator, SVC))


def voted(values: FloatArray, classes: Any, pairwise: bool) -> Any:
    """The class with the largest value, or with the most votes where each pair of classes has its own value."""
    if values.shape[-1] == 1:
        return classes[(values[..., 0] > 0.0).astype(int)]
    if not pairwise:
        return classes[values.argmax(axis=-1)]
    votes = np.zeros((*values.shape[:-1], len(classes)))
    pairs = [(a, b) for a in range(len(classes)) for b in range(a + 1, len(classes))]
    for index, (first, second) in enumerate(pairs):
        for_second = values[..., index] > 0.0
        votes[..., second] += for_second
        votes[..., first] += ~for_second
    return classes[votes.argmax(axis=-1)]


def stand_in(estimator: Any, y: Any, weights: FloatArray, intercept: FloatArray) -> Any:
    """Return an object with the same predictions as the estimator with these weights."""
    if isinstance(estimator, (Ridge, LinearRegression)):
        model = clone(estimator)
        flat = np.ndim(y) == 1
        model.coef_, model.intercept_ = (weights[0], float(intercept[0])) if flat else (weights, intercept)
    elif isinstance(estimator, (LogisticRegression, LinearSVC)):
        model = clone(estimator)
        model.coef_, model.intercept_, model.classes_ = weights, intercept, np.unique(y)
    elif isinstance(estimator, SVR):
        return LinearRegressor(weights[0], float(intercept[0]))
    else:
        return LinearVotes(weights, intercept, np.unique(y), pairwise=isinstance(estimator, SVC))
    model.n_features_in_ = weights.shape[1]
    return model


class LinearRegressor(RegressorMixin, BaseEstimator):
    """Linear regression model x·w + b with given weights."""

    def __init__(self, coef: Any = None, intercept: Any = None) -> None:
        self.coef, self.intercept = coef, intercept

    def predict(self, X: Any) -> FloatArray:
        """Predicted values for the rows of X."""
        return np.asarray(X @ self.coef + self.intercept)


class LinearVotes(ClassifierMixin, BaseEstimator):
    """The class with the largest value, or with the most votes where each pair of classes has its own weights."""

    def __init__(self, coef: Any = None, intercept: Any = None, classes: Any = None, pairwise: bool = False):
        self.coef, self.intercept, self.classes, self.pairwise = coef, intercept, classes, pairwise
        self.classes_ = classes

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values; one-dimensional for two classes."""
        values = np.asarray(X @ self.coef.T + self.intercept)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Any:
        """Predicted classes of the rows of X."""
        values = np.asarray(X @ self.coef.T + self.intercept)
        return voted(values, self.classes_, self.pairwise)
