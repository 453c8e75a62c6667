"""Linear support vector machines on rescaled features, trained again and again from the last solution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import Design, StandardizedDesign
from zeronorm.selectors.problem import Problem
from zeronorm.selectors.sparsity.rescaling import NO_SOLUTION
from zeronorm.solvers.linear_svm import prefers_gram, solve_linear_svm, solve_linear_svr
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm_dual import solve_svm_dual
from zeronorm.solvers.svr import solve_svr_dual

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Loss = Literal["hinge", "squared"]
Pairing = Literal["one-vs-rest", "one-vs-one"]

SOLVER_TOL = 1e-7
SOLVER_MAX_ITER = 1_000_000
FEW_SAMPLES = 256  # up to here the dual, started from the last solution, is faster for any number of features


@dataclass
class Part:
    """One of several machines: its target, the price of an error for each sample, and its last solution."""

    target: FloatArray
    price: FloatArray
    solution: Any = None

    def slacks(self) -> FloatArray:
        """By how much each sample misses its margin, for squared slacks, where it is the dual variable over C."""
        alpha = self.solution.alpha.reshape(-1, self.price.size).sum(axis=0)
        return np.asarray(alpha / self.price)


def parts_of(problem: Problem, C: float, pairing: Pairing = "one-vs-rest") -> list[Part]:
    """One machine for two classes, regression or a label; for more classes one for each class or pair."""
    price = np.broadcast_to(np.asarray(problem.sample_costs(C), dtype=np.float64), problem.n_samples)
    if problem.task == "multiclass" and pairing == "one-vs-one":
        return _pairs(problem, price)
    return [Part(target, price.copy()) for target in np.ascontiguousarray(problem.targets().T)]


def _pairs(problem: Problem, price: FloatArray) -> list[Part]:
    """A price of zero takes the samples of the other classes out of the game."""
    parts = []
    for a in range(problem.n_classes):
        for b in range(a + 1, problem.n_classes):
            target = np.where(problem.y == b, 1.0, -1.0)
            involved = (problem.y == a) | (problem.y == b)
            parts.append(Part(target, np.where(involved, price, 0.0)))
    return parts


class LinearMachine(ABC):
    """Machines that share the scaling factors; ``Machine`` of the rescaling engine.

    After training, ``weights`` holds one column per machine for the features as they are, before
    rescaling, and ``bias`` one number per machine; a training without a solution leaves both as they were.
    With an ``epsilon`` the machines are regressions.
    """

    settled = True

    def __init__(self, parts: Sequence[Part], *, loss: Loss, epsilon: float | None = None) -> None:
        self.parts = parts
        self.loss = loss
        self.epsilon = epsilon
        self.status = Status.CONVERGED
        self.weights: FloatArray = np.zeros((0, len(parts)))
        self.bias: FloatArray = np.zeros(len(parts))

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        rescaled_weights = self._solve_all(design, scale)
        self.status = max(part.solution.status for part in self.parts)
        if self.status in NO_SOLUTION:
            return np.zeros(scale.size)
        self.bias = np.array([part.solution.bias for part in self.parts])
        self.weights = scale[:, None] * rescaled_weights
        return np.asarray(np.abs(rescaled_weights).sum(axis=1))

    @abstractmethod
    def _solve_all(self, design: Design, scale: FloatArray) -> FloatArray:
        """Solve every part; the weights of the rescaled features, one column per machine."""

    @abstractmethod
    def keep(self, staying: BoolArray) -> None:
        """Forget the features that do not stay."""

    @property
    def _loss_name(self) -> Any:
        base = "hinge" if self.epsilon is None else "epsilon_insensitive"
        return base if self.loss == "hinge" else f"squared_{base}"


class SlackRescaling:
    r"""A machine whose slacks are rescaled as well: the fewest samples inside the margin.

    A squared slack is a feature that only one sample has; rescaling these features as the others turns
    their penalty :math:`\tfrac{C}{2}\sum\xi_i^2` into the number of slacks that are not zero. Slacks up to
    ``zero_tol`` count as zero.
    """

    def __init__(self, machine: LinearMachine, zero_tol: float, tol: float) -> None:
        self.machine = machine
        self.zero_tol = zero_tol
        self.tol = tol
        self.settled = False
        self._first_price = [part.price for part in machine.parts]

    @property
    def status(self) -> Status:
        return self.machine.status

    @property
    def weights(self) -> FloatArray:
        return self.machine.weights

    @property
    def bias(self) -> FloatArray:
        return self.machine.bias

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        strength = self.machine.train(design, scale)
        if self.status not in NO_SOLUTION:
            new_prices = [
                price / np.maximum(part.slacks(), self.zero_tol) ** 2
                for part, price in zip(self.machine.parts, self._first_price, strict=True)
            ]
            self.settled = True
            for part, price in zip(self.machine.parts, new_prices, strict=True):
                self.settled = self.settled and bool(
                    np.abs(price - part.price).max() <= self.tol * part.price.max()
                )
                part.price = price
        return strength

    def keep(self, staying: BoolArray) -> None:
        self.machine.keep(staying)


class GramMachine(LinearMachine):
    """In the dual, on the Gram matrix of the rescaled features, which all machines share."""

    def _solve_all(self, design: Design, scale: FloatArray) -> FloatArray:
        gram = design.gram(scale**2)
        for part in self.parts:
            options = {"C": part.price, "loss": self._loss_name, "tol": SOLVER_TOL}
            options |= {"max_iter": SOLVER_MAX_ITER, "warm_start": part.solution}
            if self.epsilon is None:
                part.solution = solve_svm_dual(gram, part.target, **options)
            else:
                part.solution = solve_svr_dual(gram, part.target, epsilon=self.epsilon, **options)
        dual = np.column_stack([part.solution.dual_coef for part in self.parts])
        return scale[:, None] * design.transpose_dot(dual)

    def keep(self, staying: BoolArray) -> None:
        """The dual variables belong to samples: there is nothing to forget."""


class PrimalMachine(LinearMachine):
    """In the primal, for more samples than features."""

    def _solve_all(self, design: Design, scale: FloatArray) -> FloatArray:
        rescaled = StandardizedDesign(design, np.zeros(scale.size), 1.0 / scale)
        for part in self.parts:
            options = {"C": part.price, "loss": self._loss_name, "tol": SOLVER_TOL}
            options |= {"warm_start": part.solution}
            if self.epsilon is None:
                part.solution = solve_linear_svm(rescaled, part.target, **options)
            else:
                part.solution = solve_linear_svr(rescaled, part.target, epsilon=self.epsilon, **options)
        return np.column_stack([part.solution.weights for part in self.parts])

    def keep(self, staying: BoolArray) -> None:
        """Weights of other features are no start; the solvers see that by themselves."""


def linear_machine(
    shape: tuple[int, int], parts: Sequence[Part], *, loss: Loss, epsilon: float | None = None
) -> LinearMachine:
    """The machine for data of this shape: dual for wide data or few samples, primal for tall data."""
    kind = GramMachine if shape[0] <= FEW_SAMPLES or prefers_gram(shape) else PrimalMachine
    return kind(parts, loss=loss, epsilon=epsilon)
