"""Linear models on rescaled features, trained again and again from the last solution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zeronorm._types import BoolArray, FloatArray
from zeronorm.design import Design
from zeronorm.engines.rescaling._between import Between
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import LinearProblem, Reuse, Solution, State, Way, solve

SOLVER_TOL = 1e-7


class RescaledModels:
    """The models of a linear problem on the features times their factors; a ``Model`` of the engine.

    ``between`` changes the problem from one training to the next. A training without a solution leaves the weights as
    they were.
    """

    def __init__(
        self, problem: LinearProblem, between: Between | None = None, *, way: Way | None = None
    ) -> None:
        self.problem, self.between, self.way = problem, Between() if between is None else between, way
        self.state: State | None = None
        self.status = Status.CONVERGED
        self._solution: Solution | None = None
        self._first: tuple[Design, FloatArray] | None = None

    @property
    def settled(self) -> bool:
        return self.between.settled

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        self.problem = self.between.before(self.problem, scale.size)
        problem = replace(self.problem, scale=scale)
        found = solve(problem, design, self.state, tol=SOLVER_TOL, way=self.way, reuse=Reuse.NEAR)
        self.status = found.status
        if found.status.is_unsolvable:
            return np.zeros(scale.size)
        self._solution, self.state = found, found.state
        self._first = self._first or (design, found.dual_coef)
        self.problem = self.between.after(self.problem, found, design)
        return found.absolute_weights()

    def keep(self, kept: BoolArray) -> None:
        if self.state is not None:
            self.state = self.state.keep(kept)

    @property
    def weights(self) -> FloatArray:
        """The weights of the features before rescaling, one column for each model."""
        return np.zeros((0, self.problem.n_models)) if self._solution is None else self._solution.weights

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
