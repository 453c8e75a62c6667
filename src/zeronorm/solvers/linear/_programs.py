"""Linear models with the ℓ1 norm as linear programs, each solved again from its last basis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from zeronorm._types import FloatArray
from zeronorm.design import Design
from zeronorm.execution import require_memory
from zeronorm.solvers._linear_program import LinearProgram
from zeronorm.solvers.l1_svm._program import L1SvmProgram
from zeronorm.solvers.linear._losses import EpsilonInsensitiveLoss, HingeLoss
from zeronorm.solvers.linear._problem import LinearProblem, Solution, State
from zeronorm.solvers.linear._ways import Way

BYTES_PER_ENTRY = 36  # value and index of a sparse matrix, in the blocks, the whole matrix and the solver


def solve_programs(problem: LinearProblem, design: Design, state: State | None) -> Solution:
    """Solve with the norm :math:`\\sum_k |w_k| / z_k`, from the last bases as long as the design stays the same."""
    programs = None if state is None else state.programs
    kind = _JointProgram if problem.joint else _Programs
    if not isinstance(programs, kind) or programs.design is not design:
        programs = kind(problem, design)
    return programs.solve(problem)


def penalties(problem: LinearProblem, n_features: int) -> FloatArray:
    """The factor of each absolute weight in the norm."""
    return np.ones(n_features) if problem.scale is None else 1.0 / problem.scale


class _Programs:
    """One program for each model."""

    def __init__(self, problem: LinearProblem, design: Design) -> None:
        self.design = design
        loss = problem.loss
        if not isinstance(loss, (HingeLoss, EpsilonInsensitiveLoss)) or loss.squared:
            raise ValueError(
                f"The ℓ1 norm needs the hinge or the ε-insensitive loss. Got {loss}; use norm='l2'."
            )
        epsilon = loss.epsilon if isinstance(loss, EpsilonInsensitiveLoss) else None
        self.programs = [
            L1SvmProgram(design, y, C=cost, epsilon=epsilon)
            for y, cost in zip(problem.targets.T, problem.costs.T, strict=True)
        ]

    def solve(self, problem: LinearProblem) -> Solution:
        norm, models = penalties(problem, self.design.n_features), []
        for cost, program in zip(problem.costs.T, self.programs, strict=True):
            program.set_cost(cost)
            models.append(program.solve(norm))
        weights = np.column_stack([model.weights for model in models])
        after = State(
            bias=np.array([model.bias for model in models]),
            dual_coef=np.column_stack([model.dual_coef for model in models]),
            programs=self,
        )
        return _solution(problem, weights, models, after, max(m.status for m in models))


def _solution(
    problem: LinearProblem, weights: FloatArray, models: list[Any], state: State, status: Any
) -> Solution:
    rescaled = weights if problem.scale is None else weights / problem.scale[:, None]
    n_iter = sum(model.n_iter for model in models)
    return Solution(rescaled, state.bias, status, n_iter, Way.PROGRAM, state, models, problem.scale)


@dataclass(frozen=True)
class JointModel:
    """The objective of all classes together, and the part of it that is loss."""

    objective: float
    loss: float
    n_iter: int


class _JointProgram:
    r"""The multi-class SVM of Weston and Watkins with the ℓ1 norm: all classes in one linear program.

    .. math:: \min\ \sum_{c, k} |w_{ck}| / z_k + \sum_i C_i \sum_{m \ne y_i} \xi_{im}, \qquad
        (w_{y_i} - w_m) \cdot x_i + b_{y_i} - b_m \ge 1 - \xi_{im}, \quad \xi_{im} \ge 0 .

    The program holds all features, and n rows for each class but one.
    """

    def __init__(self, problem: LinearProblem, design: Design) -> None:
        self.design, self.n_classes = design, problem.n_models
        codes = problem.targets.argmax(axis=1)
        pairs = [(i, m) for i, y in enumerate(codes) for m in range(self.n_classes) if m != y]
        self.sample, other = np.array(pairs).T
        self.sides = np.eye(self.n_classes)[codes[self.sample]] - np.eye(self.n_classes)[other]
        self.program = self._build(problem.costs[self.sample, 0])

    def _build(self, cost: FloatArray) -> LinearProgram:
        """The variables: biases, slacks, then for each class the positive and the negative parts of its weights."""
        require_memory(
            BYTES_PER_ENTRY * 4 * self.sample.size * self.design.n_features,
            f"The joint linear program of {self.n_classes} classes",
            "use one program for each class, or a filter first.",
        )
        rows = self.design.block(np.arange(self.design.n_features))[self.sample]
        blocks = [sp.csc_array(self.sides), sp.eye_array(self.sample.size, format="csc")]
        for side in self.sides.T:
            own = sp.csc_array(side[:, None] * rows)
            blocks += [own, -own]
        matrix = sp.hstack(blocks, format="csc")
        lower, upper = np.zeros(matrix.shape[1]), np.full(matrix.shape[1], np.inf)
        lower[: self.n_classes] = -np.inf
        upper[self.n_classes : self.n_classes + self.sample.size][np.isinf(cost)] = 0.0
        return LinearProgram(np.zeros(matrix.shape[1]), matrix, 1.0, np.inf, lower, upper)

    def solve(self, problem: LinearProblem) -> Solution:
        cost = problem.costs[self.sample, 0]
        soft = np.where(np.isinf(cost), 0.0, cost)
        norm = np.tile(penalties(problem, self.design.n_features), 2 * self.n_classes)
        self.program.set_costs(np.concatenate([np.zeros(self.n_classes), soft, norm]))
        found = self.program.solve()
        bias, slack, both = np.split(found.x, [self.n_classes, self.n_classes + soft.size])
        parts = both.reshape(self.n_classes, 2, -1)
        by_class = np.zeros((self.design.n_samples, self.n_classes))
        np.add.at(by_class, self.sample, self.sides * found.row_duals[:, None])
        after = State(bias=bias, dual_coef=by_class, programs=self)
        model = JointModel(found.objective, float(soft @ slack), found.n_iter)
        return _solution(problem, (parts[:, 0] - parts[:, 1]).T, [model], after, found.status)
