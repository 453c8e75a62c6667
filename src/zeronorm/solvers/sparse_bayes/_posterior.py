r"""The posterior of linear weights with independent normal priors, for two likelihoods.

The weights of column k have the prior :math:`N(0, 1/\beta_k)`, the same for all outputs; the first column is
constant and has a flat prior (:math:`\beta_0 = 0`). With the curvature B of the negative log-likelihood

.. math:: \Sigma = (A + \Phi^\top B \Phi)^{-1}, \qquad A = \operatorname{diag}(\beta),

and :math:`\mu` the most probable weights. For normal noise this is the exact posterior, for labels it is
Laplace's approximation.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri
from scipy.special import expit

from zeronorm._jit import kernel
from zeronorm._types import FloatArray
from zeronorm.solvers.linear._losses import LOGISTIC
from zeronorm.solvers.linear._smooth import SmoothSolution, solve_on_gram

LOG_2PI = float(np.log(2.0 * np.pi))
_NEWTON_LIMIT = 100
_LEAST_CURVATURE = 1e-12  # of a sample whose label is certain
LARGE_SYSTEM = 300  # weights; with more, Newton steps use a factor instead of an inverse
_NEWTON_TOL = 1e-9  # decrement relative to the log-posterior at which Newton's method ends
_NEAR_MODE = 1e-4  # the same, below which a large system is not recomputed for the last step


class StoredColumns:
    """The constant column and the columns S - shift, where S is stored as a sparse matrix."""

    def __init__(self, stored: Any, shift: FloatArray) -> None:
        self.rows = sparse.csr_array(stored)
        self.rows.sort_indices()
        self.shift = shift
        self.shape = (self.rows.shape[0], shift.size + 1)

    def take(self, kept: Any) -> StoredColumns:
        """The constant column and some of the sparse ones."""
        return StoredColumns(self.rows[:, kept], self.shift[kept])

    def joined(self, others: StoredColumns) -> StoredColumns:
        """These columns with further sparse ones appended."""
        shift = np.concatenate([self.shift, others.shift])
        return StoredColumns(sparse.hstack([self.rows, others.rows], format="csr"), shift)

    def dot(self, weights: FloatArray) -> FloatArray:
        """The columns times these weights."""
        own = weights[1:]
        return np.asarray(self.rows @ own + (weights[0] - self.shift @ own))

    def transpose_dot(self, v: FloatArray) -> FloatArray:
        """Inner products of the columns with a vector."""
        total = float(v.sum())
        return np.append(total, self.rows.T @ v - total * self.shift)

    def gram(self, weight: FloatArray, others: StoredColumns | None = None) -> FloatArray:
        """Weighted inner products with other columns, or with each other; the constant one is first."""
        others = self if others is None else others
        product = np.zeros((self.shape[1], others.shape[1]))
        mine, theirs = (part.transpose_dot(weight) for part in (self, others))
        if others is self:
            add_squares(*_parts(self.rows), weight, product[1:, 1:])
        else:
            add_products(*_parts(self.rows), *_parts(others.rows), weight, product[1:, 1:])
        # (S - a)'D(T - b) = S'DT - a (T'd - b sum(d))' - (S'd) b'
        product[1:, 1:] -= np.outer(self.shift, theirs[1:])
        product[1:, 1:] -= np.outer(mine[1:] + mine[0] * self.shift, others.shift)
        product[0], product[:, 0] = theirs, mine
        return product


Columns = FloatArray | StoredColumns  # the first one is constant


def _parts(rows: Any) -> tuple[Any, Any, Any]:
    return rows.indptr, rows.indices, rows.data


def fitted_values(columns: Columns, weights: FloatArray) -> FloatArray:
    """Φw."""
    return columns.dot(weights) if isinstance(columns, StoredColumns) else np.asarray(columns @ weights)


def transpose_product(columns: Columns, v: FloatArray) -> FloatArray:
    """Φ'v."""
    return columns.transpose_dot(v) if isinstance(columns, StoredColumns) else np.asarray(columns.T @ v)


def weighted_gram(columns: Columns, weight: FloatArray) -> FloatArray:
    """Φ' diag(weight) Φ."""
    if isinstance(columns, StoredColumns):
        return columns.gram(weight)
    return np.asarray(columns.T @ (columns * weight[:, None]))


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior: mean (outputs × columns), covariance, and derivatives of the likelihood.

    ``root`` is an upper triangular factor R of the covariance RR'. ``curvature`` and ``residual`` (outputs × samples)
    are the second derivative of the negative log-likelihood, and the first one of the log-likelihood, with respect
    to the fitted values.
    """

    mean: FloatArray
    root: FloatArray
    curvature: FloatArray
    residual: FloatArray
    log_evidence: float

    @property
    def covariance(self) -> FloatArray:
        """The covariance of the weights, outputs × columns × columns."""
        return np.asarray(self.root @ self.root.transpose(0, 2, 1))


@dataclass(frozen=True, eq=False)
class DualMode:
    """The most probable weights w = diag(v) X'r, given by coefficients r of the samples (outputs × samples)."""

    residual: FloatArray
    curvature: FloatArray
    bias: FloatArray
    log_likelihood: float
    models: tuple[SmoothSolution, ...] = ()


class Likelihood(Protocol):
    """The interface of a likelihood."""

    n_outputs: int
    n_passes: int
    """Number of passes over the precisions between two posteriors."""
    rigid_curvature: bool
    """Whether the curvature changes only by a factor common to all samples."""

    def posterior(self, columns: Columns, precision: FloatArray, start: FloatArray) -> Posterior:
        """The posterior for these columns (the first is constant) and prior precisions."""

    def improved(self, columns: Columns, precision: FloatArray, posterior: Posterior) -> Posterior:
        """The posterior after parameters of the likelihood are re-estimated; its evidence is never lower."""

    def dual_mode(self, K: FloatArray, start: DualMode | None) -> DualMode:
        """The most probable weights for K = X diag(v) X', without a matrix of columns by columns."""

    def re_estimate(self, mode: DualMode, determined: float) -> float:
        """Re-estimate parameters of the likelihood; returns the change of their logarithm.

        ``determined`` is the effective number of weights determined by the data.
        """


class GaussianLikelihood:
    """Normal noise around one real target. A sample of weight two counts as two samples.

    Unless given, the variance of the noise is estimated, starting from that of the target. With more columns than
    samples the evidence is often unbounded as the noise vanishes: ``min_noise`` is the smallest variance of the noise,
    as a share of the variance of the target.
    """

    n_outputs = 1
    n_passes = 5
    rigid_curvature = True

    def __init__(
        self,
        target: FloatArray,
        sample_weight: FloatArray,
        noise_variance: float | None = None,
        min_noise: float = 1e-3,
    ) -> None:
        self.target = target
        self.sample_weight = sample_weight
        self.n_total = float(sample_weight.sum())
        centred = target - np.average(target, weights=sample_weight)
        self.variance = float(sample_weight @ centred**2) / self.n_total
        if self.variance <= np.finfo(float).eps * float(np.max(np.abs(target))) ** 2:
            self.variance = 1.0  # a constant target, which any noise explains
        self.estimate_noise = noise_variance is None
        self.noise_variance = self.variance if noise_variance is None else noise_variance
        self.noise_floor = min_noise * self.variance
        self._gram_of: Columns | None = None
        self._gram: FloatArray = np.empty((0, 0))

    def posterior(self, columns: Columns, precision: FloatArray, start: FloatArray) -> Posterior:
        weight = self.sample_weight / self.noise_variance
        if self._gram_of is not columns:
            self._gram_of, self._gram = columns, weighted_gram(columns, self.sample_weight)
        root, log_determinant = inverse_root(self._gram / self.noise_variance, precision)
        mean = root @ (root.T @ transpose_product(columns, weight * self.target))
        # One step of refinement, since all decisions about columns depend on the residual.
        left = weight * (self.target - fitted_values(columns, mean))
        mean += root @ (root.T @ (transpose_product(columns, left) - precision * mean))
        error = self.target - fitted_values(columns, mean)
        log_likelihood = -0.5 * (weight @ error**2 + self.n_total * (LOG_2PI + np.log(self.noise_variance)))
        evidence = log_likelihood + _prior_volume(mean, precision, log_determinant)
        return Posterior(mean[None], root[None], weight[None], (weight * error)[None], evidence)

    def improved(self, columns: Columns, precision: FloatArray, posterior: Posterior) -> Posterior:
        if not self.estimate_noise:
            return posterior
        old = self.noise_variance
        determined = float(np.sum(1.0 - precision * np.sum(posterior.root[0] ** 2, axis=1)))
        error = old * posterior.residual[0] / self.sample_weight
        squares = float(self.sample_weight @ error**2)
        # MacKay's update is fast but may overshoot; the EM update never lowers the evidence.
        fast = squares / max(self.n_total - determined, 1e-3)
        for proposal in (fast, (squares + old * determined) / self.n_total):
            self.noise_variance = max(proposal, self.noise_floor)
            if self.noise_variance == old:
                return posterior
            candidate = self.posterior(columns, precision, posterior.mean)
            if candidate.log_evidence >= posterior.log_evidence:
                return candidate
        self.noise_variance = old
        return posterior

    def dual_mode(self, K: FloatArray, start: DualMode | None) -> DualMode:
        weight = self.sample_weight / self.noise_variance
        P, border, total, _ = projected_inverse(K, weight)
        residual = P @ self.target
        log_likelihood = -0.5 * (
            residual @ (residual / weight) + self.n_total * (LOG_2PI + np.log(self.noise_variance))
        )
        bias = np.array([border @ self.target / total])
        return DualMode(residual[None], weight[None], bias, float(log_likelihood))

    def re_estimate(self, mode: DualMode, determined: float) -> float:
        if not self.estimate_noise:
            return 0.0
        old = self.noise_variance
        squares = old * float(mode.residual[0] @ (mode.residual[0] / mode.curvature[0]))
        fast = max(squares / max(self.n_total - determined, 1e-3), self.noise_floor)
        self.noise_variance = float(np.sqrt(fast * old))  # half way, so that it does not overshoot
        return abs(float(np.log(self.noise_variance / old)))


class BernoulliLikelihood:
    """Labels 0 and 1 with a logistic link, one column of targets for each output."""

    n_passes = 1  # the curvature changes with the weights
    rigid_curvature = False

    def __init__(self, targets: FloatArray, sample_weight: FloatArray) -> None:
        self.targets = targets
        self.n_outputs = targets.shape[1]
        self.sample_weight = sample_weight

    def posterior(self, columns: Columns, precision: FloatArray, start: FloatArray) -> Posterior:
        parts = [self._one(columns, precision, start[c], self.targets[:, c]) for c in range(self.n_outputs)]
        mean, root, curvature, residual, evidence = zip(*parts, strict=True)
        return Posterior(
            np.stack(mean), np.stack(root), np.stack(curvature), np.stack(residual), float(sum(evidence))
        )

    def improved(self, columns: Columns, precision: FloatArray, posterior: Posterior) -> Posterior:
        return posterior

    def dual_mode(self, K: FloatArray, start: DualMode | None) -> DualMode:
        models = tuple(
            solve_on_gram(
                K,
                LOGISTIC,
                2.0 * self.targets[:, c] - 1.0,
                self.sample_weight,
                None if start is None else (start.models[c].dual_coef, start.models[c].bias),
                tol=_NEWTON_TOL,
            )
            for c in range(self.n_outputs)
        )
        residual = np.stack([model.dual_coef for model in models])
        bias = np.array([model.bias for model in models])
        fitted = residual @ K + bias[:, None]
        probability = expit(fitted)
        curvature = self.sample_weight * np.maximum(probability * (1.0 - probability), _LEAST_CURVATURE)
        losses = np.logaddexp(0.0, np.where(self.targets.T > 0.5, -fitted, fitted))
        return DualMode(residual, curvature, bias, -float((losses @ self.sample_weight).sum()), models)

    def re_estimate(self, mode: DualMode, determined: float) -> float:
        return 0.0

    def _one(
        self, columns: Columns, precision: FloatArray, mean: FloatArray, target: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]:
        mean, value = self._mode(columns, precision, mean, target)
        probability = expit(fitted_values(columns, mean))
        curvature = self.sample_weight * probability * (1.0 - probability)
        residual = self.sample_weight * (target - probability)
        root, log_determinant = inverse_root(weighted_gram(columns, curvature), precision)
        log_likelihood = value + 0.5 * float(precision @ mean**2)
        evidence = log_likelihood + _prior_volume(mean, precision, log_determinant)
        return mean, root, curvature, residual, evidence

    def _mode(
        self, columns: Columns, precision: FloatArray, mean: FloatArray, target: FloatArray
    ) -> tuple[FloatArray, float]:
        """The largest log-posterior (up to a constant) by Newton's method with halved steps."""
        sign = np.where(target > 0.5, 1.0, -1.0)

        def log_posterior(w: FloatArray, fitted: FloatArray) -> float:
            loss = self.sample_weight @ np.logaddexp(0.0, -sign * fitted)
            return float(-loss - 0.5 * (precision @ w**2))

        fitted = fitted_values(columns, mean)
        value = log_posterior(mean, fitted)
        solve, decrement = None, np.inf
        for _ in range(_NEWTON_LIMIT):
            probability = expit(fitted)
            gradient = (
                transpose_product(columns, self.sample_weight * (target - probability)) - precision * mean
            )
            curvature = self.sample_weight * probability * (1.0 - probability)
            is_near = decrement <= _NEAR_MODE * (1.0 + abs(value)) and mean.size > LARGE_SYSTEM
            if solve is None or not is_near:
                solve = _solver(weighted_gram(columns, curvature), precision)
            step = solve(gradient)
            decrement = float(gradient @ step)
            size = 1.0
            while True:
                trial = mean + size * step
                trial_fitted = fitted_values(columns, trial)
                trial_value = log_posterior(trial, trial_fitted)
                if trial_value >= value + 1e-4 * size * decrement or size < 1e-10:
                    break
                size *= 0.5
            if trial_value < value:
                break
            mean, fitted, value = trial, trial_fitted, trial_value
            if decrement <= _NEWTON_TOL * (1.0 + abs(value)):
                break
        return mean, value


def _solver(system: FloatArray, precision: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A function that solves ``system + diag(precision)``; for large systems without the inverse, to save time."""
    if precision.size > LARGE_SYSTEM:
        # The transpose is the same matrix, in the memory order of LAPACK.
        lower, failed = dpotrf((system + np.diag(precision)).T, lower=True, clean=False, overwrite_a=True)
        if not failed:
            return lambda right: np.asarray(dpotrs(lower, right, lower=True)[0])
    root, _ = inverse_root(system, precision)
    return lambda right: np.asarray(root @ (root.T @ right))


def inverse_root(system: FloatArray, precision: FloatArray) -> tuple[FloatArray, float]:
    """R with RR' the inverse of ``system + diag(precision)``, and the log determinant of the latter."""
    system = system.copy()
    size = system.shape[0]
    system.flat[:: size + 1] += precision
    # Scaling to a unit diagonal keeps the accuracy where precisions have very different sizes.
    diagonal = np.diagonal(system).copy()
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    system *= scale[:, None] * scale
    jitter = 0.0
    while True:
        lower, failed = dpotrf(system + jitter * np.eye(size), lower=True, clean=True)
        if not failed:
            break
        jitter = max(1e-14, 10.0 * jitter)  # linearly dependent columns
    inverted, _ = dtrtri(lower, lower=True)
    log_determinant = 2.0 * float(np.sum(np.log(np.diagonal(lower))) - np.sum(np.log(scale)))
    return np.asarray(scale[:, None] * inverted.T), log_determinant


def projected_inverse(K: FloatArray, curvature: FloatArray) -> tuple[FloatArray, FloatArray, float, float]:
    """With C = 1/curvature + K: P = C⁻¹ - C⁻¹11'C⁻¹ / 1'C⁻¹1, C⁻¹1, 1'C⁻¹1 and log det(C diag(curvature))."""
    scale = np.sqrt(curvature)
    root, log_determinant = inverse_root(scale[:, None] * K * scale, np.ones(scale.size))
    inverse = scale[:, None] * (root @ root.T) * scale
    border = inverse.sum(axis=1)
    total = float(border.sum())
    return inverse - np.outer(border, border) / total, border, total, log_determinant


def _prior_volume(mean: FloatArray, precision: FloatArray, log_determinant: float) -> float:
    """Log prior at the mode plus the log volume of the posterior; the constant column has a flat prior."""
    penalised = precision[1:]
    log_prior = 0.5 * float(np.sum(np.log(penalised)) - penalised @ mean[1:] ** 2)
    return log_prior + 0.5 * (LOG_2PI - log_determinant)


# -- Compiled loops of sparse Bayesian learning: the prior variances of largest evidence, one column at a time --


_REFINEMENTS = 60
_HALVINGS = 30


@kernel
def add_products(starts, columns, values, other_starts, other_columns, other_values, weight, out):
    """Add S' diag(weight) T of two sparse matrices in CSR format to ``out``."""
    for i in range(weight.shape[0]):
        for a in range(starts[i], starts[i + 1]):
            factor, row = weight[i] * values[a], out[columns[a]]
            for b in range(other_starts[i], other_starts[i + 1]):
                row[other_columns[b]] += factor * other_values[b]


@kernel
def add_squares(starts, columns, values, weight, out):
    """Add S' diag(weight) S to ``out``; the columns of each row are sorted, so that half of the products suffice."""
    for i in range(weight.shape[0]):
        for a in range(starts[i], starts[i + 1]):
            factor, row = weight[i] * values[a], out[columns[a]]
            for b in range(starts[i], a + 1):
                row[columns[b]] += factor * values[b]
    size, side = out.shape[0], 64  # blocks that fit into the cache
    for top in range(0, size, side):
        for left in range(0, top + 1, side):
            for j in range(top, min(top + side, size)):
                for k in range(left, min(left + side, j)):
                    out[k, j] = out[j, k]


@kernel
def gain_of(variance, s, q):
    """Log evidence with this prior variance minus that without the column; s and q by output."""
    total = 0.0
    for c in range(s.shape[0]):
        grown = 1.0 + variance * s[c]
        total += 0.5 * (variance * q[c] * q[c] / grown - np.log(grown))
    return total


@kernel
def best_variance_of(s, q):
    """The prior variance of largest evidence, shared by the outputs; 0 when the column is better left out."""
    high = 0.0
    for c in range(s.shape[0]):
        if s[c] > 0.0 and q[c] * q[c] > s[c]:
            high = max(high, (q[c] * q[c] - s[c]) / (s[c] * s[c]))
    if s.shape[0] == 1 or high == 0.0:
        return high
    # All stationary points lie below the largest optimum of a single output: halve from there, ascend from the best.
    variance, best_gain, trial = 0.0, 0.0, high
    for _ in range(_HALVINGS):
        gain = gain_of(trial, s, q)
        if gain > best_gain:
            variance, best_gain = trial, gain
        trial *= 0.5
    low, high = 0.5 * variance, min(2.0 * variance, high)
    for _ in range(_REFINEMENTS):
        slope, bend = 0.0, 0.0
        for c in range(s.shape[0]):
            grown = 1.0 + variance * s[c]
            square = q[c] * q[c] / (grown * grown)
            slope += square - s[c] / grown
            bend += s[c] * s[c] / (grown * grown) - 2.0 * s[c] * square / grown
        if slope > 0.0:
            low = variance
        else:
            high = variance
        following = variance - slope / bend if bend < 0.0 else 0.5 * (low + high)
        if not low < following < high:
            following = 0.5 * (low + high)
        change = abs(following - variance)
        variance = following
        if change <= 1e-13 * variance:  # also when the variance is zero: better left out
            break
    return variance


@kernel
def best_variances(s, q, variance, gain):
    """Fill ``variance`` and ``gain`` for the rows of s and q."""
    for k in range(s.shape[0]):
        variance[k] = best_variance_of(s[k], q[k])
        gain[k] = gain_of(variance[k], s[k], q[k])


@kernel
def update_precisions(mean, covariance, precision, least_change):
    """Re-estimate the precisions of all columns but the first in turn; columns of infinite precision are removed.

    Relative changes below ``least_change`` are not made. ``mean`` (outputs × columns) and ``covariance``
    (outputs × columns × columns) are kept up to date by updates of rank one.
    """
    n_outputs, size = mean.shape
    s, q, column = np.empty(n_outputs), np.empty(n_outputs), np.empty(size)
    for j in range(1, size):
        if np.isinf(precision[j]):
            continue
        for c in range(n_outputs):
            scale = covariance[c, j, j]
            s[c] = max(1.0 / scale - precision[j], 0.0)
            q[c] = mean[c, j] / scale
        variance = best_variance_of(s, q)
        updated = 1.0 / variance if variance > 0.0 else np.inf
        if abs(updated - precision[j]) <= least_change * precision[j]:
            continue
        inverse_change = 1.0 / (updated - precision[j])
        for c in range(n_outputs):
            factor = 1.0 / (covariance[c, j, j] + inverse_change)
            for i in range(size):
                column[i] = covariance[c, j, i]
            shift = factor * mean[c, j]
            for i in range(size):
                mean[c, i] -= shift * column[i]
                scaled = factor * column[i]
                for k in range(size):
                    covariance[c, i, k] -= scaled * column[k]
        precision[j] = updated
