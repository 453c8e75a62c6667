"""LinearSVC with the squared hinge and the hinge loss, the intercept penalised with the weights."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dposv

from zeronorm._jit import reduction
from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.design import as_design
from zeronorm.engines.elimination._loop import Downdating
from zeronorm.engines.elimination._smooth_models import Columns, KnownModel
from zeronorm.solvers.svm._box_dual import solve_box

NEWTON_STEPS = 200
# Steps of Newton's method without line search; a piecewise quadratic loss mostly needs three.
UNDAMPED_STEPS = 30
# Changes of the side of the margin, per sample, after which the normal equations are recomputed.
CHANGES_PER_SAMPLE = 4
ROUNDING = 1e-7  # relative safety margin for rounding errors


class SquaredHinge(KnownModel):
    r"""Newton's method on :math:`\tfrac12\|w\|^2 + \sum_i C_i \max(0, 1 - y_i f_i)^2`, from the last solution.

    The loss is quadratic while the same samples lie inside the margin: if that set changes rarely, few systems are
    solved. With more features than samples, w is a combination of rows and the system is that of the kernel matrix.
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
        if self.active.size < len(self.X):
            solve = self._in_features
        else:
            columns = self._columns()
            if self.K is None:
                self.K = columns @ columns.T
                self.downdating.start(self.active)
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
        return np.column_stack([self.X[:, self.active], np.full(len(self.X), self.scaling)])

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
        # The last decision values determine which samples are inside; everything else starts from zero.
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
        rows, cost = columns[inside], 2.0 * self.cost[inside]
        if K is None:
            system = np.eye(columns.shape[1]) + rows.T @ (cost[:, None] * rows)
            return np.asarray(cho_solve(cho_factor(system), rows.T @ (cost * y[inside])))
        system = K[np.ix_(inside, inside)]
        system.flat[:: len(system) + 1] += 1.0 / cost
        return np.asarray(rows.T @ cho_solve(cho_factor(system), y[inside]))

    def _objective(self, weights: FloatArray, decision: FloatArray, y: FloatArray) -> float:
        return float(0.5 * weights @ weights + self.cost @ np.maximum(0.0, 1.0 - y * decision) ** 2)

    def remove(self, features: IntArray) -> None:
        positions = np.searchsorted(self.active, features)
        super().remove(features)
        if self.K is not None:
            columns = self.X[:, features]
            self.K = None if self.downdating.is_due(features, self.active) else self.K - columns @ columns.T
        for margin in self.margins:
            margin.remove(positions)


class _Margin:
    """The normal equations of the samples inside the margin, updated as samples change sides.

    By the Cauchy-Schwarz inequality, a sample stays on its side if its last decision value was further from the margin
    than its norm times the change of the weights since: only the others are checked.
    """

    def __init__(self, rows: FloatArray, y: FloatArray, inside: BoolArray, cost: FloatArray) -> None:
        self.rows, self.y, self.cost, self.inside = rows, y, cost, inside
        self.kept_columns = np.arange(rows.shape[1])
        self._note(np.zeros(rows.shape[1]))
        self._start()

    def _start(self) -> None:
        """Compute the equations from the data, without the rounding errors of updates."""
        rows = self.rows[self.inside][:, self.kept_columns]
        cost = self.cost[self.inside]
        self.system = np.eye(self.kept_columns.size) + rows.T @ (cost[:, None] * rows)
        self.right = rows.T @ (cost * self.y[self.inside])
        self.n_changes = 0

    def _note(self, scale: FloatArray) -> None:
        """Store the weights (zero for removed features) at which all decision values were computed."""
        self.known, self.decision = scale, self.rows @ scale
        self.length = np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows))

    def minimiser(self) -> FloatArray | None:
        """The solution, reached when no sample changes sides; None if that takes too many steps."""
        if self.n_changes > CHANGES_PER_SAMPLE * len(self.y):
            self._start()
        for _ in range(UNDAMPED_STEPS):
            # Only the lower triangle is stored, which is the upper one in LAPACK's column order.
            _, weights, info = dposv(self.system.T, self.right)
            if info != 0:
                return None
            scale = np.zeros(self.rows.shape[1])
            scale[self.kept_columns] = weights
            moved = float(np.linalg.norm(scale - self.known)) * (1.0 + ROUNDING)
            n_changed, n_seen = change_sides(
                self.rows, self.kept_columns, self.y, self.cost, weights, self.decision, self.length, moved,
                self.inside, self.system, self.right,
            )  # fmt: skip
            if n_changed == 0:
                return np.asarray(weights)
            self.n_changes += n_changed
            if 4 * n_seen > len(self.y):
                self._note(scale)
        return None

    def remove(self, positions: IntArray) -> None:
        keep = np.delete(np.arange(self.kept_columns.size), positions)
        self.system, self.right = self.system[np.ix_(keep, keep)], self.right[keep]
        self.kept_columns = self.kept_columns[keep]
        if 2 * self.kept_columns.size < self.rows.shape[1]:
            self.rows, scale = (
                np.ascontiguousarray(self.rows[:, self.kept_columns]),
                self.known[self.kept_columns],
            )
            self.kept_columns = np.arange(self.kept_columns.size)
            self._note(scale)


@reduction
def change_sides(
    rows: FloatArray,
    kept_columns: IntArray,
    y: FloatArray,
    cost: FloatArray,
    weights: FloatArray,
    decision: FloatArray,
    length: FloatArray,
    moved: float,
    inside: BoolArray,
    system: FloatArray,
    right: FloatArray,
) -> tuple[int, int]:
    """Add and remove samples in the normal equations; returns how many changed and how many were checked."""
    n_changed, n_seen = 0, 0
    x = np.empty(kept_columns.size)
    for i in range(y.size):
        missing = 1.0 - y[i] * decision[i]
        if abs(missing) > length[i] * moved and inside[i] == (missing > 0.0):
            continue
        n_seen += 1
        value = 0.0
        for j in range(kept_columns.size):
            x[j] = rows[i, kept_columns[j]]
            value += x[j] * weights[j]
        is_inside = y[i] * value < 1.0
        if is_inside == inside[i]:
            continue
        inside[i] = is_inside
        n_changed += 1
        change = cost[i] if is_inside else -cost[i]
        for j in range(kept_columns.size):
            right[j] += change * y[i] * x[j]
            for k in range(j + 1):
                system[j, k] += change * x[j] * x[k]
    return n_changed, n_seen


# -- Hinge loss --


class PenalisedHinge(KnownModel):
    """Dual variables with bounds and no equality constraint; the rows have at most as many entries as samples."""

    def __init__(self, X: FloatArray, targets: FloatArray, cost: FloatArray, scaling: float) -> None:
        super().__init__(X.shape[1])
        self.columns, self.downdating = Columns(X), Downdating(as_design(X))
        self.targets, self.cost, self.scaling = np.ascontiguousarray(targets.T), cost, scaling
        self.alpha = np.zeros(self.targets.shape)
        self.K: FloatArray | None = None
        self.rows: FloatArray | None = None

    def train(self) -> bool:
        rows = self._rows()
        for y, alpha in zip(self.targets, self.alpha, strict=True):
            if not solve_box(rows, y, self.cost, alpha):
                alpha[:] = 0.0
                return False
        v = self.targets * self.alpha
        self.weights = self.columns.transpose_dot(v.T).T
        self.intercept = self.scaling**2 * v.sum(axis=1)
        return True

    def _rows(self) -> FloatArray:
        """The samples, or shorter rows with the same inner products where features outnumber samples."""
        n = self.cost.size
        if self.active.size < n:
            if self.rows is None:
                self.rows = np.column_stack([self.columns.left().T, np.full(n, self.scaling)])
            return self.rows
        if self.K is None:
            self.K = self.columns.gram()
            self.downdating.start(self.active)
        K = self.K + self.scaling**2
        try:
            return np.asarray(np.linalg.cholesky(K), dtype=np.float64)
        except np.linalg.LinAlgError:
            squares, axes = np.linalg.eigh(K)
            return np.asarray(axes * np.sqrt(np.maximum(squares, 0.0)))

    def remove(self, features: IntArray) -> None:
        positions = np.searchsorted(self.active, features)
        x = self.columns.of(positions)
        self.columns.remove(positions)
        super().remove(features)
        if self.K is not None:
            self.K = None if self.downdating.is_due(features, self.active) else self.K - x @ x.T
        if self.rows is not None:
            self.rows = np.ascontiguousarray(np.delete(self.rows, positions, axis=1))
