r"""A primal-dual interior-point method for the ℓ1 machine on tall data, which ends in an exact solution.

With one row z of signed data for each side of each sample the machine reads

.. math:: \min_{w, b}\ \sum_k c_k |w_k| + \sum_i C_i \xi_i, \qquad z_i \cdot (w, b) + \xi_i - t_i = h_i,
    \qquad \xi, t \ge 0,

with multipliers :math:`0 \le \alpha \le C` of the rows. Split :math:`w = w^+ - w^-`; the slopes
:math:`c_k \mp z_k \cdot \alpha` are the multipliers of the two parts. Eliminating all but w and b from a Newton
step leaves the matrix :math:`Z^\top \Theta Z + D` of size p + 1, with
:math:`\Theta_i = 1/(t_i/\alpha_i + \xi_i/(C_i - \alpha_i))` and :math:`D_k = 1/(w_k^+/(c_k - g_k) + w_k^-/(c_k + g_k))`
for :math:`g = Z^\top \alpha`.

Two things keep it quick. A row far from the kink of its loss is fixed at its bound, and the method goes on with
the others. And it need not converge: once its steps tell which rows lie on the kink and which features have a
weight, two small linear systems give the solution, and both objectives over all rows prove it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.linalg.blas import dsyrk, ssyrk

from zeronorm.solvers.arrays import BoolArray, FloatArray, IntArray
from zeronorm.solvers.blas_threads import one_thread

MAX_ITER = 50  # where many rows lie on the kink the steps get short, and the simplex method is quicker
SMALLEST_START = 0.3  # share of half their range at which multipliers start
TO_THE_BOUND = 0.995  # a step stops this fraction of the way to the nearest bound
CLOSE = 1e-2  # relative gap from which the end is tried
CLOSED = 1e-10  # relative gap at which going on is of no use
FAR = 0.02  # a multiplier this small against the distance from the kink belongs to a fixed row
FIX_FROM = 0.2  # relative gap from which rows are fixed
WORTH_FIXING = 0.8  # share of the rows that may stay
EXACT = 1e-9  # relative violation that is rounding
INDEPENDENT = 1e-9  # smallest pivot of the equations of the end, relative to the largest
BLOCK = 2048  # rows scaled at a time


@dataclass(frozen=True, eq=False)
class CertifiedMachine:
    """Weights, the bias last, and multipliers of all rows that prove them optimal."""

    weights: FloatArray
    alpha: FloatArray
    objective: float
    n_iter: int


def solve_l1_interior(
    rows: FloatArray, target: FloatArray, price: FloatArray, cost: FloatArray
) -> CertifiedMachine | None:
    """The solution for signed ``rows`` with their sign last; None where it is not unique or not found.

    Prices and costs are positive and finite.
    """
    n_iter = 0
    for far in (FAR, 0.0):
        method = _InteriorPoint(rows, target, price, cost, far)
        # Where the method cannot go on, overflow says so soon enough: its results are proved or dropped.
        # The matrices are small: one thread is faster than several that wait for each other.
        with np.errstate(all="ignore"), one_thread():
            found = method.without_features() or method.run(n_iter)
            if found is not None or not (method.mistaken or method.contradicts_itself()):
                return found
        n_iter = method.n_iter
    return None


@dataclass
class _Step:
    """Changes of all variables: primal ones first, then the multipliers."""

    up: FloatArray
    down: FloatArray
    bias: float
    xi: FloatArray
    t: FloatArray
    alpha: FloatArray
    up_slope: FloatArray
    down_slope: FloatArray


class _InteriorPoint:
    """Mehrotra's predictor-corrector steps, on fewer and fewer rows."""

    def __init__(
        self, rows: FloatArray, target: FloatArray, price: FloatArray, cost: FloatArray, far: float
    ) -> None:
        self.all_rows, self.all_targets, self.all_prices = rows, target, price
        self.cost, self.far = cost, far
        self.rows, self.target, self.price = rows, target, price
        self.index: IntArray = np.arange(target.size)
        self.fixed_alpha = np.zeros(target.size)
        self.fixed_pull = np.zeros(cost.size + 1)
        self.fixed_loss = 0.0
        self.mistaken = False  # a solution of the rows left was none of all rows
        self.last_sizes = (0, 0)
        self.n_iter = 0
        self.coarse = rows.astype(np.float32) if far > 0.0 else rows
        self._start()

    def _start(self) -> None:
        """Multipliers inside their range and in balance, slacks as large as the targets."""
        positive = self.rows[:, -1] > 0.0
        mass = np.array([self.price[~positive].sum(), self.price[positive].sum()])
        balance = mass.min() / np.maximum(mass, np.finfo(float).tiny) if mass.min() > 0.0 else np.ones(2)
        self.balanced = self.price * balance[positive.astype(int)]
        pull = 0.5 * (self.balanced @ self.rows)[:-1]
        # Slopes that start far from what the multipliers say take many steps to get there.
        share = max(SMALLEST_START, 1.0 / max(float(np.max(np.abs(pull) / self.cost)), 1.0))
        self.alpha, pull = 0.5 * share * self.balanced, share * pull
        self.spare = self.price - self.alpha
        self.distance = max(float(np.abs(self.target).mean()), np.finfo(float).tiny)
        self.t = np.full(self.target.size, self.distance)
        self.xi = self.t.copy()
        self.up_slope = np.maximum(self.cost - pull, 0.1 * self.cost)
        self.down_slope = np.maximum(self.cost + pull, 0.1 * self.cost)
        product = float(np.mean(self.alpha * self.t))
        self.up, self.down, self.bias = product / self.up_slope, product / self.down_slope, 0.0

    def without_features(self) -> CertifiedMachine | None:
        """The bias alone that puts the heavier side on its targets, should that be a solution."""
        weights = np.zeros(self.cost.size + 1)
        heavier = self.price @ self.rows[:, -1] >= 0.0
        weights[-1] = self.distance if heavier else -self.distance
        return self._certified(weights, self.balanced)

    def run(self, n_iter: int) -> CertifiedMachine | None:
        """Iterate until the solution can be read off and proved."""
        for iteration in range(1, MAX_ITER + 1):
            self.n_iter = n_iter + iteration
            gap = self._residuals()
            objective = self._objective()
            if not gap > CLOSED * objective:
                return None
            if self.far > 0.0 and gap <= FIX_FROM * objective:
                gap = self._fix_far_rows(gap)
            try:
                self._factorise(gap <= CLOSE * objective)
            except LinAlgError:
                return None
            predicted = self._step(0.0, None)
            if gap <= CLOSE * objective:
                found = self._finish(predicted)
                if found is not None:
                    return found
            ahead = self._complementarity(predicted, *self._lengths(predicted, 1.0))
            product = (ahead / gap) ** 3 * gap / (2 * (self.alpha.size + self.cost.size))
            step = self._step(product, predicted)
            self._move(step, *self._lengths(step, TO_THE_BOUND))
        return None

    # -- one step -------------------------------------------------------------------------------

    def _residuals(self) -> float:
        """What is missing in the linear conditions; returns the sum of products that must vanish."""
        weights = np.append(self.up - self.down, self.bias)
        pull = self.alpha @ self.rows + self.fixed_pull
        self.weights = weights
        self.value = self.rows @ weights
        self.missing = self.target - self.value - self.xi + self.t
        self.missing_up = self.cost - pull[:-1] - self.up_slope
        self.missing_down = self.cost + pull[:-1] - self.down_slope
        self.off_balance = -float(pull[-1])
        return float(
            self.alpha @ self.t + self.spare @ self.xi + self.up @ self.up_slope + self.down @ self.down_slope
        )

    def _objective(self) -> float:
        loss = self.price @ np.maximum(self.target - self.value, 0.0)
        fixed = self.fixed_loss - self.fixed_pull @ self.weights
        return max(float(self.cost @ np.abs(self.weights[:-1]) + loss + fixed), np.finfo(float).tiny)

    def _factorise(self, precise: bool) -> None:
        self.theta = 1.0 / (self.t / self.alpha + self.xi / self.spare)
        self.stiffness = 1.0 / (self.up / self.up_slope + self.down / self.down_slope)
        hessian = self._sandwich(self.theta, self.coarse if self.far and not precise else self.rows)
        diagonal = np.einsum("ii->i", hessian)
        diagonal[:-1] += self.stiffness
        if not np.all(diagonal > 0.0):
            raise LinAlgError("not positive definite")
        # The stiffness of the weights spans many orders of magnitude; a unit diagonal keeps the digits.
        self.unit = 1.0 / np.sqrt(diagonal)
        hessian *= self.unit
        hessian *= self.unit[:, None]
        self.factor: Any = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)

    def _sandwich(self, theta: FloatArray, rows: Any) -> FloatArray:
        """Lower triangle of Z'ΘZ, in the precision of ``rows``."""
        syrk = dsyrk if rows.dtype == np.float64 else ssyrk
        product = np.zeros((rows.shape[1], rows.shape[1]), dtype=rows.dtype, order="F")
        root = np.sqrt(theta)[:, None].astype(rows.dtype)
        buffer = np.empty((min(BLOCK, len(rows)), rows.shape[1]), dtype=rows.dtype)
        for start in range(0, len(rows), BLOCK):
            part = rows[start : start + BLOCK]
            scaled = np.multiply(part, root[start : start + BLOCK], out=buffer[: len(part)])
            product = syrk(1.0, scaled.T, beta=1.0, c=product, lower=1, overwrite_c=1)
        return product.astype(np.float64, copy=False)

    def _step(self, product: float, earlier: _Step | None) -> _Step:
        """Solve the linearised conditions, aiming at equal products less what an earlier step adds to them."""
        for_t, for_xi = product - self.alpha * self.t, product - self.spare * self.xi
        for_up, for_down = product - self.up * self.up_slope, product - self.down * self.down_slope
        if earlier is not None:
            for_t -= earlier.alpha * earlier.t
            for_xi += earlier.alpha * earlier.xi
            for_up -= earlier.up * earlier.up_slope
            for_down -= earlier.down * earlier.down_slope
        right = self.missing - for_xi / self.spare + for_t / self.alpha
        drift = (for_up - self.up * self.missing_up) / self.up_slope
        drift -= (for_down - self.down * self.missing_down) / self.down_slope
        weighted = self.theta * right
        system = weighted @ self.rows
        system[:-1] += self.stiffness * drift
        system[-1] -= self.off_balance
        change = self.unit * cho_solve(self.factor, self.unit * system, check_finite=False)
        alpha = weighted - self.theta * (self.rows @ change)
        pull = self.stiffness * (change[:-1] - drift)
        up_slope, down_slope = self.missing_up - pull, self.missing_down + pull
        return _Step(
            up=(for_up - self.up * up_slope) / self.up_slope,
            down=(for_down - self.down * down_slope) / self.down_slope,
            bias=float(change[-1]),
            xi=(for_xi + self.xi * alpha) / self.spare,
            t=(for_t - self.t * alpha) / self.alpha,
            alpha=alpha,
            up_slope=up_slope,
            down_slope=down_slope,
        )

    def _lengths(self, step: _Step, share: float) -> tuple[float, float]:
        """How far the primal variables and the multipliers can go, at most one."""
        primal = ((self.up, step.up), (self.down, step.down), (self.xi, step.xi), (self.t, step.t))
        dual = (
            (self.alpha, step.alpha),
            (self.spare, -step.alpha),
            (self.up_slope, step.up_slope),
            (self.down_slope, step.down_slope),
        )
        return _longest(primal, share), _longest(dual, share)

    def _complementarity(self, step: _Step, primal: float, dual: float) -> float:
        alpha, spare = self.alpha + dual * step.alpha, self.spare - dual * step.alpha
        products = alpha @ (self.t + primal * step.t) + spare @ (self.xi + primal * step.xi)
        products += (self.up + primal * step.up) @ (self.up_slope + dual * step.up_slope)
        products += (self.down + primal * step.down) @ (self.down_slope + dual * step.down_slope)
        return float(products)

    def _move(self, step: _Step, primal: float, dual: float) -> None:
        self.up += primal * step.up
        self.down += primal * step.down
        self.bias += primal * step.bias
        self.xi += primal * step.xi
        self.t += primal * step.t
        self.alpha += dual * step.alpha
        self.spare -= dual * step.alpha
        self.up_slope += dual * step.up_slope
        self.down_slope += dual * step.down_slope

    def contradicts_itself(self) -> bool:
        """Whether the multipliers cannot meet their conditions, as when rows were fixed at the wrong bound."""
        excess = max(
            np.max(np.abs(self.missing_up) / self.cost), np.max(np.abs(self.missing_down) / self.cost)
        )
        return self.index.size < self.fixed_alpha.size and not excess <= CLOSE

    # -- fewer rows -----------------------------------------------------------------------------

    def _fix_far_rows(self, gap: float) -> float:
        """Put the multipliers of rows far from the kink on their bounds; returns the gap of the others."""
        unit = self.far * self.price / self.distance
        at_zero, at_price = self.alpha < unit * self.t, self.spare < unit * self.xi
        staying = ~(at_zero | at_price)
        if not 0 < staying.sum() <= WORTH_FIXING * staying.size:
            return gap
        at_price &= ~at_zero
        self.fixed_alpha[self.index[at_price]] = self.price[at_price]
        self.fixed_pull += self.price[at_price] @ self.rows[at_price]
        self.fixed_loss += float(self.price[at_price] @ self.target[at_price])
        for name in ("index", "rows", "coarse", "target", "price", "alpha", "spare", "t", "xi"):
            setattr(self, name, getattr(self, name)[staying])
        return self._residuals()

    # -- the end --------------------------------------------------------------------------------

    def _finish(self, affine: _Step) -> CertifiedMachine | None:
        """Solve for the rows on the kink and the features with a weight, as the affine step tells them.

        Of two factors whose product must vanish, the one that the step shrinks by more than half is taken for
        the one that vanishes.
        """
        at_zero = affine.alpha < -0.5 * self.alpha
        at_price = affine.alpha > 0.5 * self.spare
        kink = np.flatnonzero(~(at_zero | at_price))
        grows_up, grows_down = affine.up > -0.5 * self.up, affine.down > -0.5 * self.down
        active = np.flatnonzero(grows_up | grows_down)
        sizes = (kink.size, active.size)
        settled = sizes == self.last_sizes
        self.last_sizes = sizes
        if kink.size <= active.size or not (settled or kink.size <= 2 * (active.size + 1)):
            return None
        signs = np.where(grows_up[active], 1.0, -1.0)
        return self._vertex(kink, at_price, active, signs)

    def _vertex(
        self, kink: IntArray, at_price: BoolArray, active: IntArray, signs: FloatArray
    ) -> CertifiedMachine | None:
        columns = np.append(active, self.cost.size)
        equations = self.rows[np.ix_(kink, columns)]
        Q, R = np.linalg.qr(equations)
        pivots = np.abs(np.diag(R))
        if pivots.min() <= INDEPENDENT * pivots.max():
            return None
        weights = np.zeros(self.cost.size + 1)
        weights[columns] = solve_triangular(R, self.target[kink] @ Q, check_finite=False)
        if np.any(weights[active] * signs <= 0.0):
            return None
        alpha = np.where(at_price, self.price, 0.0)
        alpha[kink] = self.alpha[kink]
        pull = np.append(self.cost[active] * signs, 0.0) - (alpha @ self.rows + self.fixed_pull)[columns]
        alpha[kink] += Q @ solve_triangular(R, pull, trans="T", check_finite=False)
        if np.any(alpha < -EXACT * self.price) or np.any(alpha > (1.0 + EXACT) * self.price):
            return None
        multipliers = self.fixed_alpha.copy()
        multipliers[self.index] = np.clip(alpha, 0.0, self.price)
        found = self._certified(weights, multipliers)
        self.mistaken |= found is None and self.index.size < multipliers.size
        return found

    def _certified(self, weights: FloatArray, alpha: FloatArray) -> CertifiedMachine | None:
        """Both objectives over all rows, fixed or not, must agree."""
        pull = alpha @ self.all_rows
        if np.any(np.abs(pull[:-1]) > (1.0 + EXACT) * self.cost):
            return None
        if abs(pull[-1]) > EXACT * self.all_prices.sum():
            return None
        loss = self.all_prices @ np.maximum(self.all_targets - self.all_rows @ weights, 0.0)
        objective = float(self.cost @ np.abs(weights[:-1]) + loss)
        if not objective - float(alpha @ self.all_targets) <= EXACT * objective:
            return None
        return CertifiedMachine(weights, alpha, objective, self.n_iter)


def _longest(pairs: tuple[tuple[FloatArray, FloatArray], ...], share: float) -> float:
    """At most one, and ``share`` of the way to where the first value becomes zero."""
    fastest = max(float(np.max(-change / value, initial=0.0)) for value, change in pairs)
    return 1.0 if fastest <= share else share / fastest
