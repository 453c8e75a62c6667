"""Where a run stands: everything that is needed to go on from there."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from zeronorm._types import FloatArray, Int64Array


@dataclass
class History:
    """The trajectory, thinned to a geometric grid of steps.

    Row i holds the state after ``steps[i]`` steps: the ``weights`` then, and the mean error of all subsets
    tried since the row before, an estimate of the energy E(P) on the way.
    """

    steps: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
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


# -- Step sizes, the stopping rule, and the steps at which the trajectory is kept --


# Largest relative change of a weight in the first step.
FIRST_CHANGE = 0.1
# Errors above this are rare, and harmless in the schemes that cannot fail.
USUAL_ERROR = 0.5


@dataclass(frozen=True)
class StepSchedule:
    r"""Step sizes :math:`\varepsilon_n = \varepsilon / (n + c)`."""

    size: float
    offset: float

    def at(self, n: int) -> float:
        return self.size / (n + self.offset)


def make_schedule(
    method: str,
    size: float | None,
    offset: float | None,
    *,
    n_features: int,
    subset_size: int,
    batch_size: int,
    max_iter: int,
) -> StepSchedule:
    """The schedule the user gave, or one whose first step changes no weight by more than 10 %.

    From equal weights 1/p, a batch of errors q moves the weight of a feature that it draws c times per
    subset by a share ε c q (exponential) or ε c q p² (Euclidean, diffusion). A weight of the Euclidean scheme
    must stay positive, so c and q are the largest possible, k and 1; otherwise c is about the largest number
    found in a batch, and q one half. Without an offset the step halves over the run.
    """
    if offset is None:
        offset = max(1.0, float(max_iter))
    if size is None:
        gradient = float(subset_size)
        if method != "euclidean":
            gradient = USUAL_ERROR * _largest_count(n_features, subset_size, batch_size)
        first = FIRST_CHANGE / gradient
        size = offset * (first if method == "exponential" else first / n_features**2)
    return StepSchedule(float(size), float(offset))


def _largest_count(n_features: int, subset_size: int, batch_size: int) -> float:
    """About how often a batch draws its most frequent feature, per subset: a high quantile of a Poisson law."""
    mean = batch_size * subset_size / n_features
    return min(float(subset_size), (mean + 4.0 * float(np.sqrt(mean)) + 3.0) / batch_size)


@dataclass(frozen=True)
class StoppingRule:
    """Stop when the weights moved little over the last part of the run.

    After n steps the test is max |P_n - P_{n - ⌊n/μ⌋}| ≤ a max P_n, with the window μ and the tolerance a
    (None: never stop). It is made on a geometric grid of n, each point the lagged step of the next, so that
    one snapshot is enough; and only from a lag on that draws every feature about once, because a single
    batch without errors moves nothing.
    """

    window: int
    tol: float | None
    first_lag: int

    @property
    def first_test(self) -> int:
        return self.window * max(1, self.first_lag)

    def is_met(self, state: RunState) -> bool:
        """Whether the run may stop; keeps a snapshot in the state at the steps of the grid."""
        if self.tol is None or state.step < self.first_test:
            return False
        if state.lagged is not None and state.step != state.next_test:
            return False
        met = False
        if state.lagged is not None:
            change = float(np.abs(state.weights - state.lagged).max())
            met = change <= self.tol * float(state.weights.max())
        state.lagged = state.weights.copy()
        state.next_test = next_grid_step(state.step, self.window)
        return met


def next_grid_step(n: int, window: int) -> int:
    """The smallest m with m - ⌊m/window⌋ = n."""
    m = n * window // (window - 1)
    while m - m // window < n:
        m += 1
    while (m - 1) - (m - 1) // window >= n:
        m -= 1
    return m


def record_steps(max_iter: int, size: int = 40) -> Int64Array:
    """Steps, on a geometric grid that ends at ``max_iter``, at which the trajectory is kept."""
    return np.unique(np.geomspace(1, max_iter, min(size, max_iter)).round().astype(np.int64))
