r"""Expectation-maximisation for a probit kernel machine with sparse samples and sparse features.

The penalised log-likelihood is

.. math:: L(\beta, b, \sigma) = \sum_i \log \Phi\bigl(y_i f(x_i)\bigr) - \gamma_1 \sum_j |\beta_j|
    - \gamma_2 \sum_k \sigma_k, \qquad f(x) = \sum_j \beta_j\,k(\sigma * x, \sigma * x_j) + b.

One step takes the expected scores v, replaces both penalties by quadratic ones that touch them at the present
point, with factors :math:`\omega_j = \gamma_1/|\beta_j|` and :math:`\delta_k = \gamma_2/\sigma_k`, and lowers

.. math:: \tfrac12 \|v - f\|^2 + \tfrac12 \sum_j \omega_j \beta_j^2 + \tfrac12 \sum_k \delta_k \sigma_k^2

first exactly in :math:`(\beta, b)`, then by some steps in :math:`\sigma \ge 0`. L never decreases.
Since such steps are short, each is tried at a multiple of its length as well.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import log_ndtr

from zeronorm.criteria import ScaledKernel
from zeronorm.design import Design
from zeronorm.selectors.sparsity.probit_machine import expected_scores

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_START_RIDGE = 1e-2  # of the trace of K'K per sample
_FARTHEST = 64.0  # times the change of one step
_NEGLIGIBLE = 1e-3  # of the largest scaling factor: worth trying to do without


class SparseProbit:
    """The state of the iteration on the features that still have a scaling factor."""

    def __init__(
        self,
        design: Design,
        signs: FloatArray,
        kernel: ScaledKernel,
        scale: FloatArray,
        penalties: tuple[float, float],
        gradient_steps: int,
    ) -> None:
        self.design = design
        self.signs = signs
        self.kernel = kernel
        self.sample_penalty, self.feature_penalty = penalties
        self.gradient_steps = gradient_steps
        self.features: IntArray = np.flatnonzero(scale)
        self._columns = design.take(self.features)
        self.scale = scale[self.features]
        self.K = kernel.matrix(self._columns.gram(self.scale**2))
        self.reach = 1.0
        self.beta, self.bias = self._ridge_start()
        self.objective = self._objective(self.beta, self.bias, self.K, self.scale)

    def _ridge_start(self) -> tuple[FloatArray, float]:
        centred = self.K - self.K.mean(axis=0)
        ridge = _START_RIDGE * max(float(np.sum(centred**2)) / len(centred), 1e-300)
        system = centred.T @ centred
        system.flat[:: len(system) + 1] += ridge
        beta = cho_solve(cho_factor(system), centred.T @ self.signs)
        return beta, float(np.mean(self.signs - self.K @ beta))

    def _objective(self, beta: FloatArray, bias: float, K: FloatArray, scale: FloatArray) -> float:
        likelihood = log_ndtr(self.signs * (K @ beta + bias)).sum()
        return float(
            likelihood - self.sample_penalty * np.abs(beta).sum() - self.feature_penalty * scale.sum()
        )

    def step(self) -> float:
        """One iteration; returns the rise of the penalised log-likelihood."""
        start, before = self.objective, (self.beta, self.bias, self.scale)
        expected = expected_scores(self.K @ self.beta + self.bias, self.signs)
        self.beta, self.bias = self._solve_samples(expected)
        if self.scale.size:
            self._move_scale(expected)
        self.objective = self._objective(self.beta, self.bias, self.K, self.scale)
        if self.scale.size == before[2].size:
            self._reach_further(*before)
        return self.objective - start

    def _reach_further(self, beta: FloatArray, bias: float, scale: FloatArray) -> None:
        """Repeat the change just made, in the logarithms of the sizes, if that raises L further."""
        trial_beta = self.beta * _ratio(self.beta, beta) ** self.reach
        trial_bias = self.bias + self.reach * (self.bias - bias)
        trial_scale = self.scale * _ratio(self.scale, scale) ** self.reach
        K = self.kernel.matrix(self._columns.gram(trial_scale**2))
        objective = self._objective(trial_beta, trial_bias, K, trial_scale)
        if objective > self.objective:
            self.beta, self.bias, self.scale = trial_beta, trial_bias, trial_scale
            self.K, self.objective = K, objective
            self.reach = min(2.0 * self.reach, _FARTHEST)
        else:
            self.reach = max(0.25 * self.reach, 1.0)

    def _solve_samples(self, expected: FloatArray) -> tuple[FloatArray, float]:
        r""":math:`\beta = S (I + S K^\top K S)^{-1} S K^\top v`, :math:`S = \omega^{-1/2}`, with the bias left free.

        Written with S instead of its inverse, so that zeros stay zeros.
        """
        root = np.sqrt(np.abs(self.beta) / self.sample_penalty)
        used = np.flatnonzero(root)
        mean = self.K[:, used].mean(axis=0)
        scaled = (self.K[:, used] - mean) * root[used]
        system = scaled.T @ scaled
        system.flat[:: used.size + 1] += 1.0
        beta = np.zeros_like(self.beta)
        beta[used] = root[used] * cho_solve(cho_factor(system), scaled.T @ expected)
        return beta, float(np.mean(expected) - mean @ beta[used])

    # -- scaling factors --------------------------------------------------------------------------

    def scale_loss(
        self, scale: FloatArray, expected: FloatArray, resistance: FloatArray
    ) -> tuple[float, FloatArray]:
        """Half the squared distance to the expected scores plus the quadratic penalty, and its gradient."""
        gram = self._columns.gram(scale**2)
        K = self.kernel.matrix(gram)
        error = K @ self.beta + self.bias - expected
        value = 0.5 * float(error @ error + resistance @ scale**2)
        outer = np.outer(error, self.beta)
        on_gram = self.kernel.pullback(gram, K, 0.5 * (outer + outer.T))
        gradient = 2.0 * scale * self._columns.gram_adjoint(on_gram) + resistance * scale
        return value, gradient

    def _move_scale(self, expected: FloatArray) -> None:
        resistance = self.feature_penalty / self.scale
        found = minimize(
            self.scale_loss,
            self.scale,
            args=(expected, resistance),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * self.scale.size,
            options={"maxiter": self.gradient_steps},
        )
        before, _ = self.scale_loss(self.scale, expected, resistance)
        if found.fun < before:
            self._set_scale(np.asarray(found.x))

    def _set_scale(self, scale: FloatArray) -> None:
        staying = scale > 0.0
        if not staying.all():
            self.features = self.features[staying]
            self._columns = self.design.take(self.features)
        self.scale = scale[staying]
        self.K = self.kernel.matrix(self._columns.gram(self.scale**2))

    def prune(self) -> bool:
        """Drop the negligible scaling factors, unless L would fall."""
        if self.scale.size == 0 or not np.any(self.scale < _NEGLIGIBLE * self.scale.max()):
            return False
        kept = np.where(self.scale < _NEGLIGIBLE * self.scale.max(), 0.0, self.scale)
        K = self.kernel.matrix(self._columns.gram(kept**2))
        objective = self._objective(self.beta, self.bias, K, kept)
        if objective < self.objective:
            return False
        self._set_scale(kept)
        self.objective = objective
        return True


def _ratio(new: FloatArray, old: FloatArray) -> FloatArray:
    """Growth of the sizes in one step, at most by a tenth; 1 where the sign changed or nothing is left."""
    ratio = np.divide(new, old, out=np.ones_like(new), where=(old != 0.0) & (new * old > 0.0))
    return np.minimum(ratio, 1.1)
