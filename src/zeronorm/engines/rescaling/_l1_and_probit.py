"""Models on rescaled features with the ℓ1 norm or the probit loss, and a switch from the ℓ2 to the ℓ1 norm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr

from zeronorm._types import BoolArray, FloatArray
from zeronorm.design import Design
from zeronorm.engines.rescaling._iteration import NO_SOLUTION, RescaledModel
from zeronorm.engines.rescaling._models import Part
from zeronorm.execution import require_memory
from zeronorm.selection._problem import Problem
from zeronorm.solvers._linear_program import LinearProgram
from zeronorm.solvers._status import Status
from zeronorm.solvers.l1_svm._program import L1SvmProgram
from zeronorm.solvers.svm._dual import per_sample

BYTES_PER_ENTRY = 36  # value and index of a sparse matrix, in the blocks, the whole matrix and the solver


class L1Model:
    r"""Linear programs in the weights :math:`w = z * u`, where the norm of u is :math:`\sum_k |w_k| / z_k`.

    As long as the features stay the same only the costs change, and each program starts from its last
    basis. ``first_gradient`` keeps :math:`\sum_c |x_k^\top v_c|` of the first training, which orders the features
    without a weight.
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
        self.first_gradient: FloatArray | None = None
        self._design: Design | None = None
        self._programs: list[L1SvmProgram] = []

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        costs = self._costs()
        if design is not self._design:
            self._design = design
            self._programs = [
                L1SvmProgram(design, part.target, C=cost, epsilon=self.epsilon)
                for part, cost in zip(self.parts, costs, strict=True)
            ]
        before = [part.solution for part in self.parts]
        for part, cost, program in zip(self.parts, costs, self._programs, strict=True):
            program.set_cost(cost)
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
        if self.first_gradient is None:
            self.first_gradient = np.sum([np.abs(part.solution.gradient) for part in self.parts], axis=0)
        return np.asarray(np.abs(self.weights).sum(axis=1) / scale)

    def keep(self, kept: BoolArray) -> None:
        """Build a new program for the kept features; it is small by then."""

    def _costs(self) -> list[FloatArray]:
        """C for each sample, divided by its last slack where the slacks are rescaled."""
        if self.slack_zero_tol is None or self.parts[0].solution is None:
            return [part.cost for part in self.parts]
        return [part.cost / np.maximum(part.solution.slack, self.slack_zero_tol) for part in self.parts]


class JointL1Model:
    r"""The multi-class SVM of Weston and Watkins with the ℓ1 norm: all classes in one linear program.

    .. math:: \min\ \sum_{c, k} |w_{ck}| / z_k + \sum_i C_i \sum_{m \ne y_i} \xi_{im}, \qquad
        (w_{y_i} - w_m) \cdot x_i + b_{y_i} - b_m \ge 1 - \xi_{im}, \quad \xi_{im} \ge 0 .

    The program holds all features, n rows for each class but one, and starts from its last basis as long as the
    features stay the same.
    """

    settled = True

    def __init__(self, problem: Problem, cost: float | FloatArray) -> None:
        """``cost`` is that of an error, of all samples or of each, with the weights of the samples."""
        self.n_classes = problem.n_classes
        self.status = Status.CONVERGED
        self.weights: FloatArray = np.zeros((0, self.n_classes))
        self.bias: FloatArray = np.zeros(self.n_classes)
        self.loss = 0.0  # the sum of the slacks times their costs
        self.first_gradient: FloatArray | None = None
        pairs = [(i, m) for i, y in enumerate(problem.y) for m in range(self.n_classes) if m != y]
        self._sample, other = np.array(pairs).T
        self._sides = np.eye(self.n_classes)[problem.y[self._sample]] - np.eye(self.n_classes)[other]
        self._cost = per_sample(cost, problem.n_samples)[self._sample]
        self._design: Design | None = None
        self._program: LinearProgram | None = None

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        self.solve(design, 1.0 / scale)
        if self.status in NO_SOLUTION:
            return np.zeros(scale.size)
        return np.asarray(np.abs(self.weights).sum(axis=1) / scale)

    def solve(self, design: Design, penalty: FloatArray) -> None:
        """Solve the program in which an absolute weight of one costs ``penalty``, for each feature."""
        if design is not self._design or self._program is None:
            self._design, self._program = design, self._build(design)
        soft = np.where(np.isinf(self._cost), 0.0, self._cost)
        norm = np.tile(penalty, 2 * self.n_classes)
        self._program.set_costs(np.concatenate([np.zeros(self.n_classes), soft, norm]))
        found = self._program.solve()
        self.status = found.status
        if self.status in NO_SOLUTION:
            return
        bias, slack, both = np.split(found.x, [self.n_classes, self.n_classes + soft.size])
        parts = both.reshape(self.n_classes, 2, penalty.size)
        self.weights, self.bias, self.loss = (parts[:, 0] - parts[:, 1]).T, bias, float(soft @ slack)
        if self.first_gradient is None:
            by_class = np.zeros((design.n_samples, self.n_classes))
            np.add.at(by_class, self._sample, self._sides * found.row_duals[:, None])
            self.first_gradient = np.abs(design.transpose_dot(by_class)).sum(axis=1)

    def _build(self, design: Design) -> LinearProgram:
        """The variables: biases, slacks, then for each class the positive and the negative parts of its weights."""
        require_memory(
            BYTES_PER_ENTRY * 4 * self._sample.size * design.n_features,
            f"The joint linear program of {self.n_classes} classes",
            "use one program for each class, or a filter first.",
        )
        rows = design.block(np.arange(design.n_features))[self._sample]
        blocks = [sp.csc_array(self._sides), sp.eye_array(self._sample.size, format="csc")]
        for side in self._sides.T:
            own = sp.csc_array(side[:, None] * rows)
            blocks += [own, -own]
        matrix = sp.hstack(blocks, format="csc")
        lower, upper = np.zeros(matrix.shape[1]), np.full(matrix.shape[1], np.inf)
        lower[: self.n_classes] = -np.inf
        upper[self.n_classes : self.n_classes + self._sample.size][np.isinf(self._cost)] = 0.0
        return LinearProgram(np.zeros(matrix.shape[1]), matrix, 1.0, np.inf, lower, upper)

    def keep(self, kept: BoolArray) -> None:
        """Build a new program for the kept features."""


class SwitchingModel:
    """Models with the ℓ2 norm while there are many features, and with the ℓ1 norm once there are few."""

    def __init__(self, many: RescaledModel, few: L1Model, few_features: int) -> None:
        self.many = many
        self.few = few
        self.few_features = few_features
        self.status = Status.CONVERGED
        self._trained: RescaledModel = many

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
        model: RescaledModel = self.few if scale.size <= self.few_features else self.many
        abs_weight = model.train(design, scale)
        self.status = model.status
        if self.status not in NO_SOLUTION:
            self._trained = model
        return abs_weight

    def keep(self, kept: BoolArray) -> None:
        self.many.keep(kept)
        self.few.keep(kept)


# -- Probit regression on rescaled features, one step of expectation-maximisation (EM) at a time --
#
# Each label is the sign of :math:`t_i = w \cdot x_i + b + \varepsilon_i` with standard normal noise. Given
# the last decision values f, the expected t is
#
# .. math:: \bar t_i = f_i + y_i\,\frac{\varphi(f_i)}{\Phi(y_i f_i)},
#
# and the next weights minimise :math:`\|Xw + b - \bar t\|^2 + w^\top \Lambda w` (Huang et al. 2008, eqs. 3-6)


SLOWEST = 0.9999  # largest ratio of two changes that is believed; above, rounding decides


class ProbitModel:
    """Probit regression as a ``RescaledModel``; the costs of the parts are the sample weights."""

    def __init__(self, parts: Sequence[Part], tol: float) -> None:
        self.tol = tol
        self.settled = False
        self._change = 0.0
        self.targets = np.column_stack([part.target for part in parts])
        self.sample_weight = np.column_stack([part.cost for part in parts])
        self.decision: FloatArray = np.zeros_like(self.targets)
        self.status = Status.CONVERGED
        self.weights: FloatArray = np.zeros((0, len(parts)))
        self.bias: FloatArray = np.zeros(len(parts))

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        expected = expected_scores(self.decision, self.targets)
        rescaled = design.transformed(scale=1.0 / scale)
        solve = _ridge_in_dual if design.n_samples <= scale.size else _ridge_in_primal
        gram = rescaled.gram() if solve is _ridge_in_dual else None
        columns = []
        for c in range(self.targets.shape[1]):
            weights, self.bias[c] = solve(rescaled, gram, expected[:, c], self.sample_weight[:, c])
            columns.append(weights)
        rescaled_weights = np.column_stack(columns)
        decision = rescaled.dot(rescaled_weights) + self.bias
        change = float(np.abs(decision - self.decision).max())
        # EM converges geometrically: with the ratio r of two changes, change · r/(1 - r) is still to come.
        ratio = min(change / self._change, SLOWEST) if self._change > 0.0 else SLOWEST
        self.settled = max(change, change * ratio / (1.0 - ratio)) <= self.tol * float(np.abs(decision).max())
        self.decision, self._change = decision, change
        self.weights = scale[:, None] * rescaled_weights
        return np.asarray(np.abs(rescaled_weights).sum(axis=1))

    def keep(self, kept: BoolArray) -> None:
        """Nothing to drop: only the decision values of the last step are needed."""


def expected_scores(decision: FloatArray, target: FloatArray) -> FloatArray:
    """The expected latent score given the label, without cancellation far from the boundary."""
    log_density = -0.5 * decision**2 - 0.5 * np.log(2.0 * np.pi)
    return np.asarray(decision + target * np.exp(log_density - log_ndtr(target * decision)))


def _ridge_in_dual(
    design: Design, gram: FloatArray | None, target: FloatArray, weight: FloatArray
) -> tuple[FloatArray, float]:
    """Minimise Σ weight (x·u + b - target)² + |u|² with a free bias, for wide data."""
    assert gram is not None
    present = weight > 0.0
    factor = cho_factor(gram[np.ix_(present, present)] + np.diag(1.0 / weight[present]))
    ones = np.ones(int(present.sum()))
    solved = cho_solve(factor, np.column_stack([target[present], ones]))
    bias = float(solved[:, 0].sum() / solved[:, 1].sum())
    dual = np.zeros(target.size)
    dual[present] = solved[:, 0] - bias * solved[:, 1]
    return design.transpose_dot(dual), bias


def _ridge_in_primal(
    design: Design, gram: FloatArray | None, target: FloatArray, weight: FloatArray
) -> tuple[FloatArray, float]:
    """Minimise the same objective for tall data."""
    total = weight.sum()
    mean = design.transpose_dot(weight) / total
    mean_target = float(weight @ target / total)
    system = design.sandwich(weight) - total * np.outer(mean, mean) + np.eye(mean.size)
    right = design.transpose_dot(weight * (target - mean_target))
    weights = cho_solve(cho_factor(system), right)
    return weights, mean_target - float(mean @ weights)
