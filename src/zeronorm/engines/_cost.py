r"""What a selector's data alone say about the price C of an error and the width ε of a tube.

Serves AROM, ZeroNormSVM, L1SVM, SVMWeights, KernelMultiplicativeUpdate and RFE with ``C="auto"``.

For the ℓ2 norm no machine is trained. The ridge regression on the ±1 targets,

.. math:: \min_{w, b}\ \tfrac12\|w\|^2 + \tfrac C2 \sum_i \omega_i\,(t_i - w \cdot x_i - b)^2,

is the machine with squared slacks as long as every sample is a support vector, which in wide data nearly all are.
One decomposition of the centred kernel matrix gives its decisions on samples left out, for all C: with the residuals
:math:`r` and the leverages :math:`h` of the fit to all samples,

.. math:: f_{-i}(x_i) = t_i - \frac{r_i}{1 - h_i}, \qquad
    L(C) = \min_{a \ge 0}\ \frac1N \sum_i \bigl(t_i - a\,f_{-i}(x_i)\bigr)^2.

The factor a takes out what a small C does to the size of the decisions and not to their order. The choice is the
smallest C whose loss is within ``NEARLY`` standard errors of the lowest: noisy labels get a small price, clean ones a
large price. It knows no folds and no order of the samples, and a sample of weight two counts as two. Samples of one
group are left out together, by the same formula with a block of the hat matrix in place of :math:`h_i`.

For the ℓ1 norm, whose C has another unit, programs are solved along a path of C on a few folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from zeronorm._types import BoolArray, FloatArray, IntArray, written
from zeronorm.design import Design
from zeronorm.selection._problem import Problem
from zeronorm.selection.target._real import weighted_median
from zeronorm.solvers.l1_svm._dual import l1_svm_program

NEARLY = 0.25  # chosen, as the range of prices, on the tuning data of the study "defaults"
UNIT_COSTS = np.geomspace(0.1, 10.0, 17)  # for kernels whose mean diagonal is one
LARGEST_SYSTEM = 1000  # samples; of more a part decides
EPSILON = 0.1  # of the spread of a regression target
FOLDS = 3
LARGEST_PROGRAM = (
    300  # samples of the ℓ1 norm; of more a part decides: with thousands of features programs are slow
)
BEYOND_FIRST = 1e3  # the largest C on a path of the ℓ1 norm, as a multiple of where the first feature enters
EQUALLY_GOOD = 1e-9
NO_ROOM = 1e-12  # samples that no others say anything about are fitted exactly
NO_SLACK = 1e-7
SPARSE_COLUMNS = 1024  # read at a time


@dataclass(frozen=True)
class AutomaticC:
    """The chosen C.

    Attributes
    ----------
    unit : for a kernel whose mean diagonal is one.
    diagonal : the mean diagonal of the kernel of all features, centred.
    """

    unit: float
    diagonal: float

    @property
    def raw(self) -> float:
        """For the kernel as it is."""
        return self.unit / self.diagonal


def known_cost(selector: Any, problem: Problem) -> float | None:
    """The C that a selector was given, or that was found for it before; None where it is to be found."""
    return problem.shared.C if isinstance(selector.C, str) else float(selector.C)


def C_of(
    selector: Any, problem: Problem, unit: Literal["diagonal", "raw"] = "raw", K: FloatArray | None = None
) -> float:
    """The C of a selector, chosen where it is "auto".

    ``unit`` tells how it will be used: on a kernel with a mean diagonal of one, or on the kernel as it is. ``K`` is the
    kernel matrix of all features where it is not linear.
    """
    known = known_cost(selector, problem)
    if known is not None:
        return known
    found = automatic_C(problem, K)
    return found.unit if unit == "diagonal" else found.raw


def epsilon_of(selector: Any, problem: Problem) -> float | None:
    """The ε of a selector: None in classification, in units of the target's spread where it is "auto"."""
    if problem.target.has_classes:
        return None
    if selector.epsilon == "auto":
        return EPSILON * problem.target.unit(problem.sample_weight)
    if isinstance(selector.epsilon, str) or not selector.epsilon >= 0.0:
        raise ValueError(
            f"The 'epsilon' parameter of {type(selector).__name__} must be 'auto' or a number that is not negative. "
            f"Got {written(selector.epsilon)} instead."
        )
    return float(selector.epsilon)


def _weights(problem: Problem) -> FloatArray:
    return np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight


# -- The ℓ2 norm: samples left out one at a time, on the kernel matrix --


def automatic_C(problem: Problem, K: FloatArray | None = None) -> AutomaticC:
    """The C for the features of a problem; ``K`` is their kernel matrix where it is not linear.

    Methods that share the view of the data, the target, the weights and the groups share the C of a linear kernel.
    """
    if K is not None:
        return _automatic_C(problem, K)
    target = problem.target.around_zero()  # a shift of a real target changes nothing
    inputs = (problem.design, target.kind, target.values, problem.sample_weight, problem.sample_groups)
    return problem.shared.once("C", inputs, lambda: _automatic_C(problem, None))


def _automatic_C(problem: Problem, K: FloatArray | None) -> AutomaticC:
    if problem.n_samples > LARGEST_SYSTEM:
        rows = _evenly_spaced_rows(problem.target.columns(), LARGEST_SYSTEM)
        problem, K = _some_samples(problem, rows), None if K is None else K[np.ix_(rows, rows)]
    weight = _weights(problem)
    # Weights below one each, such as weights that sum to one, are brought to the number of samples they amount to.
    factor = max(1.0, float(weight.sum()) / float(weight @ weight))
    weight = weight * factor
    eigenvalues, vectors = _spectrum(problem.design, K, weight)
    diagonal = float(eigenvalues.sum()) / float(weight.sum())
    if not diagonal > 0.0:
        return AutomaticC(factor, 1.0)
    smoother = _Smoother(eigenvalues / diagonal, vectors, weight, _members(problem.sample_groups))
    return AutomaticC(_smallest_good_cost(smoother, problem.target.columns()) * factor, diagonal)


def _members(groups: Any) -> list[IntArray] | None:
    """The samples of each group."""
    if groups is None:
        return None
    _, codes = np.unique(groups, return_inverse=True)
    return [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]


def _spectrum(design: Design, K: FloatArray | None, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Positive eigenvalues of the centred, weighted kernel matrix and their vectors; the smaller system is solved."""
    root = np.sqrt(weight)
    if K is None and design.n_features < design.n_samples:
        X = design.block(range(design.n_features))
        X = root[:, None] * (X - np.average(X, axis=0, weights=weight))
        values, directions = design.eigen(X.T @ X)
        present = _present(values)
        return values[present], X @ directions[:, present] / np.sqrt(values[present])
    gram = design.gram() if K is None else K.copy()
    mean = gram @ weight / weight.sum()
    gram -= mean  # in place: matrices of many samples are large
    gram -= mean[:, None]
    gram += float(mean @ weight) / weight.sum()
    gram *= root[:, None]
    gram *= root
    values, vectors = design.eigen(gram)
    present = _present(values)
    return values[present], vectors[:, present]


def _present(rising: FloatArray) -> slice:
    """The eigenvalues that are not zero up to rounding."""
    largest = max(float(rising.max(initial=0.0)), np.finfo(float).tiny)
    return slice(int(np.searchsorted(rising, 1e-12 * largest, side="right")), None)


@dataclass(frozen=True)
class _Smoother:
    """Ridge regressions of all prices on one kernel matrix: its eigenvalues and vectors.

    ``groups`` are samples that are left out together; None leaves out one unit of weight at a time.
    """

    eigenvalues: FloatArray
    vectors: FloatArray
    weight: FloatArray
    groups: list[IntArray] | None

    def left_out(self, costs: FloatArray, target: FloatArray) -> FloatArray:
        """Decisions on samples that took no part in the training, by price, sample and target, which is centred."""
        root, total = np.sqrt(self.weight)[:, None], float(self.weight.sum())
        fitted = np.outer(self.eigenvalues, costs)
        fitted /= 1.0 + fitted
        gradient = self.vectors.T @ (root * target)
        weighted = (fitted[:, :, None] * gradient[:, None, :]).reshape(gradient.shape[0], -1)
        smoothed = (self.vectors @ weighted / root).reshape(len(target), costs.size, -1).transpose(1, 0, 2)
        left_over = target - smoothed
        if self.groups is None:
            leverage = (self.vectors**2 @ fitted).T / self.weight + 1.0 / total
            return np.asarray(target - left_over / np.maximum(1.0 - leverage, NO_ROOM)[:, :, None])
        decision = np.empty_like(left_over)
        for rows in self.groups:
            part, edge = self.vectors[rows], root[rows]
            for fit, over, out in zip(fitted.T, left_over, decision, strict=True):
                rest = np.eye(rows.size) - (part * fit) @ part.T - edge @ edge.T / total
                rest += NO_ROOM * np.eye(rows.size)
                out[rows] = target[rows] - np.linalg.solve(rest, edge * over[rows]) / edge
        return decision


def _smallest_good_cost(smoother: _Smoother, targets: FloatArray) -> float:
    """The smallest price that is nearly as good on samples left out as the best."""
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
    """Squared distance from the target, for each sample, after the best common factor for its decisions."""
    decision = decision - share @ decision
    size = np.maximum(share @ decision**2, np.finfo(float).tiny)
    factor = np.maximum(share @ (decision * centred), 0.0) / size
    return np.asarray(((centred - factor * decision) ** 2).mean(axis=1))


def _evenly_spaced_rows(targets: FloatArray, size: int, within: FloatArray | None = None) -> IntArray:
    """So many samples, evenly from all targets, and within one from all values of another number."""
    order = np.lexsort(targets.T if within is None else (within, *targets.T))
    places = np.linspace(0, order.size - 1, size).round().astype(np.intp)
    return np.sort(order[places])


# -- The ℓ1 norm: a path of programs on a few folds --


def l1_path(
    problem: Problem, n_steps: int, last: float | None = None, beyond: float = BEYOND_FIRST
) -> FloatArray:
    """Growing values of C, up to ``last`` or to a multiple of the first, at which no feature has a weight yet."""
    targets = problem.target.columns()
    first = min(_where_a_feature_enters(problem, y) for y in targets.T)
    if last is None:
        return first * np.geomspace(1.0, beyond, max(2, n_steps))
    return np.geomspace(min(first, 0.5 * last), last, n_steps)


def _where_a_feature_enters(problem: Problem, y: FloatArray) -> float:
    """1 over the largest pull of dual variables that are feasible, in units of C, without any feature."""
    weight = _weights(problem)
    above = y > (0.0 if problem.target.has_classes else weighted_median(y, weight))
    mass = min(weight[above].sum(), weight[~above].sum())
    if mass == 0.0:
        return 1.0
    dual = weight * np.where(above, mass / weight[above].sum(), -mass / weight[~above].sum())
    largest = float(np.abs(problem.design.transpose_dot(dual)).max(initial=0.0))
    return 1.0 / largest if largest > 0.0 else 1.0


def automatic_l1_C(problem: Problem, epsilon: float | None, n_steps: int = 10) -> float:
    """The first of ``nearly_best_l1_prices`` that pays for a feature; noise alone would call for none."""
    costs = nearly_best_l1_costs(problem, epsilon, n_steps)
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


def nearly_best_l1_costs(problem: Problem, epsilon: float | None, n_steps: int = 10) -> FloatArray:
    """The C on ``l1_path`` from the smallest on that is, on samples left out, nearly as good as the best.

    Nearly: its loss is within one standard error. Larger prices cost most. None are tried after one that is worse
    than that, nor after one that is not better than the best, if the best is clearly better than none of the features.

    The loss is the distance of the decision, cut to ±1, from the label; in regression its distance from the target.
    Of many samples a part decides. Chance makes a sum over n samples pull with a force that grows as √n, so the C
    that keeps chance out falls as 1/√n.
    """
    costs, n_back = l1_path(problem, n_steps), 0
    if problem.n_samples > LARGEST_PROGRAM:
        step = np.log(costs[1] / costs[0])
        n_back = round(0.5 * np.log(problem.n_samples / LARGEST_PROGRAM) / step)
        rows = _evenly_spaced_rows(problem.target.columns(), LARGEST_PROGRAM, _squared_distances(problem))
        problem = _some_samples(problem, rows)
    fold, weight = _folds(problem), _weights(problem)
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
    chosen = int(np.flatnonzero(mean <= mean[best] + errors[best])[0])
    return costs[max(0, chosen - n_back) :]


def _is_beyond_the_best(loss: FloatArray, error: FloatArray) -> bool:
    """Whether a price above the last one could hardly be the best.

    Without features all prices have the same loss, up to rounding, and it may be the same for all samples: then it
    has no error of its own.
    """
    best = int(np.argmin(loss))
    is_worse = bool(loss[-1] > (1.0 + EQUALLY_GOOD) * loss[best])
    has_features = bool(loss[best] + error[best] < loss[0])
    return is_worse and (has_features or bool(loss[-1] > loss[best] + max(error[best], error[-1])))


def _some_samples(problem: Problem, rows: IntArray) -> Problem:
    weight = None if problem.sample_weight is None else problem.sample_weight[rows]
    groups = None if problem.sample_groups is None else problem.sample_groups[rows]
    return replace(
        problem,
        design=problem.design.take_rows(rows),
        target=problem.target.take(rows),
        sample_weight=weight,
        sample_groups=groups,
    )


class _LeftOut:
    """Machines of some samples and their loss on the others, from one price to a larger one."""

    def __init__(self, problem: Problem, epsilon: float | None, is_test: BoolArray, n_steps: int) -> None:
        self.test, train = np.flatnonzero(is_test), np.flatnonzero(~is_test)
        self.weight, self.epsilon = _weights(problem)[train], epsilon
        self.held_out, known = problem.design.take_rows(self.test), problem.design.take_rows(train)
        targets = [t for t in problem.target.columns().T if np.ptp(t[train]) > 0.0]
        self.targets = [t[self.test] for t in targets]
        self.programs = [
            l1_svm_program(known, t[train], C=self.weight, epsilon=epsilon, n_steps=n_steps) for t in targets
        ]
        self.final: dict[int, FloatArray] = {}  # of machines without slack: a larger price changes nothing

    def loss(self, C: float) -> FloatArray:
        """Loss of each sample that was left out."""
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


def _folds(problem: Problem) -> IntArray:
    """A fold for each sample by what it is, not by where it stands: copies of a sample share theirs.

    Within each class the samples are sorted by their distance from the mean and dealt out in turn; groups of samples
    as their first sample.
    """
    squared = _squared_distances(problem)
    strata = problem.target.strata()
    label = np.zeros(problem.n_samples) if strata is None else strata
    second = problem.target.columns().sum(axis=1)
    fold = np.zeros(problem.n_samples, dtype=np.intp)
    order = np.lexsort((second, squared, label))
    if problem.sample_groups is not None:
        _, codes = np.unique(problem.sample_groups, return_inverse=True)
        _, first = np.unique(codes[order], return_index=True)
        return np.asarray(np.argsort(np.argsort(first))[codes] % FOLDS, dtype=np.intp)
    close = EQUALLY_GOOD * max(float(np.abs(squared).max(initial=0.0)), np.finfo(float).tiny)
    turn = 0
    for place, i in enumerate(order):
        if place:
            j = order[place - 1]
            same = label[i] == label[j] and second[i] == second[j] and squared[i] - squared[j] <= close
            turn += not same
        fold[i] = turn % FOLDS
    return fold


def _squared_distances(problem: Problem) -> FloatArray:
    """Of the samples from their mean."""
    design, weight = problem.design, _weights(problem)
    mean = design.transpose_dot(weight) / weight.sum()
    return _squared_rows(design) - 2.0 * design.dot(mean) + float(mean @ mean)


def _squared_rows(design: Design) -> FloatArray:
    total = np.zeros(design.n_samples)
    if design.stored_columns(np.empty(0, dtype=np.intp)) is None:
        for _, block in design.iter_blocks():
            total += np.einsum("ij,ij->i", block, block)
        return total
    for start in range(0, design.n_features, SPARSE_COLUMNS):
        stored = design.stored_columns(np.arange(start, min(start + SPARSE_COLUMNS, design.n_features)))
        assert stored is not None
        columns, shift = stored
        total += float(shift @ shift) - 2.0 * (columns @ shift)
        total += np.bincount(columns.indices, columns.data**2, design.n_samples)
    return total
