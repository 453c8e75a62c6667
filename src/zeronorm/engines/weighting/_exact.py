"""The energy summed over all subsets and its gradient, for problems with few subsets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from math import comb, factorial

import numpy as np

from zeronorm._types import FloatArray, Int64Array
from zeronorm.engines.weighting._batches import BatchEvaluator
from zeronorm.engines.weighting._state import ErrorSums, RunState
from zeronorm.engines.weighting._steps import Outcome, record_steps
from zeronorm.solvers._geometry import project_on_simplex

MOST_SUBSETS = 200_000
SMALLEST_STEP = 1e-12
EXACT_TOL = 1e-6


def all_subsets(n_features: int, subset_size: int) -> Int64Array:
    """All multisets of ``subset_size`` features (draws with replacement, in any order), one per row."""
    count = comb(n_features + subset_size - 1, subset_size)
    if count > MOST_SUBSETS:
        raise ValueError(
            f"method='exact' sums over all subsets: {n_features} features taken {subset_size} at a time give "
            f"{count} subsets, more than {MOST_SUBSETS}. Lower 'subset_size', set 'fisher_threshold', or use a "
            "stochastic method."
        )
    return np.asarray(list(combinations_with_replacement(range(n_features), subset_size)), dtype=np.int64)


class ExactEnergy:
    r"""The mean error :math:`\mathcal E(P) = \sum_\omega g(\omega) \prod_i P(\omega_i)` over all draws (eq. 2).

    ``subsets`` come from :func:`all_subsets`, ``errors`` are their mean errors g.
    """

    def __init__(self, subsets: Int64Array, errors: FloatArray, n_features: int) -> None:
        self.subsets = subsets
        self.errors = errors
        self.n_features = n_features
        self._orders = np.asarray([_orders(subset) for subset in subsets], dtype=np.float64)

    def value(self, P: FloatArray) -> float:
        """The energy at the weights P."""
        return float(self._masses(P) @ self.errors)

    def log_gradient(self, P: FloatArray) -> FloatArray:
        r"""The gradient for :math:`y = \log P`: :math:`\sum_\omega P(\omega) C(\omega,\delta) g(\omega)` (eq. 9)."""
        weighted = self._masses(P) * self.errors
        repeated = np.repeat(weighted, self.subsets.shape[1])
        sums = np.bincount(self.subsets.ravel(), weights=repeated, minlength=self.n_features)
        return np.asarray(sums, dtype=np.float64)

    def gradient(self, P: FloatArray) -> FloatArray:
        """The gradient with respect to P (eq. 7), the derivative of a polynomial; defined also where P is zero."""
        values = P[self.subsets]
        ones = np.ones((len(values), 1))
        before = np.cumprod(np.hstack([ones, values[:, :-1]]), axis=1)
        after = np.cumprod(np.hstack([ones, values[:, :0:-1]]), axis=1)[:, ::-1]
        terms = (self._orders * self.errors)[:, None] * before * after
        sums = np.bincount(self.subsets.ravel(), weights=terms.ravel(), minlength=self.n_features)
        return np.asarray(sums, dtype=np.float64)

    def _masses(self, P: FloatArray) -> FloatArray:
        """Probability of each subset."""
        return np.asarray(self._orders * np.prod(P[self.subsets], axis=1))


def project_for_log(P: FloatArray, gradient: FloatArray) -> FloatArray:
    r"""Projection of a gradient for log P that keeps the sum of P: :math:`w - \kappa P` (eqs. 10 and 11)."""
    kappa = float(gradient @ P) / float(P @ P)
    return gradient - kappa * P


def exponential_move(P: FloatArray, direction: FloatArray, step_size: float) -> FloatArray:
    """P exp(-ε direction), normalised (eq. 12)."""
    exponent = -step_size * direction
    moved = P * np.exp(exponent - exponent.max())
    return np.asarray(moved / moved.sum())


def exponential_descent(energy: ExactEnergy, P: FloatArray) -> Callable[[float], FloatArray]:
    """The weights after a step of a given size along the gradient for log P."""
    direction = project_for_log(P, energy.log_gradient(P))
    return lambda step_size: exponential_move(P, direction, step_size)


def euclidean_descent(energy: ExactEnergy, P: FloatArray) -> Callable[[float], FloatArray]:
    """The weights after a step of a given size along the gradient for P, projected on the simplex (eq. 8)."""
    gradient = energy.gradient(P)
    return lambda step_size: project_on_simplex(P - step_size * gradient)


DESCENTS = {"exponential": exponential_descent, "euclidean": euclidean_descent}


def descend(
    energy: ExactEnergy, P: FloatArray, step_size: float, scheme: str = "exponential"
) -> tuple[FloatArray, float]:
    """One descent step, halved until the energy decreases; returns P unchanged if it never does."""
    moved_by = DESCENTS[scheme](energy, P)
    before = energy.value(P)
    while step_size > SMALLEST_STEP:
        moved = moved_by(step_size)
        if energy.value(moved) < before:
            return moved, step_size
        step_size /= 2.0
    return P, 0.0


def _orders(subset: Int64Array) -> int:
    """Number of orders in which the features of a subset can be drawn."""
    orders = factorial(subset.size)
    for count in np.unique(subset, return_counts=True)[1]:
        orders //= factorial(int(count))
    return orders


# -- Gradient descent on the exact energy --


def tabulate_energy(evaluator: BatchEvaluator, n_features: int, n_repeats: int, seed: int) -> ExactEnergy:
    """Build the energy; the error of each subset is averaged over ``n_repeats`` pairs of bootstrap samples."""
    batch, subset_size = evaluator.draws.features.shape
    subsets = all_subsets(n_features, subset_size)
    errors = np.zeros(len(subsets))
    for start in range(0, len(subsets), batch):
        part = subsets[start : start + batch]
        padded = np.resize(part, (batch, subset_size))
        for repeat in range(n_repeats):
            found = evaluator.evaluate_given(padded, seed, start * n_repeats + repeat)
            errors[start : start + len(part)] += found[: len(part)] / n_repeats
    return ExactEnergy(subsets, errors, n_features)


def run_exact(
    energy: ExactEnergy, state: RunState, *, scheme: str, max_iter: int, tol: float | None
) -> Outcome:
    """Gradient descent from the weights of ``state``; the step doubles after each success and halves as needed."""
    recorded = set(record_steps(max_iter).tolist())
    step_size, tol = 1.0, EXACT_TOL if tol is None else tol
    while state.step < max_iter:
        moved, step_size = descend(energy, state.weights, 2.0 * step_size, scheme)
        change = float(np.abs(moved - state.weights).max())
        state.weights[:] = moved
        state.step += 1
        state.recent = ErrorSums(1, energy.value(moved))
        settled = step_size == 0.0 or change <= tol * float(moved.max())
        if settled or state.step in recorded:
            state.record()
        if settled:
            return Outcome(True, f"the weights settled after {state.step} steps")
    return Outcome(False, f"the weights still moved after {max_iter} steps; raise max_iter or tol.")
