"""Where a run stands: everything that is needed to go on from there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from zeronorm.selectors.stochastic.pool import FloatArray, IntArray


@dataclass
class History:
    """The trajectory, thinned to a geometric grid of steps.

    Row i holds the state after ``steps[i]`` steps: the ``weights`` then, and the mean error of all subsets
    tried since the row before, an estimate of the energy E(P) on the way.
    """

    steps: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    mean_error: FloatArray = field(default_factory=lambda: np.empty(0))
    weights: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    def append(self, step: int, mean_error: float, weights: FloatArray) -> None:
        previous = self.weights.reshape(-1, weights.size)
        self.steps = np.append(self.steps, step)
        self.mean_error = np.append(self.mean_error, mean_error)
        self.weights = np.vstack([previous, weights])


@dataclass
class RunState:
    """A run after ``step`` steps. ``lagged`` and ``next_test`` belong to the stopping rule."""

    seed: int
    weights: FloatArray
    step: int = 0
    n_redrawn: int = 0
    error_sum: float = 0.0
    error_count: int = 0
    lagged: FloatArray | None = None
    next_test: int = -1
    history: History = field(default_factory=History)

    def record(self) -> None:
        """Enter the present state into the trajectory."""
        if self.error_count:
            self.history.append(self.step, self.error_sum / self.error_count, self.weights)
        self.error_sum, self.error_count = 0.0, 0
