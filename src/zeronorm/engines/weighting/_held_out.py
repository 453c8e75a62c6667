"""The energy of a distribution on samples that are kept out of the learning, and the rule that stops on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import Int64Array
from zeronorm.engines.weighting._batches import BatchEvaluator
from zeronorm.engines.weighting._state import RunState
from zeronorm.resampling._splits import make_splits
from zeronorm.selection.target import Target

# One of this many parts of the samples is kept out.
PARTS = 4
# A batch is tested on the samples kept out after this many steps, which adds about a tenth to the cost.
STEPS_PER_TEST = 8
# Memory of the smoothed energy, in tests.
TESTS_REMEMBERED = 20
# A decrease by a smaller fraction is not an improvement.
SMALLEST_IMPROVEMENT = 0.01
# The run stops when it has this many times the steps of the best energy.
PATIENCE = 2.0
# The draws of the learning have the steps 0, 1, …; the tests have other streams of random numbers.
OTHER_DRAWS = 2**40


def split_off(target: Target, groups: NDArray[np.generic] | None, seed: int) -> tuple[Int64Array, Int64Array]:
    """Row indices of the samples to learn from and of those kept out, by class; groups stay together."""
    split = make_splits(PARTS, target.values, groups, target=target, seed=seed)[0]
    return np.asarray(split.train, np.int64), np.asarray(split.test, np.int64)


class HeldOutEnergy:
    r"""Stops a run when the energy on samples kept out no longer decreases, and restores the best distribution.

    After every eighth step the classifiers of one more batch, trained on samples to learn from, are tested on the
    samples kept out. With their mean error q the smoothed energy is

    .. math:: e \leftarrow e + (q - e) / \min(j, 20)

    in test j. The run stops once it has twice the steps that it had at the lowest e.
    """

    def __init__(self, evaluator: BatchEvaluator, first_test: int) -> None:
        self.evaluator = evaluator
        self.first_test = first_test
        self.n_tests = 0
        self.energy = 0.0
        self.best_energy = np.inf
        self.best_step = 0
        self.best_weights: NDArray[np.float64] | None = None

    @contextmanager
    def workers(self, n_jobs: int | None) -> Iterator[None]:
        """Keep ``n_jobs`` workers during a run."""
        with self.evaluator.workers(n_jobs):
            yield

    def stops(self, state: RunState, cumulative: NDArray[np.float64]) -> bool:
        """Test the distribution if a test is due; True when the energy has not improved for long enough."""
        if state.step % STEPS_PER_TEST:
            return False
        error = float(self.evaluator.evaluate(cumulative, state.seed, OTHER_DRAWS + state.step).mean())
        self.n_tests += 1
        self.energy += (error - self.energy) / min(self.n_tests, TESTS_REMEMBERED)
        if self.n_tests < TESTS_REMEMBERED:
            return False
        if self.energy < (1.0 - SMALLEST_IMPROVEMENT) * self.best_energy:
            self.best_energy, self.best_step = self.energy, state.step
            self.best_weights = state.weights.copy()
        return state.step >= max(self.first_test, PATIENCE * self.best_step)

    @property
    def reason(self) -> str:
        """Why the run ended."""
        return f"the energy of the samples kept out was lowest after {self.best_step} steps"

    def restore(self, state: RunState) -> bool:
        """Go back to the weights of the lowest energy, without later rows of the trajectory; False if not tested."""
        if self.best_weights is None:
            return False
        state.weights[:] = self.best_weights
        kept = state.history.steps <= self.best_step
        if kept.any():
            history = state.history
            history.steps, history.mean_error = history.steps[kept], history.mean_error[kept]
            history.weights = history.weights[kept]
        return True
