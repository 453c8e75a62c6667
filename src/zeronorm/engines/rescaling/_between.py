"""What else changes between two trainings on rescaled features: costs, the norm, or the targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr

from zeronorm._types import FloatArray
from zeronorm.design import Design
from zeronorm.solvers.linear import EpsilonInsensitiveLoss, LinearProblem, Solution

SLOWEST = 0.9999  # largest ratio of two changes that is believed; above, rounding decides


class Between:
    """Change nothing; base class of all other changes.

    ``settled`` states whether training once more with the same factors would change nothing.
    """

    settled = True

    def before(self, problem: LinearProblem, n_features: int) -> LinearProblem:
        """The problem to solve on this number of features."""
        return problem

    def after(self, problem: LinearProblem, found: Solution, design: Design) -> LinearProblem:
        """The problem to solve after this solution, which was found on the design."""
        return problem


class SlackRescaling(Between):
    r"""Rescale the slacks too, so that few samples lie inside the margin.

    A slack is like a feature that is nonzero in one sample; rescaling these features like the others turns their
    penalty :math:`\tfrac{C}{2}\sum\xi_i^2` or :math:`C\sum\xi_i` into :math:`C\sum\ln\xi_i`, which stands for the
    number of slacks that are not zero: the next training has the costs :math:`C/\xi_i^2` or :math:`C/\xi_i`. Slacks up
    to ``zero_tol`` count as zero. It is settled when no cost changes by more than the fraction ``tol``.
    """

    settled = False

    def __init__(self, costs: FloatArray, zero_tol: float, tol: float) -> None:
        self.costs, self.zero_tol, self.tol = costs, zero_tol, tol
        self.slack: FloatArray = np.zeros_like(costs)

    def after(self, problem: LinearProblem, found: Solution, design: Design) -> LinearProblem:
        self.slack = slacks(problem, found.decisions(design))
        exponent = 1.0 if problem.loss.has_kinks else 2.0
        costs = self.costs / np.maximum(self.slack, self.zero_tol) ** exponent
        self.settled = bool(np.all(np.abs(costs - problem.costs) <= self.tol * costs))
        return replace(problem, costs=costs)


def slacks(problem: LinearProblem, decision: FloatArray) -> FloatArray:
    """How far each sample misses its margin, or its target by more than epsilon; one column per model."""
    loss = problem.loss
    if isinstance(loss, EpsilonInsensitiveLoss):
        return np.maximum(np.abs(problem.targets - decision) - loss.epsilon, 0.0)
    return np.maximum(1.0 - problem.targets * decision, 0.0)


class L1SlackRescaling(Between):
    """The same for slacks that are not squared, with their cost divided by the last slack."""

    def __init__(self, costs: FloatArray, zero_tol: float) -> None:
        self.costs, self.zero_tol = costs, zero_tol
        self.slack: FloatArray | None = None

    def after(self, problem: LinearProblem, found: Solution, design: Design) -> LinearProblem:
        slack = np.column_stack([model.slack for model in found.models])
        self.settled = self.slack is not None and bool(np.abs(self.slack - slack).max() <= self.zero_tol)
        self.slack = slack
        return replace(problem, costs=self.costs / np.maximum(slack, self.zero_tol))


class Switch(Between):
    """Solve another problem once there are few features: the ℓ2 norm with many, the ℓ1 norm with few."""

    def __init__(self, many: Between, few: Between, few_problem: LinearProblem, few_features: int) -> None:
        self.many, self.few = many, few
        self.few_problem, self.few_features = few_problem, few_features
        self.now = many

    @property
    def settled(self) -> bool:  # type: ignore[override]
        return self.now.settled

    def before(self, problem: LinearProblem, n_features: int) -> LinearProblem:
        if n_features <= self.few_features and self.now is not self.few:
            self.now, problem = self.few, self.few_problem
        return self.now.before(problem, n_features)

    def after(self, problem: LinearProblem, found: Solution, design: Design) -> LinearProblem:
        return self.now.after(problem, found, design)


class ProbitStep(Between):
    r"""Probit regression by expectation-maximisation (EM): each training is a ridge regression on expected scores.

    Each label is the sign of :math:`t_i = w \cdot x_i + b + \varepsilon_i` with standard normal noise. Given
    the last decision values f, the expected t is

    .. math:: \bar t_i = f_i + y_i\,\frac{\varphi(f_i)}{\Phi(y_i f_i)},

    and the next weights minimise :math:`\|Xw + b - \bar t\|^2 + w^\top \Lambda w` (Huang et al. 2008, eqs. 3-6).
    """

    settled = False

    def __init__(self, labels: FloatArray, tol: float) -> None:
        self.labels, self.tol = labels, tol
        self.decision: FloatArray = np.zeros_like(labels)
        self._change = 0.0

    def before(self, problem: LinearProblem, n_features: int) -> LinearProblem:
        return replace(problem, targets=expected_scores(self.decision, self.labels))

    def after(self, problem: LinearProblem, found: Solution, design: Design) -> LinearProblem:
        decision = found.decisions(design)
        change = float(np.abs(decision - self.decision).max())
        # EM converges geometrically: with the ratio r of two changes, change · r/(1 - r) is still to come.
        ratio = min(change / self._change, SLOWEST) if self._change > 0.0 else SLOWEST
        self.settled = max(change, change * ratio / (1.0 - ratio)) <= self.tol * float(np.abs(decision).max())
        self.decision, self._change = decision, change
        return problem


def expected_scores(decision: FloatArray, target: FloatArray) -> FloatArray:
    """The expected latent score given the label, without cancellation far from the boundary."""
    log_density = -0.5 * decision**2 - 0.5 * np.log(2.0 * np.pi)
    return np.asarray(decision + target * np.exp(log_density - log_ndtr(target * decision)))
