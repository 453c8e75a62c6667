r"""The box-constrained dual that all support vector machines here share.

Variables :math:`0 \le \alpha_i \le u_i` belong to samples :math:`s_i` and have signs
:math:`\pm 1`. With :math:`v = \sum_i \mathrm{sign}_i\,\alpha_i\,e_{s_i}` the problem is

.. math:: \min_\alpha\ \tfrac12 v^\top Q v + \mathrm{linear}^\top\alpha, \qquad
    \mathrm{sign}^\top\alpha = 0, \qquad Q = K + \mathrm{diag}(\mathrm{ridge}).

The gradient follows from :math:`f = Qv`, which has one number for each sample. The primal is

.. math:: \min_{w, b}\ \tfrac12 \|w\|^2 + \sum_i \ell_i(r_i), \qquad
    r_i = -\mathrm{linear}_i - \mathrm{sign}_i (w^\top x_{s_i} + b),

with :math:`\ell_i(r) = u_i \max(0, r)`, or :math:`\max(0, r)^2 / (2\,\mathrm{ridge}_{s_i})` where there
is a ridge. With both, the slope of the quadratic is at most :math:`u_i`: beyond it the loss is linear (Huber 1964).
With neither a bound nor a ridge there is the hard constraint :math:`r_i \le 0`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from zeronorm._jit import kernel, reduction
from zeronorm._types import BoolArray, FloatArray, Int64Array

BALANCED = 1e-13  # relative difference of the sums of the two signs that is rounding


@dataclass(frozen=True, eq=False)
class BoxDual:
    """The data of the problem except K."""

    sample: Int64Array
    sign: FloatArray
    linear: FloatArray
    upper: FloatArray
    ridge: FloatArray

    @classmethod
    def classification(cls, y: FloatArray, C: FloatArray, squared: bool) -> BoxDual:
        """The hinge or squared hinge loss, with one variable for each sample; y in {-1, +1}, C for each sample."""
        upper, ridge = _bounds(C, squared)
        samples = np.arange(y.size, dtype=np.int64)
        return cls(samples, np.array(y, np.float64), np.full(y.size, -1.0), upper, ridge)

    @classmethod
    def regression(cls, y: FloatArray, C: FloatArray, epsilon: float, squared: bool) -> BoxDual:
        """The epsilon-insensitive loss, with two variables for each sample, for errors above and below epsilon."""
        upper, ridge = _bounds(C, squared)
        samples = np.arange(y.size, dtype=np.int64)
        return cls(
            sample=np.concatenate([samples, samples]),
            sign=np.repeat([1.0, -1.0], y.size),
            linear=np.concatenate([epsilon - y, epsilon + y]),
            upper=np.concatenate([upper, upper]),
            ridge=ridge,
        )

    @classmethod
    def of(cls, y: FloatArray, C: FloatArray, epsilon: float | None, squared: bool) -> BoxDual:
        """The problem of a regression where ``epsilon`` is given, otherwise of a classification."""
        if epsilon is None:
            return cls.classification(y, C, squared)
        return cls.regression(y, C, epsilon, squared)

    def bounded(self, above: FloatArray, below: FloatArray) -> BoxDual:
        """A regression with these upper bounds of the variables for errors above and below, one for each sample."""
        return replace(self, upper=np.concatenate([above, below]))

    def restricted(self, variables: BoolArray) -> BoxDual:
        """The problem in some of the variables, with the others fixed at zero."""
        return BoxDual(
            self.sample[variables],
            self.sign[variables],
            self.linear[variables],
            self.upper[variables],
            self.ridge,
        )

    @property
    def n_samples(self) -> int:
        """Number of samples; there may be twice as many variables."""
        return self.ridge.size

    @property
    def hard(self) -> BoolArray:
        """The variables with a hard constraint, of infinite cost."""
        hard: BoolArray = np.isinf(self.upper) & (self.ridge[self.sample] == 0.0)
        return hard

    def signed_sum(self, alpha: FloatArray) -> FloatArray:
        """The coefficients v of the samples."""
        return self.sum_by_sample(self.sign * alpha)

    def sum_by_sample(self, values: FloatArray) -> FloatArray:
        """Add up the values of each sample's variables."""
        return np.bincount(self.sample, values, self.n_samples).astype(np.float64, copy=False)

    def without_overlap(self, alpha: FloatArray) -> FloatArray:
        """The same v with at most one of a sample's two variables positive, which is never worse."""
        if self.sign.size == self.n_samples:
            return alpha
        pairs = alpha.reshape(2, self.n_samples)
        separate: FloatArray = (pairs - pairs.min(axis=0)).ravel()
        return separate

    def feasible(self, alpha: FloatArray) -> FloatArray:
        """Make given variables a feasible start: clip them to the box, and scale down the sign with the larger sum."""
        alpha = np.clip(alpha, 0.0, self.upper)
        positive = self.sign > 0.0
        plus, minus = alpha[positive].sum(), alpha[~positive].sum()
        if abs(plus - minus) <= BALANCED * (plus + minus):
            return alpha  # scaling by a factor near one would only move variables off their bounds
        if plus > minus:
            alpha[positive] *= minus / plus
        elif minus > plus:
            alpha[~positive] *= plus / minus
        return alpha

    def bias(self, alpha: FloatArray, f: FloatArray) -> float:
        """The unpenalised bias: the mean over the free variables, otherwise the midpoint of the optimal interval."""
        score = -(f[self.sample] + self.sign * self.linear)
        above, below = alpha > 0.0, alpha < self.upper
        if np.any(above & below):
            return float(score[above & below].mean())
        positive = self.sign > 0.0
        least = np.max(score, initial=-np.inf, where=np.where(positive, below, above))
        most = np.min(score, initial=np.inf, where=np.where(positive, above, below))
        limits = [limit for limit in (least, most) if np.isfinite(limit)]
        return float(np.mean(limits)) if limits else 0.0

    def objective(self, alpha: FloatArray, f: FloatArray) -> float:
        """The dual objective in the form to be maximised: a lower bound on the primal one."""
        return float(-self.linear @ alpha - 0.5 * (self.signed_sum(alpha) @ f))

    def residual(self, decision: FloatArray) -> FloatArray:
        """The violation of each variable's constraint, given w'x + b of the samples."""
        return -self.linear - self.sign * decision[self.sample]

    def slope(self, excess: FloatArray) -> FloatArray:
        """The slope of each loss at a residual that is not negative."""
        ridge = self.ridge[self.sample]
        quadratic = np.divide(excess, ridge, out=np.full(excess.size, np.inf), where=ridge > 0.0)
        return np.asarray(np.minimum(quadratic, self.upper))

    def loss(self, decision: FloatArray) -> float:
        """The sum of the losses; infinite when a hard constraint is violated."""
        excess = np.maximum(self.residual(decision), 0.0)
        slope, ridge = self.slope(excess), self.ridge[self.sample]
        bend = np.multiply(ridge, slope, out=np.zeros(slope.size), where=ridge > 0.0)
        paid = excess > 0.0
        return float(slope[paid] @ (excess[paid] - 0.5 * bend[paid]))

    def gap(self, alpha: FloatArray, f: FloatArray, bias: float) -> float:
        """Primal minus dual objective at w = X'v, summed term by term so that it is never negative."""
        if self.hard.any():
            return self._gap_with_hard_constraints(alpha, f, bias)
        v = self.signed_sum(alpha)
        r = self.residual(f - self.ridge * v + bias)
        excess, slack = np.maximum(r, 0.0), np.maximum(-r, 0.0)
        ridge, slope = self.ridge[self.sample], self.slope(excess)
        # The slope times the excess minus half the ridge is the loss; alpha would be the slope at the optimum.
        linear = ridge == 0.0
        unused = (self.upper - alpha)[linear] @ excess[linear]
        a, s, rho = alpha[~linear], slope[~linear], ridge[~linear]
        unpaid = (s - a) * (excess[~linear] - 0.5 * rho * (s + a))
        return float(alpha @ slack + unused + np.sum(np.maximum(unpaid, 0.0)))

    def _gap_with_hard_constraints(self, alpha: FloatArray, f: FloatArray, bias: float) -> float:
        """The same gap after scaling the solution until the hard constraints hold."""
        v = self.signed_sum(alpha)
        fitted = f - self.ridge * v
        reached = (self.sign * (fitted + bias)[self.sample])[self.hard].min()
        if reached <= 0.0:
            return float("inf")
        scale = max(1.0, 1.0 / reached) * (1.0 + 4.0 * np.finfo(float).eps)
        primal = 0.5 * scale**2 * (v @ fitted) + self.loss(scale * (fitted + bias))
        return max(float(primal - self.objective(alpha, f)), 0.0)


def _bounds(C: FloatArray, squared: bool) -> tuple[FloatArray, FloatArray]:
    """Upper bound and ridge of each sample; the variable of a sample of zero weight is fixed at zero in both cases."""
    if not squared:
        return C.copy(), np.zeros(C.size)
    weighted = C > 0.0
    ridge = np.divide(1.0, C, out=np.zeros(C.size), where=weighted)
    return np.where(weighted, np.inf, 0.0), ridge


# -- SVMs whose bias is penalised with the weights: box constraints only --
#
# .. math:: \min_\alpha\ \tfrac12 \|w\|^2 - \sum_i \alpha_i, \qquad w = \sum_i \alpha_i y_i z_i, \qquad
#     0 \le \alpha_i \le C_i
#
# The gradient of a variable is :math:`y_i w^\top z_i - 1`. A few epochs of coordinate descent bring most variables to
# their bounds. Then one variable moves at a time, and the free variables move with it so that their gradients stay
# zero. There are at most as many free variables as z has entries, and the solution is exact.

PASSES_FROM_ZERO, PASSES_NEAR = 30, 1
VISITS = 20  # of a variable between its bounds in each epoch
ROUNDS, PASSES = 10, 200  # most rounds with recomputed gradients, and most passes in each
DEPENDENT = 1e-10  # relative curvature below which a sample is a combination of the free ones


def solve_box(Z: FloatArray, y: FloatArray, C: FloatArray, alpha: FloatArray, tol: float = 1e-9) -> bool:
    """Solve for the dual variables ``alpha``, starting from their values and in place; False where that fails.

    Z has one row per sample and includes the column of the bias; y is ±1.
    """
    signed = np.ascontiguousarray(Z * y[:, None])
    descend(signed, C, alpha, signed.T @ alpha, PASSES_NEAR if alpha.any() else PASSES_FROM_ZERO)
    free = np.empty(0, dtype=np.int64)
    for _ in range(ROUNDS):
        gradient = signed @ (signed.T @ alpha) - 1.0
        try:
            inverse = np.asarray(np.linalg.inv(signed[free] @ signed[free].T), dtype=np.float64)
        except np.linalg.LinAlgError:
            free, inverse = free[:0], np.empty((0, 0))
        if np.abs(gradient[free]).max(initial=0.0) > 0.1 * tol:
            alpha[free] = np.clip(alpha[free] - inverse @ gradient[free], 0.0, C[free])
            gradient = signed @ (signed.T @ alpha) - 1.0
        if not (((alpha < C) & (gradient < -tol)) | ((alpha > 0.0) & (gradient > tol))).any():
            return True
        free = settle(signed, C, alpha, signed.T @ alpha, free, inverse, tol)
    return False


@reduction
def inner(a: FloatArray, b: FloatArray) -> float:
    """The inner product of two vectors."""
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@kernel
def descend(signed: FloatArray, C: FloatArray, alpha: FloatArray, w: FloatArray, n_passes: int) -> None:
    """Coordinate descent over all variables; those between their bounds are visited more often."""
    every = np.arange(alpha.shape[0])
    for _ in range(n_passes):
        pass_over(every, signed, C, alpha, w)
        between = np.flatnonzero((alpha > 0.0) & (alpha < C))
        for _ in range(VISITS):
            pass_over(between, signed, C, alpha, w)


@kernel
def pass_over(
    variables: Int64Array, signed: FloatArray, C: FloatArray, alpha: FloatArray, w: FloatArray
) -> None:
    """Minimise over each of these variables once."""
    for i in variables:
        x = signed[i]
        square = inner(x, x)
        if square == 0.0:
            alpha[i] = C[i]
            continue
        new = min(max(alpha[i] - (inner(x, w) - 1.0) / square, 0.0), C[i])
        change = new - alpha[i]
        if change != 0.0:
            alpha[i] = new
            for j in range(w.shape[0]):
                w[j] += change * x[j]


@kernel
def settle(
    signed: FloatArray,
    C: FloatArray,
    alpha: FloatArray,
    w: FloatArray,
    free_before: Int64Array,
    inverse_before: FloatArray,
    tol: float,
) -> Int64Array:
    """Move each variable to a bound or into the free set, until none gains by moving; returns the free set.

    The inverse of the Gram matrix of the free samples is updated with the set.
    """
    m = free_before.size
    most = m + signed.shape[1] + 2
    free, inverse = np.empty(most, np.int64), np.zeros((most, most))
    is_free = np.zeros(alpha.shape[0], np.bool_)
    for a in range(m):  # a loop: an assignment of arrays takes numba two seconds to compile
        free[a] = free_before[a]
        is_free[free[a]] = True
        for b in range(m):
            inverse[a, b] = inverse_before[a, b]
    across, along = np.empty(most), np.empty(most)
    for _ in range(PASSES):
        n_moved = 0
        for i in range(alpha.shape[0]):
            gradient = inner(signed[i], w) - 1.0
            is_right = (alpha[i] <= 0.0 and gradient >= -tol) or (alpha[i] >= C[i] and gradient <= tol)
            if not is_right and not is_free[i]:
                m = settle_one(signed, C, alpha, w, free, is_free, inverse, m, i, gradient, across, along)
                n_moved += 1
        if n_moved == 0:
            break
    return free[:m].copy()


@kernel
def settle_one(
    signed: FloatArray,
    C: FloatArray,
    alpha: FloatArray,
    w: FloatArray,
    free: Int64Array,
    is_free: BoolArray,
    inverse: FloatArray,
    m: int,
    i: int,
    gradient: float,
    across: FloatArray,
    along: FloatArray,
) -> int:
    """Move one variable until its gradient is zero or it is at a bound; free variables may reach bounds meanwhile."""
    x = signed[i]
    square = inner(x, x)
    while True:
        curvature = set_direction(signed, free, inverse, m, x, across, along)
        direction = 1.0 if gradient <= 0.0 else -1.0
        length, blocking = first_bound(C, alpha, free, m, i, direction, along)
        reaches_zero = curvature > DEPENDENT * square and abs(gradient) <= length * curvature
        if reaches_zero:
            length, blocking = abs(gradient) / curvature, -1
        move(signed, alpha, w, free, m, i, direction * length, along)
        gradient += direction * length * curvature
        if blocking >= 0:
            k = free[blocking]
            alpha[k] = 0.0 if direction * along[blocking] < 0.0 else C[k]
            is_free[k] = False
            m = drop_free(free, inverse, m, blocking)
            continue
        if reaches_zero and m < free.shape[0]:
            is_free[i] = True
            return add_free(free, inverse, m, i, along, curvature)
        alpha[i] = C[i] if direction > 0.0 else 0.0
        return m


@kernel
def set_direction(
    signed: FloatArray,
    free: Int64Array,
    inverse: FloatArray,
    m: int,
    x: FloatArray,
    across: FloatArray,
    along: FloatArray,
) -> float:
    """Set ``along`` to the change of the free variables with another one, and return the curvature along it."""
    for a in range(m):
        across[a] = inner(signed[free[a]], x)
    curvature = inner(x, x)
    for a in range(m):
        along[a] = -inner(inverse[a, :m], across[:m])
        curvature += along[a] * across[a]
    return curvature


@kernel
def first_bound(
    C: FloatArray,
    alpha: FloatArray,
    free: Int64Array,
    m: int,
    i: int,
    direction: float,
    along: FloatArray,
) -> tuple[float, int]:
    """How far variable i can move until it or a free variable reaches a bound, and which of them does (-1 for i)."""
    length, blocking = C[i] - alpha[i] if direction > 0.0 else alpha[i], -1
    for a in range(m):
        speed = direction * along[a]
        room = C[free[a]] - alpha[free[a]] if speed > 0.0 else alpha[free[a]]
        if speed != 0.0 and room < length * abs(speed):
            length, blocking = room / abs(speed), a
    return length, blocking


@kernel
def move(
    signed: FloatArray,
    alpha: FloatArray,
    w: FloatArray,
    free: Int64Array,
    m: int,
    i: int,
    length: float,
    along: FloatArray,
) -> None:
    """Move variable i and with it the free variables and the weights."""
    alpha[i] += length
    for j in range(w.shape[0]):
        w[j] += length * signed[i, j]
    for a in range(m):
        step = length * along[a]
        alpha[free[a]] += step
        for j in range(w.shape[0]):
            w[j] += step * signed[free[a], j]


@kernel
def add_free(
    free: Int64Array, inverse: FloatArray, m: int, i: int, along: FloatArray, curvature: float
) -> int:
    """Add sample i to the inverse; ``along`` is minus the inverse times its inner products with the free samples."""
    for a in range(m):
        for b in range(m):
            inverse[a, b] += along[a] * along[b] / curvature
        inverse[a, m] = inverse[m, a] = along[a] / curvature
    inverse[m, m] = 1.0 / curvature
    free[m] = i
    return m + 1


@kernel
def drop_free(free: Int64Array, inverse: FloatArray, m: int, k: int) -> int:
    """Remove the k-th free sample from the inverse; the last one moves to its position."""
    pivot = inverse[k, k]
    column = inverse[:m, k].copy()
    for a in range(m):
        for b in range(m):
            inverse[a, b] -= column[a] * column[b] / pivot
    last = m - 1
    free[k] = free[last]
    for a in range(last):
        inverse[k, a] = inverse[last, a]
        inverse[a, k] = inverse[a, last]
    inverse[k, k] = inverse[last, last]
    return last
