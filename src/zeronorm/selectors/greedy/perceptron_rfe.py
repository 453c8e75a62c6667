"""Recursive feature elimination with large margin perceptrons."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines.elimination.loop import Elimination, eliminate
from zeronorm.registry import register
from zeronorm.selection.path import SelectionPath
from zeronorm.selection.problem import Problem
from zeronorm.selectors.base import BaseSelector
from zeronorm.solvers.status import Status

SECONDS_PER_POWER, LONG_S = 2e-8, 300.0  # of one feature in a correction, about; the time that is announced
NOT_SEPARATED = (
    "the perceptron did not separate the classes with all features; raise max_iter, or select with RFE, "
    "which allows for errors."
)


@register(
    "perceptron-rfe",
    family="greedy",
    tasks=("binary",),
    reference="Gentile 2004; Lal et al. 2006, section 2.3",
    cost="n p for each epoch, up to 50 epochs for each round",
    oracle="the margin that the pruned weights have on the training samples",
    avoid="classes that overlap: there is no margin to give up, so almost nothing is removed",
    misprints="The chapter prints the sum of |w| in the pruning rule; it is the sum of |w|^q.",
    test_params=({}, {"rule": "halve"}),
)
class PerceptronRFE(BaseSelector):
    r"""Recursive elimination with a large margin perceptron that decides itself how many features may leave.

    Each round runs the approximate large margin perceptron of Gentile (ALMA) on the features that are left. Its norms
    follow the number d of these features: :math:`p = \max(2, \ln d)`, so that with many features it behaves like a
    multiplicative algorithm, which is little affected by useless ones, and with few like a support vector machine. The
    weights have :math:`\|w\|_q = 1`, :math:`q = p/(p-1)`, and margin γ on samples scaled to :math:`\|x\|_p = 1`. Then
    the smallest weights leave as long as

    .. math:: \sum_{\text{kept}} |w_i|^q \ge 1 - \bigl(a (1 - a) \gamma\bigr)^q .

    By Hölder's inequality the weights that are kept separate the training samples with a margin of at least :math:`(1 -
    a(1 - a)) \gamma`. (The rule is often printed with :math:`\sum |w_i|`, which is larger than one and keeps far too
    few features.) The method ends when no feature may leave; ``n_features_to_select=None`` keeps the features that are
    left then.

    Use it for separable problems with many useless features. Where the classes overlap, there is no margin to give
    up, and ``rule="margin"`` removes only features of weight zero: use ``rule="halve"`` or ``RFE``.

    The perceptron visits sample after sample and so keeps a copy of the data by rows, of sparse data a sparse one; each
    correction costs a power for every feature. It depends on the order of the samples, not on that of the features.

    Parameters
    ----------
    n_features_to_select
        None: the method decides (half of the features with ``rule="halve"``).
    rule
        "margin": as many features leave as the margin allows. "halve": half of the features leave in each round.
    accuracy
        The elimination may use up the same fraction of the margin.
    power
        None: it follows the number of features.
    max_iter
        One iteration is one pass over the samples.

    Attributes
    ----------
    margins_ : ndarray
        Margin of the perceptron in each round.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import PerceptronRFE
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 4.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = PerceptronRFE(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        rule: Literal["margin", "halve"] = "margin",
        accuracy: float = 0.5,
        power: float | None = None,
        max_iter: int = 50,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.rule = rule
        self.accuracy = accuracy
        self.power = power
        self.max_iter = max_iter
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        self._warn_if_long(problem)
        machines = PerceptronMachines(problem, self.accuracy, self.power, self.max_iter)
        record = Elimination(problem)
        eliminate(machines, record, machines.n_affordable if self.rule == "margin" else 0.5)
        self.margins_ = np.asarray(machines.margins)
        path = record.path()
        separated = machines.margins[0] > 0.0
        return replace(
            path,
            own_size=record.sizes[-1] if self.rule == "margin" else None,
            converged=separated,
            remedy="" if separated else NOT_SEPARATED,
        )

    def _warn_if_long(self, problem: Problem) -> None:
        """Where the classes overlap, every pass corrects many samples: say so before it takes many minutes."""
        seconds = SECONDS_PER_POWER * self.max_iter * problem.n_samples * problem.n_features
        if seconds > LONG_S:
            warnings.warn(
                f"PerceptronRFE may correct its weights {self.max_iter} times for each of {problem.n_samples} samples, "
                f"at a cost of {problem.n_features} features: up to {seconds / 60:.0f} minutes in the first round. For "
                "less, take a part of the samples, the best columns of FisherScore, or RFE(step=0.5).",
                UserWarning,
                stacklevel=5,
            )


class PerceptronMachines:
    """``Machines`` of the elimination loop around ALMA; a constant input, which never leaves, is the bias."""

    def __init__(self, problem: Problem, accuracy: float, power: float | None, max_epochs: int) -> None:
        self.design, self.y = problem.design, problem.signs
        self.accuracy, self.max_epochs = accuracy, max_epochs
        self.fixed_power = power
        self.alive: IntArray = np.arange(problem.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.margins: list[float] = []
        self.solution: AlmaSolution | None = None

    @property
    def power(self) -> float:
        return self.fixed_power or max(2.0, math.log(self.alive.size))

    def train(self) -> None:
        rows = _rows_with_constant(self.design, self.alive)
        self.solution = solve_alma(
            rows, self.y, power=self.power, accuracy=self.accuracy, max_epochs=self.max_epochs
        )
        self.n_iter += self.solution.n_epochs
        self.margins.append(self.solution.margin)

    def importance(self) -> FloatArray:
        """|w|^(q-1), the dual weights of unit p-norm: on the scale of |w|^q small features would all look tied."""
        assert self.solution is not None
        return np.asarray(np.abs(self.solution.weights[:-1]) ** (1.0 / (self.power - 1.0)))

    def group_importance(self, unit: IntArray) -> FloatArray:
        """The sum of |w|^q over the group, brought to the scale of one feature."""
        share = np.bincount(unit, weights=self.importance() ** self.power)
        return np.asarray(share ** (1.0 / self.power))

    def n_affordable(self, values: FloatArray) -> int:
        """How many of the smallest values may leave: the sum of their |w|^q must not exceed (a(1-a)γ)^q."""
        assert self.solution is not None
        q = self.power / (self.power - 1.0)
        budget = (self.accuracy * (1.0 - self.accuracy) * max(self.solution.margin, 0.0)) ** q
        return int(np.count_nonzero(np.cumsum(values**self.power) <= budget))

    def remove(self, features: IntArray) -> None:
        self.alive = self.alive[~np.isin(self.alive, features)]


# -- The approximate large margin perceptron with p-norms (ALMA_p, Gentile 2001) --


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows s - shift, of which s is sparse."""

    matrix: Any
    shift: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape  # type: ignore[no-any-return]

    def __matmul__(self, w: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ w - self.shift @ w)

    def norms(self, power: float) -> FloatArray:
        """The p-norm of each row: that of the shift, changed where a value is stored."""
        parts, shift = np.abs(self.shift) ** power, self.shift[self.matrix.indices]
        change = np.abs(self.matrix.data - shift) ** power - np.abs(shift) ** power
        row_of = np.repeat(np.arange(self.shape[0]), np.diff(self.matrix.indptr))
        sums = parts.sum() + np.bincount(row_of, change, self.shape[0])
        return np.asarray(np.maximum(sums, 0.0) ** (1.0 / power))


def _rows_with_constant(design: Design, columns: IntArray) -> FloatArray | SparseRows:
    """Rows of these features, with a constant last."""
    stored = design.stored_columns(columns)
    if stored is None:
        rows = np.ones((design.n_samples, columns.size + 1))
        design.block(columns, out=rows[:, :-1])
        return rows
    part, shift = stored
    rows = sparse.csr_array(sparse.hstack([part, np.zeros((design.n_samples, 1))], format="csr"))
    return SparseRows(rows, np.append(shift, -1.0))


@dataclass(frozen=True, eq=False)
class AlmaSolution:
    """Weights of unit q-norm and their margin: the smallest y_i w·x_i over samples scaled to unit p-norm.

    ``is_clean`` tells whether the last pass needed no correction; the margin is then at least ``1 - accuracy``
    times the largest possible.
    """

    weights: FloatArray
    margin: float
    n_corrections: int
    n_epochs: int
    is_clean: bool


def solve_alma(
    X: FloatArray | SparseRows, y: FloatArray, *, power: float, accuracy: float, max_epochs: int
) -> AlmaSolution:
    r"""Pass over the rows of ``X`` and correct the weights wherever the margin is too small.

    With :math:`p` = ``power`` and :math:`a` = ``accuracy``, sample i is corrected after k - 1 corrections if

    .. math:: y_i\, w \cdot x_i / \|x_i\|_p \le (1 - a) \frac{\sqrt 8}{a} \sqrt{\frac{p - 1}{k}},

    by a step :math:`\sqrt{2 / ((p-1) k)}\; y_i x_i / \|x_i\|_p` in the dual of the weights,
    :math:`w_j = \mathrm{sign}(\theta_j)|\theta_j|^{p-1} / \|\theta\|_p^{p-2}`, which is brought back to norm at
    most 1. Since :math:`\|w\|_q = \|\theta\|_p` for :math:`1/p + 1/q = 1`, only θ is kept.

    Parameters
    ----------
    X : (n, p) array in C order, or sparse rows; y : labels -1 and +1.
    """
    lengths = X.norms(power) if isinstance(X, SparseRows) else row_norms(X, power)
    inverse = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    theta = np.zeros(X.shape[1])
    k, n_epochs, is_clean = _pass_until_clean(X, y, inverse, theta, power, accuracy, max_epochs)
    weights = np.sign(theta) * np.abs(theta) ** (power - 1.0)
    length = float(np.linalg.norm(theta, power))
    if length > 0.0:
        weights /= length ** (power - 1.0)
    margin = float(np.min(y * (X @ weights) * inverse))
    return AlmaSolution(weights, margin, k - 1, n_epochs, is_clean)


def row_norms(X: FloatArray, power: float) -> FloatArray:
    """The p-norm of each row, row by row so that no copy of the data is made."""
    return np.array([np.linalg.norm(row, power) for row in X])


# Powers that take a good part of a second: Ctrl-C is heard between calls of the compiled loop.
_POWERS_PER_CALL = 1 << 22


def _pass_until_clean(
    X: FloatArray | SparseRows,
    y: FloatArray,
    inverse_norm: FloatArray,
    theta: FloatArray,
    power: float,
    accuracy: float,
    max_epochs: int,
) -> tuple[int, int, bool]:
    """Change θ in place; returns the number of the next correction, the passes made, and if the last was clean."""
    n, p = X.shape
    height = max(1, _POWERS_PER_CALL // p)
    weights, k = np.zeros(p), 1
    rows: tuple[Any, ...] = (X,)
    visit: Any = alma_rows
    if isinstance(X, SparseRows):
        rows, visit = (X.matrix.data, X.matrix.indices, X.matrix.indptr, X.shift), alma_sparse_rows
    for epoch in range(max_epochs):
        before = k
        for first in range(0, n, height):
            last = min(first + height, n)
            k = visit(*rows, y, inverse_norm, theta, weights, power, accuracy, k, first, last)
        if k == before:
            return k, epoch + 1, True
    return k, max_epochs, False


@kernel
def _wanted_margin(power: float, accuracy: float, k: int) -> float:
    """Below which the k-th correction is made."""
    return (1.0 - accuracy) * math.sqrt(8.0 * (power - 1.0) / k) / accuracy


@kernel
def _product(u: FloatArray, v: FloatArray) -> float:
    total = 0.0
    for j in range(u.shape[0]):
        total += u[j] * v[j]
    return total


@kernel
def _step_length(power: float, k: int) -> float:
    return math.sqrt(2.0 / ((power - 1.0) * k))


@kernel
def alma_rows(
    X: FloatArray,
    y: FloatArray,
    inverse_norm: FloatArray,
    theta: FloatArray,
    weights: FloatArray,
    power: float,
    accuracy: float,
    k: int,
    first: int,
    last: int,
) -> int:
    """Pass some rows and correct θ and its weights in place; returns the number of the next correction."""
    p = X.shape[1]
    for i in range(first, last):
        value = _product(weights, X[i]) * y[i] * inverse_norm[i]
        if value > _wanted_margin(power, accuracy, k):
            continue
        step = _step_length(power, k) * y[i] * inverse_norm[i]
        for j in range(p):
            theta[j] += step * X[i, j]
        _set_weights(theta, weights, power)
        k += 1
    return k


@kernel
def alma_sparse_rows(
    data: FloatArray,
    columns: IntArray,
    starts: IntArray,
    shift: FloatArray,
    y: FloatArray,
    inverse_norm: FloatArray,
    theta: FloatArray,
    weights: FloatArray,
    power: float,
    accuracy: float,
    k: int,
    first: int,
    last: int,
) -> int:
    """The same for rows s - shift: only corrections visit all features."""
    p = shift.shape[0]
    shifted = _product(weights, shift)
    for i in range(first, last):
        value = -shifted
        for place in range(starts[i], starts[i + 1]):
            value += weights[columns[place]] * data[place]
        value *= y[i] * inverse_norm[i]
        if value > _wanted_margin(power, accuracy, k):
            continue
        step = _step_length(power, k) * y[i] * inverse_norm[i]
        for j in range(p):
            theta[j] -= step * shift[j]
        for place in range(starts[i], starts[i + 1]):
            theta[columns[place]] += step * data[place]
        _set_weights(theta, weights, power)
        shifted = _product(weights, shift)
        k += 1
    return k


@kernel
def _set_weights(theta: FloatArray, weights: FloatArray, power: float) -> None:
    """Bring θ back to norm at most 1, and its weights with it."""
    total = 0.0
    for j in range(theta.shape[0]):
        weights[j] = abs(theta[j]) ** (power - 1.0)
        total += abs(theta[j]) * weights[j]
    length = total ** (1.0 / power)
    shrink = 1.0 / max(1.0, length)
    # Below length 1 the weights need the factor length^(2-p); at length 1 it is one.
    factor = shrink ** (power - 1.0) * max(length * shrink, 1e-300) ** (2.0 - power)
    for j in range(theta.shape[0]):
        theta[j] *= shrink
        weights[j] = math.copysign(weights[j] * factor, theta[j])
