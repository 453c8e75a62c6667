"""Linear models whose exact solution is updated as features are removed: their base class, and least squares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf, dpotri

from zeronorm._jit import dividing_kernel
from zeronorm._types import FloatArray, IntArray
from zeronorm.execution import one_thread_for_factors

RESIDUAL = 1e-12  # largest residual of the normal equations, relative to their terms
WORST_CONDITION = 1e8
WEAKEST_PENALTY = 1e-10  # relative to the sum of squares of X
DOWNDATES = 64  # removals after which a matrix is recomputed
FEW = 4  # up to this many rows are removed from an inverse one by one; more are removed together
CHECKED_EVERY = 8  # removals between two checks of the condition of an inverse
LEAST_LEFT = 1e-6  # least pivot of a removal, relative: below this, too many digits are lost


class KnownModel(ABC):
    """The exact solution on a shrinking set of features: one row of weights and one intercept per output."""

    weights: FloatArray
    intercept: FloatArray
    precision = 1e-9  # relative error of the weights at which an iteration ends
    smallest_suffices = False  # whether only the feature with the smallest weight is needed

    def __init__(self, n_features: int) -> None:
        self.active: IntArray = np.arange(n_features)

    @abstractmethod
    def train(self) -> bool:
        """Solve on the remaining features; False if the solution is not accurate."""

    def remove(self, features: IntArray) -> None:
        """Remove features."""
        self.active = without(self.active, np.searchsorted(self.active, features))


# -- Ridge regression on few features: backward elimination by the increase of the objective --

NEARLY_EQUAL = 1e-9


def least_missed_last(square: FloatArray, gradient: FloatArray, penalty: float) -> IntArray:
    r"""Features by backward elimination from a ridge regression, in reverse order: the last one left comes first.

    With :math:`H = X^\top X + \lambda I` (``square`` and ``penalty``) and the weights :math:`W = H^{-1} X^\top T`
    (``gradient`` is :math:`X^\top T`) the objective rises by exactly :math:`\tfrac12 \|W_j\|^2 / (H^{-1})_{jj}` when
    feature j is removed and all other weights are refitted. Of equal features the later one is removed.
    """
    inverse = inverse_from(factor_of(square + penalty * np.eye(len(square))))
    left = np.empty(len(inverse), dtype=np.intp)
    _remove_least_missed(inverse, inverse @ gradient, np.arange(len(inverse)), left)
    return left


@dividing_kernel
def _remove_least_missed(inverse: FloatArray, weights: FloatArray, active: IntArray, left: IntArray) -> None:
    """Write the features into ``left`` in reverse order of their removal; the other arrays are overwritten.

    Only loops: an assignment of rows or ``min`` takes numba two seconds more to compile.
    """
    for size in range(left.shape[0], 0, -1):
        k, smallest = 0, np.inf
        for i in range(size):
            feature, square = active[i], 0.0
            for c in range(weights.shape[1]):
                square += weights[feature, c] * weights[feature, c]
            rise = square / inverse[feature, feature]
            if not rise > (1.0 + NEARLY_EQUAL) * smallest:
                k = i
            smallest = min(smallest, rise)
        gone = active[k]
        left[size - 1] = gone
        for i in range(k, size - 1):
            active[i] = active[i + 1]
        for i in range(size - 1):
            row = active[i]
            factor = inverse[row, gone] / inverse[gone, gone]
            for j in range(size - 1):
                inverse[row, active[j]] -= factor * inverse[gone, active[j]]
            for c in range(weights.shape[1]):
                weights[row, c] -= factor * weights[gone, c]


# -- Least squares: Ridge, LinearRegression, RidgeClassifier --


class LeastSquares(KnownModel):
    r"""Closed form with an inverse matrix that is updated as features are removed.

    With at most as many features as samples it is that of :math:`X^\top X + \lambda I`; removing features takes a
    Schur complement. With more, the weights are :math:`X^\top A^{-1} Y`, :math:`A = X X^\top + \lambda I`, and
    without the column x

    .. math:: (A - x x^\top)^{-1} = A^{-1} + \frac{u u^\top}{1 - x^\top u}, \qquad u = A^{-1} x.

    ``minimum_norm`` is for :math:`\lambda = 0`: the solution of least norm. With centring, :math:`X X^\top` is singular
    along the root of the sample weights; a term along it makes the matrix regular and leaves the solution unchanged.
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
        solve = self._in_samples if self.active.size > len(self.Y) else self._in_features
        found = solve()
        if found is None:
            return False
        self.weights = found.T
        self.intercept = self.y_mean - self.weights @ self.x_mean[self.active]
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
            # Removing a column never makes the condition of the equations worse.
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
        positions = np.searchsorted(self.active, features)
        super().remove(features)
        if self.normal is None:
            if self.inverse is not None:
                self._downdate_samples(self.columns.of(positions))
            self.columns.remove(positions)
            return
        kept = without(np.arange(len(self.normal[0])), positions)
        self.normal = self.normal[0][kept[:, None], kept], self.normal[1][kept]
        if self.inverse is not None:
            self.inverse, _ = without_rows(self.inverse, positions, np.empty((len(self.inverse), 0)))
            self.n_downdates += 1

    def _downdate_samples(self, x: FloatArray) -> None:
        """Remove columns from the inverse of the n×n matrix; the inverse is dropped if the change is too large."""
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
    """The values that are not at these positions; fast for one position."""
    if positions.size == 1:
        k = int(positions[0])
        return np.concatenate((values[:k], values[k + 1 :]))
    return np.delete(values, positions)


class Columns:
    """The remaining columns, as rows of an array that is compacted when a quarter of them are removed.

    Columns of another array may follow those of X.
    """

    def __init__(self, X: FloatArray, further: FloatArray | None = None) -> None:
        if further is None:
            self.rows = np.ascontiguousarray(X.T)
        else:  # np.vstack would keep the memory order of its parts
            self.rows = np.empty((X.shape[1] + further.shape[1], len(X)))
            np.concatenate([X.T, further.T], out=self.rows)
        self.kept_rows = np.arange(len(self.rows))
        self._is_copy = further is not None  # otherwise the rows may share memory with the caller's array
        self._buffer: FloatArray | None = None

    def of(self, positions: IntArray) -> FloatArray:
        """Some columns, by their position among the remaining ones."""
        return self.rows[self.kept_rows[positions]].T

    def left(self) -> FloatArray:
        """All remaining columns, as rows."""
        n_left = self.kept_rows.size
        if n_left < len(self.rows):
            if self._is_copy:
                move_up(self.rows, self.kept_rows)
                self.rows = self.rows[:n_left]
            else:
                self.rows, self._is_copy = self.rows[self.kept_rows], True
            self.kept_rows = np.arange(n_left)
        return self.rows

    def scaled(self, by_sample: FloatArray) -> FloatArray:
        """All remaining columns, as rows, times one number for each sample; valid until the next call."""
        if self._buffer is None:  # allocating each time would take longer than the products
            self._buffer = np.empty((self.kept_rows.size, by_sample.size))
        scaled = self._buffer[: self.kept_rows.size]
        scale_rows(self.rows, self.kept_rows, by_sample, scaled)
        return scaled

    def gram(self) -> FloatArray:
        rows = self.left()
        return np.asarray(rows.T @ rows)

    def dot(self, w: FloatArray) -> FloatArray:
        """Linear combinations of the columns with the weights in each row of ``w``, one row each."""
        if self.kept_rows.size < len(self.rows):
            scale = np.zeros((len(w), len(self.rows)))
            scale[:, self.kept_rows] = w
            w = scale
        return np.asarray(w @ self.rows)

    def transpose_dot(self, v: FloatArray) -> FloatArray:
        """Inner products of the columns with ``v``."""
        products = self.rows @ v
        return np.asarray(products if self.kept_rows.size == len(self.rows) else products[self.kept_rows])

    def remove(self, positions: IntArray) -> None:
        self.kept_rows = without(self.kept_rows, positions)
        if self.kept_rows.size < 0.75 * len(self.rows):
            self.left()


@dividing_kernel
def move_up(rows: FloatArray, chosen: IntArray) -> None:
    """Move the chosen rows, given in ascending order, to the front."""
    for i in range(chosen.size):
        if chosen[i] > i:
            for j in range(rows.shape[1]):
                rows[i, j] = rows[chosen[i], j]


@dividing_kernel
def scale_rows(rows: FloatArray, chosen: IntArray, factors: FloatArray, scaled: FloatArray) -> None:
    """Write the chosen rows times the factors into ``scaled``, in one pass over the data."""
    for i in range(chosen.size):
        row = rows[chosen[i]]
        for j in range(factors.size):
            scaled[i, j] = row[j] * factors[j]


def without_rows(
    inverse: FloatArray, positions: IntArray, point: FloatArray
) -> tuple[FloatArray | None, FloatArray]:
    """The inverse of a positive definite matrix without some rows and columns, from the inverse with them.

    ``point`` holds the minima of quadratic functions with that matrix, one in each column; they are updated too.
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


@dividing_kernel
def without_row(inverse: FloatArray, point: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """The inverse and the minima after one row and column are removed from the matrix (a Schur complement)."""
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


def factor_of(system: FloatArray) -> FloatArray:
    """The upper triangular Cholesky factor; the system is overwritten."""
    with one_thread_for_factors(len(system)):
        factor, not_definite = dpotrf(system.T, overwrite_a=True)
    if not_definite:
        raise LinAlgError("not positive definite")
    return np.asarray(factor)


def inverse_from(factor: FloatArray) -> FloatArray:
    """The inverse of the matrix with this Cholesky factor."""
    with one_thread_for_factors(len(factor)):
        triangle = dpotri(factor)[0]
    inverse = triangle + triangle.T
    inverse.flat[:: len(inverse) + 1] *= 0.5
    return np.asarray(inverse)


def _inverse_of(system: FloatArray) -> FloatArray | None:
    try:
        return np.asarray(cho_solve(cho_factor(system), np.eye(len(system))))
    except LinAlgError:
        return None


def _solves(system: FloatArray, solution: FloatArray, right: FloatArray) -> bool:
    """Whether the residual is at the level of rounding errors."""
    residual = np.abs(system @ solution - right).max()
    terms = np.abs(system).max() * np.abs(solution).max() + np.abs(right).max()
    return bool(np.isfinite(residual) and residual <= RESIDUAL * terms)


def _is_regular(system: FloatArray, inverse: FloatArray) -> bool:
    """Whether the system, scaled to a unit diagonal, is well conditioned (condition number in the 1-norm)."""
    scale = np.sqrt(np.diagonal(system))
    if not np.all(scale > 0.0):
        return False
    lengths = np.outer(scale, scale)
    condition = np.abs(system / lengths).sum(axis=0).max() * np.abs(inverse * lengths).sum(axis=0).max()
    return bool(condition < WORST_CONDITION)
