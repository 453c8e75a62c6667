r"""The dual of maximum entropy discrimination with switches that turn features on and off.

The discriminant is :math:`\sum_k s_k \theta_k x_k + b` with priors :math:`\theta_k \sim N(0, 1)`,
:math:`s_k = 1` with probability :math:`p_0`, and b flat. Every constraint
:math:`E[\pm(\text{discriminant} - y_i) - \gamma_j] \ge 0` (or the same for labels) has a multiplier
:math:`0 \le \lambda_j < c`, and the negative log partition function to be maximised is

.. math:: J(\lambda) = \sum_j [t_j \lambda_j + \phi(\lambda_j)]
    - \sum_k \log\bigl(1 - p_0 + p_0 e^{W_k^2/2}\bigr), \qquad
    W = X^\top u, \quad u_i = \sum_{j \text{ of } i} \pm\lambda_j, \quad \sum_i u_i = 0.

:math:`\phi` comes from the prior of the margin :math:`\gamma`: for labels, density :math:`c\,e^{-c(1-\gamma)}` below 1,

.. math:: \phi(\lambda) = \lambda + \log(1 - \lambda/c);

for real targets, a flat density up to :math:`\varepsilon` and :math:`\propto e^{-c(\gamma - \varepsilon)}` beyond,

.. math:: \phi(\lambda) = \log(\varepsilon + 1/c)
    - \log\Bigl(\frac{e^{\varepsilon\lambda} - 1}{\lambda} + \frac{e^{\varepsilon\lambda}}{c - \lambda}\Bigr).

J is concave. It is maximised by Newton's method with a logarithmic barrier for :math:`\lambda > 0`; at the other end
of the interval :math:`\phi` itself is a barrier. One Newton step needs one weighted Gram matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from zeronorm._types import FloatArray, Int64Array
from zeronorm.design import Design
from zeronorm.solvers._status import Status

_BARRIER_FACTOR = 0.1
_SERIES_BELOW = 1e-2
_DROWNED = 0.1  # rounding error of the largest diagonal entry, relative to the 1 that is added to it
_LARGEST_GAP = 0.1  # in nats: a large C makes J large, and a gap relative to J is then too coarse


@dataclass(frozen=True, eq=False)
class MarginTerms:
    """The multipliers: their samples, signs, linear terms, weights and the potential of their margins.

    ``epsilon`` is None for labels. A weight of two stands for two equal multipliers.
    """

    sample: Int64Array
    sign: FloatArray
    linear: FloatArray
    weight: FloatArray
    c: float
    epsilon: float | None = None

    @classmethod
    def labels(cls, signs: FloatArray, weight: FloatArray, c: float) -> MarginTerms:
        """One multiplier for each sample with label ±1."""
        return cls(np.arange(signs.size), signs, np.zeros(signs.size), weight, c)

    @classmethod
    def targets(cls, y: FloatArray, weight: FloatArray, c: float, epsilon: float) -> MarginTerms:
        """Two multipliers for each sample: the target is above the prediction, or below it."""
        sample = np.tile(np.arange(y.size), 2)
        sign = np.repeat([1.0, -1.0], y.size)
        return cls(sample, sign, sign * y[sample], weight[sample], c, epsilon)

    def start(self) -> FloatArray:
        """Multipliers inside the interval that satisfy the balance constraint."""
        plus, minus = self.weight[self.sign > 0].sum(), self.weight[self.sign < 0].sum()
        share = np.where(self.sign > 0, minus, plus) / (plus + minus)
        return np.asarray(min(0.1, 0.1 * self.c) * share)

    def sums(self, values: FloatArray) -> FloatArray:
        """Add up the values of each sample's multipliers."""
        return np.bincount(self.sample, values).astype(np.float64, copy=False)

    def potential(self, multiplier: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """φ with its first and second derivative."""
        left = self.c - multiplier
        if self.epsilon is None:
            return multiplier + np.log(left / self.c), 1.0 - 1.0 / left, -1.0 / left**2
        width = self.epsilon
        mean, slope, bend = _exponential_mean(width * multiplier)
        f = width * mean + 1.0 / left
        ratio = (width**2 * slope + 1.0 / left**2) / f
        value = -width * multiplier - np.log(f / (width + 1.0 / self.c))
        second = -((width**3 * bend + 2.0 / left**3) / f - ratio**2)
        return value, -width - ratio, second


@dataclass(frozen=True, eq=False)
class MaxEntropySolution:
    """Multipliers, the fields W of the features, and the bias."""

    multiplier: FloatArray
    field: FloatArray
    bias: float
    objective: float
    n_iter: int
    status: Status


def solve_max_entropy(
    design: Design,
    terms: MarginTerms,
    prior: float,
    *,
    weight_scale: float = 1.0,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> MaxEntropySolution:
    """Maximise J to a duality gap of ``tol`` times (1 + |J|), and 0.1, by at most ``max_iter`` Newton steps.

    ``weight_scale`` is the prior standard deviation of a weight; another one than 1 is the same as features multiplied
    by it, so ``field`` is that of the multiplied features.
    """
    if weight_scale != 1.0:
        design = design.transformed(scale=np.full(design.n_features, 1.0 / weight_scale))
    multiplier = terms.start()
    barrier, n_iter, status = 1.0, 0, Status.ITERATION_LIMIT
    total = float(terms.weight.sum())
    objective, field = _objective(design, terms, prior, multiplier)
    bias = 0.0
    while n_iter < max_iter and status is Status.ITERATION_LIMIT:
        n_iter += 1
        step, decrement, bias, is_exact = _newton_step(design, terms, prior, multiplier, field, barrier)
        moved = _search(design, terms, prior, multiplier, step, decrement, barrier, (objective, field))
        if moved is not None:
            multiplier, objective, field = moved
        is_central = decrement <= 1e-2 * barrier * total
        if moved is None or is_central:
            if barrier * total <= min(tol * (1.0 + abs(objective)), _LARGEST_GAP):
                # A predicted gain that is not reached, or a system that needed a larger diagonal, is due to rounding.
                status = Status.CONVERGED if is_central and is_exact else Status.STALLED
            barrier *= _BARRIER_FACTOR
    return MaxEntropySolution(multiplier, field, bias, objective, n_iter, status)


def inclusion_probability(field: FloatArray, prior: float) -> FloatArray:
    """Posterior probability that each feature is on."""
    return np.asarray(expit(np.log(prior) - np.log1p(-prior) + 0.5 * field**2))


def _objective(
    design: Design, terms: MarginTerms, prior: float, multiplier: FloatArray
) -> tuple[float, FloatArray]:
    field = design.transpose_dot(terms.sums(terms.sign * terms.weight * multiplier))
    switched = np.logaddexp(np.log1p(-prior), np.log(prior) + 0.5 * field**2)
    potential = terms.potential(multiplier)[0]
    value = terms.weight @ (terms.linear * multiplier + potential) - switched.sum()
    return float(value), field


def _newton_step(
    design: Design,
    terms: MarginTerms,
    prior: float,
    multiplier: FloatArray,
    field: FloatArray,
    barrier: float,
) -> tuple[FloatArray, float, float, bool]:
    """The Newton step of J plus the barrier subject to Σu = 0, its decrement, and the multiplier of that constraint.

    The last result is whether the system of equations could be solved in double precision.
    """
    on = inclusion_probability(field, prior)
    decision = design.dot(on * field)
    curvature = on + field**2 * on * (1.0 - on)
    _, slope, bend = terms.potential(multiplier)
    gradient = terms.linear + slope + barrier / multiplier - terms.sign * decision[terms.sample]
    resistance = barrier / multiplier**2 - bend
    # The multipliers of a sample interact with others only through u: eliminate down to one unknown per sample.
    free = terms.sums(terms.weight * terms.sign * gradient / resistance)
    give = terms.sums(terms.weight / resistance)
    root = np.sqrt(give)
    system = root[:, None] * design.gram(curvature) * root
    system.flat[:: root.size + 1] += 1.0
    factor, is_exact = _factor(system)
    solved = cho_solve(factor, np.column_stack([free / root, root]))
    bias = float(root @ solved[:, 0]) / float(root @ solved[:, 1])
    moved = root * (solved[:, 0] - bias * solved[:, 1])
    push = (free - moved) / give
    step = (gradient - terms.sign * push[terms.sample]) / resistance
    decrement = float(terms.weight @ (gradient * step))
    return step, decrement, bias, is_exact


def _factor(system: FloatArray) -> tuple[tuple[FloatArray, bool], bool]:
    """Cholesky factor of I plus a product, and False where I is lost to rounding, as with a very large C.

    In that case the diagonal is increased until there is a factor. The step is then still an ascent direction.
    """
    jitter = 0.0
    diagonal = np.diagonal(system).copy()
    is_exact = bool(np.finfo(np.float64).eps * diagonal.max() < _DROWNED)
    while True:
        try:
            return cho_factor(system + np.diag(jitter * diagonal)), is_exact
        except LinAlgError:
            jitter = max(1e-15, 10.0 * jitter)
            if not jitter < 1.0:
                raise ValueError(
                    "Maximum entropy discrimination failed: its numbers became too large for double precision. "
                    "Use a smaller C, or standardize=True."
                ) from None


def _search(
    design: Design,
    terms: MarginTerms,
    prior: float,
    multiplier: FloatArray,
    step: FloatArray,
    decrement: float,
    barrier: float,
    current: tuple[float, FloatArray],
) -> tuple[FloatArray, float, FloatArray] | None:
    """Halve the step until J plus the barrier increases enough; None when rounding leaves nothing to gain."""
    with np.errstate(divide="ignore"):
        to_zero = np.where(step < 0.0, -multiplier / step, np.inf).min()
        to_c = np.where(step > 0.0, (terms.c - multiplier) / step, np.inf).min()
    size = min(1.0, 0.99 * to_zero, 0.99 * to_c)
    value = current[0] + barrier * float(terms.weight @ np.log(multiplier))
    for _ in range(50):
        trial = multiplier + size * step
        objective, field = _objective(design, terms, prior, trial)
        if objective + barrier * float(terms.weight @ np.log(trial)) >= value + 1e-4 * size * decrement:
            return trial, objective, field
        size *= 0.5
    return None


def _exponential_mean(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(1 - e⁻ˣ)/x with its first and second derivative; a series near zero, where the quotients cancel."""
    small = x < _SERIES_BELOW
    safe = np.where(small, 1.0, x)
    decay = np.exp(-safe)
    mean = -np.expm1(-safe) / safe
    slope = (decay * (1.0 + safe) - 1.0) / safe**2
    bend = (2.0 - decay * (safe**2 + 2.0 * safe + 2.0)) / safe**3
    near = np.where(small, x, 0.0)
    series = (
        1.0 - near / 2.0 + near**2 / 6.0 - near**3 / 24.0 + near**4 / 120.0 - near**5 / 720.0,
        -0.5 + near / 3.0 - near**2 / 8.0 + near**3 / 30.0 - near**4 / 144.0 + near**5 / 840.0,
        1.0 / 3.0 - near / 4.0 + near**2 / 10.0 - near**3 / 36.0 + near**4 / 168.0 - near**5 / 960.0,
    )
    return (
        np.where(small, series[0], mean),
        np.where(small, series[1], slope),
        np.where(small, series[2], bend),
    )
