r"""Automatic choice of the cost C of an error and of the width ε of the insensitive loss, from the data alone.

Used by AROM, ZeroNormSVM, L1SVM, SVMWeights, KernelMultiplicativeUpdate and RFE with ``C="auto"``.

For the ℓ2 norm no SVM is trained. The ridge regression on the ±1 targets,

.. math:: \min_{w, b}\ \tfrac12\|w\|^2 + \tfrac C2 \sum_i \omega_i\,(t_i - w \cdot x_i - b)^2,

equals the SVM with squared slacks if every sample is a support vector, which nearly all samples of wide data are.
One decomposition of the centred kernel matrix gives its leave-one-out decision values for all C: with the residuals
:math:`r` and the leverages :math:`h` of the fit to all samples,

.. math:: f_{-i}(x_i) = t_i - \frac{r_i}{1 - h_i}, \qquad
    L(C) = \min_{a \ge 0}\ \frac1N \sum_i \bigl(t_i - a\,f_{-i}(x_i)\bigr)^2.

A small C shrinks all decision values without changing their order; the factor a corrects for that. The choice is the
smallest C whose loss is within ``NEARLY`` standard errors of the lowest: noisy labels get a small C, clean ones a
large C. It needs no folds and no order of the samples, and a weight of two equals two samples. Samples of one
group are left out together, by the same formula with a block of the hat matrix in place of :math:`h_i`.

For the ℓ1 norm, whose C has another unit, linear programs are solved along a path of C on a few folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from zeronorm._types import BoolArray, FloatArray, IntArray, written
from zeronorm.design import Design
from zeronorm.engines._by_content import squared_distances, turns_by_content
from zeronorm.engines._cox_scores import mean_curvature, working_problem
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Real
from zeronorm.selection.target._real import weighted_median
from zeronorm.solvers.l1_svm._dual import l1_svm_program
from zeronorm.solvers.linear import ROBUST_LOSSES

NEARLY = 0.25  # standard errors; chosen, like the range of C, on the tuning data of the study "defaults"
UNIT_COSTS = np.geomspace(0.1, 10.0, 17)  # for kernels whose mean diagonal is one
LARGEST_SYSTEM = 1000  # samples; with more, a subsample is used
EPSILON = 0.1  # in units of the scale of a regression target
# The same for the Huber loss, which keeps 95 % of the efficiency of squares for normal errors (Huber 1964).
HUBER_EPSILON = 1.345
FAR = 3.0  # scales of a regression target from its median; one of 370 normal targets is beyond
FOLDS = 3
# Samples for the ℓ1 norm; with more, a subsample is used: large linear programs are slow.
LARGEST_PROGRAM = 300
# The largest C on a path of the ℓ1 norm, as a multiple of the C at which the first feature enters.
BEYOND_FIRST = 1e3
EQUALLY_GOOD = 1e-9
NO_ROOM = 1e-12  # least 1 - leverage; below, a sample is fitted exactly
NO_SLACK = 1e-7


@dataclass(frozen=True)
class AutomaticC:
    """The chosen C, in two units.

    Attributes
    ----------
    unit : C for a kernel whose mean diagonal is one.
    diagonal : the mean diagonal of the kernel of all features, centred.
    """

    unit: float
    diagonal: float

    @property
    def raw(self) -> float:
        """C for the kernel without rescaling."""
        return self.unit / self.diagonal


def known_cost(selector: Any, problem: Problem) -> float | None:
    """The C that a selector was given or that was chosen before; None where it has yet to be chosen."""
    return problem.shared.C if isinstance(selector.C, str) else float(selector.C)


def C_of(
    selector: Any, problem: Problem, unit: Literal["diagonal", "raw"] = "raw", K: FloatArray | None = None
) -> float:
    """Return the C of a selector, chosen from the data where it is "auto".

    ``unit`` states how C is used: on a kernel with a mean diagonal of one, or on the kernel as it is. ``K`` is the
    kernel matrix of all features where it is not linear.
    """
    known = known_cost(selector, problem)
    if known is not None:
        return known
    found = automatic_C(working_problem(without_outliers(selector, problem)), K)
    return (found.unit if unit == "diagonal" else found.raw) / mean_curvature(
        problem, getattr(selector, "loss", "")
    )


def without_outliers(selector: Any, problem: Problem) -> Problem:
    """The problem with a clipped target where the loss is robust: squares and correlations would follow outliers."""
    if getattr(selector, "loss", None) not in ROBUST_LOSSES:
        return problem
    weight, targets = _weights(problem), problem.target.columns()
    median = np.array([weighted_median(y, weight) for y in targets.T])
    reach = FAR * problem.target.unit(problem.sample_weight)
    values = np.clip(targets, median - reach, median + reach).reshape(problem.y.shape)
    return replace(problem, target=replace(problem.target, values=values))


def epsilon_of(selector: Any, problem: Problem) -> float | None:
    """Return the ε of a selector: a multiple of a real target's scale where it is "auto"; None for other targets."""
    if problem.target.kind != Real.kind:
        return None
    if selector.epsilon == "auto":
        width = HUBER_EPSILON if getattr(selector, "loss", None) == "huber" else EPSILON
        return width * problem.target.unit(problem.sample_weight)
    if isinstance(selector.epsilon, str) or not selector.epsilon >= 0.0:
        raise ValueError(
            f"The 'epsilon' parameter of {type(selector).__name__} must be 'auto' or a number that is not negative. "
            f"Got {written(selector.epsilon)} instead."
        )
    return float(selector.epsilon)


def _weights(problem: Problem) -> FloatArray:
    return np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight


# -- The ℓ2 norm: leave-one-out on the kernel matrix --


def automatic_C(problem: Problem, K: FloatArray | None = None) -> AutomaticC:
    """Choose the C for the features of a problem; ``K`` is their kernel matrix where it is not linear.

    Methods that share the view of the data, the target, the weights and the groups share the C of a linear kernel.
    """
    if K is not None:
        return _automatic_C(problem, K)
    target = problem.target.around_zero()  # C does not depend on a shift of a real target
    covariates = None if problem.adjust is None else problem.adjust.columns
    inputs = (
        problem.design, target.kind, target.values, problem.sample_weight, problem.sample_groups, covariates
    )  # fmt: skip
    return problem.shared.once("C", inputs, lambda: _automatic_C(problem, None))


def _automatic_C(problem: Problem, K: FloatArray | None) -> AutomaticC:
    if problem.n_samples > LARGEST_SYSTEM:
        rows = _evenly_spaced_rows(problem.target.columns(), LARGEST_SYSTEM)
        problem, K = problem.take(rows), None if K is None else K[np.ix_(rows, rows)]
    weight = _weights(problem)
    # Weights below one, such as weights that sum to one, are scaled to sum to the effective number of samples.
    factor = max(1.0, float(weight.sum()) / float(weight @ weight))
    weight = weight * factor
    free = None if problem.adjust is None else problem.adjust.orthonormal
    eigenvalues, vectors = _spectrum(problem.design, K, weight, free)
    diagonal = float(eigenvalues.sum()) / float(weight.sum())
    if not diagonal > 0.0:
        return AutomaticC(factor, 1.0)
    groups = None if problem.sample_groups is None else _members(problem.sample_groups)
    smoother = _Smoother(eigenvalues / diagonal, vectors, weight, groups, free)
    targets = problem.residuals(problem.target.columns())
    return AutomaticC(_smallest_good_cost(smoother, targets) * factor, diagonal)


def _members(groups: Any) -> list[IntArray]:
    """Indices of the samples of each group."""
    _, codes = np.unique(groups, return_inverse=True)
    return [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]


def _spectrum(
    design: Design, K: FloatArray | None, weight: FloatArray, free: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Positive eigenvalues and eigenvectors of the centred, weighted kernel matrix, from the smaller system.

    ``free`` is an orthonormal basis of covariates, on whose complement the matrix is projected.
    """
    root = np.sqrt(weight)
    if K is None and design.n_features < design.n_samples:
        X = design.block(range(design.n_features))
        X = root[:, None] * (X - np.average(X, axis=0, weights=weight))
        if free is not None:
            X -= free @ (free.T @ X)
        values, directions = design.backend.eigen(X.T @ X)
        present = _present(values)
        return values[present], X @ directions[:, present] / np.sqrt(values[present])
    gram = design.gram() if K is None else K.copy()
    mean = gram @ weight / weight.sum()
    gram -= mean  # in place: matrices of many samples are large
    gram -= mean[:, None]
    gram += float(mean @ weight) / weight.sum()
    gram *= root[:, None]
    gram *= root
    if free is not None:
        gram -= free @ (free.T @ gram)
        gram -= (gram @ free) @ free.T
    values, vectors = design.backend.eigen(gram)
    present = _present(values)
    return values[present], vectors[:, present]


def _present(rising: FloatArray) -> slice:
    """Slice of the ascending eigenvalues that are not zero up to rounding."""
    largest = max(float(rising.max(initial=0.0)), np.finfo(float).tiny)
    return slice(int(np.searchsorted(rising, 1e-12 * largest, side="right")), None)


@dataclass(frozen=True)
class _Smoother:
    """Ridge regressions for all C on one kernel matrix, given by its eigenvalues and eigenvectors.

    ``groups`` lists samples that are left out together; None leaves out one unit of weight at a time. ``free`` is an
    orthonormal basis of covariates, which are fitted without a penalty.
    """

    eigenvalues: FloatArray
    vectors: FloatArray
    weight: FloatArray
    groups: list[IntArray] | None
    free: FloatArray | None = None

    def left_out(self, costs: FloatArray, target: FloatArray) -> FloatArray:
        """Leave-one-out decision values for a centred target, of shape (costs, samples, targets)."""
        root, total = np.sqrt(self.weight)[:, None], float(self.weight.sum())
        fitted = np.outer(self.eigenvalues, costs)
        fitted /= 1.0 + fitted
        gradient = self.vectors.T @ (root * target)
        weighted = (fitted[:, :, None] * gradient[:, None, :]).reshape(gradient.shape[0], -1)
        smoothed = (self.vectors @ weighted / root).reshape(len(target), costs.size, -1).transpose(1, 0, 2)
        left_over = target - smoothed
        if self.groups is None:
            leverage = (self.vectors**2 @ fitted).T / self.weight + 1.0 / total
            if self.free is not None:
                leverage = leverage + (self.free**2).sum(axis=1) / self.weight
            return np.asarray(target - left_over / np.maximum(1.0 - leverage, NO_ROOM)[:, :, None])
        decision = np.empty_like(left_over)
        for rows in self.groups:
            part, edge = self.vectors[rows], root[rows]
            for fit, over, out in zip(fitted.T, left_over, decision, strict=True):
                rest = np.eye(rows.size) - (part * fit) @ part.T - edge @ edge.T / total
                if self.free is not None:
                    rest -= self.free[rows] @ self.free[rows].T
                rest += NO_ROOM * np.eye(rows.size)
                out[rows] = target[rows] - np.linalg.solve(rest, edge * over[rows]) / edge
        return decision


def _smallest_good_cost(smoother: _Smoother, targets: FloatArray) -> float:
    """The smallest C whose leave-one-out loss is close to the lowest."""
    total = float(smoother.weight.sum())
    share = smoother.weight / total
    centred = targets - share @ targets
    scale = np.sqrt(share @ centred**2)
    centred = centred / np.where(scale > 0.0, scale, 1.0)
    decisions = smoother.left_out(UNIT_COSTS, centred)
    loss = np.stack([_loss_at_best_size(decision, centred, share) for decision in decisions])
    mean = loss @ share
    best = int(np.argmin(mean))
    error = np.sqrt(((loss[best] - mean[best]) ** 2) @ share / total)
    return float(UNIT_COSTS[np.flatnonzero(mean <= (1.0 + EQUALLY_GOOD) * (mean[best] + NEARLY * error))[0]])


def _loss_at_best_size(decision: FloatArray, centred: FloatArray, share: FloatArray) -> FloatArray:
    """Squared error of each sample after all decision values are multiplied by the best common factor."""
    decision = decision - share @ decision
    size = np.maximum(share @ decision**2, np.finfo(float).tiny)
    factor = np.maximum(share @ (decision * centred), 0.0) / size
    return np.asarray(((centred - factor * decision) ** 2).mean(axis=1))


def _evenly_spaced_rows(targets: FloatArray, size: int, within: FloatArray | None = None) -> IntArray:
    """Choose ``size`` samples evenly over the targets, and for each target evenly over the values of ``within``."""
    order = np.lexsort(targets.T if within is None else (within, *targets.T))
    positions = np.linspace(0, order.size - 1, size).round().astype(np.intp)
    return np.sort(order[positions])


# -- The ℓ1 norm: a path of linear programs on a few folds --


def l1_path(
    problem: Problem, n_steps: int, last: float | None = None, beyond: float = BEYOND_FIRST
) -> FloatArray:
    """Ascending values of C, from one at which all weights are zero up to ``last`` or a multiple of the first."""
    targets = problem.target.columns()
    first = min(_where_a_feature_enters(problem, y) for y in targets.T)
    if last is None:
        return first * np.geomspace(1.0, beyond, max(2, n_steps))
    return np.geomspace(min(first, 0.5 * last), last, n_steps)


def _where_a_feature_enters(problem: Problem, y: FloatArray) -> float:
    """The C at which the first feature enters: 1 over the largest gradient of the model without features."""
    weight = _weights(problem)
    above = y > (0.0 if problem.target.has_classes else weighted_median(y, weight))
    mass = min(weight[above].sum(), weight[~above].sum())
    if mass == 0.0:
        return 1.0
    dual = weight * np.where(above, mass / weight[above].sum(), -mass / weight[~above].sum())
    largest = float(np.abs(problem.design.transpose_dot(dual)).max(initial=0.0))
    return 1.0 / largest if largest > 0.0 else 1.0


def automatic_l1_C(problem: Problem, epsilon: float | None, nearly: float = 1.0) -> float:
    """The first of ``nearly_best_l1_costs`` at which any feature has a nonzero weight, else the last."""
    costs = nearly_best_l1_costs(problem, epsilon, nearly=nearly)
    programs = [
        l1_svm_program(problem.design, t, C=problem.sample_costs(1.0), epsilon=epsilon)
        for t in problem.target.columns().T
    ]
    for C in costs[:-1]:
        for program in programs:
            program.set_cost(problem.sample_costs(C))
            if program.solve().weights.any():
                return float(C)
    return float(costs[-1])


def nearly_best_l1_costs(
    problem: Problem, epsilon: float | None, n_steps: int = 10, nearly: float = 1.0
) -> FloatArray:
    """The values of C on ``l1_path``, starting with the smallest whose loss on held-out samples is close to the lowest.

    Close means within ``nearly`` standard errors. Programs with a large C take longest, so the path ends at a C whose
    loss is higher than that, or that does not improve on the best, if the best is clearly better than no features.

    The loss is the distance of the decision value, clipped to ±1, from the label; in regression the absolute error.
    Of many samples a subsample is used. The gradient of a noise feature over n samples grows as √n, so the C that
    excludes noise features decreases as 1/√n.
    """
    costs, n_back = l1_path(problem, n_steps), 0
    if problem.n_samples > LARGEST_PROGRAM:
        step = np.log(costs[1] / costs[0])
        n_back = round(0.5 * np.log(problem.n_samples / LARGEST_PROGRAM) / step)
        rows = _evenly_spaced_rows(problem.target.columns(), LARGEST_PROGRAM, squared_distances(problem))
        problem = problem.take(rows)
    fold, weight = turns_by_content(problem) % FOLDS, _weights(problem)
    is_test = [fold == k for k in range(FOLDS)]
    parts = [_LeftOut(problem, epsilon, rows, costs.size) for rows in is_test if 0 < rows.sum() < fold.size]
    share, losses, best = weight / weight.sum(), [], 0
    for C in costs:
        losses.append(np.zeros(problem.n_samples))
        for part in parts:
            losses[-1][part.test] = part.loss(C)
        mean = np.asarray(losses) @ share
        best = int(np.argmin(mean))
        errors = np.sqrt((np.asarray(losses) - mean[:, None]) ** 2 @ share / weight.sum())
        if _is_beyond_the_best(mean, errors):
            break
    chosen = int(np.flatnonzero(mean <= mean[best] + nearly * errors[best])[0])
    return costs[max(0, chosen - n_back) :]


def _is_beyond_the_best(loss: FloatArray, error: FloatArray) -> bool:
    """Whether a C above the last one is unlikely to be the best.

    Without features all C have the same loss, up to rounding, and it may be the same for all samples: then its
    standard error is zero.
    """
    best = int(np.argmin(loss))
    is_worse = bool(loss[-1] > (1.0 + EQUALLY_GOOD) * loss[best])
    has_features = bool(loss[best] + error[best] < loss[0])
    return is_worse and (has_features or bool(loss[-1] > loss[best] + max(error[best], error[-1])))


class _LeftOut:
    """Models trained on each training fold and their loss on the test fold, for ascending values of C."""

    def __init__(self, problem: Problem, epsilon: float | None, is_test: BoolArray, n_steps: int) -> None:
        self.test, train = np.flatnonzero(is_test), np.flatnonzero(~is_test)
        self.weight, self.epsilon = _weights(problem)[train], epsilon
        self.held_out, known = problem.design.take_rows(self.test), problem.design.take_rows(train)
        targets = [t for t in problem.target.columns().T if np.ptp(t[train]) > 0.0]
        self.targets = [t[self.test] for t in targets]
        self.programs = [
            l1_svm_program(known, t[train], C=self.weight, epsilon=epsilon, n_steps=n_steps) for t in targets
        ]
        self.final: dict[int, FloatArray] = {}  # losses of models without slack: a larger C changes nothing

    def loss(self, C: float) -> FloatArray:
        """Loss of each sample when its fold is left out."""
        return np.asarray(np.sum([self._loss_of(i, C) for i in range(len(self.programs))], axis=0))

    def _loss_of(self, i: int, C: float) -> FloatArray:
        if i in self.final:
            return self.final[i]
        self.programs[i].set_cost(C * self.weight)
        model = self.programs[i].solve()
        decision = self.held_out.dot(model.weights) + model.bias
        if self.epsilon is None:
            decision = np.clip(decision, -1.0, 1.0)
        loss: FloatArray = np.abs(self.targets[i] - decision)
        if float(model.slack.max(initial=0.0)) <= NO_SLACK:
            self.final[i] = loss
        return loss
