r"""The box-constrained dual that every support vector machine here shares.

Variables :math:`0 \le \alpha_i \le u_i` belong to samples :math:`s_i` and carry signs
:math:`\pm 1`. With :math:`v = \sum_i \mathrm{sign}_i\,\alpha_i\,e_{s_i}` the problem is

.. math:: \min_\alpha\ \tfrac12 v^\top Q v + \mathrm{linear}^\top\alpha, \qquad
    \mathrm{sign}^\top\alpha = 0, \qquad Q = K + \mathrm{diag}(\mathrm{ridge}).

Everything needed of the gradient is :math:`f = Qv`, one number for each sample. The primal is

.. math:: \min_{w, b}\ \tfrac12 \|w\|^2 + \sum_i \ell_i(r_i), \qquad
    r_i = -\mathrm{linear}_i - \mathrm{sign}_i (w^\top x_{s_i} + b),

with :math:`\ell_i(r) = u_i \max(0, r)`, or :math:`\max(0, r)^2 / (2\,\mathrm{ridge}_{s_i})` where there
is a ridge (then :math:`u_i = \infty`). Neither a bound nor a ridge means the hard constraint
:math:`r_i \le 0`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zeronorm._types import BoolArray, FloatArray, Int64Array


@dataclass(frozen=True, eq=False)
class BoxDual:
    """The data of the problem, apart from K."""

    sample: Int64Array
    sign: FloatArray
    linear: FloatArray
    upper: FloatArray
    ridge: FloatArray

    @classmethod
    def classification(cls, y: FloatArray, C: FloatArray, squared: bool) -> BoxDual:
        """One variable for each sample: hinge or squared hinge loss; y in {-1, +1}, C for each sample."""
        upper, ridge = _bounds(C, squared)
        samples = np.arange(y.size, dtype=np.int64)
        return cls(samples, np.array(y, np.float64), np.full(y.size, -1.0), upper, ridge)

    @classmethod
    def regression(cls, y: FloatArray, C: FloatArray, epsilon: float, squared: bool) -> BoxDual:
        """Two variables for each sample, above and below the tube of half-width epsilon."""
        upper, ridge = _bounds(C, squared)
        samples = np.arange(y.size, dtype=np.int64)
        return cls(
            sample=np.concatenate([samples, samples]),
            sign=np.repeat([1.0, -1.0], y.size),
            linear=np.concatenate([epsilon - y, epsilon + y]),
            upper=np.concatenate([upper, upper]),
            ridge=ridge,
        )

    def restricted(self, variables: BoolArray) -> BoxDual:
        """The problem in some of the variables, the others held at zero."""
        return BoxDual(
            self.sample[variables],
            self.sign[variables],
            self.linear[variables],
            self.upper[variables],
            self.ridge,
        )

    @property
    def n_samples(self) -> int:
        """Number of samples; variables may be twice as many."""
        return self.ridge.size

    @property
    def hard(self) -> BoolArray:
        """The variables whose constraint allows no error at any price."""
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
        """The nearest use of given variables as a start: inside the box, the heavier sign scaled down."""
        alpha = np.clip(alpha, 0.0, self.upper)
        positive = self.sign > 0.0
        plus, minus = alpha[positive].sum(), alpha[~positive].sum()
        if plus > minus:
            alpha[positive] *= minus / plus
        elif minus > plus:
            alpha[~positive] *= plus / minus
        return alpha

    def bias(self, alpha: FloatArray, f: FloatArray) -> float:
        """The unpenalised bias: the mean over free variables, else the middle of what is optimal."""
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
        """How far each variable's constraint is from being met, given w'x + b of the samples."""
        return -self.linear - self.sign * decision[self.sample]

    def loss(self, decision: FloatArray) -> float:
        """The sum of the losses; infinite when a hard constraint is broken."""
        excess = np.maximum(self.residual(decision), 0.0)
        ridge = self.ridge[self.sample]
        squared = ridge > 0.0
        paid = ~squared & (excess > 0.0)
        return float(self.upper[paid] @ excess[paid] + 0.5 * np.sum(excess[squared] ** 2 / ridge[squared]))

    def gap(self, alpha: FloatArray, f: FloatArray, bias: float) -> float:
        """Primal minus dual objective at w = X'v, summed term by term so that it is never negative."""
        if self.hard.any():
            return self._gap_with_hard_constraints(alpha, f, bias)
        v = self.signed_sum(alpha)
        r = self.residual(f - self.ridge * v + bias)
        ridge = self.ridge[self.sample]
        squared = ridge > 0.0
        excess, slack = np.maximum(r, 0.0), np.maximum(-r, 0.0)
        unused = (self.upper - alpha)[~squared]
        unpaid = (excess - ridge * alpha)[squared]
        return float(alpha @ slack + unused @ excess[~squared] + np.sum(unpaid**2 / (2.0 * ridge[squared])))

    def _gap_with_hard_constraints(self, alpha: FloatArray, f: FloatArray, bias: float) -> float:
        """As gap; the solution is first enlarged until the hard constraints hold."""
        v = self.signed_sum(alpha)
        fitted = f - self.ridge * v
        reached = (self.sign * (fitted + bias)[self.sample])[self.hard].min()
        if reached <= 0.0:
            return float("inf")
        scale = max(1.0, 1.0 / reached) * (1.0 + 4.0 * np.finfo(float).eps)
        primal = 0.5 * scale**2 * (v @ fitted) + self.loss(scale * (fitted + bias))
        return max(float(primal - self.objective(alpha, f)), 0.0)


def _bounds(C: FloatArray, squared: bool) -> tuple[FloatArray, FloatArray]:
    """Upper bound and ridge of each sample; a sample of zero weight is held at zero either way."""
    if not squared:
        return C.copy(), np.zeros(C.size)
    weighted = C > 0.0
    ridge = np.divide(1.0, C, out=np.zeros(C.size), where=weighted)
    return np.where(weighted, np.inf, 0.0), ridge
