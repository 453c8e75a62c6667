"""Linear models of an elimination, solved again after each removal from the last solution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines.elimination._loop import Downdating, FollowingCost, finite_gram, those_kept
from zeronorm.selection._problem import Problem
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import LinearProblem, Solution, State, Way, choose, solve


class LinearValue(ABC):
    """Importance of features for models with one weight per feature."""

    @abstractmethod
    def weights(self) -> FloatArray:
        """One row per remaining feature, one column per model."""

    def importance(self) -> FloatArray:
        r"""Squared weights summed over models, :math:`\sum_c w_{ck}^2`."""
        return np.asarray((self.weights() ** 2).sum(axis=1))

    def group_importance(self, unit: IntArray) -> FloatArray:
        r"""Absolute weights summed over models and over the group, :math:`\sum_{k \in g} \sum_c |w_{ck}|`."""
        return np.bincount(unit, weights=np.abs(self.weights()).sum(axis=1)).astype(np.float64)


class LinearModels(LinearValue):
    """``Models`` of the elimination loop for any loss.

    The Gram matrix of the remaining features, where it is used, is updated: the columns of removed features are
    subtracted, and from time to time it is computed from the data.
    """

    def __init__(
        self,
        problem: Problem,
        linear: LinearProblem,
        active: IntArray | None = None,
        *,
        tol: float,
        max_iter: int | None = None,
        cost_follows: bool = False,
        only_way: Way | None = None,
    ) -> None:
        self.design, self.linear, self.only_way = problem.design, linear, only_way
        self.active: IntArray = np.arange(problem.n_features) if active is None else active
        self.tol, self.max_iter = tol, max_iter
        self.status, self.n_iter = Status.CONVERGED, 0
        self.cost = FollowingCost.of(problem, active) if cost_follows else None
        self.state: State | None = None
        self.way: Way | None = None
        self._downdating: Downdating | None = None
        self._solution: Solution | None = None
        self._left: tuple[IntArray, Design] | None = None

    def train(self) -> None:
        shape = self.design.n_samples, self.active.size
        way = self.only_way or choose(self.linear.loss, self.linear.norm, shape)
        if way is not self.way:
            self._begin(way)
        if way is Way.GRAM:
            self._renew_gram()
        found = solve(self.linear, self.left, self.state, tol=self.tol, max_iter=self.max_iter, way=way)
        self.status, self.n_iter = max(self.status, found.status), self.n_iter + found.n_iter
        self._solution, self.state = found, found.state

    def _begin(self, way: Way) -> None:
        """Prepare for another way: without the Gram matrix, and with a C for the remaining features."""
        if self.way is not None and self.state is not None:
            self.state = replace(self.state, gram=None)
            self._follow_cost(now=True)
        self.way = way

    def _renew_gram(self) -> None:
        """Compute the Gram matrix where it is not there or no longer accurate."""
        if self.state is None:
            self.state = State(bias=np.zeros(self.linear.n_models))
        if self.state.gram is None:
            self._downdating = self._downdating or Downdating(self.design)
            self._downdating.start(self.active)
            self.state = replace(self.state, gram=finite_gram(self.left))

    @property
    def left(self) -> Design:
        """The design of the remaining features, cached: for wide data the selection takes as long as a product."""
        if self._left is None or self._left[0] is not self.active:
            self._left = self.active, self.design.take(self.active)
        return self._left[1]

    @property
    def solution(self) -> Solution:
        """The last solution."""
        assert self._solution is not None
        return self._solution

    def weights(self) -> FloatArray:
        """One row per remaining feature, one column per model."""
        return self.solution.weights

    def remove(self, features: IntArray) -> None:
        before, self.active = self.active, those_kept(self.active, features)
        if self.state is not None:
            self.state = self.state.keep(np.isin(before, self.active, assume_unique=True))
            self._subtract(features)
        self._follow_cost()

    def continue_with(self, features: IntArray) -> None:
        """Continue with other features, from the coefficients of the samples."""
        self.active = features
        if self.state is not None:
            self.state = replace(self.state, weights=None, gram=None)

    def _subtract(self, features: IntArray) -> None:
        gram = None if self.state is None else self.state.gram
        if self.state is None or gram is None or self._downdating is None:
            return
        if self._downdating.is_due(features, self.active):
            self.state = replace(self.state, gram=None)
        else:
            gram -= self.design.take(np.sort(features)).gram()

    def _follow_cost(self, now: bool = False) -> None:
        """Increase C when it is due, and the dual variables with it, so that they stay near the solution."""
        factor = 1.0 if self.cost is None else self.cost.growth(self.active, now=now)
        self.linear = self.linear.costlier(factor)
        self.state = None if self.state is None else self.state.costlier(factor)
