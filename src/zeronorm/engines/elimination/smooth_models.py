"""Linear models with smooth losses, whose exact solution is followed as features leave."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import cast

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dposv

from zeronorm._jit import reduction, sweep
from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.design import as_design
from zeronorm.engines.elimination.loop import Downdating

RESIDUAL = 1e-12  # of normal equations, relative to their terms
WORST_CONDITION = 1e8
WEAKEST_PENALTY = 1e-10  # relative to the sum of squares of X
DOWNDATES = 64  # removals after which a matrix is computed afresh
FEW = 4  # rows that leave an inverse one after another; more leave together
CHECKED_EVERY = 8  # removals between two looks at the condition of an inverse
LEAST_LEFT = 1e-6  # of a column's share in the inverse: below, too many digits are lost
NEWTON_STEPS = 200
UNDAMPED_STEPS = 30  # of Newton's method for a piecewise quadratic loss, which mostly needs three
CHANGES_PER_SAMPLE = 4  # of sides of the margin, after which the normal equations are computed afresh
ROUNDING = 1e-7  # relative, to be on the safe side of what the last digits may do


class KnownModel(ABC):
    """The exact solution on a shrinking set of features: one row of weights and one intercept per output."""

    weights: FloatArray
    intercept: FloatArray
    precision = 1e-9  # relative error of the weights at which an iteration may end
    smallest_suffices = False  # whether weights need only tell which feature has the smallest

    def __init__(self, n_features: int) -> None:
        self.alive: IntArray = np.arange(n_features)

    @abstractmethod
    def train(self) -> bool:
        """Solve on the features that are left; False where the solution is not accurate."""

    def remove(self, features: IntArray) -> None:
        """Take features out."""
        self.alive = without(self.alive, np.searchsorted(self.alive, features))


# -- Least squares: Ridge, LinearRegression, RidgeClassifier --


class LeastSquares(KnownModel):
    r"""Closed form with an inverse that follows as features leave.

    With at most as many features as samples it is that of :math:`X^\top X + \lambda I`, which without some features is
    a Schur complement. With more, the weights are :math:`X^\top A^{-1} Y`, :math:`A = X X^\top + \lambda I`, and
    without the column x

    .. math:: (A - x x^\top)^{-1} = A^{-1} + \frac{u u^\top}{1 - x^\top u}, \qquad u = A^{-1} x.

    ``minimum_norm`` is for :math:`\lambda = 0`: of all solutions the shortest. Centred rows are orthogonal to the roots
    of the weights; these are added to :math:`X X^\top`, which makes it regular and leaves the solution as it is.
    """

    def __init__(
        self,
        X: FloatArray,
        Y: FloatArray,
        penalty: float,
        sample_weight: FloatArray | None,
        intercept: bool,
        *,
        minimum_norm: bool = False,
    ) -> None:
        super().__init__(X.shape[1])
        root = np.ones((len(X), 1)) if sample_weight is None else np.sqrt(sample_weight)[:, None]
        self.x_mean, self.y_mean = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
        if intercept:
            self.x_mean, self.y_mean = (np.average(a, axis=0, weights=sample_weight) for a in (X, Y))
            X, Y = X - self.x_mean, Y - self.y_mean
        if sample_weight is not None:
            X, Y = root * X, root * Y
        self.Y = Y
        self.penalty = penalty
        self.root = root if intercept else None
        self.in_samples_allowed = minimum_norm or penalty > WEAKEST_PENALTY * float(np.vdot(X, X))
        self.normal: tuple[FloatArray, FloatArray] | None = None
        self.system: FloatArray | None = None
        self.inverse: FloatArray | None = None
        self.n_downdates = 0
        if X.shape[1] > len(X):
            self.columns = Columns(X)
        else:
            self._start_in_features(X)

    def train(self) -> bool:
        solve = self._in_samples if self.alive.size > len(self.Y) else self._in_features
        found = solve()
        if found is None:
            return False
        self.weights = found.T
        self.intercept = self.y_mean - self.weights @ self.x_mean[self.alive]
        return True

    def _in_samples(self) -> FloatArray | None:
        if not self.in_samples_allowed:
            return None
        for _ in range(2):
            if self.inverse is None or self.n_downdates > DOWNDATES:
                self._start_in_samples()
            if self.inverse is None or self.system is None:
                return None
            solution = self.inverse @ self.Y
            solution += self.inverse @ (self.Y - self.system @ solution)
            must_look = self.n_downdates % CHECKED_EVERY == 0
            is_regular = not must_look or _is_regular(self.system, self.inverse)
            if is_regular and _solves(self.system, solution, self.Y):
                return self.columns.transpose_dot(solution)
            self.inverse = None
        return None

    def _start_in_samples(self) -> None:
        K = self.columns.gram()
        K.flat[:: len(K) + 1] += self.penalty
        if self.root is not None:
            K += (float(np.trace(K)) / len(K) / float((self.root**2).sum())) * (self.root @ self.root.T)
        self.system, self.inverse, self.n_downdates = K, _inverse_of(K), 0

    def _start_in_features(self, X: FloatArray) -> None:
        self.system, self.inverse = None, None
        square = X.T @ X
        square.flat[:: len(square) + 1] += self.penalty
        self.normal = square, X.T @ self.Y

    def _in_features(self) -> FloatArray | None:
        if self.normal is None:
            self._start_in_features(self.columns.left().T)
        system, right = cast("tuple[FloatArray, FloatArray]", self.normal)
        for _ in range(2):
            # Without a column the equations are at least as well conditioned as they were.
            if self.inverse is None or self.n_downdates > DOWNDATES:
                self.inverse, self.n_downdates = _inverse_of(system), 0
                if self.inverse is not None and not _is_regular(system, self.inverse):
                    self.inverse = None
            if self.inverse is None:
                return None
            solution = np.asarray(self.inverse @ right)
            solution += self.inverse @ (right - system @ solution)
            if _solves(system, solution, right):
                return solution
            self.inverse = None
        return None

    def remove(self, features: IntArray) -> None:
        positions = np.searchsorted(self.alive, features)
        super().remove(features)
        if self.normal is None:
            if self.inverse is not None:
                self._downdate_samples(self.columns.of(positions))
            self.columns.remove(positions)
            return
        staying = without(np.arange(len(self.normal[0])), positions)
        self.normal = self.normal[0][staying[:, None], staying], self.normal[1][staying]
        if self.inverse is not None:
            self.inverse, _ = without_rows(self.inverse, positions, np.empty((len(self.inverse), 0)))
            self.n_downdates += 1

    def _downdate_samples(self, x: FloatArray) -> None:
        """Take columns out of the inverse of the n×n matrix; a change too large for it leaves no inverse."""
        if self.system is None or self.inverse is None or x.shape[1] > len(x) // 4:
            self.inverse = None
            return
        u = self.inverse @ x
        left = np.eye(x.shape[1]) - x.T @ u
        if np.diagonal(left).min() < LEAST_LEFT:
            self.inverse = None
            return
        self.inverse += u @ (u.T / left if left.size == 1 else np.linalg.solve(left, u.T))
        self.system -= x @ x.T
        self.n_downdates += 1


def without(values: IntArray, positions: IntArray) -> IntArray:
    """The values that are not at these positions; quick for one position."""
    if positions.size == 1:
        k = int(positions[0])
        return np.concatenate((values[:k], values[k + 1 :]))
    return np.delete(values, positions)


class Columns:
    """The columns that are left, as rows of an array that is packed anew when a quarter of them has gone."""

    def __init__(self, X: FloatArray) -> None:
        self.rows = np.ascontiguousarray(X.T)
        self.place = np.arange(len(self.rows))

    def of(self, positions: IntArray) -> FloatArray:
        """Some columns, by their position among those left."""
        return self.rows[self.place[positions]].T

    def left(self) -> FloatArray:
        """All columns that are left, as rows."""
        if self.place.size < len(self.rows):
            self.rows, self.place = self.rows[self.place], np.arange(self.place.size)
        return self.rows

    def gram(self) -> FloatArray:
        rows = self.left()
        return np.asarray(rows.T @ rows)

    def dot(self, w: FloatArray) -> FloatArray:
        """The sums of the columns times the rows of ``w``, one row each."""
        if self.place.size < len(self.rows):
            spread = np.zeros((len(w), len(self.rows)))
            spread[:, self.place] = w
            w = spread
        return np.asarray(w @ self.rows)

    def transpose_dot(self, v: FloatArray) -> FloatArray:
        """Inner products of the columns with ``v``."""
        products = self.rows @ v
        return np.asarray(products if self.place.size == len(self.rows) else products[self.place])

    def remove(self, positions: IntArray) -> None:
        self.place = without(self.place, positions)
        if self.place.size < 0.75 * len(self.rows):
            self.left()


def without_rows(
    inverse: FloatArray, positions: IntArray, point: FloatArray
) -> tuple[FloatArray | None, FloatArray]:
    """The inverse of a positive definite matrix without some rows and columns, from the inverse with them.

    ``point`` holds minima of quadratic functions with that matrix, one in each column, which move as well.
    """
    if positions.size <= FEW:
        for k in np.sort(positions)[::-1].tolist():
            if not inverse[k, k] > 0.0:
                return None, point
            inverse, point = without_row(inverse, point, k)
        return inverse, point
    stay = without(np.arange(len(inverse)), positions)
    rows = inverse[stay]
    across = rows[:, positions]
    try:
        share = np.linalg.solve(inverse[np.ix_(positions, positions)], across.T)
    except LinAlgError:
        return None, point
    return np.asarray(rows[:, stay] - across @ share), point[stay] - share.T @ point[positions]


@sweep
def without_row(inverse: FloatArray, point: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """A Schur complement: the inverse, and the minima, when one row and column leave the matrix."""
    n = len(inverse) - 1
    left, moved = np.empty((n, n)), np.empty((n, point.shape[1]))
    for i in range(n):
        old = i if i < k else i + 1
        row = inverse[old]
        factor = row[k] / inverse[k, k]
        for j in range(k):
            left[i, j] = row[j] - factor * inverse[k, j]
        for j in range(k, n):
            left[i, j] = row[j + 1] - factor * inverse[k, j + 1]
        for j in range(point.shape[1]):
            moved[i, j] = point[old, j] - factor * point[k, j]
    return left, moved


def _inverse_of(system: FloatArray) -> FloatArray | None:
    try:
        return np.asarray(cho_solve(cho_factor(system), np.eye(len(system))))
    except LinAlgError:
        return None


def _solves(system: FloatArray, solution: FloatArray, right: FloatArray) -> bool:
    """Whether the residual is as small as rounding allows."""
    residual = np.abs(system @ solution - right).max()
    terms = np.abs(system).max() * np.abs(solution).max() + np.abs(right).max()
    return bool(np.isfinite(residual) and residual <= RESIDUAL * terms)


def _is_regular(system: FloatArray, inverse: FloatArray) -> bool:
    """Whether columns of unit length would be far from dependent (condition number in the 1-norm)."""
    scale = np.sqrt(np.diagonal(system))
    if not np.all(scale > 0.0):
        return False
    lengths = np.outer(scale, scale)
    condition = np.abs(system / lengths).sum(axis=0).max() * np.abs(inverse * lengths).sum(axis=0).max()
    return bool(condition < WORST_CONDITION)


# -- LinearSVC: squared hinge loss, the intercept penalised with the weights --


class SquaredHinge(KnownModel):
    r"""Newton's method on :math:`\tfrac12\|w\|^2 + \sum_i C_i \max(0, 1 - y_i f_i)^2`, from the last solution.

    The loss is quadratic while the same samples lie inside the margin: with few changes of that set, few systems are
    solved. In samples, w is a combination of rows and the system one of the kernel matrix.
    """

    def __init__(
        self, X: FloatArray, targets: FloatArray, cost: FloatArray, intercept_scaling: float
    ) -> None:
        super().__init__(X.shape[1])
        self.X, self.targets, self.cost = X, targets, cost
        self.scaling = intercept_scaling
        self.K: FloatArray | None = None
        self.downdating = Downdating(as_design(X))
        self.decision = np.zeros((targets.shape[1], len(X)))
        self.margins: list[_Margin] = []

    def train(self) -> bool:
        if self.alive.size < len(self.X):
            solve = self._in_features
        else:
            columns = self._columns()
            if self.K is None:
                self.K = columns @ columns.T
                self.downdating.start(self.alive)
            solve = partial(self._newton, columns=columns, K=self.K)
        found = []
        for c in range(self.targets.shape[1]):
            weights = solve(c)
            if weights is None:
                return False
            found.append(weights)
        stacked = np.stack(found)
        self.weights, self.intercept = stacked[:, :-1], stacked[:, -1] * self.scaling
        return True

    def _columns(self) -> FloatArray:
        return np.column_stack([self.X[:, self.alive], np.full(len(self.X), self.scaling)])

    def _in_features(self, c: int) -> FloatArray | None:
        if not self.margins:
            self.K, rows = None, self._columns()
            inside = self.targets.T * self.decision < 1.0
            self.margins = [
                _Margin(rows, *of_class, 2.0 * self.cost)
                for of_class in zip(self.targets.T, inside, strict=True)
            ]
        found = self.margins[c].minimiser()
        return self._newton(c, self._columns(), None) if found is None else found

    def _newton(self, c: int, columns: FloatArray, K: FloatArray | None) -> FloatArray | None:
        y = self.targets[:, c]
        # Signs of the last decision values tell which samples are inside; the rest starts from zero.
        inside = y * self.decision[c] < 1.0
        decision, weights = np.zeros(len(y)), np.zeros(columns.shape[1])
        objective = np.inf
        for _ in range(NEWTON_STEPS):
            target = self._minimiser(columns, K, y, inside)
            new_decision = columns @ target
            if np.array_equal(y * new_decision < 1.0, inside):
                self.decision[c] = new_decision
                return target
            length, step, change = 1.0, target - weights, new_decision - decision
            while length > 1e-12:
                trial, trial_decision = weights + length * step, decision + length * change
                value = self._objective(trial, trial_decision, y)
                if value < objective:
                    break
                length *= 0.5
            else:
                return None
            weights, decision, objective = trial, trial_decision, value
            inside = y * decision < 1.0
        return None

    def _minimiser(
        self, columns: FloatArray, K: FloatArray | None, y: FloatArray, inside: BoolArray
    ) -> FloatArray:
        rows, price = columns[inside], 2.0 * self.cost[inside]
        if K is None:
            system = np.eye(columns.shape[1]) + rows.T @ (price[:, None] * rows)
            return np.asarray(cho_solve(cho_factor(system), rows.T @ (price * y[inside])))
        system = K[np.ix_(inside, inside)]
        system.flat[:: len(system) + 1] += 1.0 / price
        return np.asarray(rows.T @ cho_solve(cho_factor(system), y[inside]))

    def _objective(self, weights: FloatArray, decision: FloatArray, y: FloatArray) -> float:
        return float(0.5 * weights @ weights + self.cost @ np.maximum(0.0, 1.0 - y * decision) ** 2)

    def remove(self, features: IntArray) -> None:
        positions = np.searchsorted(self.alive, features)
        super().remove(features)
        if self.K is not None:
            columns = self.X[:, features]
            self.K = None if self.downdating.is_due(features, self.alive) else self.K - columns @ columns.T
        for margin in self.margins:
            margin.remove(positions)


class _Margin:
    """The normal equations of the samples inside the margin, which follow as samples change sides.

    A sample whose decision value was further from the margin than the weights have moved since, times its length,
    is on the side where it was then: only the others are looked at.
    """

    def __init__(self, rows: FloatArray, y: FloatArray, inside: BoolArray, price: FloatArray) -> None:
        self.rows, self.y, self.price, self.inside = rows, y, price, inside
        self.place = np.arange(rows.shape[1])
        self._note(np.zeros(rows.shape[1]))
        self._start()

    def _start(self) -> None:
        """The equations from the data, into which no rounding of changes has gone."""
        rows = self.rows[self.inside][:, self.place]
        price = self.price[self.inside]
        self.system = np.eye(self.place.size) + rows.T @ (price[:, None] * rows)
        self.right = rows.T @ (price * self.y[self.inside])
        self.n_changes = 0

    def _note(self, spread: FloatArray) -> None:
        """Weights, zero for features that have gone, whose decision values are known from now on."""
        self.known, self.decision = spread, self.rows @ spread
        self.length = np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows))

    def minimiser(self) -> FloatArray | None:
        """The solution, found when no sample changes sides any more; None where that does not happen soon."""
        if self.n_changes > CHANGES_PER_SAMPLE * len(self.y):
            self._start()
        for _ in range(UNDAMPED_STEPS):
            # Only the lower triangle is kept, which is the upper one for LAPACK.
            _, weights, info = dposv(self.system.T, self.right)
            if info != 0:
                return None
            spread = np.zeros(self.rows.shape[1])
            spread[self.place] = weights
            moved = float(np.linalg.norm(spread - self.known)) * (1.0 + ROUNDING)
            n_changed, n_seen = change_sides(
                self.rows, self.place, self.y, self.price, weights, self.decision, self.length, moved,
                self.inside, self.system, self.right,
            )  # fmt: skip
            if n_changed == 0:
                return np.asarray(weights)
            self.n_changes += n_changed
            if 4 * n_seen > len(self.y):
                self._note(spread)
        return None

    def remove(self, positions: IntArray) -> None:
        keep = np.delete(np.arange(self.place.size), positions)
        self.system, self.right = self.system[np.ix_(keep, keep)], self.right[keep]
        self.place = self.place[keep]
        if 2 * self.place.size < self.rows.shape[1]:
            self.rows, spread = np.ascontiguousarray(self.rows[:, self.place]), self.known[self.place]
            self.place = np.arange(self.place.size)
            self._note(spread)


@reduction
def change_sides(
    rows: FloatArray,
    place: IntArray,
    y: FloatArray,
    price: FloatArray,
    weights: FloatArray,
    decision: FloatArray,
    length: FloatArray,
    moved: float,
    inside: BoolArray,
    system: FloatArray,
    right: FloatArray,
) -> tuple[int, int]:
    """Let samples enter and leave the normal equations; how many did, and how many were looked at."""
    n_changed, n_seen = 0, 0
    x = np.empty(place.size)
    for i in range(y.size):
        missing = 1.0 - y[i] * decision[i]
        if abs(missing) > length[i] * moved and inside[i] == (missing > 0.0):
            continue
        n_seen += 1
        value = 0.0
        for j in range(place.size):
            x[j] = rows[i, place[j]]
            value += x[j] * weights[j]
        is_inside = y[i] * value < 1.0
        if is_inside == inside[i]:
            continue
        inside[i] = is_inside
        n_changed += 1
        change = price[i] if is_inside else -price[i]
        for j in range(place.size):
            right[j] += change * y[i] * x[j]
            for k in range(j + 1):
                system[j, k] += change * x[j] * x[k]
    return n_changed, n_seen
