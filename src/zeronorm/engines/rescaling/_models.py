"""Linear models on rescaled features, trained again and again from the last solution."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines._early_stopping import EarlyStopping
from zeronorm.engines.rescaling._between import Between
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import LinearProblem, Reuse, Solution, State, Way, solve

SOLVER_TOL = 1e-7


class Coordinates(Protocol):
    """Coordinates in which models are trained, where these are not the features times their factors."""

    def into(self, design: Design, scale: FloatArray) -> tuple[Design, FloatArray]:
        """The data in these coordinates, and the factors of their columns."""

    def back(self, found: Solution, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The weights of the features, one column for each model, and their absolute weights over the factors."""

    def keep(self, kept: BoolArray) -> None:
        """Drop the features that are not kept."""


class EqualCoordinates:
    """Each column stands for several equal coordinates, as many as ``counts`` states, which share its factor."""

    def __init__(self, counts: FloatArray) -> None:
        self.root = np.sqrt(counts)

    def into(self, design: Design, scale: FloatArray) -> tuple[Design, FloatArray]:
        return design, scale * self.root

    def back(self, found: Solution, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        return found.weights, found.absolute_weights() / self.root

    def keep(self, kept: BoolArray) -> None:
        self.root = self.root[kept]


class RescaledModels:
    """The models of a linear problem on the features times their factors; a ``Model`` of the engine.

    ``between`` changes the problem from one training to the next; None: nothing changes. A training without a solution
    leaves the weights as they were.
    """

    def __init__(
        self,
        problem: LinearProblem,
        between: Between | None = None,
        *,
        way: Way | None = None,
        coordinates: Coordinates | None = None,
    ) -> None:
        self.problem, self.between, self.way = problem, between, way
        self.coordinates = coordinates
        self.state: State | None = None
        self.status = Status.CONVERGED
        self._solution: Solution | None = None
        self._weights: FloatArray | None = None  # where they are not those of the solution
        self._before: tuple[Solution | None, FloatArray | None] = None, None
        self._first: tuple[Design, FloatArray] | None = None

    @property
    def settled(self) -> bool:
        return self.between is None or self.between.settled

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        if self.between is not None:
            self.problem = self.between.before(self.problem, scale.size)
        factors = scale
        if self.coordinates is not None:
            design, factors = self.coordinates.into(design, scale)
        problem = replace(self.problem, scale=factors)
        found = solve(problem, design, self.state, tol=SOLVER_TOL, way=self.way, reuse=Reuse.NEAR)
        self.status = found.status
        if found.status.is_unsolvable:
            return np.zeros(scale.size)
        self._before = self._solution, self._weights
        self._solution, self.state = found, found.state
        self._first = self._first or (design, found.dual_coef)
        if self.between is not None:
            self.problem = self.between.after(self.problem, found, design)
        if self.coordinates is None:
            return found.absolute_weights()
        self._weights, absolute = self.coordinates.back(found, scale)
        return absolute

    def keep(self, kept: BoolArray) -> None:
        if self.coordinates is not None:
            self.coordinates.keep(kept)
        if self.state is not None:
            self.state = self.state.keep(kept)

    def stops_early(self, stopping: EarlyStopping, features: IntArray, index: int | None = None) -> bool:
        """Whether the last training has too large an error on validation samples; the one before then counts."""
        everything = features.size == stopping.held_out.n_features
        if not stopping.stops(slice(None) if everything else features, self.weights, self.bias, index):
            return False
        self._solution, self._weights = self._before
        return True

    @property
    def weights(self) -> FloatArray:
        """The weights of the features before rescaling, one column for each model."""
        if self._solution is None:
            return np.zeros((0, self.problem.n_models))
        return self._solution.weights if self._weights is None else self._weights

    @property
    def bias(self) -> FloatArray:
        """One number for each model."""
        return np.zeros(self.problem.n_models) if self._solution is None else self._solution.bias

    @property
    def first_gradient(self) -> FloatArray:
        r""":math:`\sum_c |x_k^\top v_c|` in the first training, which orders features without a weight."""
        assert self._first is not None
        design, dual_coef = self._first
        return np.asarray(np.abs(design.transpose_dot(dual_coef)).sum(axis=1))
