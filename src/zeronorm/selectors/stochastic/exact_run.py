"""Gradient descent on the whole energy."""

from __future__ import annotations

import numpy as np

from zeronorm.selectors.stochastic.batches import BatchEvaluator
from zeronorm.selectors.stochastic.exact import ExactEnergy, all_subsets, descend
from zeronorm.selectors.stochastic.run import Outcome
from zeronorm.selectors.stochastic.schedule import record_steps
from zeronorm.selectors.stochastic.state import RunState


def tabulate_energy(evaluator: BatchEvaluator, n_features: int, n_repeats: int, seed: int) -> ExactEnergy:
    """The energy with the error of every subset averaged over ``n_repeats`` pairs of bootstrap samples."""
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
    energy: ExactEnergy, state: RunState, *, first_step: float, max_iter: int, tol: float | None
) -> Outcome:
    """Descend from the weights of ``state``; the step doubles after each success and halves as needed."""
    recorded = set(record_steps(max_iter).tolist())
    step_size = first_step
    while state.step < max_iter:
        moved, step_size = descend(energy, state.weights, 2.0 * step_size)
        change = float(np.abs(moved - state.weights).max())
        state.weights[:] = moved
        state.step += 1
        state.error_sum, state.error_count = energy.value(moved), 1
        settled = step_size == 0.0 or (tol is not None and change <= tol * float(moved.max()))
        if settled or state.step in recorded:
            state.record()
        if settled:
            return Outcome(True, f"the weights settled after {state.step} steps")
    if tol is None:
        return Outcome(True, f"all {max_iter} steps were done")
    return Outcome(False, f"the weights still moved after {max_iter} steps; raise max_iter or tol.")
