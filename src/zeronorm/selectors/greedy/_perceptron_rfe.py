"""Recursive feature elimination with large margin perceptrons."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.engines.elimination._loop import Elimination, eliminate
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, warn_of_long_fit
from zeronorm.selectors._base import BaseSelector
from zeronorm.solvers._status import Status

SECONDS_PER_POWER = 2e-8  # approximate time per feature in a correction
LARGEST_SLACK = 1024.0  # of the samples' own coordinates, relative to their norms
NOT_SEPARATED = (
    "the perceptron did not separate the classes with all features, though each sample had a coordinate of its own; "
    "raise max_iter, or select with RFE."
)


@register(
    "perceptron-rfe",
    family="greedy",
    tasks=("binary",),
    reference="Gentile 2004; Lal et al. 2006, section 2.3",
    cost="n p for each epoch, up to 50 epochs for each round",
    oracle="the margin that the pruned weights have on the training samples",
    avoid="classes that overlap: the margin is small then, and few features are removed",
    misprints="The chapter prints the sum of |w| in the pruning rule; it is the sum of |w|^q.",
    test_params=({}, {"rule": "halve"}),
)
class PerceptronRFE(BaseSelector):
    r"""Recursive elimination with a large margin perceptron that decides itself how many features to remove.

    Each round runs the approximate large margin perceptron of Gentile (ALMA) on the features that are left. Its norms
    follow the number d of these features: :math:`p = \max(2, \ln d)`, so that with many features it behaves like a
    multiplicative algorithm, which is little affected by useless ones, and with few like a support vector machine. The
    weights have :math:`\|w\|_q = 1`, :math:`q = p/(p-1)`, and margin γ on samples scaled to :math:`\|x\|_p = 1`. Then
    the smallest weights are removed as long as

    .. math:: \sum_{\text{kept}} |w_i|^q \ge 1 - \bigl(a (1 - a) \gamma\bigr)^q .

    By Hölder's inequality the weights that are kept separate the training samples with a margin of at least :math:`(1 -
    a(1 - a)) \gamma`. (The rule is often printed with :math:`\sum |w_i|`, which is larger than one and keeps far too
    few features.) The method ends when no feature can be removed; ``n_features_to_select=None`` keeps the features that
    are left then.

    Where ``max_iter`` passes with all features do not separate the classes, each sample is given a coordinate of its
    own that no other sample has: ``slack_`` times its norm, with 1, 2, 4, … until the classes are separated (Freund and
    Schapire 1999; with p = 2 this adds a diagonal to the kernel matrix, as squared slacks do in a support vector
    machine). The bound on the margin holds for the extended samples. That margin is small, so that
    ``rule="margin"`` removes few features: use ``rule="halve"`` or ``RFE``. Use the method for separable problems with
    many useless features.

    The perceptron visits one sample after the other and so keeps a copy of the data by rows, sparse for sparse data.
    Each correction computes a power for every feature, or a few powers for every stored value of sparse data. The
    result depends on the order of the samples, not on that of the features.

    Parameters
    ----------
    n_features_to_select
        None: the method decides (half of the features with ``rule="halve"``).
    rule
        "margin" removes as many features as the margin allows, "halve" half of the features in each round.
    accuracy
        The elimination may give up the same fraction of the margin.
    power
        None: max(2, ln d) for d features.
    max_iter
        One iteration is one pass over the samples.

    Attributes
    ----------
    margins_ : ndarray
        Margin of the perceptron in each round.
    slack_ : float
        Size of the coordinate of its own that each sample was given, relative to its norm; 0 for separable classes.

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
        models = PerceptronModels(problem, self.accuracy, self.power, self.max_iter)
        warn_of_long_fit(
            "PerceptronRFE",
            SECONDS_PER_POWER * self.max_iter * models.most_powers_of_a_pass(),
            f"{problem.n_samples} samples of {problem.n_features} features",
            "take a part of the samples, the best columns of FisherScore, or RFE(step=0.5)",
            stacklevel=5,
        )
        record = Elimination(problem)
        eliminate(models, record, models.n_affordable if self.rule == "margin" else 0.5)
        self.margins_, self.slack_ = np.asarray(models.margins), models.slack
        path = record.path()
        separated = models.margins[0] > 0.0
        return replace(
            path,
            selected_size=record.sizes[-1] if self.rule == "margin" else None,
            converged=separated,
            remedy="" if separated else NOT_SEPARATED,
        )


class PerceptronModels:
    """``Models`` of the elimination loop trained by ALMA; a constant input, which is never removed, gives the bias."""

    def __init__(self, problem: Problem, accuracy: float, power: float | None, max_epochs: int) -> None:
        self.design, self.y = problem.design, problem.target.columns()[:, 0]
        self.accuracy, self.max_epochs = accuracy, max_epochs
        self.fixed_power = power
        self.active: IntArray = np.arange(problem.n_features)
        self.status, self.n_iter = Status.CONVERGED, 0
        self.margins: list[float] = []
        self.solution: AlmaSolution | None = None
        self.slack = 0.0
        self._rows: FloatArray | SparseRows | None = None

    @property
    def power(self) -> float:
        return self.fixed_power or max(2.0, math.log(self.active.size))

    @property
    def rows(self) -> FloatArray | SparseRows:
        """Samples with the remaining features, and a constant."""
        if self._rows is None:
            self._rows = _rows_with_constant(self.design, self.active)
        return self._rows

    def most_powers_of_a_pass(self) -> int:
        """Number of powers in a pass that corrects every sample, over all sizes of the samples' own coordinates.

        With more samples than features the classes may overlap. Then the samples have coordinates of their own, which
        dense rows visit too, and the series of sparse rows may be exact for no feature.
        """
        n, p = self.y.size, self.active.size + 1
        if n <= p:
            return int(n * _powers_of_a_row(self.rows))
        n_sizes = 1 + int(LARGEST_SLACK).bit_length()  # none, and 1, 2, 4, …
        return int(n_sizes * n * (p if isinstance(self.rows, SparseRows) else p + n))

    def train(self) -> None:
        self.solution = self._solve()
        while self.solution.margin <= 0.0 and not self.margins and self.slack < LARGEST_SLACK:
            self.slack = max(1.0, 2.0 * self.slack)
            self.solution = self._solve()
        self.margins.append(self.solution.margin)

    def _solve(self) -> AlmaSolution:
        solution = solve_alma(
            self.rows,
            self.y,
            power=self.power,
            accuracy=self.accuracy,
            max_epochs=self.max_epochs,
            slack=self.slack,
        )
        self.n_iter += solution.n_epochs
        return solution

    def importance(self) -> FloatArray:
        """|w|^(q-1), the dual weights of unit p-norm; with |w|^q all small features would be tied."""
        assert self.solution is not None
        return np.asarray(np.abs(self.solution.weights[:-1]) ** (1.0 / (self.power - 1.0)))

    def group_importance(self, unit: IntArray) -> FloatArray:
        """The sum of |w|^q over the group, converted to the scale of a single feature."""
        share = np.bincount(unit, weights=self.importance() ** self.power)
        return np.asarray(share ** (1.0 / self.power))

    def n_affordable(self, values: FloatArray) -> int:
        """How many of the smallest values may be removed: the sum of their |w|^q must not exceed (a(1-a)γ)^q."""
        assert self.solution is not None
        q = self.power / (self.power - 1.0)
        budget = (self.accuracy * (1.0 - self.accuracy) * max(self.solution.margin, 0.0)) ** q
        return int(np.count_nonzero(np.cumsum(values**self.power) <= budget))

    def remove(self, features: IntArray) -> None:
        self.active = self.active[~np.isin(self.active, features)]
        self._rows = None


# -- The approximate large margin perceptron with p-norms (ALMA_p, Gentile 2001) --


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows s - shift with sparse s."""

    matrix: Any
    shift: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape  # type: ignore[no-any-return]

    def __matmul__(self, w: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ w - self.shift @ w)

    def with_slack(self, lengths: FloatArray) -> SparseRows:
        """The rows with a coordinate of its own for each, of the given size."""
        own = sparse.diags_array(lengths, format="csr")
        shift = np.concatenate([self.shift, np.zeros(lengths.size)])
        return SparseRows(sparse.hstack([self.matrix, own], format="csr"), shift)

    def norms(self, power: float) -> FloatArray:
        """The p-norm of each row, computed from that of the shift and the stored values."""
        return sparse_row_norms(self.matrix.data, self.matrix.indices, self.matrix.indptr, self.shift, power)


def _rows_with_constant(design: Design, columns: IntArray) -> FloatArray | SparseRows:
    """Rows of these features, with a constant last."""
    stored = design.stored_columns(columns)
    if stored is None:
        rows = np.ones((design.n_samples, columns.size + 1))
        design.block(columns, out=rows[:, :-1])
        return rows
    by_row = stored[0].tocsr()
    arrays = by_row.data, by_row.indices, by_row.indptr  # the last column of zeros needs no stored values
    rows = sparse.csr_array(arrays, shape=(design.n_samples, columns.size + 1), copy=False)
    return SparseRows(rows, np.append(stored[1], -1.0))


@dataclass(frozen=True, eq=False)
class AlmaSolution:
    """Weights of unit q-norm and their margin: the smallest y_i w·x_i over samples scaled to unit p-norm.

    With slack, the norms and the margin are those of the extended samples; ``weights`` are those of the features.
    ``is_clean``: whether the last pass needed no correction; the margin is then at least ``1 - accuracy``
    times the largest possible.
    """

    weights: FloatArray
    margin: float
    n_corrections: int
    n_epochs: int
    is_clean: bool


def solve_alma(
    X: FloatArray | SparseRows,
    y: FloatArray,
    *,
    power: float,
    accuracy: float,
    max_epochs: int,
    slack: float = 0.0,
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
    slack : each row has a coordinate of its own, this times its norm.
    """
    n, p = X.shape
    lengths = X.norms(power) if isinstance(X, SparseRows) else row_norms(X, power)
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    if slack and isinstance(X, SparseRows):
        X = X.with_slack(slack * lengths)
    growth = (1.0 + slack**power) ** (1.0 / power)
    inverse, own = 1.0 / (growth * lengths), slack / growth
    theta = np.zeros(p + n if slack else p)
    k, n_epochs, is_clean = _pass_until_clean(X, y, inverse, theta, own, power, accuracy, max_epochs)
    weights = np.sign(theta) * np.abs(theta) ** (power - 1.0)
    length = float(np.linalg.norm(theta, power))
    if length > 0.0:
        weights /= length ** (power - 1.0)
    values = (X @ weights[: X.shape[1]]) * inverse
    if X.shape[1] < weights.size:
        values += weights[p:] * own
    return AlmaSolution(weights[:p], float(np.min(y * values)), k - 1, n_epochs, is_clean)


def row_norms(X: FloatArray, power: float) -> FloatArray:
    """The p-norm of each row, row by row so that no copy of the data is made."""
    return np.array([np.linalg.norm(row, power) for row in X])


# Powers per call of the compiled loop, less than a second of work, so that Ctrl-C interrupts it.
_POWERS_PER_CALL = 1 << 22


def _powers_of_a_row(X: FloatArray | SparseRows) -> int:
    """Approximate number of powers in a correction; for sparse rows the series cost as much as a few per value."""
    n, p = X.shape
    return math.isqrt(p) + 6 * int(X.matrix.nnz) // n if isinstance(X, SparseRows) else int(p)


def _pass_until_clean(
    X: FloatArray | SparseRows,
    y: FloatArray,
    inverse_norm: FloatArray,
    theta: FloatArray,
    own: float,
    power: float,
    accuracy: float,
    max_epochs: int,
) -> tuple[int, int, bool]:
    """Change θ in place; returns the number of the next correction, the passes, and whether the last was clean."""
    height = max(1, _POWERS_PER_CALL // _powers_of_a_row(X))
    is_clean, k, n_epochs = False, 1, 0
    rows: tuple[Any, ...] = (X,)
    state: tuple[Any, ...] = (theta, np.zeros(theta.size), own)
    visit: Any = alma_rows
    if isinstance(X, SparseRows):
        rows, visit = (X.matrix.data, X.matrix.indices, X.matrix.indptr), alma_sparse_rows
        lazy = lazy_theta(X.shift, power)
        state = (lazy,)
    while n_epochs < max_epochs and not is_clean:
        before = k
        for first in range(0, y.size, height):
            last = min(first + height, y.size)
            k = visit(*rows, y, inverse_norm, *state, power, accuracy, k, first, last)
        n_epochs, is_clean = n_epochs + 1, k == before
    if isinstance(X, SparseRows):
        theta[:] = lazy.dense()
    return k, n_epochs, is_clean


@kernel
def _wanted_margin(power: float, accuracy: float, k: int) -> float:
    """The margin below which the k-th correction is made."""
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
    own: float,
    power: float,
    accuracy: float,
    k: int,
    first: int,
    last: int,
) -> int:
    """Pass over some rows and correct θ and its weights in place; returns the number of the next correction.

    Where θ has more entries than there are columns, entry p + i belongs to row i alone, whose value there is ``own``.
    """
    p = X.shape[1]
    has_slack = theta.shape[0] > p
    for i in range(first, last):
        value = _product(X[i], weights) * inverse_norm[i]
        if has_slack:
            value += own * weights[p + i]
        if value * y[i] > _wanted_margin(power, accuracy, k):
            continue
        step = _step_length(power, k) * y[i] * inverse_norm[i]
        if has_slack:
            theta[p + i] += _step_length(power, k) * y[i] * own
        for j in range(p):
            theta[j] += step * X[i, j]
        _set_weights(theta, weights, power)
        k += 1
    return k


@kernel
def _set_weights(theta: FloatArray, weights: FloatArray, power: float) -> None:
    """Scale θ to norm at most 1, and compute its weights."""
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


# -- Sparse rows: work for the stored values alone --
#
# A correction by a row s - shift changes all of θ, but outside the stored values only along shift. So θ is stored as
# scale (u - b shift): u changes where a value is stored; the numbers b and scale change with every correction. All
# features enter the sum of |u_j - b shift_j|^p and its derivative in b. Around an earlier b0 this is a power series,
# whose terms change only for the features whose u changes:
#
#     |t - e m|^p = Σ_k binom(p, k) |t|^p (-e m / t)^k,    t = u - b0 m,  e = b - b0,  m = shift.
#
# Features that no correction has changed (u = 0; the constant is one of them) give |b|^p Σ|m|^p. The few whose t is so
# small that the series would be inexact are added one by one in each sum, unless they are negligible. When b leaves the
# radius of this expansion, or too many features are added one by one, everything is computed again.

_N_TERMS = 12
_SERIES_REST = 1e-16  # remainder of the series, relative to its first term
_NOTHING = 1e-18  # negligible weight, relative to the norm
_LOST = 1e-3  # a sum that has shrunk by this factor is computed again
_UNTOUCHED, _IN_SERIES, _VISITED = range(3)


class LazyTheta(NamedTuple):
    """θ = scale (u - b shift) and its sums, for compiled loops."""

    u: FloatArray
    shift: FloatArray
    kind: NDArray[np.int8]  # how each feature enters the sums
    part: FloatArray  # |t|^p of each feature in the series
    visited: NDArray[np.int32]
    binomials: FloatArray
    moments: FloatArray  # Σ |t|^p (m / t)^k
    number: FloatArray  # indexed by the constants below

    def dense(self) -> FloatArray:
        return np.asarray(self.number[_SCALE] * (self.u - self.number[_B] * self.shift))


_N_NUMBERS = 14
_B, _SCALE, _B0, _RADIUS, _REACH, _LEAST, _WANTED, _N_VISITED, _N_SINCE = range(9)
_UNTOUCHED_SUM, _UNTOUCHED_AT_START, _TOTAL, _LARGEST_TOTAL, _SLOPE = range(9, _N_NUMBERS)


def lazy_theta(shift: FloatArray, power: float) -> LazyTheta:
    """θ = 0. The series is exact for ratios |e m / t| up to ``_REACH``."""
    p, k = shift.size, np.arange(1, _N_TERMS + 2)
    binomials = np.cumprod(np.append(1.0, (power - k + 1) / k))
    rest = max(abs(float(binomials[-1])), 1e-300)
    number = np.zeros(_N_NUMBERS)
    number[_SCALE], number[_WANTED] = 1.0, math.isqrt(p)
    number[_REACH] = min(0.25, (_SERIES_REST / rest) ** (1.0 / (_N_TERMS + 1)))
    kind, visited = np.zeros(p, dtype=np.int8), np.zeros(p, dtype=np.int32)
    moments = np.zeros(_N_TERMS + 1)
    theta = LazyTheta(np.zeros(p), shift, kind, np.zeros(p), visited, binomials[:-1], moments, number)
    start_sums_afresh(theta, power)
    return theta


@kernel
def sparse_row_norms(
    data: FloatArray, columns: IntArray, starts: IntArray, shift: FloatArray, power: float
) -> FloatArray:
    """The p-norms of rows s - shift."""
    parts = np.abs(shift) ** power
    of_shift = parts.sum()
    norms = np.empty(starts.shape[0] - 1)
    for i in range(norms.shape[0]):
        total = of_shift
        for entry in range(starts[i], starts[i + 1]):
            j = columns[entry]
            total += abs(data[entry] - shift[j]) ** power - parts[j]
        norms[i] = max(total, 0.0) ** (1.0 / power)
    return norms


@kernel
def alma_sparse_rows(
    data: FloatArray,
    columns: IntArray,
    starts: IntArray,
    y: FloatArray,
    inverse_norm: FloatArray,
    theta: LazyTheta,
    power: float,
    accuracy: float,
    k: int,
    first: int,
    last: int,
) -> int:
    """``alma_rows`` for rows s - shift."""
    u, shift, number = theta.u, theta.shift, theta.number
    for i in range(first, last):
        value, b = -number[_SLOPE], number[_B]
        for entry in range(starts[i], starts[i + 1]):
            j = columns[entry]
            v = u[j] - b * shift[j]
            value += math.copysign(abs(v) ** (power - 1.0), v) * data[entry]
        if number[_TOTAL] > 0.0:
            value *= number[_SCALE] * number[_TOTAL] ** (2.0 / power - 1.0)
        if value * y[i] * inverse_norm[i] > _wanted_margin(power, accuracy, k):
            continue
        step = _step_length(power, k) * y[i] * inverse_norm[i] / number[_SCALE]
        stored = slice(starts[i], starts[i + 1])
        _correct(theta, columns[stored], data[stored], step, power)
        _renew_sums(theta, power)
        k += 1
    return k


@kernel
def _correct(theta: LazyTheta, columns: IntArray, row: FloatArray, step: float, power: float) -> None:
    """Add a row to u, and update the sums."""
    u, shift, kind, part, moments = theta.u, theta.shift, theta.kind, theta.part, theta.moments
    b0, touched = theta.number[_B0], 0.0
    for entry in range(columns.shape[0]):
        j = columns[entry]
        if kind[j] == _UNTOUCHED:
            touched += abs(shift[j]) ** power
        elif kind[j] == _IN_SERIES and part[j] != 0.0:
            _add_terms(moments, -part[j], shift[j] / (u[j] - b0 * shift[j]))
        u[j] += step * row[entry]
    theta.number[_UNTOUCHED_SUM] -= touched
    theta.number[_B] += step
    _enter(theta, columns, power)


@kernel
def _add_terms(moments: FloatArray, part: float, ratio: float) -> None:
    for k in range(_N_TERMS + 1):
        moments[k] += part
        part *= ratio


@kernel
def _enter(theta: LazyTheta, columns: IntArray, power: float) -> None:
    """Add features to the series where that is exact, else to those that are visited one by one."""
    u, shift, kind, part, moments = theta.u, theta.shift, theta.kind, theta.part, theta.moments
    visited, number = theta.visited, theta.number
    b0, radius, reach, least = number[_B0], number[_RADIUS], number[_REACH], number[_LEAST]
    n_visited = int(number[_N_VISITED])
    for j in columns:
        if kind[j] == _VISITED:
            continue
        m = shift[j]
        t = u[j] - b0 * m
        if _room(t, m, reach, least) < radius:
            kind[j] = _VISITED
            visited[n_visited] = j
            n_visited += 1
            continue
        kind[j] = _IN_SERIES
        part[j] = 0.0 if abs(t) + radius * abs(m) <= least else abs(t) ** power
        if part[j] != 0.0:
            _add_terms(moments, part[j], m / t)
    number[_N_VISITED] = n_visited


@kernel
def _room(t: float, m: float, reach: float, least: float) -> float:
    """How far b may move until the series is inexact for a feature that is not negligible."""
    return max(reach * abs(t), least - abs(t)) / abs(m) if m != 0.0 else np.inf


@kernel
def start_sums_afresh(theta: LazyTheta, power: float) -> None:
    """Expand around the current b, with a radius for which single visits cost about as much as a new expansion."""
    u, shift, number = theta.u, theta.shift, theta.number
    p, work = u.shape[0], number[_N_SINCE] * number[_N_VISITED]
    growth = 2.0 if work < p else 0.5 if work > 4 * p else 1.0
    wanted = min(max(1, int(growth * number[_WANTED])), p - 1)
    number[_LEAST] = _NOTHING ** (1.0 / (power - 1.0)) * number[_TOTAL] ** (1.0 / power) * number[_SCALE]
    u *= number[_SCALE]
    number[_B] *= number[_SCALE]
    number[_SCALE], number[_B0], number[_WANTED] = 1.0, number[_B], wanted
    room, untouched = np.full(p, np.inf), 0.0
    for j in range(p):
        theta.kind[j] = _UNTOUCHED
        if u[j] != 0.0:
            theta.kind[j] = _IN_SERIES
            room[j] = _room(u[j] - number[_B0] * shift[j], shift[j], number[_REACH], number[_LEAST])
        else:
            untouched += abs(shift[j]) ** power
    number[_RADIUS] = min(np.partition(room, wanted)[wanted], 1e300)
    number[_N_SINCE], number[_N_VISITED], number[_UNTOUCHED_SUM] = 0.0, 0.0, untouched
    theta.moments[:] = 0.0
    _enter(theta, np.flatnonzero(u), power)
    _add_up(theta, power)
    number[_UNTOUCHED_AT_START], number[_LARGEST_TOTAL] = number[_UNTOUCHED_SUM], number[_TOTAL]


@kernel
def _renew_sums(theta: LazyTheta, power: float) -> None:
    """After a correction: compute the sums, and scale θ to norm at most 1."""
    number = theta.number
    number[_N_SINCE] += 1
    has_left = abs(number[_B] - number[_B0]) > number[_RADIUS] or number[_SCALE] < 0.5
    if has_left or number[_N_VISITED] > 2 * number[_WANTED]:
        start_sums_afresh(theta, power)
    else:
        _add_up(theta, power)
    has_shrunk = number[_TOTAL] < _LOST * number[_LARGEST_TOTAL]
    if has_shrunk or number[_UNTOUCHED_SUM] < _LOST * number[_UNTOUCHED_AT_START]:
        start_sums_afresh(theta, power)
    if number[_TOTAL] > 0.0:
        number[_SCALE] = min(number[_SCALE], number[_TOTAL] ** (-1.0 / power))


@kernel
def _add_up(theta: LazyTheta, power: float) -> None:
    """Σ|v|^p and Σ m sign(v) |v|^(p-1), v = u - b m."""
    u, shift, number, moments = theta.u, theta.shift, theta.number, theta.moments
    b, lag = number[_B], number[_B0] - number[_B]
    total = slope = 0.0
    for k in range(moments.shape[0] - 1, -1, -1):  # the series and its derivative
        slope = slope * lag + total
        total = total * lag + theta.binomials[k] * moments[k]
    size = abs(b) ** (power - 1.0) * number[_UNTOUCHED_SUM]
    total += size * abs(b)
    slope = slope / power - math.copysign(size, b)
    for entry in range(int(number[_N_VISITED])):
        j = theta.visited[entry]
        v = u[j] - b * shift[j]
        size = abs(v) ** (power - 1.0)
        total += size * abs(v)
        slope += shift[j] * math.copysign(size, v)
    number[_TOTAL], number[_SLOPE] = total, slope
    number[_LARGEST_TOTAL] = max(number[_LARGEST_TOTAL], total)
