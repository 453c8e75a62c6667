"""Linear support vector machines on rescaled features, trained again and again from the last solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from zeronorm._types import BoolArray, FloatArray
from zeronorm.design import Design, contiguous
from zeronorm.design._index import each, made_absolute
from zeronorm.engines.rescaling._iteration import NO_SOLUTION
from zeronorm.execution import in_threads
from zeronorm.selection._problem import Problem
from zeronorm.solvers._status import Status
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._dual import solve_svm_dual, solve_svr_dual
from zeronorm.solvers.svm._joint_multiclass import MulticlassSvm, solve_weston_watkins
from zeronorm.solvers.svm._linear import DEFAULT_MEMORY_BUDGET, prefers_gram, solve_piecewise_linear
from zeronorm.solvers.svm._tall import TallSolution, solve_squared_loss

Loss = Literal["hinge", "squared"]
Pairing = Literal["one_vs_rest", "one_vs_one"]

SOLVER_TOL = 1e-7
SOLVER_MAX_ITER = 1_000_000
# Up to this many samples the dual, warm-started, is faster for any number of features: Newton's method for the
# squared loss starts from it too, the interior-point method for the hinge loss does not.
FEW_SAMPLES = {"squared": 256, "hinge": 1024}


@dataclass
class Part:
    """One of several models: its target, the cost of an error for each sample, and its last solution."""

    target: FloatArray
    cost: FloatArray
    solution: Any = None


def parts_of(problem: Problem, C: float, pairing: Pairing = "one_vs_rest") -> list[Part]:
    """One model for two classes, a regression or one label; for more classes one for each class or pair."""
    cost = np.broadcast_to(np.asarray(problem.sample_costs(C), dtype=np.float64), problem.n_samples)
    targets, involved = problem.target.model_columns(pairing)
    # Errors on samples of other classes have cost zero, so these samples have no influence.
    return [
        Part(target, np.where(inside, cost, 0.0))
        for target, inside in zip(np.ascontiguousarray(targets.T), involved.T, strict=True)
    ]


class SharedScaleModel:
    """Linear SVMs that share the scaling factors; a ``RescaledModel`` of the rescaling engine.

    They are solved in the dual, on one Gram matrix for all models, as long as there are at least as many features as
    samples (or few samples); in the primal after that. After training, ``weights`` holds one column per
    model for the features as they are, before rescaling, and ``bias`` one number per model; a training
    without a solution leaves both as they were. With an ``epsilon`` the models are regressions.
    """

    settled = True

    def __init__(self, parts: Sequence[Part], *, loss: Loss, epsilon: float | None = None) -> None:
        self.parts = parts
        self.loss = loss
        self.epsilon = epsilon
        self.status = Status.CONVERGED
        self.weights: FloatArray = np.zeros((0, len(parts)))
        self.bias: FloatArray = np.zeros(len(parts))
        self._was_in_dual = True
        self._earlier_weights: FloatArray | None = None  # weights of the remaining features, for the primal

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        in_dual = self.in_dual(design.shape)
        if in_dual != self._was_in_dual:
            self._was_in_dual = in_dual
            for part in self.parts:
                part.solution = None  # a dual solution is no start for the primal, nor the reverse
        rescaled_weights = (self._solve_in_dual if in_dual else self._solve_in_primal)(design, scale)
        self.status = max(part.solution.status for part in self.parts)
        if self.status in NO_SOLUTION:
            return np.zeros(scale.size)
        self.bias = np.array([part.solution.bias for part in self.parts])
        self.weights = _scaled(rescaled_weights, scale)
        self._earlier_weights = None if design.n_samples <= FEW_SAMPLES[self.loss] else self.weights
        abs_weight = made_absolute(rescaled_weights)
        return abs_weight[:, 0] if len(self.parts) == 1 else np.asarray(abs_weight.sum(axis=1))

    def in_dual(self, shape: tuple[int, int]) -> bool:
        """Whether data of this shape are better solved on the Gram matrix."""
        n, p = shape
        if n <= FEW_SAMPLES[self.loss]:
            return True
        primal_fits = 16 * (p + 1) ** 2 <= DEFAULT_MEMORY_BUDGET
        warm_primal = self.loss == "squared" and p < n and primal_fits
        return not warm_primal and prefers_gram(shape)

    def keep(self, kept: BoolArray) -> None:
        """Drop the weights of removed features; dual variables belong to samples and stay."""
        if self._earlier_weights is not None:
            self._earlier_weights = self._earlier_weights[kept]

    def _solve_in_dual(self, design: Design, scale: FloatArray) -> FloatArray:
        """Solve every part; the weights of the rescaled features, one column per model."""
        gram = design.gram(each(np.multiply, scale, scale))
        for part in self.parts:
            options = self._options(part) | {"max_iter": SOLVER_MAX_ITER}
            if self.epsilon is None:
                is_wide = design.n_features >= design.n_samples
                guess = self.loss == "squared" and is_wide
                part.solution = solve_svm_dual(gram, part.target, all_free=guess, **options)
            else:
                part.solution = solve_svr_dual(gram, part.target, epsilon=self.epsilon, **options)
        dual = np.column_stack([part.solution.dual_coef for part in self.parts])
        weights = np.require(design.transpose_dot(dual), requirements="W")

        def rescale(first: int, last: int) -> None:
            weights[first:last] *= scale[first:last, None]

        in_threads(rescale, scale.size)
        return weights

    def _solve_in_primal(self, design: Design, scale: FloatArray) -> FloatArray:
        """Solve every part in the primal, for more samples than features."""
        rescaled = contiguous(design.transformed(scale=1.0 / scale))
        squared = self.loss == "squared"
        for index, part in enumerate(self.parts):
            problem = BoxDual.of(part.target, part.cost, self.epsilon, squared)
            part.solution = self._solve_tall(rescaled, problem, scale, index)
        return np.column_stack([part.solution.weights for part in self.parts])

    def _solve_tall(self, design: Design, problem: BoxDual, scale: FloatArray, index: int) -> TallSolution:
        """Solve one part from the earlier weights, which give the same decision values on the new scales."""
        start = None
        if self._earlier_weights is not None:
            start = (self._earlier_weights[:, index] / scale, float(self.bias[index]))
        if problem.ridge.any():
            return solve_squared_loss(design, problem, start, tol=SOLVER_TOL)
        before = self.parts[index].solution
        near = None if start is None or before is None else (*start, before.alpha)
        return solve_piecewise_linear(design, problem, near, tol=SOLVER_TOL)

    def _options(self, part: Part) -> dict[str, Any]:
        base = "hinge" if self.epsilon is None else "epsilon_insensitive"
        loss = base if self.loss == "hinge" else f"squared_{base}"
        return {"C": part.cost, "loss": loss, "tol": SOLVER_TOL, "warm_start": part.solution}


def _scaled(weights: FloatArray, scale: FloatArray) -> FloatArray:
    """The weights of each model times the factors."""
    if weights.shape[1] > 1:
        return scale[:, None] * weights
    return each(np.multiply, scale, weights[:, 0])[:, None]


class GramModel(SharedScaleModel):
    """Linear SVMs that are always solved in the dual."""

    def in_dual(self, shape: tuple[int, int]) -> bool:
        return True


class PrimalModel(SharedScaleModel):
    """Linear SVMs that are always solved in the primal."""

    def in_dual(self, shape: tuple[int, int]) -> bool:
        return False


class SlackRescaling:
    r"""A linear SVM whose slacks are rescaled too, so that few samples lie inside the margin.

    A slack is like a feature that is nonzero in one sample; rescaling these features like the others turns their
    penalty :math:`\tfrac{C}{2}\sum\xi_i^2` or :math:`C\sum\xi_i` into :math:`C\sum\ln\xi_i`, which stands for the
    number of slacks that are not zero: the next training has the costs :math:`C/\xi_i^2` or :math:`C/\xi_i`. Slacks up
    to ``zero_tol`` count as zero. It is settled when no cost changes by more than the fraction ``tol``.
    """

    def __init__(self, model: SharedScaleModel, zero_tol: float, tol: float) -> None:
        self.model = model
        self.zero_tol = zero_tol
        self.tol = tol
        self.settled = False
        self._first_cost = [part.cost for part in model.parts]

    @property
    def status(self) -> Status:
        return self.model.status

    @property
    def weights(self) -> FloatArray:
        return self.model.weights

    @property
    def bias(self) -> FloatArray:
        return self.model.bias

    def slacks(self, design: Design) -> FloatArray:
        """How far each sample misses its margin, or its target by more than epsilon; one column per model."""
        values = design.dot(self.model.weights) + self.model.bias
        targets = np.column_stack([part.target for part in self.model.parts])
        if self.model.epsilon is None:
            return np.maximum(1.0 - targets * values, 0.0)
        return np.maximum(np.abs(targets - values) - self.model.epsilon, 0.0)

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        abs_weight = self.model.train(design, scale)
        if self.status not in NO_SOLUTION:
            exponent = 2.0 if self.model.loss == "squared" else 1.0
            divisors = np.maximum(self.slacks(design), self.zero_tol) ** exponent
            self.settled = True
            for part, first, divisor in zip(self.model.parts, self._first_cost, divisors.T, strict=True):
                cost = first / divisor
                self.settled = self.settled and bool(np.all(np.abs(cost - part.cost) <= self.tol * cost))
                part.cost = cost
        return abs_weight

    def keep(self, kept: BoolArray) -> None:
        self.model.keep(kept)


# -- The joint multi-class SVM on rescaled features --


class JointModel:
    """The multi-class SVM of Weston and Watkins: one joint problem with a weight vector for each class."""

    settled = True

    def __init__(self, problem: Problem, cost: float | FloatArray) -> None:
        """``cost`` is that of an error, of all samples or of each, with the weights of the samples."""
        self.codes = problem.y
        self.n_classes = problem.n_classes
        self.cost = cost
        self.status = Status.CONVERGED
        self.weights: FloatArray = np.zeros((0, self.n_classes))
        self.bias: FloatArray = np.zeros(self.n_classes)
        self._solution: MulticlassSvm | None = None

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        self._solution = solve_weston_watkins(
            design.gram(scale**2),
            self.codes,
            self.n_classes,
            C=self.cost,
            loss="squared_hinge",
            warm_start=self._solution,
            tol=SOLVER_TOL,
        )
        self.status = self._solution.status
        if self.status in NO_SOLUTION:
            return np.zeros(scale.size)
        rescaled_weights = scale[:, None] * design.transpose_dot(self._solution.dual_coef)
        self.weights = scale[:, None] * rescaled_weights
        self.bias = self._solution.bias
        return np.asarray(np.abs(rescaled_weights).sum(axis=1))

    def keep(self, kept: BoolArray) -> None:
        """Nothing to drop: the dual variables belong to samples."""
