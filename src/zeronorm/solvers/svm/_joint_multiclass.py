r"""The multi-class support vector machine of Weston and Watkins, on a kernel matrix.

.. math:: \min_{w, b}\ \tfrac12 \sum_k \|w_k\|^2 + \sum_i C_i \sum_{m \ne y_i} \xi_i^m, \qquad
    (w_{y_i} - w_m)^\top x_i + b_{y_i} - b_m \ge 1 - \xi_i^m, \quad \xi_i^m \ge 0.

With one multiplier :math:`0 \le \alpha_i^m \le C_i` for each constraint and
:math:`v_i^k = [k = y_i] \sum_m \alpha_i^m - [k \ne y_i]\,\alpha_i^k`, the weights are
:math:`w_k = X^\top v^k` and the dual is

.. math:: \max_\alpha\ \sum_{i, m} \alpha_i^m - \tfrac12 \sum_k v^{k\top} K v^k, \qquad
    \sum_i v_i^k = 0 \ \text{for every class } k.

Coordinate ascent handles the box constraints. An augmented Lagrangian handles the balance of the classes, whose
multipliers are the biases. Newton steps on the free variables finish the work.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, lstsq

from zeronorm._jit import kernel
from zeronorm._types import BoolArray, FloatArray, Int64Array
from zeronorm.solvers._status import Certified, Status
from zeronorm.solvers.svm._dual import kernel_matrix, per_sample
from zeronorm.solvers.svm._smo import EPSILON

# -- Coordinate ascent for the multi-class dual --


@kernel
def ascend(K, codes, ridge, upper, alpha, f, balance, bias, stiffness, tol, max_passes):
    """Coordinate ascent until no variable gains more than tol; changes alpha, f and balance.

    Every pass over all variables is followed by passes over the free ones until they are settled.
    Returns the number of passes.
    """
    everywhere = True
    for n in range(max_passes):
        worst = _one_pass(K, codes, ridge, upper, alpha, f, balance, bias, stiffness, everywhere)
        if worst <= tol:
            if everywhere:
                return n + 1
            everywhere = True
        else:
            everywhere = False
    return max_passes


@kernel
def _one_pass(K, codes, ridge, upper, alpha, f, balance, bias, stiffness, everywhere):
    """One step for each variable, or each free one; returns the largest violation seen."""
    n, n_classes = alpha.shape
    worst = 0.0
    for i in range(n):
        own = codes[i]
        curvature = 2.0 * (K[i, i] + stiffness) + ridge[i]
        for m in range(n_classes):
            old = alpha[i, m]
            if m == own or upper[i] == 0.0 or not (everywhere or 0.0 < old < upper[i]):
                continue
            margin = f[own, i] - f[m, i] + bias[own] - bias[m] + stiffness * (balance[own] - balance[m])
            slope = 1.0 - margin - ridge[i] * old
            new = min(max(old + slope / curvature, 0.0), upper[i])
            if new == old:
                continue
            worst = max(worst, abs(slope))
            step = new - old
            alpha[i, m] = new
            balance[own] += step
            balance[m] -= step
            for j in range(n):
                f[own, j] += step * K[i, j]
                f[m, j] -= step * K[i, j]
    return worst


MOST_FREE = 1500  # free variables; a Newton step needs a square matrix of this size
PASSES = 200  # passes of coordinate ascent before the biases are updated


@dataclass(frozen=True, eq=False)
class MulticlassSvm(Certified):
    """The classifier: decision values are K @ dual_coef + bias, one column for each class; biases sum to zero."""

    alpha: FloatArray
    dual_coef: FloatArray
    bias: FloatArray
    objective: float
    primal_objective: float
    violation: float
    n_iter: int
    status: Status


def solve_weston_watkins(
    K: FloatArray,
    codes: ArrayLike,
    n_classes: int,
    *,
    C: float | ArrayLike = 1.0,
    loss: Literal["hinge", "squared_hinge"] = "hinge",
    warm_start: MulticlassSvm | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> MulticlassSvm:
    r"""Fit the joint SVM for all classes.

    Parameters
    ----------
    K : (n, n) kernel matrix, symmetric and positive semi-definite.
    codes : (n,) classes 0 to n_classes - 1.
    C : cost of the slacks, one for all samples or one for each; ``inf`` for a hard margin. If the classes
        then cannot be separated, the status is ``UNBOUNDED``.
    loss : "hinge", or "squared_hinge" for :math:`\tfrac12 C_i (\xi_i^m)^2`.
    tol : largest violation of the optimality conditions, in units of the margin.
    max_iter : rounds of coordinate ascent; each has up to 200 passes over the variables.
    """
    state = _State(kernel_matrix(K), np.asarray(codes, dtype=np.int64), n_classes, C, loss)
    if warm_start is not None:
        state.start_from(warm_start)
    status, n_iter = Status.ITERATION_LIMIT, 0
    while status is Status.ITERATION_LIMIT and n_iter < max_iter:
        n_iter += 1
        state.ascend(tol)
        state.newton_step()
        if state.violation() <= tol:
            status = Status.CONVERGED
        elif state.grows_without_limit(tol):
            status = Status.UNBOUNDED
    return state.result(n_iter, status)


class _State:
    """The iterate: multipliers alpha, decision values f without bias, and biases."""

    def __init__(
        self, K: FloatArray, codes: Int64Array, n_classes: int, C: float | ArrayLike, loss: str
    ) -> None:
        n = codes.size
        cost = per_sample(C, n)
        self.K, self.codes, self.n_classes, self.cost = K, codes, n_classes, cost
        self.squared = loss == "squared_hinge"
        present = cost > 0.0
        if self.squared:
            self.ridge = np.divide(1.0, cost, out=np.zeros(n), where=present)
            self.upper = np.where(present, np.inf, 0.0)
        else:
            self.ridge, self.upper = np.zeros(n), cost.copy()
        self.hard = np.isinf(self.upper) & (self.ridge == 0.0)
        self.own = codes[:, None] == np.arange(n_classes)
        self.alpha = np.zeros((n, n_classes))
        self.bias = np.zeros(n_classes)
        # A penalty of the size of the data: the balance then converges about as fast as the variables.
        self.stiffness = max(float(np.trace(K)) / max(n, 1), 1e-300)
        self._refresh()

    def start_from(self, other: MulticlassSvm) -> None:
        self.alpha = np.minimum(other.alpha, self.upper[:, None])
        self.bias = other.bias.copy()
        self._refresh()

    def coefficients(self) -> FloatArray:
        """The coefficients v of the samples, one column for each class."""
        return np.where(self.own, self.alpha.sum(axis=1, keepdims=True), -self.alpha)

    def _refresh(self) -> None:
        coefficients = self.coefficients()
        self.f = np.ascontiguousarray((self.K @ coefficients).T)
        self.balance = coefficients.sum(axis=0)

    def ascend(self, tol: float) -> None:
        """Coordinate ascent with a penalty on the imbalance, then new biases from the remaining imbalance."""
        ascend(
            self.K, self.codes, self.ridge, self.upper, self.alpha, self.f, self.balance, self.bias,
            self.stiffness, 0.3 * tol, PASSES,
        )  # fmt: skip
        self._refresh()
        self.bias = self.bias + self.stiffness * self.balance
        self.bias -= self.bias.mean()

    def slope(self) -> FloatArray:
        """The gradient of the dual with the biases as multipliers: how far each margin is short of one."""
        decision = self.f.T + self.bias
        own = decision[np.arange(self.codes.size), self.codes]
        return 1.0 - (own[:, None] - decision) - self.ridge[:, None] * self.alpha

    def violation(self) -> float:
        """Largest violation of the optimality conditions; that of the balance is in units of the bias."""
        slope = self.slope()
        up = np.where(self.alpha < self.upper[:, None], slope, 0.0)
        down = np.where(self.alpha > 0.0, -slope, 0.0)
        worst = np.maximum(up, down)[~self.own].max(initial=0.0)
        return max(float(worst), self.stiffness * float(np.abs(self.balance).max()))

    # -- Newton steps ---------------------------------------------------------------------------

    def newton_step(self) -> None:
        """Solve for the free variables and the biases together; go as far as the bounds allow."""
        free = ~self.own & (self.alpha > 0.0) & (self.alpha < self.upper[:, None])
        n_free = int(np.count_nonzero(free))
        if not 0 < n_free <= MOST_FREE:
            return
        step, bias_step = self._newton_direction(free, n_free)
        if not np.isfinite(step).all():
            return
        alpha = self.alpha[free]
        ceiling = np.broadcast_to(self.upper[:, None], free.shape)[free]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0.0, (ceiling - alpha) / step, np.where(step < 0.0, -alpha / step, np.inf))
        length = min(1.0, float(room.min()))
        self.alpha[free] = np.clip(alpha + length * step, 0.0, ceiling)
        self.bias = self.bias + length * bias_step
        self.bias -= self.bias.mean()
        self._refresh()

    def _newton_direction(self, free: BoolArray, n_free: int) -> tuple[FloatArray, FloatArray]:
        sample, other = np.nonzero(free)
        signs = np.zeros((n_free, self.n_classes))
        signs[np.arange(n_free), self.codes[sample]] = 1.0
        signs[np.arange(n_free), other] -= 1.0
        system = np.zeros((n_free + self.n_classes, n_free + self.n_classes))
        system[:n_free, :n_free] = self.K[np.ix_(sample, sample)] * (signs @ signs.T)
        system[np.arange(n_free), np.arange(n_free)] += self.ridge[sample]
        system[:n_free, n_free:] = signs
        system[n_free:, :n_free] = signs.T
        right = np.concatenate([self.slope()[free], -self.balance])
        try:
            # The biases are determined up to a constant, and free variables may be linearly dependent.
            solution = lstsq(system, right, lapack_driver="gelsy", check_finite=False)[0]
        except (LinAlgError, ValueError):
            return np.full(n_free, np.nan), np.zeros(self.n_classes)
        return solution[:n_free], solution[n_free:]

    # -- hard margins ---------------------------------------------------------------------------

    def grows_without_limit(self, tol: float) -> bool:
        """Whether a hard margin does not exist at working precision; otherwise take the best multiple of alpha.

        The best multiple is a lower bound on the size of the solution; when rounding errors of that
        size exceed the tolerance, no solution can be verified (see ``zeronorm.solvers.svm._smo``).
        """
        if not self.hard.any() or not self.alpha.any():
            return False
        gain = float(self.alpha.sum()) - float(self.bias @ self.balance)
        curvature = float(np.sum(self.coefficients() * self.f.T)) + self.stiffness * float(
            self.balance @ self.balance
        )
        largest = float(np.diag(self.K).max())
        total = float(self.alpha.sum())
        if 2.0 * EPSILON * largest * total * total > tol * curvature:
            return True
        multiple = gain / curvature
        if multiple > 1.0 and self.hard.all():
            self.alpha *= multiple
            self._refresh()
        return False

    def result(self, n_iter: int, status: Status) -> MulticlassSvm:
        norm = float(np.sum(self.coefficients() * self.f.T))
        dual = float(self.alpha.sum()) - 0.5 * norm - 0.5 * float(np.sum(self.ridge[:, None] * self.alpha**2))
        return MulticlassSvm(
            alpha=self.alpha,
            dual_coef=self.coefficients(),
            bias=self.bias,
            objective=dual,
            primal_objective=self._primal(norm),
            violation=self.violation(),
            n_iter=n_iter,
            status=status,
        )

    def _primal(self, norm: float) -> float:
        """The primal objective, after scaling the solution until the hard margins hold."""
        margin = 1.0 - self.slope() - self.ridge[:, None] * self.alpha
        reached = float(np.min(margin, initial=1.0, where=self.hard[:, None] & ~self.own))
        if reached <= 0.0:
            return float("inf")
        excess = np.maximum(1.0 - margin / reached, 0.0)
        soft = np.where(self.hard, 0.0, self.cost)[:, None]
        losses = soft * (0.5 * excess**2 if self.squared else excess)
        return 0.5 * norm / reached**2 + float(np.sum(losses, where=~self.own))
