"""Elimination with a scikit-learn estimator, round for round as scikit-learn's RFE does it.

The estimator is refitted on the features that are left; where it is one whose solution can be followed as
features leave (``zeronorm.engines.elimination.known_models``), the weights come from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.selection.path import SelectionPath, order_by_score


def feature_importances(fitted: Any, getter: str | Callable[[Any], Any]) -> FloatArray:
    """One non-negative value per feature: squared importances, summed over outputs."""
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
    """Trains on some of the features and values them."""

    def importances(self, features: IntArray) -> FloatArray:
        """The value of each of the features, which have only become fewer since the last call."""

    def fitted(self) -> Any:
        """The estimator of the last training."""


class Refits:
    """A clone of the estimator, fitted anew in every round."""

    def __init__(
        self, estimator: Any, X: Any, y: Any, fit_params: dict[str, Any], getter: Any, verbose: int = 0
    ) -> None:
        self.estimator, self.X, self.y = estimator, X, y
        self.fit_params, self.getter, self.verbose = fit_params, getter, verbose
        self.last: Any = None

    def fit(self, features: IntArray) -> Any:
        """The estimator on these features."""
        if self.verbose > 0:
            self.announce(features)
        self.last = clone(self.estimator).fit(self.X[:, features], self.y, **self.fit_params)
        return self.last

    @staticmethod
    def announce(features: IntArray) -> None:
        """Say how far the elimination is."""
        print(f"Training on {features.size} features.")

    def importances(self, features: IntArray) -> FloatArray:
        return feature_importances(self.fit(features), self.getter)

    def fitted(self) -> Any:
        return self.last


@dataclass
class Rounds:
    """What happened in each round; ``ranking`` counts rounds, so features that left together share a rank."""

    support: BoolArray
    ranking: IntArray
    eliminated: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    values: FloatArray = field(default_factory=lambda: np.empty(0))

    def path(self, last_values: FloatArray, forced: IntArray) -> SelectionPath:
        """The path; what is left is ordered by the values of the estimator trained on it, forced features first."""
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
    on_round: Callable[[IntArray, Rounds], None] | None = None,
) -> Rounds:
    """Remove the least valuable units until at most ``n_stop`` features are left.

    ``step`` is a count, or a fraction of all features. Of features with equal values scikit-learn removes the
    lower index first; ``lower_index_stays`` reverses that.
    """
    per_round = max(1, int(step * n_features)) if 0.0 < step < 1.0 else int(step)
    codes = np.arange(n_features) if groups is None else groups
    may_leave = ~np.isin(codes, codes[forced]) if forced is not None else np.ones(n_features, dtype=bool)
    rounds = Rounds(np.ones(n_features, dtype=bool), np.ones(n_features, dtype=np.intp))
    rounds.values = np.zeros(n_features)
    while rounds.support.sum() > n_stop:
        features = np.flatnonzero(rounds.support)
        value = ranker.importances(features)
        rounds.sizes.append(features.size)
        rounds.values[features] = value
        if on_round is not None:
            on_round(features, rounds)
        leaving = _leaving(features, value, codes, may_leave, lower_index_stays)
        leaving = leaving[: _count(leaving, codes, per_round, features.size - n_stop, groups is not None)]
        if leaving.size == 0:
            break
        rounds.support[leaving] = False
        rounds.ranking[~rounds.support] += 1
        rounds.eliminated.extend(int(feature) for feature in leaving)
    return rounds


def _leaving(
    features: IntArray, value: FloatArray, codes: IntArray, may_leave: BoolArray, lower_index_stays: bool
) -> IntArray:
    """Features that may leave, the least valuable unit first; a group is worth the sum of absolute weights."""
    unit_value: FloatArray = value
    if np.unique(codes[features]).size < features.size:
        unit_value = np.bincount(codes[features], weights=np.sqrt(value)).astype(np.float64)[codes[features]]
    candidate = may_leave[features]
    unit = codes[features][candidate]
    order = np.lexsort((-unit if lower_index_stays else unit, unit_value[candidate]))
    return np.asarray(features[candidate][order])


def _count(leaving: IntArray, codes: IntArray, per_round: int, n_surplus: int, grouped: bool) -> int:
    """How many of the features go: so many units, and not more than the surplus except to complete a group."""
    if not grouped:
        return min(per_round, n_surplus)
    count, units = 0, 0
    while count < leaving.size and units < per_round and count < n_surplus:
        unit = codes[leaving[count]]
        count += int(np.count_nonzero(codes[leaving] == unit))
        units += 1
    return count
