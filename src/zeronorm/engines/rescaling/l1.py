"""Machines with the ℓ1 norm on rescaled features, and the change from the ℓ2 to the ℓ1 norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from zeronorm._types import BoolArray, FloatArray
from zeronorm.design import Design
from zeronorm.engines.rescaling.iteration import NO_SOLUTION, LinearModel
from zeronorm.engines.rescaling.machines import Part
from zeronorm.solvers.l1_svm.program import L1SvmProgram
from zeronorm.solvers.status import Status


class L1Machine:
    r"""Linear programs in the weights :math:`w = z * u`, where the norm of u is :math:`\sum_k |w_k| / z_k`.

    As long as the features stay the same only the costs change, and each program starts from its last
    basis. ``first_pull`` keeps :math:`\sum_c |x_k^\top v_c|` of the first training: how close each feature
    without a weight came to getting one.
    """

    def __init__(
        self, parts: Sequence[Part], *, epsilon: float | None = None, slack_zero_tol: float | None = None
    ) -> None:
        self.parts = parts
        self.epsilon = epsilon
        self.slack_zero_tol = slack_zero_tol
        self.status = Status.CONVERGED
        self.settled = True
        self.weights: FloatArray = np.zeros((0, len(parts)))
        self.bias: FloatArray = np.zeros(len(parts))
        self.first_pull: FloatArray | None = None
        self._design: Design | None = None
        self._programs: list[L1SvmProgram] = []

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        prices = self._prices()
        if design is not self._design:
            self._design = design
            self._programs = [
                L1SvmProgram(design, part.target, C=price, epsilon=self.epsilon)
                for part, price in zip(self.parts, prices, strict=True)
            ]
        before = [part.solution for part in self.parts]
        for part, price, program in zip(self.parts, prices, self._programs, strict=True):
            program.set_price(price)
            part.solution = program.solve(1.0 / scale)
        if self.slack_zero_tol is not None:
            self.settled = all(
                old is not None and np.abs(old.slack - part.solution.slack).max() <= self.slack_zero_tol
                for old, part in zip(before, self.parts, strict=True)
            )
        self.status = max(part.solution.status for part in self.parts)
        if self.status in NO_SOLUTION:
            return np.zeros(scale.size)
        self.weights = np.column_stack([part.solution.weights for part in self.parts])
        self.bias = np.array([part.solution.bias for part in self.parts])
        if self.first_pull is None:
            self.first_pull = np.sum([np.abs(part.solution.pull) for part in self.parts], axis=0)
        return np.asarray(np.abs(self.weights).sum(axis=1) / scale)

    def keep(self, staying: BoolArray) -> None:
        """New features make a new program, which is small by then."""

    def _prices(self) -> list[FloatArray]:
        """C, divided by the last slack of each sample where the slacks are rescaled."""
        if self.slack_zero_tol is None or self.parts[0].solution is None:
            return [part.price for part in self.parts]
        return [part.price / np.maximum(part.solution.slack, self.slack_zero_tol) for part in self.parts]


class SwitchingMachine:
    """The ℓ2 norm while there are many features, the ℓ1 norm once there are few."""

    def __init__(self, many: LinearModel, few: L1Machine, few_features: int) -> None:
        self.many = many
        self.few = few
        self.few_features = few_features
        self.status = Status.CONVERGED
        self._trained: LinearModel = many

    @property
    def settled(self) -> bool:
        return self._trained.settled

    @property
    def weights(self) -> FloatArray:
        return self._trained.weights

    @property
    def bias(self) -> FloatArray:
        return self._trained.bias

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        machine: LinearModel = self.few if scale.size <= self.few_features else self.many
        strength = machine.train(design, scale)
        self.status = machine.status
        if self.status not in NO_SOLUTION:
            self._trained = machine
        return strength

    def keep(self, staying: BoolArray) -> None:
        self.many.keep(staying)
        self.few.keep(staying)
