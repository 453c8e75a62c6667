r"""Probit regression on rescaled features, one step of expectation and maximisation at a time.

Each label is the sign of :math:`t_i = w \cdot x_i + b + \varepsilon_i` with standard normal noise. Given
the last decision values f, the expected t is

.. math:: \bar t_i = f_i + y_i\,\frac{\varphi(f_i)}{\Phi(y_i f_i)},

and the next weights minimise :math:`\|Xw + b - \bar t\|^2 + w^\top \Lambda w` (Huang et al. 2008, eqs. 3-6).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr

from zeronorm._types import BoolArray, FloatArray
from zeronorm.design import Design, StandardizedDesign
from zeronorm.engines.rescaling.machines import Part
from zeronorm.solvers.status import Status


class ProbitMachine:
    """``LinearModel`` of the rescaling engine; the prices of the parts are the weights of the samples."""

    def __init__(self, parts: Sequence[Part], tol: float) -> None:
        self.tol = tol
        self.settled = False
        self.targets = np.column_stack([part.target for part in parts])
        self.sample_weight = np.column_stack([part.price for part in parts])
        self.decision: FloatArray = np.zeros_like(self.targets)
        self.status = Status.CONVERGED
        self.weights: FloatArray = np.zeros((0, len(parts)))
        self.bias: FloatArray = np.zeros(len(parts))

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        expected = expected_scores(self.decision, self.targets)
        rescaled = StandardizedDesign(design, np.zeros(scale.size), 1.0 / scale)
        solve = _ridge_in_dual if design.n_samples <= scale.size else _ridge_in_primal
        gram = rescaled.gram() if solve is _ridge_in_dual else None
        columns = []
        for c in range(self.targets.shape[1]):
            weights, self.bias[c] = solve(rescaled, gram, expected[:, c], self.sample_weight[:, c])
            columns.append(weights)
        rescaled_weights = np.column_stack(columns)
        decision = rescaled.dot(rescaled_weights) + self.bias
        self.settled = bool(np.abs(decision - self.decision).max() <= self.tol * np.abs(decision).max())
        self.decision = decision
        self.weights = scale[:, None] * rescaled_weights
        return np.asarray(np.abs(rescaled_weights).sum(axis=1))

    def keep(self, staying: BoolArray) -> None:
        """The decision values are all that is needed of the last step."""


def expected_scores(decision: FloatArray, target: FloatArray) -> FloatArray:
    """The expected noisy score given the label, without cancellation far from the boundary."""
    log_density = -0.5 * decision**2 - 0.5 * np.log(2.0 * np.pi)
    return np.asarray(decision + target * np.exp(log_density - log_ndtr(target * decision)))


def _ridge_in_dual(
    design: Design, gram: FloatArray | None, target: FloatArray, weight: FloatArray
) -> tuple[FloatArray, float]:
    """Minimise Σ weight (x·u + b - target)² + |u|² with a free bias, for wide data."""
    assert gram is not None
    present = weight > 0.0
    factor = cho_factor(gram[np.ix_(present, present)] + np.diag(1.0 / weight[present]))
    ones = np.ones(int(present.sum()))
    solved = cho_solve(factor, np.column_stack([target[present], ones]))
    bias = float(solved[:, 0].sum() / solved[:, 1].sum())
    dual = np.zeros(target.size)
    dual[present] = solved[:, 0] - bias * solved[:, 1]
    return design.transpose_dot(dual), bias


def _ridge_in_primal(
    design: Design, gram: FloatArray | None, target: FloatArray, weight: FloatArray
) -> tuple[FloatArray, float]:
    """The same for tall data."""
    total = weight.sum()
    mean = design.transpose_dot(weight) / total
    mean_target = float(weight @ target / total)
    system = design.sandwich(weight) - total * np.outer(mean, mean) + np.eye(mean.size)
    right = design.transpose_dot(weight * (target - mean_target))
    weights = cho_solve(cho_factor(system), right)
    return weights, mean_target - float(mean @ weights)
